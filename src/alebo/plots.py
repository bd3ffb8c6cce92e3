"""Pictures of a run. Every `*_data` function is pure; drawing imports its library inside the function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._errors import MissingPartError
from .diagnostics import Fit, Importance, slopes
from .goals import AtMost, Goals, pareto
from .history import History, State, Trial
from .methods._fitted import Fitted
from .space import Float, Int, Space

Array: TypeAlias = NDArray[np.float64]


def trace_data(trace: ArrayLike) -> tuple[Array, Array]:
    """Evaluations and the best value after each, from the first feasible one on.  n -> (k, k)"""
    best = np.asarray(trace, dtype=float)
    known = np.isfinite(best)
    return np.flatnonzero(known).astype(float) + 1.0, best[known]


def trace_png(
    trace: ArrayLike,
    path: str | Path,
    *,
    measured: Sequence[float] | None = None,
    optimum: float | None = None,
    title: str = "",
    outcome: str = "value",
) -> Path:
    """Draw the best value so far (and every measured value) to a PNG file."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPartError('A picture needs matplotlib. Install it: pip install "alebo[plot]".') from None
    n, best = trace_data(trace)
    figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot()
    if measured is not None:
        axes.plot(np.arange(1, len(measured) + 1), measured, "o", ms=3, color="0.7", label="measured")
    axes.step(n, best, where="post", color="#1f6feb", lw=2, label="best so far")
    if optimum is not None:
        axes.axhline(optimum, color="#d1495b", lw=1, ls="--", label=f"optimum {optimum:.4g}")
        if len(best) and best.min() > optimum > 0 and best.max() > 5 * optimum:
            axes.set_yscale("log")
    axes.set(xlabel="evaluations", ylabel=outcome, title=title)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target)
    return target


# -- pure data for the report -----------------------------------------------------------------------------------------


def convergence_data(history: History, goals: Goals, space: Space | None = None) -> dict[str, Any]:
    """Every finished trial and the best value so far, in the user's sign."""
    objective = goals.objectives[0].outcome
    sign, best = goals.sign(objective), math.inf
    out: dict[str, Any] = {"outcome": objective, "number": [], "value": [], "kind": [], "best": [], "dim": []}
    for t in history:
        if t.state is State.PENDING:
            continue
        good = t.complete and goals.feasible(t.outcomes)
        if good and (space is None or space.at_target(t.params)):  # a cheap look does not count
            best = min(best, float(goals.objective_values(t.outcomes)[0]))
        out["number"].append(t.number)
        out["value"].append(t.outcomes[objective].mean if t.complete else None)
        out["kind"].append("feasible" if good else "infeasible" if t.complete else "failed")
        out["best"].append(sign * best if math.isfinite(best) else None)
        out["dim"].append(t.note.get("dim"))
    return out


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


def contour_data(models: Fitted, outcome: str, centre: Array, *, size: int = 41) -> dict[str, Any] | None:
    """The model over the plane of the two directions in which it changes most, through `centre` (d); None in one dimension.

    Outside the polytope there is nothing to evaluate: those cells are None. Points are shown where they project to.
    """
    seen, model = models, models.models[outcome]
    if seen.embedding is None or seen.embedding.dim < 2 or not hasattr(model.model, "U"):
        return None
    G = slopes(model.model, seen.P).reshape(-1, seen.embedding.dim)
    _, _, V = np.linalg.svd(G, full_matrices=False)
    axes = V[:2]
    domain = seen.embedding.domain
    reach = []
    start = domain.pull_inside(centre[None])
    for axis in axes:
        back, ahead = domain.ray(start, axis[None])
        room = max(float(ahead[0] - back[0]), 1e-6)
        reach.append(np.linspace(float(back[0]) - 0.05 * room, float(ahead[0]) + 0.05 * room, size))
    U, W = np.meshgrid(*reach)
    Y = centre + U.reshape(-1, 1) * axes[0] + W.reshape(-1, 1) * axes[1]
    inside = domain.contains(Y)
    mean = np.full(len(Y), np.nan)
    mean[inside] = model.predict(Y[inside])[0]
    flat = (seen.P - centre) @ axes.T
    off = np.linalg.norm(seen.P - centre - flat @ axes, axis=1)
    return {
        "outcome": outcome,
        "u": reach[0].tolist(),
        "w": reach[1].tolist(),
        "mean": [[None if math.isnan(v) else float(v) for v in row] for row in mean.reshape(size, size)],
        "points": {"u": flat[:, 0].tolist(), "w": flat[:, 1].tolist(), "off": off.tolist()},
        "numbers": [t.number for t in seen.trials],
    }


def constraints_data(history: History, goals: Goals) -> list[dict[str, Any]]:
    """Each constraint's outcome after every completed trial, with its bound."""
    complete = history.complete
    return [
        {
            "outcome": c.outcome,
            "bound": c.bound,
            "kind": "at most" if isinstance(c, AtMost) else "at least",
            "number": [t.number for t in complete],
            "value": [t.outcomes[c.outcome].mean for t in complete],
        }
        for c in goals.constraints
    ]


def front_data(history: History, goals: Goals) -> dict[str, Any] | None:
    """The first two objectives of all feasible trials, and which of them are on the front; None for one objective."""
    if goals.single:
        return None
    good = [t for t in history.complete if goals.feasible(t.outcomes)]
    names = [g.outcome for g in goals.objectives]
    on = pareto(np.stack([goals.objective_values(t.outcomes) for t in good])) if good else np.zeros(0, dtype=bool)
    return {
        "outcomes": names,
        "number": [t.number for t in good],
        "values": [[t.outcomes[n].mean for n in names] for t in good],
        "front": [bool(v) for v in on],
    }


def parameters_data(trial: Trial, space: Space, importances: Sequence[Importance] = ()) -> list[dict[str, Any]]:
    """Every parameter of a point: its value, where it lies in its range (0 to 1), and its share of the model's slope."""
    by_name = {s.name: s for s in importances}
    rows = []
    for p in space.parameters:
        value = trial.params.get(p.name)
        row: dict[str, Any] = {"name": p.name, "value": value}
        if isinstance(p, Float | Int) and isinstance(value, int | float):
            low, high, at = (math.log(v) if p.log else float(v) for v in (p.low, p.high, value))
            row |= {"low": p.low, "high": p.high, "at": (at - low) / (high - low)}
        if p.name in by_name:
            s = by_name[p.name]
            row |= {
                "share": s.share,
                "share_low": s.low,
                "share_high": s.high,
                "certain": s.certain,
                "chance": s.chance,
            }
        rows.append(row)
    return sorted(rows, key=lambda r: -r.get("share", -1.0))
