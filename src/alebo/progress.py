"""How a run is going: a snapshot of its history, and the snapshot as lines of text. Pure; `live` shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from .goals import Goals, pareto
from .history import History, State, Trial, counts, incumbent, incumbents
from .space import Space

if TYPE_CHECKING:
    pass

Number: TypeAlias = float | None
BARS = "▁▂▃▄▅▆▇█"
ASCII_BARS = "_.-=+*#@"


@dataclass(frozen=True)
class Snapshot:
    """One look at a run: everything the live view shows, as plain numbers."""

    done: int
    budget: int | None
    pending: int
    failed: int
    infeasible: int
    outcome: str
    best: Number  # in the user's sign; with several objectives the size of the front
    best_trial: int | None
    trace: tuple[float, ...]  # best after each finished trial, NaN before the first feasible one
    dim: int | None  # present size of the embedding
    grown: int  # how many times it grew
    model_seconds: float = 0.0  # spent in ask, in all
    evaluation_seconds: float = 0.0  # spent in evaluations, in all
    seconds_left: float | None = None
    front: bool = False
    earlier: int = 0  # of those done, how many were measured before: they do not count against the budget
    elapsed: float | None = None  # seconds since this run began
    running: tuple[tuple[int, float], ...] = ()  # the evaluations under way: trial, seconds so far
    timed: int | None = None  # how many evaluations the seconds belong to; a resumed run has not timed the earlier ones


def snapshot(
    history: History,
    goals: Goals,
    *,
    space: Space | None = None,
    model_seconds: float = 0.0,
    evaluation_seconds: float = 0.0,
    seconds_per_trial: float | None = None,
    timed: int | None = None,
    elapsed: float | None = None,
    running: Sequence[tuple[int, float]] = (),
) -> Snapshot:
    """The state of a run from its history and the seconds spent so far."""
    done = [t for t in history if t.state is not State.PENDING]
    feasible = [t for t in done if t.complete and goals.feasible(t.outcomes)]
    counted = {t.number for t in done if counts(t, goals, space)}
    complete = sum(t.complete for t in done)
    front = not goals.single
    name = " and ".join(g.outcome for g in goals.objectives)
    best: Number = None
    best_trial: int | None = None
    if front:
        trace = _front_sizes(done, goals, counted)
        best = trace[-1] if trace and feasible else None
    else:
        outcome = goals.objectives[0].outcome
        after = [t for _, t in incumbents(history, goals, space)]
        trace = [math.nan if t is None else t.outcomes[outcome].mean for t in after]
        if after and after[-1] is not None:
            best, best_trial = trace[-1], after[-1].number
    dims = [int(t.note["dim"]) for t in history if isinstance(t.note.get("dim"), int | float)]
    left = None
    if history.budget is not None and seconds_per_trial is not None:
        left = max(0, history.budget - sum(t.asked for t in done)) * seconds_per_trial
    return Snapshot(
        done=len(done),
        budget=history.budget,
        pending=len(history) - len(done),
        failed=len(done) - complete,
        infeasible=complete - len(feasible),
        outcome=name,
        best=best,
        best_trial=best_trial,
        trace=tuple(trace),
        dim=dims[-1] if dims else None,
        grown=sum(b > a for a, b in pairwise(dims)),
        model_seconds=model_seconds,
        evaluation_seconds=evaluation_seconds,
        seconds_left=left,
        front=front,
        earlier=sum(not t.asked for t in done),
        timed=timed,
        elapsed=elapsed,
        running=tuple(running),
    )


def _front_sizes(done: Sequence[Trial], goals: Goals, counted: set[int]) -> list[float]:
    import numpy as np

    sizes: list[float] = []
    rows: list[Any] = []
    for t in done:
        if t.number in counted:
            rows.append(goals.objective_values(t.outcomes))
            values = np.stack(rows)
            rows = list(values[pareto(values)])
        sizes.append(float(len(rows)) if rows else math.nan)
    return sizes


def sparkline(values: Sequence[float], width: int = 30, bars: str = BARS) -> str:
    """Numbers as a line of little bars, the newest to the right; each bar is the last value of its share.

    A trace ends at its best value: steps near that end are drawn larger than a linear scale would, so that one bad
    start does not flatten everything after it.
    """
    known = [v for v in values if math.isfinite(v)]
    if not known or width < 1:
        return ""
    if len(values) > width:
        values = [values[math.ceil((i + 1) * len(values) / width) - 1] for i in range(width)]
    low, high = min(known), max(known)
    span = high - low

    def level(v: float) -> float:
        t = (v - low) / span
        return t**0.3 if known[-1] == low else 1.0 - (1.0 - t) ** 0.3 if known[-1] == high else t

    out = ""
    for v in values:
        if not math.isfinite(v):
            out += " "
        else:
            out += bars[0] if span <= 0 else bars[min(len(bars) - 1, int(level(v) * len(bars)))]
    return out


def clock(seconds: float) -> str:
    """Seconds as people say them: 0:07, 12:30, 3:05:00, 2 d 04 h."""
    total = round(seconds)
    if total >= 86400:
        return f"{total // 86400} d {total % 86400 // 3600:02d} h"
    if total >= 3600:
        return f"{total // 3600}:{total % 3600 // 60:02d}:{total % 60:02d}"
    return f"{total // 60}:{total % 60:02d}"


def seconds(value: float) -> str:
    """A short time with a sensible number of digits."""
    return f"{value * 1000:.0f} ms" if value < 0.1 else f"{value:.1f} s" if value < 100 else clock(value)


def number(value: float) -> str:
    """A number in at most ten characters, for people."""
    return f"{value:.5g}"


def status_lines(now: Snapshot, *, title: str = "", width: int = 80, ascii_only: bool = False) -> list[str]:
    """The view as plain lines of at most `width` characters: what the terminal shows, without colour."""
    dot = " | " if ascii_only else " · "
    made = now.done - now.earlier
    of = f"{made} of {now.budget}" if now.budget else str(made)
    head = f"{title}{dot if title else ''}{of} evaluations" + (
        f" and {now.earlier} earlier ones" if now.earlier else ""
    )
    if now.elapsed is not None:
        head += f"{dot}{clock(now.elapsed)} elapsed"
    if now.seconds_left is not None and now.done:
        head += f"{dot}{clock(now.seconds_left)} left"
    if now.best is None:
        word = "no feasible point yet" if now.infeasible else "nothing measured yet"
        second = word
    elif now.front:
        second = f"front of {int(now.best)} for {now.outcome}"
    else:
        second = f"best {now.outcome} {number(now.best)} (trial {now.best_trial})"
    spare = min(40, width - len(second) - 2)
    spark = sparkline(now.trace, spare, ASCII_BARS if ascii_only else BARS) if spare >= 5 else ""
    second = f"{second}  {spark}" if spark else second
    per = max(1, now.done if now.timed is None else now.timed)
    parts = [f"model {seconds(now.model_seconds / per)}", f"evaluation {seconds(now.evaluation_seconds / per)} each"]
    counts = [f"failed {now.failed}", f"infeasible {now.infeasible}"]
    if now.running:
        trial, longest = max(now.running, key=lambda pair: pair[1])
        more = f" and {len(now.running) - 1} more" if len(now.running) > 1 else ""
        counts.append(f"trial {trial} running for {clock(longest)}{more}")
    elif now.pending:
        counts.append(f"pending {now.pending}")
    if now.dim is not None:
        counts.append(f"dimension {now.dim}" + (f" (grown {now.grown}x)" if now.grown else ""))
    lines = [head, second]
    joined = dot.join(parts + counts)
    lines += [joined] if len(joined) <= width else [dot.join(parts), *_wrapped(counts, dot, width)]
    return [line[:width].rstrip() for line in lines]


def _wrapped(parts: Sequence[str], dot: str, width: int) -> list[str]:
    """The parts in as few lines as fit."""
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(dot) + len(part) <= width:
            lines[-1] += dot + part
        else:
            lines.append(part)
    return lines


def events(before: History | None, after: History, goals: Goals, space: Space | None = None) -> list[str]:
    """One line for each thing worth knowing that happened between two looks at a run."""
    seen = {} if before is None else {t.number: t.state for t in before}
    fresh = [t for t in after if t.state is not State.PENDING and seen.get(t.number, State.PENDING) is State.PENDING]
    out: list[str] = []
    old = _dim(before)
    for t in fresh:
        if t.state is State.FAILED:
            out.append(f"trial {t.number} failed: {(t.reason or 'no reason given').splitlines()[0]}")
    known = [t for t in before or () if counts(t, goals, space)]
    good = [t for t in fresh if counts(t, goals, space)]
    if good and not known and goals.constraints:
        out.append(f"trial {good[0].number} is the first that satisfies the constraints")
    top = incumbent([*known, *good], goals, space) if goals.single else None
    if top is not None and any(top is t for t in good):
        objective = goals.objectives[0].outcome
        out.append(f"trial {top.number}: best {objective} is now {number(top.outcomes[objective].mean)}")
    new = _dim(after)
    if old is not None and new is not None and new > old:
        out.append(f"the embedding grew from {old} to {new} dimensions")
    return out


def _dim(history: History | None) -> int | None:
    for t in reversed(history or ()):
        if isinstance(t.note.get("dim"), int | float):
            return int(t.note["dim"])
    return None
