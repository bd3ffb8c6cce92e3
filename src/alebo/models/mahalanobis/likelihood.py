"""Fitting the Mahalanobis GP: the log posterior of its parameters with an analytic gradient, and L-BFGS from warm starts.

Model, for standardised outcomes v at embedded points Y (n x d):
    v ~ N(c, s^2 exp(-|U (y - y')|^2 / 2) + diag(noise)),   U upper triangular, Gamma = U'U / 2.
The constant mean c is profiled out (its best value is linear algebra). One evaluation costs one Cholesky factor, one
inverse and O(n^2 d): several times less than automatic differentiation of the same sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from ..._errors import damaged_note
from .._algebra import LOG_2PI, invert
from .kernel import gram, gram_of_logs

Array: TypeAlias = NDArray[np.float64]

SCREENED = 100  # cold starts are compared on at most this many observations


@dataclass(frozen=True)
class MetricPrior:
    """Weak beliefs that keep few data from being explained too well; all precisions zero is maximum likelihood.

    `ridge` is the precision of a N(0, 1/ridge) prior on every entry of U: in coordinates in which the polytope holds a
    unit ball, functions that vary on the scale of the polytope. `scale` is the precision of log s^2 around 0 (the outcomes
    are standardised), `noise` that of log noise around `noise_at`.
    """

    ridge: float = 0.5
    scale: float = 0.25
    noise: float = 0.25
    noise_at: float = math.log(1e-5)
    noise_floor: float = 1e-6


PAPER = MetricPrior(ridge=0.0, scale=0.0, noise=0.0)


@dataclass(frozen=True)
class Hyperparameters:
    """One setting of the kernel: U, log s^2, and log noise where it is inferred."""

    U: Tensor  # d x d, upper triangular
    log_scale: float
    log_noise: float

    def pack(self) -> Array:
        row, column = torch.triu_indices(*self.U.shape)
        return np.concatenate([self.U[row, column].numpy(), [self.log_scale, self.log_noise]])

    @classmethod
    def remembered(cls, theta: Sequence[float]) -> Hyperparameters:
        """As `unpack`, of what a note holds."""
        d = (math.isqrt(max(8 * (len(theta) - 2) + 1, 0)) - 1) // 2
        if d < 1 or d * (d + 1) // 2 + 2 != len(theta):
            raise damaged_note(f"a metric of d (d + 1) / 2 + 2 numbers, and it has {len(theta)}")
        return cls.unpack(theta)

    @classmethod
    def unpack(cls, theta: Array | Sequence[float]) -> Hyperparameters:
        theta = np.asarray(theta, dtype=float)
        d = int((math.isqrt(8 * (len(theta) - 2) + 1) - 1) // 2)
        U = torch.zeros(d, d, dtype=torch.double)
        row, column = torch.triu_indices(d, d)
        U[row, column] = torch.from_numpy(theta[:-2].copy())
        return cls(U, float(theta[-2]), float(theta[-1]))

    def padded(self, dim: int, rng: np.random.Generator, spread: float = 0.1) -> Hyperparameters:
        """The same metric in an embedding that has grown to `dim`, with small random entries for the new directions."""
        d = len(self.U)
        if d > dim:
            raise damaged_note(f"a metric of at most {dim} dimensions, and it has {d}")
        if dim == d:
            return self
        U = torch.triu(torch.from_numpy(rng.normal(0.0, spread, (dim, dim))))
        U[:d, :d] = self.U
        return Hyperparameters(U, self.log_scale, self.log_noise)


class LogPosterior:
    """The log marginal likelihood plus the log prior, as a function of the packed parameters."""

    def __init__(self, Y: Tensor, v: Tensor, known: Tensor | None, prior: MetricPrior) -> None:
        self.Y, self.v, self.known, self.prior = Y, v, known, prior  # n x d, n, n (variances) or None
        self.n, self.d = Y.shape
        self.row, self.column = np.triu_indices(self.d)
        self._Y, self._v = np.ascontiguousarray(Y.numpy()), v.numpy()
        self._known = None if known is None else known.numpy() + prior.noise_floor

    def thinned(self, most: int) -> LogPosterior:
        """The same posterior given at most so many of the observations, spread evenly over their order."""
        if self.n <= most:
            return self
        keep = torch.linspace(0, self.n - 1, most, dtype=torch.double).round().long()
        return LogPosterior(self.Y[keep], self.v[keep], None if self.known is None else self.known[keep], self.prior)

    def noise(self, log_noise: float) -> Tensor:
        """The variance of every observation.  -> n"""
        if self.known is not None:
            return self.known + self.prior.noise_floor
        return torch.full_like(self.v, math.exp(log_noise))

    def signal(self, U: Tensor, log_scale: float) -> Tensor:
        """The covariance without noise.  -> ... x n x n"""
        Z = self.Y @ U.mT
        return gram(Z, Z, torch.tensor(math.exp(log_scale), dtype=Z.dtype))

    def likelihood(self, U: Array, log_scale: float, log_noise: float) -> tuple[float, Array, float, float] | None:
        """The log marginal likelihood and its derivatives by U (any number of rows), log s^2 and log noise.

        None where the covariance is not positive definite. In NumPy: it is called hundreds of times for one model, most
        often with few data, where Torch spends more time on its calls than on the sums.
        """
        if log_scale > 300.0:
            return None
        Y, v, n = self._Y, self._v, self.n
        Ks = gram_of_logs(Y @ U.T, log_scale)
        K = Ks.copy()
        K.ravel()[:: n + 1] += math.exp(log_noise) if self._known is None else self._known
        inverted = invert(K)
        if inverted is None:
            return None
        log_root, Kinv = inverted
        weights = Kinv.sum(1)
        r = v - float(weights @ v / weights.sum())
        alpha = Kinv @ r
        value = -0.5 * float(r @ alpha) - log_root - 0.5 * n * LOG_2PI
        dK = np.outer(alpha, alpha)  # twice the derivative of the likelihood
        dK -= Kinv
        by_noise = 0.5 * float(dK.trace()) * math.exp(log_noise) if self._known is None else 0.0
        M = np.multiply(Ks, dK, out=dK)
        total = M.sum(1)
        spread = Y.T @ (total[:, None] * Y - M @ Y)  # sum_ij M_ij (y_i - y_j)(y_i - y_j)' / 2
        return value, -U @ spread, 0.5 * float(total.sum()), by_noise

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient; a covariance that is not positive definite counts as impossible."""
        h = Hyperparameters.unpack(theta)
        found = self.likelihood(h.U.numpy(), h.log_scale, h.log_noise)
        if found is None:
            return -1e25, np.zeros_like(theta)
        value, dU, by_scale, by_noise = found
        p = self.prior
        value -= 0.5 * p.ridge * float((h.U**2).sum()) + 0.5 * p.scale * h.log_scale**2
        gradient = np.empty_like(theta)
        gradient[:-2] = (dU - p.ridge * h.U.numpy())[self.row, self.column]
        gradient[-2] = by_scale - p.scale * h.log_scale
        gradient[-1] = by_noise
        if self.known is None:
            off = h.log_noise - p.noise_at
            value -= 0.5 * p.noise * off**2
            gradient[-1] -= p.noise * off
        return value, gradient

    def curvature(self, h: Hyperparameters) -> Tensor:
        """The exact second derivative of the log posterior along each entry of U alone (diagonal Hessian).  -> d x d

        Along one entry, K' = -K z_a delta_b and K'' = K (z_a^2 - 1) delta_b^2 elementwise, with delta = y - y' and
        z = U delta. Since delta_b is a difference, all b share the products of matrices for a: two of them for each row.
        """
        Ks = self.signal(h.U, h.log_scale)
        L = torch.linalg.cholesky(Ks + torch.diag(self.noise(h.log_noise)))
        Kinv = torch.cholesky_inverse(L)
        weights = Kinv.sum(1)
        alpha = Kinv @ (self.v - weights @ self.v / weights.sum())
        # the profiled mean's share: Kinv with the constant projected out, applied to K' alpha
        P = Kinv - torch.outer(weights, weights) / weights.sum()
        Z = self.Y @ h.U.mT
        dK = 0.5 * (torch.outer(alpha, alpha) - Kinv)
        out = torch.zeros(self.d, self.d, dtype=self.v.dtype)
        for a in range(self.d):
            Y = self.Y[:, a:]  # b >= a
            z = Z[:, a, None] - Z[None, :, a]
            M = Ks * z  # K' = M diag(y_b) - diag(y_b) M
            C = Kinv @ M
            trace = 2.0 * (C * C.mT - Kinv * (M @ C))  # tr (Kinv K')^2 = y_b' trace y_b
            second = 2.0 * dK * Ks * (z**2 - 1.0)  # sum over pairs of second / 2 times (y_bi - y_bj)^2
            moved = M @ (Y * alpha[:, None]) - (M @ alpha)[:, None] * Y  # K' alpha, n x (d - a)
            out[a, a:] = (
                (Y**2 * second.sum(1)[:, None]).sum(0)
                + (Y * ((0.5 * trace - second) @ Y)).sum(0)
                - (moved * (P @ moved)).sum(0)
            )
        return torch.triu(out - self.prior.ridge)


