"""What the sampler makes of Optuna's distributions, trials, values and seeds, each by itself."""

# ruff: noqa: E402
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.conftest import require_module

require_module("optuna", "study")
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from optuna.trial import TrialState, create_trial

import alebo
from alebo._seeds import derive
from alebo.goals import Goals
from alebo.history import State
from alebo.integrations.optuna import FACTS, POINT, EmbeddingSampler, _Columns, _goals, _limits, _outcomes, _trial
from alebo.methods import Sobol

TWO = {"a": FloatDistribution(-1, 1), "b": IntDistribution(0, 8, step=2)}
COLUMNS = _Columns(TWO)
GOALS = Goals([alebo.Minimize("value 0"), alebo.AtMost("constraint c", 0.0)])


@pytest.mark.parametrize(
    ("d", "count", "values"),
    [
        (FloatDistribution(-0.3, 0.9, step=0.3), 4, [-0.3, 0.0, 0.3, 0.6, 0.9]),
        (IntDistribution(1, 9, step=2), 4, [1, 3, 5, 7, 9]),
        (IntDistribution(-4, 5, step=3), 3, [-4, -1, 2, 5]),
        (FloatDistribution(0.0, 0.7, step=0.1), 7, [k / 10 for k in range(8)]),
    ],
)
def test_steps_are_counted_from_nothing(d: Any, count: int, values: list[float]) -> None:
    columns = _Columns({"s": d, "x": FloatDistribution(0, 1)})
    assert columns.space.parameters[0] == alebo.Int("s", 0, count)
    assert columns.decode(np.array([-1.0, 0.0]))["s"] == values[0] == d.low
    top = columns.decode(np.array([1.0, 0.0]))["s"]
    assert top == pytest.approx(values[-1])
    assert top <= d.high  # 4 * 0.3 - 0.3 is more than 0.9 in doubles
    assert type(top) is (int if isinstance(d, IntDistribution) else float)
    for k, value in enumerate(values):
        x = columns.encode({"s": value, "x": 0.25})
        assert x == pytest.approx([(2 * k + 1) / (count + 1) - 1, -0.5])  # the middle of its bin
        assert columns.decode(x)["s"] == pytest.approx(value)


def test_numbers_without_steps_stay_what_they_are() -> None:
    columns = _Columns(
        {"i": IntDistribution(2, 9), "f": FloatDistribution(1, 8, log=True), "one": IntDistribution(3, 3)}
    )
    assert columns.space.parameters == (alebo.Int("i", 2, 9), alebo.Float("f", 1, 8, log=True), alebo.Fixed("one", 3))
    assert columns.stepped == {}
    assert _Columns({"s": FloatDistribution(2.0, 2.0, step=1.0), **TWO}).stepped.keys() == {"b"}


def test_the_columns_key_depends_on_their_names_and_order() -> None:
    keys = {_Columns(d).key for d in (TWO, dict(reversed(TWO.items())), {"a": TWO["a"], "c": TWO["b"]}, TWO)}
    assert len(keys) == 3
    assert COLUMNS.key == 6129914920959480835  # stored with trials: studies of earlier releases have it


def test_goals_follow_the_directions_and_the_constraints_of_completed_trials() -> None:
    study = optuna.create_study(directions=["maximize", "minimize"])
    done, lost = (create_trial(state=s, values=[1.0, 2.0] if s is TrialState.COMPLETE else None) for s in (TrialState.COMPLETE, TrialState.FAIL))  # fmt: skip
    study.add_trials([done, lost])
    assert _goals(study, study.trials) == Goals([alebo.Maximize("value 0"), alebo.Minimize("value 1")])


def stored(columns: _Columns, x: list[float], y: list[float] | None = None) -> dict[str, Any]:
    return {POINT: {"names": columns.key, "x": x, "y": y, "note": {"k": 1}}}


