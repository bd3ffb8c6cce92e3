"""Learning from earlier studies: what a related one saves, what an unrelated one costs, and with what it combines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import alebo
from alebo import AtMost, Minimize, Optimizer, Space
from alebo.methods import learned, weights
from alebo.methods._full_space import full_space_arms
from alebo.methods._transfer import taming
from alebo.methods._view import View

D = 20
SPACE = Space.from_bounds([(0, 1)] * D)


def f(x: np.ndarray, shift: float = 0.0) -> float:
    return float(np.sum((x[[3, 7, 11]] - 0.3 - shift) ** 2) - 0.5 * np.exp(-20 * (x[5] - 0.7 - shift) ** 2))


@pytest.fixture(scope="module")
def old() -> Optimizer:
    opt = Optimizer(SPACE, Minimize("value"), method="bo", seed=5, budget=40)
    for _ in range(40):
        t = opt.ask()[0]
        opt.tell(t.number, f(np.array(list(t.params.values()))))
    return opt


def search(opt: Optimizer, n: int, goal=None) -> list[float]:
    values = []
    for _ in range(n):
        t = opt.ask()[0]
        x = np.array(list(t.params.values()))
        values.append(5.0 + 3.0 * f(x, 0.05))
        opt.tell(t.number, values[-1] if goal is None else {"value": values[-1], **goal(x)})
    return values


def test_a_related_source_is_trusted_and_saves_most_of_the_evaluations(old) -> None:
    opt = Optimizer(SPACE, Minimize("value"), seed=1, budget=40, sources=[old])
    found = search(opt, 8)
    assert weights(opt.history, opt.goals)[0] > 0.7
    assert min([*found, *search(opt, 7)]) < 5.0 + 3.0 * -0.47
    arms = [t.note["arm"] for t in opt.history]
    assert arms[0] == "source"
    assert {arms[1], arms[3]} <= {"embedding", "initial"}  # the first points hedge


def test_a_source_of_noise_is_not_believed(old) -> None:
    task = Optimizer(SPACE, Minimize("value"), sources=[old]).history.sources[0]
    frame = old.to_dataframe()
    frame["value"] = np.random.default_rng(0).normal(size=len(frame))
    opt = Optimizer(SPACE, Minimize("value"), seed=1, budget=40, sources=[frame])
    search(opt, 14)
    (found,) = learned(opt.history, opt.space, opt.goals)
    assert found.explained == pytest.approx(0.0, abs=0.1)
    assert found.correlation == pytest.approx(0.0, abs=0.2 + 1e-9)  # its model is then that of the new data alone
    arms = [t.note["arm"] for t in opt.history]
    assert sum(a in ("embedding", "initial") for a in arms) >= 5  # what a study without sources begins with
    assert len(task) == 40


def test_a_batch_and_pending_points_and_resuming(old, tmp_path) -> None:
    opt = Optimizer(SPACE, Minimize("value"), seed=2, budget=40, sources=[old])
    first = opt.ask(6)
    assert len({t.x.tobytes() for t in first}) == 6
    for t in first[:4]:
        opt.tell(t.number, f(t.x, 0.05))
    opt.save(tmp_path / "a.json")
    again = Optimizer.load(tmp_path / "a.json")
    assert all(np.array_equal(a.x, b.x) for a, b in zip(opt.ask(3), again.ask(3), strict=True))


def test_constraints_noise_and_objectives(old) -> None:
    opt = Optimizer(SPACE, [Minimize("value"), AtMost("sum", 3.0)], seed=1, budget=40, sources=[old])
    search(opt, 7, lambda x: {"sum": float(x[:5].sum())})
    assert set(opt.history.sources[0].kernels) == {"objective 0"}
    two = Optimizer(SPACE, [Minimize("value"), Minimize("other")], seed=1, budget=40, sources=[old])
    search(two, 7, lambda x: {"other": float(x[0])})
    assert two.front()
    noisy = Optimizer(SPACE, Minimize("value"), seed=1, budget=40, sources=[old])
    rng = np.random.default_rng(0)
    for _ in range(7):
        t = noisy.ask()[0]
        noisy.tell(t.number, (f(t.x) + 0.1 * rng.normal(), 0.1))
    assert noisy.best().complete


def test_a_source_with_constraints_begins_at_its_best_feasible_point() -> None:
    goals = [Minimize("value"), AtMost("sum", 1.0)]
    old = Optimizer(SPACE, goals, method="sobol", seed=0)
    for t in old.ask(30):
        x = np.array(list(t.params.values()))
        old.tell(t.number, {"value": f(x), "sum": float(x[:2].sum())})
    opt = Optimizer(SPACE, goals, sources=[old])
    assert set(opt.history.sources[0].kernels) == {"objective 0", "constraint 0"}
    assert np.allclose(opt.ask()[0].x, old.best().x, atol=1e-8)


def test_two_sources_share_the_weight(old) -> None:
    frame = old.to_dataframe()
    frame["value"] = np.random.default_rng(0).normal(size=len(frame))
    opt = Optimizer(SPACE, Minimize("value"), seed=1, budget=40, sources=[frame, alebo.Source(old, name="march")])
    search(opt, 10)
    noise, march = weights(opt.history, opt.goals)
    assert march > noise
    assert noise + march <= 1.0
    assert [t.note["arm"] for t in opt.history][:3:2] == ["source", "source"]


def test_the_embedding_of_a_source_is_that_of_the_study() -> None:
    old = Optimizer(SPACE, Minimize("value"), method=alebo.ALEBO(), seed=5, budget=20)
    for _ in range(12):
        t = old.ask()[0]
        old.tell(t.number, f(np.array(list(t.params.values()))))
    opt = Optimizer(SPACE, Minimize("value"), method=alebo.ALEBO(), seed=9, budget=20, sources=[old])
    found = [old.method.subspace(o.history, SPACE, o.goals, o.seed) for o in (old, opt)]
    assert found[0].dim == found[1].dim
    assert found[1].residual(np.array([t.x for t in old.history])).max() < 1e-6
    search(opt, 8)
    assert [t.note.get("arm") for t in opt.history][:1] == ["source"]
    fixed = replace(old.method, dim=3, growth=None)
    other = Optimizer(SPACE, Minimize("value"), method=fixed, seed=9, sources=[old])
    assert fixed.subspace(other.history, SPACE, other.goals, 9).dim == 3


def test_without_sources_nothing_is_noted_of_them() -> None:
    opt = Optimizer(SPACE, Minimize("value"), seed=1, budget=40)
    search(opt, 3)
    assert weights(opt.history, opt.goals) == []
    assert not any("first" in t.note for t in opt.history)


def test_the_worst_outcomes_are_raised_to_a_level_below_the_worse_quarter(old) -> None:
    sources = Optimizer(SPACE, Minimize("value"), sources=[old]).history.sources
    values = np.array([10.0, 9.0, 9.0, 9.0, 5.0, 4.0, -40.0, 9.0, 9.0])  # larger is better
    assert taming(sources)(values).min() == pytest.approx(5.0 - 3.0 * (10.0 - 5.0))
    assert taming(())(values).min() == pytest.approx(9.0 - 3.0 * (10.0 - 9.0))


@pytest.mark.parametrize(("weight", "searched"), [(0.9, [6, 9]), (0.1, [5, 6, 7, 8, 9])])
def test_models_without_a_trusted_source_are_fitted_from_the_start_every_third_time(
    old, monkeypatch, weight, searched
) -> None:
    opt = Optimizer(SPACE, Minimize("value"), seed=1, budget=40, sources=[old])
    search(opt, 10)
    found = []
    monkeypatch.setattr("alebo.methods._full_space.weights", lambda *_: [weight])
    monkeypatch.setattr(
        "alebo.methods._full_space.FullSpaceArm._remembered", lambda self, view: {"objective 0": [(), ()]}
    )
    monkeypatch.setattr(
        "alebo.methods._full_space.fit_outcomes",
        lambda X, *_, build, **__: found.append((len(X), build.keywords["priors"])),
    )
    arm = next(a for a in full_space_arms() if a.name == "full")
    for n in range(5, 10):
        arm.surrogate(View(replace(opt.history, trials=opt.history.trials[:n]), SPACE, opt.goals, 0, arm="full"))
    assert [n for n, priors in found if priors[1].subsets] == searched
