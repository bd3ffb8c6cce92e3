"""The two tables of the report: all trials, and all parameters of one of them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..diagnostics import Importance
from ..history import State
from ..plots._style import Run
from ..space import Categorical, Fixed, Float, Int

NAMED = 6  # parameters that the table of trials has columns for
EXACT = 60_000  # values up to which they are stored as written; beyond, to seven digits
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

    A thousand parameters of hundreds of trials are stored in four bytes each, as seven digits. Of still more, the trials in
    `keep` and the last ones are stored.
    """
    by_name = {s.name: s for s in importance}
    heads = []
    for p in run.space.parameters:
        head: dict[str, Any] = {"name": p.name}
        if isinstance(p, Float | Int):
            head |= {"low": p.low, "high": p.high, "log": p.log, "whole": isinstance(p, Int)}
        elif isinstance(p, Categorical):
            head["choices"] = list(p.choices)
        else:
            head["fixed"] = p.value
        if p.name in by_name:
            head |= {"share": by_name[p.name].share, "certain": by_name[p.name].certain}
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
    packed = np.array([[float("nan") if v is None else v for v in row] for row in cells], dtype="<f4")
    return data | {"packed": base64.b64encode(packed.tobytes()).decode()}


def _cell(p: Any, value: Any) -> Any:
    """A number, or the place of a choice among the choices."""
    if isinstance(p, Categorical):
        return next((i for i, c in enumerate(p.choices) if c == value and type(c) is type(value)), None)
    return None if isinstance(p, Fixed) else value
