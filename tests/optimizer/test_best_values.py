"""Best, front, trace and hypervolume of random histories against the plainest computation of each, and BoTorch's."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import alebo
from alebo import AtLeast, AtMost, Fidelity, Float, Goals, LinearConstraint, Maximize, Minimize, Space, StateError
from alebo._best import best, front, hypervolumes
from alebo._result import result_of, trace, values_of
from alebo.goals import Outcome, hypervolume_trace, pareto
from alebo.history import History, State, Trial, counts, incumbents

SPACE = Space([Fidelity("level", 0.1, 1.0), Float("a", 0.0, 1.0)], [LinearConstraint({"a": 1.0}, 0.5)])
ONE = Goals([Maximize("gain"), AtMost("mass", 2.0), AtLeast("life", -1.0)])
TWO = Goals([Maximize("gain"), Minimize("cost"), AtMost("mass", 2.0)])
SMALL = st.integers(-3, 3).map(float)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Trials with few different values, so that ties, bounds that are just met and infeasible points are common."""
    trials = []
    for i in range(draw(st.integers(1, 9))):
        state = draw(st.sampled_from([State.COMPLETE] * 4 + [State.PENDING, State.FAILED]))
        params = {"level": draw(st.sampled_from([1.0, 1.0, 0.1])), "a": draw(st.sampled_from([0.1, 0.5, 0.9]))}
        told = {k: Outcome(draw(SMALL)) for k in ("gain", "mass", "life", "cost")}
        trials.append(Trial(i, params, np.zeros(2), None, told if state is State.COMPLETE else {}, state))
    return History(tuple(trials))


def good(t: Trial, goals: Goals) -> bool:
    """Complete, at the target, feasible by the linear constraint and by the measured outcomes."""
    if t.state is not State.COMPLETE or t.params["level"] != 1.0 or t.params["a"] > 0.5:
        return False
    life = goals is TWO or t.outcomes["life"].mean >= -1.0
    return t.outcomes["mass"].mean <= 2.0 and life


@given(histories())
def test_the_incumbent_after_each_trial_is_the_first_of_the_best_so_far(history: History) -> None:
    done = [t for t in history if t.state is not State.PENDING]
    expected: list[int | None] = []
    for k in range(len(done)):
        so_far = [t for t in done[: k + 1] if good(t, ONE)]
        expected.append(max(so_far, key=lambda t: (t.outcomes["gain"].mean, -t.number)).number if so_far else None)
    pairs = incumbents(history, ONE, SPACE)
    assert [t.number for t, _ in pairs] == [t.number for t in done]
    assert [None if b is None else b.number for _, b in pairs] == expected
    assert [counts(t, ONE, SPACE) for t in history] == [good(t, ONE) for t in history]
    values = [math.nan if n is None else history[n].outcomes["gain"].mean for n in expected]
    np.testing.assert_array_equal(trace(history, ONE, SPACE), values)


@given(histories())
def test_best_is_the_best_of_the_feasible_ones_or_names_the_nearest(history: History) -> None:
    complete = [t for t in history if t.state is State.COMPLETE]
    if not complete:
        with pytest.raises(StateError, match=rf"of {len(history)} none is \({len(history.failed)} failed\)"):
            best(history, SPACE, ONE, lambda: None)
        return
    among = [
        t for t in complete if t.params["level"] == 1.0
    ] or complete  # cheap looks count where there is nothing else
    able = [
        t for t in among if t.params["a"] <= 0.5 and t.outcomes["mass"].mean <= 2.0 and t.outcomes["life"].mean >= -1.0
    ]
    if able:
        found = best(history, SPACE, ONE, lambda: None)
        assert found.number == max(able, key=lambda t: (t.outcomes["gain"].mean, -t.number)).number
        assert found.note == {"chosen_by": "measured value"}
        return

    def broken(t: Trial) -> float:
        return max(t.outcomes["mass"].mean - 2.0, 0.0) + max(-1.0 - t.outcomes["life"].mean, 0.0)

    nearest = min(among, key=lambda t: (broken(t), t.number))
    with pytest.raises(StateError, match=rf"none of {len(among)} completed trials does.* is trial {nearest.number} "):
        best(history, SPACE, ONE, lambda: None)


@given(histories())
def test_the_front_holds_what_nothing_beats(history: History) -> None:
    complete = [t for t in history if t.state is State.COMPLETE]
    among = [t for t in complete if t.params["level"] == 1.0] or complete
    able = [t for t in among if t.params["a"] <= 0.5 and t.outcomes["mass"].mean <= 2.0]
    if not able:
        with pytest.raises(StateError):
            front(history, SPACE, TWO, lambda: None)
        return

    def beaten(t: Trial) -> bool:
        mine = (-t.outcomes["gain"].mean, t.outcomes["cost"].mean)
        for other in able:
            theirs = (-other.outcomes["gain"].mean, other.outcomes["cost"].mean)
            better = theirs[0] <= mine[0] and theirs[1] <= mine[1] and theirs != mine
            if better or (theirs == mine and other.number < t.number):
                return True
        return False

    found = front(history, SPACE, TWO, lambda: None)
    assert [t.number for t in found] == [t.number for t in able if not beaten(t)]


def area(points: list[tuple[float, float]], corner: tuple[float, float]) -> float:
    """The dominated area, by counting the cells of the grid that all coordinates make."""
    points = [p for p in points if p[0] < corner[0] and p[1] < corner[1]]
    xs, ys = (sorted({*(p[i] for p in points), corner[i]}) for i in (0, 1))
    cells = itertools.product(itertools.pairwise(xs), itertools.pairwise(ys))
    return sum((x1 - x0) * (y1 - y0) for (x0, x1), (y0, y1) in cells if any(p[0] <= x0 and p[1] <= y0 for p in points))


