"""What Gaussian processes that hold the inverse Cholesky factor of their data's covariance have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ._algebra import LOG_2PI
from .priors import NOISE_FLOOR
from .surrogate import Marginals

Array: TypeAlias = NDArray[np.float64]


class Process:
    """Conditioning and leave-one-out predictions; a dataclass of these fields inherits it."""

    X: Array  # n x D
    targets: Array  # n standardised outcomes, or p x n draws of them
    noises: Array  # n, variances, standardised
    shift: float
    scale: float

    @property
    def _root_inverse(self) -> Array:
        """The inverse of the Cholesky factor of the covariance of the data.  -> n x n"""
        raise NotImplementedError

    @property
    def _weights(self) -> Array:
        """K^-1 (v - prior mean).  -> p x n"""
        raise NotImplementedError

    def marginals(self, W: Tensor) -> Marginals:
        """Mean and variance at single points, standardised.  k x D -> p x k, p x k"""
        raise NotImplementedError

    def conditioned(self, X: Tensor, v: Tensor) -> Self:
        """The same process with noiseless observations `v`, standardised, at `X`.  k x D, k"""
        return replace(  # type: ignore[type-var]
            self,
            X=np.concatenate([self.X, X.detach().numpy()]),
            targets=np.concatenate([self.targets, v.detach().numpy()]),
            noises=np.concatenate([self.noises, np.full(len(X), NOISE_FLOOR)]),
        )

    def believing(self, points: Tensor) -> Self:
        """The process as if these points had been measured and found at its mean: for pending points.  k x D"""
        return self.conditioned(points, self.marginals(points).mean[0])

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation at each point as predicted from the others, in the user's units.  -> n, n"""
        precision = np.square(self._root_inverse).sum(0)
        mean = self.targets - self._weights[0] / precision
        return (
            torch.from_numpy(self.shift + self.scale * mean),
            torch.from_numpy(self.scale / np.sqrt(precision)),
        )

    def loo_log_density(self) -> float:
        """The summed log density of each standardised observation given all others (Rasmussen and Williams, eq. 5.10)."""
        precision = np.square(self._root_inverse).sum(0)
        return float(0.5 * (np.log(precision) - self._weights[0] ** 2 / precision - LOG_2PI).sum())
