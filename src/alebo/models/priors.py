"""Priors of the full-space GP as data: kernel, bounds and densities of lengthscales, signal variance and noise variance.

A prior is a value, not code: `dense`, `sparse`, `trust_region`, `scaled_region` and `embedded` below build the ones that
the methods use, and another one is another `ARDPrior`. Lengthscales are in units of the inputs.
Letters: D coordinates, l lengthscales, s signal variance, v noise variance (the last two of standardised outcomes).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._errors import InputError

Array: TypeAlias = NDArray[np.float64]
Kernel: TypeAlias = Literal["matern", "rbf"]  # Matern-5/2 or squared exponential

NOISE_FLOOR = 1e-6  # least noise variance of standardised outcomes: a Cholesky factor of noiseless data needs it


class Density(Protocol):
    """A density of a positive number, or of several independent ones, as a function of their logarithms."""

    def penalty(self, log: Array) -> tuple[float, Array]:
        """Minus the summed log density (up to a constant), and its derivative by each logarithm.  k -> (), k"""


@dataclass(frozen=True)
class LogNormal:
    """The density of a number whose logarithm is normal with this mean and standard deviation."""

    mean: float
    sd: float

    def penalty(self, log: Array) -> tuple[float, Array]:
        """Minus the summed log density (up to a constant), and its derivative by each logarithm.  k -> (), k"""
        t = (log - self.mean) / self.sd
        return float(0.5 * (t @ t) + log.sum()), t / self.sd + 1.0


@dataclass(frozen=True)
class LogScale:
    """A normal density of the logarithm itself: `LogNormal` without its pull towards zero."""

    mean: float
    sd: float

    def penalty(self, log: Array) -> tuple[float, Array]:
        """Minus the summed log density (up to a constant), and its derivative by each logarithm.  k -> (), k"""
        t = (log - self.mean) / self.sd
        return float(0.5 * (t @ t)), t / self.sd


@dataclass(frozen=True)
class SparseLengthscales:
    """SAAS: half-Cauchy densities, with scale `shrinkage`, of the inverse squared lengthscales; most of them near zero."""

    shrinkage: float

    def penalty(self, log: Array) -> tuple[float, Array]:
        """Minus the summed log density (up to a constant), and its derivative by each logarithm.  k -> (), k"""
        ratio = np.exp(np.clip(-4.0 * log, None, 600.0)) / self.shrinkage**2
        return float(np.log1p(ratio).sum()), -4.0 * ratio / (1.0 + ratio)


@dataclass(frozen=True)
class ARDPrior:
    """What a fit of the full-space GP assumes before it sees data; where the two ends of a bound meet, the value is fixed."""

    name: str
    kernel: Kernel
    lengthscale: tuple[float, float]  # bounds
    variance: tuple[float, float]  # bounds of the signal variance
    noise: tuple[float, float]  # bounds of the noise variance, where it is inferred
    lengthscale_density: Density | None = None
    variance_density: Density | None = None
    noise_density: Density | None = None
    starts: tuple[float, ...] = (0.5,)  # lengthscales from which a fit starts
    start_noise: float = 1e-2
    restarts: int = 0  # further starts, at random lengthscales around the first
    rugged: bool = False  # its density has many maxima: a warm start alone stays on a poor one
    subsets: bool = False  # a fit also searches for the few coordinates that matter (`models.subsets`)

    def __post_init__(self) -> None:
        if self.kernel not in ("matern", "rbf"):
            raise InputError(f"`kernel` is 'matern' or 'rbf'; got {self.kernel!r}.")
        for field in ("lengthscale", "variance", "noise"):
            low, high = getattr(self, field)
            if not (0.0 < low <= high < math.inf):
                raise InputError(
                    f"`0 < low <= high` must hold for the bounds of `{field}`; got ({low}, {high}). "
                    "Give the same number twice to fix it."
                )
        if not self.starts or self.start_noise <= 0.0 or self.restarts < 0:
            raise InputError(
                "A prior needs one starting lengthscale or more, `start_noise > 0` and `restarts >= 0`; got "
                f"{self.starts}, {self.start_noise}, {self.restarts}."
            )


def dense(D: int, kernel: Kernel = "rbf") -> ARDPrior:
    """All parameters matter a little: BoTorch's default prior, whose lengthscales grow with sqrt(D), in a unit cube.

    Hvarfner et al. 2024. Unit signal variance, log-normal lengthscales and noise; theirs is the squared exponential kernel.
    """
    density = LogNormal(math.sqrt(2.0) + 0.5 * math.log(D), math.sqrt(3.0))
    mode = math.exp(density.mean - density.sd**2)
    return ARDPrior(
        "dense",
        kernel,
        (0.025, 1e4),
        (1.0, 1.0),
        (1e-4, 2.0),
        density,
        noise_density=LogNormal(-4.0, 1.0),
        starts=(mode, 4.0 * mode),
        start_noise=math.exp(-5.0),
    )


def sparse(shrinkage: float = 0.1, *, subsets: bool = False) -> ARDPrior:
    """Few parameters matter: the SAAS prior of Eriksson and Jankowiak 2021 for a given shrinkage, in a unit cube.

    With `subsets` its fits also search over subsets of coordinates: slower, and much more often at the right ones.
    """
    return ARDPrior(
        f"sparse {shrinkage:g}",
        "matern",
        (1e-2, 1e4),
        (0.05, 20.0),
        (NOISE_FLOOR, 1.0),
        SparseLengthscales(shrinkage),
        starts=(1.0, 10.0),
        start_noise=1e-3,
        rugged=True,
        subsets=subsets,
    )


def trust_region() -> ARDPrior:
    """TuRBO's: bounds and no densities (Eriksson et al. 2019), in a unit cube."""
    return ARDPrior(
        "trust region", "matern", (0.005, 2.0), (0.05, 20.0), (5e-4, 0.2), starts=(0.5, 2.0), start_noise=5e-3
    )


def scaled_region(D: int, side: float) -> ARDPrior:
    """The dense prior with lengthscales scaled by the side of a trust region: what varies, varies within the region."""
    if not 0.0 < side < math.inf:
        raise InputError(f"`side > 0` must hold for a trust region; got {side}. The unit cube has side 1.")
    density = LogNormal(math.sqrt(2.0) + 0.5 * math.log(D) + math.log(side), math.sqrt(3.0))
    mode = math.exp(density.mean - density.sd**2)
    return ARDPrior(
        "scaled region",
        "matern",
        (1e-3 * side, 1e4 * side),
        (0.05, 20.0),
        (NOISE_FLOOR, 1.0),
        density,
        noise_density=LogNormal(-4.0, 2.0),
        starts=(mode, 4.0 * mode),
        start_noise=math.exp(-5.0),
    )


def embedded(d: int, kernel: Kernel = "matern", restarts: int = 1) -> ARDPrior:
    """For REMBO, HeSBO and LineBO: lengthscales as `dense` has them, in a cube of side 2; small noise, free variance."""
    density = LogNormal(math.sqrt(2.0) + 0.5 * math.log(d) + math.log(2.0), math.sqrt(3.0))
    return ARDPrior(
        "embedded",
        kernel,
        (1e-2, 1e3),
        (math.exp(-5.0), math.exp(5.0)),
        (NOISE_FLOOR, 2.0),
        density,
        LogScale(0.0, 1.0),
        LogScale(-9.0, math.sqrt(10.0)),
        starts=(math.exp(density.mean - density.sd**2) * math.sqrt(10.0),),
        start_noise=math.exp(-7.0),
        restarts=restarts,
    )
