"""Wrappers that change what an acquisition function counts, and keep its constraints, objectives and pending points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from ..models.surrogate import Surrogate
from .functions import Acquisition, value_and_gradient

LEAST_CORRELATION = 1e-6
LEAST_RATIO = 1e-12  # of a squared distance and a squared width


class PerCost(torch.nn.Module):
    """Any acquisition function per unit of what an evaluation costs; `cost` is a model of the logarithm of the cost."""

    def __init__(self, acquisition: Acquisition, cost: Surrogate) -> None:
        super().__init__()
        self.acquisition, self.cost = acquisition, cost

    def forward(self, X: Tensor) -> Tensor:
        """... x 1 x d -> ..."""
        log_cost = self.cost.marginals(X.reshape(-1, X.shape[-1])).mean.mean(0).reshape(X.shape[:-2])
        return self.acquisition(X) - (self.cost.shift + self.cost.scale * log_cost)

    def with_gradient(self, W: Tensor) -> tuple[Tensor, Tensor]:
        """The value at each point and its gradient.  k x d -> k, k x d"""
        value, gradient = value_and_gradient(self.acquisition, W)
        found = self.cost.marginals(W)
        share = torch.full_like(found.mean, self.cost.scale / len(found.mean))
        log_cost = self.cost.shift + self.cost.scale * found.mean.mean(0)
        return value - log_cost, gradient - found.back(share, torch.zeros_like(found.mean))


class Correlated(Protocol):
    """A model that knows how its outcomes at two points go together."""

    def correlation(self, A: Tensor, B: Tensor) -> Tensor:
        """The posterior correlation at pairs of points, differentiable.  ... x d, ... x d -> ..."""


class PerLook(torch.nn.Module):
    """Any acquisition function of the target fidelity, times what a cheaper look tells about it, per unit of cost.

    The augmented EI of Huang et al. 2006 for a continuous fidelity in coordinate 0: a point is worth its acquisition at the
    target, times the posterior correlation of its own outcomes with those at the target (the geometric mean over the
    objectives), divided by its cost. The wrapped function must count improvement at the target fidelity (`target=at_target`).
    """

    def __init__(
        self, acquisition: Acquisition, objectives: Sequence[Correlated], log_cost: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.acquisition, self.objectives, self.log_cost = acquisition, list(objectives), log_cost

    def forward(self, X: Tensor) -> Tensor:
        """... x 1 x d -> ..."""
        return self.acquisition(at_target(X)) + self._look(X)

    def with_gradient(self, W: Tensor) -> tuple[Tensor, Tensor]:
        """The value at each point and its gradient.  k x d -> k, k x d"""
        value, gradient = value_and_gradient(self.acquisition, at_target(W))
        with torch.enable_grad():
            X = W.detach().requires_grad_(True)
            look = self._look(X.unsqueeze(-2))
            (more,) = torch.autograd.grad(look.sum(), X)
        gradient = gradient.clone()
        gradient[:, 0] = 0.0  # the wrapped function sees the target, whatever the fidelity of the look
        return value + look.detach(), gradient + more

    def _look(self, X: Tensor) -> Tensor:
        """The log of what a look tells for its cost.  ... x 1 x d -> ..."""
        points = X.squeeze(-2)
        shared = torch.stack([m.correlation(points, at_target(points)).abs() for m in self.objectives])
        return shared.clamp(LEAST_CORRELATION, 1.0).log().mean(0) - self.log_cost(X)


class Through(torch.nn.Module):
    """Any acquisition function of features of the points: where a model compares f(y) and the search is over y."""

    def __init__(self, acquisition: Acquisition, features: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.acquisition, self.features = acquisition, features  # features: k x d -> k x f

    def forward(self, X: Tensor) -> Tensor:
        """... x 1 x d -> ..."""
        return self.acquisition(self.features(X))

    def with_gradient(self, W: Tensor) -> tuple[Tensor, Tensor]:
        """The value at each point and its gradient.  k x d -> k, k x d"""
        with torch.enable_grad():
            X = W.detach().requires_grad_(True)
            F = self.features(X)
            value, by_features = value_and_gradient(self.acquisition, F.detach())
            (gradient,) = torch.autograd.grad(F, X, by_features)
        return value, gradient


class Unseen(torch.nn.Module):
    """Any acquisition function, times the probability that a point's outcomes are not just those of a known point again.

    That probability is 1 - exp(-(r / width)^2), with r the distance from the nearest known point.
    """

    def __init__(
        self,
        acquisition: Acquisition,
        known: Tensor,  # n x D
        width: float,
        place: Callable[[Tensor], Tensor] | None = None,  # of points where the known ones are: k x d -> k x D
    ) -> None:
        super().__init__()
        self.acquisition, self.known, self.width, self.place = acquisition, known, width, place

    def forward(self, X: Tensor) -> Tensor:
        """... x 1 x d -> ..."""
        return self.acquisition(X) + self._new(X.reshape(-1, X.shape[-1])).reshape(X.shape[:-2])

    def with_gradient(self, W: Tensor) -> tuple[Tensor, Tensor]:
        """The value at each point and its gradient.  k x d -> k, k x d"""
        value, gradient = value_and_gradient(self.acquisition, W)
        with torch.enable_grad():
            X = W.detach().requires_grad_(True)
            new = self._new(X)
            (more,) = torch.autograd.grad(new.sum(), X)
        return value + new.detach(), gradient + more

    def _new(self, W: Tensor) -> Tensor:
        """The log of the probability.  k x d -> k"""
        X = W if self.place is None else self.place(W)
        nearest = torch.cdist(X.detach(), self.known).argmin(dim=1)
        ratio = ((X - self.known[nearest]) ** 2).sum(-1) / self.width**2
        return torch.log(-torch.expm1(-ratio.clamp_min(LEAST_RATIO)))


def at_target(X: Tensor) -> Tensor:
    """The same points with coordinate 0, the fidelity, at its target.  ... x d -> ... x d"""
    return torch.cat([torch.ones_like(X[..., :1]), X[..., 1:]], dim=-1)
