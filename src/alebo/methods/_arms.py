"""The arms that the adaptive method can share evaluations among, and their names."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .._errors import InputError
from ..goals import Goals
from ..history import History
from ..space import Space
from ._full_space import full_space_arms
from ._method import Method, Suggestion
from ._view import View
from .alebo import ALEBO

ADAPTIVE = "adaptive"  # the method that shares among arms is no arm


class Arm(Protocol):
    """One method among several that share a history."""

    @property
    def name(self) -> str:
        """How notes name it."""

    def unable(self, space: Space, goals: Goals) -> str | None:
        """Why it cannot do what is asked; None where it can."""

    def propose(self, view: View, q: int) -> Sequence[Suggestion]:
        """The next q points."""


@dataclass(frozen=True)
class MethodArm:
    """Any method as an arm."""

    name: str
    method: Method

    def unable(self, space: Space, goals: Goals) -> str | None:
        """The method's own refusal; None where it does not refuse."""
        try:
            self.method.check(space, goals)
        except InputError as error:
            return str(error)
        return None

    def propose(self, view: View, q: int) -> Sequence[Suggestion]:
        """The next q points."""
        return self.method.propose(view, q)


def in_batches(arm: Arm) -> bool:
    """Whether it can propose several points at once, and while others are under way."""
    return not isinstance(arm, MethodArm) or arm.method.supports.batches


def learns(arm: Arm) -> bool:
    """Whether it learns from earlier studies: the models of the full space do."""
    return not isinstance(arm, MethodArm) or arm.method.learns


def weighs(arm: Arm) -> bool:
    """Whether it weighs proposals by plateaus."""
    return not isinstance(arm, MethodArm) or isinstance(arm.method, ALEBO)


def one_at_a_time(arms: Sequence[Arm], history: History, q: int) -> None:
    """Raise the first arm's own InputError where more than one point would be out at once, and no arm can do that."""
    for arm in arms:
        if in_batches(arm):
            return
    assert isinstance(arms[0], MethodArm)
    arms[0].method.one_at_a_time(history, q)


def known() -> list[str]:
    """The names of all arms."""
    from . import METHODS

    own = [*(arm.name for arm in full_space_arms()), "embedding"]
    return [*own, *(name for name in METHODS if name not in own and name != ADAPTIVE)]


def arm_named(name: Any) -> Arm:
    """The arm of that name; InputError with the known names where there is none."""
    from . import METHODS

    for arm in full_space_arms():
        if arm.name == name:
            return arm
    if name == "embedding":
        return MethodArm(name, ALEBO(initial=1, centre=False))  # the other arms' points serve as its first ones
    if isinstance(name, str) and name in METHODS and name != ADAPTIVE:
        return MethodArm(name, METHODS[name]())
    near = difflib.get_close_matches(str(name), known(), n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    raise InputError(f"An arm has one of these names: {', '.join(known())}; got {name!r}. {hint}".rstrip())
