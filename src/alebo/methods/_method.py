"""The interface of every method: a pure function from a history and a seed to the next points of the cube."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from .._errors import InputError
from ..goals import Goals, Outcome
from ..history import History
from ..space import Categorical, Int, Space
from ._settings import Setting as Setting
from ._settings import Settings
from ._settings import setting as setting
from ._view import View

if TYPE_CHECKING:
    from ..geometry import Embedding
    from ._fitted import Fitted


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
    integers: bool = True  # Int (any method can round; some have no sense of it)
    categories: bool = True
    linear: bool = False  # LinearConstraint on the parameters
    cost: bool = False
    fidelity: bool = False  # a Fidelity among the parameters


ABILITIES = {  # the fields of Supports in words
    "constraints": "outcome constraints (AtMost, AtLeast)",
    "objectives": "several objectives",
    "batches": "batches or pending points",
    "integers": "whole numbers",
    "categories": "categories",
    "linear": "linear constraints on the parameters",
    "cost": "an evaluation cost",
    "fidelity": "a Fidelity parameter",
}


class Method(Settings, ABC):
    """A frozen dataclass of settings with one task, `suggest`; it keeps no state between calls."""

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    supports: ClassVar[Supports]
    learns: ClassVar[bool] = False  # from earlier studies, `history.sources`

    @abstractmethod
    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        """The next `q` points. `seed` is the study's; derive from it and from `len(history)`, keep nothing."""

    def propose(self, view: View, q: int) -> Sequence[Suggestion]:
        """As `suggest`, for a View: one arm among several that share a history, or with points about to be evaluated."""
        return self.suggest(view.as_history(), view.space, view.goals, q, view.seed)

    @classmethod
    def renamed(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Settings from a file, with names that earlier versions wrote translated."""
        return dict(settings)

    def estimate(
        self, history: History, space: Space, goals: Goals, seed: int
    ) -> Mapping[int, Mapping[str, Outcome]] | None:
        """Where measurements are noisy and the method has a model: its view of every completed trial, by number."""
        return None

    def fitted(self, history: History, space: Space, goals: Goals, seed: int, *, fresh: bool = False) -> Fitted | None:
        """The models from which this method would propose next, for diagnostics; None where it has none of the whole space.

        `fresh` fits them from nothing, without what earlier fits left in the notes.
        """
        return None

    def subspace(self, history: History, space: Space, goals: Goals, seed: int) -> Embedding | None:
        """The embedding in which this method has searched, for a later study that learns from this one; None without one."""
        return None

    def check(self, space: Space, goals: Goals) -> None:
        """Raise InputError before the first evaluation if this method cannot do what is asked."""
        asked: dict[str, list[str]] = {
            "constraints": [c.outcome for c in goals.constraints],
            "objectives": [] if goals.single else [g.outcome for g in goals.objectives],
            "integers": [p.name for p in space.parameters if isinstance(p, Int)],
            "categories": [p.name for p in space.parameters if isinstance(p, Categorical)],
            "linear": [name for c in space.constraints for name in c.coefficients],
            "cost": [] if goals.cost is None else [goals.cost.outcome],
            "fidelity": [] if space.fidelity is None else [space.fidelity[1].name],
        }
        for ability, names in asked.items():
            if names and not getattr(self.supports, ability):
                shown = list(dict.fromkeys(map(repr, names)))
                self._refuse(ability, ", ".join(shown[:4]) + ", ..." * (len(shown) > 4))

    def check_sources(self, space: Space, goals: Goals) -> None:
        """Raise InputError where a method that learns from earlier studies would learn nothing from them here."""

    def way_out(self, ability: str) -> str:
        """What a refusal adds to the names of other methods, where this one has a setting that helps."""
        return ""

    def one_at_a_time(self, history: History, q: int) -> None:
        """Raise InputError where more than one point would be out at once."""
        if history.pending:
            number = history.pending[0].number
            self._refuse("batches", f"trial {number}, which is pending: tell or fail it first")
        if q > 1:
            self._refuse("batches", f"a batch of {q}: ask for one point at a time")

    def _refuse(self, ability: str, came: str) -> NoReturn:
        from . import METHODS

        others = sorted(name for name, m in METHODS.items() if getattr(m.supports, ability))
        fixed = " Or evaluate at the target only: make it Fixed." if ability == "fidelity" else ""
        raise InputError(
            f"{self.title} is not defined for {ABILITIES[ability]}; got {came}. Methods that are: {', '.join(others)}."
            f"{fixed}{self.way_out(ability)}"
        )
