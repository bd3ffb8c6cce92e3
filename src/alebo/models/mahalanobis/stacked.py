"""Joint draws of several outcomes under their sampled metrics, in NumPy and all in one array.

The same algebra as `Conditioned`. A climb asks for a few points at a time, where the calls of Torch take longer than the
sums. A point that comes under way is drawn given the draws so far, which borders the factors: nothing is factored again.
Letters: r outcomes, m metrics of each, p = r m, n points, k new points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .conditioned import Conditioned

Array: TypeAlias = NDArray[np.float64]

LEAST = 1e-12  # variance
JITTER = 1e-6  # of the draws' covariance, as in `MahalanobisGP.draw`
STRONGER = 10.0  # by this factor, where a covariance has no Cholesky factor


@dataclass(frozen=True, eq=False)
class Stack:
    """The GPs of all outcomes and metrics, each conditioned on its own draws; outcomes one after the other."""

    m: int
    U: Array  # p x d x d
    variance: Array  # p
    Z: Array  # p x n x d, the points in each metric
    v: Array  # p x n, standardised draws
    Linv: Array  # p x n x n, inverse Cholesky factors
    mean: Array  # p
    alpha: Array  # p x n
    shifts: Array  # r, outcome = shift + scale * v
    scales: Array  # r

    @classmethod
    def of(cls, drawn: Sequence[Conditioned]) -> Stack | None:
        """The draws of several outcomes at the same points; of each outcome as many metrics as all have.

        None where the draws are in batches of their own.
        """
        if any(one.Z.dim() != 3 for one in drawn):
            return None
        m = min(one.m for one in drawn)

        def rows(name: str) -> Array:
            return np.concatenate([getattr(one, name)[:m].numpy() for one in drawn])

        named = {name: rows(name) for name in ("U", "variance", "Z", "v", "Linv", "mean", "alpha")}
        units = {f"{name}s": np.array([getattr(one, name) for one in drawn]) for name in ("shift", "scale")}
        return cls(m=m, **named, **units)

    def by_outcome(self, rows: Array) -> Array:
        """p x ... -> r x m x ..."""
        return rows.reshape(-1, self.m, *rows.shape[1:])

    def part(self, some: slice) -> Stack:
        """The same under some of the metrics of each outcome."""

        def rows(all_rows: Array) -> Array:
            chosen = self.by_outcome(all_rows)[:, some]
            return np.ascontiguousarray(chosen.reshape(-1, *all_rows.shape[1:]))

        names = ("U", "variance", "Z", "v", "Linv", "mean", "alpha")
        count = len(range(self.m)[some])
        return Stack(
            m=count, **{name: rows(getattr(self, name)) for name in names}, shifts=self.shifts, scales=self.scales
        )

    @cached_property
    def _half(self) -> Array:
        """Half of the squared lengths of the points in each metric.  -> p x n"""
        half: Array = 0.5 * np.einsum("pnd,pnd->pn", self.Z, self.Z)
        return half

    def _near(self, W: Array) -> tuple[Array, Array]:
        """New points in each metric, and their covariance with the points.  k x d -> p x k x d, p x k x n"""
        Z = W @ self.U.transpose(0, 2, 1)
        exponent = Z @ self.Z.transpose(0, 2, 1)
        exponent -= self._half[:, None, :]
        exponent -= 0.5 * np.einsum("pkd,pkd->pk", Z, Z)[:, :, None]
        np.minimum(exponent, 0.0, out=exponent)
        near: Array = np.exp(exponent, out=exponent)
        near *= self.variance[:, None, None]
        return Z, near

    def marginals(self, W: Array) -> tuple[Array, Array, Callable[[Array, Array], Array]]:
        """Mean and variance at single points, and the vector-Jacobian product by both.  k x d -> p x k, p x k"""
        Z, near = self._near(W)
        V = near @ self.Linv.transpose(0, 2, 1)
        mean = self.mean[:, None] + (near @ self.alpha[:, :, None])[..., 0]
        left = self.variance[:, None] - np.einsum("pkn,pkn->pk", V, V)

        def back(by_mean: Array, by_variance: Array) -> Array:
            pull = (np.where(left > LEAST, -2.0 * by_variance, 0.0)[..., None] * V) @ self.Linv
            pull += by_mean[..., None] * self.alpha[:, None, :]
            pull *= near
            moved: Array = ((pull @ self.Z - pull.sum(-1, keepdims=True) * Z) @ self.U).sum(0)
            return moved

        return mean, np.maximum(left, LEAST), back

    def plus(self, points: Array, rng: np.random.Generator) -> Stack:
        """The same with outcomes at more points, drawn jointly given those drawn before.  k x d"""
        Z, near = self._near(points)
        k, n = len(points), self.Z.shape[1]
        V = near @ self.Linv.transpose(0, 2, 1)  # p x k x n
        sq = np.square(Z[:, :, None, :] - Z[:, None, :, :]).sum(-1)
        left = self.variance[:, None, None] * np.exp(-0.5 * sq) - V @ V.transpose(0, 2, 1)
        root = _root(left, JITTER * np.maximum(1e-3 * self.variance, 1.0))
        white = rng.standard_normal((len(Z), k, 1))
        drawn = self.mean[:, None] + (near @ self.alpha[:, :, None] + root @ white)[..., 0]
        corner = np.linalg.inv(root)
        Linv = np.zeros((len(Z), n + k, n + k))
        Linv[:, :n, :n], Linv[:, n:, n:] = self.Linv, corner
        Linv[:, n:, :n] = -corner @ (V @ self.Linv)
        v = np.concatenate([self.v, drawn], axis=1)
        ones = Linv.sum(-1)  # L^-1 1
        target = (Linv @ v[:, :, None])[..., 0]  # L^-1 v
        mean = (ones * target).sum(-1) / (ones * ones).sum(-1)  # the best constant mean
        alpha = ((target - mean[:, None] * ones)[:, None, :] @ Linv)[:, 0]
        Z = np.concatenate([self.Z, Z], axis=1)
        return Stack(self.m, self.U, self.variance, Z, v, Linv, mean, alpha, self.shifts, self.scales)


def _root(K: Array, jitter: Array) -> Array:
    """Cholesky factors, with as little more than the jitter (p) on the diagonals as makes them exist.  p x k x k"""
    eye = np.eye(K.shape[-1])
    for _ in range(8):
        try:
            return np.asarray(np.linalg.cholesky(K + jitter[:, None, None] * eye), dtype=float)
        except np.linalg.LinAlgError:
            jitter = STRONGER * jitter
    raise AssertionError("a kernel matrix has no Cholesky factor even with a large jitter")
