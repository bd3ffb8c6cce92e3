"""ALEBO: Algorithm 1, purity, growth, mixed spaces, constraints, old data, and what it does with little or odd data."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import alebo
from alebo import ALEBO, AtMost, Categorical, Float, Int, LinearConstraint, Minimize, Optimizer, Space
from alebo.acquisition import evaluate
from alebo.history import History
from alebo.methods import Growth, Laplace, Sampled, View
from alebo.methods._rounding import rounded

from .alebo_runs import BOX, bowl, drive, inside, small


def test_it_finds_a_bowl_in_40_dimensions_that_sobol_does_not():
    found = alebo.minimize(bowl, BOX * 40, budget=25, seed=0)
    random = alebo.minimize(bowl, BOX * 40, budget=25, seed=0, method=alebo.methods.Sobol())
    assert found.fun < 0.01 < random.fun


def test_every_proposal_lies_in_the_embedding_and_in_the_bounds():
    opt = drive(small(), bowl, 9)
    embedding = inside(opt).embedding
    for t in opt.history:
        assert np.abs(t.x).max() <= 1.0
        assert embedding.residual(t.x) < 1e-7
        assert np.allclose(embedding.up(t.y), t.x, atol=1e-9)


def test_same_history_and_seed_same_point_in_any_order_of_asking(tmp_path):
    a = drive(small(budget=30), bowl, 7)
    a.save(tmp_path / "study.json")
    b = Optimizer.load(tmp_path / "study.json")
    once, twice = a.ask()[0], b.ask()[0]
    assert np.array_equal(once.x, twice.x)
    assert once.note == twice.note
    other = drive(small(budget=30, seed=1), bowl, 7).ask()[0]
    assert not np.array_equal(once.x, other.x)


def test_notes_are_plain_and_small():
    opt = drive(small(), bowl, 8)
    text = json.dumps(opt.history[-1].note)
    assert len(text) < 2000
    assert {"dim", "events", "log_ei", "chains"} <= opt.history[-1].note.keys()


def test_a_second_chain_starts_now_and_then():
    from alebo.methods._metric import restarts

    assert [n for n in range(1, 101) if restarts(n)] == [21, 26, 34, 43, 55, 71, 91]


def test_it_records_that_its_assumption_fails_once_that_is_clear():
    from alebo.diagnostics import diagnose
    from alebo.methods._notes import ASSUMPTION_FAILS, assumption_fails

    opt = Optimizer(Space.from_bounds([(0, 1)] * 30), Minimize("v"), method=alebo.methods.Sobol(), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        opt.tell(opt.ask()[0].number, float(rng.normal()))
    for share, fails in ((0.2, True), (0.1, False)):
        noted = [replace(t, note={"unexplained": share}) for t in opt.history]
        history = replace(opt.history, trials=tuple(noted))
        assert assumption_fails(history, share) is fails
        assert not assumption_fails(replace(history, trials=tuple(noted[:-1])), share)  # too early to say
    last = replace(noted[-1], note={"unexplained": 0.2, "assumption": ASSUMPTION_FAILS})
    history = replace(opt.history, trials=(*noted[:-1], last))
    assert ALEBO().estimate(history, opt.space, opt.goals, 0) is None  # and then goes by what was measured
    assert "assumption" in {v.key for v in diagnose(history, opt.space, opt.goals, method=ALEBO()).verdicts}


def test_the_papers_settings():
    paper = ALEBO.paper(dim=5)
    assert (paper.dim, paper.initial, paper.growth, paper.infer_noise, paper.settle) == (5, 10, None, False, 0.0)
    assert paper.metric == Laplace(samples=25, ridge=0.0, inflation="n", warm=False, cold=10)
    assert drive(small(paper), bowl, 11).history[-1].note["dim"] == 5


def test_projected_first_points_gather_around_the_centre():
    space = alebo.Space.from_bounds([(-1, 1)] * 100)
    radii = {}
    for design in ("uniform", "projected"):
        method = replace(ALEBO.paper(dim=6), design=design)
        opt = alebo.Optimizer(space, alebo.Minimize("v"), method=method, seed=0)
        trials = opt.ask(10)
        assert all(np.abs(t.x).max() <= 1.0 for t in trials)
        assert len({t.x.tobytes() for t in trials}) == 10
        radii[design] = np.mean([np.linalg.norm(t.x) for t in trials])
        again = alebo.Optimizer(space, alebo.Minimize("v"), method=method, seed=0)
        one_by_one = np.concatenate([[t.x for t in again.ask(k)] for k in (1, 4, 5)])
        np.testing.assert_allclose(one_by_one, [t.x for t in trials])
    assert radii["projected"] < 0.8 * radii["uniform"]
    with pytest.raises(alebo.InputError, match="`design` is one of uniform, projected"):
        ALEBO(design="grid")
    half = alebo.Space(space.parameters, constraints=[alebo.LinearConstraint({"x0": -1.0}, -0.99)])
    with pytest.raises(alebo.InputError, match='design="uniform"'):
        alebo.Optimizer(half, alebo.Minimize("v"), method=replace(ALEBO.paper(dim=6), design="projected")).ask()


def test_batches_differ_and_pending_points_are_respected():
    opt = drive(small(), bowl, 6)
    batch = opt.ask(3)
    X = np.stack([t.x for t in batch])
    assert len(np.unique(X.round(6), axis=0)) == 3
    more = opt.ask()[0]
    assert min(np.linalg.norm(X - more.x, axis=1)) > 1e-3
    for t in reversed(batch):
        opt.tell(t.number, bowl(t.x))
    opt.fail(more.number, "crashed")
    assert opt.ask()[0].number == 10


@pytest.mark.parametrize("goals", [Minimize("v"), [Minimize("v"), AtMost("c", 1.0)], [Minimize("v"), Minimize("w")]])
@pytest.mark.parametrize("q", [1, 3])
def test_a_point_that_failed_is_not_proposed_again(goals, q):
    """The function falls towards a corner in which evaluations fail."""
    space = Space.from_bounds([(0.0, 1.0)] * 3)
    opt = Optimizer(space, goals, method=ALEBO(initial=4, metric=Sampled(samples=2)), seed=0)
    names = [g.outcome for g in opt.goals.objectives] + [c.outcome for c in opt.goals.constraints]
    while len(opt.history) < 13:
        for t in opt.ask(q):
            if t.x.sum() > 0.3:
                opt.fail(t.number, "crashed")
            else:
                opt.tell(t.number, {name: -float(t.x.sum()) / (1 + i) for i, name in enumerate(names)})
    failed = np.array([t.x for t in opt.history.failed])
    assert len(failed) > 1
    assert np.linalg.norm(failed[:, None] - failed, axis=-1)[~np.eye(len(failed), dtype=bool)].min() > 1e-3


@pytest.mark.parametrize(
    "method", [ALEBO(dim=2, initial=3, metric=Sampled(samples=2)), alebo.methods.Adaptive(initial=3)]
)
def test_a_failed_trial_without_parameters_is_nowhere(method):
    """A host's own trials can fail before anything was suggested."""
    space = Space([Float("a", 0.0, 1.0), Int("n", 1, 9), Float("b", 0.0, 1.0)])
    opt = Optimizer(space, Minimize("v"), method=method, seed=0)
    for _ in range(6):
        t = opt.ask()[0]
        opt.tell(t.number, float(t.params["a"]))
    lost = [replace(t, number=6 + i, params={}, note={}, asked=False) for i, t in enumerate(opt.history.trials[:2])]
    failed = [replace(t, x=np.zeros(3), y=None, outcomes={}, state=alebo.history.State.FAILED) for t in lost]
    opt.history = replace(opt.history, trials=(*opt.history.trials, *failed))
    for _ in range(4):
        t = opt.ask()[0]
        assert t.params.keys() == {"a", "n", "b"}
        opt.tell(t.number, float(t.params["a"]))


