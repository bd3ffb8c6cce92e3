"""The full-space Gaussian process: one lengthscale per coordinate, fitted under a prior that is data.

One implementation serves plain BO, SAAS-MAP, TuRBO, BAxUS, REMBO, HeSBO and LineBO; they differ in their `ARDPrior`.

Model, for standardised outcomes v at points X (n x D):
    v ~ N(c, s k(|(x - x') / l|) + diag(noise)),   k squared exponential or Matern-5/2.
The constant mean c is profiled out (its best value is linear algebra); `ard_fit` finds the parameters.
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

from .._errors import InputError
from .._seeds import generator
from ._algebra import LOG_2PI, kernel_of, safe_cholesky, squared_distances
from ._process import Process
from .priors import NOISE_FLOOR, Kernel
from .surrogate import Marginals, Mixture, Surrogate

Array: TypeAlias = NDArray[np.float64]

DRAWS = 8  # joint draws that stand for the uncertainty of measured outcomes
KEPT = 64  # lengthscales that the memory holds at most, those farthest from the typical one
DIGITS = 3  # of a remembered logarithm
NEAR = 0.05  # a log lengthscale this near to the typical one is not worth remembering


@dataclass(frozen=True, eq=False)
class ARDGP(Process):
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

    def log_likelihood(self) -> float:
        """The log marginal likelihood of the standardised outcomes."""
        white = self._root_inverse @ (self.v.numpy() - self.mean)
        return float(np.log(self._root_inverse.diagonal()).sum() - 0.5 * (white @ white) - 0.5 * len(white) * LOG_2PI)

    def noise_evidence(self) -> float:
        """By how much the data are more likely with the fitted noise than without any: a log likelihood ratio.

        Without noise a rougher function has to explain them: shorter lengthscales and a larger variance are tried.
        """
        bare = np.full(len(self.noises), NOISE_FLOOR)
        exact = [
            ARDGP.of(self.X, self.v.numpy(), self.kernel, shorter * self.lengthscales, larger * self.variance, bare)
            for shorter in (1.0, 0.5, 0.25, 0.125, 0.0625)
            for larger in (1.0, 2.0, 4.0)
        ]
        return self.log_likelihood() - max(model.log_likelihood() for model in exact)

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


def typical_lengthscales(model: Surrogate) -> Array:
    """The lengthscales of a process; of a mixture of processes their geometric means; 1 where a model has none.  -> D"""
    parts = model.models if isinstance(model, Mixture) else (model,)
    parts = tuple(part.models[0] if isinstance(part, Mixture) else part for part in parts)  # of what a source knows
    logs = [np.log(part.lengthscales) for part in parts if hasattr(part, "lengthscales")]
    mean: Array = np.exp(np.mean(logs, axis=0)) if logs else np.ones(model.points.shape[1])
    return mean