def frozen(state: TrialState = TrialState.COMPLETE, params: dict[str, Any] | None = None, **more: Any) -> Any:
    params = {"a": 0.5, "b": 4} if params is None else params
    value = 3.0 if state is TrialState.COMPLETE else None
    return create_trial(state=state, value=value, params=params, distributions={k: TWO.get(k, FloatDistribution(-9, 9)) for k in params}, **more)  # fmt: skip


def test_a_proposed_trial_keeps_its_point_and_note() -> None:
    goals = Goals(alebo.Minimize("value 0"))
    x = COLUMNS.encode({"a": 0.5, "b": 4})
    seen = _trial(frozen(system_attrs=stored(COLUMNS, x.tolist(), [0.1])), COLUMNS, goals, None)
    assert (seen.x.tolist(), seen.y.tolist(), seen.note, seen.asked) == (x.tolist(), [0.1], {"k": 1}, True)  # type: ignore[union-attr]
    assert (seen.state, seen.outcomes["value 0"].mean, seen.params) == (State.COMPLETE, 3.0, {"a": 0.5, "b": 2})
    failed = _trial(frozen(TrialState.FAIL, system_attrs=stored(COLUMNS, x.tolist(), [0.1])), COLUMNS, goals, None)
    assert (failed.state, failed.x.tolist(), failed.y.tolist(), failed.note) == (
        State.FAILED,
        x.tolist(),
        [0.1],
        {"k": 1},
    )  # type: ignore[union-attr]
    running = _trial(
        frozen(TrialState.RUNNING, params={}, system_attrs=stored(COLUMNS, x.tolist())), COLUMNS, goals, None
    )
    assert (running.state, running.x.tolist(), running.y, running.asked) == (State.PENDING, x.tolist(), None, True)


def test_a_trial_from_elsewhere_is_old_data() -> None:
    goals = Goals(alebo.Minimize("value 0"))
    x = COLUMNS.encode({"a": 0.5, "b": 4})
    seen = _trial(frozen(), COLUMNS, goals, None)
    assert (seen.x.tolist(), seen.y, seen.note, seen.asked, seen.state) == (x.tolist(), None, {}, False, State.COMPLETE)
    other = _Columns(dict(reversed(TWO.items())))
    assert _trial(frozen(system_attrs=stored(other, [0.0, 0.0], [0.3])), COLUMNS, goals, None).x.tolist() == x.tolist()
    moved = _trial(frozen(system_attrs=stored(COLUMNS, [0.0, 0.0], [0.3])), COLUMNS, goals, None)  # a value was fixed
    assert (moved.x.tolist(), moved.y) == (x.tolist(), None)


@pytest.mark.parametrize("params", [{"a": 0.5}, {"a": 5.0, "b": 4}, {}], ids=["a part", "outside", "nothing"])
def test_a_trial_that_says_nothing_of_this_space_keeps_its_place(params: dict[str, Any]) -> None:
    wide = {"a": FloatDistribution(-9, 9), "b": TWO["b"]}
    theirs = create_trial(value=1.0, params=params, distributions={k: wide[k] for k in params})
    theirs.number = 7
    seen = _trial(theirs, COLUMNS, GOALS, None)
    assert (seen.number, seen.state, seen.asked, seen.params, seen.x.tolist()) == (
        7,
        State.FAILED,
        False,
        {},
        [0.0, 0.0],
    )


def test_a_name_that_was_not_suggested_counts_as_proposed() -> None:
    goals = Goals(alebo.Minimize("value 0"))
    x = COLUMNS.encode({"a": 0.5, "b": 4}).tolist()
    seen = _trial(frozen(params={"a": 0.5}, system_attrs=stored(COLUMNS, x, [0.1])), COLUMNS, goals, None)
    assert (seen.state, seen.x.tolist(), seen.asked, seen.note) == (State.COMPLETE, x, True, {"k": 1})
    assert seen.y is not None
    moved = _trial(frozen(params={"a": -0.5}, system_attrs=stored(COLUMNS, x, [0.1])), COLUMNS, goals, None)
    assert (moved.x.tolist(), moved.y) == (COLUMNS.encode({"a": -0.5, "b": 4}).tolist(), None)
    failed = _trial(frozen(TrialState.FAIL, params={}, system_attrs=stored(COLUMNS, x, [0.1])), COLUMNS, goals, None)
    assert (failed.state, failed.x.tolist(), failed.asked) == (State.FAILED, x, True)


