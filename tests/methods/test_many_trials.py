"""ALEBO with many trials: what it learns from, what the note says, and that a resumed study goes on in the same way."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from alebo import ALEBO, Maximize, Minimize, Optimizer, Space
from alebo.methods import Adaptive, Laplace, Sampled, View
from alebo.methods._notes import remembered

SPACE = Space.from_bounds([(-1.0, 1.0)] * 6)
METHOD = ALEBO(dim=3, initial=1)


def bowl(x):
    return float((x[0] - 0.3) ** 2 + (x[1] + 0.2) ** 2 + 0.5 * x[2])


def with_old(n, method=METHOD, goals=None, seed=0, f=bowl):
    """An optimizer with n trials: its initial point, and points of its embedding that it was told."""
    opt = Optimizer(SPACE, goals or Minimize("v"), method=method, seed=seed)
    embedding = method.embedded(View(opt.history, SPACE, opt.goals, seed)).embedding
    first = opt.ask()[0]
    opt.tell(first.number, f(first.x))
    for y in embedding.domain.sample(n - 1, 1):
        x = embedding.up(y)
        opt.tell(SPACE.decode(x), f(x))
    return opt


def test_beyond_a_limit_it_learns_from_the_best_and_some_others_and_the_note_says_so(monkeypatch):
    monkeypatch.setattr(Sampled, "most", 20)
    opt = with_old(30)
    trial = opt.ask()[0]
    assert trial.note["learned from"] == "20 of 30 trials"
    seen = METHOD.embedded(View(opt.history, SPACE, opt.goals, 0))
    kept = {t.number for t in seen.thinned(20).trials}
    best = sorted(seen.trials, key=lambda t: t.outcomes["v"].mean)
    assert len(kept) == len(seen.thinned(20).Y) == 20
    assert {t.number for t in best[:10]} <= kept
    fitted = METHOD.fitted(opt.history, SPACE, opt.goals, 0)
    assert fitted is not None
    assert len(fitted.trials) == 20


def test_up_to_the_limit_nothing_is_said_and_laplace_learns_from_all(monkeypatch):
    monkeypatch.setattr(Sampled, "most", 20)
    assert "learned from" not in with_old(20).ask()[0].note
    assert (
        "learned from" not in with_old(30, ALEBO(dim=3, initial=1, metric=Laplace(cold=1, iterations=10))).ask()[0].note
    )


def test_of_several_objectives_the_pareto_front_is_kept():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 2))
    values[:8] = [[-9.0 + k, -2.0 - k] for k in range(8)]  # the front
    opt = Optimizer(SPACE, [Minimize("a"), Maximize("b")], method=METHOD, seed=0)
    for x, (a, b) in zip(rng.uniform(-1, 1, (60, 6)), values, strict=True):
        opt.tell(SPACE.decode(x), {"a": a, "b": -b})
    kept = {t.number for t in View(opt.history, SPACE, opt.goals, 0).thinned(16).trials}
    assert set(range(8)) <= kept


def test_models_just_under_and_over_the_limit_predict_alike(monkeypatch):
    monkeypatch.setattr(Sampled, "most", 60)
    X = np.random.default_rng(3).uniform(-1, 1, (100, 6))
    errors = []
    for n in (60, 61, 75):
        opt = with_old(n)
        fitted = METHOD.fitted(opt.history, SPACE, opt.goals, 0)
        assert fitted is not None
        assert fitted.embedding is not None
        Y = fitted.see(X)
        mean, _ = fitted.models["v"].predict(Y)
        errors.append(float(np.sqrt(np.mean((mean - [bowl(x) for x in fitted.embedding.up(Y)]) ** 2))))
    assert max(errors) < 0.05


def test_a_resumed_study_goes_on_in_the_same_way_in_another_process(tmp_path):
    opt = with_old(110)
    for _ in range(3):
        t = opt.ask()[0]
        opt.tell(t.number, bowl(t.x))
    opt.save(tmp_path / "study.json")
    code = "import alebo, json, sys; print(json.dumps(alebo.Optimizer.load(sys.argv[1]).ask()[0].x.tolist()))"
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "study.json")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert np.array_equal(json.loads(found.stdout), Optimizer.load(tmp_path / "study.json").ask()[0].x)


@pytest.mark.parametrize("damage", [None, {}, {"chains": 3}, {"chains": {"objective 0": [[1.0], "x", None]}}])
def test_older_notes_that_are_missing_or_damaged_are_survived(damage):
    opt = with_old(110)
    for _ in range(3):
        t = opt.ask()[0]
        opt.tell(t.number, bowl(t.x))
    trials = list(opt.history.trials)
    note = trials[-2].note
    note.pop("chains")
    note.update(damage or {})
    assert np.isfinite(opt.ask()[0].x).all()


def test_kernels_in_the_notes_are_used():
    opt = with_old(110)
    for _ in range(3):
        t = opt.ask()[0]
        opt.tell(t.number, bowl(t.x))
    seen = METHOD.embedded(View(opt.history, SPACE, opt.goals, 0))
    states = remembered(seen, "chains", 6)["objective 0"]
    assert [len(t.note["chains"]["objective 0"]) for t in opt.history[-3:]] == [
        12,
        4,
        4,
    ]  # the first model: all kernels
    assert len(states) == 20
    assert states[:4] == opt.history[-1].note["chains"]["objective 0"]
    assert states[4:8] == opt.history[-2].note["chains"]["objective 0"]


def test_diagnosis_and_status_name_the_approximation(monkeypatch):
    from alebo.methods._notes import approximation

    monkeypatch.setattr(Sampled, "most", 20)
    opt = with_old(30)
    assert approximation(opt.history) is None
    opt.ask()
    assert approximation(opt.history) == "The models learn from 20 of 30 trials: the best, and some of all others."


@pytest.mark.parametrize("q", [1, 2])
def test_with_many_old_trials_the_local_arm_starts_where_the_sparse_search_of_the_full_arm_ended(q, monkeypatch):
    from alebo.models import ard_fit, subsets

    monkeypatch.setattr("alebo.methods._full_space.MANY", 30)
    monkeypatch.setattr(ard_fit, "MANY", 30)
    monkeypatch.setattr(ard_fit, "ALWAYS", 10)
    monkeypatch.setattr(ard_fit, "_fewer", lambda v: np.arange(30))
    searches = []
    search = subsets.from_subsets
    monkeypatch.setattr(ard_fit, "from_subsets", lambda *a, **k: searches.append(k["fresh"]) or search(*a, **k))
    opt = Optimizer(SPACE, Minimize("v"), method=Adaptive(), seed=0)
    for x in np.random.default_rng(0).uniform(-1, 1, (40, 6)):
        opt.tell(SPACE.decode(x), bowl(x))
    asked = [t for _ in range(2 // q) for t in opt.ask(q)]
    assert [t.note["arm"] for t in asked] == ["full", "local"]
    assert searches.count(True) == 1  # the full arm's, from nothing
    assert len(asked[1].note["fit"]["objective 0"]) == 2
