"""Plateaus: read off the data where there are some, kept away from, and nowhere else in the way."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import alebo
from alebo import AtMost, Goals, Minimize, Optimizer, Space
from alebo.acquisition import PerCost, Unseen, evaluate, value_and_gradient
from alebo.geometry import Embedding
from alebo.goals import Outcome
from alebo.methods import _maximise, _plateaus
from alebo.methods._plateaus import EVIDENCE, NEWEST, PLATEAUS, REPEATED, Plateaus, plateaus
from alebo.methods.alebo import ALEBO
from alebo.models import fit_ard
from alebo.models.priors import dense

from .views import GOAL, D, trial, view

SIDE = 0.2  # of a step, in the unit cube


def steps(X: np.ndarray) -> np.ndarray:
    """Another value on each cell of a grid over the first two coordinates of the cube.  n x D -> n"""
    cell = np.floor(0.5 * (X[:, :2] + 1.0) / SIDE)
    return np.asarray(np.sin(3.0 * cell[:, 0]) + 0.37 * cell[:, 1])


def seen_at(X: np.ndarray, values: Any, goals: Goals = GOAL, **how: Any) -> Any:
    """The view of points of the cube with these values."""
    return view(*(trial(i, float(v), x=x) for i, (x, v) in enumerate(zip(X, values, strict=True))), goals=goals, **how)


def clustered(count: int = 12) -> np.ndarray:
    """Points of the cube, each with two others near it."""
    rng = np.random.default_rng(3)
    centres = rng.uniform(-0.9, 0.9, (count, D))
    return np.concatenate([centres, *(centres + rng.uniform(-0.03, 0.03, centres.shape) for _ in range(2))])


def test_the_width_of_plateaus_is_about_that_of_the_steps() -> None:
    X = clustered()
    found = plateaus(seen_at(X, steps(X)))
    assert found is not None
    assert 0.02 < found.width < 2.0 * SIDE
    np.testing.assert_array_equal(found.X, X)


def test_a_function_without_plateaus_shows_none() -> None:
    X = clustered()
    assert plateaus(seen_at(X, X[:, 0] ** 2)) is None


def test_outcomes_that_agree_at_any_distance_are_no_plateaus() -> None:
    X = clustered(30)
    assert plateaus(seen_at(X, np.random.default_rng(0).integers(2, size=len(X)))) is None  # success or failure
    assert plateaus(seen_at(X, np.zeros(len(X)))) is None  # a constant: nothing would be new anywhere


def test_points_evaluated_again_are_no_plateaus() -> None:
    X = np.random.default_rng(1).uniform(-1, 1, (10, D))
    X = np.concatenate([X, X])
    assert plateaus(seen_at(X, X[:, 0])) is None


def test_so_many_repeated_outcomes_are_needed() -> None:
    X = clustered(20)
    values = X[:, 0].copy()
    for i in range(REPEATED - 1):
        values[20 + i] = values[i]
    assert plateaus(seen_at(X, values)) is None
    values[20 + REPEATED - 1] = values[REPEATED - 1]
    assert plateaus(seen_at(X, values)) is not None


def test_little_evidence_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    X = clustered()
    assert plateaus(seen_at(X, steps(X))) is not None
    monkeypatch.setattr(_plateaus, "EVIDENCE", 1e6)
    assert plateaus(seen_at(X, steps(X))) is None
    assert EVIDENCE == 3.0


def test_every_outcome_has_to_be_the_same() -> None:
    X = clustered()
    goals = Goals([Minimize("v"), AtMost("w", 1.0)])
    outcomes = [{"v": Outcome(float(v)), "w": Outcome(float(x[0]))} for v, x in zip(steps(X), X, strict=True)]
    trials = [trial(i, x=x, outcomes=o) for i, (x, o) in enumerate(zip(X, outcomes, strict=True))]
    assert plateaus(view(*trials, goals=goals)) is None
    assert plateaus(view(*trials, goals=GOAL)) is not None


def test_the_newest_trials_tell() -> None:
    X = np.concatenate([clustered(), np.random.default_rng(5).uniform(-1, 1, (NEWEST, D))])
    values = np.concatenate([steps(X[:36]), X[36:, 0]])
    assert plateaus(seen_at(X, values)) is None


def test_no_plateaus_where_cheaper_looks_have_other_outcomes() -> None:
    X = clustered()
    seen = seen_at(X, steps(X))
    space = Space([*(alebo.Float(f"p{i}", -1.0, 1.0) for i in range(D - 1)), alebo.Fidelity("s", 0.1, 1.0)])
    assert plateaus(replace(seen, space=space)) is None


# -- the acquisition -------------------------------------------------------------------------------------------------------


class Slope(torch.nn.Module):
    """The first coordinate."""

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return X[..., 0, 0]


def test_a_point_counts_by_the_probability_that_it_is_new() -> None:
    known = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    W = torch.tensor([[0.3, 0.4], [0.9, 1.0], [0.0, 0.0]], dtype=torch.float64)
    value = evaluate(Unseen(Slope(), known, 0.5), W.numpy())
    assert value[0] == pytest.approx(0.3 + math.log(1.0 - math.exp(-((0.5 / 0.5) ** 2))))
    assert value[1] == pytest.approx(0.9 + math.log(1.0 - math.exp(-((0.1 / 0.5) ** 2))))
    assert value[2] == pytest.approx(math.log(1e-12))  # a known point is next to worthless, and finite


def test_its_gradient_is_that_of_its_value() -> None:
    rng = np.random.default_rng(0)
    known = torch.from_numpy(rng.random((5, 3)))
    W = torch.from_numpy(rng.random((4, 3)))
    M = torch.from_numpy(rng.random((3, 3)))
    for place in (None, lambda W: W @ M):
        unseen = Unseen(Slope(), known, 0.4, place)
        value, gradient = value_and_gradient(unseen, W)
        np.testing.assert_allclose(value.numpy(), unseen(W[:, None, :]).numpy(), rtol=1e-12)
        for j in range(3):
            h = torch.zeros(3, dtype=torch.float64)
            h[j] = 1e-6
            slope = (unseen((W + h)[:, None, :]) - unseen((W - h)[:, None, :])) / 2e-6
            np.testing.assert_allclose(gradient[:, j].numpy(), slope.numpy(), rtol=1e-5, atol=1e-7)


def test_distances_inside_an_embedding_are_those_of_the_unit_cube() -> None:
    rng = np.random.default_rng(2)
    embedding = Embedding(rng.standard_normal((D, 2)) * 0.2, rng.uniform(-0.1, 0.1, D))
    X = rng.uniform(-1, 1, (6, D))
    waiting = rng.uniform(-1, 1, D)
    seen = seen_at(X, np.arange(6.0)).plus(waiting)
    unseen = Plateaus(0.3, X).unseen_inside(Slope(), seen.inside(embedding))
    W = rng.uniform(-0.5, 0.5, (8, 2))
    known = 0.5 * np.concatenate([X, waiting[None]])
    r = np.array([np.linalg.norm(0.5 * embedding.up(w) - known, axis=1).min() for w in W])
    np.testing.assert_allclose(evaluate(unseen, W), W[:, 0] + np.log(1.0 - np.exp(-((r / 0.3) ** 2))), rtol=1e-9)
    whole = Plateaus(0.3, X).unseen(Slope(), seen)
    U = rng.random((5, D))
    r = np.array([np.linalg.norm(u - 0.5 - known, axis=1).min() for u in U])
    np.testing.assert_allclose(evaluate(whole, U), U[:, 0] + np.log(1.0 - np.exp(-((r / 0.3) ** 2))), rtol=1e-9)


def test_what_a_point_promises_is_without_its_cost_on_plateaus_too() -> None:
    X = np.random.default_rng(0).random((8, 2))
    cost = fit_ard(torch.from_numpy(X), torch.from_numpy(5.0 + X[:, 1]), dense(2))
    known = torch.from_numpy(X)
    y = np.array([0.37, 0.41])
    priced = PerCost(Slope(), cost)
    assert _maximise._promise(Unseen(priced, known, 0.1), y, -7.0) == pytest.approx(0.37)
    assert _maximise._promise(Unseen(Slope(), known, 0.1), y, -7.0) == -7.0


# -- proposals -------------------------------------------------------------------------------------------------------------


def stairs(x: np.ndarray) -> float:
    """Twelve parameters, each of which matters by its whole part only."""
    return float(np.mean(np.round(3.0 * (x - 0.3)) ** 2))


def run(count: int, q: int = 1, seed: int = 300, **how: Any) -> Optimizer:
    opt = Optimizer(Space.from_bounds([(0.0, 1.0)] * 12), goals=Minimize("y"), seed=seed, **how)
    while len(opt.history) < count:
        for t in opt.ask(q):
            opt.tell(t, stairs(np.array(list(t.params.values()))))
    return opt


def nearest(opt: Optimizer, number: int) -> float:
    """How far a trial was from those before it, in the unit cube."""
    X = np.array([t.x for t in opt.history])
    return float(0.5 * np.linalg.norm(X[:number] - X[number], axis=1).min())


def test_proposals_keep_away_from_plateaus_and_the_note_says_how_wide_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    opt = run(32)
    widths = {t.number: t.note[PLATEAUS] for t in opt.history if PLATEAUS in t.note}
    assert len(widths) > 5
    monkeypatch.setattr("alebo.methods.adaptive.plateaus", lambda view: None)
    as_before = run(32)
    assert not any(PLATEAUS in t.note for t in as_before.history)
    far = np.mean([nearest(opt, number) for number in widths])
    near = np.mean([nearest(as_before, number) for number in widths])
    assert far > 1.15 * near


def test_every_arm_is_told_of_plateaus_and_of_points_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int]] = []

    class Told(Plateaus):
        def unseen(self, acquisition: Any, view: Any) -> Unseen:
            told.append((view.arm, len(view.pending)))
            return super().unseen(acquisition, view)

        def unseen_inside(self, acquisition: Any, seen: Any) -> Unseen:
            told.append((seen.arm, len(seen.pending)))
            return super().unseen_inside(acquisition, seen)

    monkeypatch.setattr("alebo.methods.adaptive.plateaus", lambda view: Told(0.2, view.X) if len(view.X) > 12 else None)
    run(28, q=4, budget=60)
    assert {arm for arm, _ in told} == {"full", "local", "embedding"}
    assert {waiting for _, waiting in told} >= {0, 1, 2}


@pytest.mark.parametrize("q", [1, 3])
def test_plateaus_with_constraints_several_objectives_and_categories(q: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "alebo.methods.adaptive.plateaus", lambda view: Plateaus(0.2, view.X) if len(view.X) > 6 else None
    )
    space = Space([alebo.Float("a", 0.0, 1.0), alebo.Int("b", 1, 9), alebo.Categorical("c", ["x", "y", "z"])])
    opt = Optimizer(space, goals=[Minimize("u"), Minimize("v"), AtMost("w", 5.0)], seed=3, budget=15)
    while len(opt.history) < 15:
        for t in opt.ask(q):
            a, b, c = t.params.values()
            opt.tell(t, {"u": round(a, 1) + b, "v": -b + "xyz".index(c), "w": round(b + a)})
    assert sum(PLATEAUS in t.note for t in opt.history) >= 15 // q - 8 // q - 1
    assert all("skipped" not in t.note for t in opt.history)


def test_a_resumed_run_proposes_the_same_on_plateaus() -> None:
    opt = run(24)
    again = Optimizer.from_dict(opt.to_dict())
    assert opt.history[-1].note.keys() >= {PLATEAUS}
    one, two = opt.ask()[0], again.ask()[0]
    assert one.params == two.params


def test_alebo_alone_knows_nothing_of_plateaus() -> None:
    opt = run(25, method=ALEBO())
    assert not any(PLATEAUS in t.note for t in opt.history)
