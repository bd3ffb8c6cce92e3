"""A model of another kind in one file: a Bayesian linear model, used by plain BO's machinery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

import alebo
from alebo.methods import Supports, setting
from alebo.methods.bo import FullSpace
from alebo.models.surrogate import Drawn, Marginals


@dataclass(frozen=True, eq=False)
class Linear:
    """v = w'(1, x) + noise with a wide normal prior on w and a known noise variance."""

    points: Tensor
    v: Tensor
    noise: Tensor
    shift: float
    scale: float
    known_noise: bool = False
    memory: Sequence[Any] = ()

    @property
    def weights(self) -> tuple[Tensor, Tensor]:
        """Posterior mean and covariance of w.  -> d + 1, (d + 1) x (d + 1)"""
        F = with_one(self.points)
        precision = (F / self.noise[:, None]).T @ F + 0.01 * torch.eye(F.shape[1], dtype=torch.double)
        covariance = torch.linalg.inv(precision)
        return covariance @ (F.T @ (self.v / self.noise)), covariance

    def marginals(self, W: Tensor) -> Marginals:
        (mean, covariance), F = self.weights, with_one(W)

        def back(by_mean: Tensor, by_variance: Tensor) -> Tensor:
            return (by_mean[0][:, None] * mean + 2.0 * by_variance[0][:, None] * (F @ covariance))[:, 1:]

        return Marginals((F @ mean)[None], ((F @ covariance) * F).sum(-1)[None].clamp_min(1e-12), back)

    def draw(self, points: Tensor, rng: np.random.Generator) -> Drawn:
        raise NotImplementedError  # only acquisition functions for noise and several objectives need it

    def conditioned(self, points: Tensor, v: Tensor) -> Linear:
        more = torch.full_like(v, 1e-6)
        return replace(
            self,
            points=torch.cat([self.points, points]),
            v=torch.cat([self.v, v]),
            noise=torch.cat([self.noise, more]),
        )

    def believing(self, points: Tensor) -> Linear:
        return self.conditioned(points, self.marginals(points).mean[0])

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        found = self.marginals(self.points)
        return self.shift + self.scale * found.mean[0], self.scale * (found.variance[0] + self.noise).sqrt()


def with_one(X: Tensor) -> Tensor:
    return torch.cat([torch.ones_like(X[:, :1]), X], dim=1)


def fit_linear(X: Tensor, values: Tensor, *, variances: Any = None, warm: Any = (), seed: int = 0) -> Linear:
    shift, scale = float(values.mean()), float(values.std()) or 1.0
    return Linear(X, (values - shift) / scale, torch.full_like(values, 1e-3), shift, scale)


@dataclass(frozen=True)
class LinearBO(FullSpace):
    initial: int | None = setting(6, "first points")
    centre: bool = setting(False, "whether the middle of the space is the first point")
    name: ClassVar[str] = "linear"
    title: ClassVar[str] = "BO with a linear model"
    citation: ClassVar[str] = "none"
    supports: ClassVar[Supports] = Supports(constraints=True)

    def builder(self, D: int) -> Any:
        return fit_linear


def test_a_linear_model_finds_the_corner_of_a_linear_function() -> None:
    slope = np.array([1.0, -2.0, 0.5, 0.0])
    result = alebo.minimize(lambda x: float(slope @ x), [(-1, 1)] * 4, budget=10, seed=0, method=LinearBO())
    assert result.fun < -3.2  # -3.5 is the least


def test_constraints_and_batches_work_with_it() -> None:
    goals = [alebo.Minimize("f"), alebo.AtMost("g", 0.0)]
    opt = alebo.Optimizer(alebo.Space.from_bounds([(-1, 1)] * 3), goals, method=LinearBO(), seed=0)
    for _ in range(4):
        for t in opt.ask(3):
            opt.tell(t.number, {"f": t.x[0] + t.x[1], "g": -t.x[1]})
    assert opt.best().outcomes["f"].mean < -0.8  # -1 is the least: x0 = -1, x1 = 0
