"""The report: one HTML file that needs no network, from a study's history to pictures, tables and plain words."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ._errors import MissingPartError, StateError
from .diagnostics import Diagnosis, diagnose, fit_models
from .goals import Goals
from .history import History, Trial
from .methods import Method
from .methods._fitted import Fitted
from .plots import constraints_data, contour_data, convergence_data, fit_data, front_data, parameters_data
from .progress import number
from .space import Space

TOP = 20  # parameters in the sensitivity figure; the table has them all


def report_data(
    history: History,
    space: Space,
    goals: Goals,
    *,
    method: Method | None = None,
    seed: int = 0,
    name: str = "study",
    best: Trial | None = None,
) -> dict[str, Any]:
    """Everything the report shows, as plain data. Pure, and the slow part: it fits and cross-validates the models."""
    models = fit_models(history, space, goals, method=method, seed=seed)
    said = diagnose(history, space, goals, method=method, seed=seed, models=models)
    best = _best(history, goals, space) if best is None else best
    front = front_data(history, goals)
    shown = [t for t, on in zip(_feasible(history, goals), front["front"], strict=True) if on] if front else [best]
    return {
        "name": name,
        "counts": {
            "complete": len(history.complete),
            "failed": said.failed,
            "infeasible": said.infeasible,
            "pending": len(history.pending),
            "budget": history.budget,
        },
        "goals": [f"{type(g).__name__} {g.outcome}" + _bound(g) for g in goals.goals],
        "method": said.method,
        "D": len(space),
        "dim": said.dim,
        "best": None if best is None else _trial(best),
        "verdicts": [vars(v) for v in said.verdicts],
        "numbers": _numbers(said),
        "convergence": convergence_data(history, goals, space),
        "fits": [fit_data(f) for f in said.fits],
        "contours": _contours(models, goals, best),
        "importance": [vars(s) for s in said.importance[:TOP]],
        "constraints": constraints_data(history, goals),
        "front": front,
        "parameters": [] if best is None else parameters_data(best, space, said.importance),
        "points": [_trial(t) for t in shown[:50] if t is not None] if front else [],
        "trials": [
            [t.number, t.state.value, {k: v.mean for k, v in t.outcomes.items()}, (t.reason or "")[:200]]
            for t in history
        ],
    }


def render(data: Mapping[str, Any], *, where: str = "study.toml", written: str | None = None) -> str:
    """The data as one self-contained HTML page."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise MissingPartError('A report needs plotly. Install it: pip install "alebo[plot]".') from None
    template = (files("alebo") / "data" / "report.html").read_text(encoding="utf-8")
    stamp = written or datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    text = json.dumps(_finite({**data, "where": where, "written": stamp}), allow_nan=False).replace("</", "<\\/")
    page = template.replace("@TITLE@", html.escape(f"{data['name']}: alebo report")).replace("@DATA@", text)
    return page.replace("@PLOTLY@", get_plotlyjs().replace("</script", "<\\/script"))


def write_report(
    path: str | Path,
    history: History,
    space: Space,
    goals: Goals,
    *,
    method: Method | None = None,
    seed: int = 0,
    name: str = "study",
    where: str = "study.toml",
    best: Trial | None = None,
) -> dict[str, Any]:
    """Write the report of a history to `path`, and return the data in it."""
    if not history.complete:
        raise StateError(
            f"A report needs one completed trial; of {len(history)} none is. Run the study first: alebo run {where}"
        )
    data = report_data(history, space, goals, method=method, seed=seed, name=name, best=best)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(render(data, where=where), encoding="utf-8")
    return data


def _feasible(history: History, goals: Goals) -> list[Trial]:
    return [t for t in history.complete if goals.feasible(t.outcomes)]


def _best(history: History, goals: Goals, space: Space) -> Trial | None:
    good = [t for t in _feasible(history, goals) if space.at_target(t.params)]
    return min(good, key=lambda t: float(goals.objective_values(t.outcomes)[0])) if good else None


def _contours(models: Fitted | None, goals: Goals, best: Trial | None) -> dict[str, Any] | None:
    if models is None or not models.models:
        return None
    outcome = goals.objectives[0].outcome
    if outcome not in models.models:
        return None
    seen = models
    numbers = [t.number for t in seen.trials]
    if best is not None and best.number in numbers:
        at = numbers.index(best.number)
    else:
        at = int(np.argmin([goals.objective_values(t.outcomes)[0] for t in seen.trials]))
    return contour_data(models, outcome, seen.P[at])


def _numbers(d: Diagnosis) -> list[list[str]]:
    """The figures of the diagnosis in words, for a table."""
    rows: list[list[str]] = []
    for f in d.fits:
        rows.append([f"variation of {f.outcome} explained (cross-validated R²)", f"{f.r2:.2f}"])
        rows.append([f"values of {f.outcome} inside their 95 % interval", f"{f.coverage:.0%}"])
    if d.rank is not None:
        rows.append(
            [
                "effective rank of Gamma",
                f"{d.rank:.1f} of {d.dim} (90 % between {d.rank_low:.1f} and {d.rank_high:.1f})",
            ]
        )
    if d.boundary_share is not None:
        rows.append(["later proposals on a face of the polytope", f"{d.boundary_share:.0%}"])
    if d.containment is not None:
        rows.append(
            [
                f"chance that such an embedding contains an optimum, if {d.directions} parameters matter",
                f"{d.containment:.0%}",
            ]
        )
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


def _bound(goal: Any) -> str:
    return f" {goal.bound:g}" if hasattr(goal, "bound") else ""


def _finite(value: Any) -> Any:
    """JSON knows no NaN: what is not finite becomes null; what is no plain data becomes text."""
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str | int | bool) or value is None else str(value)
