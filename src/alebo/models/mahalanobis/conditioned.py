"""Each sampled metric's GP, conditioned on data: the algebra that the posterior and its draws share."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..surrogate import Marginals
from .kernel import gram

if TYPE_CHECKING:
    from .stacked import Stack


class Conditioned:
    """Each sampled metric's GP, conditioned on data of its own: the algebra that the posterior and the draws share."""

    def __init__(
        self,
        Y: Tensor,  # *B x n x d
        v: Tensor,  # *B x (1 or m) x n, standardised outcomes
        noise: Tensor,  # *B x (1 or m) x n
        U: Tensor,  # m x d x d
        variance: Tensor,  # m
        shift: float,
        scale: float,
        root: Tensor | None = None,  # *B x m x n x n, the Cholesky factors of the covariances, where they are known
    ) -> None:
        self.shift, self.scale = shift, scale
        Z = Y.unsqueeze(-3) @ U.mT  # *B x m x n x d
        if root is None:
            L, keep = factor(gram(Z, Z, variance), noise)
        else:
            L, keep = root, torch.ones(len(U), dtype=torch.bool)
        if not bool(keep.all()):  # a draw whose covariance cannot be factored is left out
            U, variance, Z, L = U[keep], variance[keep], Z[..., keep, :, :], L[..., keep, :, :]
            v = v if v.shape[-2] == 1 else v[..., keep, :]
        self.keep, self.U, self.Z, self.m, self.variance = keep, U, Z, len(U), variance
        self.v = v.expand(*v.shape[:-2], self.m, v.shape[-1])
        self.Linv = torch.linalg.solve_triangular(L, torch.eye(Y.shape[-2], dtype=Y.dtype).expand_as(L), upper=False)
        ones = self.Linv.sum(-1)  # L^-1 1
        target = (self.Linv @ self.v.unsqueeze(-1)).squeeze(-1)  # L^-1 v
        self.mean = (ones * target).sum(-1) / (ones * ones).sum(-1)  # *B x m, the best constant mean
        self.white = target - self.mean.unsqueeze(-1) * ones  # L^-1 (v - mean)
        self.alpha = (self.Linv.mT @ self.white.unsqueeze(-1)).squeeze(-1)  # *B x m x n

    def part(self, some: slice | Tensor) -> Conditioned:
        """The same under some of the metrics; nothing is factored again."""
        out = copy(self)
        out.keep, out.U, out.variance = (
            torch.ones(len(self.U[some]), dtype=torch.bool),
            self.U[some],
            self.variance[some],
        )
        out.m = len(out.U)
        out.Z, out.Linv = self.Z[..., some, :, :].contiguous(), self.Linv[..., some, :, :].contiguous()
        out.v, out.white, out.alpha = self.v[..., some, :], self.white[..., some, :], self.alpha[..., some, :]
        out.mean = self.mean[..., some]
        return out

    def stacked(self, others: Sequence[Conditioned]) -> Stack | None:
        """These draws and those of other outcomes at the same points in one NumPy array; None where they do not fit."""
        from .stacked import Stack

        return Stack.of([self, *others]) if all(isinstance(one, Conditioned) for one in others) else None

    def foresaw(self, newest: int) -> Tensor:
        """The log density of the last outcomes given those before them, up to a constant.  -> *B x m"""
        roots = self.Linv.diagonal(dim1=-2, dim2=-1)
        densities: Tensor = roots.log() - 0.5 * self.white**2
        return densities[..., -newest:].sum(-1)

    def components(self, X: Tensor, full: bool = False) -> tuple[Tensor, Tensor]:
        """Mean and (co)variance under each metric, standardised.  ... x q x d -> ... x m x q, ... x m x q (x q)"""
        if self.Z.dim() == 3 and X.dim() > 2:  # all batches against the same data: one matrix product for each metric
            flat = X.reshape(-1, X.shape[-1])
            Z, mean, V, _ = self._project(flat)  # m x N x d, m x N, m x N x n
            batch, q = X.shape[:-2], X.shape[-2]
            Z, V = (T.reshape(self.m, *batch, q, T.shape[-1]).movedim(0, -3) for T in (Z, V))
            mean = mean.reshape(self.m, *batch, q).movedim(0, -2)
        else:
            Z, mean, V, _ = self._project(X)
        if not full:
            return mean, (self.variance[:, None] - (V * V).sum(-1)).clamp_min(1e-12)
        return mean, gram(Z, Z, self.variance) - V @ V.mT

    def _project(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Scaled points, posterior means, L^-1 k and k.  ... x q x d -> ... x m x q x d, ... x m x q, ... x m x q x n twice"""
        Z = X.unsqueeze(-3) @ self.U.mT
        k = gram(Z, self.Z, self.variance)
        return Z, self.mean.unsqueeze(-1) + (k @ self.alpha.unsqueeze(-1)).squeeze(-1), k @ self.Linv.mT, k

    def marginals(self, W: Tensor) -> Marginals:
        """Mean and variance at single points under each metric, with their vector-Jacobian product.  k x d -> m x k, m x k"""
        Z, mean, V, near = self._project(W)
        left = self.variance[:, None] - (V * V).sum(-1)

        def back(by_mean: Tensor, by_variance: Tensor) -> Tensor:
            by_variance = torch.where(left > 1e-12, by_variance, torch.zeros_like(left)).unsqueeze(-1)
            pull = by_mean.unsqueeze(-1) * self.alpha.unsqueeze(-2) - (2.0 * by_variance * V) @ self.Linv
            pull *= near
            return self._moved(pull, Z).sum(0)

        return Marginals(mean, left.clamp_min(1e-12), back)

    def slopes(self, W: Tensor) -> Tensor:
        """The gradient of each metric's mean at single points, standardised.  k x d -> m x k x d"""
        Z, _, _, near = self._project(W)
        return self._moved(near * self.alpha.unsqueeze(-2), Z)

    def _moved(self, pull: Tensor, Z: Tensor) -> Tensor:
        """How derivatives by the kernel's entries, times these, move the points.  m x k x n, m x k x d -> m x k x d"""
        moved: Tensor = (pull @ self.Z - pull.sum(-1, keepdim=True) * Z) @ self.U
        return moved


def factor(K: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Cholesky factors with as little jitter as it takes, and which samples have one.  -> ... x m x n x n, m"""
    info = torch.ones(())
    for jitter in (0.0, 1e-8, 1e-6):
        L, info = torch.linalg.cholesky_ex(K + torch.diag_embed(noise + jitter * K.diagonal(dim1=-2, dim2=-1)))
        bad = info != 0
        if not bool(bad.any()):
            break
    m = K.shape[-3]
    good = (info.reshape(-1, m) == 0).all(0)
    if not bool(good[0]):
        L = torch.linalg.cholesky(K + torch.diag_embed(noise + 1e-4 * K.diagonal(dim1=-2, dim2=-1)))
        good = torch.ones(m, dtype=torch.bool)
    return L, good
