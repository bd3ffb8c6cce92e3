"""The two tables of the report: all trials, and all parameters of one of them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..diagnostics import Importance
from ..history import State
from ..plots._style import Run
from ..space import Categorical, Fixed, Float, Int

NOTHING = 2**24 - 1  # the three bytes of a value that is not there; the page's script knows it, too
NAMED = 6  # parameters that the table of trials has columns for
EXACT = 60_000  # values up to which they are stored as written; beyond, to a ten-millionth of their range
MOST = 500_000  # values that a page holds; beyond, those of the first trials are left out


def trial_table(run: Run, importance: Sequence[Importance], longest: int) -> dict[str, Any]:
    """Every trial in one row: number, state, arm, outcomes, the most important parameters, and why it failed."""
    outcomes = list(run.goals.outcomes)
    free = [p.name for p in run.space.parameters if not isinstance(p, Fixed)]
    named = ([s.name for s in importance] or free)[:NAMED]
    arms = any(t.note.get("arm") is not None for t in run.history)
    failed = bool(run.history.failed)
    rows = []
    for t in run.history:
        state = t.state.value if t.state is not State.COMPLETE else _feasible(run, t)
        row: list[Any] = [t.number, "running" if state == "pending" else state]
        row += [str(t.note.get("arm", ""))] if arms else []
        row += [t.outcomes[o].mean if o in t.outcomes else None for o in outcomes]
        row += [t.params.get(n) for n in named]
        row += [(t.reason or "")[:longest]] if failed else []
        rows.append(row)
    heads = ["trial", "state", *(["arm"] if arms else []), *outcomes, *named, *(["reason"] if failed else [])]
    return {"heads": heads, "rows": rows, "parameters": [len(heads) - len(named) - failed, len(heads) - failed]}


def _feasible(run: Run, t: Any) -> str:
    return "complete" if run.goals.feasible(t.outcomes) else "infeasible"


def parameter_table(run: Run, importance: Sequence[Importance], keep: Sequence[int] = ()) -> dict[str, Any]:
    """The parameters with their ranges and importance, and their values in every trial.

    A thousand parameters of hundreds of trials are stored in three bytes each, as a place in their range. Of still more, the
    trials in `keep` and the last ones are stored.
    """
    by_name = {s.name: s for s in importance}
    heads = []
    for p in run.space.parameters:
        head: dict[str, Any] = {"name": p.name}
        if isinstance(p, Float | Int):
            head |= {"low": p.low, "high": p.high}
            head |= {key: True for key, on in (("log", p.log), ("whole", isinstance(p, Int))) if on}
        elif isinstance(p, Categorical):
            head["choices"] = list(p.choices)
        else:
            head["fixed"] = p.value
        if p.name in by_name:
            head["share"] = float(f"{by_name[p.name].share:.4g}")
            head |= {"certain": True} if by_name[p.name].certain else {}
        heads.append(head)
    trials = [t for t in run.history if len(t.params) == len(heads)]
    most = MOST // max(1, len(heads))
    if len(trials) > most:
        first = [t for t in trials if t.number in set(keep)][:most]
        last = [t for t in trials if t.number not in set(keep)]
        trials = sorted([*first, *last[len(last) - (most - len(first)) :]], key=lambda t: t.number)
    cells = [[_cell(p, t.params[p.name]) for p in run.space.parameters] for t in trials]
    data: dict[str, Any] = {"heads": heads, "numbers": [t.number for t in trials]}
    if len(cells) * len(heads) <= EXACT:
        return data | {"rows": cells}
    columns = [_places(p, [row[j] for row in cells]) for j, p in enumerate(run.space.parameters)]
    words = np.stack(columns, axis=1).astype("<u4")  # n x D
    packed = words.view(np.uint8).reshape(*words.shape, 4)[:, :, :3]
    return data | {"packed": base64.b64encode(packed.tobytes()).decode()}


def _places(p: Any, column: Sequence[Any]) -> NDArray[np.int64]:
    """Each value as a place from 0 to 2^24 - 2 in its range, logarithmic where that is; a choice as it is.  -> n"""
    gone = np.array([v is None for v in column])
    values = np.array([0.0 if v is None else float(v) for v in column])
    if isinstance(p, Float | Int):
        scale = np.log if p.log else np.asarray
        low, high = float(scale(float(p.low))), float(scale(float(p.high)))
        at = scale(np.clip(values, p.low, p.high)).astype(
            float
        )  # a value that is not there is clipped, and replaced below
        values = (at - low) / (high - low or 1.0) * (NOTHING - 1)
    out: NDArray[np.int64] = np.where(gone, NOTHING, np.rint(values)).astype(np.int64)
    return out


def _cell(p: Any, value: Any) -> Any:
    """A number, or the place of a choice among the choices."""
    if isinstance(p, Categorical):
        return next((i for i, c in enumerate(p.choices) if c == value and type(c) is type(value)), None)
    return None if isinstance(p, Fixed) else value