@pytest.mark.parametrize("kind", ["hypersphere", "gaussian", "hesbo"])
def test_every_kind_of_embedding(kind):
    assert (
        len(drive(small(ALEBO(dim=3, kind=kind, initial=4, metric=Sampled(samples=2))), bowl, 6).history.complete) == 6
    )


class TestMixed:
    space = Space(
        [Float(f"f{i}", 0.0, 1.0) for i in range(10)]
        + [Int(f"i{i}", 1, 5) for i in range(4)]
        + [Categorical("act", ["relu", "tanh", "gelu"]), Float("lr", 1e-5, 1.0, log=True)]
    )

    def test_the_model_sees_what_was_evaluated(self):
        opt = Optimizer(self.space, Minimize("v"), method=ALEBO(dim=4, initial=5, metric=Sampled(samples=3)), seed=0)
        for _ in range(9):
            t = opt.ask()[0]
            assert self.space.decode(self.space.encode(t.params)) == t.params
            opt.tell(t.number, t.params["f3"] + t.params["i0"] + (t.params["act"] == "tanh"))
        seen = inside(opt)
        embedding, trials, Y = seen.embedding, seen.trials, seen.Y
        for t, y in zip(trials, Y, strict=True):
            assert np.allclose(y, embedding.down(self.space.encode(t.params)))
        shown = [tuple(t.params.values()) for t in opt.history]
        assert len(set(shown)) == len(shown)


