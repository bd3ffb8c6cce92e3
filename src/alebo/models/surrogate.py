"""The protocol of a model: what acquisition functions and diagnostics need, and all that they use.

A model of one outcome is fitted and frozen. Inside, outcomes are standardised: outcome = shift + scale * v. A new model is
one file with a class that has these members; `tests/models/test_surrogate.py` checks them for every model in its list.
Letters: n training points, k new points, d coordinates, p equally likely explanations of the data (1 for a plain GP).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from .._errors import InputError


class Marginals(NamedTuple):
    """Posterior means and variances at single points, standardised, under each of p equally likely explanations.

    `back` is the vector-Jacobian product: it takes the derivatives of a number by `mean` and by `variance` and returns
    those by the points, in closed form.
    """

    mean: Tensor  # p x k
    variance: Tensor  # p x k
    back: Callable[[Tensor, Tensor], Tensor]  # (p x k, p x k) -> k x d

    def matched(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of the mixture of all explanations.  -> k, k"""
        return self.mean.mean(0), self.variance.mean(0) + self.mean.var(0, unbiased=False)


class Drawn(Protocol):
    """Joint draws of a noiseless outcome at some points, and the model conditioned on each of them."""

    @property
    def v(self) -> Tensor:
        """The draws, standardised.  -> p x n"""

    @property
    def shift(self) -> float: ...

    @property
    def scale(self) -> float: ...

    def marginals(self, W: Tensor) -> Marginals:
        """Mean and variance of the noiseless outcome at single points, with gradients.  k x d -> p x k, p x k"""


class Surrogate(Drawn, Protocol):
    """A fitted model of one outcome; its `v` are the n standardised outcomes, its marginals those of the posterior."""

    @property
    def points(self) -> Tensor:
        """The training points.  -> n x d"""

    @property
    def noise(self) -> Tensor:
        """The noise variance of every standardised outcome.  -> n"""

    @property
    def known_noise(self) -> bool:
        """Whether the noise was reported and not inferred."""

    @property
    def memory(self) -> Sequence[Any]:
        """Where the next fit may start: plain numbers for a trial's note."""

    def draw(self, points: Tensor, rng: np.random.Generator) -> Drawn:
        """Joint draws at these points, one or more for each explanation.  k x d"""

    def conditioned(self, points: Tensor, v: Tensor) -> Surrogate:
        """The same model with noiseless observations `v`, standardised, at more points.  k x d, k"""

    def believing(self, points: Tensor) -> Surrogate:
        """The model as if these points had been measured and found at its mean: for pending points.  k x d"""

    def noise_evidence(self) -> float:
        """By how much the data are more likely with noise than without any: a log likelihood ratio."""

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation at each training point as predicted from the others, in the user's units.  -> n, n"""


def in_units(model: Surrogate, W: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the noiseless outcome in the user's units, of all explanations.  k x d -> k, k"""
    mean, variance = model.marginals(W).matched()
    return model.shift + model.scale * mean, model.scale * variance.sqrt()


def unexplained(model: Surrogate) -> float:
    """The share of the outcomes' variation that the others do not predict, beyond the noise: 0 for a perfect model."""
    mean, _ = model.leave_one_out()
    off = (mean - model.shift) / model.scale - model.v
    total = float(model.v.var(unbiased=False))
    return max(float((off**2).mean() - model.noise.mean()) / total, 0.0) if total > 0 else 0.0


@dataclass(frozen=True, eq=False)
class _Draws:
    """The draws of several models as those of one."""

    models: tuple[Drawn, ...]

    @property
    def v(self) -> Tensor:
        """All draws.  -> p x n"""
        return torch.cat([model.v for model in self.models])

    @property
    def shift(self) -> float:
        return self.models[0].shift

    @property
    def scale(self) -> float:
        return self.models[0].scale

    def marginals(self, W: Tensor) -> Marginals:
        """All explanations of all models, one after the other.  k x d -> p x k, p x k"""
        return _joined([model.marginals(W) for model in self.models])


@dataclass(frozen=True, eq=False)
class Mixture(_Draws):
    """Several models of the same data, all equally likely: an acquisition averages over them.

    Where two priors explain the data in different ways, the average keeps both in mind: expected improvement is the mean of
    the models' expected improvements.
    """

    models: tuple[Surrogate, ...]

    def __post_init__(self) -> None:
        if not self.models:
            raise InputError("A mixture needs one model or more; got none.")
        first = self.models[0]
        for other in self.models[1:]:
            if other.shift != first.shift or other.scale != first.scale or not torch.equal(other.points, first.points):
                raise InputError(
                    "The models of a mixture are fitted to the same data; got models of different points or outcomes. "
                    "Fit all of them to one data set."
                )

    @property
    def points(self) -> Tensor:
        """The training points, which all models share.  -> n x d"""
        return self.models[0].points

    @property
    def v(self) -> Tensor:
        """Their standardised outcomes.  -> n"""
        return self.models[0].v

    @property
    def noise(self) -> Tensor:
        """The average over the models.  -> n"""
        return torch.stack([m.noise for m in self.models]).mean(0)

    @property
    def known_noise(self) -> bool:
        return all(m.known_noise for m in self.models)

    @property
    def memory(self) -> list[Any]:
        """One memory for each model."""
        return [list(m.memory) for m in self.models]

    def draw(self, points: Tensor, rng: np.random.Generator) -> Drawn:
        """The draws of all models.  k x d"""
        return _Draws(tuple(m.draw(points, rng) for m in self.models))

    def conditioned(self, points: Tensor, v: Tensor) -> Mixture:
        """Every model with these observations.  k x d, k"""
        return Mixture(tuple(m.conditioned(points, v) for m in self.models))

    def believing(self, points: Tensor) -> Mixture:
        """Every model as if the points had been found at its own mean.  k x d"""
        return Mixture(tuple(m.believing(points) for m in self.models))

    def noise_evidence(self) -> float:
        """The least evidence for noise among the models."""
        return min(m.noise_evidence() for m in self.models)

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the mixture of the models' predictions.  -> n, n"""
        means, sds = (torch.stack(t) for t in zip(*(m.leave_one_out() for m in self.models), strict=True))
        return means.mean(0), (sds.square().mean(0) + means.var(0, unbiased=False)).sqrt()


def _joined(found: Sequence[Marginals]) -> Marginals:
    counts = [len(m.mean) for m in found]

    def back(by_mean: Tensor, by_variance: Tensor) -> Tensor:
        split = zip(found, by_mean.split(counts), by_variance.split(counts), strict=True)
        pulls = [m.back(a, b) for m, a, b in split]
        return torch.stack(pulls).sum(0)

    return Marginals(torch.cat([m.mean for m in found]), torch.cat([m.variance for m in found]), back)
