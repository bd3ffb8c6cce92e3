"""Values at the edges of the rules that methods share: designs, regions, settings, growth, sharing."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import qmc

import alebo
from alebo import AtLeast, AtMost, Goals, InputError, Maximize, Minimize
from alebo._seeds import derive, generator
from alebo.geometry import Embedding, hypersphere
from alebo.goals import Outcome
from alebo.history import History, State, Trial
from alebo.methods import METHODS, Growth, Laplace, Sampled, Sharing, _growth
from alebo.methods._design import initial_points, sobol_points
from alebo.methods._full_space import Region as Side
from alebo.methods._growth import Event, embedded, through_incumbent
from alebo.methods._initial import projected
from alebo.methods._metric import restarts
from alebo.methods._settings import MOST
from alebo.methods._sharing import gains
from alebo.methods._trust_region import Region, replay, take_smallest, thompson
from alebo.methods._view import View
from alebo.models import fit_ard
from alebo.models.priors import dense

from .views import GOAL, SPACE, D, trial, view

# -- designs and regions ---------------------------------------------------------------------------------------------------


def test_designs_are_scipys_sequence_and_uniform_beyond_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for n, power in ((1, 0), (4, 2), (5, 3)):
        unit = qmc.Sobol(3, scramble=True, rng=generator(7, "sobol")).random_base2(power)
        np.testing.assert_allclose(sobol_points(3, n, 7), 2.0 * unit[:n] - 1.0)
    monkeypatch.setattr(qmc.Sobol, "MAXDIM", 60)
    wide = 61
    far = sobol_points(wide, 2, 7)
    np.testing.assert_array_equal(far[1], generator(7, "sobol", 1).uniform(-1, 1, wide))
    assert far.min() < -0.9
    assert far.max() > 0.9
    assert initial_points(wide, 0, 7).shape == (0, wide)
    unit = qmc.Sobol(60, scramble=True, rng=generator(7, "sobol")).random_base2(0)
    np.testing.assert_allclose(sobol_points(60, 1, 7), 2.0 * unit - 1.0)


def test_a_regions_counters_at_their_edges() -> None:
    assert Region(0.4, 2, 3).after([5.0, 4.0], 4) == Region(0.4, 0, 0, 4.0)  # nothing to compare with yet
    start = Region(best=-1000.0)
    assert start.after([-1001.0], 4) == Region(failures=1, best=-1001.0)  # a thousandth exactly is no success
    assert start.after([-1001.5, 7.0], 4) == Region(successes=1, best=-1001.5)
    assert Region(0.8, 2, 0, 1.0).after([0.0], 4) == Region(1.6, 0, 0, 0.0)
    assert Region(1.2, 2, 0, 1.0).after([0.0], 4).length == 1.6
    assert Region(0.8, 1, 0, 1.0).after([0.0], 4) == Region(0.8, 2, 0, 0.0)
    assert Region(0.8, 1, 1, 1.0).after([2.0, 3.0], 4) == Region(0.8, 0, 3, 1.0)
    assert Region(0.8, 0, 3, 1.0).after([2.0], 4) == Region(0.4, 0, 0, 1.0)
    assert [Region(length).collapsed for length in (1.0 / 128.0, 0.999 / 128.0)] == [False, True]
    assert replay([trial(0), trial(1)], {1: 2.0}, 4) == Region(best=2.0)  # without a note: initial
    assert replay([trial(0, 1.0, note={"initial": False, "batch": "3"})], {}, 4, Region(best=5.0)).failures == 1


def test_draws_of_a_region_and_the_smallest_of_each() -> None:
    X = np.random.default_rng(0).random((6, 2))
    gp = fit_ard(X, X[:, 0], dense(2))
    np.testing.assert_array_equal(thompson(gp, X[:3], 2, 5), gp.draws(torch.from_numpy(X[:3]), 2, 5).numpy())
    values = np.array([[3.0, 1.0, 2.0], [9.0, 1.0, 2.0], [0.0, 0.0, 0.0]])
    assert take_smallest(values) == [1, 2, 0]
    assert values.tolist()[1] == [9.0, 1.0, 2.0]


def test_the_side_of_a_region_by_what_its_arm_won_and_lost() -> None:
    wide = alebo.Space.from_bounds([(-1.0, 1.0)] * 55)

    def side(values: list[float], region: Side, space: alebo.Space = SPACE) -> float:
        zeros = np.zeros(space.dimension)
        made = [
            Trial(i, {}, zeros, None, {"v": Outcome(v)}, State.COMPLETE, {"arm": "a"}) for i, v in enumerate(values)
        ]
        return region.side(View(History(tuple(made)), space, GOAL, 0, arm="a"))

    assert side([9.0], Side()) == 0.8  # one success
    assert side([9.0, 8.0], Side()) == 1.6
    assert side([9.0, 9.0, 8.0, 7.0, 6.0, 5.0], Side()) == 1.6  # no longer than that
    assert side([9.0, 8.0, 8.0, 7.0], Side(longest=9.0)) == 1.6  # equal is no success
    assert side([1.0, *[2.0] * 3], Side()) == 0.8
    assert side([1.0, *[2.0] * 4], Side()) == 0.4
    assert [side([1.0, *[2.0] * k], Side(), wide) for k in (4, 5)] == [0.8, 0.4]  # a tenth of 55 coordinates
    assert side([1.0, *[2.0] * 4], Side(shortest=0.4)) == 0.4  # as short as the shortest
    assert side([1.0, *[2.0] * 4], Side(shortest=0.41)) == 0.8


def test_first_points_of_the_original_implementation() -> None:
    seen = view().inside(hypersphere(D, 2, 0).orthonormal())
    rng, b = generator(0, "projected"), 16.0
    while True:
        Y = seen.embedding.down(rng.uniform(-b, b, (6, D)))
        inside = Y[seen.domain.contains(Y)]
        if len(inside) >= 3:
            break
        b /= 2.0
    np.testing.assert_array_equal(projected(seen, 3), inside[:3])
    cut = alebo.Space(SPACE.parameters, [alebo.LinearConstraint({"x0": 1.0}, -0.9)])
    with pytest.raises(InputError, match="uniform"):
        projected(view(space=cut).inside(hypersphere(D, 2, 0).orthonormal().through([-0.95, 0, 0, 0])), 3)


# -- settings --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "name", "good", "bad"),
    [
        (Growth, "start", [1, None, MOST], [0, MOST + 1, True]),
        (Growth, "step", [1], [0, None]),
        (Growth, "most", [1], [0]),
        (Growth, "patience", [0], [-1]),
        (Growth, "pace", [0.0, 1.0], [-1e-9, 1.0 + 1e-9, True]),
        (Growth, "threshold", [-1e300, 0], [math.inf, "a"]),
        (Growth, "directions", [None, len], [3]),
        (Sampled, "samples", [1, np.int64(3)], [0]),
        (Sampled, "warm", [True, np.False_], [1, None]),
        (Laplace, "samples", [1], [0]),
        (Laplace, "cold", [0], [-1]),
        (Laplace, "iterations", [1], [0]),
        (Laplace, "ridge", [0.0], [-1e-9, math.inf]),
        (Laplace, "inflation", [0.0, "n", None], [-1e-9, "m", True]),
        (Laplace, "warm", [False], ["no"]),
        (Sharing, "memory", [0.0, 1.0], [-0.1, 1.1]),
        (Sharing, "final", [0.0, 1.0], [-0.1, 1.1]),
        (Sharing, "lead", [2], [1]),
        (Sharing, "patience", [1], [0]),
        (METHODS["hesbo"], "dim", [1, None], [0]),
        (METHODS["hesbo"], "initial", [1], [0, None]),
    ],
)
def test_a_setting_at_the_edges_of_its_range(made: Any, name: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert getattr(made(**{name: value}), name) == value
    for value in bad:
        with pytest.raises(InputError, match=f"`{name}"):
            made(**{name: value})


def test_when_chains_and_fits_start_anew() -> None:
    want = [n for n in range(20, 200) if math.floor(4 * math.log(n)) > math.floor(4 * math.log(n - 1))]
    assert [n for n in range(1, 200) if restarts(n)] == want
    assert want[:4] == [21, 26, 34, 43]

    def iterations(n: int, most: int) -> int:
        return int(Laplace(iterations=most).builder(n, started=True).keywords["iterations"])  # type: ignore[attr-defined]

    assert [iterations(n, 5) for n in (500, 501)] == [5, 10]  # beyond 500, ten at least
    assert [iterations(n, 400) for n in (500, 501, 1000)] == [400, 398, 100]
    often = [Laplace().builder(n, started=True).keywords["cold"] for n in (20, 21, 495, 500, 505)]  # type: ignore[attr-defined]
    assert often == [3, 0, 3, 3, 0]


def test_a_refusal_names_four_at_most() -> None:
    turbo = METHODS["turbo"]()
    for count, shown in ((4, "'g0', 'g1', 'g2', 'g3'. "), (5, "'g0', 'g1', 'g2', 'g3', .... ")):
        goals = Goals([Minimize("v"), *(AtMost(f"g{k}", 0.0) for k in range(count))])
        with pytest.raises(InputError, match=r"outcome constraints \(AtMost, AtLeast\)") as refused:
            turbo.check(SPACE, goals)
        assert f"got {shown}" in str(refused.value)
    cmaes = METHODS["cmaes"]()
    cmaes.one_at_a_time(History(), 1)
    with pytest.raises(InputError, match="a batch of 2"):
        cmaes.one_at_a_time(History(), 2)
    with pytest.raises(InputError, match="trial 3, which is pending"):
        cmaes.one_at_a_time(History((trial(2, 1.0), trial(3))), 1)


# -- growth ----------------------------------------------------------------------------------------------------------------


def test_an_event_is_plain_data_and_directions_are_written_once() -> None:
    given = Event("towards", 1, 7, ((0.5, 0.0, 0.0, 0.5),))
    assert given.to_plain(7) == ["towards", 1, 7, [[0.5, 0.0, 0.0, 0.5]]]
    assert given.to_plain(8) == ["towards", 1, 7]
    assert Event.from_plain(given.to_plain(7)) == given
    assert Event.from_plain(["grow", 2, 5]) == Event("grow", 2, 5)
    assert Event("grow", 2, 7).to_plain(7) == ["grow", 2, 7]
    for damaged in (["grow", 2], "grow", ["grow", "two", 5], None):
        with pytest.raises(alebo.StudyError, match=r"\[kind, number, trial\]"):
            Event.from_plain(damaged)  # type: ignore[arg-type]


def test_growth_is_due_when_the_threshold_is_reached_and_patience_over(monkeypatch: pytest.MonkeyPatch) -> None:
    growth = Growth(patience=3, most=3)
    small = hypersphere(D, 2, 0).orthonormal()
    model: Any = SimpleNamespace(values=np.arange(9.0)[::-1, None])
    monkeypatch.setattr(Growth, "exhausted_below", lambda *given: -7.0)

    def due(count: int, log_ei: float, embedding: Any = small, events: Any = (), growth: Growth = growth) -> bool:
        points = [np.full(embedding.dim, 0.01 * k) for k in range(count)]
        trials = [trial(k, 9.0 - k, x=embedding.up(y), y=y) for k, y in enumerate(points)]
        return growth.due(view(*trials).inside(embedding, events), model, log_ei)

    assert [due(k, -8.0) for k in (2, 3, 4)] == [False, True, True]
    assert [due(3, v) for v in (-7.0, -6.999)] == [True, False]
    assert [due(k, -8.0, events=(Event("grow", 1, 2),)) for k in (4, 5)] == [False, True]  # since the last growth
    assert not due(5, -8.0, small.grow(1, 0))  # as large as it may become
    assert not due(5, -8.0, hypersphere(D, 4, 0).orthonormal(), growth=Growth(patience=3))
    monkeypatch.setattr(_growth, "_on_a_known_step", lambda *given: True)
    assert [due(k, 5.0) for k in (1, 2)] == [False, True]


def test_a_step_is_one_objectives() -> None:
    trials = [trial(k, float(v)) for k, v in enumerate((1, 2, 3, 1))]
    one = np.array([[1.0], [2.0], [3.0], [1.0]])
    assert _growth._on_a_known_step(trials, one)
    assert not _growth._on_a_known_step(trials, np.hstack([one, one]))


def test_how_an_embedding_grows_and_is_rebuilt() -> None:
    small = hypersphere(D, 2, 0).orthonormal()
    seen = view(trial(0, 1.0)).inside(small)
    grown = Growth(step=3, most=20).grown(seen)
    assert grown.events == (Event("grow", 2, 1),)  # no more than the space has
    np.testing.assert_array_equal(grown.embedding.A, small.grow(2, derive(0, "grow", 0)).A)
    assert Growth(step=3, most=3).grown(seen).embedding.dim == 3
    once = Growth(step=1).grown(seen)
    twice = Growth(step=1).grown(once)
    np.testing.assert_array_equal(twice.embedding.A, once.embedding.grow(1, derive(0, "grow", 1)).A)
    wanted = np.array([[1.0, 0.123456789012], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    led = Growth(step=2, directions=lambda seen, k: wanted[:, :k]).grown(seen)
    assert led.events == (Event("towards", 2, 1, ((1.0, 0.0, 0.0, 0.0), (0.123456789, 1.0, 0.0, 0.0))),)
    np.testing.assert_allclose(led.embedding.residual(np.eye(D)[:2]), 0.0, atol=1e-9)
    assert Growth(directions=lambda seen, k: None).grown(seen).events[0].kind == "grow"
    start = view(trial(0, 1.0, note={"events": [["grow", 1, 0], ["through", 0, 1]]}))
    again = embedded(start, "hypersphere", 2)
    assert [e.kind for e in again.events] == ["grow", "through"]
    assert again.embedding.dim == 4
    assert again.embedding.residual(start.history[0].x) < 1e-9
    with pytest.raises(alebo.StudyError):
        embedded(view(trial(0, 1.0, note={"events": [["towards", 1, 0]]})), "hypersphere", 2)
    noted = [trial(0, 1.0, note={"events": [["towards", 1, 0, [[1, 0, 0, 0]]]]}), trial(1, 1.0, note={})]
    noted[1] = replace(noted[1], note={"events": [["towards", 1, 0]]})
    assert embedded(view(*noted), "hypersphere", 2).embedding.residual(np.eye(D)[0]) < 1e-9


def test_an_embedding_that_the_rules_leave_nothing_of_is_moved(caplog: pytest.LogCaptureFixture) -> None:
    cut = alebo.Space(SPACE.parameters, [alebo.LinearConstraint({"x0": 1.0}, -0.5)])
    first = hypersphere(D, 2, 0).orthonormal().through([-0.9, 0.0, 0.0, 0.0])
    kept = embedded(view(space=cut), "hypersphere", 2, first)
    np.testing.assert_array_equal(kept.embedding.x0, first.x0)
    assert not caplog.records
    flat = Embedding(np.eye(D)[:, 1:3], np.zeros(D))  # x0 stays at its middle
    moved = embedded(view(space=cut), "hypersphere", 2, flat)
    assert moved.embedding.x0[0] < -0.5
    assert not moved.domain.empty
    assert "it was moved" in caplog.text
    np.testing.assert_array_equal(moved.embedding.A, flat.A)


def test_an_incumbent_from_elsewhere_is_taken_in_once() -> None:
    small = hypersphere(D, 2, 0).orthonormal()
    own = trial(0, 5.0, x=small.up([0.1, 0.1]), y=np.array([0.1, 0.1]))
    other = trial(1, 1.0, asked=False)
    found = through_incumbent(view(own, other).inside(small), Growth())
    assert found.events == (Event("through", 1, 2),)
    assert found.embedding.residual(other.x) < 1e-9
    assert through_incumbent(found, Growth()).events == found.events
    for kept in (view(own), view(replace(own, outcomes={"v": Outcome(0.5)}), other), view()):
        assert through_incumbent(kept.inside(small), Growth()).events == ()
    arm = view(replace(own, note={"arm": "e"}), replace(other, note={"arm": "f"}), arm="e")
    assert through_incumbent(arm.inside(small), Growth(most=3)).embedding.dim == 3
    assert through_incumbent(arm.inside(small), Growth(most=2)).embedding.dim == 2  # other arms' points have a limit
    assert through_incumbent(view(own, other).inside(small), Growth(most=2)).embedding.dim == 3
    assert through_incumbent(arm.inside(small), None).embedding.dim == 3
    both = Goals([Minimize("v"), Maximize("w")])
    told = {"v": Outcome(1.0), "w": Outcome(2.0)}
    two = view(trial(0, outcomes=told, asked=False), goals=both)
    assert through_incumbent(two.inside(small), Growth()).events == ()


# -- sharing ---------------------------------------------------------------------------------------------------------------


def test_gains_and_who_is_near_with_constraints_and_several_objectives() -> None:
    goals = Goals([Minimize("v"), AtMost("g", 0.0), AtLeast("h", 0.0)])

    def told(v: float, g: float = 0.0, h: float = 0.0, arm: str = "a") -> Trial:
        return trial(0, outcomes={"v": Outcome(v), "g": Outcome(g), "h": Outcome(h)}, note={"arm": arm})

    # violations 3, 2 + 1.5, 3 again, 1, then a first feasible value, an infeasible one, and a better value
    trials = [told(0, 3), told(0, 2, -1.5), told(0, -9, -3), told(0, 1), told(5), told(0, 1e-9), told(4)]
    assert gains(trials, goals) == [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    assert gains([told(5), told(1), told(5), told(0)], goals) == [1.0, 1.0, 0.0, 0.2]  # 1 of the 5 from the median
    near = [told(1, 5, arm="a"), told(2, arm="b"), told(3, arm="b"), told(9, arm="c")]
    rule = Sharing(patience=2)
    assert rule.near(view(*near, goals=goals), ["a", "b", "c"]) == ["b"]  # median 6; infeasible: infinite
    assert rule.near(view(goals=goals), ["a"]) == ["a"]
    both = Goals([Minimize("v"), Minimize("w")])
    assert rule.near(view(goals=both), ["a", "b"]) == ["a", "b"]
    front = [trial(k, outcomes={"v": Outcome(a), "w": Outcome(b)}) for k, (a, b) in enumerate([(1, 1), (0, 2), (1, 1)])]
    assert gains(front, both) == [1.0, 1.0, 0.0]  # the same once more is none


def test_scores_fade_and_idle_arms_score_nothing() -> None:
    def after(*pairs: tuple[str, float]) -> View:
        return view(*[trial(k, v, note={"arm": a}) for k, (a, v) in enumerate(pairs)])

    rule = Sharing(memory=0.5, patience=2, lead=3)
    found = rule.scores(after(("a", 10.0), ("b", 10.0), ("a", 5.0)), ["a", "b", "c"])
    # a: gains 1 and 1 (5 from the median 10), weights 0.25 and 1; b: none of one
    assert found == {"a": pytest.approx((0.25 + 1.0) / 1.25), "b": 0.0, "c": None}
    tired = rule.scores(after(("a", 10.0), ("a", 11.0), ("a", 12.0)), ["a"])
    assert tired == {"a": 0.0}
    assert rule.scores(after(("a", 10.0), ("a", 11.0)), ["a"])["a"] == pytest.approx(0.5 / 1.5)
    leads = after(("a", 10.0), ("b", 20.0))
    assert [rule.next(leads, ["a", "b"], ["a"] * k) for k in range(4)] == ["b", "a", "a", "b"]
    assert rule.next(leads, ["a"], ["a"]) == "a"
