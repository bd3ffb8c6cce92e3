"""How uncertain ALEBO is of the kernel's metric: sampled from its posterior, or the paper's Laplace approximation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from .._errors import InputError
from ..models import CHEAP, PAPER, MahalanobisGP, MetricPrior, default_inflation, fit_gp, sample_gp
from ._settings import Settings, setting

PER_DATUM = "n"  # an inflation of n, the number of data, as in the paper


@dataclass(frozen=True)
class Sampled(Settings):
    """Metrics, scale and noise drawn from their posterior by Markov chains."""

    samples: int = setting(12, "metrics drawn from their posterior")
    warm: bool = setting(True, "whether chains start where the last ones ended")

    noted: ClassVar[str] = "chains"  # the key under which a note keeps where the next fit starts
    notes: ClassVar[int] = 6  # of so many asks, whose kernels serve again with many data
    cheap: ClassVar[float] = CHEAP  # observations beyond which most of the search is made with a third of the metrics
    most: ClassVar[int | None] = 500  # observations: of more the best, and as many of all the others

    def __post_init__(self) -> None:
        self._counts(samples=1)
        self._flags("warm")

    def builder(self, n: int, *, started: bool) -> Callable[..., MahalanobisGP]:
        """A function that fits one outcome with n observations."""
        return partial(sample_gp, samples=self.samples, afresh=restarts(n))


@dataclass(frozen=True)
class Laplace(Settings):
    """The paper's way (S2): a fitted metric, and draws from a normal approximation around it."""

    samples: int = setting(12, "metrics drawn from the approximation")
    ridge: float = setting(0.5, "precision of the prior on the metric's factor; 0: no prior, as in the paper")
    inflation: float | str | None = setting(
        None, 'of the covariance; None: by how many data there are, "n": by their number, as in the paper'
    )
    warm: bool = setting(True, "whether fits start where the last one ended")
    cold: int = setting(3, "other starts of a fit")
    iterations: int = setting(100, "of a fit from each start")

    noted: ClassVar[str] = "mode"
    notes: ClassVar[int] = 1
    cheap: ClassVar[float] = math.inf
    most: ClassVar[int | None] = None  # as the paper has it

    def __post_init__(self) -> None:
        self._counts(samples=1, cold=0, iterations=1)
        self._flags("warm")
        self._numbers(ridge=(0.0, math.inf))
        if self.inflation != PER_DATUM:
            if isinstance(self.inflation, str):
                raise InputError(
                    f"`inflation` is a number, {PER_DATUM!r} or None; got {self.inflation!r}. {PER_DATUM!r} is the paper's."
                )
            self._numbers(inflation=(0.0, math.inf))

    def builder(self, n: int, *, started: bool) -> Callable[..., MahalanobisGP]:
        """A function that fits one outcome with n observations."""
        inflation = default_inflation(n) if self.inflation is None else self.inflation
        often = n <= 20 or (n % 5 == 0 and n <= 500) or not started
        return partial(
            fit_gp,
            samples=self.samples,
            prior=MetricPrior(ridge=self.ridge) if self.ridge > 0 else PAPER,
            cold=self.cold if often else 0,
            iterations=self.iterations if n <= 500 else max(10, int(self.iterations * (500 / n) ** 2)),
            inflation=float(n) if inflation == PER_DATUM else float(inflation),
        )


def restarts(n: int) -> bool:
    """Whether one more chain starts at n observations: from 20 on, each time that they have become a quarter more."""
    return n >= 20 and int(4.0 * math.log(n)) > int(4.0 * math.log(n - 1))
