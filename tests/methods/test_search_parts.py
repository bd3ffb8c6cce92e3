"""Parts of a proposal against their definition: rounded points, predictors in the user's units, models listened to."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import alebo
from alebo import AtLeast, AtMost, Categorical, Float, Goals, Int, Maximize, Minimize, Space
from alebo.geometry import Embedding
from alebo.goals import Outcome
from alebo.history import History, State, Trial
from alebo.methods import _rounding
from alebo.methods._fitted import Predictor, by_outcome
from alebo.methods._foreseen import FIRST, FORESEEN, MEMORY, SHARPEST, WORST, scores, trusted
from alebo.methods._rounding import CHILDREN, PARENTS, ROUNDS, rounded
from alebo.methods._view import View
from alebo.models import Mixture, fit_ard
from alebo.models.priors import dense
from alebo.models.surrogate import in_units

RNG = np.random.default_rng(0)
X = RNG.random((20, 3))
VALUES = 5.0 + 40.0 * np.sin(3.0 * X[:, 0]) + X[:, 2]
MODEL = fit_ard(X, VALUES, dense(3))


# -- rounding --------------------------------------------------------------------------------------------------------------


def searched(
    monkeypatch: pytest.MonkeyPatch, space: Space, A: np.ndarray, worth: Any, start: np.ndarray, known: Any = ()
) -> tuple[np.ndarray, float, list[np.ndarray]]:
    """Where `rounded` ends, and the points (of the embedding) that it evaluates, round by round."""
    rounds: list[np.ndarray] = []

    def evaluated(acquisition: Any, points: np.ndarray) -> np.ndarray:
        rounds.append(points)
        return np.array([worth(p) for p in points])

    monkeypatch.setattr(_rounding, "evaluate", evaluated)
    trials = [Trial(i, space.decode(x), x, None, {"v": Outcome(0.0)}, State.COMPLETE) for i, x in enumerate(known)]
    seen = View(History(tuple(trials), None), space, Goals(Minimize("v")), 0).inside(
        Embedding(A, np.zeros(space.dimension))
    )
    x, value = rounded(seen, None, start, np.zeros((1, space.dimension)), 3)  # type: ignore[arg-type]
    return x, value, rounds


def test_half_of_the_children_step_along_the_subspace_by_lengths_of_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Space.from_bounds([(-1.0, 1.0)] * 3)
    _, _, rounds = searched(monkeypatch, space, 0.1 * np.eye(3), lambda p: 0.0, np.zeros((1, 3)))
    assert [len(r) for r in rounds] == [1] + [CHILDREN] * ROUNDS
    lengths = np.log10(np.linalg.norm(rounds[1][: CHILDREN // 2], axis=1))  # all parents are the origin
    assert -1.5 <= lengths.min() < -1.3
    assert 0.5 < lengths.max() <= 0.7
    assert lengths.mean() == pytest.approx(-0.4, abs=0.36)  # uniform: four standard errors of 50
    cube = 0.1 * rounds[1][CHILDREN // 2 :]
    assert ((np.abs(cube) > 1e-12).sum(1) == 1).all()  # a new value of one coordinate
    assert set(np.argmax(np.abs(cube), axis=1)) == {0, 1, 2}
    values = cube[np.abs(cube) > 1e-12]
    assert values.min() < -0.7
    assert values.max() > 0.7


def test_the_most_promising_have_children_and_the_best_of_all_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Space([Int("n", 0, 20), Float("a", 0.0, 1.0), Categorical("c", ["u", "v", "w"])])
    want = space.encode({"n": 17, "a": 0.5, "c": "w"})
    A = np.eye(space.dimension)

    def worth(p: np.ndarray) -> float:
        return -float(np.abs(p - want).sum())

    x, value, rounds = searched(monkeypatch, space, A, worth, np.zeros((2, space.dimension)))
    everything = np.vstack(rounds)
    all_worth = [worth(p) for p in everything]
    assert value == max(all_worth)
    np.testing.assert_array_equal(x, everything[int(np.argmax(all_worth))])
    np.testing.assert_array_equal(space.snap(everything), everything)  # all of them can be evaluated
    params = space.decode(x)
    assert params["c"] == "w"
    assert abs(params["n"] - 17) <= 1
    before = np.vstack(rounds[:-1])
    parents = np.vstack([before[np.argsort([-worth(p) for p in before])[:PARENTS]], np.zeros((1, space.dimension))])
    parents = space.snap(parents)
    for child in rounds[-1][CHILDREN // 2 :]:  # one parameter differs from one of the parents, at most
        same = [sum(space.decode(child)[k] != space.decode(q)[k] for k in space.names) for q in parents]
        assert min(same) <= 1


def test_a_new_point_comes_before_a_known_and_a_feasible_before_any(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Space([Int("n", 0, 3), Int("m", 0, 3)])
    grid = np.array([space.encode({"n": n, "m": m}) for n in range(4) for m in range(4)])

    def worth(p: np.ndarray) -> float:
        return float(p[0] + 0.1 * p[1])

    x, _, _ = searched(monkeypatch, space, np.eye(2), worth, grid)
    assert space.decode(x) == {"n": 3, "m": 3}
    x, value, _ = searched(monkeypatch, space, np.eye(2), worth, grid, known=grid[-2:])
    assert space.decode(x) == {"n": 3, "m": 1}
    assert value == worth(space.encode({"n": 3, "m": 1}))
    x, _, _ = searched(monkeypatch, space, np.eye(2), worth, grid, known=grid)
    assert space.decode(x) == {"n": 3, "m": 3}  # nothing is new: the best
    cut = Space(space.parameters, [alebo.LinearConstraint({"n": 1.0}, 1.0)])
    x, _, _ = searched(monkeypatch, cut, np.eye(2), worth, grid)
    assert cut.decode(x) == {"n": 1, "m": 3}


# -- predictors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sign", "offset"), [(None, None), (-1.0, 2.5), (3.0, 0.0)])
def test_a_predictor_is_its_model_in_the_users_units(sign: float | None, offset: float | None) -> None:
    made = Predictor(MODEL) if sign is None else Predictor(MODEL, sign, offset or 0.0)
    s, o = (1.0, 0.0) if sign is None else (sign, offset or 0.0)
    P = RNG.random((600, 3))  # in parts of about 250
    mean, variance = made.predict(P)
    want, sd = in_units(MODEL, torch.from_numpy(P))
    np.testing.assert_allclose(mean, s * want.numpy() + o)
    np.testing.assert_allclose(variance, sd.numpy() ** 2)
    np.testing.assert_allclose(made.targets, s * VALUES + o)
    assert made.noise == pytest.approx(float(MODEL.noises.mean()) * MODEL.scale**2)
    left, spread = made.leave_one_out()
    m, v = MODEL.leave_one_out()
    np.testing.assert_allclose(left, s * m.numpy() + o)
    np.testing.assert_allclose(spread, v.numpy())
    assert [a.shape for a in made.predict(np.zeros((0, 3)))] == [(0,), (0,)]


def test_signs_and_bounds_of_the_outcomes() -> None:
    goals = Goals([Maximize("gain"), Minimize("loss"), AtMost("mass", 2.0), AtLeast("life", 5.0), AtMost("loss", 9.0)])
    models: list[Any] = [SimpleNamespace(name=k) for k in range(5)]
    for flip in (1.0, -1.0):
        found = by_outcome(goals, models[:2], models[2:], flip)
        assert {k: (p.model, p.sign, p.offset) for k, p in found.items()} == {
            "gain": (models[0], -flip, 0.0),
            "loss": (models[1], flip, 0.0),  # the objective's model, not that of its bound
            "mass": (models[2], 1.0, 2.0),
            "life": (models[3], -1.0, 5.0),
        }


# -- who is listened to ------------------------------------------------------------------------------------------------------


def foretold(*notes: Any) -> tuple[Any, Any]:
    """Models of two priors of six values, and a view of trials with these notes."""
    Y, values = X[:6], np.array([2.0, 4.0, 6.0, 8.0, 10.0, 12.0])
    parts = tuple(fit_ard(Y, values, prior) for prior in (dense(3), dense(3, kernel="matern")))
    model = SimpleNamespace(objectives=(Mixture(parts),), models={FIRST: Mixture(parts)})
    trials = [SimpleNamespace(note={} if n is None else {FORESEEN: n}) for n in notes]
    return model, SimpleNamespace(trials=trials)


def test_scores_are_log_densities_that_fade() -> None:
    notes = [None, [[4.5, 1.0], [4.0, 2.0]], None, [[7.0, 3.0], [9.0, 0.5]], None, [[12.0, 1.0], [11.0, 1.0]]]
    model, view = foretold(*notes)
    scale, want = model.objectives[0].scale, np.array([-0.5, -1.0])
    for value, note in zip((2.0, 4.0, 6.0, 8.0, 10.0, 12.0), notes, strict=True):
        if note is not None:
            sds = [math.hypot(sd / scale, SHARPEST) for _, sd in note]
            logs = [-0.5 * ((value - m) / scale / s) ** 2 - math.log(s) for (m, _), s in zip(note, sds, strict=True)]
            want = MEMORY * want + np.maximum(np.array(logs) - max(logs), -WORST)
    np.testing.assert_allclose(scores(model, view, [0.5, 1.0]), want - want.max())
    for trial in view.trials:  # the same, noted by outcome
        if trial.note:
            trial.note = {FORESEEN: {FIRST: trial.note[FORESEEN], "other": [[0.0, 1.0]] * 2}}
    np.testing.assert_allclose(scores(model, view, [0.5, 1.0]), want - want.max())


def test_one_model_alone_is_listened_to_whatever_it_foresaw() -> None:
    one = SimpleNamespace(objectives=(SimpleNamespace(models=(MODEL,)),))
    assert trusted(one, None, [3.0]) is one  # type: ignore[arg-type, comparison-overlap]
