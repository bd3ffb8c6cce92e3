"""Fitting the peers' Gaussian process under the priors of other papers than `_gp.fit_ard_gp`, which has one for all.

A trust region wants bounds and no prior (TuRBO), SAAS a half-Cauchy density, plain BO the exact default of BoTorch.
Inputs are points of the unit cube [0, 1]^D here, so that the numbers in those papers keep their meaning.
Letters: n observations, D coordinates, l lengthscales, s the output scale, v the noise variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from ._gp import GP, Kernel, kernel_of, safe_cholesky, squared_distances

Array: TypeAlias = NDArray[np.float64]
Penalty: TypeAlias = Callable[[Array], tuple[float, Array]]  # of log l: minus log density, and its gradient


@dataclass(frozen=True)
class Priors:
    """Bounds of l, s and v, and minus the log densities of their values; where a bound's ends meet, the value is fixed."""

    kernel: Kernel
    lengthscale: tuple[float, float]
    scale: tuple[float, float]
    noise: tuple[float, float]
    lengthscale_penalty: Penalty | None = None
    noise_lognormal: tuple[float, float] | None = None  # mean and sd of log v
    starts: tuple[float, ...] = (0.5,)  # lengthscales from which the fit starts
    start_noise: float = 1e-2


def fit(X: Array, y: Array, priors: Priors, *, variance: Array | None = None, iterations: int = 100) -> GP:
    """The process of highest posterior density; `variance` holds noise variances that are known.  n x D, n"""
    shift, deviation = float(np.mean(y)), float(np.std(y, ddof=1)) if len(y) > 1 else 0.0
    spread = deviation if deviation > 1e-12 * max(1.0, abs(shift)) else 1.0
    Xt, z = torch.as_tensor(X, dtype=torch.double), torch.as_tensor((y - shift) / spread, dtype=torch.double)
    known = None if variance is None else torch.as_tensor(np.maximum(variance / spread**2, 1e-6))
    D = Xt.shape[1]
    bounds = [_log(priors.lengthscale)] * D + [_log(priors.scale)] + ([] if known is not None else [_log(priors.noise)])
    low, high = np.array(bounds).T
    best: tuple[float, Array] = (math.inf, low)
    for start in priors.starts:
        theta = np.array([math.log(start)] * D + [0.0] + ([] if known is not None else [math.log(priors.start_noise)]))
        found = minimize(
            objective,
            np.clip(theta, low, high),
            args=(Xt, z, priors, known),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": iterations, "maxfun": 2 * iterations},
        )
        if found.fun < best[0]:
            best = (float(found.fun), np.asarray(found.x))
    theta = best[1]
    noise = known if known is not None else torch.full((len(z),), math.exp(theta[D + 1]), dtype=torch.double)
    return process(Xt, z, priors.kernel, np.exp(theta[:D]), math.exp(theta[D]), noise, shift, spread, -best[0])


def process(
    X: Tensor,
    z: Tensor,
    kernel: Kernel,
    lengthscales: Array,
    scale: float,
    noise: Tensor,
    shift: float,
    spread: float,
    log_density: float = math.nan,
    mean: float | None = None,
) -> GP:
    """The process with these parameters; the constant mean, where it is not given, at its most likely value."""
    ls = torch.as_tensor(lengthscales)
    K = scale * kernel_of(squared_distances(X / ls, X / ls), kernel)[0]
    K.diagonal().add_(noise)
    L = safe_cholesky(K)
    if mean is None:
        weights = torch.cholesky_solve(torch.ones_like(z)[:, None], L)[:, 0]
        mean = float(weights @ z / weights.sum())
    alpha = torch.cholesky_solve((z - mean)[:, None], L)[:, 0]
    return GP(X, z, kernel, ls, scale, noise, mean, shift, spread, L, alpha, log_density)


def leave_one_out(gp: GP) -> float:
    """The summed log density of each standardised observation given all others (Rasmussen and Williams, eq. 5.10-5.12)."""
    precision = torch.cholesky_inverse(gp.chol).diagonal()
    return float(0.5 * (precision.log() - gp.alpha.square() / precision - math.log(2 * math.pi)).sum())


def objective(theta: Array, X: Tensor, z: Tensor, priors: Priors, known: Tensor | None) -> tuple[float, Array]:
    """Minus the log posterior density at (log l, log s, log v), and its gradient.

    The mean stands at its best value for these parameters, so that it needs no derivative of its own.
    """
    n, D = X.shape
    s, v = math.exp(theta[D]), math.exp(theta[D + 1]) if known is None else 0.0
    U = X / torch.as_tensor(np.exp(theta[:D]))
    k, dk = kernel_of(squared_distances(U, U), priors.kernel)
    K = s * k
    K.diagonal().add_(v if known is None else known)
    L, info = torch.linalg.cholesky_ex(K)
    if int(info):
        return 1e10, np.zeros_like(theta)
    inverse = torch.cholesky_inverse(L)
    a, one = inverse @ z, inverse.sum(dim=1)
    a = a - (a.sum() / one.sum()) * one
    value = float(0.5 * (z @ a) + L.diagonal().log().sum()) + 0.5 * n * math.log(2 * math.pi)
    G = inverse - torch.outer(a, a)  # twice the derivative by K
    W = s * G * dk
    # sum_ij W_ij (u_id - u_jd)^2 for every d by two products, without an n x n x D array
    grad = np.zeros_like(theta)
    grad[:D] = (2.0 * ((U * (W @ U)).sum(dim=0) - W.sum(dim=1) @ U.square())).numpy()
    grad[D] = 0.5 * s * float((G * k).sum())
    if known is None:
        grad[D + 1] = 0.5 * v * float(G.diagonal().sum())
    if priors.lengthscale_penalty is not None:
        extra, slope = priors.lengthscale_penalty(theta[:D])
        value += extra
        grad[:D] += slope
    if priors.noise_lognormal is not None and known is None:
        centre, width = priors.noise_lognormal
        t = (theta[D + 1] - centre) / width
        value += 0.5 * t * t + theta[D + 1]
        grad[D + 1] += t / width + 1.0
    return value, grad


def _log(bounds: tuple[float, float]) -> tuple[float, float]:
    return math.log(bounds[0]), math.log(bounds[1])
