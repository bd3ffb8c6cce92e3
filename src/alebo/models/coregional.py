"""A Gaussian process of two related tasks: an earlier one whose data are all there, and the present one.

With f0 the earlier task in units of its own standard deviation, the present task is
    f = c + A (r f0 + sqrt(1 - r^2) d),
so r is the correlation of the two tasks and A the amplitude of the present one: the linear model of coregionalisation
(Bonilla et al. 2008) of two tasks. What is new in it, d, has the kernel k of the process that was fitted to the earlier
task and, for the share w, a smooth kernel k2 of all coordinates alike: what did not matter earlier may matter now.
Given the earlier data, f has the prior
    mean c + A r U(x) z,   covariance A^2 ((1 - s) k(x, x') + s k2(x, x') - r^2 U(x) U(x')^T),   s = (1 - r^2) w,
U(x) = k(x, X0) R^T, z = R (v0 - c0), R the inverse Cholesky factor of the earlier data's covariance. An unrelated earlier
task has r = 0 and only its kernel is left.
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
from torch import Tensor

from ._algebra import LOG_2PI, kernel_of, safe_cholesky, squared_distances
from ._process import Process
from .ard import ARDGP, DRAWS
from .informed import Data
from .outcomes import thinned
from .priors import NOISE_FLOOR
from .surrogate import Marginals, Mixture

Array: TypeAlias = NDArray[np.float64]

CORRELATIONS = (0.0, 0.2, 0.4, 0.6, 0.75, 0.85, 0.92, 0.96, 0.98, 0.995)
AMPLITUDES = tuple(float(a) for a in np.exp(np.linspace(-1.5, 2.5, 17)))
NOISES = tuple(float(v) for v in np.exp(np.linspace(math.log(NOISE_FLOOR), 0.0, 8)))  # over the squared amplitude
SHARES = (0.0, 0.2, 0.6)
SMOOTH = 1.0  # lengthscale of k2 in the unit cube, times the root of D
MANY = 150  # observations beyond which correlation, amplitude and noise are found with so many of them
EXPLANATIONS = 3  # draws of correlation, amplitude and noise that stand for their uncertainty
AMPLITUDE = (0.3, 1.0)  # mean and standard deviation of the prior of log A
NOISE = (-8.0, 3.0)  # and of the log of the noise variance


@dataclass(frozen=True, eq=False)
class CoregionalGP(Process):
    """The process of the present task, conditioned on the data of both; a `Surrogate` of the present one."""

    source: ARDGP  # the earlier task
    X: Array  # n x D
    targets: Array  # n standardised outcomes, or p x n draws of them
    noises: Array  # n, variances, standardised
    correlation: float
    amplitude: float
    mean: float  # c, standardised
    share: float = 0.0  # w
    shift: float = 0.0
    scale: float = 1.0
    known_noise: bool = False

    @property
    def lengthscales(self) -> Array:
        """Of both tasks.  -> D"""
        return self.source.lengthscales

    @property
    def points(self) -> Tensor:
        """The training points of the present task.  -> n x D"""
        return torch.from_numpy(self.X)

    @property
    def v(self) -> Tensor:
        """Its standardised outcomes.  -> n, or p x n draws"""
        return torch.from_numpy(self.targets)

    @property
    def noise(self) -> Tensor:
        """The noise variance of every standardised outcome.  -> n"""
        return torch.from_numpy(self.noises)

    @property
    def memory(self) -> Sequence[Any]:
        """Nothing: every fit looks at the same few candidates."""
        return []

    @cached_property
    def _seen(self) -> _Seen:
        return _Seen.of(self.source, self.X)

    def _prior_mean(self, seen: _Seen) -> Array:
        return self.mean + self.amplitude * self.correlation * seen.expected

    def _covariance(self, one: _Seen, other: _Seen) -> tuple[Array, Array, Array]:
        """The prior covariance of some points and others, and the slopes of k and of k2.  -> a x b each"""
        k, slope = kernel_of(squared_distances(one.Z, other.Z), self.source.kernel)
        k2, slope2 = kernel_of(squared_distances(one.Z2, other.Z2), "rbf")
        s = (1.0 - self.correlation**2) * self.share
        K = self.amplitude**2 * ((1.0 - s) * k + s * k2 - self.correlation**2 * (one.U @ other.U.T))
        return K, slope, slope2

    @cached_property
    def _root_inverse(self) -> Array:
        """The inverse of the Cholesky factor of the covariance of the data.  -> n x n"""
        K = self._covariance(self._seen, self._seen)[0]
        K.ravel()[:: len(K) + 1] += self.noises
        L = safe_cholesky(torch.from_numpy(K))
        inverse: Array = torch.linalg.solve_triangular(L, torch.eye(len(K), dtype=L.dtype), upper=False).numpy()
        return inverse

    @cached_property
    def _weights(self) -> Array:
        """K^-1 (v - prior mean).  -> p x n"""
        off = np.atleast_2d(self.targets) - self._prior_mean(self._seen)
        weights: Array = (off @ self._root_inverse.T) @ self._root_inverse
        return weights

    def marginals(self, W: Tensor) -> Marginals:
        """Mean and variance at single points, standardised, with their vector-Jacobian product.  k x D -> p x k, p x k"""
        seen, at = self._seen, _Seen.of(self.source, W.detach().numpy())
        C, slope, slope2 = self._covariance(at, seen)
        V = C @ self._root_inverse.T
        A, r, s = self.amplitude, self.correlation, (1.0 - self.correlation**2) * self.share
        left = A**2 * (1.0 - r**2 * np.einsum("ij,ij->i", at.U, at.U)) - np.einsum("ij,ij->i", V, V)

        def back(by_mean: Tensor, by_variance: Tensor) -> Tensor:
            m = by_mean.numpy()
            by_left = np.where(left > 1e-12, by_variance.numpy().sum(0), 0.0)
            by_C = m.T @ self._weights - ((2.0 * by_left)[:, None] * V) @ self._root_inverse
            by_U = np.outer(m.sum(0), A * r * self.source_z) - (A * r) ** 2 * (by_C @ seen.U)
            by_U -= (2.0 * (A * r) ** 2 * by_left)[:, None] * at.U
            here, smooth = 2.0 * A**2 * (1.0 - s) * by_C * slope, 2.0 * A**2 * s * by_C * slope2
            there = 2.0 * (by_U @ self.source_root) * at.slope
            moved = here.sum(1)[:, None] * at.Z - here @ seen.Z
            moved += there.sum(1)[:, None] * at.Z - there @ self.source._scaled[1]
            wide = smooth.sum(1)[:, None] * at.Z2 - smooth @ seen.Z2
            return torch.from_numpy(moved / self.source.lengthscales + wide / _wide(self.source))

        mean = torch.from_numpy(self._prior_mean(at) + self._weights @ C.T)
        return Marginals(mean, torch.from_numpy(np.maximum(left, 1e-12)).expand(len(mean), -1), back)

    @property
    def source_root(self) -> Array:
        """R, for a kernel of unit variance.  -> n0 x n0"""
        return math.sqrt(self.source.variance) * self.source._root_inverse

    @property
    def source_z(self) -> Array:
        """z, in units of the earlier task's standard deviation.  -> n0"""
        return _z(self.source)

    def draw(self, points: Tensor, rng: np.random.Generator) -> CoregionalGP:
        """The process conditioned on each of `DRAWS` joint draws of its noiseless outcome at the points.  k x D"""
        at = _Seen.of(self.source, points.numpy())
        C = self._covariance(at, self._seen)[0]
        V = C @ self._root_inverse.T
        joint = self._covariance(at, at)[0] - V @ V.T
        joint.ravel()[:: len(joint) + 1] += 1e-7 * max(1.0, self.amplitude**2)
        mean = self._prior_mean(at) + C @ self._weights[0]
        white = rng.standard_normal((len(at.Z), DRAWS))
        v = mean + (safe_cholesky(torch.from_numpy(joint)).numpy() @ white).T
        jitter = np.full(len(at.Z), 1e-6 * max(1.0, 1e-3 * self.amplitude**2))
        return replace(self, X=points.numpy(), targets=v, noises=jitter)

    def log_likelihood(self) -> float:
        """The log likelihood of the standardised outcomes, given the earlier data."""
        white = self._root_inverse @ (self.targets - self._prior_mean(self._seen))
        return float(np.log(self._root_inverse.diagonal()).sum() - 0.5 * (white @ white) - 0.5 * len(white) * LOG_2PI)

    def noise_evidence(self) -> float:
        """By how much the data are more likely with the fitted noise than without any: a log likelihood ratio."""
        candidates, density = _candidates(self.source, self._seen, self.targets, None, NOISES[:1])
        r, A, c, noise, w = map(float, candidates[int(np.argmax(density))])
        exact = replace(self, correlation=r, amplitude=A, mean=c, share=w, noises=np.full(len(self.X), noise))
        return self.log_likelihood() - exact.log_likelihood()