class TestConstraints:
    goals = (Minimize("v"), AtMost("c", 0.0))

    def test_best_is_feasible(self):
        opt = small(goals=list(self.goals))
        for _ in range(14):
            t = opt.ask()[0]
            opt.tell(t.number, {"v": bowl(t.x), "c": float(t.x[2])})
        best = opt.best()
        assert best.outcomes["c"].mean <= 0.0
        assert best.outcomes["v"].mean <= min(t.outcomes["v"].mean for t in opt.history if t.outcomes["c"].mean <= 0.0)

    def test_linear_constraints_hold_at_every_proposal(self):
        rule = LinearConstraint({"x0": 1.0, "x1": 1.0, "x2": -1.0}, 0.2)
        space = Space([Float(f"x{i}", -1, 1) for i in range(20)], [rule])
        opt = drive(small(space=space), bowl, 9)
        assert all(space.feasible(t.params) for t in opt.history)

    def test_an_embedding_without_a_feasible_point_is_moved_and_the_user_told(self, caplog):
        rules = [
            LinearConstraint({f"x{i}": -1.0}, -0.9) for i in range(12)
        ]  # x_i >= 0.9: the centre's subspace has none
        space = Space([Float(f"x{i}", -1, 1) for i in range(20)], rules)
        opt = drive(small(space=space), bowl, 7)
        assert all(space.feasible(t.params) for t in opt.history)
        assert "moved" in caplog.text

    def test_whole_numbers_and_linear_constraints_together(self):
        rule = LinearConstraint({"n0": 1.0, "n1": 1.0, "x0": 2.0}, 6.0)
        space = Space([Int("n0", 0, 10), Int("n1", 0, 10), *[Float(f"x{i}", 0, 1) for i in range(10)]], [rule])
        opt = Optimizer(space, Minimize("v"), method=ALEBO(dim=4, initial=6, metric=Sampled(samples=3)), seed=0)
        for _ in range(12):
            t = opt.ask()[0]
            assert space.feasible(t.params)
            opt.tell(t.number, -t.params["n0"] - t.params["n1"])


