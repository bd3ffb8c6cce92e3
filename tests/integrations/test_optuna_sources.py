"""The sampler learns from earlier studies, of Optuna and of ours; workers of one study have the same sources."""

# ruff: noqa: E402
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import require_module

require_module("optuna", "study")
import optuna
from optuna.distributions import FloatDistribution, IntDistribution

import alebo
from alebo.integrations._optuna_sources import Sources
from alebo.integrations.optuna import FACTS, EmbeddingSampler, _Columns
from alebo.methods import Adaptive

SPACE = alebo.Space.from_bounds([(0, 1)] * 6)
DISTRIBUTIONS = alebo.integrations.spaces.to_optuna(SPACE)


def value(trial: optuna.Trial, shift: float = 0.0) -> float:
    x = np.array([trial.suggest_float(name, 0, 1) for name in DISTRIBUTIONS])
    return float(np.sum((x[:2] - 0.3 - shift) ** 2) + 0.01 * x.sum())


@pytest.fixture(scope="module")
def old() -> optuna.Study:
    study = optuna.create_study(study_name="march", sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(value, n_trials=30)
    return study


@pytest.mark.parametrize("form", ["optuna", "alebo", "frame"])
def test_the_first_trial_is_the_best_of_the_earlier_study(old: optuna.Study, form: str) -> None:
    source: Any = old
    if form == "alebo":
        source = alebo.Optimizer(SPACE, alebo.Minimize("loss"))
        for t in old.trials:
            source.tell(t.params, t.value)
    elif form == "frame":
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame([{**t.params, "loss": t.value} for t in old.trials])
        source = alebo.Source(frame, columns={"value 0": "loss"})
    study = optuna.create_study(sampler=EmbeddingSampler(DISTRIBUTIONS, seed=0, budget=20, sources=[source]))
    study.optimize(lambda t: value(t, 0.05), n_trials=4)
    assert study.trials[0].params == pytest.approx(old.best_params)
    assert len(study._storage.get_study_system_attrs(study._study_id)[FACTS]["sources"]) == 1


def test_the_points_are_those_of_the_optimizer(old: optuna.Study) -> None:
    ours = alebo.Optimizer(SPACE, alebo.Minimize("value 0"))
    for t in old.trials:
        ours.tell(t.params, t.value)
    source = alebo.Source(ours, columns={"value 0": "value 0"})  # as a table: without the embedding of a search
    opt = alebo.Optimizer(SPACE, alebo.Minimize("value 0"), seed=0, budget=20, sources=[source])
    study = optuna.create_study(sampler=EmbeddingSampler(DISTRIBUTIONS, seed=0, budget=20, sources=old))
    for _ in range(5):
        trial, asked = study.ask(DISTRIBUTIONS), opt.ask()[0]
        assert trial.params == pytest.approx(asked.params, abs=1e-9)
        found = value(trial)
        study.tell(trial, found)
        opt.tell(asked.number, found)


def test_steps_lie_where_the_sampler_has_them() -> None:
    distributions = {"n": IntDistribution(0, 12, step=3), "s": FloatDistribution(0.0, 1.0, step=0.25)}
    columns = _Columns(distributions)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=2))
    study.optimize(lambda t: t.suggest_int("n", 0, 12, step=3) + t.suggest_float("s", 0, 1, step=0.25), n_trials=8)
    task = Sources(study, columns.space, columns.stepped, Adaptive()).tasks(
        alebo.goals.Goals([alebo.Minimize("value 0")])
    )[0]
    np.testing.assert_allclose(task.X, [columns.encode(t.params) for t in study.trials])


def test_a_worker_with_other_sources_is_refused(old: optuna.Study) -> None:
    study = optuna.create_study(sampler=EmbeddingSampler(DISTRIBUTIONS, seed=0, sources=[old]))
    study.optimize(value, n_trials=1)
    study.sampler = EmbeddingSampler(DISTRIBUTIONS, seed=0)
    with pytest.raises(alebo.StudyError, match=r"keeps its sources; .* begun with 1, and this sampler has 0"):
        study.ask(DISTRIBUTIONS)
    study.sampler = EmbeddingSampler(DISTRIBUTIONS, seed=0, sources=[old])
    study.ask(DISTRIBUTIONS)


def test_sources_without_a_space_or_a_method_that_learns_are_refused(old: optuna.Study) -> None:
    with pytest.raises(alebo.InputError, match="Give `search_space`, too"):
        EmbeddingSampler(sources=[old])
    with pytest.raises(alebo.InputError, match="does not learn from other studies"):
        EmbeddingSampler(DISTRIBUTIONS, method="sobol", sources=[old])


def test_a_constraint_that_becomes_known_is_learned_from_the_source_too() -> None:
    names = list(DISTRIBUTIONS)

    def objective(trial: optuna.Trial) -> float:
        found = value(trial)
        trial.set_constraint("load", trial.params[names[0]] - 0.5)
        return found

    earlier = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=3))
    earlier.optimize(objective, n_trials=15)
    sampler = EmbeddingSampler(DISTRIBUTIONS, seed=0, budget=20, sources=[earlier])
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=4)
    assert len(study.trials) == 4
    assert sampler._sources is not None
    assert {frozenset(task.means) for tasks in sampler._sources._known.values() for task in tasks} == {
        frozenset({"value 0"}),
        frozenset({"value 0", "constraint load"}),
    }
