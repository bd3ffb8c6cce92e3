"""Which of several models to listen to: those that foresaw best what then came about.

Each proposal notes what every model of its arm expects there, before the outcome is known. How well a model fits the data it
was fitted to says little in many dimensions: a sparse model explains a dozen outcomes by any three parameters. What it
foresaw cannot be fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from ..models import Mixture
from ._outcomes import OutcomeModels
from ._view import View

Array: TypeAlias = NDArray[np.float64]

FIRST = "objective 0"
FORESEEN = "foreseen"  # the key of a note: for each outcome, mean and standard deviation by each model, in its units
MEMORY = 0.85  # by this factor a prediction counts less after every further one
WORST = 3.0  # nats that one prediction can cost at most
AHEAD = 10.0  # nats by which models that know an earlier study begin before the others: the first proposals are theirs
DOUBT = 3.0  # nats behind the best beyond which a model is not listened to
DOUBT_OF_SOURCES = 1.0  # the same of a model that knows an earlier study: where it is uncertain, it promises much
SHARPEST = 1e-3  # least standard deviation of a prediction, of standardised outcomes: finer differences decide nothing


def foreseen(model: OutcomeModels, u: Array) -> dict[str, list[list[float]]]:
    """What each model of every outcome expects to measure at a point, for a note.  D -> by outcome, (mean, sd) of each"""
    return {name: expectation(mixture, u) for name, mixture in model.models.items()}


def expectation(mixture: Mixture, u: Array) -> list[list[float]]:
    """What each of several models expects to measure at a point, for a note.  D -> (mean, sd) of each"""
    at, out = torch.from_numpy(u[None]), []
    for part in mixture.models:
        mean, variance = part.marginals(at).matched()
        sd = (float(variance) + float(part.noise.median())) ** 0.5
        out.append([_short(mixture.shift + mixture.scale * float(mean)), _short(mixture.scale * sd)])
    return out


def scores(model: OutcomeModels, view: View, handicaps: Sequence[float], outcome: str = FIRST) -> Array:
    """How well each model of an outcome foresaw, in nats behind the best; recent trials count most.

    `handicaps` is where each begins (see `start`). The predictions of all arms that average as many models are taken together.
    """
    mixture = model.models[outcome]
    out = -start(mixture, handicaps)
    values = (mixture.shift + mixture.scale * mixture.v).numpy()
    for trial, value in zip(view.trials, values, strict=True):
        log = log_densities(trial.note.get(FORESEEN), outcome, float(value), mixture.scale)
        if log is None or len(log) != len(out):
            continue
        out = MEMORY * out + np.maximum(log - log.max(), -WORST)
    ahead: Array = out - out.max()
    return ahead


def start(mixture: Mixture, handicaps: Sequence[float]) -> Array:
    """Nats by which each model begins behind. Models beyond the handicaps know an earlier study, and begin ahead."""
    extra = len(mixture.models) - len(handicaps)
    return np.array([h + AHEAD for h in handicaps] + [0.0] * extra if extra else handicaps, dtype=float)


def log_densities(note: Any, outcome: str, value: float, scale: float) -> Array | None:
    """The log density that each model of a note gave to what came, in units of `scale`, up to a constant.

    None where the note has none of this outcome.
    """
    if isinstance(note, list) and outcome == FIRST:  # earlier studies noted the first objective alone
        note = {FIRST: note}
    try:
        mean, sd = np.array(note[outcome], dtype=float).reshape(-1, 2).T
    except (TypeError, ValueError, KeyError, IndexError):
        return None
    if not (np.isfinite(mean).all() and np.isfinite(sd).all() and (sd >= 0.0).all()):
        return None
    off = (value - mean) / scale
    sd = np.hypot(sd / scale, SHARPEST)
    found: Array = np.maximum(-0.5 * np.square(np.clip(off / sd, -1e6, 1e6)) - np.log(sd), -1e12)
    return found


def trusted(model: OutcomeModels, view: View, handicaps: Sequence[float]) -> OutcomeModels:
    """The same with those models of each outcome alone that foresaw nearly as well as the best (see `scores`)."""
    if len(model.objectives[0].models) == 1:
        return model
    kept = {}
    for name, mixture in model.models.items():
        most = [DOUBT] * len(handicaps) + [DOUBT_OF_SOURCES] * (len(mixture.models) - len(handicaps))
        found = zip(mixture.models, scores(model, view, handicaps, name), most, strict=True)
        kept[name] = Mixture(tuple(m for m, behind, doubt in found if behind > -doubt))
    return replace(
        model,
        objectives=tuple(kept[f"objective {i}"] for i in range(len(model.objectives))),
        constraints=tuple(kept[f"constraint {i}"] for i in range(len(model.constraints))),
        cost=kept.get("cost"),
    )


def _short(value: float) -> float:
    return float(f"{value:.6g}")
