"""What every method is: a pure function from a history and a seed to the next points of the cube."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._errors import InputError
from ..goals import Goals, Outcome
from ..history import History
from ..space import Categorical, Int, Space


@dataclass(frozen=True, eq=False)
class Suggestion:
    """A point of the cube, its embedded coordinates if the method has any, and what the method wants to remember."""

    x: NDArray[np.float64]  # D
    y: NDArray[np.float64] | None = None  # d_e
    note: dict[str, Any] = field(default_factory=dict)  # JSON-able, a few hundred numbers at most


@dataclass(frozen=True)
class Supports:
    """What a method's authors defined it for."""

    constraints: bool = False  # outcome constraints AtMost, AtLeast
    objectives: bool = False  # several objectives
    batches: bool = True  # q > 1 and pending points
    mixed: bool = True  # Int and Categorical (any method can round; some have no sense of it)
    linear: bool = False  # LinearConstraint on the parameters
    cost: bool = False


class Method(ABC):
    """A frozen dataclass of settings with one verb, `suggest`; it keeps no state between calls."""

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    supports: ClassVar[Supports]

    @abstractmethod
    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        """The next `q` points. `seed` is the study's; derive from it and from `len(history)`, keep nothing."""

    def estimate(
        self, history: History, space: Space, goals: Goals, seed: int
    ) -> Mapping[int, Mapping[str, Outcome]] | None:
        """Where measurements are noisy and the method has a model: its view of every completed trial, by number."""
        return None

    def check(self, space: Space, goals: Goals) -> None:
        """Raise a sentence before the first evaluation if this method cannot do what is asked."""
        able = self.supports
        mixed = any(isinstance(p, Int | Categorical) for p in space.parameters)
        for needed, has, words in (
            (bool(goals.constraints), able.constraints, "constraints"),
            (not goals.single, able.objectives, "objectives"),
            (mixed, able.mixed, "mixed"),
            (bool(space.constraints), able.linear, "linear"),
            (goals.cost is not None, able.cost, "cost"),
        ):
            if needed and not has:
                self._refuse(words)

    def _counts(self, **least: int) -> None:
        """Raise a sentence unless each named setting is None or a whole number of at least what stands here."""
        for name, bound in least.items():
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if value is not None and not (whole and value >= bound):
                raise InputError(
                    f"`{name} >= {bound}` must hold, a whole number; got {value!r}. Choose {bound} or more."
                )

    def _refuse(self, ability: str) -> None:
        from . import METHODS

        words = {
            "constraints": "outcome constraints (AtMost, AtLeast)",
            "objectives": "several objectives",
            "mixed": "whole numbers or categories",
            "linear": "linear constraints on the parameters",
            "cost": "an evaluation cost",
            "batches": "batches or pending points",
        }[ability]
        others = sorted(name for name, m in METHODS.items() if getattr(m.supports, ability))
        raise InputError(f"{self.title} is not defined for {words}. Methods that are: {', '.join(others)}.")
