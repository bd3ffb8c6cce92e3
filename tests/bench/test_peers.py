"""Other libraries as methods of the benchmark, and ALEBO in batches."""

from __future__ import annotations

import numpy as np
import pytest

import alebo
from alebo.bench.peers import Batched, BoTorchDefault, OptunaSampler
from alebo.bench.problems import PROBLEMS
from tests.conftest import require_module

MIXED = PROBLEMS["mixed-70"]()


def bowl(x: np.ndarray) -> float:
    return float(((x - 0.3) ** 2).sum())


@pytest.mark.parametrize("kind", ["tpe", "gp"])
def test_optunas_samplers_propose_and_learn(kind: str) -> None:
    require_module("optuna", "study")
    opt = alebo.Optimizer(MIXED.space, MIXED.goals, method=OptunaSampler(kind=kind), seed=0)
    for _ in range(12):
        t = opt.ask()[0]
        opt.tell(t.number, MIXED.outcomes(np.array(list(t.params.values()), dtype=object)))
    again = alebo.Optimizer(MIXED.space, MIXED.goals, method=OptunaSampler(kind=kind), seed=0)
    assert again.ask()[0].params == opt.history[0].params
    assert len({str(t.params) for t in opt.history}) == 12


def test_the_mixed_problem_knows_its_best_categories() -> None:
    assert MIXED.space.dimension == 70
    x = [0.5] * 40 + [5] * 10 + ["a"] * 5
    at = dict(zip((4, 12, 23, 37, 42, 47), (0.2017, 0.15, 0.4769, 0.2753, 3, 7), strict=True))
    for i, v in at.items():
        x[i] = v
    wrong = MIXED.outcomes(np.array(x, dtype=object))["value"]
    x[51] = "c"
    right = MIXED.outcomes(np.array(x, dtype=object))["value"]
    assert wrong - right == pytest.approx(0.5)
    assert -3.33 < right < -3.2


def test_the_full_space_of_botorch_improves_on_its_first_points() -> None:
    space = alebo.Space.from_bounds([(-1, 1)] * 6)
    opt = alebo.Optimizer(space, alebo.Minimize("v"), method=BoTorchDefault(initial=5, raw=32, steps=20), seed=0)
    for _ in range(18):
        t = opt.ask()[0]
        opt.tell(t.number, bowl(t.x))
    values = [t.outcomes["v"].mean for t in opt.history]
    assert min(values[5:]) < 0.5 * min(values[:5])  # by a factor of 9 or more for each of seeds 0 to 5
    goals = [alebo.Minimize("a", reference=4.0), alebo.Maximize("b", reference=0.0)]
    two = alebo.Optimizer(space, goals, method=BoTorchDefault(initial=3, raw=16, steps=5), seed=0)
    for _ in range(5):
        t = two.ask()[0]
        two.tell(t.number, {"a": bowl(t.x), "b": float(t.x[0] + 1)})
    assert two.hypervolumes()[-1] > 0


def test_a_batch_is_proposed_without_its_own_outcomes() -> None:
    space = alebo.Space.from_bounds([(-1, 1)] * 20)
    runs = []
    for shift in (0.0, 5.0):  # the outcomes of the last, unfinished batch differ: the proposal must not
        opt = alebo.Optimizer(space, alebo.Minimize("v"), method=Batched(q=4, dim=3), seed=0)
        for k in range(14):
            t = opt.ask()[0]
            opt.tell(t.number, bowl(t.x) + (shift if k >= 12 else 0.0))
        runs.append(opt.ask()[0].x)
    assert np.array_equal(runs[0], runs[1])
