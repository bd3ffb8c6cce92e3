"""Quasi-random search: what every model has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.stats import qmc

from .._seeds import generator
from ..goals import Goals
from ..history import History
from ..space import Space
from ._method import Method, Suggestion, Supports, setting


@dataclass(frozen=True)
class Sobol(Method):
    """A scrambled Sobol sequence over the cube, one seed one sequence."""

    centre: bool = setting(False, "whether the middle of the space is the first point")

    name: ClassVar[str] = "sobol"
    title: ClassVar[str] = "Sobol"
    citation: ClassVar[str] = "Owen 1998, Scrambling Sobol' and Niederreiter-Xing points"
    supports: ClassVar[Supports] = Supports(constraints=True, objectives=True, cost=True)

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        start = len(history)
        numbers = np.arange(start, start + q) - int(self.centre)
        points = sobol_points(space.dimension, int(numbers[-1]) + 1, seed)
        return [Suggestion(np.zeros(space.dimension) if i < 0 else points[i]) for i in numbers]


def sobol_points(D: int, n: int, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The first `n` points of the scrambled sequence in the cube; beyond its 21,201 dimensions, uniform draws.  -> n x D"""
    rng = generator(seed, "sobol")
    if D > qmc.Sobol.MAXDIM:
        return np.stack([generator(seed, "sobol", i).uniform(-1, 1, D) for i in range(n)])
    unit = qmc.Sobol(D, scramble=True, rng=rng).random_base2(max(0, int(np.ceil(np.log2(max(n, 1))))))
    points: np.ndarray[tuple[int, int], np.dtype[np.float64]] = 2.0 * unit[:n] - 1.0
    return points