@dataclass(frozen=True, eq=False)
class _Seen:
    """Points as the earlier task's process sees them."""

    Z: Array  # k x D, in units of its lengthscales
    Z2: Array  # k x D, in units of the lengthscale of k2
    slope: Array  # k x n0, derivative of the kernel to the earlier points by the squared distance
    U: Array  # k x n0
    expected: Array  # k, what the earlier task's process expects, in its standard deviations

    @classmethod
    def of(cls, source: ARDGP, X: Array) -> _Seen:
        """The points, remembered for the next of the processes that are asked about the same ones."""
        global _last
        known = _last
        if known is not None and known[0] is source and np.array_equal(known[1], X):
            return known[2]
        made = cls._made(source, X)
        _last = source, X.copy(), made
        return made

    @classmethod
    def _made(cls, source: ARDGP, X: Array) -> _Seen:
        centre, earlier = source._scaled
        Z = (X - centre) / source.lengthscales
        k, slope = kernel_of(squared_distances(Z, earlier), source.kernel)
        U = math.sqrt(source.variance) * (k @ source._root_inverse.T)
        return cls(Z, (X - centre) / _wide(source), slope, U, U @ _z(source))


_last: tuple[ARDGP, Array, _Seen] | None = None


def _wide(source: ARDGP) -> float:
    """The lengthscale of k2."""
    return SMOOTH * math.sqrt(source.dim)


