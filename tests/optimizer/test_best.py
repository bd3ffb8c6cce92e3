"""The best trial, the front and the trace: feasible, at the target fidelity, under noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import alebo
from alebo import (
    ALEBO,
    AtLeast,
    AtMost,
    Fidelity,
    Float,
    InputError,
    Maximize,
    Minimize,
    Optimizer,
    Space,
    StateError,
)
from alebo.goals import Outcome

from .runs import D, Sobol, optimizer, refused, sphere


def test_best_obeys_the_constraints() -> None:
    opt = optimizer(Sobol(), [Maximize("score"), AtLeast("speed", 1.0)])
    for score, speed in ((9, 0.5), (3, 1.0), (2, 5.0)):
        opt.tell(opt.ask()[0].number, {"score": score, "speed": speed})
    assert opt.best().outcomes["score"].mean == 3
    worst = optimizer(Sobol(), [Maximize("score"), AtLeast("speed", 1.0)])
    worst.tell(worst.ask()[0].number, {"score": 1, "speed": 0})
    refused(StateError, worst.best, "satisfy the constraints", "trial 0", "loosen a bound")


def test_several_objectives_have_a_front_and_no_best() -> None:
    opt = optimizer(Sobol(), [Minimize("a"), Maximize("b")])
    for a, b in ((1, 1), (2, 2), (2, 1), (0, 0), (0, 0)):
        opt.tell(opt.ask()[0].number, {"a": a, "b": b})
    assert [t.number for t in opt.front()] == [0, 1, 3]
    refused(StateError, opt.best, "one objective", "there are 2", "front()")
    refused(StateError, optimizer().front, "several objectives", "best()")
    refused(
        InputError,
        lambda: alebo.minimize(sphere, [(0, 1)] * D, goals=[Minimize("a"), Minimize("b")]),
        "one objective",
        "front()",
    )


def test_the_hypervolume_grows_with_every_trade_off() -> None:
    goals = [Minimize("a", reference=3.0), Maximize("b", reference=0.0), AtMost("c", 0.0)]
    opt = optimizer(Sobol(), goals)
    for a, b, c in ((1, 1, 0), (2, 2, 0), (0, 9, 1), (2, 1, 0)):
        opt.tell(opt.ask()[0].number, {"a": a, "b": b, "c": c})
    opt.fail(opt.ask()[0].number)
    opt.ask()  # pending: not yet counted
    assert opt.hypervolumes().tolist() == [2.0, 3.0, 3.0, 3.0, 3.0]
    assert opt.hypervolumes([4.0, 0.0]).tolist() == [3.0, 5.0, 5.0, 5.0, 5.0]
    refused(InputError, lambda: opt.hypervolumes([1.0]), "one finite number for each", "'a'")
    refused(StateError, optimizer().hypervolumes, "several objectives", "best()")
    free = optimizer(Sobol(), [Minimize("a"), Maximize("b")])
    assert free.hypervolumes().tolist() == []
    for a, b in ((1, 1), (3, 5)):
        free.tell(free.ask()[0].number, {"a": a, "b": b})
    inferred = free.hypervolumes()  # a tenth of the ranges 2 and 4 beyond the worst: reference (3.2, 0.6)
    assert inferred.tolist() == pytest.approx([2.2 * 0.4, 2.2 * 0.4 + 0.2 * 4.0])


def test_best_under_noise_is_feasible_as_measured_and_as_estimated() -> None:
    """The model may take a point that was measured beyond the bound for a feasible one; it is not handed out."""

    class Estimates(Sobol):
        def estimate(self, history: Any, space: Any, goals: Any, seed: int) -> Any:
            return {t.number: {**t.outcomes, "g": Outcome(-1.0)} for t in history.complete}

    opt = Optimizer(Space.from_bounds([(0, 1)] * 2), [Minimize("f"), AtMost("g", 0.0)], method=Estimates(), seed=0)
    for f, g in ((1.0, 0.5), (2.0, -0.5), (3.0, -0.5)):
        opt.tell(opt.ask()[0].number, {"f": f, "g": g})
    assert (opt.best().number, opt.best().note["chosen_by"]) == (1, "posterior mean")


LEVELS = Space([Float("a", 0, 1), Float("b", 0, 1), Fidelity("epochs", 1, 10)])


@pytest.mark.parametrize("estimated", [False, True], ids=["measured", "estimated"])
def test_best_is_never_a_cheap_fidelitys_point(estimated: bool) -> None:
    class Estimates(Sobol):
        supports = ALEBO.supports

        def estimate(self, history: Any, space: Any, goals: Any, seed: int) -> Any:
            return {t.number: t.outcomes for t in history.complete} if estimated else None

    opt = Optimizer(LEVELS, Minimize("f"), method=Estimates(), seed=0)
    opt.tell({"a": 0.1, "b": 0.1, "epochs": 1.0}, -5.0)
    assert opt.best().number == 0  # nothing else yet
    for epochs, value in ((10.0, 0.3), (9.9, -4.0), (10.0, 0.2), (1.0, -6.0)):
        opt.tell({"a": 0.5, "b": 0.5, "epochs": epochs}, value)
    assert (opt.best().number, opt.best().outcomes["f"].mean) == (3, 0.2)


def test_the_trace_has_no_value_until_a_point_is_feasible_and_ends_at_fun() -> None:
    told = iter([(1.0, 0.4), (9.0, -0.1), (2.0, 0.1), (7.0, 0.0), (8.0, -3.0), (0.5, 0.2)])

    def f(x: np.ndarray) -> dict[str, float]:
        value, excess = next(told)
        return {"f": value, "g": excess}

    result = alebo.minimize(f, [(0, 1)] * 3, goals=[Minimize("f"), AtMost("g", 0.0)], budget=6, method="sobol", seed=0)
    assert np.isnan(result.trace[0])
    assert result.trace[1:].tolist() == [9.0, 9.0, 7.0, 7.0, 7.0]
    assert result.fun == result.trace[-1]
