"""The models of several outcomes: signs of constraints, reported noise, and what comes back in the user's units."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import alebo
from alebo.goals import Goals, Outcome
from alebo.history import State, Trial
from alebo.methods import View
from alebo.methods._fitted import by_outcome
from alebo.methods._outcomes import OutcomeModels, fit_outcomes
from alebo.models import fit_ard
from alebo.models.priors import dense

RNG = np.random.default_rng(0)
X = RNG.random((16, 3))
SPEED = 10.0 + 4.0 * X[:, 0] - X[:, 2]
LOSS = np.sin(3 * X[:, 1]) + X[:, 0]


def build(P: torch.Tensor, values: torch.Tensor, **how: object) -> object:
    return fit_ard(P, values, dense(3), variances=how["variances"], seed=0)  # type: ignore[arg-type]


def models(
    goals: list[alebo.goals.Goal], sems: list[float | None] | None = None, cost: np.ndarray | None = None
) -> OutcomeModels:
    noise = sems or [None] * len(X)
    trials = []
    for i, (x, v, s, e) in enumerate(zip(X, LOSS, SPEED, noise, strict=True)):
        outcomes = {"loss": Outcome(v, e), "speed": Outcome(s)}
        outcomes |= {} if cost is None else {"seconds": Outcome(cost[i])}
        trials.append(Trial(i, {}, x, None, outcomes, State.COMPLETE))
    return fit_outcomes(X, trials, Goals(goals), build=build)  # type: ignore[arg-type]


@pytest.mark.parametrize("goal", [alebo.AtLeast("speed", 12.0), alebo.AtMost("speed", 12.0)], ids=["least", "most"])
@pytest.mark.parametrize("objective", [alebo.Minimize("loss"), alebo.Maximize("loss")], ids=["minimize", "maximize"])
def test_the_models_view_of_a_bounded_outcome(goal: alebo.AtLeast, objective: alebo.Minimize) -> None:
    found = models([objective, goal])
    (constraint,) = found.constraints
    violation = 12.0 - SPEED if isinstance(goal, alebo.AtLeast) else SPEED - 12.0
    inside = constraint.posterior(torch.from_numpy(X))[0].numpy()  # g <= 0 where it is feasible
    assert inside == pytest.approx(violation, abs=0.05)
    assert found.feasible.tolist() == (violation <= 0.0).tolist()
    for seen, speed, loss in zip(found.estimates(), SPEED, LOSS, strict=True):
        assert seen["speed"].mean == pytest.approx(speed, abs=0.05)
        assert seen["loss"].mean == pytest.approx(loss, abs=0.05)
    predictors = by_outcome(found.goals, found.objectives, found.constraints, -1.0)
    for name, values in (("speed", SPEED), ("loss", LOSS)):
        assert predictors[name].predict(X)[0] == pytest.approx(values, abs=0.05)
        assert predictors[name].targets == pytest.approx(values)
        assert predictors[name].leave_one_out()[0] == pytest.approx(values, abs=1.0)
    direction = 1.0 if isinstance(objective, alebo.Maximize) else -1.0
    assert found.best == pytest.approx((direction * LOSS)[violation <= 0.0].max())
    first = found.ranked()[0]
    assert (violation[first], direction * LOSS[first]) == (violation[first].clip(max=0.0), pytest.approx(found.best))


def test_ranked_by_how_far_all_violate_where_nothing_is_feasible() -> None:
    found = models([alebo.Minimize("loss"), alebo.AtLeast("speed", 50.0)])
    assert not found.feasible.any()
    assert found.ranked().tolist() == np.argsort(-SPEED, kind="stable").tolist()
    assert found.best == pytest.approx(-LOSS.max())  # nothing counts as reached


def test_some_standard_errors_missing_are_the_typical_ones() -> None:
    sems: list[float | None] = [0.1, None, 0.2, None, 0.4] + [0.2] * 11
    found = models([alebo.Minimize("loss")], sems)
    (model,) = found.objectives
    expected = np.square([0.1, 0.2, 0.2, 0.2, 0.4] + [0.2] * 11)  # the median of those reported
    assert model.known_noise
    assert np.asarray(model.noise) * model.scale**2 == pytest.approx(expected)
    opt = alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * 3), alebo.Minimize("loss"), method="bo", seed=0)
    for x, loss, sem in zip(X, LOSS, sems, strict=True):
        opt.tell({f"x{i}": v for i, v in enumerate(x)}, loss if sem is None else (loss, sem))
    assert opt.best().note["chosen_by"] == "posterior mean"
    view = View(opt.history, opt.space, opt.goals, 0)
    assert view.variances("loss") == pytest.approx(expected)


def test_the_cost_is_modelled_by_its_logarithm() -> None:
    seconds = np.exp(2.0 * X[:, 1])
    found = models([alebo.Minimize("loss"), alebo.Cost("seconds")], cost=seconds)
    assert found.cost is not None
    assert found.cost.posterior(torch.from_numpy(X))[0].numpy() == pytest.approx(2.0 * X[:, 1], abs=0.05)


def test_a_reference_is_maximised_and_all_or_none() -> None:
    both = models([alebo.Minimize("loss", reference=2.0), alebo.Maximize("speed", reference=9.0)])
    assert both.reference() == pytest.approx([-2.0, 9.0])
    assert models([alebo.Minimize("loss", reference=2.0), alebo.Maximize("speed")]).reference() is None
