"""Which parameters does a sparse model of all parameters need?

The model is a Gaussian process over the whole cube under a prior that most parameters do not matter (SAAS, at its most
probable lengthscales). A parameter is certain when two things hold:

- It helps to predict trials that the model has not seen. Models fitted without a fifth of the trials predict those; with the
  parameter's values exchanged among trials they must predict worse (signed-rank test, 5 % for all parameters together).
- No other parameter can stand in for it. Fitted again without its columns and free to use all others, the model makes the
  data less probable by e^6 times the number of parameters or more. So two parameters that always move together are both
  uncertain, however large their shares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._seeds import generator
from ..goals import Goals
from ..history import History, Trial
from ..space import Space
from .importance import CERTAIN, Importance
from .models import is_constant

if TYPE_CHECKING:
    from ..models.ard import ARDGP

Array: TypeAlias = NDArray[np.float64]

LEAST_TRIALS = 15  # completed trials below which no sparse model is fitted
MOST_TRIALS = 250  # completed trials that it is fitted to: the best quarter, and others spread over the run
EVIDENCE = 6.0  # log odds, beyond the logarithm of the number of parameters, from which a parameter is certain
FOLDS = 5  # parts of the trials that are left out and predicted in turn
EXCHANGES = 4  # draws of a parameter's values from other trials
CANDIDATES = 12  # parameters with the largest shares that are tried to be left out
WIDE = 200  # columns up to which all are free to stand in for the one left out; beyond, those most like it
SHRINKAGES = {False: (1.0, 0.1, 0.01, 0.001), True: (0.1, 0.01)}  # by whether there are more than WIDE columns


@dataclass(frozen=True, eq=False)
class SparseModel:
    """A sparse model of one outcome over the whole cube, and what it says about each parameter."""

    gp: ARDGP  # of points of the unit cube
    trials: tuple[Trial, ...]
    r2: float  # leave-one-out, the kernel kept
    log_density: float  # mean leave-one-out log density, in standardised units
    importance: tuple[Importance, ...]  # the largest first

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the noiseless outcome, in the user's units, at points of the cube.  k x D -> k, k"""
        import torch

        mean, variance = self.gp.posterior(torch.from_numpy(np.ascontiguousarray(0.5 * (X + 1.0))))
        return mean.detach().numpy(), variance.detach().numpy()


def sparse_model(history: History, space: Space, goals: Goals, *, outcome: str | None = None) -> SparseModel | None:
    """Fit the sparse model to the completed trials; None where there are too few, or the outcome never changes.

    Args:
        history: All trials of the run, by whatever method.
        space: Its parameters.
        goals: Its goals.
        outcome: Which outcome to model; None: the first objective.
    """
    from ..models.outcomes import reported_variances, tamed

    outcome = goals.objectives[0].outcome if outcome is None else outcome
    trials = _chosen(history.complete, goals)
    values = np.array([t.outcomes[outcome].mean for t in trials])
    if len(trials) < LEAST_TRIALS or is_constant(values):
        return None
    values = tamed(values)
    X = 0.5 * (space.snap(np.stack([t.x for t in trials])) + 1.0)
    variances = reported_variances([t.outcomes[outcome].sem for t in trials])
    gp, shrinkage = _fit(X, values, variances)
    left_out = gp.leave_one_out()[0].numpy()
    r2 = 1.0 - float(np.mean((left_out - values) ** 2)) / float(np.var(values))
    columns = space.coordinates()
    by_column = _slope_shares(gp)
    shares = {name: float(by_column[at].sum()) for name, at in columns.items()}
    ranked = sorted(columns, key=lambda name: -shares[name])
    tried = [n for n in ranked[:CANDIDATES] if shares[n] > 0.1 / len(columns)]
    chance = _held_out(X, values, variances, shrinkage, [columns[n] for n in tried])
    needed = EVIDENCE + math.log(len(columns))
    certain = {
        n
        for n, p in zip(tried, chance, strict=True)
        if p < CERTAIN / len(columns)
        and gp.log_density - _without(gp, values, variances, columns[n], shrinkage) > needed
    }
    importance = tuple(Importance(n, shares[n], None, None, n in certain) for n in ranked)
    return SparseModel(gp, trials, r2, gp.loo_log_density() / len(values), importance)


