"""BBOB functions and functions with all 100 parameters active: known optima, not in the middle."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from tests.conftest import require_module

import alebo
from alebo.bench.problems import PROBLEMS, problem

BBOB = sorted(name for name in PROBLEMS if name.startswith("bbob-"))
FULL = ["ackley100-100", "levy100-100", "rosenbrock100-100"]


@pytest.mark.parametrize("name", [*BBOB, *FULL])
def test_the_optimum_is_where_it_is_said_to_be_and_not_in_the_middle(name: str) -> None:
    if name in BBOB:
        require_module("ioh", "bbob")
    p = problem(name)
    assert p.D == p.active == 100
    assert p.optimisers is not None
    best = p.optimisers[0]
    low, high = p.bounds.T
    assert np.all((low <= best) & (best <= high))
    assert p.evaluate(best) == pytest.approx(p.optimum, abs=1e-8)
    middle = 0.5 * (low + high)
    assert p.evaluate(middle) > p.optimum + 1.0
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert p.evaluate(rng.uniform(low, high)) > p.optimum + 1.0
    for i in rng.permutation(100)[:5]:  # every parameter matters
        moved = best.copy()
        moved[i] = np.clip(moved[i] + 0.7, low[i], high[i] - 0.1)
        assert p.evaluate(moved) > p.optimum + 1e-6


def test_five_functions_of_five_groups() -> None:
    assert len(BBOB) == 5


def test_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    require_module("ioh", "bbob")
    with pytest.raises(alebo.InputError, match="100 numbers"):
        problem(BBOB[0]).evaluate(np.zeros(3))
    monkeypatch.setitem(sys.modules, "ioh", None)
    with pytest.raises(alebo.MissingPartError, match=r'pip install "alebo\[bbob\]"'):
        problem(BBOB[0])
