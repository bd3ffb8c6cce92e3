"""Expected improvement over joint draws, in NumPy and in closed form: for several outcomes, and for later points of a batch.

The values are those of `NoisyLogEI` and `NoisyLogEHVI`, of whose draws they are made. A climb asks for a few points at a time, where
the calls of Torch and of automatic differentiation take longer than the sums. A point under way is added without new draws.
Letters: m draws, k points, r outcomes, c cells.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from copy import copy
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr
from torch import Tensor

from .functions import HOPELESS, SERIES, NoisyLogEI
from .hypervolume import NoisyLogEHVI, partition

Array: TypeAlias = NDArray[np.float64]

FAR = 1e3  # standard deviations: where cells without an end have one
SAME = 1e-12  # relative width of a cell below which it counts as one without slope


class Gain(NamedTuple):
    """The log of the expected improvement under each draw, and its derivatives by each objective's moments."""

    value: Array  # m x k
    by_mean: Array  # objectives x m x k
    by_variance: Array  # objectives x m x k


def log_ei(z: Array) -> tuple[Array, Array]:
    """log(phi(z) + z Phi(z)) and its slope, without cancellation anywhere."""
    low = np.minimum(z, -1.0)
    ratio = erfcx(-low / math.sqrt(2.0)) * math.sqrt(math.pi / 2.0)  # Phi / phi
    inner = 1.0 + low * ratio
    if z.size and z.min() < SERIES:
        inverse = 1.0 / np.minimum(low, SERIES) ** 2
        inner = np.where(low < SERIES, inverse * (1.0 - 3.0 * inverse), inner)
    high = np.maximum(z, -1.0)
    Phi = ndtr(high)
    whole = np.exp(-0.5 * high**2) / math.sqrt(2.0 * math.pi) + high * Phi
    left = -0.5 * low**2 - 0.5 * math.log(2.0 * math.pi) + np.log(inner)
    return np.where(z > -1.0, np.log(whole), left), np.where(z > -1.0, Phi / whole, ratio / inner)


class Quick(ABC):
    """An acquisition function of joint draws that takes further points under way."""

    def __init__(self, draws: Any, count: int) -> None:
        self.draws, self.count = draws, count  # draws: a stack of all outcomes, of which so many are objectives
        self._compare()

    @abstractmethod
    def _compare(self) -> None:
        """What improvement is measured from, by the drawn outcomes."""

    @abstractmethod
    def _gain(self, mean: Array, variance: Array) -> Gain:
        """From the moments of the objectives, objectives x m x k."""

    def share(self, i: int, of: int) -> Self:
        """The same with one of `of` equal shares of its draws."""
        of = min(of, self.draws.m)
        return self._with(self.draws.part(slice(i % of, None, of)))

    def plus(self, points: Array, rng: np.random.Generator) -> Self:
        """The same with more points under way.  p x d"""
        return self._with(self.draws.plus(points, rng)) if len(points) else self

    def _with(self, draws: Any) -> Self:
        out = copy(self)
        out.draws = draws
        out._compare()
        return out

    def _drawn(self) -> tuple[Array, NDArray[np.bool_]]:
        """The drawn objectives, and where every drawn constraint holds.  -> objectives x m x n, m x n"""
        v, r = self.draws.by_outcome(self.draws.v), self.count
        units = self.draws.shifts[r:, None, None], self.draws.scales[r:, None, None]
        return v[:r], (units[0] + units[1] * v[r:] <= 0.0).all(0)

    def __call__(self, X: Tensor) -> Tensor:
        """... x 1 x d -> ..."""
        value, _, _ = self._value(X.detach().reshape(-1, X.shape[-1]).numpy())
        return torch.from_numpy(_mean_of_logs(value)[0]).reshape(X.shape[:-2])

    def with_gradient(self, W: Tensor) -> tuple[Tensor, Tensor]:
        """The value at each point and its gradient.  k x d -> k, k x d"""
        value, gradient = self.rising(W.detach().numpy())
        return torch.from_numpy(value), torch.from_numpy(gradient)

    def rising(self, W: Array) -> tuple[Array, Array]:
        """The value at each point and its gradient.  k x d -> k, k x d"""
        value, slopes, back = self._value(W)
        total, weight = _mean_of_logs(value)
        by_mean, by_variance = (np.concatenate(weight * by) for by in slopes)
        return total, back(by_mean, by_variance)

    def _value(self, W: Array) -> tuple[Array, tuple[Array, Array], Any]:
        """The log value under each draw, and its derivatives by all outcomes' moments.  -> m x k, (r x m x k) twice"""
        mean, variance, back = self.draws.marginals(W)
        mean, variance = self.draws.by_outcome(mean), self.draws.by_outcome(variance)
        r = self.count
        gain = self._gain(mean[:r], variance[:r])
        if len(mean) == r:
            return gain.value, (gain.by_mean, gain.by_variance), back
        sd = np.sqrt(variance[r:])
        u = -((self.draws.shifts / self.draws.scales)[r:, None, None] + mean[r:]) / sd
        chance = log_ndtr(u)
        steep = np.exp(-0.5 * u**2 - chance) / math.sqrt(2.0 * math.pi)  # of log_ndtr at u
        slopes = (
            np.concatenate([gain.by_mean, -steep / sd]),
            np.concatenate([gain.by_variance, -0.5 * steep * u / sd**2]),
        )
        return gain.value + chance.sum(0), slopes, back