def _chosen(complete: Sequence[Trial], goals: Goals) -> tuple[Trial, ...]:
    if len(complete) <= MOST_TRIALS:
        return tuple(complete)
    ranked = sorted(complete, key=lambda t: float(goals.objective_values(t.outcomes)[0]))
    best = {t.number for t in ranked[: MOST_TRIALS // 4]}
    others = [t.number for t in complete if t.number not in best]
    spread = {others[i] for i in np.linspace(0, len(others) - 1, MOST_TRIALS - len(best)).astype(int)}
    return tuple(t for t in complete if t.number in best | spread)


def _fit(X: Array, values: Array, variances: Array | None) -> tuple[ARDGP, float]:
    """The most probable process for each shrinkage of a grid; of these the one that predicts left-out points best."""
    from ..models.ard_fit import fit_ard
    from ..models.priors import sparse

    wide = X.shape[1] > WIDE
    fits = [
        (fit_ard(X, values, sparse(t), variances=variances, iterations=50 if wide else 100), t)
        for t in SHRINKAGES[wide]
    ]
    return max(fits, key=lambda pair: pair[0].loo_log_density())


def _slope_shares(gp: ARDGP) -> Array:
    """The share of each column in the mean squared slope, at the data and at random points.  -> D"""
    import torch

    extra = generator(0, "slopes").uniform(0.0, 1.0, (200, gp.dim))
    W = torch.from_numpy(np.concatenate([gp.X, extra]))
    ones = torch.ones(1, len(W), dtype=torch.double)
    G = gp.marginals(W).back(ones, torch.zeros_like(ones)).numpy()
    size: Array = (G**2).mean(axis=0)
    total = float(size.sum())
    return size / total if total > 0 else np.full(gp.dim, 1.0 / gp.dim)


def _held_out(
    X: Array, values: Array, variances: Array | None, shrinkage: float, tried: Sequence[slice]
) -> list[float]:
    """How probable it is by chance that each of these columns helps so much to predict left-out trials.  -> one each"""
    import torch
    from scipy.stats import wilcoxon

    from ..models.ard_fit import fit_ard
    from ..models.priors import sparse

    rng = generator(0, "held out")
    order = rng.permutation(len(X))
    gain = np.zeros((len(tried), len(X)))
    for k in range(FOLDS):
        out = order[k::FOLDS]
        kept = np.setdiff1d(order, out)
        known = None if variances is None else variances[kept]
        steps = 50 if X.shape[1] > WIDE else 100
        gp = fit_ard(X[kept], values[kept], sparse(shrinkage), variances=known, iterations=steps)

        def error(P: Array, gp: ARDGP = gp, truth: Array = values[out]) -> Array:
            mean: Array = gp.posterior(torch.from_numpy(P))[0].detach().numpy()
            return np.abs(mean - truth)

        right = error(X[out])
        for i, at in enumerate(tried):
            for _ in range(EXCHANGES):
                other = X[out].copy()
                other[:, at] = X[rng.choice(kept, len(out))][:, at]
                gain[i, out] += error(other) - right
    return [float(wilcoxon(g, alternative="greater").pvalue) if np.any(g) else 1.0 for g in gain]


def _without(gp: ARDGP, values: Array, variances: Array | None, columns: slice, shrinkage: float) -> float:
    """The log posterior density that a fit reaches without these columns."""
    from ..models.ard_fit import fit_ard
    from ..models.priors import sparse

    kept = np.delete(np.arange(gp.dim), columns)
    if len(kept) > WIDE:
        centred = gp.X - gp.X.mean(axis=0)
        norm = np.maximum(np.linalg.norm(centred, axis=0), 1e-12)
        alike = np.abs((centred / norm).T @ (centred[:, columns] / norm[columns])).max(axis=1)
        used = -np.log(gp.lengthscales)  # short lengthscales first, then the columns most like those left out
        order = np.concatenate([kept[np.argsort(-used[kept])][: WIDE // 2], kept[np.argsort(-alike[kept])]])
        kept = np.sort(order[np.sort(np.unique(order, return_index=True)[1])][:WIDE])
    log_l = np.log(gp.lengthscales[kept])
    head = [math.log(gp.variance), math.log(float(np.median(gp.noises))), float(np.median(log_l))]
    warm = head + [float(v) for i in np.argsort(log_l)[:40] for v in (i, log_l[i])]
    found = fit_ard(
        gp.X[:, kept],
        values,
        sparse(shrinkage),
        variances=variances,
        warm=warm,
        warm_iterations=60,
        cold=True,
        iterations=60,
    )
    return found.log_density
