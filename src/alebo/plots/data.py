"""The numbers behind each figure, as plain data: pure functions, in the user's signs and units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..diagnostics import Fit, Importance
from ..goals import Goals, hypervolume_trace, pareto
from ..history import History, State, Trial, counts, incumbents
from ..space import Float, Int, Space

Array: TypeAlias = NDArray[np.float64]


def trace_data(trace: ArrayLike) -> tuple[Array, Array]:
    """Evaluations and the best value after each, from the first feasible one on.  n -> (k, k)"""
    best = np.asarray(trace, dtype=float)
    known = np.isfinite(best)
    return np.flatnonzero(known).astype(float) + 1.0, best[known]


def convergence_data(history: History, goals: Goals, space: Space | None = None) -> dict[str, Any]:
    """Every finished trial and the incumbent's value after it, for the first objective."""
    objective = goals.objectives[0].outcome
    out: dict[str, Any] = {
        "outcome": objective,
        "number": [],
        "value": [],
        "kind": [],
        "best": [],
        "dim": [],
        "reason": [],
    }
    for t, best in incumbents(history, goals, space):
        good = t.complete and goals.feasible(t.outcomes)
        out["number"].append(t.number)
        out["value"].append(t.outcomes[objective].mean if t.complete else None)
        out["kind"].append("feasible" if good else "infeasible" if t.complete else "failed")
        out["best"].append(None if best is None else best.outcomes[objective].mean)
        out["dim"].append(t.note.get("dim"))
        out["reason"].append(t.reason or "" if t.state is State.FAILED else "")
    return out


def log_scale(values: Sequence[float | None], best: Sequence[float | None]) -> bool:
    """Whether a logarithmic axis helps: all values are positive, and they or the incumbents span a large factor."""
    known = [v for v in values if v is not None]
    good = [v for v in best if v is not None]
    if not known or not good or min([*known, *good]) <= 0.0:
        return False
    return max(good) >= 20.0 * min(good) or max(known) >= 50.0 * min(known)


def fit_data(fit: Fit) -> dict[str, Any]:
    """Predicted against observed, each prediction from a model that had not seen the point."""
    return {
        "outcome": fit.outcome,
        "observed": fit.observed.tolist(),
        "predicted": fit.predicted.tolist(),
        "error": (1.959964 * fit.sd).tolist(),
        "r2": fit.r2,
        "coverage": fit.coverage,
    }


def constraints_data(history: History, goals: Goals) -> list[dict[str, Any]]:
    """Each constraint's outcome after every completed trial, with its bound."""
    complete = history.complete
    return [
        {
            "outcome": c.outcome,
            "bound": c.bound,
            "relation": "≤" if c.sign > 0 else "≥",
            "number": [t.number for t in complete],
            "value": [t.outcomes[c.outcome].mean for t in complete],
            "holds": [bool(c.violation(t.outcomes[c.outcome].mean) <= 0.0) for t in complete],
        }
        for c in goals.constraints
    ]


def front_data(history: History, goals: Goals, space: Space | None = None) -> dict[str, Any] | None:
    """The objectives of all feasible trials, and which are Pareto-optimal; None for one objective."""
    if goals.single:
        return None
    good = [t for t in history if counts(t, goals, space)]
    names = [g.outcome for g in goals.objectives]
    on = pareto(np.stack([goals.objective_values(t.outcomes) for t in good])) if good else np.zeros(0, dtype=bool)
    return {
        "outcomes": names,
        "number": [t.number for t in good],
        "values": [[t.outcomes[n].mean for n in names] for t in good],
        "front": [bool(v) for v in on],
    }


def hypervolume_data(history: History, goals: Goals, space: Space | None = None) -> dict[str, Any] | None:
    """The hypervolume of the front after each finished trial, and its reference point; None for one objective.

    Where a goal has no reference, it is a tenth of the front's range beyond the front's worst value.
    """
    if goals.single:
        return None
    finished = [t for t in history if t.state is not State.PENDING]
    values = np.full((len(finished), len(goals.objectives)), np.nan)
    for i, t in enumerate(finished):
        if counts(t, goals, space):
            values[i] = goals.objective_values(t.outcomes)
    known = values[~np.isnan(values).any(axis=1)]
    if not len(known):
        return {"number": [t.number for t in finished], "volume": [0.0] * len(finished), "reference": None}
    front = known[pareto(known)]
    beyond = front.max(axis=0) + 0.1 * np.maximum(np.ptp(front, axis=0), 1e-12)
    given = [math.nan if g.reference is None else g.sign * g.reference for g in goals.objectives]
    at = np.where(np.isnan(given), beyond, given)
    signs = np.array([g.sign for g in goals.objectives])
    return {
        "number": [t.number for t in finished],
        "volume": hypervolume_trace(values, at).tolist(),
        "reference": (signs * at).tolist(),
    }


def parameters_data(trial: Trial, space: Space, importances: Sequence[Importance] = ()) -> list[dict[str, Any]]:
    """Every parameter of a point: its value, where it lies in its range (0 to 1), and how much it matters."""
    by_name = {s.name: s for s in importances}
    rows = []
    for p in space.parameters:
        value = trial.params.get(p.name)
        row: dict[str, Any] = {"name": p.name, "value": value}
        if isinstance(p, Float | Int) and isinstance(value, int | float):
            row |= {"low": p.low, "high": p.high, "at": position(p, float(value))}
        if p.name in by_name:
            s = by_name[p.name]
            row |= {"share": s.share, "certain": s.certain}
        rows.append(row)
    return sorted(rows, key=lambda r: -r.get("share", -1.0))


def position(p: Float | Int, value: float) -> float:
    """Where a value lies in its parameter's range: 0 at the lower end, 1 at the upper, by logarithms where it is so scaled."""
    low, high, at = (math.log(v) if p.log else float(v) for v in (p.low, p.high, value))
    return (at - low) / (high - low) if high > low else 0.5


def arms_data(history: History, window: int = 20) -> dict[str, Any] | None:
    """Which share of the last `window` proposals each arm of an adaptive method made; None where no note names an arm."""
    named = [(t.number, str(t.note["arm"])) for t in history if t.note.get("arm") is not None]
    if not named:
        return None
    arms = list(dict.fromkeys(arm for _, arm in named))
    shares: dict[str, list[float]] = {arm: [] for arm in arms}
    for i in range(len(named)):
        recent = [arm for _, arm in named[max(0, i + 1 - window) : i + 1]]
        for arm in arms:
            shares[arm].append(recent.count(arm) / len(recent))
    return {"number": [n for n, _ in named], "shares": shares, "window": window, "arm": [arm for _, arm in named]}


def dimension_data(history: History) -> dict[str, Any] | None:
    """The dimension of the embedding at each proposal, and where it grew; None where no note has one."""
    pairs = [(t.number, int(t.note["dim"])) for t in history if isinstance(t.note.get("dim"), int | float)]
    if not pairs:
        return None
    grown = [b for a, b in pairwise(pairs) if b[1] > a[1]]
    return {"number": [n for n, _ in pairs], "dim": [d for _, d in pairs], "grown": [list(g) for g in grown]}