class TestNoise:
    def test_best_is_chosen_by_the_model_where_noise_is_told(self):
        rng = np.random.default_rng(0)
        opt = small()
        for _ in range(15):
            t = opt.ask()[0]
            opt.tell(t.number, (bowl(t.x) + 0.5 * rng.normal(), 0.5))
        assert opt.best().note["chosen_by"] == "posterior mean"

    @pytest.mark.parametrize("rough", [False, True])
    def test_one_repeat_tells_noise_from_a_rough_function(self, rough):
        """Both look the same to the model; only where the repeat differs does it choose the best point."""
        rng = np.random.default_rng(0)

        def evaluate(x):
            off = math.sin(1e5 * float(np.sum(x))) * math.sqrt(2.0) if rough else rng.normal()
            return 2.0 * float(x[0]) + off

        opt = drive(small(ALEBO(dim=3, metric=Sampled(samples=4))), evaluate, 36)
        repeats = [t for t in opt.history if "again" in t.note]
        assert len(repeats) == 1
        assert np.array_equal(repeats[0].x, opt.history[repeats[0].note["again"]].x)
        assert opt.best().note["chosen_by"] == ("measured value" if rough else "posterior mean")

    def test_best_is_the_measured_one_where_there_is_no_noise(self):
        opt = drive(small(), bowl, 12)
        best = opt.best()
        assert best.note["chosen_by"] == "measured value"
        assert best.outcomes["v"].mean == min(t.outcomes["v"].mean for t in opt.history)


def test_a_reference_that_nothing_beats_yet():
    goals = [Minimize("a", reference=-50.0), Minimize("b", reference=-50.0)]
    opt = small(ALEBO(dim=3, initial=4, metric=Sampled(samples=3)), goals=goals)
    for _ in range(6):
        t = opt.ask()[0]
        opt.tell(t.number, {"a": float(t.x[2]), "b": float((t.x[5] - 0.5) ** 2)})
    assert opt.hypervolumes().tolist() == [0.0] * 6


def test_several_objectives_give_a_front():
    opt = small(goals=[Minimize("a"), Minimize("b")])
    for _ in range(9):
        t = opt.ask()[0]
        opt.tell(t.number, {"a": float((t.x[2] - 0.5) ** 2), "b": float((t.x[2] + 0.5) ** 2)})
    front = opt.front()
    assert len(front) >= 2
    values = np.array([[t.outcomes["a"].mean, t.outcomes["b"].mean] for t in front])
    assert not any((values < v).all(axis=1).any() for v in values)


class TestOldData:
    def test_points_off_the_embedding_count_for_best_and_the_embedding_passes_through_the_best(self):
        opt = small()
        rng = np.random.default_rng(1)
        for _ in range(3):
            x = rng.uniform(-1, 1, 20)
            opt.tell(dict(zip(opt.space.names, x, strict=True)), 50.0)
        good = np.zeros(20)
        good[2], good[5] = 0.3, -0.4
        opt.tell(dict(zip(opt.space.names, good, strict=True)), -1.0)
        assert opt.best().number == 3
        drive(opt, lambda x: bowl(x) + 5.0, 7)
        embedding, trials = inside(opt).embedding, inside(opt).trials
        assert embedding.residual(good) < 1e-6
        assert 3 in {t.number for t in trials}
        assert 0 not in {t.number for t in trials}  # no projection error: what lies off the subspace does not train

    def test_minimize_with_known_points(self):
        x0 = np.zeros((2, 20))
        x0[1, 2] = 0.3
        result = alebo.minimize(bowl, BOX * 20, budget=8, x0=x0, y0=[bowl(x) for x in x0], seed=0)
        assert result.fun <= bowl(x0[1])
        assert len(result.history) == 10


@pytest.mark.parametrize("value", [0.0, 1e12, 1e-12, -1e12])
def test_constant_objectives(value):
    opt = drive(small(), lambda x: value, 9)
    assert len(opt.history.complete) == 9


@pytest.mark.parametrize("penalty", [1e30, 1.7e308])
def test_a_penalty_of_any_size_neither_stops_the_search_nor_hides_the_rest(penalty, caplog):
    def f(x):
        return penalty if x[9] > 0.5 else bowl(x)

    opt = drive(small(ALEBO(), D=40, budget=30), f, 30)
    assert any(t.outcomes["v"].mean == penalty for t in opt.history)
    assert opt.best().outcomes["v"].mean < 0.1
    assert opt.history[-1].note["compressed"] == ["v"]


