"""Everything that the report shows, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import __version__
from ..diagnostics import Diagnosis
from ..goals import AtLeast, AtMost, Cost, Goal, Maximize
from ..history import Span, State, Trial, incumbent
from ..plots import front_data
from ..plots._style import Run
from ..progress import clock, number
from .figures import figures
from .table import parameter_table, trial_table

REASON = 400  # characters of a failure's reason that the table shows


def content(
    run: Run,
    *,
    diagnosis: Diagnosis | None = None,
    name: str = "study",
    where: str = "study.toml",
    best: Trial | None = None,
    spans: Sequence[Span] = (),
) -> dict[str, Any]:
    """What the page shows of a run. Pure; without a diagnosis the parts about models are left out.

    Args:
        run: An Optimizer or a Study.
        diagnosis: What `diagnose` gave for this run or for its earlier trials; None: not computed yet.
        name: The title.
        where: How the command line names the study.
        best: The best trial, where a model chooses it; None: the incumbent by measured values.
        spans: When and by whom trials were evaluated, where it is known.
    """
    history, goals = run.history, run.goals
    if best is None and goals.single:
        best = incumbent(history, goals, run.space)
    front = front_data(history, goals, run.space)
    optimal = [] if front is None else [n for n, on in zip(front["number"], front["front"], strict=True) if on]
    chosen = best.number if best is not None else optimal[0] if optimal else None
    importance = () if diagnosis is None else diagnosis.importance
    data: dict[str, Any] = finite(
        {
            "name": name,
            "where": where,
            "version": __version__,
            "method": run.method.title,
            "goals": [notation(g) for g in goals.goals],
            "D": len(run.space),
            "dim": None if diagnosis is None else diagnosis.dim,
            "counts": _counts(run),
            "duration": _duration(spans),
            "empty": _empty(run),
            "best": None if best is None else _trial(best),
            "front": None if front is None else optimal,
            "outcomes": [g.outcome for g in goals.objectives],
            "verdicts": [] if diagnosis is None else [vars(v) for v in diagnosis.verdicts],
            "judged": None if diagnosis is None else diagnosis.n,  # completed trials that the model parts are about
            "numbers": [] if diagnosis is None else _numbers(diagnosis),
            "importance": [vars(s) for s in importance],
            "importance_from": "" if diagnosis is None else diagnosis.importance_from,
            "figures": figures(run, diagnosis, spans) if history.complete else [],
            "parameters": parameter_table(run, importance, keep=[*optimal, *([chosen] if chosen is not None else [])]),
            "trials": trial_table(run, importance, REASON),
            "chosen": chosen,
        }
    )
    return data


def _counts(run: Run) -> dict[str, int | None]:
    """How many trials there are of each kind."""
    history = run.history
    return {
        "complete": len(history.complete),
        "failed": len(history.failed),
        "infeasible": sum(not run.goals.feasible(t.outcomes) for t in history.complete),
        "pending": len(history.pending),
        "budget": history.budget,
        "left": _left(run),
    }


def notation(goal: Goal) -> str:
    """A goal in mathematical notation: `mass ≤ 1.5`, `minimise loss`."""
    if isinstance(goal, AtMost | AtLeast):
        return f"{goal.outcome} {'≤' if isinstance(goal, AtMost) else '≥'} {goal.bound:g}"
    verb = "maximise" if isinstance(goal, Maximize) else "cost" if isinstance(goal, Cost) else "minimise"
    return f"{verb} {goal.outcome}"


def _empty(run: Run) -> str:
    """Why there is nothing to draw yet; empty where there is something."""
    history = run.history
    if history.complete:
        return ""
    if not len(history):
        return "No trial has been proposed yet."
    if history.failed:
        waiting = f", and {len(history.pending)} still running" if history.pending else ""
        return f"No evaluation has succeeded: {len(history.failed)} of {len(history)} failed{waiting}."
    return f"No evaluation has finished yet: {len(history.pending)} running."


def _left(run: Run) -> int:
    budget = run.history.budget
    return 0 if budget is None else max(0, budget - sum(t.state is not State.PENDING for t in run.history))


def _duration(spans: Sequence[Span]) -> str | None:
    ends = [s.end for s in spans if s.end is not None]
    if not ends:
        return None
    return clock(max(0.0, (max(ends) - min(s.start for s in spans)).total_seconds()))


def _numbers(d: Diagnosis) -> list[list[str]]:
    """The numbers of the diagnosis in words, for a table."""
    rows: list[list[str]] = [["model that the method uses", d.model]] if d.model else []
    for f in d.fits:
        rows.append([f"variation of {f.outcome} explained (cross-validated R²)", f"{f.r2:.2f}"])
        rows.append([f"values of {f.outcome} inside their 95 % interval", f"{f.coverage:.0%}"])
    if d.importance_from:
        rows.append(["importance of parameters from", d.importance_from])
    if d.rank is not None:
        words = f"{d.rank:.1f} of {d.dim} (90 % between {d.rank_low:.1f} and {d.rank_high:.1f})"
        rows.append(["effective rank of Γ", words])
    if d.boundary_share is not None:
        rows.append(["later proposals on a face of the polytope", f"{d.boundary_share:.0%}"])
    if d.containment is not None:
        words = f"chance that such an embedding contains an optimum, if {d.directions} parameters matter"
        rows.append([words, f"{d.containment:.0%}"])
    if d.since_improvement is not None:
        rows.append(["evaluations since the last improvement", str(d.since_improvement)])
    return rows


def _trial(t: Trial) -> dict[str, Any]:
    return {
        "number": t.number,
        "outcomes": {k: [v.mean, v.sem] for k, v in t.outcomes.items()},
        "words": ", ".join(
            f"{k} = {number(v.mean)}" + (f" ± {v.sem:.2g}" if v.sem else "") for k, v in t.outcomes.items()
        ),
        "chosen_by": t.note.get("chosen_by"),
    }


def finite(value: Any) -> Any:
    """The same as JSON has it: what is not finite becomes null, what is no plain data becomes text."""
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return finite(value.tolist())
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool) or value is None else str(value)
