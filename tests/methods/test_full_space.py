"""Where the arms of the full space search, and what they say of it: starts, boxes, acquisition, findings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import alebo
from alebo import AtMost, Categorical, Cost, Float, Goals, Int, Maximize, Minimize, Space
from alebo.acquisition import LogEI, PerCost, evaluate
from alebo.goals import Outcome
from alebo.history import History, State, Trial
from alebo.methods import _full_space
from alebo.methods._full_space import FullSpaceArm, full_space_arms
from alebo.methods._view import View
from alebo.models import Mixture

D = 6
SPACE = Space.from_bounds([(-1.0, 1.0)] * D)
ARMS = {arm.name: arm for arm in full_space_arms()}


def view(
    count: int = 12, goals: Any = None, space: Space = SPACE, waiting: int = 0, failed: int = 0, arm: str | None = None
) -> View:
    """Completed, pending and failed trials at random points; the second coordinate matters most."""
    rng, goals = np.random.default_rng(3), Goals(goals or Minimize("value"))
    trials = []
    for number in range(count + waiting + failed):
        x = rng.uniform(-1.0, 1.0, space.dimension)
        told = {"value": Outcome(float(np.sin(2.0 * x[1]) + 0.2 * x[4])), "other": Outcome(float(2.0 + x[0]))}
        state = State.COMPLETE if number < count else State.PENDING if number < count + waiting else State.FAILED
        outcomes = {k: told[k] for k in goals.outcomes} if state is State.COMPLETE else {}
        trials.append(Trial(number, space.decode(x), x, None, outcomes, state))
    return View(History(tuple(trials), None), space, goals, 0, arm=arm)


@pytest.mark.parametrize("side", [None, 0.3])
def test_the_search_begins_over_the_whole_region_and_near_the_best_points(
    monkeypatch: pytest.MonkeyPatch, side: float | None
) -> None:
    seen: dict[str, Any] = {}
    climb = _full_space.climb_in_box

    def worth(acquisition: Any, points: np.ndarray) -> np.ndarray:
        seen["points"], seen["worth"] = points, evaluate(acquisition, points)
        return seen["worth"]

    def climbed(acquisition: Any, begin: np.ndarray, low: Any, high: Any, **how: Any) -> Any:
        seen.update(begin=begin, low=low, high=high, how=how)
        return climb(acquisition, begin, low, high, **how)

    monkeypatch.setattr(_full_space, "evaluate", worth)
    monkeypatch.setattr(_full_space, "climb_in_box", climbed)
    now = view()
    model = ARMS["dense"].surrogate(now)
    u, value = ARMS["dense"]._maximise(model, now, side, 5)
    X = 0.5 * (now.X + 1.0)
    first, second = model.ranked()[:2]
    low, high = (np.zeros(D), np.ones(D)) if side is None else (np.clip(X[first] + s * side / 2, 0, 1) for s in (-1, 1))
    np.testing.assert_allclose([seen["low"], seen["high"]], [low, high])
    points, worths = seen["points"], seen["worth"]
    assert len(points) == 256 + 3 * 64 * (2 if side is None else 1)
    far, near = points[:256], points[256:]
    assert (np.abs(far.mean(axis=0) - 0.5 * (low + high)) < 0.12 * (high - low)).all()  # uniform: six standard errors
    assert (np.abs(far.std(axis=0) - (high - low) / 12**0.5) < 0.06 * (high - low)).all()
    lengths = model.objectives[0].models[0].lengthscales
    weights = np.minimum(lengths / np.exp(np.log(lengths).mean()), 5.0)
    for k, start in enumerate(range(0, len(near), 64)):
        centre = X[(first, second)[k // 3]]
        half = 0.5 * (0.02, 0.2, 0.8)[k % 3] * weights
        box = near[start : start + 64]
        reach = np.clip([centre - half, centre + half], low, high)
        assert (box >= reach[0] - 1e-9).all()
        assert (box <= reach[1] + 1e-9).all()
        assert (np.ptp(box, axis=0) > 0.7 * (reach[1] - reach[0])).all()  # all of it
    begin = points[[*np.argsort(-worths)[:3], int(np.argmax(worths[:256]))]]
    np.testing.assert_array_equal(seen["begin"], begin)
    assert seen["how"] == {"iterations": 60}  # what the costs of this arm were measured with
    assert value >= worths.max()
    acquisition = ARMS["dense"]._acquisition(model, now, 5)
    assert float(evaluate(acquisition, u[None])[0]) == pytest.approx(value, abs=1e-6)


def test_a_box_lies_around_its_point_and_inside_the_cube() -> None:
    low, high = _full_space._box(np.array([0.5, 0.05, 0.9]), np.array([0.4, 0.2, 3.0]))
    np.testing.assert_allclose(low, [0.3, 0.0, 0.0])
    np.testing.assert_allclose(high, [0.7, 0.15, 1.0])


def test_the_acquisition_knows_pending_and_failed_points_and_the_cost() -> None:
    arm, now = ARMS["dense"], view(waiting=1, failed=1)
    model = arm.surrogate(now)
    free = model.log_ei(None, None)
    kept = arm._acquisition(model, now, 0)
    assert isinstance(kept, LogEI)
    pending, lost = (0.5 * (now.history[k].x + 1.0) for k in (12, 13))
    far = np.random.default_rng(1).random((8, D))
    for point in (pending, lost):
        at = point[None]
        assert float(evaluate(kept, at)[0]) < float(evaluate(free, at)[0]) - 1.0
    want = model.log_ei(torch.from_numpy(pending[None]), torch.from_numpy(lost[None]))
    np.testing.assert_allclose(evaluate(kept, far), evaluate(want, far))
    costly = view(goals=[Minimize("value"), Cost("other")])
    priced = arm.surrogate(costly)
    by_cost = arm._acquisition(priced, costly, 0)
    assert isinstance(by_cost, PerCost)
    plain = evaluate(priced.log_ei(None, None), far)
    assert np.corrcoef(evaluate(by_cost, far) - plain, far[:, 0])[0, 1] < -0.9  # what costs less is worth more
    several = view(goals=[Minimize("value"), Maximize("other")])
    both = arm._acquisition(arm.surrogate(several), several, 0)
    assert not isinstance(both, LogEI | PerCost)


def test_at_the_end_of_the_budget_the_models_mean_counts_most_where_there_is_no_noise() -> None:
    arm, far = ARMS["sparse"], np.random.default_rng(1).random((8, D))
    ends = {budget: replace(view(), history=replace(view().history, budget=budget)) for budget in (15, 16)}
    model = arm.surrogate(view())
    assert not model.noisy
    late, early = (evaluate(arm._acquisition(model, ends[budget], 0), far) for budget in (15, 16))
    np.testing.assert_allclose(late, evaluate(model.log_ei(None, None, 0.1), far))
    np.testing.assert_allclose(early, evaluate(model.log_ei(None, None), far))
    assert (late < early).any()
    part = model.objectives[0].models[0]
    loud = replace(model, objectives=(Mixture((replace(part, noises=part.noises + 0.1),)),))
    np.testing.assert_allclose(
        evaluate(arm._acquisition(loud, ends[15], 0), far), evaluate(loud.log_ei(None, None), far)
    )


def test_points_are_learned_in_the_unit_cube_and_a_batch_as_if_measured() -> None:
    arm, now = ARMS["dense"], view()
    np.testing.assert_allclose(arm.surrogate(now).Y.numpy(), 0.5 * (now.X + 1.0))
    batch = arm.propose(now, 3)
    assert len({s.x.tobytes() for s in batch}) == 3
    assert np.abs([s.x for s in batch]).max() <= 1.0
    assert [("fit" in s.note, "log_ei" in s.note, "foreseen" in s.note, "side" in s.note) for s in batch] == [
        (True, True, True, False),
        (False, True, True, False),
        (False, True, True, False),
    ]
    assert batch[0].note["log_ei"] >= batch[2].note["log_ei"]
    local = ARMS["local"].propose(view(arm="local"), 1)[0]
    assert local.note["side"] == 0.8
    best = now.X[int(np.argmin([t.outcomes["value"].mean for t in now.trials]))]
    assert np.abs(local.x - best).max() <= 0.8 + 1e-9  # half of a side of 0.8, in a cube twice as wide


def test_a_finding_ranks_parameters_by_the_weight_of_their_coordinates() -> None:
    space = Space([Float("a", 0, 1), Categorical("c", ["u", "v", "w"]), Int("n", 0, 9), Float("b", 0, 1)])
    arm, now = ARMS["full"], view(24, space=space)
    model = arm.surrogate(now)
    said = arm._found(model, now)["sparse"]
    part = model.objectives[0].models[1]
    weight = part.lengthscales**-2.0 * part.X.var(axis=0)
    shares = dict(zip("acnb", (weight[[0]], weight[1:4], weight[[4]], weight[[5]]), strict=True))
    names = sorted(shares, key=lambda name: -shares[name].sum())
    running = np.cumsum([shares[name].sum() for name in names]) / weight.sum()
    count = int((running < 0.95).sum()) + 1
    assert said["parameters"] == names[:count]
    assert said["count"] == count
    assert 0.0 <= said["explained"] <= 1.0
    assert ARMS["dense"]._found(model, now) == {}


def test_a_finding_names_eight_at_most() -> None:
    space = Space.from_bounds([(-1.0, 1.0)] * 12)
    arm, now = ARMS["sparse"], view(30, space=space)
    model = arm.surrogate(now)
    mixture = model.objectives[0]
    even = replace(mixture.models[0], lengthscales=np.ones(12))
    flat = replace(model, objectives=(replace(mixture, models=(even,)),))
    said = arm._found(flat, now)["sparse"]
    assert said["count"] >= 11  # nearly equal shares: 95 % of twelve
    assert len(said["parameters"]) == 8


def test_what_the_arms_are_and_cannot_do() -> None:
    assert {name: arm.priors for name, arm in ARMS.items()} == {
        "full": ("dense", "sparse"),
        "dense": ("dense",),
        "sparse": ("sparse",),
        "local": ("matern", "sparse"),
    }
    assert [name for name, arm in ARMS.items() if arm.region is not None] == ["local"]
    kinds = {name: prior(5) for name, prior in _full_space.PRIORS.items()}
    assert {name: prior.kernel for name, prior in kinds.items()} == {
        "dense": "rbf",
        "matern": "matern",
        "sparse": "matern",
    }
    assert [name for name, prior in kinds.items() if prior.subsets] == ["sparse"]
    cut = Space(SPACE.parameters, [alebo.LinearConstraint({"x0": 1.0}, 0.5)])
    fidelity = Space([alebo.Fidelity("level", 0.1, 1.0), *SPACE.parameters])
    goals = Goals([Minimize("value"), AtMost("other", 1.0)])
    words = [FullSpaceArm("a", "b", ("dense",)).unable(space, goals) for space in (SPACE, cut, fidelity)]
    assert words[0] is None
    assert "linear constraints" in str(words[1])
    assert "fidelity" in str(words[2])
