"""From measured outcomes to what a model is fitted to: one rule for their scale, for outliers and for reported noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

FAR = 1e3  # quartile ranges from the median beyond which an outcome is compressed

HUGE = 1e150  # beyond, an outcome is compressed in any case: squares of it would overflow
BAD = 3.0  # distances from the median to the best value beyond which a bad value is as bad as any other

SMALLEST = 1e-307  # scale of outcomes: smaller numbers lose their digits
MOST_NOISE = 1e12  # variance of a standardised outcome that says nothing


@dataclass(frozen=True)
class Compression:
    """A monotone map of outcomes that leaves ordinary values alone and brings extreme ones near.

    A value `reach` or less from `centre` stays as it is; beyond, its distance grows by its logarithm, to at most twice
    `reach`. So a single 1e300 (a penalty, a crash value) cannot hide all other differences from a model, and the order of
    the outcomes stays.
    """

    centre: float
    reach: float

    @classmethod
    def of(cls, values: Array) -> Compression:
        """The map for these values; the identity where none is extreme.  n"""
        size = float(np.abs(values).max(initial=0.0))
        plain = cls(0.0, HUGE if size > HUGE else math.inf)
        if len(values) < 3 or size == 0.0:
            return plain
        u = np.sort(values / size)  # in [-1, 1]: no difference overflows
        centre, low, high = (float(q) for q in np.quantile(u, (0.5, 0.25, 0.75)))
        span = high - low
        half = len(u) // 2 + 1
        at = int(np.argmin(u[half - 1 :] - u[: len(u) - half + 1]))
        shortest = float(u[at + half - 1] - u[at])  # interval that holds half of the values
        if 0.0 < shortest < span / FAR:  # a quarter of the values or more are extreme: the quartiles, too
            centre, span = 0.5 * float(u[at + half - 1] + u[at]), shortest
        off = np.abs(u - centre)
        if span == 0.0 and (off > 0).any():
            span = float(np.median(off[off > 0]))
        if span == 0.0 or off.max() <= FAR * span:
            return plain
        ordinary = float(off[off <= FAR * span].max())  # extreme values come to lie just beyond the ordinary ones
        return cls(centre * size, min(1.01 * ordinary or span, 0.5, HUGE / size) * size)

    def changes(self, values: Array) -> NDArray[np.bool_]:
        """Which values are moved.  n -> n"""
        if math.isinf(self.reach):
            return np.zeros(np.shape(values), dtype=bool)
        moved: NDArray[np.bool_] = np.abs(0.5 * values - 0.5 * self.centre) > 0.5 * self.reach
        return moved

    def __call__(self, values: Array) -> Array:
        """... -> ..."""
        if math.isinf(self.reach):
            return values
        half = 0.5 * values - 0.5 * self.centre  # halves, because a difference of two doubles can overflow
        x = np.log(np.maximum(np.abs(half), 0.5 * self.reach)) - math.log(0.5 * self.reach)  # a ratio could overflow
        far = self.centre + np.sign(half) * self.reach * (1.0 + x / (1.0 + x))
        return np.where(self.changes(values), far, values)


def tamed(values: Array) -> Array:
    """The values with extreme ones compressed; unchanged where none is extreme.  n -> n"""
    return Compression.of(values)(values)


def typical_spread(values: Array) -> float:
    """The standard deviation of the values, extreme ones compressed; their size where all are equal.  n -> ()"""
    return Standardisation.of(tamed(values)).scale


def without_worst(values: Array, below: float = 0.5) -> Array:
    """Values, larger is better, in which the worst ones are raised to a common level.

    A search learns little from how bad a bad point is, and a model that follows a few very bad points has little resolution
    left for the good ones. The level lies `BAD` times as far below the median as the best value lies above it; where most
    points were chosen to be good, a lower quantile than the median is typical.  n -> n
    """
    size = max(float(np.abs(values).max(initial=0.0)), 1e-300)
    u = values / size  # in [-1, 1]: no difference overflows
    middle = float(np.median(u) if below == 0.5 else np.quantile(u, below))
    level = middle - BAD * (float(u.max()) - middle)
    return np.maximum(values, level * size) if level > -1.0 else values


def thinned(order: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Of indices from the best to the worst at most so many: the best, and as many again from all other ranks alike.  n"""
    if len(order) <= most:
        return order
    best = most // 2
    rest = order[best:]
    return np.concatenate([order[:best], rest[np.linspace(0, len(rest) - 1, most - best).astype(int)]])


@dataclass(frozen=True)
class Standardisation:
    """outcome = shift + scale * standardised outcome."""

    shift: float
    scale: float

    @classmethod
    def of(cls, values: Array) -> Standardisation:
        """Mean and standard deviation; of outcomes that are all equal, their size.  n"""
        size = float(np.abs(values).max(initial=0.0))
        if not 1e-150 < size < 1e150:  # squares would overflow, or vanish
            if size == 0.0:
                return cls(0.0, 1.0)
            inner = cls.of(values / size)
            return cls(size * inner.shift, max(size * inner.scale, SMALLEST))
        given = torch.from_numpy(np.ascontiguousarray(values, dtype=float))
        shift = float(given.mean())
        spread = float(given.std(unbiased=False)) if len(values) > 1 else 0.0
        scale = spread if spread > 1e-12 * max(abs(shift), 1e-300) else max(abs(shift), 1.0)
        return cls(shift, scale)

    def __call__(self, values: Array) -> Array:
        """Standardised values.  n -> n"""
        return (values - self.shift) / self.scale

    def variances(self, variances: Array | None) -> Array | None:
        """Noise variances in standardised units: divided by the square of the scale.  n -> n"""
        if variances is None:
            return None
        with np.errstate(over="ignore"):  # infinite is more than MOST_NOISE, too
            if 1e-150 < self.scale < 1e150:
                return np.minimum(variances / self.scale**2, MOST_NOISE)
            return np.minimum(np.square(np.sqrt(variances) / self.scale), MOST_NOISE)


def reported_variances(sems: Sequence[float | None]) -> Array | None:
    """Noise variances from reported standard errors; None where none was reported, so that the noise is inferred.

    Where some are missing, the typical one (the median of those reported) stands for them.
    """
    known = np.array([math.nan if s is None else s for s in sems], dtype=float)
    if not np.isfinite(known).any():
        return None
    filled: Array = np.where(np.isfinite(known), known, np.nanmedian(known)).clip(max=1e150)
    return np.square(filled)