@pytest.mark.filterwarnings("error")
def test_largest_outcomes_of_both_signs_and_constraints():
    goals = [Minimize("v"), AtMost("c", 0.0), alebo.Cost("seconds")]
    opt = small(ALEBO(initial=4, growth=Growth(start=2, patience=1), metric=Sampled(samples=3)), goals=goals)
    for k in range(10):
        t = opt.ask()[0]
        v, c = ([1.7e308, -1.7e308][k % 2], 1.7e308) if k in (2, 3) else (bowl(t.x), float(t.x[2]))
        opt.tell(t.number, {"v": v, "c": c, "seconds": 1.7e308 if k == 4 else 1.0})
    assert len(opt.history.complete) == 10


def test_one_observation_and_fewer_points_than_dimensions():
    opt = small(ALEBO(dim=8, initial=1, metric=Sampled(samples=3)))
    for _ in range(4):
        t = opt.ask()[0]
        opt.tell(t.number, bowl(t.x))
    assert len(opt.history.complete) == 4


def test_a_dimension_above_the_space_is_refused_before_the_first_evaluation():
    with pytest.raises(alebo.InputError, match="dim <= D"):
        small(ALEBO(dim=21))


class TestOwnAcquisition:
    def test_any_botorch_acquisition_can_be_passed(self):
        from botorch.acquisition import UpperConfidenceBound

        method = ALEBO(
            dim=4,
            initial=5,
            acquisition=lambda s, pending: UpperConfidenceBound(s.model, beta=0.5),
            metric=Sampled(samples=3),
        )
        opt = drive(small(method), bowl, 9)
        assert len(opt.history.complete) == 9
        assert np.isfinite(opt.history[-1].note["log_ei"])

    def test_a_function_among_the_settings_is_passed_again_when_loading(self, tmp_path):
        method = ALEBO(
            dim=4, initial=5, acquisition=lambda s, pending: lambda X: s.model.moments(X)[0], metric=Sampled(samples=3)
        )
        opt = drive(small(method), bowl, 6)
        opt.save(tmp_path / "s.json")
        with pytest.raises(alebo.StudyError, match="passed again"):
            Optimizer.load(tmp_path / "s.json")
        again = Optimizer.load(tmp_path / "s.json", method=method)
        assert np.array_equal(again.ask()[0].x, opt.ask()[0].x)


def test_the_search_goes_on_among_rounded_points():
    space = Space(
        [Float(f"x{i}", 0.0, 1.0) for i in range(12)]
        + [Int(f"n{i}", 0, 4) for i in range(4)]
        + [Categorical(f"c{i}", ["a", "b", "c"]) for i in range(4)]
    )
    embedding = alebo.geometry.hypersphere(space.dimension, 4, 0).orthonormal()
    points = embedding.domain.sample(20, 0)
    target = torch.from_numpy(points[0])  # where it would be best to be, but rounding moves away from it

    def acquisition(X):
        return -(X.squeeze(-2) - target).square().sum(-1)

    alone = evaluate(acquisition, embedding.down(space.snap(np.clip(embedding.up(points), -1.0, 1.0)))).max()
    centre = space.snap(np.zeros((1, space.dimension)))
    seen = View(History(), space, alebo.Goals(Minimize("v")), 0).inside(embedding)
    x, value = rounded(seen, acquisition, points, centre, 0)
    assert value > 0.5 * alone
    assert np.array_equal(space.snap(x), x)
    assert np.isclose(value, acquisition(torch.from_numpy(embedding.down(x))[None, None])[0])
    again = rounded(seen, acquisition, points, centre, 0)
    assert np.array_equal(again[0], x)


@pytest.mark.parametrize("seed", range(3))
def test_a_small_space_of_whole_numbers_is_not_repeated_while_there_are_new_points(seed):
    space = Space([Int("n", 0, 2), Int("m", 0, 2)])
    opt = Optimizer(space, Minimize("v"), method=ALEBO(dim=2, initial=1, metric=Sampled(samples=2)), seed=seed)
    for _ in range(10):
        (t,) = opt.ask()
        opt.tell(t.number, float((t.params["n"] - 1) ** 2 + t.params["m"]))
    points = [tuple(t.params.values()) for t in opt.history]
    assert len(set(points[:9])) == 9  # all there are
    assert points[9] in points[:9]
