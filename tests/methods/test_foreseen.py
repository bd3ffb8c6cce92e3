"""Listening to the models that foresaw what came about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from alebo import AtMost, Goals, Minimize, Optimizer, Space
from alebo.history import History
from alebo.methods import Adaptive
from alebo.methods._foreseen import DOUBT, DOUBT_OF_SOURCES, FORESEEN, MEMORY, WORST, foreseen, scores, trusted
from alebo.methods._full_space import full_space_arms
from alebo.methods._view import View

SPACE = Space.from_bounds([(-1.0, 1.0)] * 8)
GOALS = Goals(Minimize("value"))
FULL = next(arm for arm in full_space_arms() if arm.name == "full")


def told(notes):
    """A view of trials with these notes, and the models of their outcomes."""
    opt = Optimizer(SPACE, Minimize("value"), method=Adaptive(initial=len(notes)), seed=0)
    rng = np.random.default_rng(0)
    for _ in notes:
        opt.tell(SPACE.decode(rng.uniform(-1, 1, 8)), float(rng.normal()))
    trials = [replace(t, note={} if n is None else {FORESEEN: n}) for t, n in zip(opt.history, notes, strict=True)]
    view = View(History(tuple(trials), None), SPACE, GOALS, 0, arm="full")
    return view, FULL.surrogate(view)


def test_a_note_holds_what_each_model_expects_to_measure():
    _, model = told([None] * 12)
    u = np.full(8, 0.3)
    noted = foreseen(model, u)["objective 0"]
    for part, (mean, sd) in zip(model.objectives[0].models, noted, strict=True):
        m, v, _ = part.marginals(torch.from_numpy(u[None]))
        assert mean == pytest.approx(part.shift + part.scale * float(m), rel=1e-5)
        assert sd == pytest.approx(part.scale * float(v + part.noise.median()) ** 0.5, rel=1e-5)


def test_the_note_of_a_repeated_point_is_about_that_point(monkeypatch):
    view, _ = told([None] * 12)
    again = view.trials[3]
    monkeypatch.setattr("alebo.methods._full_space.to_repeat", lambda view, model: again)
    (proposal,) = FULL.propose(view, 1)
    assert proposal.note["again"] == 3
    assert proposal.note[FORESEEN] == foreseen(FULL.surrogate(view), 0.5 * (again.x + 1.0))


def with_predictions(first, second, count=6, sd=0.1):
    """Trials of which the last ones were foreseen, by two models, this far off in the model's units."""
    _, model = told([None] * 12)
    values = (model.objectives[0].shift + model.objectives[0].scale * model.objectives[0].v).numpy()
    notes = [None] * (12 - count) + [[[v + first, sd], [v + second, sd]] for v in values[12 - count :]]
    return told(notes)


def test_the_model_that_foresaw_is_listened_to_and_the_other_is_not():
    view, model = with_predictions(0.0, 2.0)
    assert len(trusted(model, view, [0.0, 0.0]).objectives[0].models) == 1
    assert trusted(model, view, [0.0, 0.0]).objectives[0].models[0] is model.objectives[0].models[0]
    view, model = with_predictions(2.0, 0.0)
    assert trusted(model, view, [0.0, 3.0]).objectives[0].models[0] is model.objectives[0].models[1]


def test_models_that_foresaw_alike_are_averaged():
    view, model = with_predictions(0.05, -0.05)
    assert trusted(model, view, [0.0, 0.0]) is not None
    assert len(trusted(model, view, [0.0, 0.0]).objectives[0].models) == 2


def test_a_handicap_keeps_a_model_out_until_it_foresaw_better():
    view, model = told([None] * 12)
    assert len(trusted(model, view, [0.0, DOUBT]).objectives[0].models) == 1
    assert len(trusted(model, view, [0.0, 0.0]).objectives[0].models) == 2


def test_one_prediction_costs_no_more_than_its_limit_and_old_ones_count_less():
    view, model = with_predictions(0.0, 1e9, count=1)
    assert scores(model, view, [0.0, 0.0]) == pytest.approx([0.0, -WORST])
    view, model = with_predictions(0.0, 1e9, count=3)
    assert scores(model, view, [0.0, 0.0]) == pytest.approx([0.0, -WORST * (1.0 + MEMORY + MEMORY**2)])


def constrained(first, second):
    """Twelve trials with a constraint, of which the last six were foreseen, by two models, this far off."""
    goals = Goals([Minimize("value"), AtMost("weight", 0.3)])
    opt = Optimizer(SPACE, goals, method=Adaptive(initial=12), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(12):
        opt.tell(SPACE.decode(rng.uniform(-1, 1, 8)), {"value": float(rng.normal()), "weight": float(rng.normal())})
    excess = [t.outcomes["weight"].mean - 0.3 for t in opt.history]
    notes = [{FORESEEN: {"constraint 0": [[v + first, 0.1], [v + second, 0.1]]}} for v in excess]
    trials = [replace(t, note=n if i >= 6 else {}) for i, (t, n) in enumerate(zip(opt.history, notes, strict=True))]
    view = View(History(tuple(trials), None), SPACE, goals, 0, arm="full")
    return view, FULL.surrogate(view)


@pytest.mark.parametrize(("off", "kept"), [((0.0, 2.0), 0), ((2.0, 0.0), 1)])
def test_a_constraint_listens_to_the_model_that_foresaw_it(off, kept):
    view, model = constrained(*off)
    heard = trusted(model, view, [0.0, 0.0])
    assert heard.constraints[0].models == (model.constraints[0].models[kept],)
    assert len(heard.objectives[0].models) == 2  # nothing was foreseen of it


def test_a_proposal_notes_what_is_expected_of_the_constraint_too():
    view, _ = constrained(0.0, 0.0)
    (proposal,) = FULL.propose(view, 1)
    assert list(proposal.note[FORESEEN]) == ["objective 0", "constraint 0"]
    assert [len(pairs) for pairs in proposal.note[FORESEEN].values()] == [2, 2]


@pytest.mark.parametrize(
    "note",
    ["text", [[1.0, 2.0]], [[1.0], [2.0]], [[None, 1.0], [1.0, 1.0]], [[1.0, -1.0]] * 2, 7, {}, {"objective 0": 1}],
)
def test_a_damaged_note_counts_as_none(note):
    view, model = told([None] * 11 + [note])
    assert scores(model, view, [0.0, 1.0]) == pytest.approx([0.0, -1.0])


@pytest.mark.parametrize(("known", "kept"), [(2, 2), (1, 1)])  # the second model is one of the study, or knows a source
def test_a_model_that_knows_a_source_is_doubted_sooner(monkeypatch, known, kept):
    view, model = told([None] * 12)
    monkeypatch.setattr("alebo.methods._foreseen.scores", lambda *_: np.array([0.0, -0.5 * (DOUBT + DOUBT_OF_SOURCES)]))
    assert len(trusted(model, view, [0.0] * known).objectives[0].models) == kept
