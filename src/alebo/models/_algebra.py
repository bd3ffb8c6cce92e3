"""Linear algebra that all Gaussian processes share: distances, kernels, Cholesky factors and inverses."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri
from torch import Tensor

from .priors import Kernel

Array: TypeAlias = NDArray[np.float64]

LOG_2PI = math.log(2.0 * math.pi)
SMALL = 120  # up to this size SciPy's LAPACK is faster than Torch's, whose calls cost more


def squared_distances(U: Array, V: Array | None = None) -> Array:
    """Squared Euclidean distances, never negative; without V those among U.  (n x d, k x d) -> n x k"""
    if V is None:
        r2 = U @ U.T  # NumPy sees the symmetry and does half of the work
        half = r2.diagonal().copy()
        other = half
    else:
        r2 = U @ V.T
        half, other = np.einsum("ij,ij->i", U, U), np.einsum("ij,ij->i", V, V)
    r2 *= -2.0
    r2 += half[:, None]
    r2 += other
    return np.maximum(r2, 0.0, out=r2)


def kernel_of(r2: Array, kernel: Kernel) -> tuple[Array, Array]:
    """k and dk/dr2 at squared scaled distances."""
    if kernel == "rbf":
        k = np.exp(-0.5 * r2)
        return k, -0.5 * k
    r = np.sqrt(5.0 * r2)
    e = np.exp(-r)
    slope = (1.0 + r) * e
    k = slope + (r * r) * e / 3.0
    slope *= -5.0 / 6.0
    return k, slope


def invert(K: Array) -> tuple[float, Array] | None:
    """Half of the log determinant, and the inverse, of a symmetric matrix that is overwritten; None if not positive definite.

    By LAPACK as SciPy has it while calls are what costs, by Torch's, which is faster, beyond.
    """
    if len(K) > SMALL:
        root, failed = torch.linalg.cholesky_ex(torch.from_numpy(K))
        if int(failed) != 0 or not math.isfinite(float(root[-1, -1])):
            return None
        return float(root.diagonal().log().sum()), torch.cholesky_inverse(root).numpy()
    L, info = dpotrf(K.T, lower=1, clean=0, overwrite_a=1)
    if info != 0 or not math.isfinite(L[-1, -1]):
        return None
    log_root = float(np.log(L.diagonal()).sum())
    Kinv, _ = dpotri(L, lower=1, overwrite_c=1)
    return log_root, np.where(_lower(len(K)), Kinv, Kinv.T)


@lru_cache(maxsize=8)
def _lower(n: int) -> NDArray[np.bool_]:
    return np.tri(n, dtype=bool)


def safe_cholesky(K: Tensor) -> Tensor:
    """The lower factor, with as little added to the diagonal as makes it exist.  n x n -> n x n"""
    jitter = 0.0
    for _ in range(10):
        L: Tensor
        L, info = torch.linalg.cholesky_ex(K + jitter * torch.eye(len(K), dtype=K.dtype))
        if int(info) == 0:
            return L
        jitter = max(10.0 * jitter, 1e-9 * float(K.diagonal().mean()))
    raise AssertionError("a kernel matrix has no Cholesky factor even with a large jitter")