@given(histories(), st.tuples(SMALL, SMALL))
def test_the_hypervolume_is_the_dominated_area(history: History, corner: tuple[float, float]) -> None:
    done = [t for t in history if t.state is not State.PENDING]
    got = hypervolumes(history, SPACE, TWO, [-corner[0], corner[1]])
    for k in range(len(done)):
        points = [(-t.outcomes["gain"].mean, t.outcomes["cost"].mean) for t in done[: k + 1] if good(t, TWO)]
        assert got[k] == pytest.approx(area(points, corner))
    assert len(got) == len(done)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_hypervolume_is_botorchs(m: int) -> None:
    import torch
    from botorch.utils.multi_objective.hypervolume import Hypervolume

    rng = np.random.default_rng(m)
    points = rng.random((14, m))
    points[3] = math.nan  # failed
    corner = np.full(m, 0.9)
    found = hypervolume_trace(points, corner)
    for k in range(14):
        known = points[: k + 1][~np.isnan(points[: k + 1]).any(axis=1)]
        theirs = Hypervolume(torch.from_numpy(-corner)).compute(torch.from_numpy(-known[pareto(known)]))
        assert found[k] == pytest.approx(theirs)


def test_a_missing_reference_lies_a_tenth_of_the_front_beyond_its_worst_value() -> None:
    goals = Goals([Minimize("a"), Maximize("b", reference=0.0)])
    rows = [(1.0, 2.0), (3.0, 8.0), (9.0, 1.0)]  # the last one is beaten, and plays no part
    trials = [
        Trial(i, {"level": 1.0, "a": 0.1}, np.zeros(2), None, {"a": Outcome(a), "b": Outcome(b)}, State.COMPLETE)
        for i, (a, b) in enumerate(rows)
    ]
    got = hypervolumes(History(tuple(trials)), SPACE, goals, None)  # up to (3.2, 0)
    assert got.tolist() == pytest.approx([2.2 * 2.0, 2.0 * 2.0 + 0.2 * 8.0, 2.0 * 2.0 + 0.2 * 8.0])
    alone = hypervolumes(History(tuple(trials[:1])), SPACE, goals, None)
    assert alone[0] == pytest.approx(2.0 * 1e-13, rel=1e-2)  # no range, and yet not nothing


@pytest.mark.parametrize(
    ("estimated", "chosen"),
    [
        ({0: (5.0, 0.0), 1: (7.0, 0.0), 2: (6.0, 0.0)}, 1),
        ({0: (5.0, 0.0), 1: (7.0, 9.0), 2: (6.0, 0.0)}, 0),  # 1 is infeasible as estimated, 2 as measured
        ({0: (5.0, 9.0), 1: (7.0, 9.0), 2: (6.0, 0.0)}, 2),  # feasible as estimated alone
        ({0: (5.0, 9.0), 1: (7.0, 9.0), 2: (6.0, 9.0)}, 0),  # none as estimated: by what was measured
    ],
)
def test_under_noise_what_is_feasible_as_measured_and_as_estimated_comes_first(
    estimated: dict[int, tuple[float, float]], chosen: int
) -> None:
    goals = Goals([Maximize("gain"), AtMost("mass", 2.0)])
    masses, gains = (0.0, 0.0, 5.0), (9.0, 1.0, 2.0)
    trials = tuple(
        Trial(
            i,
            {"level": 1.0, "a": 0.1},
            np.zeros(2),
            None,
            {"gain": Outcome(gains[i]), "mass": Outcome(masses[i])},
            State.COMPLETE,
        )
        for i in range(3)
    )
    model = {i: {"gain": Outcome(g), "mass": Outcome(m)} for i, (g, m) in estimated.items()}
    found = best(History(trials), SPACE, goals, lambda: model)
    assert found.number == chosen
    assert found.note["chosen_by"] == "posterior mean"


def test_a_result_is_in_the_users_sign_and_says_how_it_ended() -> None:
    space = Space([Float("level", 0.0, 1.0), Float("a", 0.0, 1.0)])
    opt = alebo.Optimizer(space, [Maximize("gain")], method=alebo.methods.Sobol(), seed=0)
    with pytest.raises(alebo.EvaluationError, match=r"none is .* The last evaluation gave ValueError: odd\."):
        result_of(opt, "", ValueError("odd"))
    opt.tell({"level": 1.0, "a": 0.25}, {"gain": 4.0})
    opt.tell({"level": 1.0, "a": 0.5}, {"gain": 3.0})
    opt.fail(opt.ask()[0].number)
    found = result_of(opt, "Stopped", None)
    assert (found.fun, found.x.tolist(), found.nfev) == (4.0, [1.0, 0.25], 3)
    assert found.message == "Stopped. 2 evaluations, 1 failed; best is trial 0, by measured value."
    assert found.params == {"level": 1.0, "a": 0.25}
    assert found.trace.tolist() == [4.0, 4.0, 4.0]
    assert result_of(opt, "", None).message.startswith("2 evaluations")


def test_values_are_numbers_where_they_can_be() -> None:
    space: Any = SimpleNamespace(names=["b", "a"])
    numbers = values_of(space, {"a": 1, "b": 2.5})
    assert (numbers.tolist(), numbers.dtype) == ([2.5, 1.0], np.dtype(float))
    assert values_of(space, {"a": "x", "b": 2.5}).tolist() == [2.5, "x"]
