"""Fitting the full-space GP: L-BFGS-B on the log posterior density, from the prior's starts or from where the last fit ended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from .._errors import damaged_note
from .._seeds import generator
from .ard import ARDGP
from .ard_density import LogDensity
from .outcomes import Standardisation, thinned
from .priors import NOISE_FLOOR, ARDPrior
from .subsets import from_subsets
from .surrogate import Mixture

Array: TypeAlias = NDArray[np.float64]

COLD_ITERATIONS = 100  # of L-BFGS-B from each of the prior's starts
CHEAP = 30_000  # observations times dimensions up to which further starts of a fit cost little
ALWAYS = 60  # observations up to which every sparse fit searches for a better subset of coordinates, beyond every third
ROUNDS = 6  # of that search
MANY = 150  # observations beyond which that search, and a fit from nothing, is made with so many of them
WARM_ITERATIONS = 20  # from where the last fit ended


def fit_ard(
    X: Array | Tensor,
    values: Array | Tensor,
    prior: ARDPrior,
    *,
    variances: Array | Tensor | None = None,
    warm: Sequence[float] = (),
    iterations: int = COLD_ITERATIONS,
    warm_iterations: int = WARM_ITERATIONS,
    cold: bool | None = None,
    seed: int = 0,
) -> ARDGP:
    """The process of highest posterior density.

    Args:
        X: n x D points, in the units of the prior's lengthscales.
        values: n outcomes in any unit; they are standardised here.
        prior: what is assumed before the data.
        variances: n noise variances, in squared units of the outcomes; None: the noise is inferred.
        warm: the `memory` of a fit of fewer data; a few iterations from there replace the prior's own starts.
        iterations: of L-BFGS-B from each of the prior's starts.
        warm_iterations: of L-BFGS-B from `warm`.
        cold: whether the prior's starts are tried beside `warm`; None: by the number of data (`refreshes`).
        seed: of the prior's random restarts.

    Returns:
        The fitted process.
    """
    X, values = np.asarray(X, dtype=float), np.asarray(values, dtype=float).reshape(-1)
    units = Standardisation.of(values)
    v = units(values)
    known = units.variances(None if variances is None else np.asarray(variances, dtype=float))
    target = LogDensity(X, v, prior, None if known is None else np.maximum(known, NOISE_FLOOR))
    if target.n > MANY and not len(warm):
        warm, cold = _of_fewer(X, v, prior, known, seed), False
    starts: list[tuple[Array, int]] = []
    if len(warm):
        starts.append((_remembered(target, warm), warm_iterations))
    often = not (prior.subsets and target.n > MANY) and refreshes(target.n, target.D, prior)
    if not len(warm) or (often if cold is None else cold):
        starts += [(theta, iterations) for theta in _cold_starts(target, seed)]
    found = [_climb(target, theta, count) for theta, count in starts]
    if prior.subsets:
        found += _by_subsets(target, [theta for _, theta in found], bool(len(warm)))
    value, theta = min(found, key=lambda end: end[0])
    D = target.D
    return ARDGP.of(
        X,
        v,
        prior.kernel,
        np.exp(theta[:D]),
        math.exp(theta[D]),
        target.noises(theta),
        shift=units.shift,
        scale=units.scale,
        known_noise=known is not None,
        log_density=-value,
    )


def fit_each(
    X: Array | Tensor,
    values: Array | Tensor,
    priors: Sequence[ARDPrior],
    *,
    variances: Array | Tensor | None = None,
    warm: Sequence[Sequence[float]] = (),
    seed: int = 0,
) -> list[ARDGP]:
    """One fit for each prior; `warm` holds as many memories, or none (see `fit_ard`)."""
    memories = warm if len(warm) == len(priors) else [()] * len(priors)
    if not all(isinstance(m, Sequence) for m in memories):
        raise damaged_note(f"where {len(priors)} fits ended: as many lists of numbers")
    return [
        fit_ard(X, values, prior, variances=variances, warm=memory, seed=seed)
        for prior, memory in zip(priors, memories, strict=True)
    ]


def fit_best(X: Array | Tensor, values: Array | Tensor, priors: Sequence[ARDPrior], **options: Any) -> ARDGP:
    """Of one fit for each prior the one with the largest leave-one-out density; it remembers all (see `fit_each`)."""
    fits = fit_each(X, values, priors, **options)
    return replace(max(fits, key=ARDGP.loo_log_density), candidates=tuple(tuple(gp._memory()) for gp in fits))


def fit_mixture(X: Array | Tensor, values: Array | Tensor, priors: Sequence[ARDPrior], **options: Any) -> Mixture:
    """The mixture of one fit for each prior: acquisition functions average over them (see `fit_each`)."""
    return Mixture(tuple(fit_each(X, values, priors, **options)))


def refreshes(n: int, D: int, prior: ARDPrior) -> bool:
    """Whether a fit of n observations tries the prior's own starts beside its warm one.

    Each time n has become a quarter more. A rugged density needs it more often: always where that is cheap, else every
    fourth time (measured on Branin in 100 dimensions: a warm start alone ended up to 30 nats below a cold one).
    """
    if prior.rugged and (n * D <= CHEAP or n % 4 == 0):
        return True
    return n < 5 or int(4.0 * math.log(n)) > int(4.0 * math.log(n - 1))


def _fewer(v: Array) -> NDArray[np.int64]:
    """`MANY` of the observations: the best, and some of all others.  n -> MANY"""
    return np.sort(thinned(np.argsort(-v, kind="stable"), MANY))


def _of_fewer(X: Array, v: Array, prior: ARDPrior, known: Array | None, seed: int) -> Sequence[float]:
    """The memory of a fit to fewer observations: a short way to the fit of all of them."""
    few = _fewer(v)
    return fit_ard(X[few], v[few], prior, variances=None if known is None else known[few], seed=seed)._memory()


def _by_subsets(target: LogDensity, ends: Sequence[Array], warm: bool) -> list[tuple[float, Array]]:
    """Where climbs from the best subset of coordinates end.

    Every fit of few observations searches, one of more every third time, one of very many every ninth time among fewer.
    """
    n = target.n
    every = 1 if n <= ALWAYS else 3 if n <= MANY else 9
    if warm and n % every:
        return []
    fresh = not warm or n % (2 if n <= ALWAYS else 9) == 0
    searched = target
    if n > MANY:
        few = _fewer(target.v)
        searched = LogDensity(
            target.X[few], target.v[few], target.prior, None if target.known is None else target.known[few]
        )
    better = from_subsets(searched, ends, rounds=ROUNDS if fresh else 2, fresh=fresh)
    return [_climb(target, theta, COLD_ITERATIONS if n <= MANY else WARM_ITERATIONS) for theta in better]


def _cold_starts(target: LogDensity, seed: int) -> list[Array]:
    prior, rng = target.prior, generator(seed, "fit")
    noise = math.log(prior.start_noise)
    starts = [target.start(math.log(l), 0.0, noise) for l in prior.starts]
    for _ in range(prior.restarts):
        log_l = math.log(prior.starts[0]) + 1.2 * rng.standard_normal(target.D)
        starts.append(target.start(log_l, 0.0, noise - 2.0))
    return starts


def _remembered(target: LogDensity, memory: Sequence[float]) -> Array:
    """The parameters that a memory holds."""
    log_l = remembered_lengthscales(memory, target.D)
    return target.start(log_l, memory[0], memory[1])


def remembered_lengthscales(memory: Sequence[float], D: int) -> Array:
    """The logarithms of the lengthscales that a memory holds (see `ARDGP.memory`).  -> D"""
    numbers = all(isinstance(v, int | float) for v in memory)
    if not numbers or len(memory) < 3 or len(memory) % 2 == 0 or any(v < 0 or v != int(v) for v in memory[3::2]):
        raise damaged_note("where a fit ended: three numbers, then pairs of a coordinate and a number")
    log_l = np.full(D, float(memory[2]))
    where = np.asarray(memory[3::2], dtype=int)
    inside = where < D
    log_l[where[inside]] = np.asarray(memory[4::2], dtype=float)[inside]
    return log_l


def _climb(target: LogDensity, theta: Array, iterations: int) -> tuple[float, Array]:
    found = minimize(
        target,
        theta,
        jac=True,
        method="L-BFGS-B",
        bounds=target.bounds,
        options={"maxiter": iterations, "maxfun": 2 * iterations},
    )
    return float(found.fun), np.asarray(found.x)
