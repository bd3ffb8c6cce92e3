"""The adaptive method: its rule, its arms, what it refuses, and that it goes on when an arm fails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import alebo
from alebo import (
    AtMost,
    Float,
    Goals,
    InputError,
    Int,
    LinearConstraint,
    Maximize,
    Minimize,
    Optimizer,
    Space,
    StudyError,
)
from alebo.history import History
from alebo.methods import METHODS, Adaptive, Sharing, from_dict, to_dict
from alebo.methods._basins import FILLED
from alebo.methods._full_space import FullSpaceArm
from alebo.methods._outcomes import OutcomeModels
from alebo.methods._view import View
from alebo.methods.adaptive import finding, shares

SPACE = Space.from_bounds([(-1.0, 1.0)] * 20)
GOALS = Goals(Minimize("value"))


def bowl(x):
    return (x[3] - 0.2) ** 2 + (x[11] + 0.5) ** 2


# -- runs --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run():
    return alebo.minimize(bowl, [(-1, 1)] * 20, budget=36, seed=0, method=Adaptive())


def test_it_finds_the_bottom_of_a_bowl_and_every_trial_names_its_arm(run):
    assert run.fun < 1e-3
    assert set(shares(run.history)) == {"initial", "full", "local", "embedding"}
    arms = [t.note["arm"] for t in run.history]
    assert arms[:12] == ["embedding"] * 8 + ["initial"] * 4  # a third of the budget
    assert "initial" not in arms[12:]
    assert np.allclose(run.history[0].x, 0.0)  # the centre first


def test_the_local_arm_stays_in_its_region(run):
    filled = [t.number for t in run.history if FILLED in t.note]  # from there on it searches elsewhere
    for t in run.history[: min(filled, default=None)]:
        if t.note["arm"] == "local" and "again" not in t.note:
            before = [s for s in run.history if s.number < t.number]
            best = min(before, key=lambda s: s.outcomes["value"].mean)
            assert (
                np.abs(t.x - best.x).max() <= t.note["side"] + 1e-9
            )  # a side in the unit cube is half of one in the cube


def test_the_finding_says_who_proposed(run):
    said = finding(run.history)
    assert said is not None
    assert "of the last 20 evaluations" in said
    assert finding(History(run.history.trials[:10])) is None


def test_a_finding_names_parameters_only_where_the_sparse_model_explains_the_data(run):
    told = {"explained": 0.97, "count": 2, "parameters": ["x3", "x11"]}
    last = replace(run.history.trials[-1], note={"arm": "full"})
    sure = replace(last, note={**last.note, "sparse": told})
    unsure = replace(last, note={**last.note, "sparse": {**told, "explained": 0.5}})
    assert "2 of 20 parameters explain 97 %: x3, x11." in finding(run.history.with_trial(sure))
    assert "explain" not in finding(run.history.with_trial(unsure))


def test_a_finding_reads_the_model_of_what_was_measured_and_says_where_the_search_is(run):
    told = {"explained": 0.97, "count": 2, "parameters": ["x3", "x11"]}
    plain = History(tuple(replace(t, note={"arm": "full"}) for t in run.history))
    *_, before, last = plain.trials
    sure = plain.with_trial(replace(before, note={"arm": "full", "sparse": told, FILLED: [3, 4, [0], [0.5]]}))
    filled = {"arm": "full", "sparse": {**told, "explained": 0.1}, "elsewhere": True}
    away = sure.with_trial(replace(last, note=filled))
    assert "2 of 20 parameters explain 97 %: x3, x11." in finding(away)
    assert "the search goes on elsewhere" in finding(away)
    assert "elsewhere" not in finding(sure)  # a better point was found there, or the best one is refined


def test_resuming_asks_the_same_points(tmp_path):
    def start():
        return Optimizer(SPACE, Minimize("value"), method=Adaptive(), seed=3, budget=30)

    whole, first = start(), start()
    for opt, count in ((whole, 14), (first, 11)):
        for _ in range(count):
            t = opt.ask()[0]
            opt.tell(t.number, bowl(t.x))
    first.save(tmp_path / "study.json")
    again = Optimizer.load(tmp_path / "study.json")
    for _ in range(3):
        t = again.ask()[0]
        again.tell(t.number, bowl(t.x))
    assert [t.note["arm"] for t in again.history] == [t.note["arm"] for t in whole.history]
    assert np.array_equal(np.stack([t.x for t in again.history]), np.stack([t.x for t in whole.history]))


def test_a_batch_is_distinct_and_its_points_name_their_arms():
    opt = Optimizer(SPACE, Minimize("value"), method=Adaptive(initial=4), seed=1)
    for _ in range(3):
        for t in opt.ask(4):
            opt.tell(t.number, bowl(t.x))
    batch = opt.ask(6)
    assert len({t.x.tobytes() for t in batch}) == 6
    assert {t.note["arm"] for t in batch} >= {"full", "local"}


def test_pending_points_are_respected():
    opt = Optimizer(SPACE, Minimize("value"), method=Adaptive(initial=4), seed=1)
    for t in opt.ask(8):
        opt.tell(t.number, bowl(t.x))
    points = [opt.ask()[0].x for _ in range(4)]
    distances = [np.linalg.norm(a - b) for i, a in enumerate(points) for b in points[:i]]
    assert min(distances) > 1e-3


def test_constraints_objectives_cost_and_whole_numbers_run():
    space = Space([Float("a", 0, 1), Int("n", 1, 5), alebo.Categorical("c", ["u", "v"]), Float("b", 0, 1)])
    for goals in (
        [Minimize("value"), AtMost("load", 0.8)],
        [Minimize("value"), Maximize("gain")],
        [Minimize("value"), alebo.Cost("seconds")],
    ):
        opt = Optimizer(space, goals, method=Adaptive(initial=4), seed=0)
        for _ in range(8):
            t = opt.ask()[0]
            p = t.params
            known = {
                "value": (p["a"] - 0.3) ** 2 + 0.1 * p["n"],
                "load": p["a"] + p["b"],
                "gain": p["b"],
                "seconds": p["n"],
            }
            opt.tell(t.number, {name: known[name] for name in opt.goals.outcomes})
        assert {"full", "local", "embedding"} <= set(shares(opt.history))
        assert len({tuple(t.params.values()) for t in opt.history}) == 8


def test_linear_constraints_leave_the_box_arms_out_and_the_first_note_says_so():
    space = Space([Float(f"x{i}", 0, 1) for i in range(6)], [LinearConstraint({f"x{i}": 1.0 for i in range(6)}, 2.0)])
    opt = Optimizer(space, Minimize("value"), method=Adaptive(), seed=0)
    first = opt.ask()[0]
    assert set(first.note["left out"]) == {"full", "local"}
    opt.tell(first.number, 1.0)
    second = opt.ask()[0]
    assert "left out" not in second.note
    assert second.note["arm"] == "embedding"
    assert sum(second.params.values()) <= 2.0 + 1e-9


def test_a_fidelity_is_left_to_the_embedding():
    space = Space([*(Float(f"x{i}", 0, 1) for i in range(5)), alebo.Fidelity("level", 0.1, 1.0)])
    opt = Optimizer(space, Minimize("value"), method=Adaptive(), seed=0, budget=10)
    trial = opt.ask()[0]
    assert set(trial.note["left out"]) == {"full", "local"}
    assert trial.note["arm"] == "embedding"


def test_beyond_twenty_thousand_coordinates_the_embedding_is_alone():
    """One fit of a full-space arm took 17 s and 3 GB at D = 100,000."""
    opt = Optimizer(Space.from_bounds([(0, 1)] * 20_001), Minimize("value"), method=Adaptive(), seed=0, budget=10)
    trial = opt.ask()[0]
    assert set(trial.note["left out"]) == {"full", "local"}
    assert "at most 20000 coordinates; got 20001" in trial.note["left out"]["full"]
    assert trial.note["arm"] == "embedding"


def test_with_one_arm_it_is_that_method():
    alone = Optimizer(SPACE, Minimize("value"), method=Adaptive(arms=("embedding",)), seed=5, budget=20)
    plain = Optimizer(SPACE, Minimize("value"), method=alebo.ALEBO(), seed=5, budget=20)
    for _ in range(10):
        a, b = alone.ask()[0], plain.ask()[0]
        assert np.array_equal(a.x, b.x)
        alone.tell(a.number, bowl(a.x))
        plain.tell(b.number, bowl(b.x))


@pytest.mark.parametrize("arm", ["full", "sparse", "local"])
def test_a_full_space_arm_alone_begins_with_points_of_the_cube(arm):
    opt = Optimizer(SPACE, Minimize("value"), method=Adaptive(arms=(arm,)), seed=0, budget=16)
    for _ in range(8):
        t = opt.ask()[0]
        opt.tell(t.number, bowl(t.x))
    assert [t.note["arm"] for t in opt.history] == ["initial"] * 5 + [arm] * 3  # a third of the budget first
    assert np.allclose(opt.history[0].x, 0.0)


def test_old_data_count_as_first_points():
    opt = Optimizer(SPACE, Minimize("value"), method=Adaptive(), seed=0)
    for x in np.random.default_rng(0).uniform(-1, 1, (13, 20)):
        opt.tell(SPACE.decode(x), bowl(x))
    assert opt.ask()[0].note["arm"] == "full"


def test_beyond_a_limit_models_learn_from_the_best_and_some_others_and_the_note_says_so(monkeypatch):
    monkeypatch.setattr("alebo.methods.adaptive.MOST_TRIALS", 20)
    monkeypatch.setattr("alebo.methods._full_space.MOST_TRIALS", 20)
    opt = Optimizer(SPACE, Minimize("value"), method=Adaptive(), seed=0)
    for x in np.random.default_rng(0).uniform(-1, 1, (30, 20)):
        opt.tell(SPACE.decode(x), bowl(x))
    trial = opt.ask()[0]
    assert trial.note["arm"] == "full"
    assert trial.note["learned from"] == "20 of 30 trials"
    whole = View(opt.history, SPACE, GOALS, 0)
    kept = {t.number for t in whole.thinned(20).trials}
    best = sorted(whole.trials, key=lambda t: t.outcomes["value"].mean)
    assert len(kept) == 20
    assert {t.number for t in best[:10]} <= kept
    assert best[-1].number in kept
    assert whole.thinned(31) is whole


def test_any_method_can_be_an_arm():
    opt = Optimizer(SPACE, Minimize("value"), method=Adaptive(arms=("sparse", "turbo"), initial=4), seed=0, budget=20)
    for _ in range(10):
        t = opt.ask()[0]
        opt.tell(t.number, bowl(t.x))
    assert set(shares(opt.history)) == {"initial", "sparse", "turbo"}


def broken(self, view, q):
    raise np.linalg.LinAlgError("no factor")


@pytest.fixture
def started():
    """A run that has its initial points."""
    opt = Optimizer(SPACE, Minimize("value"), method=Adaptive(initial=3), seed=0)
    for t in opt.ask(3):
        opt.tell(t.number, bowl(t.x))
    return opt


def test_an_arm_whose_fit_fails_is_skipped_and_the_run_goes_on(started, monkeypatch):
    monkeypatch.setattr(FullSpaceArm, "propose", broken)
    t = started.ask()[0]
    assert t.note["arm"] == "embedding"
    assert set(t.note["skipped"]) == {"full", "local"}
    assert "no factor" in t.note["skipped"]["full"]


def test_a_damaged_note_is_refused_and_not_taken_for_a_failed_fit(started):
    started.tell(started.ask()[0].number, 1.0)
    data = started.to_dict()
    assert data["trials"][3]["note"]["arm"] == "full"
    data["trials"][3]["note"]["fit"] = {"objective 0": [[1, 2], [3]]}
    again = Optimizer.from_dict(data)
    for name in ("local", "embedding"):  # their turns come first
        t = again.ask()[0]
        assert t.note["arm"] == name
        again.tell(t.number, 0.0)

    def until_it_is_the_turn_of_the_arm():
        for _ in range(4):
            again.tell(again.ask()[0].number, 0.0)

    with pytest.raises(StudyError, match="where a fit ended"):
        until_it_is_the_turn_of_the_arm()


def test_where_every_fit_fails_a_quasi_random_point_comes(started, monkeypatch):
    from alebo.methods.adaptive import MethodArm

    monkeypatch.setattr(FullSpaceArm, "propose", broken)
    monkeypatch.setattr(MethodArm, "propose", broken)
    t = started.ask()[0]
    assert set(t.note["skipped"]) == {"full", "local", "embedding"}
    assert np.abs(t.x).max() <= 1.0


def test_a_failed_evaluation_is_not_proposed_again():
    opt = Optimizer(SPACE, Minimize("value"), method=Adaptive(initial=5), seed=0)
    for t in opt.ask(5):
        opt.tell(t.number, bowl(t.x))
    points = []
    for _ in range(4):
        t = opt.ask()[0]
        points.append(t.x)
        opt.fail(t.number, "crashed")
    assert min(np.linalg.norm(a - b) for i, a in enumerate(points) for b in points[:i]) > 1e-3


def crashing(x):
    """Better towards a corner, in which evaluations fail."""
    if x[0] + x[1] > 1.2:
        raise RuntimeError("diverged")
    return -float(x[0] + x[1])


@pytest.mark.parametrize(("D", "seed"), [(2, 0), (2, 1), (2, 2), (5, 0)])
def test_where_a_region_crashes_every_arm_gets_its_turn_and_the_run_ends_well(D, seed):
    result = alebo.minimize(crashing, [(0.0, 1.0)] * D, budget=20, seed=seed)
    assert {"full", "local", "embedding"} <= {t.note["arm"] for t in result.history}
    failed = np.array([t.x for t in result.history.failed]).reshape(-1, D)
    apart = np.linalg.norm(failed[:, None] - failed, axis=-1)[~np.eye(len(failed), dtype=bool)]
    assert len(apart) == 0 or apart.min() > 1e-3  # no point that failed is proposed again
    assert result.fun < -1.0


def test_with_several_objectives_what_failed_is_not_proposed_again():
    space = Space([Float(f"x{i}", 0.0, 1.0) for i in range(6)])
    goals = [Minimize("a"), Minimize("b")]
    opt = Optimizer(space, goals, method=Adaptive(arms=("full", "local"), initial=6), budget=60, seed=1)
    for _ in range(24):
        t = opt.ask()[0]
        v = np.array(list(t.params.values()))
        if v[0] < 0.4:
            opt.fail(t.number, "crashed")
        else:
            opt.tell(t.number, {"a": float((v**2).sum()), "b": float(((v - 1.0) ** 2).sum())})
    failed = np.array([t.x for t in opt.history.failed])
    apart = np.linalg.norm(failed[:, None] - failed, axis=-1)[~np.eye(len(failed), dtype=bool)]
    assert 2 <= len(failed) <= 10
    assert apart.min() > 1e-3


@pytest.mark.parametrize("method", ["adaptive", "alebo", "hesbo"])
def test_failures_that_were_withdrawn_are_not_kept_away_from(method, monkeypatch):
    seen, avoiding = [], OutcomeModels.avoiding

    def counted(model, failed):
        seen.append(len(failed))
        return avoiding(model, failed)

    monkeypatch.setattr(OutcomeModels, "avoiding", counted)
    opt = Optimizer(SPACE, Minimize("value"), method=method, budget=40, seed=0)
    for i in range(24):
        t = opt.ask()[0]
        if i % 6 == 5:
            opt.fail(t.number, "the machine was off")
        else:
            opt.tell(t.number, bowl(t.x))
    opt.ask()
    assert seen[-1] == 4
    for t in opt.history.failed:
        opt.forget(t.number, "the machine was off")
    seen.clear()
    opt.ask()
    assert sum(seen) == 0
    assert len(opt.history.failed) == 4


@pytest.mark.parametrize("D", [1, 2, 5])
@pytest.mark.parametrize(
    "f", [lambda x: 1.0, lambda x: 1e300 * (1 + x[0]), lambda x: float(x[0] > 0)], ids=["constant", "huge", "step"]
)
def test_small_spaces_and_odd_outcomes_give_valid_points(D, f):
    result = alebo.minimize(f, [(-2.0, 3.0)] * D, budget=9, seed=0, method=Adaptive(initial=3))
    X = np.stack([t.x for t in result.history])
    assert np.abs(X).max() <= 1.0
    assert len(result.history) == 9


def test_a_budget_smaller_than_the_initial_points_is_kept():
    result = alebo.minimize(bowl, [(-1, 1)] * 20, budget=2, seed=0, method=Adaptive())
    assert len(result.history) == 2


def test_reported_noise_lets_the_model_choose_the_best_point():
    rng = np.random.default_rng(0)
    opt = Optimizer(SPACE, Minimize("value"), method=Adaptive(), seed=0, budget=30)
    for _ in range(20):
        t = opt.ask()[0]
        opt.tell(t.number, {"value": (bowl(t.x) + 0.3 * rng.standard_normal(), 0.3)})
    assert opt.best().note["chosen_by"] == "posterior mean"


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"arms": ()}, "one name or more"),
        ({"arms": "full"}, "one name or more"),
        ({"arms": ("full", "full")}, "twice"),
        ({"arms": ("sparce",)}, "Did you mean 'sparse'?"),
        ({"arms": ("adaptive",)}, "An arm has one of these names"),
        ({"initial": 0}, "initial >= 1"),
        ({"sharing": "half"}, "Sharing"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, said):
    with pytest.raises(InputError, match=said.replace("?", r"\?").replace("(", r"\(")):
        Adaptive(**settings)


def test_where_no_arm_is_able_it_refuses_before_the_first_evaluation():
    goals = Goals([Minimize("value"), AtMost("load", 1.0)])
    with pytest.raises(InputError, match="none of 1"):
        Optimizer(SPACE, goals, method=Adaptive(arms=("turbo",)))


def test_plain_data_and_back():
    method = Adaptive(arms=("sparse", "embedding"), initial=7, sharing=Sharing(lead=3))
    data = to_dict(method)
    assert from_dict({**data, "arms": list(data["arms"])}) == method
    assert METHODS["adaptive"] is Adaptive
