"""The rule by which arms share evaluations: what counts as a gain, and who proposes next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alebo import AtMost, Goals, InputError, Maximize, Minimize, Space
from alebo.history import History, State, Trial
from alebo.methods import Sharing
from alebo.methods._full_space import Region
from alebo.methods._sharing import gains
from alebo.methods._view import View

SPACE = Space.from_bounds([(-1.0, 1.0)] * 20)
GOALS = Goals(Minimize("value"))


def history(values, arms, goals=GOALS, space=SPACE, budget=None):
    trials = [
        Trial(
            i,
            space.decode(np.zeros(space.dimension)),
            np.zeros(space.dimension),
            None,
            goals.read(v),
            State.COMPLETE,
            {"arm": a},
        )
        for i, (v, a) in enumerate(zip(values, arms, strict=True))
    ]
    return History(tuple(trials), budget)


def view(values, arms, budget=None):
    return View(history(values, arms, budget=budget), SPACE, GOALS, 0)


def test_a_gain_is_the_share_of_the_way_from_the_typical_value():
    # median of (10, 6) is 8; from best 6 down to 4: a decrease of 2 of the distance 4 between 8 and 4
    trials = history([10.0, 6.0, 4.0, 5.0], ["a"] * 4).trials
    assert gains(trials, GOALS) == [1.0, 1.0, 0.5, 0.0]


def test_gains_do_not_depend_on_the_scale_or_on_the_zero_of_the_outcomes():
    values = np.random.default_rng(0).normal(size=30)
    plain = gains(history(values, ["a"] * 30).trials, GOALS)
    moved = gains(history(1e4 * values - 77.0, ["a"] * 30).trials, GOALS)
    assert np.allclose(plain, moved)
    assert sum(g > 0 for g in plain) >= 3


def test_before_a_feasible_point_a_smaller_violation_is_a_gain():
    goals = Goals([Minimize("value"), AtMost("load", 1.0)])
    outcomes = [{"value": 0.0, "load": v} for v in (5.0, 7.0, 3.0, 0.5, 0.9)]
    found = gains(history(outcomes, ["a"] * 5, goals).trials, goals)
    assert found == [1.0, 0.0, 1.0, 1.0, 0.0]


def test_with_several_objectives_a_new_point_of_the_front_is_a_gain():
    goals = Goals([Minimize("a"), Maximize("b")])
    outcomes = [{"a": 1.0, "b": 1.0}, {"a": 2.0, "b": 0.0}, {"a": 2.0, "b": 3.0}]
    assert gains(history(outcomes, ["x"] * 3, goals).trials, goals) == [1.0, 0.0, 1.0]


def test_every_arm_proposes_once_then_the_one_that_improves_gets_three_of_four():
    arms = ["one", "two"]
    now = view([10.0], ["initial"])
    assert Sharing().next(now, arms) == "one"
    assert Sharing().next(now, arms, ["one"]) == "two"
    asked, values = ["initial", "one", "two"], [10.0, 9.0, 9.5]
    best = 9.0
    for _ in range(24):
        arm = Sharing().next(view(values, asked), arms)
        best -= 1.0 if arm == "one" else 0.0
        asked.append(arm)
        values.append(best if arm == "one" else 20.0)
    assert asked[-24:].count("two") == 6


def promised(values, arms, log_ei, budget=None):
    """The view in which every trial of an arm promised this log-EI."""
    trials = [replace(t, note={**t.note, "log_ei": log_ei}) for t in history(values, arms).trials]
    return View(History(tuple(trials), budget), SPACE, GOALS, 0)


@pytest.mark.parametrize(("log_ei", "turns"), [(-3.4, 2), (-3.6, 4)])
def test_a_leader_that_promises_little_gets_every_other_evaluation(log_ei, turns):
    asked = ["initial", "one", "two", "one", "one"]
    values = [10.0, 9.0, 20.0, 8.0, 7.0]
    now = promised(values, asked, log_ei)
    ahead: list[str] = []
    for _ in range(8):
        ahead.append(Sharing().next(now, ["one", "two"], ahead))
    assert ahead.count("two") == turns


def test_the_last_two_promises_of_the_leader_count():
    seen = promised([10.0, 9.0, 20.0, 8.0, 7.0], ["initial", "one", "two", "one", "one"], -9.0)
    trials = seen.history.trials
    hopeful = (*trials[:3], replace(trials[3], note={"arm": "one", "log_ei": 0.0}), trials[4])
    assert Sharing()._promises_little(seen, "one")
    assert not Sharing()._promises_little(replace(seen, history=History(hopeful)), "one")
    assert not Sharing()._promises_little(view([1.0], ["one"]), "one")  # it noted no promise
    assert not Sharing(faint=-20.0)._promises_little(seen, "one")


def test_scores_and_region_start_again_with_a_new_search():
    seen = view([10.0, 5.0, 4.0, 20.0], ["initial", "local", "local", "local"])
    assert Sharing().scores(seen, ["local"])["local"] > 0.0
    assert Sharing().scores(replace(seen, begun=3), ["local"]) == {"local": 0.0}
    assert Region().side(replace(seen, arm="local")) == 1.6
    assert Region().side(replace(seen, arm="local", begun=2)) == 0.8


def test_an_arm_that_starts_to_improve_takes_over():
    values, asked = [10.0], ["initial"]
    for i in range(12):  # "one" improves and then stops; "two" improves at last
        values.append(9.0 - i)
        asked.append("one")
    assert Sharing().next(view([*values, 50.0], [*asked, "two"]), ["one", "two"]) == "one"
    values += [50.0] * 20 + [-20.0, -30.0]
    asked += ["one"] * 20 + ["two"] * 2
    scores = Sharing().scores(view(values, asked), ["one", "two"])
    assert scores["two"] > scores["one"]


def test_an_arm_that_has_waited_too_long_for_a_gain_loses_the_lead():
    asked, values = ["initial", "one", "two"], [10.0, 5.0, 20.0]
    for _ in range(8):
        asked.append("one")
        values.append(20.0)
    assert Sharing().scores(view(values, asked), ["one", "two"])["one"] > 0.0
    assert Sharing().scores(view([*values, 20.0], [*asked, "one"]), ["one", "two"])["one"] == 0.0


def test_when_nothing_improves_arms_take_turns():
    asked = ["initial", "one", "two"] + ["one", "two"] * 100
    values = [0.0] + [1.0] * (len(asked) - 1)
    assert Sharing().next(view(values, asked), ["one", "two"]) == "one"
    assert Sharing().next(view([*values, 1.0], [*asked, "one"]), ["one", "two"]) == "two"


def test_the_last_share_of_the_budget_belongs_to_the_leader():
    asked = ["initial", "one", "two"] + ["one"] * 13
    values = [10.0, 9.0, 20.0] + [8.0 - i for i in range(13)]
    turns = [Sharing().next(view(values, asked, budget=20), ["one", "two"], ["one"] * i) for i in range(4)]
    assert turns == ["one"] * 4
    early = [Sharing().next(view(values, asked, budget=200), ["one", "two"], ["one"] * i) for i in range(4)]
    assert early.count("two") == 1


def test_scores_ignore_points_that_no_arm_proposed():
    assert Sharing().scores(view([3.0, 2.0], ["initial", "initial"]), ["one"]) == {"one": None}


def test_a_region_doubles_after_two_successes_and_halves_after_failures():
    region = Region()
    own = View(history([5.0, 4.0, 3.0], ["initial", "local", "local"]), SPACE, GOALS, 0, arm="local")
    assert region.side(own) == 1.6
    patience = max(4, SPACE.dimension // 10)
    lost = history([5.0] + [9.0] * patience, ["initial"] + ["local"] * patience)
    assert region.side(View(lost, SPACE, GOALS, 0, arm="local")) == 0.4
    assert region.side(View(lost, SPACE, GOALS, 0, arm="full")) == 0.8  # other arms' failures do not count
    many = history([5.0] + [9.0] * 6 * patience, ["initial"] + ["local"] * 6 * patience)
    assert region.side(View(many, SPACE, GOALS, 0, arm="local")) == 0.8  # 0.8 / 2^6 < 1/64: from the start


@pytest.mark.parametrize("settings", [{"memory": 1.5}, {"lead": 1}, {"final": -0.1}, {"lead": 2.5}, {"patience": 0}])
def test_the_rule_checks_its_settings(settings):
    with pytest.raises(InputError):
        Sharing(**settings)


def stalled(*, poor, count=40, budget=None):
    """The arms asked after nothing improved for long, where the values of the arm "two" are these."""
    asked, values = ["initial", "one", "two", "three"], [0.0, 5.0, 5.0, 5.0]
    for i in range(count):
        arm = Sharing(patience=4).next(view(values, asked, budget), ["one", "two", "three"])
        asked.append(arm)
        values.append(poor if arm == "two" else 1.0 + i % 3)
    return asked[-24:]


def test_when_nothing_improves_an_arm_that_never_comes_near_is_asked_seldom():
    asked = stalled(poor=9.0)
    assert [asked.count(name) for name in ("one", "two", "three")] == [9, 6, 9]  # every fourth


def test_when_nothing_improves_arms_that_come_equally_near_take_turns():
    asked = stalled(poor=2.0)
    assert max(asked.count(name) for name in ("one", "two", "three")) <= 10


def test_an_arm_is_near_when_half_of_its_latest_evaluations_are_better_than_half_of_all():
    values = [1.0, 1.0, 9.0, 2.0, 8.0, 8.0, 1.0, 9.0, 9.0]
    arms = ["one", "two"] * 4 + ["two"]
    rule = Sharing(patience=3)  # all: 8; the last three of "one": 8; of "two": 9
    assert rule.near(view(values, arms), ["one", "two", "new"]) == ["one", "new"]
