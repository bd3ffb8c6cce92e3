"""Filling an exhausted basin: when it happens, what proposals then see, and that a study resumes into it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from alebo import Goals, Maximize, Minimize, Optimizer, Space, StudyError
from alebo.history import History, State, Trial
from alebo.methods import Adaptive, Suggestion
from alebo.methods import _basins as basins_module
from alebo.methods._basins import FILLED, WIDTH, Basin, around_incumbent, basins, elsewhere, exhausted, lifted
from alebo.methods._foreseen import FORESEEN
from alebo.methods._view import View
from alebo.methods.adaptive import finding

D = 6
SPACE = Space.from_bounds([(-1.0, 1.0)] * D)
GOALS = Goals(Minimize("value"))
MEMORY = [0.0, -9.0, math.log(1e4), 1, math.log(0.5), 4, math.log(0.25)]  # coordinates 1 and 4 matter
SPARSE = {"explained": 0.99, "count": 2, "parameters": ["x1", "x4"]}


def trial(number, value, x=None, goals=GOALS, **note):
    x = np.zeros(D) if x is None else np.asarray(x, dtype=float)
    return Trial(number, SPACE.decode(x), x, None, goals.read(value), State.COMPLETE, dict(note))


def view(trials, goals=GOALS, budget=None):
    return View(History(tuple(trials), budget), SPACE, goals, 0)


def study(log_ei=-12.0, values=(1.0,) * 4, first=(10.0, 20.0, 30.0), **note):
    """First points, then as many proposals by the arm "full", all with this promise."""
    at = np.random.default_rng(0).uniform(-1, 1, (len(first), D))
    trials = [trial(i, v, x, arm="initial") for i, (v, x) in enumerate(zip(first, at, strict=True))]
    trials.append(trial(len(trials), 1.0, arm="full", log_ei=-1.0, sparse=SPARSE, fit={"objective 0": [[], MEMORY]}))
    for v in values:
        kept = {"sparse": SPARSE, "fit": {"objective 0": [[], MEMORY]}, **note}
        trials.append(trial(len(trials), v, arm="full", log_ei=log_ei, **kept))
    return view(trials)


def test_a_basin_is_exhausted_after_four_proposals_that_promise_and_bring_nothing():
    assert exhausted(study(), ["full"])
    assert not exhausted(study(values=(1.0,) * 3), ["full"])  # the one before them promised more
    assert not exhausted(study(log_ei=-2.0), ["full"])
    assert not exhausted(study(values=(1.0, 1.0, 1.0, 0.5)), ["full"])  # an improvement came
    assert not exhausted(study(values=(0.5, 1.0, 1.0, 1.0)), ["full"])  # by the first of the four
    assert not exhausted(study(log_ei=800.0), ["full"])  # a promise beyond arithmetic
    assert not exhausted(study(), ["local"])  # of another arm
    assert not exhausted(view([]), ["full"])


def test_what_is_negligible_is_measured_from_the_typical_first_value_to_the_best():
    spread = basins_module.typical_spread(study().values[:, 0])
    edge = math.log(basins_module.NEGLIGIBLE * (20.0 - 1.0) / spread)
    assert exhausted(study(edge - 0.01), ["full"])
    assert not exhausted(study(edge + 0.01), ["full"])
    assert exhausted(study(values=(1.0, 1.0, 1.0, 1.0 - 0.018)), ["full"])
    assert not exhausted(study(values=(1.0, 1.0, 1.0, 1.0 - 0.020)), ["full"])


def test_proposals_before_the_present_search_do_not_count():
    assert not exhausted(replace(study(), begun=6), ["full"])
    assert exhausted(replace(study(), begun=4), ["full"])


def test_values_in_a_filled_basin_rise_to_the_typical_first_value_and_others_stay():
    far, near = np.zeros(D), np.zeros(D)
    far[1], near[1] = 1.0, 2.0 * WIDTH * 0.05  # a cube of side 2: one width of the coordinate's lengthscale 0.05
    trials = [
        trial(0, 10.0, far, arm="initial"),
        trial(1, 20.0, -far, arm="initial"),
        trial(2, 1.0, arm="full", log_ei=-3.0, foreseen={"objective 0": [[0.0, 1.0]]}),
        trial(3, 2.0, near, arm="full", log_ei=-3.0),
        trial(4, 9.0, far, arm="full", log_ei=-3.0, foreseen={"objective 0": [[0.0, 1.0]]}),
    ]
    seen = lifted(view(trials), [Basin(2, 4, (1,), (0.05,))])
    level, share = 15.0, math.exp(-0.5)  # the median of the first points
    got = [t.outcomes["value"].mean for t in seen.history]
    assert got[2] == pytest.approx(level)
    assert got[3] == pytest.approx(2.0 + share * (level - 2.0))
    assert [got[0], got[1], got[4]] == pytest.approx([10.0, 20.0, 9.0])
    assert seen.begun == 4
    assert FORESEEN not in seen.history[2].note  # what was foreseen was the value before
    assert FORESEEN in seen.history[4].note
    assert trials[2].outcomes["value"].mean == 1.0
    assert lifted(view(trials), []).history.trials == tuple(trials)


@pytest.mark.parametrize(("value", "kept"), [(4.7, False), (4.5, True)])
def test_once_another_slope_is_found_only_the_inner_part_is_filled(value, kept):
    """Six tenths of the way from 10 to the best, 1, are at 4.6."""
    near, between, far = np.zeros(D), np.zeros(D), np.zeros(D)
    near[1], between[1], far[1] = 0.1, 0.25, 0.35
    trials = [trial(0, 10.0, -np.ones(D), arm="initial"), trial(1, 1.0, arm="full", log_ei=-1.0)]
    trials += [trial(2 + i, v, x, arm="full", log_ei=-1.0) for i, (v, x) in enumerate([(2.0, near), (8.0, between)])]
    pending = Trial(5, SPACE.decode(far), far)
    seen = lifted(view([*trials, trial(4, value, far, arm="full", log_ei=-1.0), pending]), [Basin(1, 2, (1,), (0.1,))])
    got = [t.outcomes["value"].mean for t in seen.history.complete]
    share = np.exp(-0.5 * (np.array([0.5, 1.25]) / WIDTH) ** 2)
    assert got[2] == pytest.approx(2.0 + 8.0 * share[0])
    assert got[3] == pytest.approx(8.0 if kept else 8.0 + 2.0 * share[1])
    trials.append(trial(4, value, between, arm="full", log_ei=-1.0))  # too near to be another slope
    seen = lifted(view(trials), [Basin(1, 2, (1,), (0.1,))])
    assert seen.history[3].outcomes["value"].mean == pytest.approx(8.0 + 2.0 * share[1])


@pytest.mark.parametrize(("spent", "width"), [(9, 0.9), (10, 1.35), (19, 1.35), (20, 2.025)])
def test_after_every_ten_evaluations_without_another_slope_more_is_filled(spent, width):
    near = np.zeros(D)
    near[1] = 0.4
    trials = [trial(0, 10.0, -np.ones(D), arm="initial"), trial(1, 1.0, arm="full", log_ei=-1.0)]
    trials += [trial(2, 2.0, near, arm="full", log_ei=-1.0)]
    trials += [trial(3 + i, 9.0, np.ones(D), arm="full", log_ei=-1.0, elsewhere=True) for i in range(spent)]
    trials += [trial(3 + spent, 9.0, np.ones(D), arm="full", log_ei=-1.0)]  # a refinement
    seen = lifted(view(trials), [Basin(1, 3, (1,), (0.2,))])
    assert seen.history[2].outcomes["value"].mean == pytest.approx(2.0 + 8.0 * math.exp(-0.5 / width**2))
    assert lifted(view(trials), [Basin(1, 4 + spent, (1,), (0.2,))]).history[2].outcomes["value"].mean == pytest.approx(
        2.0 + 8.0 * math.exp(-0.5 / 0.9**2)  # those before the last basin was filled do not count
    )


def test_with_a_better_point_outside_values_are_what_was_measured():
    trials = [trial(0, 9.0, np.ones(D), arm="initial"), trial(1, 1.0, arm="full", log_ei=-1.0)]
    trials += [trial(2, 0.5, -np.ones(D), arm="full", log_ei=-1.0)]
    seen = lifted(view(trials), [Basin(1, 2, (1, 4), (0.1, 0.1))])
    assert [t.outcomes["value"].mean for t in seen.history] == [9.0, 1.0, 0.5]
    assert seen.begun == 2


def test_without_first_points_the_level_is_the_worst_value():
    trials = [trial(0, 1.0, arm="full", log_ei=-1.0), trial(1, 7.0, np.full(D, 0.9), arm="full", log_ei=-1.0)]
    seen = lifted(view(trials), [Basin(0, 2, (1, 4), (0.2, 0.2))])
    assert seen.history[0].outcomes["value"].mean == pytest.approx(7.0)


def test_a_maximised_outcome_sinks():
    goals = Goals(Maximize("value"))
    trials = [trial(0, 3.0, np.ones(D), goals, arm="initial"), trial(1, 9.0, goals=goals, arm="full", log_ei=-1.0)]
    seen = lifted(view(trials, goals), [Basin(1, 2, (1, 4), (0.2, 0.2))])
    assert [t.outcomes["value"].mean for t in seen.history] == pytest.approx([3.0, 3.0])


def test_pending_and_failed_trials_stay_as_they_are():
    waiting = Trial(2, SPACE.decode(np.ones(D)), np.ones(D))
    trials = [trial(0, 3.0, np.ones(D), arm="initial"), trial(1, 1.0, arm="full", log_ei=-1.0), waiting]
    assert lifted(view(trials), [Basin(1, 2, (1,), (0.2,))]).history[2] is waiting


def test_any_trial_and_any_coordinate_may_be_those_of_a_basin():
    for plain in ([0, 1, [0], [0.5]], [3, 4, [0, D - 1], [0.5, 1e9]]):
        assert Basin.from_plain(plain, D).to_plain() == plain
    for wrong in ([1, 1, [0], [0.5]], [-1, 1, [0], [0.5]], [0, 1, [D], [0.5]], [0, 1, [-1], [0.5]], [0, 1, [0], [0.0]]):
        with pytest.raises(StudyError, match="a filled basin"):
            Basin.from_plain(wrong, D)


def test_the_basin_is_as_wide_as_the_lengthscales_of_the_parameters_that_matter():
    basin = around_incumbent(study(), MEMORY)
    assert (basin.where, basin.lengths) == ((1, 4), (0.5, 0.25))
    assert (basin.trial, basin.at) == (3, 8)  # the first of the best, and the next number
    assert around_incumbent(study(), MEMORY[:3]) is None


def test_an_exhausted_basin_is_filled_and_noted():
    seen, note = elsewhere(study(), {"full": 1}, 0.2)
    assert note == {FILLED: [3, 8, [1, 4], [0.5, 0.25]]}
    assert seen.begun == 8
    assert seen.incumbent.number == 0  # no longer the bottom of the filled basin
    unsure = {"explained": 0.5, "count": 2, "parameters": []}
    assert elsewhere(study(sparse=unsure), {"full": 1}, 0.2)[1] == {}
    assert elsewhere(study(), {}, 0.2)[1] == {}


def test_in_the_last_share_of_the_budget_the_best_point_of_all_is_refined_first(monkeypatch):
    seen = []
    monkeypatch.setattr(Adaptive, "_shared", lambda self, view, arms, q: seen.append((view.begun, view.search)) or [])
    note = {"filled": [3, 8, [1, 4], [0.5, 0.25]], "elsewhere": True}
    trials = [*study().history, trial(8, 5.0, np.ones(D), arm="full", log_ei=-1.0, **note)]
    for budget in (None, 12, 11):
        Adaptive()._elsewhere(view(trials, budget=budget), Adaptive().able(SPACE, GOALS)[0], 1)
    assert seen == [(8, True), (8, True), (0, False)]  # 9 of 11 evaluations were asked for


def late(*promised, budget=11, filled=True, gain=0.0):
    """A study in its last share, in which proposals of these log-EI refined the best point; a basin may be filled before."""
    marks = {"filled": [3, 8, [1, 4], [0.5, 0.25]], "elsewhere": True} if filled else {}
    trials = [*study().history, trial(8, 5.0, np.ones(D), arm="full", log_ei=-1.0, **marks)]
    kept = {"sparse": SPARSE, "fit": {"objective 0": [[], MEMORY]}}
    for log_ei in promised:
        trials.append(trial(len(trials), 1.0 - gain, arm="full", log_ei=log_ei, **kept))
    return view(trials, budget=budget)


def test_once_nothing_comes_of_refining_the_search_goes_on_elsewhere():
    nothing = math.log(
        basins_module.LAST_DIGITS * (20.0 - 1.0) / basins_module.typical_spread(late(-20.0).values[:, 0])
    )
    for promised, there in (
        ((-20.0,) * 3, True),
        ((-20.0,) * 2, False),  # two are too few
        ((-20.0, nothing + 0.1, -20.0), False),
        ((nothing - 0.1,) * 3, True),
    ):
        seen, note = elsewhere(late(*promised), {"full": 1}, 0.2)
        assert (seen.search, note) == (there, {})
        assert seen.incumbent.number == (8 if there else 3)  # as if the basin were filled, or what was measured
    assert elsewhere(late(*(-20.0,) * 3, gain=0.01), {"full": 1}, 0.2)[0].search is False  # a digit came


def test_refinements_before_the_last_share_do_not_count():
    assert elsewhere(late(*(-20.0,) * 3, budget=13), {"full": 1}, 0.2)[0].search is False  # from number 11 on
    assert elsewhere(late(*(-20.0,) * 5, budget=13), {"full": 1}, 0.2)[0].search is True


def test_a_basin_refined_in_the_last_share_is_filled_then():
    seen, note = elsewhere(late(*(-20.0,) * 3, filled=False), {"full": 1}, 0.2)
    assert (seen.search, note) == (True, {FILLED: [3, 12, [1, 4], [0.5, 0.25]]})
    seen, note = elsewhere(late(*(-20.0,) * 2, filled=False), {"full": 1}, 0.2)
    assert (seen.search, note) == (None, {})


def test_a_trial_belongs_to_the_search_that_proposed_it():
    here, there = trial(4, 1.0, arm="full"), trial(5, 1.0, arm="full", elsewhere=True)
    for search, belong in ((None, [True, True]), (True, [False, True]), (False, [True, False])):
        assert [replace(view([]), search=search).searched(t) for t in (here, there)] == belong
    assert not replace(view([]), begun=5).searched(here)


def test_proposals_of_the_search_elsewhere_are_marked(monkeypatch):
    point = Suggestion(np.zeros(D), None, {"arm": "full"})
    monkeypatch.setattr(Adaptive, "_shared", lambda self, view, arms, q: [point, point])
    arms = Adaptive().able(SPACE, GOALS)[0]
    first, second = Adaptive()._elsewhere(study(), arms, 2)
    assert first.note == {"arm": "full", "elsewhere": True, FILLED: [3, 8, [1, 4], [0.5, 0.25]]}
    assert second.note == {"arm": "full", "elsewhere": True}
    assert Adaptive()._elsewhere(study(log_ei=-2.0), arms, 1)[0].note == {"arm": "full"}


def test_basins_filled_before_are_seen_by_every_later_ask():
    before = study()
    later = [*before.history, trial(8, 5.0, np.ones(D), arm="full", log_ei=-1.0, filled=[3, 8, [1, 4], [0.5, 0.25]])]
    seen, note = elsewhere(view(later), {"full": 1}, 0.2)
    assert note == {}
    assert seen.begun == 8
    assert seen.incumbent.number == 8
    assert elsewhere(view(later, Goals([Minimize("value"), Minimize("value2")])), {}, 0.2)[0].begun == 0


@pytest.mark.parametrize(
    "note",
    [
        7,
        [3, 8, [1]],
        [99, 8, [1], [0.5]],
        [3, 99, [1], [0.5]],
        [3, 8, [D], [0.5]],
        [3, 8, [1, 2], [0.5]],
        [3, 8, [1], [-0.5]],
        ["a", 8, [1], [0.5]],
        [-1, 8, [1], [0.5]],
    ],
)
def test_a_damaged_note_is_refused(note):
    trials = [*study().history, trial(8, 5.0, arm="full", log_ei=-1.0, filled=note)]
    with pytest.raises(StudyError, match="filled basin"):
        basins(view(trials))


@pytest.mark.parametrize(
    "note", [7, [3, 8, [1]], [3, 8, 1, [0.5]], [3.5, 8, [1], [0.5]], [3, 8, [-1], [0.5]], [3, 8, [1], ["a"]]]
)
def test_a_saved_study_with_a_damaged_note_is_refused(note):
    opt = Optimizer(SPACE, GOALS, seed=0)
    opt.tell(opt.ask()[0].number, 1.0)
    data = opt.to_dict()
    data["trials"][0]["note"]["filled"] = [0, 1, [1], [0.5]]
    assert len(Optimizer.from_dict(data).history) == 1
    data["trials"][0]["note"]["filled"] = note
    with pytest.raises(StudyError, match=r"`note.*filled|filled"):
        Optimizer.from_dict(data)


def test_a_basin_around_a_trial_that_was_forgotten_is_filled_no_more():
    trials = [*study().history, trial(8, 5.0, np.ones(D), arm="full", log_ei=-1.0, filled=[3, 8, [1, 4], [0.5, 0.25]])]
    trials[3] = replace(trials[3], state=State.FAILED, outcomes={})
    assert basins(view(trials)) == []
    seen, _ = elsewhere(view(trials), {"full": 1}, 0.2)
    assert [t.outcomes["value"].mean for t in seen.history.complete] == [10.0, 20.0, 30.0, 1.0, 1.0, 1.0, 1.0, 5.0]


def test_a_study_goes_on_when_the_lowest_trial_of_a_filled_basin_is_forgotten():
    opt = Optimizer(SPACE, GOALS, seed=0)
    for _ in range(3):
        opt.tell(opt.ask()[0].number, 1.0)
    data = opt.to_dict()
    data["trials"][2]["note"]["filled"] = [1, 2, [1], [0.5]]
    again = Optimizer.from_dict(data)
    again.forget(1, "wrong")
    assert again.ask()[0].number == 3


@pytest.mark.parametrize(
    "note", [{"fit": {}}, {"fit": {"objective 0": [MEMORY]}}, {"sparse": {}}, {"sparse": {"explained": 0.89}}]
)
def test_without_a_sparse_fit_that_explains_the_data_nothing_is_filled(note):
    assert elsewhere(study(**note), {"full": 1}, 0.2)[1] == {}


def test_a_damaged_memory_is_refused():
    with pytest.raises(StudyError, match="where a fit ended"):
        elsewhere(study(fit={"objective 0": [[], [1.0, 2.0]]}), {"full": 1}, 0.2)


def two_hills(x):
    """A wide basin of depth 1 and a narrower one of depth 2; coordinates 0 and 1 of ten matter."""
    wide = math.exp(-2.0 * ((x[0] - 0.6) ** 2 + (x[1] - 0.6) ** 2))
    narrow = 2.0 * math.exp(-6.0 * ((x[0] + 0.6) ** 2 + (x[1] + 0.6) ** 2))
    return -wide - narrow


def test_a_run_leaves_the_wrong_basin_and_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(basins_module, "NEGLIGIBLE", 0.02)
    space = Space.from_bounds([(-1.0, 1.0)] * 10)
    opt = Optimizer(space, GOALS, method=Adaptive(arms=("full", "local")), seed=0, budget=70)
    start = np.zeros(10)
    start[:2] = 0.6
    opt.tell(space.decode(start), two_hills(start))  # somebody's good setting, at the bottom of the wide basin
    filled = None
    for _ in range(40):
        t = opt.ask()[0]
        filled = filled or (t.note.get(FILLED) and t.number)
        opt.tell(t.number, two_hills(t.x))
        if filled and t.number == filled + 1:
            opt.save(tmp_path / "study.json")
    assert filled
    assert opt.best().outcomes["value"].mean < -1.9
    *_, last = (t for t in opt.history if FILLED in t.note)
    assert f"since trial {last.number} the search goes on elsewhere" in finding(opt.history)
    again = Optimizer.load(tmp_path / "study.json")
    assert np.array_equal(again.ask()[0].x, opt.history[filled + 2].x)
