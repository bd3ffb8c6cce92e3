"""The parts of learning from earlier studies, each against its definition, with sources made by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from alebo import AtLeast, AtMost, Cost, Goals, Int, Maximize, Minimize, Space
from alebo._seeds import derive
from alebo._tasks import Task
from alebo.geometry import hypersphere
from alebo.goals import Outcome
from alebo.history import History, State, Trial
from alebo.methods import _learned, _transfer
from alebo.methods._foreseen import AHEAD, FIRST, FORESEEN, MEMORY, WORST, expectation, log_densities, start
from alebo.methods._learned import _explained, learned
from alebo.methods._view import View
from alebo.models import Mixture, fit_ard
from alebo.models.informed import Informed, Inside
from alebo.models.outcomes import Standardisation, tamed, without_worst
from alebo.models.priors import NOISE_FLOOR, dense, sparse

D = 3
SPACE = Space.from_bounds([(-1.0, 1.0)] * D)
GOALS = Goals(Minimize("v"))
RNG = np.random.default_rng(0)
KERNEL = {"kernel": "matern", "lengthscales": [0.3, 0.7, 2.0], "variance": 1.3, "noise": 0.02, "mean": 0.1}


def task(n: int = 8, name: str = "old", **how: Any) -> Task:
    X = np.random.default_rng(n).uniform(-1.0, 1.0, (n, D))
    made = Task(name, X, {"v": 3.0 + X @ np.array([1.0, -2.0, 0.0])}, kernels={FIRST: KERNEL})
    return replace(made, **how)


def trial(number: int, value: float | None, x: Any = None, **note: Any) -> Trial:
    point = np.random.default_rng(100 + number).uniform(-1, 1, D) if x is None else np.asarray(x, dtype=float)
    outcomes = {} if value is None else {"v": Outcome(value)}
    state = State.PENDING if value is None else State.COMPLETE
    return Trial(number, SPACE.decode(point), point, None, outcomes, state, note)


def view(*trials: Trial, sources: Any = (), goals: Goals = GOALS, space: Space = SPACE, arm: str | None = None) -> View:
    return View(History(trials, None, sources=tuple(sources)), space, goals, 0, arm=arm)


# -- processes -------------------------------------------------------------------------------------------------------------


def test_the_roles_of_outcomes_and_what_models_see_of_them() -> None:
    goals = Goals([Maximize("gain"), Minimize("loss"), AtMost("mass", 2.0), AtLeast("life", 5.0), Cost("hours")])
    found = {name: (outcome, transform) for name, outcome, transform in _transfer.roles(goals)}
    assert {k: v[0] for k, v in found.items()} == {
        **{"objective 0": "gain", "objective 1": "loss", "constraint 0": "mass", "constraint 1": "life"},
        "cost": "hours",
    }
    values = np.array([1.0, 2.0, 4.0])
    seen = {k: v[1](values).tolist() for k, v in found.items() if k != "cost"}
    assert seen == {
        **{"objective 0": [1.0, 2.0, 4.0], "objective 1": [-1.0, -2.0, -4.0]},
        **{"constraint 0": [-1.0, 0.0, 2.0], "constraint 1": [4.0, 3.0, 1.0]},
    }
    np.testing.assert_allclose(found["cost"][1](np.array([0.0, 1.0, math.e])), [math.log(1e-300), 0.0, 1.0])
    far = np.array([1.0, 2.0, 3.0, 1e6])
    np.testing.assert_allclose(found["objective 1"][1](far), without_worst(-far))


def test_the_process_of_a_source_is_the_stored_one_on_its_data() -> None:
    old = task()
    gp = _transfer.process(old, GOALS, FIRST)
    assert gp is not None
    np.testing.assert_allclose(gp.X, 0.5 * (old.X + 1.0))
    seen = tamed(without_worst(-old.means["v"]))
    units = Standardisation.of(seen)
    np.testing.assert_allclose(gp.shift + gp.scale * np.asarray(gp.v), seen)
    assert (gp.shift, gp.scale, gp.kernel, gp.variance, gp.mean) == (units.shift, units.scale, "matern", 1.3, 0.1)
    assert gp.lengthscales.tolist() == [0.3, 0.7, 2.0]
    assert (np.asarray(gp.noises).tolist(), gp.known_noise) == ([0.02] * 8, False)
    errors = np.array([0.5, math.nan, 0.25, 0.5, 0.5, 0.5, 0.0, 0.5])
    known = _transfer.process(replace(old, sems={"v": errors}), GOALS, FIRST)
    assert known is not None
    assert known.known_noise
    want = np.where(np.isnan(errors), 0.5, errors) ** 2 / units.scale**2  # a missing one is the typical one
    np.testing.assert_allclose(known.noises, np.maximum(want, NOISE_FLOOR))
    assert _transfer.process(old, GOALS, "constraint 0") is None


def test_a_source_is_fitted_once_and_kept_with_few_digits() -> None:
    old = task(12, kernels={})
    made = _transfer.prepared(old, Goals([Minimize("v"), AtMost("w", 1.0)]))
    assert list(made.kernels) == [FIRST]  # it has no other outcome
    assert _transfer.prepared(made, GOALS) is made
    kernel = made.kernels[FIRST]
    assert kernel["kernel"] in ("rbf", "matern")
    for value, digits in [(v, 6) for v in kernel["lengthscales"]] + [(kernel[k], 9) for k in ("variance", "noise")]:
        assert value == float(f"{value:.{digits}g}")
    gp = _transfer.process(made, GOALS, FIRST)
    assert gp is not None
    left = np.asarray(gp.leave_one_out()[0]) - tamed(without_worst(-old.means["v"]))
    assert np.abs(left).max() < 0.1 * np.ptp(old.means["v"])  # a linear function of two parameters
    assert kernel["lengthscales"][2] > 3.0 * max(kernel["lengthscales"][:2])


# -- which points, which models --------------------------------------------------------------------------------------------


def test_the_best_point_of_a_source() -> None:
    X = np.array([[0.1, 0, 0], [0.2, 0, 0], [0.3, 0, 0], [1.5, 0, 0]])
    plain = Task("a", X, {"v": np.array([3.0, 1.0, 2.0, 0.5])})
    assert _transfer.best_point(view(sources=[plain]), 0).tolist() == [1.0, 0.0, 0.0]  # type: ignore[union-attr]
    assert _transfer.best_point(view(sources=[plain]), 1) is None
    assert _transfer.best_point(view(), 0) is None
    upwards = view(sources=[plain], goals=Goals(Maximize("v")))
    assert _transfer.best_point(upwards, 0).tolist() == [0.1, 0.0, 0.0]  # type: ignore[union-attr]
    goals = Goals([Minimize("v"), AtMost("g", 0.0), AtLeast("h", 10.0)])
    ruled = replace(plain, means={**plain.means, "g": np.array([-1.0, 5.0, 0.0, 1.0]), "h": np.full(4, 10.0)})
    assert _transfer.best_point(view(sources=[ruled], goals=goals), 0)[0] == pytest.approx(0.3)  # type: ignore[index]
    # nothing feasible: shares of the largest violation, added: 1 + 0, 0.2 + 1, 0.4 + 0.1
    wrong = {"v": np.zeros(3), "g": np.array([5.0, 1.0, 2.0]), "h": np.array([10.0, 0.0, 9.0])}
    bad = Task("b", X[:3], wrong)
    assert _transfer.best_point(view(sources=[plain, bad], goals=goals), 1)[0] == pytest.approx(0.3)  # type: ignore[index]
    whole = Space([Int("n", 0, 10), *SPACE.parameters[1:]])
    at = _transfer.best_point(view(sources=[replace(plain, X=X - 0.05)], space=whole), 0)
    np.testing.assert_allclose(at, whole.snap(np.clip(X[3] - 0.05, -1, 1)))  # type: ignore[arg-type]


def test_with_sources_a_lower_quantile_is_typical() -> None:
    assert _transfer.taming(()) is without_worst
    values = np.array([-50.0, -20.0, -1.0, -0.95, -0.9])
    found = _transfer.taming((task(),))(values)
    np.testing.assert_array_equal(found, without_worst(values, below=0.25))
    assert not np.array_equal(found, without_worst(values))


def test_sources_propose_their_best_points_once_where_the_study_is_the_methods_own() -> None:
    sources = [task(8), task(9), task(10)]
    embedding = hypersphere(D, 2, 0).orthonormal()
    best = [_transfer.best_point(view(sources=sources), k) for k in range(3)]

    def first(*trials: Trial, q: int, arm: str | None = None, known: Any = sources) -> list[Any]:
        return _transfer.first_of_sources(view(*trials, sources=known, arm=arm).inside(embedding), q)

    np.testing.assert_array_equal([s.x for s in first(q=2)], best[:2])
    assert [s.note for s in first(q=5)] == [{"arm": "source"}] * 3
    assert [s.y for s in first(q=5)] == [None] * 3
    np.testing.assert_array_equal([s.x for s in first(trial(0, 1.0, arm="source"), q=1)], best[1:2])
    assert first(*[trial(k, 1.0, arm="source") for k in range(3)], q=2) == []
    assert first(q=2, arm="embedding") == []
    assert first(q=2, known=()) == []


def test_fewer_first_points_with_sources_that_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    inside = view(sources=[task()]).inside(hypersphere(D, 2, 0).orthonormal())
    for shares, count in (((0.5,), 4), ((0.3, 0.2), 4), ((0.49,), 9), ((), 9)):
        monkeypatch.setattr(_transfer, "weights", lambda history, goals, shares=shares: list(shares))
        assert _transfer.fewer_first(inside, 9) == count
        assert _transfer.fewer_first(inside, 3) == 3
        assert _transfer.fewer_first(replace(inside, arm="embedding"), 9) == 9


def test_the_embedding_of_a_source_is_taken_by_its_size() -> None:
    made = [hypersphere(D, d, d) for d in (1, 2)]
    plain = [{"A": e.A.tolist(), "x0": e.x0.tolist()} for e in made]
    sources = [task(), *(task(embedding=p) for p in plain)]

    def dims(most: int | None, exact: bool) -> int | None:
        found = _transfer.inherited(view(sources=sources), most, exact=exact)
        return None if found is None else found.dim

    assert [dims(m, False) for m in (None, 0, 1, 2, 3)] == [1, None, 1, 1, 1]
    assert [dims(m, True) for m in (None, 0, 1, 2, 3)] == [1, None, 1, 2, None]
    found = _transfer.inherited(view(sources=sources), 2, exact=True)
    assert found is not None
    np.testing.assert_allclose(found.A, made[1].orthonormal().A, atol=1e-12)
    assert np.abs(found.residual(made[1].up(np.array([0.3, -0.2])))).max() < 1e-12


def test_the_embedding_of_a_study_is_stored_with_nine_digits() -> None:
    embedding = hypersphere(D, 2, 0)
    method: Any = SimpleNamespace(subspace=lambda *given: embedding)
    found = _transfer.searched(method, History(), SPACE, GOALS, 0)
    assert found is not None
    np.testing.assert_allclose(found["A"], embedding.A, rtol=1e-8)
    assert found["A"] == [[float(f"{v:.9g}") for v in row] for row in embedding.A]
    assert _transfer.searched(None, History(), SPACE, GOALS, 0) is None
    nowhere: Any = SimpleNamespace(subspace=lambda *given: None)
    assert _transfer.searched(nowhere, History(), SPACE, GOALS, 0) is None


# -- weights ---------------------------------------------------------------------------------------------------------------


def test_the_weights_of_sources_by_what_was_foreseen() -> None:
    sources = [task(8), task(9)]
    assert _transfer.weights(History(), GOALS) == []
    np.testing.assert_allclose(_transfer.weights(History((), None, sources=tuple(sources)), GOALS), [1 / 3, 1 / 3])
    # two models alone, then one of each source: (mean, sd) of minus the value
    notes = [
        [[-1.0, 1.0], [-3.0, 1.0], [-2.0, 0.5], [-2.5, 2.0]],
        [[-4.0, 1.0], [-5.0, 2.0], [-5.5, 1.0], [-1.0, 1.0]],
    ]
    trials = [
        trial(0, 9.0),
        *(trial(k + 1, v, foreseen={FIRST: n}) for k, (v, n) in enumerate(zip((2.0, 5.0), notes, strict=True))),
    ]
    values = tamed(np.array([-9.0, -2.0, -5.0]))
    scale = Standardisation.of(values).scale
    alone, score = np.zeros(2), np.zeros(2)
    for value, n in zip(values[1:], notes, strict=True):
        logs = log_densities({FIRST: n}, FIRST, float(value), scale)
        assert logs is not None
        logs = np.maximum(logs - logs.max(), -WORST)
        alone, score = MEMORY * alone + logs[:2], MEMORY * score + logs[2:]
    want = np.exp(np.append(score, alone.max()))
    found = _transfer.weights(History(tuple(trials), None, sources=tuple(sources)), GOALS)
    np.testing.assert_allclose(found, (want / want.sum())[:2])
    assert found[0] > found[1]
    short = [trial(0, 9.0), trial(1, 2.0, foreseen={FIRST: notes[0][:2]})]  # of no source, or of none without
    np.testing.assert_allclose(
        _transfer.weights(History(tuple(short), None, sources=tuple(sources)), GOALS), [1 / 3, 1 / 3]
    )


def test_densities_of_what_came() -> None:
    found = log_densities([[1.0, 2.0], [4.0, 0.0]], FIRST, 3.0, 4.0)
    sds = [math.hypot(0.5, 1e-3), 1e-3]
    want = [-0.5 * (o / sd) ** 2 - math.log(sd) for o, sd in zip((0.5, -0.25), sds, strict=True)]
    np.testing.assert_allclose(found, want)  # type: ignore[arg-type]
    assert log_densities([[1.0, 2.0]], "constraint 0", 3.0, 4.0) is None
    for far in (1e300, -1e300):  # a million standard deviations, on either side, are as far as it goes
        assert log_densities({FIRST: [[far, 1.0]]}, FIRST, 0.0, 1e-3)[0] == -5e11 - math.log(1000.0)  # type: ignore[index]
    for damaged in ([[math.inf, 1.0]], [[0.0, math.nan]], [[0.0, -1e-9]]):
        assert log_densities(damaged, FIRST, 0.0, 1.0) is None
    X = RNG.random((6, D))
    parts = tuple(fit_ard(X, 1e3 * np.sin(X[:, 0]), dense(D)) for _ in range(3))
    mixture = Mixture(parts)
    np.testing.assert_array_equal(start(mixture, [0.5, 1.0]), [0.5 + AHEAD, 1.0 + AHEAD, 0.0])
    np.testing.assert_array_equal(start(mixture, [0.5, 1.0, 2.0]), [0.5, 1.0, 2.0])
    for mean, sd in expectation(mixture, np.full(D, 0.4)):
        assert (mean, sd) == (float(f"{mean:.6g}"), float(f"{sd:.6g}"))


def test_what_is_expected_is_noted_by_a_method_with_sources_alone() -> None:
    X = RNG.random((6, D))
    gp = fit_ard(X, np.sin(X[:, 0]), dense(D))
    inside = view(sources=[task()]).inside(hypersphere(D, 2, 0).orthonormal())
    both: Any = SimpleNamespace(objectives=(Informed((gp, gp), gp),))
    at = np.full(D, 0.4)
    assert _transfer.expected(inside, both, at) == {FORESEEN: {FIRST: expectation(both.objectives[0], at)}}
    assert _transfer.expected(replace(inside, arm="embedding"), both, at) == {}
    one: Any = SimpleNamespace(objectives=(gp,))
    assert _transfer.expected(inside, one, at) == {}


def test_a_model_agrees_where_it_predicts_left_out_outcomes_nearly_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def model(off: float, sd: float = 1.0) -> Any:
        v = torch.tensor([1.0, 2.0]).double()
        left = (5.0 + 2.0 * v + off, torch.full((2,), sd).double())
        return SimpleNamespace(v=v, shift=5.0, scale=2.0, leave_one_out=lambda: left)

    alone = model(0.0)
    # two outcomes, each off by one: one nat behind (nearly: sd and a thousandth of the scale); by 1.74: three
    limit = math.sqrt(3.0) * 1.002
    assert _transfer._agrees(model(1.0), alone)
    assert _transfer._agrees(model(limit - 1e-6), alone)
    assert not _transfer._agrees(model(limit + 1e-6), alone)
    wide = 1.002 * math.exp(1.5) - 0.002  # log sd: 1.5 more for each of two
    assert _transfer._agrees(model(0.0, wide - 1e-6), alone)
    assert not _transfer._agrees(model(0.0, wide + 1e-6), alone)
    monkeypatch.setattr(_transfer, "DOUBT", 0.0)
    assert _transfer._agrees(alone, alone)  # as well is well enough


# -- what was learned ------------------------------------------------------------------------------------------------------


def test_the_share_that_predictions_explain() -> None:
    values = np.array([1.0, 2.0, 3.0, 5.0])
    other = np.array([2.0, 1.0, 4.0, 4.0])
    assert _explained(other, values) == pytest.approx(np.corrcoef(other, values)[0, 1] ** 2)
    assert 0.1 < _explained(other, values) < 0.9
    assert _explained(3.0 * values - 7.0, values) == pytest.approx(1.0)
    assert _explained(-values, values) == 0.0
    assert _explained(np.ones(4), values) == _explained(values, np.full(4, 2.0)) == 0.0


def test_what_a_source_told_is_said_from_the_fourth_evaluation_on(monkeypatch: pytest.MonkeyPatch) -> None:
    old = task(9)
    slope = np.array([1.0, -2.0, 0.0])
    points = np.random.default_rng(5).uniform(-1, 1, (5, D))
    trials = [trial(k, float(10.0 + 3.0 * x @ slope), x) for k, x in enumerate(points)]
    given: dict[str, Any] = {}
    fit = _learned.fit_coregional

    def fitted(source: Any, data: Any) -> Any:
        given.update(source=source, data=data)
        return fit(source, data)

    monkeypatch.setattr(_learned, "fit_coregional", fitted)
    few = learned(History(tuple(trials[:3]), None, sources=(old,)), SPACE, GOALS)[0]
    assert (few.name, few.evaluations, few.explained, few.correlation) == ("old", 9, None, None)
    assert not given
    four = learned(History(tuple(trials[:4]), None, sources=(old,)), SPACE, GOALS)[0]
    assert four.explained is not None
    found = learned(History(tuple(trials), None, sources=(old, replace(old, kernels={}))), SPACE, GOALS)
    data = given["data"]
    np.testing.assert_allclose(data.points, 0.5 * (points + 1.0))
    seen = -np.array([t.outcomes["v"].mean for t in trials])
    np.testing.assert_allclose(data.shift + data.scale * data.v.numpy(), seen)
    assert (data.noise.tolist(), data.known_noise) == ([NOISE_FLOOR] * 5, False)
    expected = given["source"].marginals(data.points).mean[0].numpy()
    assert found[0].explained == pytest.approx(np.corrcoef(expected, seen)[0, 1] ** 2)
    assert found[0].explained > 0.6
    assert found[0].correlation is not None
    assert found[0].correlation > 0.5
    assert (found[1].explained, found[1].correlation) == (None, None)  # it has no process of this outcome
    measured = [replace(t, outcomes={"v": Outcome(t.outcomes["v"].mean, 0.6)}) for t in trials]
    learned(History(tuple(measured), None, sources=(old,)), SPACE, GOALS)
    np.testing.assert_allclose(given["data"].noise, 0.36 / data.scale**2)
    assert given["data"].known_noise


# -- what is added to the models of a study ----------------------------------------------------------------------------------


def test_sources_are_fitted_under_both_priors(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def best(U: np.ndarray, values: np.ndarray, priors: Any, **how: Any) -> Any:
        given.append((U, values, priors, how))
        return fit_ard(U, values, priors[0], iterations=1)

    monkeypatch.setattr(_transfer, "fit_best", best)
    old = task(kernels={}, sems={"v": np.full(8, 0.5)}).rounded()
    _transfer.prepared(old, GOALS)
    ((U, values, priors, how),) = given
    np.testing.assert_allclose(U, 0.5 * (old.X + 1.0))
    np.testing.assert_allclose(values, tamed(without_worst(-old.means["v"])))
    assert priors == [dense(D), sparse(0.1, subsets=True)]
    np.testing.assert_allclose(how.pop("variances"), np.full(8, 0.25))
    assert how == {"seed": derive(0, "source", FIRST)}


def test_the_models_of_sources_stand_after_those_of_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    fit = _transfer.fit_coregional
    monkeypatch.setattr(_transfer, "fit_coregional", lambda source, data: seen.append(data) or fit(source, data))
    X = RNG.uniform(-1, 1, (6, D))
    own = Mixture((fit_ard(0.5 * (X + 1.0), X[:, 0], dense(D)),))
    assert _transfer.informed(view()) is None
    also = _transfer.informed(view(sources=[task(), task(9, kernels={})]))
    assert also is not None
    both = also(FIRST, own)
    assert isinstance(both, Informed)
    assert (both.models[0], both.alone, len(both.models)) == (own.models[0], own, 2)  # one source has no process
    torch.testing.assert_close(seen[0].points, own.points)
    assert also("constraint 0", own) is own


@pytest.mark.parametrize("heard", [0.09, 0.1])
def test_inside_an_embedding_a_source_is_seen_through_it(monkeypatch: pytest.MonkeyPatch, heard: float) -> None:
    embedding = hypersphere(D, 2, 0).orthonormal().through([0.1, -0.2, 0.3])
    inside = view(sources=[task(), task(9)]).inside(embedding)
    monkeypatch.setattr(_transfer, "weights", lambda history, goals: [heard, 0.0])
    also = _transfer.informed_inside(inside)
    if heard < 0.1:
        assert also is None
        return
    assert also is not None
    Y = RNG.uniform(-0.4, 0.4, (6, 2))
    own = fit_ard(Y, Y[:, 0], dense(2))
    monkeypatch.setattr(_transfer, "_agrees", lambda model, alone: True)
    both = also(FIRST, own)
    assert isinstance(both, Informed)
    (extra,) = both.models[1:]
    assert isinstance(extra, Inside)
    up = torch.from_numpy(0.5 * (embedding.up(Y) + 1.0))  # where the source's unit cube has these points
    torch.testing.assert_close(extra._up(torch.from_numpy(Y)), up)
    torch.testing.assert_close(extra.model.points, up)
    torch.testing.assert_close(extra.marginals(own.points).mean, extra.model.marginals(up).mean)
    monkeypatch.setattr(_transfer, "_agrees", lambda model, alone: False)
    assert also(FIRST, own) is own
    assert also("cost", own) is own
