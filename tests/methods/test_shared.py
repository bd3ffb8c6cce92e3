"""The small parts that methods share, each against its definition: designs, fidelity, growth, repeats, regions, notes."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import alebo
from alebo.geometry import hypersphere
from alebo.goals import Goals, Outcome
from alebo.history import History, State, Trial
from alebo.methods import Growth, Laplace, Sampled, View, _embedded, _growth, _notes, _repeat
from alebo.methods._design import initial_points, sobol_points
from alebo.methods._fidelity import at_target_next, log_cost
from alebo.methods._flat_names import grouped
from alebo.methods._initial import initial_point
from alebo.methods._penalised import measured, penalised_values
from alebo.methods._trust_region import Region, candidates, replay, sides
from alebo.models import PAPER

SPACE = alebo.Space.from_bounds([(-1.0, 1.0)] * 4)
GOAL = Goals(alebo.Minimize("v"))
BOUNDED = Goals([alebo.Minimize("v"), alebo.AtMost("g", 0.0)])


def trial(
    number: int,
    value: float | None = None,
    g: float | None = None,
    *,
    x: Any = None,
    state: State | None = None,
    **more: Any,
) -> Trial:
    """A trial at `x`: complete where it has a value, else pending or as told."""
    point = np.zeros(4) if x is None else np.asarray(x, dtype=float)
    outcomes = {} if value is None else {"v": Outcome(value)} | ({} if g is None else {"g": Outcome(g)})
    now = state or (State.PENDING if value is None else State.COMPLETE)
    return Trial(number, SPACE.decode(point), point, more.pop("y", None), outcomes, now, **more)


def view(
    *trials: Trial, budget: int | None = None, goals: Goals = GOAL, space: alebo.Space = SPACE, **how: Any
) -> View:
    return View(History(trials, budget), space, goals, 0, **how)


# -- first points --------------------------------------------------------------------------------------------------------


def test_a_design_is_extended_without_changing_what_it_has() -> None:
    for n in (1, 2, 3, 5, 8, 9):
        np.testing.assert_array_equal(sobol_points(3, 16, 7)[:n], sobol_points(3, n, 7))
        assert sobol_points(3, n, 7).shape == (n, 3)
    assert sobol_points(3, 0, 7).shape[0] == 0
    assert initial_points(3, 0, 7).shape == (0, 3)
    cube, unit = sobol_points(3, 64, 7), initial_points(3, 64, 7)
    np.testing.assert_allclose(unit, (cube + 1.0) / 2.0)
    assert (cube.min() < -0.9, cube.max() > 0.9, unit.min() < 0.05, unit.max() > 0.95) == (True,) * 4
    assert np.abs(cube.mean(axis=0)).max() < 0.05  # one point in every interval of a 64th


def test_the_first_point_is_the_centre_and_a_careful_look() -> None:
    seen = view().inside(hypersphere(4, 2, 0).orthonormal())
    assert initial_point(seen, 0, 5, centre=True).tolist() == [0.0, 0.0]
    with_level = alebo.Space([alebo.Fidelity("level", 0.1, 1.0), *SPACE.parameters])
    careful = view(space=with_level).inside(hypersphere(4, 2, 0).orthonormal().beside(0))
    assert initial_point(careful, 0, 5, centre=True).tolist() == [1.0, 0.0, 0.0]
    others = [initial_point(seen, k, 5, centre=False) for k in range(7)]
    np.testing.assert_array_equal([initial_point(seen, k, 5, centre=True) for k in range(1, 5)], others[1:5])
    assert len({y.tobytes() for y in others}) == 7
    assert seen.domain.contains(np.array(others)).all()


# -- embeddings that are boxes --------------------------------------------------------------------------------------------


def test_the_size_of_an_embedding() -> None:
    assert [_embedded.embedding_size(None, D) for D in (3, 10, 50)] == [3, 10, 10]
    assert _embedded.embedding_size(5, 5) == 5
    with pytest.raises(alebo.InputError, match="dim=6, D=5"):
        _embedded.embedding_size(6, 5)


def test_the_best_embedded_points_are_the_feasible_ones_first() -> None:
    told = [(3.0, 0.0), (1.0, 5.0), (2.0, -1.0), (9.0, -1.0), (0.5, 0.1)]
    trials = [trial(i, v, g, y=np.array([float(i)])) for i, (v, g) in enumerate(told)]
    waiting = trial(5, y=np.array([5.0]))
    assert _embedded.best_embedded([*trials, waiting], BOUNDED).tolist() == [[2.0], [0.0], [3.0]]
    assert _embedded.best_embedded(trials, BOUNDED, count=4)[3].tolist() == [4.0]
    assert [t.number for t in _embedded.in_embedding([*trials, trial(6), trial(7, y=np.zeros(2))], 1)] == [
        0,
        1,
        2,
        3,
        4,
    ]


def test_points_around_others_are_near_at_two_distances() -> None:
    at = np.array([[0.0, 0.0], [10.0, 10.0]])
    near = _embedded.around(at, np.array([2.0, 2.0]), 0)
    assert near.shape == (40, 2)
    off = np.linalg.norm(near.reshape(20, 2, 2) - at, axis=2) / 2.0
    assert ((off > 1e-4) & (off < 0.5)).all()
    assert 4 <= (off < 0.035).sum() <= 36  # some at a hundredth, some at a tenth of the scale
    assert off.max() > 0.1


def test_a_box_is_searched_to_its_ends_and_around_the_best_points(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def maximised(acquisition: Any, low: np.ndarray, high: np.ndarray, **how: Any) -> tuple[np.ndarray, float]:
        asked.update(low=low, high=high, **how)
        return high, 1.234567

    monkeypatch.setattr(_embedded, "maximise_in_box", maximised)
    rng = np.random.default_rng(0)
    trials = [trial(i, float(i), y=rng.uniform(-3.0, 3.0, 2)) for i in range(6)]
    box = _embedded.Box(2, 3.0, lambda y: np.append(y, [0.0, 0.0]) / 3.0, lambda Y: Y / 3.0)
    found = _embedded.next_embedded(trials, trials, GOAL, box, ready=True, seed=4, dim=2)
    assert (asked["low"].tolist(), asked["high"].tolist()) == ([-3.0, -3.0], [3.0, 3.0])
    assert (asked["raw"], asked["seed"]) == (512, 4)
    best = np.array([t.y for t in trials[:3]])
    np.testing.assert_array_equal(asked["extra"], _embedded.around(best, np.full(2, 6.0), 4))  # in units of a side
    assert (found.x.tolist(), found.note) == ([1.0, 1.0, 0.0, 0.0], {"dim": 2, "by": "model", "log_ei": 1.2346})
    repeated = [*trials, trial(6, 9.0, x=[1.0, 1.0, 0.0, 0.0], y=np.array([3.0, 3.0]))]
    instead = _embedded.next_embedded(repeated, repeated, GOAL, box, ready=True, seed=4)
    first = _embedded.next_embedded(trials, trials, GOAL, box, ready=False, seed=4)
    assert instead.note == first.note == {"by": "random"}
    assert instead.x.tolist() == first.x.tolist() != found.x.tolist()


def test_a_repeated_point_is_drawn_again() -> None:
    known = [trial(0, 1.0, x=[0.5, 0.0, 0.0, 0.0])]
    assert _embedded.is_repeated(np.array([0.5, 0.0, 0.0, 1e-10]), known)
    assert not _embedded.is_repeated(np.array([0.5, 0.0, 0.0, 1e-8]), known)
    asked: list[int] = []

    def draw(seed: int) -> tuple[np.ndarray, np.ndarray]:
        asked.append(seed)
        return (known[0].x if len(asked) < 4 else np.ones(4)), np.array([len(asked)])

    x, y = _embedded.first_new(draw, known, 0)
    assert (x.tolist(), y.tolist(), len(set(asked))) == ([1.0] * 4, [4], 4)
    asked.clear()
    _embedded.first_new(lambda seed: (asked.append(seed) or known[0].x, np.zeros(1)), known, 0)
    assert len(set(asked)) == 10  # and then it is taken
    points = np.array([_embedded.uniform_draw(3.0, 2, lambda y: y / 3.0)(s)[1] for s in range(200)])
    assert (np.abs(points).max() <= 3.0, points.min() < -2.8, points.max() > 2.8) == (True, True, True)


# -- fidelity --------------------------------------------------------------------------------------------------------------


def test_every_fifth_evaluation_and_the_last_tenth_are_at_the_target() -> None:
    done = [trial(i, 1.0) for i in range(40)]
    assert [k for k in range(20) if at_target_next(view(*done[:k]))] == [4, 9, 14, 19]
    assert [k for k in range(40) if at_target_next(view(*done[:k], budget=40)) and k % 5 != 4] == [35, 36, 37, 38]
    assert at_target_next(view(*done[:2], extra=(np.zeros(4),) * 2))  # the fifth, counted within a batch
    assert not at_target_next(view(*done[:2], extra=(np.zeros(4),)))


def test_a_look_costs_in_proportion_to_its_fidelity() -> None:
    model = SimpleNamespace(cost=None)
    shares = torch.tensor([-1.0, 0.0, 1.0]).double()
    X = torch.stack([shares, torch.zeros(3).double()], dim=-1).unsqueeze(-2)
    for log, expected in ((False, [1.0, 50.5, 100.0]), (True, [1.0, 10.0, 100.0])):
        space = alebo.Space([alebo.Fidelity("level", 1, 100, log=log), *SPACE.parameters])
        cost = log_cost(model, space)  # type: ignore[arg-type]
        assert cost is not None
        assert cost(X).exp().tolist() == pytest.approx(expected)
    zero = log_cost(model, alebo.Space([alebo.Fidelity("level", 0, 100), *SPACE.parameters]))  # type: ignore[arg-type]
    assert zero is not None
    assert zero(X).exp().tolist() == pytest.approx([0.1, 50.0, 100.0])  # nothing is free
    assert log_cost(model, SPACE) is None  # type: ignore[arg-type]


# -- growth and repeats ----------------------------------------------------------------------------------------------------


def grown(values: list[float], *, noise: float = 1e-12, feasible: list[bool] | None = None) -> Any:
    """The part of a model that growth looks at."""
    objective = SimpleNamespace(noise=torch.full((len(values),), noise).double())
    ok = np.array(feasible or [True] * len(values))
    return SimpleNamespace(objectives=[objective], values=np.array(values)[:, None], feasible=ok)


def test_the_first_dimension_by_the_budget() -> None:
    assert [Growth().first(b, 100) for b in (1, 10, 30, 50, 70, 200, 269, 270, 5000, None)] == [
        *(2, 2, 3, 4, 5, 11, 14, 15, 15, 6),
    ]  # fmt: skip
    assert (Growth(most=3).first(200, 100), Growth().first(200, 4), Growth(start=7).first(10, 100)) == (3, 4, 7)
    assert (Growth().first(200, 1), Growth(start=1).first(None, 9)) == (1, 2)


def test_the_threshold_of_an_exhausted_subspace() -> None:
    growth = Growth(threshold=-7.0, patience=5, pace=0.2)
    falling = [float(v) for v in range(30, 0, -1)]
    flat = [1.0, *[2.0 + 0.1 * k for k in range(29)]]
    assert growth.exhausted_below(view(budget=100), grown(falling), 29) == -7.0  # it improves all the time
    noisy = grown(falling, noise=math.exp(-2.0))
    assert growth.exhausted_below(view(budget=100), noisy, 29) == pytest.approx(-3.0)  # -2 / 2 - 2
    # nothing improved in 29 trials: 24 beyond the patience, of the 20 over which it rises to -4
    assert growth.exhausted_below(view(budget=100), grown(flat), 29) == -4.0
    assert growth.exhausted_below(view(budget=100), grown(flat), 15) == pytest.approx(-7.0 + 3.0 * 10 / 20)
    assert growth.exhausted_below(view(budget=None), grown(flat), 15) == pytest.approx(-7.0 + 3.0 * 10 / 20)
    assert growth.exhausted_below(view(budget=200), grown(flat), 15) == pytest.approx(-7.0 + 3.0 * 10 / 40)
    assert growth.exhausted_below(view(budget=100), grown(flat), 5) == -7.0
    none = grown(flat, feasible=[False] * 30)
    assert growth.exhausted_below(view(budget=100), none, 15) == pytest.approx(-5.5)  # nothing feasible: no improvement


def test_a_known_step_is_the_same_outcome_elsewhere_and_not_the_worst() -> None:
    def on_step(values: list[float], places: list[float]) -> bool:
        trials = [trial(i, v, x=[p, 0, 0, 0]) for i, (v, p) in enumerate(zip(values, places, strict=True))]
        return _growth._on_a_known_step(trials, np.array(values)[:, None])

    assert on_step([1.0, 2.0, 1.0], [0.1, 0.2, 0.3])
    assert not on_step([1.0, 2.0, 1.0], [0.1, 0.2, 0.1])  # measured again
    assert not on_step([2.0, 1.0, 2.0], [0.1, 0.2, 0.3])  # what a broken program returns
    assert not on_step([1.0, 2.0, 1.5], [0.1, 0.2, 0.3])
    many = [trial(0, 1.0, 1.0), trial(1, 3.0, 2.0), trial(2, 1.0, 2.0, x=[1, 0, 0, 0])]
    assert not _growth._on_a_known_step(many, np.array([[1.0], [3.0], [1.0]]))  # another outcome differs
    assert not _growth._on_a_known_step(many, np.ones((3, 2)))


def test_repeated_points_that_agree_show_that_there_is_no_noise() -> None:
    apart = [trial(i, float(i), x=[0.1 * i, 0, 0, 0]) for i in range(4)]
    assert not _repeat.repeatable(History(tuple(apart)))
    same, other = (trial(4, v, x=apart[2].x) for v in (2.0, 2.001))
    assert _repeat.repeatable(History((*apart, same)))
    assert not _repeat.repeatable(History((*apart, other)))
    assert not _repeat.repeatable(History((*apart, same, replace(other, number=5))))


def test_the_assumption_is_judged_by_the_typical_of_the_last_twenty() -> None:
    def fails(shares: list[float], now: float, complete: int = 60) -> bool:
        noted = [trial(i, 1.0, note={"unexplained": s}) for i, s in enumerate(shares)]
        more = [trial(i, 1.0) for i in range(len(noted), complete)]
        return _notes.assumption_fails(History((*noted, *more)), now)

    assert fails([0.2] * 19, 0.2)
    assert not fails([0.2] * 19, 0.2, complete=59)
    assert fails([0.0] * 30 + [0.2] * 10, 0.2)  # eleven of the last twenty
    assert not fails([0.0] * 30 + [0.2] * 9, 0.15)
    assert not fails([0.15] * 19, 0.15)


# -- trust regions, penalties, metrics -----------------------------------------------------------------------------------


def test_the_sides_of_a_region_are_in_proportion_to_the_lengthscales() -> None:
    low, high = sides(np.full(3, 0.5), 0.2, np.array([1.0, 2.0, 4.0]))
    width = high - low
    np.testing.assert_allclose(width / width[0], [1.0, 2.0, 4.0])
    assert width.prod() == pytest.approx(0.2**3)
    low, high = sides(np.array([0.05, 0.95]), 0.4, np.ones(2))
    np.testing.assert_allclose([low, high], [[0.0, 0.75], [0.25, 1.0]])
    points = candidates(np.full(3, 0.5), 0.2, np.array([1.0, 2.0, 4.0]), 64, np.random.default_rng(0))
    assert (points >= 0.5 - width / 2 - 1e-12).all()
    assert (points <= 0.5 + width / 2 + 1e-12).all()


def test_a_replayed_region_counts_batches_that_are_over() -> None:
    first = [trial(0, 5.0, note={"initial": True}), trial(1, 3.0, note={"initial": True})]
    batch = [trial(k, v, note={"initial": False, "batch": 2}) for k, v in ((2, 9.0), (3, 1.0))]
    worse = [trial(k, 8.0, note={"initial": False, "batch": 4}) for k in (4, 5)]
    values = {t.number: t.outcomes["v"].mean for t in [*first, *batch, *worse]}
    assert replay(first, values, 4) == Region(best=3.0)
    assert replay([*first, *batch], values, 4) == Region(successes=1, best=1.0)
    assert replay([*first, *batch, *worse], values, 4) == Region(failures=2, best=1.0)
    waiting = [*first, batch[0], replace(batch[1], state=State.PENDING)]
    assert replay(waiting, values, 4) == Region(best=3.0)
    small = Region(length=0.5**8, best=0.0)
    assert replay([*first, *batch], values, 4, small).successes == 0  # collapsed: nothing counts any more
    assert Region(best=0.0).after([-1e-9], 4).successes == 1
    assert Region(best=-10.0).after([-10.005], 4).failures == 1  # less than a thousandth of the best
    assert Region(best=-10.0).after([-10.02], 4).successes == 1


def test_what_a_trial_counts_for_under_a_penalty() -> None:
    history = History((trial(0, 3.0, 0.0), trial(1, -5.0, 1.0), trial(2, 7.0, -1.0), trial(3, state=State.FAILED)))
    assert penalised_values(history, BOUNDED) == {0: 3.0, 1: 7.0, 2: 7.0}
    assert penalised_values(History(), BOUNDED) == {}
    X, y = measured(history, SPACE, GOAL)
    assert (X.shape, y.tolist()) == ((4, 4), [3.0, -5.0, 7.0, 7.0])  # a failed one as the worst
    gone = trial(3, state=State.FAILED, reason="forgotten: by hand")
    X, y = measured(History((*history.trials[:3], gone)), SPACE, GOAL)
    assert (X.shape, y.tolist()) == ((3, 4), [3.0, -5.0, 7.0])  # a withdrawn one says nothing


def test_how_a_metric_is_fitted_by_the_number_of_data() -> None:
    def settings(n: int, started: bool = True, **how: Any) -> dict[str, Any]:
        return dict(Laplace(**how).builder(n, started=started).keywords)  # type: ignore[attr-defined]

    assert [n for n in range(1, 41) if settings(n)["cold"]] == [*range(1, 21), 25, 30, 35, 40]
    assert settings(23, started=False)["cold"] == 3
    assert (settings(505)["cold"], settings(505, started=False)["cold"]) == (0, 3)
    assert [settings(n)["iterations"] for n in (500, 1000, 5000)] == [100, 25, 10]
    assert settings(40)["inflation"] == pytest.approx(10.0 + 500.0 / 40)
    assert (settings(40, inflation="n")["inflation"], settings(40, inflation=3)["inflation"]) == (40.0, 3.0)
    assert settings(40, ridge=0.0)["prior"] is PAPER
    assert settings(40, ridge=0.25)["prior"].ridge == 0.25
    assert Sampled(samples=7).builder(21, started=True).keywords == {"samples": 7, "afresh": True}  # type: ignore[attr-defined]
    assert Sampled().builder(22, started=True).keywords["afresh"] is False  # type: ignore[attr-defined]


def test_flat_names_that_do_nothing_are_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert grouped({"dim": 4, "step": 2, "samples": 3}) == {"dim": 4, "metric": {"type": "sampled", "samples": 3}}
        assert not caplog.records  # at its default
        assert grouped({"dim": 4, "step": 3, "ridge": 0.7}) == {"dim": 4, "metric": {"type": "sampled"}}
    assert "step: not used with a fixed `dim`" in caplog.text
    assert "ridge: not used with a sampled metric" in caplog.text
    assert grouped({"step": 3, "growth": {"most": 5}})["growth"] == {"step": 3, "most": 5}
    assert grouped({"metric": "laplace", "inflation": -1})["metric"] == {"type": "laplace", "inflation": "n"}
    assert grouped({"metric": {"type": "laplace"}, "inflation": 2})["metric"] == {"type": "laplace", "inflation": 2}


# -- the view ----------------------------------------------------------------------------------------------------------------


def test_what_a_view_counts() -> None:
    trials = [trial(i, 1.0, note={"arm": "a" if i % 2 else "b", "k": i}) for i in range(6)]
    own = view(*trials, trial(6, 1.0, asked=False), budget=10, arm="a")
    assert (own.asked, own.since(2), own.since(0), own.number) == (3, 2, 3, 7)
    assert (own.last_note("k"), view(*trials).last_note("k"), own.last_note("none")) == (5, 5, None)
    assert view(*trials, arm="b").last_note("k") == 4
    for asked, share, ends in ((8, 0.2, True), (7, 0.2, False), (8, 0.1, False), (9, 0.1, True), (0, 1.0, True)):
        assert view(*[trial(i, 1.0) for i in range(asked)], budget=10).ends_within(share) is ends
    assert not view(*trials).ends_within(1.0)
    more = own.plus(np.full(4, 0.5))
    assert (more.pending.tolist(), own.pending.shape) == ([[0.5] * 4], (0, 4))
    as_seen = more.as_history()
    assert [t.asked for t in as_seen] == [False, True, False, True, False, True, False, False]
    assert (as_seen[0].note, as_seen[1].note["k"], as_seen[-1].state, len(as_seen)) == ({}, 1, State.PENDING, 8)


def test_old_coordinates_are_padded_and_points_off_the_subspace_are_not_learned_from() -> None:
    small = hypersphere(4, 2, 0).orthonormal()
    large = small.grow(1, 0)
    y = np.array([0.1, -0.2])
    inside, off = small.up(y), np.full(4, 0.9)
    trials = [trial(0, 1.0, x=inside, y=y), trial(1, 2.0, x=off), trial(2, 3.0, x=large.up([0.1, 0.1, 0.2]))]
    seen = view(*trials).inside(large)
    assert [t.number for t in seen.trials] == [0, 2]
    np.testing.assert_allclose(seen.Y, [[0.1, -0.2, 0.0], [0.1, 0.1, 0.2]], atol=1e-12)
    np.testing.assert_allclose(view(*trials, extra=(inside,)).inside(large).waiting, [[0.1, -0.2, 0.0]], atol=1e-12)
    ruled = alebo.Space(SPACE.parameters, [alebo.LinearConstraint({"x0": 1.0}, 0.05)])
    domain = view(space=ruled).inside(small).domain
    points = small.domain.sample(200, 0)
    np.testing.assert_array_equal(domain.contains(points), small.up(points)[:, 0] <= 0.05 + 1e-9)


def test_the_domain_leaves_room_for_rounding_where_there_is_any() -> None:
    embedding = hypersphere(4, 2, 0).orthonormal()
    points = embedding.domain.sample(300, 0)
    for upper, rounded in ((6.0, True), (0.0, False)):  # at most 0: half a step below is the end
        numbers = [alebo.Int("n", 0, 10), *SPACE.parameters[1:]]
        space = alebo.Space(numbers, [alebo.LinearConstraint({"n": 1.0}, upper)])
        domain = view(space=space).inside(embedding).domain
        rows, bounds = space.rows(rounded=rounded)
        allowed = (embedding.up(points) @ rows.T <= bounds + 1e-9).all(axis=1)
        np.testing.assert_array_equal(domain.contains(points), allowed)
        assert 0 < allowed.sum() < 300
