"""A sum of small Gaussian processes over disjoint groups of coordinates: what Add-GP-UCB and EBO share.

f(x) = c + sum over groups g of f_g(x_g), f_g with kernel s_g exp(-|x_g - x'_g|^2 / (2 l^2)). One lengthscale, and a
variance s_g for each group, fitted together: a group that does nothing ends with almost none. Letters: n points, D
coordinates, M groups of at most G coordinates. Inputs in the cube [-1, 1]^D; outcomes are standardised here.
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

from .._seeds import generator
from ._algebra import safe_cholesky
from .outcomes import Standardisation
from .priors import NOISE_FLOOR

Array: TypeAlias = NDArray[np.float64]
Groups: TypeAlias = list[list[int]]

LENGTHSCALES = (0.3, 0.6, 1.2)  # tried in turn, for a cube of side 2
_FLOOR = 1e-6  # the least variance of a group, standardised units


def random_groups(D: int, size: int, seed: int) -> Groups:
    """A uniformly random partition of D coordinates into groups of `size` (the last may be smaller)."""
    order = generator(seed, "groups").permutation(D)
    return [sorted(int(j) for j in order[i : i + size]) for i in range(0, D, size)]


def gather(X: Tensor, groups: Groups) -> Tensor:
    """The coordinates of every group, padded by zeros.  ... n x D -> M x n x G"""
    G = max(map(len, groups))
    D = X.shape[-1]
    index = torch.tensor([g + [D] * (G - len(g)) for g in groups])
    padded = torch.cat([X, torch.zeros(len(X), 1, dtype=X.dtype)], dim=1)
    return padded[:, index].permute(1, 0, 2).contiguous()


def spread_out(Z: Tensor, groups: Groups, D: int) -> Tensor:
    """The opposite of `gather` for one point per group.  M x G -> D"""
    x = torch.zeros(D, dtype=Z.dtype)
    for row, g in zip(Z, groups, strict=True):
        x[g] = row[: len(g)]
    return x


@dataclass(frozen=True, eq=False)
class AdditiveGP:
    """The fitted sum. `group` predicts every group on its own, `posterior` their sum; both in standardised units."""

    X: Tensor  # n x D
    groups: Groups
    lengthscale: float
    scales: Tensor  # M
    noise: float
    shift: float
    spread: float
    chol: Tensor  # n x n
    alpha: Tensor  # n
    log_likelihood: float

    @property
    def weights(self) -> Array:
        """Each coordinate's share of its group's variance.  -> D"""
        w = np.zeros(self.X.shape[1])
        for s, g in zip(self.scales.tolist(), self.groups, strict=True):
            w[g] = s / len(g)
        return w

    def group(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of f_g at points of each group.  M x m x G -> M x m, M x m"""
        k = self.scales[:, None, None] * _rbf(Z, gather(self.X, self.groups), self.lengthscale)
        M, m, n = k.shape
        v = torch.linalg.solve_triangular(self.chol, k.reshape(M * m, n).T, upper=False)
        return k @ self.alpha, (self.scales[:, None] - v.square().sum(0).reshape(M, m)).clamp_min(1e-12)

    def posterior(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of f.  m x D -> m, m"""
        by_group = _rbf(gather(X, self.groups), gather(self.X, self.groups), self.lengthscale)
        k = torch.einsum("g,gmn->mn", self.scales, by_group)
        v = torch.linalg.solve_triangular(self.chol, k.T, upper=False)
        return k @ self.alpha, (self.scales.sum() - v.square().sum(0)).clamp_min(1e-12)


def _rbf(Z: Tensor, X: Tensor, lengthscale: float) -> Tensor:
    """M x m x G, M x n x G -> M x m x n"""
    precision = 0.5 / lengthscale**2
    Zs, Xs = math.sqrt(2.0 * precision) * Z, math.sqrt(2.0 * precision) * X
    minus = torch.baddbmm(-0.5 * Zs.square().sum(-1)[:, :, None], Zs, Xs.transpose(1, 2))  # -r2 / 2, but for |X|^2
    if minus.requires_grad:
        return torch.exp((minus - 0.5 * Xs.square().sum(-1)[:, None, :]).clamp_max(0.0))
    return minus.sub_(0.5 * Xs.square().sum(-1)[:, None, :]).clamp_max_(0.0).exp_()  # in place: it can be 80 MB


def _negative_log_posterior(theta: Array, flat: Tensor, z: Tensor, infer_noise: bool) -> tuple[float, Array]:
    """Minus the log posterior density of (log variances, log noise), and its gradient.  M + 1, M x n^2, n"""
    M, n = len(theta) - 1, len(z)
    s = torch.from_numpy(np.exp(theta[:M]))
    sigma = math.exp(theta[M])
    K = (s @ flat).reshape(n, n)
    K.diagonal().add_(sigma)
    L, info = torch.linalg.cholesky_ex(K)
    if int(info) > 0:
        return 1e10, np.zeros_like(theta)
    inverse = torch.cholesky_inverse(L)
    a = inverse @ z
    W = 0.5 * (inverse - torch.outer(a, a))
    value = 0.5 * float(z @ a) + float(L.diagonal().log().sum()) + float(s.sum())
    grad = np.append((flat @ W.reshape(-1)).numpy() + 1.0, 0.0)
    grad[:M] *= s.numpy()
    if infer_noise:
        grad[M] = float(W.diagonal().sum()) * sigma + 0.1 * (theta[M] + 7.0)
        value += 0.05 * (theta[M] + 7.0) ** 2
    return value, grad


def fit_additive(
    X: Array,
    y: Array,
    groups: Groups,
    *,
    lengthscales: Sequence[float] = LENGTHSCALES,
    weights: Array | None = None,
    iterations: int = 30,
    noise: float | None = None,
) -> AdditiveGP:
    """The most probable variances, noise and lengthscale (of those offered) for this decomposition.

    `weights` are where the variances start, by coordinate; `noise` in standardised units is inferred where None. An
    exponential prior on the variances keeps idle groups small.
    """
    Xt = torch.from_numpy(np.ascontiguousarray(X))
    n, D = Xt.shape
    y = np.asarray(y, dtype=float)
    units = Standardisation.of(y)
    z = torch.from_numpy(units(y))
    w = np.full(D, 1.0 / D) if weights is None else weights
    start = np.log(np.maximum([w[g].sum() for g in groups], 10 * _FLOOR))
    first = math.log(1e-2 if noise is None else max(noise, NOISE_FLOOR))
    best: tuple[float, Array, float, Tensor] | None = None
    M = len(groups)
    Z = gather(Xt, groups)
    for lengthscale in lengthscales:
        flat = _rbf(Z, Z, lengthscale).reshape(M, n * n)

        bounds = [(math.log(_FLOOR), math.log(20.0))] * M
        bounds.append((first, first) if noise is not None else (math.log(NOISE_FLOOR), 0.0))
        found = minimize(
            _negative_log_posterior,
            np.append(start, first),
            args=(flat, z, noise is None),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": iterations},
        )
        if best is None or float(found.fun) < best[0]:
            best = (float(found.fun), np.asarray(found.x), lengthscale, flat)
    assert best is not None
    value, theta, lengthscale, flat = best
    scales, sigma = torch.from_numpy(np.exp(theta[:M])), math.exp(theta[M])
    K = (scales @ flat).reshape(n, n)
    K.diagonal().add_(sigma)
    L = safe_cholesky(K)
    alpha = torch.cholesky_solve(z[:, None], L)[:, 0]
    return AdditiveGP(Xt, groups, lengthscale, scales, sigma, units.shift, units.scale, L, alpha, -value)


def minimise_bounds(
    gp: AdditiveGP, width: Tensor, lower: Array, upper: Array, seed: int, *, raw: int = 48, extra: Array | None = None
) -> Array:
    """The point whose every group has the smallest mean_g - width_g sd_g, in the box.  -> D

    The groups do not meet, so the bound is minimised group by group: random points for each, then one L-BFGS-B over all
    coordinates, which is as many small searches at once. `extra` (m x D) are points to start from, too.
    """
    D = len(lower)
    rng = generator(seed, "bounds")
    points = lower + rng.random((raw, D)) * (upper - lower)
    if extra is not None:
        points = np.concatenate([np.clip(extra, lower, upper), points])

    def bound(Z: Tensor) -> Tensor:
        mean, variance = gp.group(Z)
        return mean - width[:, None] * variance.sqrt()

    with torch.no_grad():
        Z = gather(torch.from_numpy(points), gp.groups)
        chosen = bound(Z).argmin(dim=1)
        start = spread_out(Z[torch.arange(len(Z)), chosen], gp.groups, D).numpy()

    def objective(x: Array) -> tuple[float, Array]:
        X = torch.from_numpy(x[None]).requires_grad_(True)
        total = bound(gather(X, gp.groups)).sum()
        (g,) = torch.autograd.grad(total, X)
        return float(total.detach()), g.numpy()[0]

    box = list(zip(lower, upper, strict=True))
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": 30})
    x: Array = np.clip(np.asarray(found.x if found.fun <= objective(start)[0] else start), lower, upper)
    return x