def fit(
    posterior: LogPosterior,
    warm: Hyperparameters | None,
    cold: Sequence[Hyperparameters] = (),
    *,
    iterations: int = 100,
    screening: int = 20,
) -> tuple[Hyperparameters, float]:
    """The best local maximum found by L-BFGS-B.

    Cold starts are tried for a few iterations, on a part of the data where there are many; only the best of them, where
    it has come close to where the warm start ends, is followed further. The surface has many optima, and most of them
    show early that they are poor.
    """
    ends = []
    if warm is not None:
        ends.append(_climb(posterior, warm.pack(), iterations))
    part = posterior.thinned(SCREENED)
    tried = [_climb(part, start.pack(), screening) for start in cold]
    if tried:
        value, theta = max(tried, key=lambda end: end[0])
        if part is not posterior:
            value, theta = _climb(posterior, theta, screening)
        if not ends or value > ends[0][0] - 0.05 * posterior.n:
            ends.append(_climb(posterior, theta, iterations))
    value, theta = max(ends, key=lambda end: end[0])
    return Hyperparameters.unpack(theta), value


def _climb(posterior: LogPosterior, theta: Array, iterations: int) -> tuple[float, Array]:
    """L-BFGS-B from theta, with one parameter more than there need be: a factor e^t on the whole of U.

    Smooth functions leave a long valley in which the signal grows while the metric shrinks (s^2 |U|^4 stays, for a parabola).
    It is curved in the entries of U and straight in (log s^2, t), where quasi-Newton steps follow it.
    """
    low_noise = math.log(posterior.prior.noise_floor)
    box = [(-100.0, 100.0)] * (len(theta) - 2) + [(-7.0, 9.0), (low_noise, 3.0), (-6.0, 6.0)]
    start = np.append(theta, 0.0).clip([low for low, _ in box], [high for _, high in box])

    def unstretched(x: Array) -> Array:
        theta = x[:-1].copy()
        theta[:-2] *= math.exp(x[-1])
        return theta

    def negative(x: Array) -> tuple[float, Array]:
        theta = unstretched(x)
        value, gradient = posterior(theta)
        along = gradient[:-2] @ theta[:-2]
        gradient[:-2] *= math.exp(x[-1])
        return -value, -np.append(gradient, along)

    options = {"maxiter": iterations, "maxfun": int(1.3 * iterations) + 5, "maxcor": 20}
    found = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=box, options=options)
    return -float(found.fun), unstretched(np.asarray(found.x))


def cold_start(d: int, rng: np.random.Generator) -> Hyperparameters:
    """A random metric: a few directions matter, as under a random true subspace."""
    rank = int(rng.integers(1, d + 1))
    M = rng.normal(size=(rank, d)) * rng.uniform(0.5, 2.0) / math.sqrt(d)
    R = np.linalg.qr(np.vstack([M, 0.05 * rng.normal(size=(d, d))]), mode="r")
    return Hyperparameters(torch.from_numpy(np.triu(R)), 0.0, math.log(1e-3))
