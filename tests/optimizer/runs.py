"""Short runs that the tests of ask and tell share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import alebo
from alebo import (
    ALEBO,
    Minimize,
    Optimizer,
    Space,
    Trial,
)
from alebo.methods import METHODS, Sampled

Sobol = METHODS["sobol"]
D = 20


def sphere(x: np.ndarray) -> float:
    return float((x[1] - 0.3) ** 2 + 0.5 * (x[7] + 0.1) ** 2)


def small(dim: int | None = 3, **settings: Any) -> ALEBO:
    """The method with few initial points, so that short runs reach the model."""
    return ALEBO(dim=dim, **{"initial": 5, "metric": Sampled(samples=4), **settings})


def optimizer(method: Any = None, goals: Any = None, *, D: int = D, **settings: Any) -> Optimizer:
    space = Space.from_bounds([(-1, 1)] * D)
    return Optimizer(space, goals or Minimize("loss"), method=method or Sobol(), **settings)


def value(trial: Trial) -> float:
    return sphere(np.array(list(trial.params.values())))


def drive(opt: Optimizer, n: int) -> Optimizer:
    for _ in range(n):
        trial = opt.ask()[0]
        opt.tell(trial.number, value(trial))
    return opt


def record(opt: Optimizer) -> str:
    """Everything in the history, to the last bit."""
    return json.dumps([t.to_dict() for t in opt.history])


def refused(error: type[Exception], call: Callable[[], Any], *words: str) -> str:
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in: {caught.value}"
    assert isinstance(caught.value, alebo.AleboError)
    return str(caught.value)