def test_conditional_parameters_do_not_stop_the_search(caplog: pytest.LogCaptureFixture) -> None:
    space = {f"x{i}": FloatDistribution(0, 1) for i in range(6)}

    def objective(trial: optuna.Trial) -> float:
        x = [trial.suggest_float(f"x{i}", 0, 1) for i in range(5)]
        return sum(x) + (trial.suggest_float("x5", 0, 1) if x[0] < 0.4 else 0.0)

    study = optuna.create_study(sampler=EmbeddingSampler(space, method="sobol", seed=0))
    study.optimize(objective, n_trials=12)
    assert len({t.params["x1"] for t in study.trials}) == 12
    said = [r.getMessage() for r in caplog.records if r.name.startswith("alebo")]
    assert len(said) == 1
    assert "did not suggest 'x5'" in said[0]
    assert "Leave them out of `search_space`" in said[0]


def test_values_of_other_ranges_do_not_stop_the_search(caplog: pytest.LogCaptureFixture) -> None:
    space = {"x0": FloatDistribution(0, 1), "x1": FloatDistribution(0, 1)}
    study = optuna.create_study(sampler=EmbeddingSampler(space, method="sobol", seed=0))
    study.optimize(lambda t: t.suggest_float("x0", 2, 3) + t.suggest_float("x1", 0, 1), n_trials=8)
    assert len({t.params["x1"] for t in study.trials}) == 8
    said = [r.getMessage() for r in caplog.records if r.name.startswith("alebo")]
    assert len(said) == 1
    assert "trial 0 had another value of 'x0'" in said[0]


def test_trials_that_are_left_out_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    study = optuna.create_study(sampler=EmbeddingSampler(TWO, method="sobol", seed=0))
    for params in ({"a": 0.5}, {"a": 0.5, "b": 4}, {}):
        study.add_trial(frozen(params=params))
    study.add_trial(frozen(TrialState.FAIL, params={}))
    for _ in range(3):
        study.tell(study.ask(TWO), 1.0)
    said = [r.getMessage() for r in caplog.records if r.name.startswith("alebo")]
    assert len(said) == 1
    assert "2 of 3 completed trials, trial 0 the first, do not, and are left out" in said[0]


def test_trials_of_an_earlier_range_keep_their_place_and_are_not_misplaced() -> None:
    study = optuna.create_study(sampler=EmbeddingSampler({"a": FloatDistribution(0, 10)}, method="sobol", seed=0))
    study.optimize(lambda t: t.suggest_float("a", 0, 10), n_trials=4)
    narrow = _Columns({"a": FloatDistribution(0, 1)})
    goals = Goals(alebo.Minimize("value 0"))
    for theirs in study.trials:
        seen = _trial(theirs, narrow, goals, None)
        assert seen.complete == (theirs.params["a"] <= 1)
        assert seen.asked == seen.complete


def test_values_that_do_not_count() -> None:
    goals = Goals(alebo.Minimize("value 0"))
    assert _outcomes(frozen(), goals) == {"value 0": (3.0, None)}
    for theirs in (frozen(TrialState.FAIL), frozen(TrialState.RUNNING), create_trial(value=math.inf)):
        assert _outcomes(theirs, goals) is None
    assert _outcomes(frozen(), GOALS) is None  # its constraint is missing


