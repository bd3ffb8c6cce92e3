"""TuRBO: the region's rule, restarts from the history alone, competition among regions, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import alebo
from alebo.history import History, State, Trial
from alebo.methods import turbo
from alebo.methods._trust_region import LENGTH, LONGEST, SHORTEST, Region, candidates, replay, take_smallest
from alebo.methods.turbo import TuRBO

SPACE = alebo.Space.from_bounds([(0.0, 1.0)] * 5)
GOAL = alebo.Minimize("f")


def bowl(trial: Trial) -> float:
    return float(np.sum((trial.x - 0.3) ** 2))


def drive(opt: alebo.Optimizer, n: int, q: int = 1) -> None:
    for _ in range(n):
        for t in opt.ask(q):
            opt.tell(t.number, bowl(t))


def test_three_successes_double_and_no_more_than_the_cap() -> None:
    region = Region(best=100.0)
    for value in (90.0, 80.0):
        region = region.after([value], patience=4)
        assert region.length == LENGTH
    region = region.after([70.0], patience=4)
    assert region.length == 2 * LENGTH == LONGEST
    for value in (60.0, 50.0, 40.0):
        region = region.after([value], patience=4)
    assert region.length == LONGEST


def test_patience_failures_halve_and_a_success_starts_the_count_again() -> None:
    region = Region(best=1.0)
    for _ in range(3):
        region = region.after([2.0], patience=4)
    region = region.after([0.5], patience=4)
    assert (region.length, region.failures) == (LENGTH, 0)
    for _ in range(4):
        region = region.after([2.0], patience=4)
    assert (region.length, region.failures) == (LENGTH / 2, 0)


def test_an_improvement_below_a_thousandth_is_a_failure() -> None:
    assert Region(best=1.0).after([0.9995], patience=9).failures == 1
    assert Region(best=1.0).after([0.9985], patience=9).successes == 1
    assert Region(best=-1.0).after([-1.0005], patience=9).failures == 1


@given(st.integers(1, 40), st.integers(1, 15))
def test_counting_evaluations_is_the_papers_rule_for_batches(patience: int, q: int) -> None:
    region, batches = Region(best=0.0), 0
    while region.length == LENGTH:
        region, batches = region.after([1.0] * q, patience), batches + 1
    assert batches == math.ceil(patience / q)


def test_collapse_needs_seven_halvings() -> None:
    region = Region(best=0.0)
    for k in range(1, 8):
        assert not region.collapsed
        region = region.after([1.0], patience=1)
        assert region.length == LENGTH / 2**k
    assert region.collapsed
    assert region.length < SHORTEST


def made(values: list[float | None], initial: int, life: int = 0) -> History:
    """A history as TuRBO would have written it; None is a failed evaluation."""
    trials = []
    rng = np.random.default_rng(0)
    for i, v in enumerate(values):
        x = rng.uniform(-1, 1, 5)
        note = {"region": 0, "life": life, "batch": i, "initial": i < initial}
        state = State.FAILED if v is None else State.COMPLETE
        out = {} if v is None else {"f": alebo.Outcome(v)}
        trials.append(Trial(i, SPACE.decode(x), x, None, out, state, note))
    return History(tuple(trials))


def test_a_collapsed_region_starts_anew_and_forgets() -> None:
    patience = 5  # max(4, D)
    method, goals = TuRBO(initial=4), alebo.Goals(GOAL)
    values: list[float | None] = [1.0] * 4 + [2.0] * (6 * patience)
    last = method.suggest(made(values, 4), SPACE, goals, 1, 0)[0]
    assert (last.note["life"], last.note["initial"]) == (0, False)
    values += [2.0] * (patience - 1)
    assert method.suggest(made(values, 4), SPACE, goals, 1, 0)[0].note["life"] == 0
    values += [None]  # a failed evaluation is no success
    new = method.suggest(made(values, 4), SPACE, goals, 6, 0)
    assert [s.note["life"] for s in new] == [1] * 6
    assert [s.note["initial"] for s in new] == [True] * 6


def test_a_batch_counts_when_it_is_over() -> None:
    history = made([1.0, 1.0, 0.5, 0.4], 2)
    values = {0: 1.0, 1: 1.0, 2: 0.5}
    one_batch = [t if t.number < 2 else Trial(**{**vars(t), "note": {**t.note, "batch": 2}}) for t in history]
    pending = [*one_batch[:3], Trial(**{**vars(one_batch[3]), "state": State.PENDING})]
    assert replay(pending, values, patience=5).successes == 0
    assert replay(one_batch, {**values, 3: 0.4}, patience=5).successes == 1


def test_candidates_stay_in_the_region_and_move_about_twenty_coordinates() -> None:
    D, centre = 100, np.full(100, 0.4)
    lengthscales = np.linspace(0.5, 2.0, D)
    X = candidates(centre, 0.2, lengthscales, 500, np.random.default_rng(1))
    half = 0.1 * lengthscales / np.exp(np.mean(np.log(lengthscales)))
    assert np.all(np.abs(X - centre) <= half + 1e-12)
    moved = (centre != X).sum(axis=1)
    assert moved.min() >= 1
    assert 18 < moved.mean() < 22


@pytest.mark.parametrize("regions", [1, 2])
def test_it_resumes_as_if_never_stopped(tmp_path, regions: int) -> None:
    method = TuRBO(regions=regions, initial=3, candidates=64)
    opt = alebo.Optimizer(SPACE, GOAL, method=method, seed=3)
    drive(opt, 5, q=2)
    opt.save(tmp_path / "study.json")
    again = alebo.Optimizer.load(tmp_path / "study.json")
    drive(opt, 3, q=2)
    drive(again, 3, q=2)
    for a, b in zip(opt.history, again.history, strict=True):
        assert np.array_equal(a.x, b.x)
        assert a.note == b.note


def test_one_region_descends_a_bowl() -> None:
    opt = alebo.Optimizer(SPACE, GOAL, method=TuRBO(initial=8, candidates=200), seed=0)
    drive(opt, 24)
    assert bowl(opt.best()) < 0.25 * min(bowl(t) for t in opt.history[:8])


def test_regions_compete_for_every_evaluation() -> None:
    """Two regions with the same shape of data, one of them far better: its joint draws win every place of a batch."""
    rng = np.random.default_rng(0)
    trials = []
    for i in range(16):
        region, x = i % 2, rng.uniform(-1, 1, 5)
        value = float(np.sum(x**2)) + (100.0 if region == 0 else 0.0)
        note = {"region": region, "life": 0, "batch": i, "initial": True}
        trials.append(Trial(i, SPACE.decode(x), x, None, {"f": alebo.Outcome(value)}, State.COMPLETE, note))
    method = TuRBO(regions=2, initial=8, candidates=100)
    out = method.suggest(History(tuple(trials)), SPACE, alebo.Goals(GOAL), 4, 0)
    assert [s.note["region"] for s in out] == [1] * 4
    # a young region is given its first points before anything competes
    young = method.suggest(History(tuple(trials[:10])), SPACE, alebo.Goals(GOAL), 6, 0)
    assert [s.note["region"] for s in young] == [0] * 3 + [1] * 3


def test_pending_points_are_answered_with_new_ones() -> None:
    opt = alebo.Optimizer(SPACE, GOAL, method=TuRBO(initial=3, candidates=50), seed=0)
    asked = opt.ask(5) + opt.ask(2)  # nothing told yet
    for t in asked[:3]:
        opt.tell(t.number, bowl(t))
    asked += opt.ask(3)
    assert len({t.x.tobytes() for t in asked}) == 10
    assert all(np.all(np.abs(t.x) <= 1) for t in asked)


def test_categories_are_refused_with_the_methods_that_take_them() -> None:
    space = alebo.Space([alebo.Float("a", 0, 1), alebo.Categorical("kind", ["x", "y"])])
    with pytest.raises(alebo.InputError, match=r"TuRBO is not defined for categories; got 'kind'.*smac"):
        alebo.Optimizer(space, GOAL, method=TuRBO())
    ints = alebo.Space([alebo.Float("a", 0, 1), alebo.Int("k", 1, 5)])
    assert alebo.Optimizer(ints, GOAL, method=TuRBO()).ask()[0].params["k"] in range(1, 6)


def test_constraints_are_refused_unless_infeasible_counts_as_worst() -> None:
    goals = [GOAL, alebo.AtMost("g", 0.0)]
    with pytest.raises(
        alebo.InputError, match=r"TuRBO is not defined for outcome constraints.*alebo.*infeasible=\"worst\""
    ):
        alebo.Optimizer(SPACE, goals, method=TuRBO())
    opt = alebo.Optimizer(SPACE, goals, method=TuRBO(initial=6, candidates=100, infeasible="worst"), seed=0)
    for _ in range(16):  # the bowl's minimum is infeasible: feasible where the first coordinate is small
        t = opt.ask()[0]
        opt.tell(t.number, {"f": bowl(t), "g": t.x[0]})
    assert opt.best().x[0] <= 0


@pytest.mark.parametrize("wrong", [{"regions": 0}, {"initial": 1}, {"candidates": 0.5}, {"infeasible": "ignore"}])
def test_wrong_settings_are_refused_with_a_message(wrong: dict) -> None:
    with pytest.raises(alebo.InputError, match="got"):
        TuRBO(**wrong)


@pytest.mark.parametrize("regions", [1, 2])
def test_a_batch_is_distinct_when_all_draws_agree(regions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turbo, "thompson", lambda gp, points, q, seed: np.tile(points[:, 0], (q, 1)))
    opt = alebo.Optimizer(SPACE, GOAL, method=TuRBO(regions=regions, initial=4, candidates=30), seed=0)
    drive(opt, 4 * regions)
    batch = opt.ask(6)
    assert len({t.x.tobytes() for t in batch}) == 6


def test_the_smallest_of_each_draw_is_taken_once() -> None:
    draws = np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    assert take_smallest(draws) == [1, 2, 0]
    assert draws.max() == 3.0  # what was passed stays
