"""Corrections: settings that were really run, wrong entries, withdrawn ones; and what a person sees of an object."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alebo
from alebo import ALEBO, AtMost, Float, InputError, Minimize, Optimizer, Space, State, StateError, Study
from alebo._propose import as_run
from alebo.methods import Sobol
from tests.conftest import require_module

D = 6
SPACE = Space([Float(f"p{i}", 0, 1) for i in range(D)])


def value(trial: alebo.Trial) -> float:
    return float(sum((v - 0.3) ** 2 for v in trial.params.values()))


def made(n: int = 6, method: Any = None) -> Optimizer:
    opt = Optimizer(SPACE, Minimize("loss"), method=method or Sobol(), seed=1)
    for _ in range(n):
        trial = opt.ask()[0]
        opt.tell(trial, value(trial))
    return opt


def record(opt: Any) -> str:
    return json.dumps([t.to_dict() for t in opt.history])


def test_settings_that_were_really_run_are_the_parameters() -> None:
    opt = Optimizer(SPACE, Minimize("loss"), method=ALEBO(dim=3, initial=3), seed=1)
    trial = opt.ask()[0]
    rounded = 0.98 * trial.params["p0"]
    done = opt.tell(trial, 0.5, params={"p0": rounded})
    assert done.params == {**trial.params, "p0": rounded}
    assert SPACE.decode(done.x)["p0"] == pytest.approx(rounded)
    assert done.y is trial.y  # rounded: the model keeps its embedded point
    assert done.earlier[0].params == trial.params
    far = opt.ask()[0]
    other = (far.params["p1"] + 0.5) % 1.0
    assert opt.tell(far, 0.5, params={"p1": other}).y is None
    same = opt.ask()[0]
    assert opt.tell(same, 0.5, params=same.params).earlier == ()


def test_settings_out_of_range_are_refused_and_nothing_is_stored() -> None:
    opt = made(1)
    trial = opt.ask()[0]
    before = record(opt)
    for params, words in (({"p0": 7.0}, "`0.0 <= p0 <= 1.0`"), ({"q": 1}, "'q'"), ({"p0": "much"}, "is a number")):
        with pytest.raises(InputError, match=words):
            opt.tell(trial, 0.5, params=params)
    with pytest.raises(InputError, match="point never asked"):
        opt.tell(trial.params, 0.5, params={"p0": 0.5})
    assert record(opt) == before


def test_a_wrong_entry_is_corrected_and_both_are_kept() -> None:
    opt = made(3)
    wrong = opt.history[1]
    right = opt.amend(1, 0.07, reason="typing mistake")
    assert (right.outcomes["loss"].mean, right.state, right.y) == (0.07, State.COMPLETE, wrong.y)
    (was,) = right.earlier
    assert was.outcomes == wrong.outcomes
    assert was.reason == "typing mistake"
    assert opt.history[1] is right
    again = opt.amend(1, params={"p2": 0.25})
    assert again.outcomes["loss"].mean == 0.07
    assert again.params["p2"] == 0.25
    assert len(again.earlier) == 2


def test_a_forgotten_trial_counts_as_failed_and_can_be_measured_again() -> None:
    opt = made(3)
    opt.amend(2, -9.0)
    assert opt.best().number == 2
    gone = opt.forget(2, "wrong bottle")
    assert (gone.state, gone.outcomes, gone.reason) == (State.FAILED, {}, "forgotten: wrong bottle")
    assert opt.best().number != 2
    assert [t.outcomes["loss"].mean for t in gone.earlier][-1] == -9.0
    assert opt.amend(2, 0.5).complete


def test_correcting_at_the_wrong_time() -> None:
    opt = made(2)
    opt.ask()
    opt.fail(2)
    opt.ask()
    before = record(opt)
    for call, error, words in (
        (lambda: opt.amend(3, 1.0), StateError, "pending"),
        (lambda: opt.forget(3), StateError, "pending"),
        (lambda: opt.amend(0), InputError, "needs the right outcomes"),
        (lambda: opt.amend(2, params={"p0": 0.5}), InputError, "is failed"),
        (lambda: opt.amend(9, 1.0), InputError, "4 trials"),
        (lambda: opt.amend(0, float("nan")), InputError, "finite"),
        (lambda: opt.tell(0, 1.0), StateError, "correct it with amend"),
    ):
        with pytest.raises(error, match=words):
            call()
    assert record(opt) == before


@pytest.mark.parametrize("method", [Sobol(), ALEBO(dim=3, initial=4)], ids=["sobol", "alebo"])
def test_resume_after_a_correction_is_exact(method: Any, tmp_path: Path) -> None:
    opt = made(6, method)
    opt.amend(2, 0.9)
    opt.forget(3)
    opt.tell(opt.ask()[0], 0.4, params={"p0": 0.5})
    opt.save(tmp_path / "s.json")
    again = Optimizer.load(tmp_path / "s.json")
    assert record(again) == record(opt)
    for a, b in zip(opt.ask(2), again.ask(2), strict=True):
        assert a.to_dict() == b.to_dict()


def test_the_model_sees_the_valid_entry_only() -> None:
    """A run in which a wrong value was corrected proposes what a run without the mistake proposes."""
    right, wrong = made(6, ALEBO(dim=3, initial=4)), made(6, ALEBO(dim=3, initial=4))
    was = wrong.history[2].outcomes["loss"].mean
    wrong.amend(2, 40.0)
    wrong.amend(2, was)
    assert np.array_equal(right.ask()[0].x, wrong.ask()[0].x)


def test_a_stored_study_keeps_corrections(tmp_path: Path) -> None:
    path = tmp_path / "s.log"
    study = Study.create(path, SPACE, Minimize("loss"), method=Sobol(), seed=1)
    twin = Optimizer(SPACE, Minimize("loss"), method=Sobol(), seed=1)
    actions: list[Callable[[Any], Any]] = [
        lambda s: [s.tell(t.number, value(t)) for t in s.ask(3)],
        lambda s: s.tell(s.ask()[0].number, 0.5, params={"p0": 0.125}),
        lambda s: s.amend(0, 0.25, reason="typing mistake"),
        lambda s: s.forget(1, "spilled"),
        lambda s: s.amend(0, params={"p5": 0.5}),
    ]
    for act in actions:
        act(twin)
        with Study.open(path) as one:
            act(one)
            assert record(one) == record(twin)
    with Study.open(path) as again:
        assert record(again) == record(twin)
        assert again.ask()[0].to_dict() == twin.ask()[0].to_dict()
    study.close()


# -- what a person sees ----------------------------------------------------------------------------------------------------


def test_objects_print_in_a_few_lines() -> None:
    result = alebo.minimize(lambda x: float(x[0]), [(0, 1)] * 500, budget=5, method="sobol")
    opt = result.optimizer
    for thing in (result, opt, opt.history[0], opt.space, opt.history, opt.goals, opt.ask.__self__.history[:2]):
        for text in (str(thing), repr(thing)):
            assert len(text) < 1500, text[:300]
            assert text.count("\n") <= 12
        if hasattr(thing, "_repr_html_"):
            assert thing._repr_html_().startswith("<table>")
    assert "best is trial" in str(result)
    assert "and 494 more" in str(result)


def test_html_is_escaped() -> None:
    space = Space([Float("<script>", 0, 1), Float("b", 0, 1)])
    opt = Optimizer(space, [Minimize("<b>"), AtMost("c", 1)], method=Sobol())
    trial = opt.tell(opt.ask()[0], {"<b>": 1, "c": 0})
    for thing in (opt, space, trial):
        assert "<script>" not in thing._repr_html_()
        assert "<b>&lt;" not in thing._repr_html_().replace("<b>Opt", "")


def test_a_dataframe_has_every_trial() -> None:
    require_module("pandas", "frame")
    opt = Optimizer(Space([Float("state", 0, 1), Float("b", 0, 1)]), Minimize("loss"), method=Sobol())
    opt.tell(opt.ask()[0], (1.0, 0.1))
    opt.fail(opt.ask()[0], "spilled")
    frame = opt.to_dataframe()
    assert list(frame.columns) == ["trial", "state", "state_", "b", "loss", "loss_sem", "reason"]
    assert frame["loss"][0] == 1.0
    assert list(frame["state"]) == ["complete", "failed"]
    assert frame["reason"][1] == "spilled"
    result = alebo.minimize(lambda x: float(x[0]), [(0, 1)] * 3, budget=4, method="sobol")
    assert len(result.to_dataframe()) == 4


def test_a_setting_that_was_rounded_keeps_its_embedded_point_and_a_far_one_does_not() -> None:
    space = alebo.Space.from_bounds([(-1, 1)] * 3)
    x, y = np.array([0.5, -0.5, 0.8]), np.array([1.0, 2.0])
    trial = alebo.Trial(0, space.decode(x), x, y)
    assert as_run(space, trial, None) is trial
    assert as_run(space, trial, {"x1": -0.5}) is trial
    for moved, kept in ((0.59, True), (0.41, True), (0.61, False), (0.39, False)):  # a tenth of the cube's half side
        run = as_run(space, trial, {"x0": moved})
        assert run.x == pytest.approx([moved, -0.5, 0.8])
        assert (run.y is y) is kept
        assert [t.params for t in run.earlier] == [trial.params]
    with pytest.raises(alebo.InputError, match="'x9'"):
        as_run(space, trial, {"x9": 0.0})