def test_a_seed_of_any_size_is_taken() -> None:
    """What is drawn independently is Optuna's own, by the seed modulo 2**32."""
    for seed in (5, 2**32 + 5, 7 * 2**32 + 5):
        sampler = EmbeddingSampler(TWO, method=Sobol(), seed=seed)
        study = optuna.create_study(sampler=sampler)
        value = study.ask().suggest_float("outside", 0, 1)
        theirs = optuna.create_study(sampler=RandomSampler(seed=5)).ask().suggest_float("outside", 0, 1)
        assert value == theirs
    assert EmbeddingSampler(TWO, seed=2**40)._seed == 2**40
    given = RandomSampler(seed=1)
    assert EmbeddingSampler(TWO, independent_sampler=given)._independent is given


def test_the_studys_facts_are_kept_and_another_sampler_takes_them_over() -> None:
    study = optuna.create_study(sampler=EmbeddingSampler(TWO, method=Sobol(), seed=11))
    study.ask(TWO)
    facts = study._storage.get_study_system_attrs(study._study_id)[FACTS]
    assert (facts["seed"], facts["alebo"]) == (11, alebo.__version__)
    study.sampler = EmbeddingSampler(TWO)  # neither seed nor method: the study's own
    study.ask(TWO)
    assert study._storage.get_study_system_attrs(study._study_id)[FACTS] == facts
    drawn = optuna.create_study(sampler=EmbeddingSampler(TWO, method=Sobol()))
    drawn.ask(TWO)
    begun = drawn.trials[0].datetime_start
    assert begun is not None
    own = derive(0, drawn.study_name, begun.isoformat()) % 2**31  # the same for all workers of this study
    assert drawn._storage.get_study_system_attrs(drawn._study_id)[FACTS]["seed"] == own


def test_a_space_of_single_values_is_left_to_optuna() -> None:
    study = optuna.create_study(sampler=EmbeddingSampler({"k": CategoricalDistribution(["x"]), **TWO}, method=Sobol()))
    only = {"k": CategoricalDistribution(["x"])}
    assert study.sampler.sample_relative(study, study.trials[0] if study.trials else frozen(), only) == {}
    assert POINT not in study._storage.get_study_system_attrs(study._study_id)


def test_a_pruned_trial_counts_between_the_median_and_the_worst() -> None:
    for goal, values, expected in (
        (alebo.Minimize("value 0"), [1.0, 2.0, 9.0], {0.0: 2.0, 5.0: 5.0, 50.0: 9.0}),
        (alebo.Maximize("value 0"), [1.0, 2.0, 9.0], {0.0: 1.0, 1.5: 1.5, 50.0: 2.0}),
    ):
        goals = Goals(goal)
        limits = _limits([create_trial(value=v) for v in values], goals)
        for last, counted in expected.items():
            theirs = create_trial(
                state=TrialState.PRUNED,
                params={"a": 0.5, "b": 4},
                distributions=TWO,
                intermediate_values={1: 7.0, 4: last},
            )
            assert _trial(theirs, COLUMNS, goals, limits).outcomes["value 0"].mean == counted
            assert _trial(theirs, COLUMNS, goals, None).state is State.FAILED
        silent = create_trial(state=TrialState.PRUNED, params={"a": 0.5, "b": 4}, distributions=TWO)
        assert _trial(silent, COLUMNS, goals, limits).state is State.FAILED
    assert _limits([], Goals(alebo.Minimize("value 0"))) is None
    assert _limits([create_trial(value=1.0)], GOALS) is None


def test_seeds_of_any_size_reach_the_independent_sampler() -> None:
    """NumPy takes seeds below 2**32; those are told apart."""

    def drawn(seed: int) -> float:
        sampler = EmbeddingSampler(TWO, method=Sobol(), seed=seed)
        return float(sampler._independent._rng.rng.random())  # type: ignore[attr-defined]

    assert len({drawn(s) for s in (5, 2**31 + 5, 2**31 - 1, 2**32 - 1)}) == 4
    assert drawn(2**32 + 5) == drawn(5)
