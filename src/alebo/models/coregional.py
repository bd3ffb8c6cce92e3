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
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
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
from .priors import Kernel
from .surrogate import Marginals, Mixture

Array: TypeAlias = NDArray[np.float64]

CORRELATIONS = (0.0, 0.2, 0.4, 0.6, 0.75, 0.85, 0.92, 0.96, 0.98, 0.995)
AMPLITUDES = tuple(float(a) for a in np.exp(np.linspace(-1.5, 2.5, 17)))
LEAST = (
    1e-8  # noise variance over the squared amplitude: what is known of an earlier task allows to tell finer differences
)
NOISES = tuple(float(v) for v in np.exp(np.linspace(math.log(LEAST), 0.0, 12)))  # candidates, in the same units
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
        k, slope, k2, slope2, G = _kernels(one, other, self.source.kernel)
        s = (1.0 - self.correlation**2) * self.share
        K = self.amplitude**2 * ((1.0 - s) * k + s * k2 - self.correlation**2 * G)
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
        return _marginals([self], W)

    def _at(self, at: _Seen) -> _At:
        """Mean, variance and what their derivatives need, at points."""
        C, slope, slope2 = self._covariance(at, self._seen)
        V = C @ self._root_inverse.T
        prior = self.amplitude**2 * (1.0 - self.correlation**2 * np.einsum("ij,ij->i", at.U, at.U))
        return _At(
            self, self._prior_mean(at) + self._weights @ C.T, prior - np.einsum("ij,ij->i", V, V), V, slope, slope2
        )

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
        for known in tuple(_lately):
            if known[0] is source and np.array_equal(known[1], X):
                return known[2]
        made = cls._made(source, X)
        _lately.append((source, X.copy(), made))
        return made

    @classmethod
    def _made(cls, source: ARDGP, X: Array) -> _Seen:
        centre, earlier = source._scaled
        Z = (X - centre) / source.lengthscales
        k, slope = kernel_of(squared_distances(Z, earlier), source.kernel)
        R, z = _earlier(source)
        U = k @ R.T
        return cls(Z, (X - centre) / _wide(source), slope, U, U @ z)


@dataclass(frozen=True, eq=False)
class _At:
    """What a process says at k points, before its derivatives are asked for."""

    process: CoregionalGP
    mean: Array  # p x k
    left: Array  # k, the variance
    V: Array  # k x n
    slope: Array  # k x n, of k by the squared distance
    slope2: Array  # k x n, of k2

    def back(self, at: _Seen, by_mean: Array, by_variance: Array) -> tuple[Array, Array, Array]:
        """The derivatives by half the squared scaled distances of k and of k2, and by U.  p x k each -> k x n, k x n, k x n0"""
        gp = self.process
        A, r, s = gp.amplitude, gp.correlation, (1.0 - gp.correlation**2) * gp.share
        by_left = np.where(self.left > 1e-12, by_variance.sum(0), 0.0)
        by_C = by_mean.T @ gp._weights - ((2.0 * by_left)[:, None] * self.V) @ gp._root_inverse
        by_U = np.outer(by_mean.sum(0), A * r * _earlier(gp.source)[1]) - (A * r) ** 2 * (by_C @ gp._seen.U)
        by_U -= (2.0 * (A * r) ** 2 * by_left)[:, None] * at.U
        by_C *= 2.0 * A**2
        return (1.0 - s) * by_C * self.slope, s * by_C * self.slope2, by_U


def _marginals(models: Sequence[CoregionalGP], W: Tensor) -> Marginals:
    """Mean and variance of processes of the same data, one after the other.  k x D -> p x k, p x k"""
    source, seen = models[0].source, models[0]._seen
    at = _Seen.of(source, W.detach().numpy())
    found = [gp._at(at) for gp in models]
    counts = [len(f.mean) for f in found]

    def back(by_mean: Tensor, by_variance: Tensor) -> Tensor:
        parts = zip(found, by_mean.split(counts), by_variance.split(counts), strict=True)
        pulls = [f.back(at, m.numpy(), v.numpy()) for f, m, v in parts]
        here, smooth, by_U = (sum(pull[1:], start=pull[0]) for pull in zip(*pulls, strict=True))
        there = 2.0 * (by_U @ _earlier(source)[0]) * at.slope
        moved = (here.sum(1) + there.sum(1))[:, None] * at.Z - here @ seen.Z - there @ source._scaled[1]
        wide = smooth.sum(1)[:, None] * at.Z2 - smooth @ seen.Z2
        return torch.from_numpy(moved / source.lengthscales + wide / _wide(source))

    variance = np.concatenate([np.broadcast_to(np.maximum(f.left, 1e-12), f.mean.shape) for f in found])
    return Marginals(torch.from_numpy(np.concatenate([f.mean for f in found])), torch.from_numpy(variance), back)


