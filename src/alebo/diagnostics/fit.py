"""Does the model predict points that it has not seen?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._seeds import generator
from ..goals import Goals
from ..history import History
from ..methods import Method
from ..methods._fitted import Fitted
from ..space import Space
from .models import fit_models, is_constant, without

Array: TypeAlias = NDArray[np.float64]
REFITS = 200  # trials above which the kernel is kept and left-out points are predicted by formula


@dataclass(frozen=True, eq=False)
class Fit:
    """How well the model of one outcome predicts measurements that it has not seen."""

    outcome: str
    observed: Array  # n
    predicted: Array  # n, each from a model without that point
    sd: Array  # n, of the prediction, measurement noise included
    r2: float  # share of the variation explained; can be negative
    coverage: float  # share of observations inside their central 95 % interval
    noise_share: float  # variance of the fitted noise against all variation
    log_density: float = math.nan  # mean log predictive density of the observations, in standardised units


def cross_validate(
    history: History,
    space: Space,
    goals: Goals,
    fitted: Fitted,
    *,
    method: Method | None = None,
    seed: int = 0,
    folds: int = 10,
) -> tuple[Fit, ...]:
    """Predict every trial by the method's model without it, for each outcome that the model has and that varies.

    Up to 20 trials are left out one at a time, up to 60 in `folds` parts, beyond that in half as many; the model is fitted
    from nothing each time. Above 200 trials, and for models that are slow to fit, the kernel is kept and points are left
    out by formula: with so many data, one point hardly changes the kernel. There, a model is judged on what it was fitted to:
    some methods compress poor outcomes.
    """
    outcomes = [o for o in fitted.models if not is_constant(fitted.values(o))]
    if not outcomes:
        return ()
    n = len(fitted.trials)
    if n > REFITS or not fitted.refits:
        models = [(o, fitted.models[o]) for o in outcomes]
        return tuple(judge(o, m.targets, *m.leave_one_out(), m.noise) for o, m in models)
    parts = n if n <= 20 else folds if n <= 60 else max(3, folds // 2)
    order = generator(seed, "folds").permutation(n)
    X = np.stack([t.x for t in fitted.trials])  # n x D; a model fitted without some trials may have other coordinates
    predicted, variance, noise = (np.zeros((len(outcomes), n)) for _ in range(3))
    for i in range(parts):
        out = order[i::parts]
        rest = without(history, [fitted.trials[j].number for j in out])
        model = fit_models(rest, space, goals, method=method, seed=seed, fresh=True)
        for k, o in enumerate(outcomes):
            if model is None or o not in model.models:  # too little is left, or all that is left is equal
                kept = np.delete(fitted.values(o), out)
                predicted[k, out], variance[k, out] = kept.mean(), kept.var()
                continue
            predicted[k, out], variance[k, out] = model.models[o].predict(model.see(X[out]))
            noise[k, out] = model.models[o].noise
    return tuple(
        judge(
            o,
            fitted.values(o),
            predicted[k],
            np.sqrt(variance[k] + _noise(fitted, o, noise[k])),
            float(noise[k].mean()),
        )
        for k, o in enumerate(outcomes)
    )


def _noise(fitted: Fitted, outcome: str, inferred: Array) -> Array:
    """Variances of the measurements: reported ones where there are any, else what the model infers.  n -> n"""
    from ..models.outcomes import reported_variances

    reported = reported_variances([t.outcomes[outcome].sem for t in fitted.trials])
    return inferred if reported is None else reported


def judge(outcome: str, observed: Array, predicted: Array, sd: Array, noise: float) -> Fit:
    """The scores of predictions with these standard deviations.  n, n, n"""
    total = float(np.var(observed))
    sd = np.maximum(sd, 1e-9 * math.sqrt(total) if total > 0 else 1e-12)
    off = observed - predicted
    r2 = 1.0 - float(np.mean(off**2)) / total if total > 0 else math.nan
    coverage = float(np.mean(np.abs(off) <= 1.959964 * sd))
    unit = math.sqrt(total) if total > 0 else 1.0
    density = float(np.mean(-0.5 * (off / sd) ** 2 - np.log(sd / unit)) - 0.5 * math.log(2 * math.pi))
    return Fit(outcome, observed, predicted, sd, r2, coverage, noise / total if total > 0 else 0.0, density)
