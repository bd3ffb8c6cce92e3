"""The full-space Gaussian process: one lengthscale per coordinate, fitted under a prior that is data.

One implementation serves plain BO, SAAS-MAP, TuRBO, BAxUS, REMBO, HeSBO and LineBO; they differ in their `ARDPrior`.

Model, for standardised outcomes v at points X (n x D):
    v ~ N(c, s k(|(x - x') / l|) + diag(noise)),   k squared exponential or Matern-5/2.
The constant mean c is profiled out (its best value is linear algebra). An evaluation of the log posterior density of
(log l, log s, log noise) and its gradient costs one inverse and two n x n x D products of matrices, no n x n x D array.
In NumPy: at these sizes Torch spends more time on its calls than on the sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from .._errors import InputError
from .._seeds import generator
from ._algebra import LOG_2PI, invert, kernel_of, safe_cholesky, squared_distances
from .outcomes import Standardisation
from .priors import NOISE_FLOOR, ARDPrior, Kernel
from .surrogate import Marginals, Mixture

Array: TypeAlias = NDArray[np.float64]

COLD_ITERATIONS = 100  # of L-BFGS-B from each of the prior's starts
WARM_ITERATIONS = 20  # from where the last fit ended
DRAWS = 8  # joint draws that stand for the uncertainty of measured outcomes
KEPT = 64  # lengthscales that the memory holds at most, those farthest from the typical one
DIGITS = 3  # of a remembered logarithm
NEAR = 0.05  # a log lengthscale this near to the typical one is not worth remembering


@dataclass(frozen=True, eq=False)
class ARDGP:
    """A fitted process, frozen. Outcomes are standardised inside; `posterior` answers in the user's units."""

    X: Array  # n x D
    targets: Array  # n standardised outcomes, or p x n draws of them
    kernel: Kernel
    lengthscales: Array  # D
    variance: float  # of the signal, standardised
    noises: Array  # n, variances, standardised
    mean: float  # standardised
    shift: float = 0.0  # outcome = shift + scale * v
    scale: float = 1.0
    known_noise: bool = False
    log_density: float = math.nan  # log posterior density at the fit
    candidates: tuple[tuple[float, ...], ...] = ()  # memories of the fits it was chosen among

    @classmethod
    def of(
        cls,
        X: Array,
        targets: Array,
        kernel: Kernel,
        lengthscales: Array,
        variance: float,
        noises: Array,
        *,
        mean: float | None = None,
        **rest: Any,
    ) -> ARDGP:
        """The process with these parameters; the constant mean, where it is not given, at its most likely value."""
        made = cls(X, targets, kernel, lengthscales, variance, noises, 0.0 if mean is None else mean, **rest)
        if mean is not None:
            return made
        ones, target = made._root_inverse.sum(1), made._root_inverse @ targets
        return replace(made, mean=float(ones @ target / (ones @ ones)))

    @property
    def dim(self) -> int:
        return int(self.X.shape[1])

    @property
    def points(self) -> Tensor:
        """The training points.  -> n x D"""
        return torch.from_numpy(self.X)

    @property
    def v(self) -> Tensor:
        """The standardised outcomes.  -> n, or p x n draws"""
        return torch.from_numpy(self.targets)

    @property
    def noise(self) -> Tensor:
        """The noise variance of every standardised outcome.  -> n"""
        return torch.from_numpy(self.noises)

    @cached_property
    def _scaled(self) -> tuple[Array, Array]:
        """Where the points' centre lies, and the points from there in units of lengthscales.  -> D, n x D"""
        centre = self.X.mean(0)
        return centre, (self.X - centre) / self.lengthscales

    @cached_property
    def _root_inverse(self) -> Array:
        """The inverse of the Cholesky factor of the covariance of the data.  -> n x n"""
        _, U = self._scaled
        K = self.variance * kernel_of(squared_distances(U), self.kernel)[0]
        K.ravel()[:: len(K) + 1] += self.noises
        L = safe_cholesky(torch.from_numpy(K))
        inverse: Array = torch.linalg.solve_triangular(L, torch.eye(len(K), dtype=L.dtype), upper=False).numpy()
        return inverse

    @cached_property
    def _weights(self) -> Array:
        """K^-1 (v - c).  -> p x n"""
        off = np.atleast_2d(self.targets) - self.mean
        weights: Array = (off @ self._root_inverse.T) @ self._root_inverse
        return weights

    def marginals(self, W: Tensor) -> Marginals:
        """Mean and variance at single points, standardised, with their vector-Jacobian product.  k x D -> p x k, p x k"""
        centre, U = self._scaled
        Z = (W.detach().numpy() - centre) / self.lengthscales
        k, slope = kernel_of(squared_distances(Z, U), self.kernel)
        k *= self.variance
        V = k @ self._root_inverse.T
        left = self.variance - np.einsum("ij,ij->i", V, V)

        def back(by_mean: Tensor, by_variance: Tensor) -> Tensor:
            pull = by_mean.numpy().T @ self._weights
            by_left = np.where(left > 1e-12, by_variance.numpy().sum(0), 0.0)
            pull -= ((2.0 * by_left)[:, None] * V) @ self._root_inverse
            pull *= 2.0 * self.variance * slope  # derivative by r2, times the 2 of its own derivative
            moved: Array = (pull.sum(1)[:, None] * Z - pull @ U) / self.lengthscales
            return torch.from_numpy(moved)

        mean = torch.from_numpy(self.mean + self._weights @ k.T)
        return Marginals(mean, torch.from_numpy(np.maximum(left, 1e-12)).expand(len(mean), -1), back)

    def posterior(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the noiseless outcome, in the user's units; differentiable by Torch.  k x D -> k, k"""
        mean, variance = _Moments.apply(X, self)  # type: ignore[no-untyped-call]
        return self.shift + self.scale * mean, self.scale**2 * variance

    def covariance(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Joint mean and covariance of the noiseless outcome, standardised.  k x D -> k, k x k"""
        centre, U = self._scaled
        Z = (X.detach().numpy() - centre) / self.lengthscales
        k = self.variance * kernel_of(squared_distances(Z, U), self.kernel)[0]
        V = k @ self._root_inverse.T
        joint = self.variance * kernel_of(squared_distances(Z), self.kernel)[0] - V @ V.T
        return torch.from_numpy(self.mean + k @ self._weights[0]), torch.from_numpy(joint)

    def gradient(self, x: Array) -> tuple[Array, Array]:
        """Mean and covariance of the gradient at a point, standardised; squared exponential kernel only.  D -> D, D x D"""
        if self.kernel != "rbf":
            raise InputError(f"The gradient's distribution is for the kernel 'rbf'; got {self.kernel!r}.")
        centre, U = self._scaled
        z = (x - centre) / self.lengthscales
        k = self.variance * kernel_of(squared_distances(z[None], U), self.kernel)[0][0]
        G = k[:, None] * (U - z) / self.lengthscales  # n x D: d k(x, X) / dx
        V = self._root_inverse @ G
        return self._weights[0] @ G, np.diag(self.variance / self.lengthscales**2) - V.T @ V

    def draws(self, X: Tensor, count: int, seed: int) -> Tensor:
        """Joint draws of the noiseless outcome, in the user's units.  k x D -> count x k"""
        mean, covariance = self.covariance(X)
        covariance.diagonal().add_(1e-8 * self.variance + 1e-12)
        white = torch.from_numpy(generator(seed, "sample").standard_normal((len(X), count)))
        return self.shift + self.scale * (mean + (safe_cholesky(covariance) @ white).T)

    def draw(self, points: Tensor, rng: np.random.Generator) -> ARDGP:
        """The process conditioned on each of `DRAWS` joint draws of its noiseless outcome at the points.  k x D"""
        mean, covariance = self.covariance(points)
        covariance.diagonal().add_(1e-7)
        white = torch.from_numpy(rng.standard_normal((len(points), DRAWS)))
        v = (mean + (safe_cholesky(covariance) @ white).T).numpy()
        jitter = np.full(len(points), 1e-6 * max(1e-3 * self.variance, 1.0))
        return replace(self, X=points.numpy(), targets=v, noises=jitter, log_density=math.nan)

    def conditioned(self, X: Tensor, v: Tensor) -> ARDGP:
        """The same process with noiseless observations `v`, standardised, at `X`.  k x D, k"""
        return replace(
            self,
            X=np.concatenate([self.X, X.detach().numpy()]),
            targets=np.concatenate([self.targets, v.detach().numpy()]),
            noises=np.concatenate([self.noises, np.full(len(X), NOISE_FLOOR)]),
        )

    def believing(self, points: Tensor) -> ARDGP:
        """The process as if these points had been measured and found at its mean: for pending points.  k x D"""
        return self.conditioned(points, self.marginals(points).mean[0])

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation at each point as predicted from the others, in the user's units.  -> n, n"""
        precision = np.square(self._root_inverse).sum(0)
        mean = self.targets - self._weights[0] / precision
        return (
            torch.from_numpy(self.shift + self.scale * mean),
            torch.from_numpy(self.scale / np.sqrt(precision)),
        )

    def loo_log_density(self) -> float:
        """The summed log density of each standardised observation given all others (Rasmussen and Williams, eq. 5.10)."""
        precision = np.square(self._root_inverse).sum(0)
        return float(0.5 * (np.log(precision) - self._weights[0] ** 2 / precision - LOG_2PI).sum())

    @property
    def memory(self) -> Sequence[Any]:
        """Where the next fit may start: log s, log noise, the typical log lengthscale, then index and value of others.

        Few numbers at any D: only the lengthscales farthest from the typical one, and at most `KEPT` of them. For a process
        that was chosen among several fits, one such list for each of them.
        """
        return [list(m) for m in self.candidates] if self.candidates else self._memory()

    def _memory(self) -> list[float]:
        log_l = np.log(self.lengthscales)
        typical = float(np.median(log_l))
        off = np.abs(log_l - typical)
        kept = np.sort(np.argsort(-off, kind="stable")[:KEPT])
        head = [math.log(self.variance), math.log(float(np.median(self.noises))), typical]
        pairs = [(int(i), float(log_l[i])) for i in kept if off[i] > NEAR]
        return [round(v, DIGITS) for v in head] + [n for i, v in pairs for n in (i, round(v, DIGITS))]


class _Moments(torch.autograd.Function):
    """Mean and variance with the closed-form vector-Jacobian product in place of Torch's."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, model: ARDGP) -> tuple[Tensor, Tensor]:
        found = model.marginals(X)
        ctx.back = found.back
        return found.mean[0], found.variance[0]

    @staticmethod
    def backward(ctx: Any, by_mean: Tensor, by_variance: Tensor) -> tuple[Tensor, None]:
        return ctx.back(by_mean[None], by_variance[None]), None


class LogDensity:
    """Minus the log posterior density at theta = (log l, log s, log noise), and its gradient.

    Without the last entry where the noise is known.
    """

    def __init__(self, X: Array, v: Array, prior: ARDPrior, known: Array | None = None) -> None:
        self.X = np.ascontiguousarray(X - X.mean(0))  # n x D
        self.squares = self.X**2
        self.v, self.prior, self.known = v, prior, known  # n, and n noise variances
        self.n, self.D = X.shape

    @cached_property
    def bounds(self) -> list[tuple[float, float]]:
        p = self.prior
        pairs = [p.lengthscale] * self.D + [p.variance] + ([p.noise] if self.known is None else [])
        return [(math.log(low), math.log(high)) for low, high in pairs]

    def start(self, log_l: Array | float, log_s: float = 0.0, log_noise: float = -5.0) -> Array:
        """Packed parameters inside the bounds.  -> D + 1 or D + 2"""
        theta = np.empty(len(self.bounds))
        theta[: self.D], theta[self.D] = log_l, log_s
        theta[self.D + 1 :] = log_noise
        low, high = np.array(self.bounds).T
        return np.clip(theta, low, high)

    def noises(self, theta: Array) -> Array:
        """The noise variance of every observation.  -> n"""
        return np.full(self.n, math.exp(theta[self.D + 1])) if self.known is None else self.known

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient; a covariance that is not positive definite counts as very improbable."""
        D, n, prior = self.D, self.n, self.prior
        log_l, s = theta[:D], math.exp(theta[D])
        inverse_l = np.exp(-log_l)
        k, slope = kernel_of(squared_distances(self.X * inverse_l), prior.kernel)
        k *= s
        K = k.copy()
        K.ravel()[:: n + 1] += self.noises(theta)
        inverted = invert(K)
        if inverted is None:
            return 1e10, np.zeros_like(theta)
        log_root, Kinv = inverted
        a, ones = Kinv @ self.v, Kinv.sum(1)
        a -= (a.sum() / ones.sum()) * ones
        value = 0.5 * float(self.v @ a) + log_root + 0.5 * n * LOG_2PI
        Kinv -= np.outer(a, a)  # twice the derivative by K
        gradient = np.zeros_like(theta)
        gradient[D] = 0.5 * float(np.vdot(Kinv, k))
        if self.known is None:
            gradient[D + 1] = 0.5 * math.exp(theta[D + 1]) * float(Kinv.trace())
        slope *= Kinv
        # sum_ij slope_ij (x_id - x_jd)^2 for every d, by two products
        by_coordinate = np.einsum("ij,ij->j", self.X, slope @ self.X) - slope.sum(1) @ self.squares
        gradient[:D] = (2.0 * s) * inverse_l**2 * by_coordinate
        value += self._penalties(theta, gradient)
        return value, gradient

    def _penalties(self, theta: Array, gradient: Array) -> float:
        """Minus the log prior density; its derivatives are added to the gradient."""
        D, p = self.D, self.prior
        parts = [(p.lengthscale_density, slice(0, D)), (p.variance_density, slice(D, D + 1))]
        parts += [(p.noise_density, slice(D + 1, D + 2))] if self.known is None else []
        total = 0.0
        for density, where in parts:
            if density is not None:
                extra, by = density.penalty(theta[where])
                total += extra
                gradient[where] += by
        return total


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
    starts: list[tuple[Array, int]] = []
    if len(warm):
        starts.append((_remembered(target, warm), warm_iterations))
    if not len(warm) or (refreshes(len(v)) if cold is None else cold):
        starts += [(theta, iterations) for theta in _cold_starts(target, seed)]
    found = [_climb(target, theta, count) for theta, count in starts]
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


def typical_lengthscales(model: ARDGP | Mixture) -> Array:
    """The lengthscales of a process; of a mixture of processes their geometric means.  -> D"""
    parts = model.models if isinstance(model, Mixture) else (model,)
    logs = [np.log(part.lengthscales) for part in parts if isinstance(part, ARDGP)]
    mean: Array = np.exp(np.mean(logs, axis=0))
    return mean


def refreshes(n: int) -> bool:
    """Whether a fit of n observations tries cold starts beside its warm one: each time n has become a quarter more."""
    return n < 5 or int(4.0 * math.log(n)) > int(4.0 * math.log(n - 1))


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
    log_s, log_noise, typical, *pairs = memory
    log_l = np.full(target.D, typical)
    where = np.asarray(pairs[::2], dtype=int)
    inside = where < target.D
    log_l[where[inside]] = np.asarray(pairs[1::2], dtype=float)[inside]
    return target.start(log_l, log_s, log_noise)


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