@dataclass(frozen=True, eq=False)
class Related(Mixture):
    """Several processes of the same two tasks, asked together: what they share is computed once."""

    models: tuple[CoregionalGP, ...]

    def marginals(self, W: Tensor) -> Marginals:
        """All processes, one after the other.  k x D -> p x k, p x k"""
        return _marginals(self.models, W)


_lately: deque[tuple[ARDGP, Array, _Seen]] = deque(maxlen=4)  # points that processes were asked about


@lru_cache(maxsize=2)  # the processes of one mixture are asked about the same points, one after the other
def _kernels(one: _Seen, other: _Seen, kernel: Kernel) -> tuple[Array, Array, Array, Array, Array]:
    """k and its slope, k2 and its slope, and U U^T, of some points and others.  -> a x b each"""
    k, slope = kernel_of(squared_distances(one.Z, other.Z), kernel)
    k2, slope2 = kernel_of(squared_distances(one.Z2, other.Z2), "rbf")
    return k, slope, k2, slope2, one.U @ other.U.T


def _wide(source: ARDGP) -> float:
    """The lengthscale of k2."""
    return SMOOTH * math.sqrt(source.dim)


@lru_cache(maxsize=4)
def _earlier(source: ARDGP) -> tuple[Array, Array]:
    """R for a kernel of unit variance, and z in units of the earlier task's standard deviation.  -> n0 x n0, n0"""
    white: Array = source._root_inverse @ (source.targets - source.mean)
    return math.sqrt(source.variance) * source._root_inverse, white


def fit_coregional(source: ARDGP, base: Data) -> Related:
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
        noises = np.full(len(v), max(noise, LEAST)) if known is None else known
        models.append(CoregionalGP(source, X, v, noises, float(r), float(A), float(c), float(w), **units))
    return Related(tuple(models))


def _candidates(
    source: ARDGP, seen: _Seen, v: Array, known: Array | None, levels: Sequence[float]
) -> tuple[Array, Array]:
    """Correlation, amplitude, constant mean, noise and share w, and the log posterior density, of each candidate.  -> m x 5, m

    In the order of the correlation. A reported noise is taken at its median here; the process itself has it as reported.
    """
    n = len(v)
    k, _, k2, _, G = _kernels(seen, seen, source.kernel)
    A = np.array(AMPLITUDES)
    # candidates of the noise over the squared amplitude: the same for every amplitude, or one for each  l x 1, or 1 x a
    eta = np.array(levels)[:, None] if known is None else np.maximum(np.median(known) / A**2, LEAST)[None, :]
    fixed = -0.5 * ((np.log(A) - AMPLITUDE[0]) / AMPLITUDE[1]) ** 2 - n * np.log(A)
    if known is None:
        fixed = fixed - 0.5 * ((np.log(eta * A**2) - NOISE[0]) / NOISE[1]) ** 2
    rows, densities = [], []
    for r, w in ((r, w) for r in CORRELATIONS for w in SHARES):
        s = (1.0 - r**2) * w
        values, vectors = np.linalg.eigh((1.0 - s) * k + s * k2 - r**2 * G)
        y, m, one = np.stack([v, r * seen.expected, np.ones(n)]) @ vectors  # n each
        weight = 1.0 / (np.maximum(values, 0.0) + eta.reshape(-1, 1))  # of each noise  x n
        sums = weight @ np.stack([y * y, y * m, y * one, m * m, m * one, one * one], axis=1)
        vv, vm, v1, mm, m1, ones = (column.reshape(eta.shape) for column in sums.T)
        c = (v1 - A * m1) / ones  # l x a
        square = vv + A**2 * mm + c**2 * ones - 2.0 * A * vm - 2.0 * c * v1 + 2.0 * A * c * m1
        density = fixed - 0.5 * square / A**2 + 0.5 * np.log(weight).sum(1).reshape(eta.shape)
        rows.append(np.stack(np.broadcast_arrays(r, A, c, eta * A**2, w), axis=-1).reshape(-1, 5))
        densities.append(density.ravel())
    return np.concatenate(rows), np.concatenate(densities)
