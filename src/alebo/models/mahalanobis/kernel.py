"""The kernel that a linear embedding gives to an ARD RBF function (paper, Proposition 1)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from torch import Tensor

Array: TypeAlias = NDArray[np.float64]


def distances(Z1: Tensor, Z2: Tensor) -> Tensor:
    """Squared Euclidean distances, never negative.  (... x n x d, ... x k x d) -> ... x n x k"""
    sq = (Z1**2).sum(-1, keepdim=True) + (Z2**2).sum(-1, keepdim=True).mT - 2.0 * Z1 @ Z2.mT
    return sq.clamp_min(0.0)


def gram(Z1: Tensor, Z2: Tensor, variance: Tensor) -> Tensor:
    """s^2 exp(-|z - z'|^2 / 2) at points z = U y.  (... x n x d, ... x k x d, ...) -> ... x n x k"""
    if torch.is_grad_enabled() and (Z1.requires_grad or Z2.requires_grad or variance.requires_grad):
        return variance[..., None, None] * torch.exp(-0.5 * distances(Z1, Z2))
    K = (Z1**2).sum(-1, keepdim=True) + (Z2**2).sum(-1, keepdim=True).mT  # in place from here: half of the time
    K.sub_(2.0 * Z1 @ Z2.mT).clamp_min_(0.0).mul_(-0.5).exp_()
    scale = variance[..., None, None]
    return K.mul_(scale) if torch.broadcast_shapes(scale.shape, K.shape) == K.shape else scale * K


def gram_of_logs(Z: Array, log_scale: float) -> Array:
    """`gram` of points among themselves in NumPy and in one exponent: for the likelihood, the busiest line.  -> n x n"""
    half = 0.5 * (log_scale - np.einsum("ij,ij->i", Z, Z))
    K = Z @ Z.T
    K += half[:, None]
    K += half
    np.minimum(K, log_scale, out=K)
    return np.exp(K, out=K)


class MahalanobisKernel(Kernel):
    """exp(-(y - y')' Gamma (y - y')) with Gamma = U'U / 2 and U upper triangular; wrap it in a ScaleKernel for sigma^2.

    Unlike an ARD kernel it can turn: it has d (d + 1) / 2 parameters instead of d, and is the exact image of an
    ARD RBF kernel on any linear subspace.
    """

    has_lengthscale = False

    def __init__(self, dim: int, U: Tensor | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dim = dim
        row, column = torch.triu_indices(dim, dim)
        self.register_buffer("row", row)
        self.register_buffer("column", column)
        start = torch.eye(dim, dtype=torch.double) if U is None else U
        self.register_parameter("raw_U", torch.nn.Parameter(start[row, column].clone()))
        self.register_constraint("raw_U", Interval(-1e6, 1e6, transform=None))

    @property
    def U(self) -> Tensor:
        """The upper triangular factor.  -> d x d"""
        U = self.raw_U.new_zeros(self.dim, self.dim)
        filled: Tensor = U.index_put((self.row, self.column), self.raw_U)
        return filled

    @property
    def gamma(self) -> Tensor:
        """The metric of the paper.  -> d x d"""
        return 0.5 * self.U.mT @ self.U

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        Z1, Z2 = x1 @ self.U.mT, x2 @ self.U.mT
        if diag:
            return torch.exp(-0.5 * ((Z1 - Z2) ** 2).sum(-1))
        return gram(Z1, Z2, torch.ones((), dtype=Z1.dtype))
