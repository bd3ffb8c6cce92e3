"""Uncertainty of the metric: a Laplace approximation with diagonal Hessian, and draws from it (paper, S2)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .likelihood import Hyperparameters, LogPosterior

FLOOR = 0.5  # least precision of an entry of U: a direction that the data say nothing about
MOST_POINTS = 400  # the exact Hessian costs d n^3; beyond this many points it is taken from a subset and scaled


def default_inflation(n: int) -> float:
    """How much wider than Laplace's the distribution of the metric is taken to be, for n observations.

    The true approximation is too sure of itself; n times its covariance, as the paper's code has it, too unsure once n is
    large. This lies between, generous while there are few data: docs/model.md has the measurements.
    """
    return 10.0 + 500.0 / n


def draws(
    posterior: LogPosterior, mode: Hyperparameters, m: int, rng: np.random.Generator, *, inflation: float
) -> Tensor:
    """The mode and m - 1 draws of U around it.  -> m x d x d

    `inflation` multiplies the covariance of the approximation. An entry whose curvature is not that of a maximum gets
    the least precision, `FLOOR`.
    """
    if m == 1:
        return mode.U[None]
    precision = -_curvature(posterior, mode, rng)
    floor = max(posterior.prior.ridge, FLOOR)
    precision = torch.triu(torch.clamp(precision / inflation, min=floor))
    noise = torch.from_numpy(rng.standard_normal((m - 1, posterior.d, posterior.d)))
    U = mode.U + torch.triu(noise) / torch.sqrt(torch.where(precision > 0, precision, torch.ones_like(precision)))
    return torch.cat([mode.U[None], torch.triu(U)])


def _curvature(posterior: LogPosterior, mode: Hyperparameters, rng: np.random.Generator) -> Tensor:
    n = posterior.n
    if n <= MOST_POINTS:
        return posterior.curvature(mode)
    keep = torch.from_numpy(np.sort(rng.choice(n, MOST_POINTS, replace=False)))
    known = None if posterior.known is None else posterior.known[keep]
    part = LogPosterior(posterior.Y[keep], posterior.v[keep], known, posterior.prior)
    return part.curvature(mode) * (n / MOST_POINTS)
