"""A study is its history, and plain data brings it back exactly."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import alebo
from alebo import History, Outcome, State, Trial
from alebo.history import incumbent, incumbents

FINITE = st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | FINITE | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def trials(draw: st.DrawFn, number: int = 0) -> Trial:
    state = draw(st.sampled_from(list(State)))
    outcomes = draw(
        st.dictionaries(st.text(min_size=1, max_size=3), st.builds(Outcome, FINITE, st.none() | FINITE), max_size=3)
    )
    return Trial(
        number,
        draw(
            st.dictionaries(
                st.text(min_size=1, max_size=3), st.integers(-9, 9) | FINITE | st.text(max_size=3), max_size=3
            )
        ),
        np.array(draw(st.lists(FINITE, min_size=1, max_size=5))),
        draw(st.none() | st.lists(FINITE, min_size=1, max_size=3).map(np.array)),
        outcomes if state is State.COMPLETE else {},
        state,
        draw(st.dictionaries(st.text(max_size=3), PLAIN, max_size=3)),
        draw(st.none() | st.text(max_size=5)) if state is State.FAILED else None,
        draw(st.booleans()),
    )


def same(a: Trial, b: Trial) -> bool:
    return json.dumps(a.to_dict()) == json.dumps(b.to_dict())


@given(trials())
def test_json_brings_a_trial_back_exactly(trial: Trial) -> None:
    back = Trial.from_dict(json.loads(json.dumps(trial.to_dict(), allow_nan=False)))
    assert back.x.tobytes() == trial.x.tobytes()
    assert (back.y is None) == (trial.y is None)
    assert back.y is None or trial.y is None or back.y.tobytes() == trial.y.tobytes()
    for field in ("number", "params", "outcomes", "state", "note", "reason", "asked"):
        assert getattr(back, field) == getattr(trial, field)
    assert back.complete == (trial.state is State.COMPLETE)


@given(st.data(), st.integers(1, 6))
def test_with_trial_appends_or_replaces(data: st.DataObject, n: int) -> None:
    history = History(budget=9)
    listed = [data.draw(trials(i)) for i in range(n)]
    for t in listed:
        history = history.with_trial(t)
    before = history
    assert len(history) == n
    assert [t.number for t in history] == list(range(n))
    assert len(history.complete) + len(history.pending) + len(history.failed) == n
    new: Any = data.draw(trials(data.draw(st.integers(0, n - 1))))
    after = history.with_trial(new)
    assert len(after) == n
    assert after[new.number] is new
    assert after.budget == 9
    assert all(same(a, b) for a, b in zip(before, listed, strict=True))  # the old history is as it was
    assert all(after[i] is before[i] for i in range(n) if i != new.number)
    assert after[:1] == (after[0],)


def finished(*rows: tuple[float, float, float, float]) -> History:
    """Trials of a Fidelity `level` and a Float `a`, with outcomes loss and g: (level, a, loss, g)."""
    made = []
    for i, (level, a, loss, g) in enumerate(rows):
        outcomes = {"loss": Outcome(loss), "g": Outcome(g)}
        made.append(Trial(i, {"level": level, "a": a}, np.zeros(2), None, outcomes, State.COMPLETE))
    return History(tuple(made))


SPACE = alebo.Space(
    [alebo.Fidelity("level", 0.1, 1.0), alebo.Float("a", 0, 1)], [alebo.LinearConstraint({"a": 1.0}, 0.5)]
)
GOALS = alebo.Goals([alebo.Maximize("loss"), alebo.AtLeast("g", 0.0)])


def test_the_incumbent_is_feasible_by_every_rule_and_at_the_target_fidelity() -> None:
    history = finished(
        (1.0, 0.2, 1.0, -1.0),  # infeasible by its outcome
        (1.0, 0.2, 2.0, 0.0),
        (0.1, 0.2, 9.0, 1.0),  # a cheap fidelity
        (1.0, 0.9, 8.0, 1.0),  # breaks the linear constraint
        (1.0, 0.3, 2.0, 1.0),  # equal: the first stays
        (1.0, 0.3, 3.0, 1.0),
    )
    best = [None if b is None else b.number for _, b in incumbents(history, GOALS, SPACE)]
    assert best == [None, 1, 1, 1, 1, 5]
    assert incumbent(history, GOALS, SPACE) is history[5]


def test_pending_trials_have_no_place_and_failed_ones_change_nothing() -> None:
    history = finished((1.0, 0.2, 2.0, 0.0))
    for i, state in enumerate((State.PENDING, State.FAILED)):
        history = history.with_trial(Trial(1 + i, {"level": 1.0, "a": 0.1}, np.zeros(2), state=state))
    assert [(t.number, b.number) for t, b in incumbents(history, GOALS, SPACE) if b] == [(0, 0), (2, 0)]
    assert incumbent(History(), GOALS, SPACE) is None