class QuickEI(Quick):
    """`NoisyLogEI`: over the best feasible value of each draw."""

    def _compare(self) -> None:
        values, ok = self._drawn()
        best = np.where(ok, values[0], -np.inf).max(1)
        self.known = np.isfinite(best)[:, None]  # m x 1
        self.best = np.where(self.known, best[:, None], 0.0)

    def _gain(self, mean: Array, variance: Array) -> Gain:
        sigma = np.sqrt(variance[0])
        z = (mean[0] - self.best) / sigma
        value, slope = log_ei(z)
        value = value + np.log(sigma)
        if not self.known.all():
            value = np.where(self.known, value, -HOPELESS if self.known.any() else 0.0)
        by_mean, by_variance = slope / sigma * self.known, 0.5 * (1.0 - slope * z) / variance[0] * self.known
        return Gain(value, by_mean[None], by_variance[None])


class QuickEHVI(Quick):
    """`NoisyLogEHVI`: of the hypervolume over the front of each draw, the region beyond it cut into boxes."""

    def __init__(self, draws: Any, count: int, reference: Array) -> None:
        self.reference = reference  # objectives, standardised
        super().__init__(draws, count)

    def _compare(self) -> None:
        values, ok = self._drawn()
        cells = [boxes(values[:, i, ok[i]].T, self.reference) for i in range(self.draws.m)]
        most = max(len(low) for low, _ in cells)
        shape = (self.draws.m, 1, most, self.count)
        self.low, self.high, self.mask = np.zeros(shape), np.ones(shape), np.full(shape[:3], -1e30)
        for i, (low, high) in enumerate(cells):
            self.low[i, 0, : len(low)], self.high[i, 0, : len(low)] = low, high
            self.mask[i, 0, : len(low)] = 0.0
        np.clip(self.low, -FAR, FAR, out=self.low)
        np.clip(self.high, -FAR, FAR, out=self.high)

    def _gain(self, mean: Array, variance: Array) -> Gain:
        mean, sigma = (a.transpose(1, 2, 0)[:, :, None, :] for a in (mean, np.sqrt(variance)))  # m x k x 1 x objectives
        z = np.stack([(mean - self.low) / sigma, (mean - self.high) / sigma])
        (above, beyond), (steep, less) = log_ei(z)
        ratio = np.exp(np.minimum(beyond - above, -SAME))
        rest = 1.0 - ratio
        each = above + np.log(sigma) + np.log1p(-ratio)  # m x k x c x objectives
        real = beyond - above < -SAME
        by_z = np.where(real, (steep - ratio * less) / rest, 0.0)
        by_product = np.where(real, (steep * z[0] - ratio * less * z[1]) / rest, 0.0)
        total = each.sum(-1) + self.mask  # m x k x c
        top = total.max(-1, keepdims=True)
        weight = np.exp(total - top)
        whole = weight.sum(-1, keepdims=True)
        weight = (weight / whole)[..., None]
        by_mean = (weight * by_z / sigma).sum(2)
        by_variance = (weight * 0.5 * (1.0 - by_product) / sigma**2).sum(2)
        value = (top + np.log(whole))[..., 0]
        return Gain(value, by_mean.transpose(2, 0, 1), by_variance.transpose(2, 0, 1))


def boxes(values: Array, at: Array) -> tuple[Array, Array]:
    """The region that improves on these values, cut into boxes: lower and upper corners.  n x o, o -> c x o, c x o"""
    if values.shape[1] != 2:
        low, high = (part.numpy() for part in partition(torch.from_numpy(values), torch.from_numpy(at)))
        return low, high
    better = values[(values > at).all(1)]
    better = better[np.lexsort((-better[:, 1], -better[:, 0]))]  # the first objective falls, so the second has to rise
    highest = np.maximum.accumulate(np.append(at[1], better[:, 1]))[:-1]
    front = better[better[:, 1] > highest][::-1]
    first = np.concatenate([at[:1], front[:, 0]])
    second = np.concatenate([front[:, 1], at[1:]])
    ends = np.append(front[:, 0], np.inf)
    return np.stack([first, second], 1), np.stack([ends, np.full(len(ends), np.inf)], 1)


def quick(acquisition: NoisyLogEI | NoisyLogEHVI) -> Quick | None:
    """The same function in NumPy; None where its draws cannot be stacked."""
    first, *others = acquisition.models
    stacked = getattr(first, "stacked", None)
    draws = None if stacked is None else stacked(others)
    if draws is None:
        return None
    if isinstance(acquisition, NoisyLogEHVI):
        return QuickEHVI(draws, acquisition.count, acquisition.reference.numpy())
    return QuickEI(draws, 1)


def _mean_of_logs(value: Array) -> tuple[Array, Array]:
    """The log of the mean of exponentials over the first axis, and each one's share of it.  m x k -> k, m x k"""
    top = value.max(0)
    weight = np.exp(value - top)
    whole = weight.sum(0)
    return top + np.log(whole) - math.log(len(value)), weight / whole
