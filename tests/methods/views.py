"""Trials and views made by hand, of a cube of four coordinates with one objective."""

from __future__ import annotations

from typing import Any

import numpy as np

import alebo
from alebo import Goals, Minimize
from alebo.goals import Outcome
from alebo.history import History, State, Trial
from alebo.methods._full_space import full_space_arms
from alebo.methods._view import View

D = 4
SPACE = alebo.Space.from_bounds([(-1.0, 1.0)] * D)
GOAL = Goals(Minimize("v"))
ARMS = {arm.name: arm for arm in full_space_arms()}


def trial(number: int, value: float | None = None, *, x: Any = None, state: State | None = None, **how: Any) -> Trial:
    """A trial, complete where it has a value and else pending; its point is drawn from its number where none is given."""
    point = np.random.default_rng(number).uniform(-1, 1, D) if x is None else np.asarray(x, dtype=float)
    outcomes = how.pop("outcomes", {} if value is None else {"v": Outcome(value)})
    now = state or (State.COMPLETE if outcomes else State.PENDING)
    return Trial(number, SPACE.decode(point), point, how.pop("y", None), outcomes, now, **how)


def view(*trials: Trial, budget: int | None = None, goals: Goals = GOAL, **how: Any) -> View:
    """What a method sees of these trials."""
    return View(History(trials, budget), how.pop("space", SPACE), goals, 0, **how)
