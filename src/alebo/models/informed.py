"""Models of the present task beside those that know an earlier one, and models of a cube seen from a subspace of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .surrogate import Marginals, Mixture, Surrogate, unexplained

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Informed(Mixture):
    """Models of the present task alone, and beside them those that also know an earlier one."""

    alone: Surrogate | None = None  # the model of the present task alone, which is among the models

    @property
    def memory(self) -> list[Any]:
        """That of the model of the present task alone: the others have none."""
        return list(self.alone.memory) if self.alone is not None else super().memory

    def unexplained(self) -> float:
        """The share of the outcomes' variation that the model of the present task alone does not predict."""
        own: Any = self.alone
        return float(own.unexplained() if hasattr(own, "unexplained") else unexplained(own))

    def share(self, i: int, of: int) -> Informed:
        """The same with a part of the samples of those models that have many."""
        parts = [m.share(i, of) if hasattr(m, "share") else m for m in self.models]
        return replace(self, models=tuple(parts))


@dataclass(frozen=True, eq=False)
class Inside:
    """A model of a cube, seen from an affine subspace of it: u = x0 + A y."""

    model: Surrogate
    A: Array  # D x d
    x0: Array  # D
    points: Tensor  # n x d, the training points

    def _up(self, W: Tensor) -> Tensor:
        return torch.from_numpy(self.x0 + W.detach().numpy() @ self.A.T)

    @property
    def v(self) -> Tensor:
        return self.model.v

    @property
    def shift(self) -> float:
        return self.model.shift

    @property
    def scale(self) -> float:
        return self.model.scale

    @property
    def noise(self) -> Tensor:
        return self.model.noise

    @property
    def known_noise(self) -> bool:
        return self.model.known_noise

    @property
    def memory(self) -> Sequence[Any]:
        return self.model.memory

    def marginals(self, W: Tensor) -> Marginals:
        """Mean and variance at single points, with their vector-Jacobian product.  k x d -> p x k, p x k"""
        mean, variance, pull = self.model.marginals(self._up(W))
        A = torch.from_numpy(self.A)
        return Marginals(mean, variance, lambda by_mean, by_variance: pull(by_mean, by_variance) @ A)

    def draw(self, points: Tensor, rng: np.random.Generator) -> Inside:
        """Joint draws at these points.  k x d"""
        return replace(self, model=self.model.draw(self._up(points), rng), points=points)  # type: ignore[arg-type]

    def conditioned(self, points: Tensor, v: Tensor) -> Inside:
        """The same with noiseless observations `v` at more points.  k x d, k"""
        return replace(self, model=self.model.conditioned(self._up(points), v), points=torch.cat([self.points, points]))

    def believing(self, points: Tensor) -> Inside:
        """As if these points had been found at the mean.  k x d"""
        return replace(self, model=self.model.believing(self._up(points)), points=torch.cat([self.points, points]))

    def noise_evidence(self) -> float:
        return self.model.noise_evidence()

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        return self.model.leave_one_out()


@dataclass(frozen=True, eq=False)
class Data:
    """What a model was fitted to, standardised."""

    points: Tensor  # n x d
    v: Tensor  # n
    noise: Tensor  # n
    known_noise: bool
    shift: float
    scale: float

    @classmethod
    def of(cls, model: Surrogate, points: Tensor | None = None) -> Data:
        """The data of a model, at other points where these are given.  n x D"""
        at = model.points if points is None else points
        return cls(at, model.v, model.noise, model.known_noise, model.shift, model.scale)
