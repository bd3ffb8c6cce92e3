"""The log posterior density of the full-space GP's parameters, with an analytic gradient.

One evaluation costs one inverse and two n x n x D products of matrices, and makes no n x n x D array. In NumPy: at these
sizes Torch spends more time on its calls than on the sums.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._algebra import LOG_2PI, invert, kernel_of, squared_distances
from .priors import ARDPrior

Array: TypeAlias = NDArray[np.float64]


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