def _z(source: ARDGP) -> Array:
    white: Array = source._root_inverse @ (source.targets - source.mean)
    return white


def fit_coregional(source: ARDGP, base: Data) -> Mixture:
    """Processes drawn from the posterior of correlation, amplitude and noise, for the present task.

    Args:
        source: a process fitted to the earlier task.
        base: the data of the present task.

    Returns:
        `EXPLANATIONS` of them at most, evenly spaced in the posterior: no random numbers are drawn.
    """
    X, v = base.points.numpy(), base.v.numpy()
    seen = _Seen.of(source, X)
    known = base.noise.numpy() if base.known_noise else None
    units: dict[str, Any] = {"shift": base.shift, "scale": base.scale, "known_noise": base.known_noise}
    few = np.sort(thinned(np.argsort(-v, kind="stable"), MANY))
    some = seen if len(few) == len(v) else _Seen.of(source, X[few])
    candidates, density = _candidates(source, some, v[few], None if known is None else known[few], NOISES)
    chance = np.cumsum(np.exp(density - density.max()))
    marks = (np.arange(EXPLANATIONS) + 0.5) / EXPLANATIONS * chance[-1]
    chosen = np.searchsorted(chance, marks)
    models = []
    for r, A, c, noise, w in candidates[chosen if len(set(chosen)) > 1 else chosen[:1]]:
        noises = np.full(len(v), max(noise, NOISE_FLOOR)) if known is None else known
        models.append(CoregionalGP(source, X, v, noises, float(r), float(A), float(c), float(w), **units))
    return Mixture(tuple(models))


def _candidates(
    source: ARDGP, seen: _Seen, v: Array, known: Array | None, levels: Sequence[float]
) -> tuple[Array, Array]:
    """Correlation, amplitude, constant mean, noise and share w, and the log posterior density, of each candidate.  -> m x 5, m

    In the order of the correlation. A reported noise is taken at its median here; the process itself has it as reported.
    """
    n = len(v)
    k = kernel_of(squared_distances(seen.Z), source.kernel)[0]
    k2 = kernel_of(squared_distances(seen.Z2), "rbf")[0]
    G = seen.U @ seen.U.T
    A = np.array(AMPLITUDES)
    rows, densities = [], []
    for r, w in ((r, w) for r in CORRELATIONS for w in SHARES):
        s = (1.0 - r**2) * w
        values, vectors = np.linalg.eigh((1.0 - s) * k + s * k2 - r**2 * G)
        turned = np.stack([v, r * seen.expected, np.ones(n)]) @ vectors  # 3 x n
        for rate in levels if known is None else levels[:1]:
            eta = np.full(len(A), rate) if known is None else np.maximum(float(np.median(known)) / A**2, NOISE_FLOOR)
            weight = 1.0 / (np.maximum(values, 0.0)[None, :] + eta[:, None])  # a x n
            (vv, vm, v1), (_, mm, m1), (_, _, ones) = (
                [(weight * turned[i] * turned[j]).sum(1) for j in range(3)] for i in range(3)
            )
            c = (v1 - A * m1) / ones
            square = vv + A**2 * mm + c**2 * ones - 2.0 * A * vm - 2.0 * c * v1 + 2.0 * A * c * m1
            density = -0.5 * square / A**2 + 0.5 * np.log(weight).sum(1) - n * np.log(A)
            density -= 0.5 * ((np.log(A) - AMPLITUDE[0]) / AMPLITUDE[1]) ** 2
            if known is None:
                density -= 0.5 * ((np.log(rate * A**2) - NOISE[0]) / NOISE[1]) ** 2
            rows.append(np.stack([np.full(len(A), r), A, c, eta * A**2, np.full(len(A), w)], axis=1))
            densities.append(density)
    return np.concatenate(rows), np.concatenate(densities)
