"""Quasi-random search: what every model has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..goals import Goals
from ..history import History
from ..space import Space
from ._design import sobol_points
from ._method import Method, Suggestion, Supports, setting


@dataclass(frozen=True)
class Sobol(Method):
    """A scrambled Sobol sequence over the cube, one seed one sequence."""

    centre: bool = setting(False, "whether the middle of the space is the first point")

    name: ClassVar[str] = "sobol"
    title: ClassVar[str] = "Sobol"
    citation: ClassVar[str] = "Owen 1998, Scrambling Sobol' and Niederreiter-Xing points"
    supports: ClassVar[Supports] = Supports(constraints=True, objectives=True, cost=True)

    def __post_init__(self) -> None:
        self._flags("centre")

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        start = len(history)
        numbers = np.arange(start, start + q) - int(self.centre)
        points = sobol_points(space.dimension, int(numbers[-1]) + 1, seed)
        return [Suggestion(np.zeros(space.dimension) if i < 0 else points[i]) for i in numbers]
