"""The sampler is the Optimizer inside Optuna: the same points; what workers share is in the study."""

# ruff: noqa: E402
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import require_module

require_module("optuna", "study")
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

import alebo
from alebo.goals import Goals
from alebo.history import History
from alebo.integrations.optuna import FACTS, POINT, EmbeddingSampler
from alebo.methods import Method, Sobol, Suggestion, Supports
from alebo.space import Space

SPACE = alebo.Space.from_bounds([(-1, 1)] * 25)
DISTRIBUTIONS = alebo.integrations.spaces.to_optuna(SPACE)


def suggest(trial: optuna.Trial) -> dict[str, float]:
    return {name: trial.suggest_float(name, -1, 1) for name in DISTRIBUTIONS}


def sphere(trial: optuna.Trial) -> float:
    return sum((v - 0.2) ** 2 for v in suggest(trial).values())


class Spy(Method):
    """Writes down what it is given, and draws from Sobol."""

    name = "spy"
    title = "Spy"
    citation = ""
    supports = Supports(True, True, True, True, True, True, True)

    def __init__(self) -> None:
        self.seen: list[tuple[History, Space, Goals]] = []

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> list[Suggestion]:
        self.seen.append((history, space, goals))
        return [Suggestion(s.x, s.x[:2], {"k": len(history)}) for s in Sobol().suggest(history, space, goals, q, seed)]


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    monkeypatch.setattr("alebo.integrations.optuna.method_to_dict", lambda method: {"name": method.name})
    return Spy()


@pytest.mark.parametrize("make", [lambda: alebo.ALEBO(dim=3), Sobol])
def test_the_sampler_proposes_what_the_optimizer_would(make: Callable[[], Method]) -> None:
    study = optuna.create_study(sampler=EmbeddingSampler(DISTRIBUTIONS, method=make(), seed=5))
    study.optimize(sphere, n_trials=9)
    opt = alebo.Optimizer(SPACE, alebo.Minimize("value"), method=make(), seed=5)
    for theirs in study.trials:
        ours = opt.ask()[0]
        assert theirs.params == ours.params
        opt.tell(ours.number, theirs.value)


def test_a_new_sampler_on_the_stored_study_continues(tmp_path: Path) -> None:
    def storage(name: str) -> optuna.storages.JournalStorage:
        return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(tmp_path / name)))

    whole = optuna.create_study(storage=storage("a"), sampler=EmbeddingSampler(DISTRIBUTIONS, seed=5))
    whole.optimize(sphere, n_trials=6)
    parts = optuna.create_study(storage=storage("b"), study_name="b", sampler=EmbeddingSampler(DISTRIBUTIONS, seed=5))
    parts.optimize(sphere, n_trials=3)
    later = optuna.load_study(storage=storage("b"), study_name="b", sampler=EmbeddingSampler(DISTRIBUTIONS))  # no seed
    later.optimize(sphere, n_trials=3)
    assert [t.params for t in later.trials] == [t.params for t in whole.trials]


def test_another_seed_or_method_is_refused() -> None:
    study = optuna.create_study(sampler=EmbeddingSampler(DISTRIBUTIONS, method=Sobol(), seed=5))
    study.optimize(sphere, n_trials=1)
    for other, word in ((Sobol(), "seed"), (Sobol(centre=True), "method")):
        study.sampler = EmbeddingSampler(DISTRIBUTIONS, method=other, seed=6 if word == "seed" else 5)
        with pytest.raises(alebo.StudyError, match=word):
            study.ask().suggest_float("x0", -1, 1)


def test_without_a_seed_every_study_has_its_own() -> None:
    seeds = set()
    for _ in range(3):
        study = optuna.create_study(sampler=EmbeddingSampler(DISTRIBUTIONS, method=Sobol()))
        study.optimize(sphere, n_trials=2)
        seeds.add(study._storage.get_study_system_attrs(study._study_id)[FACTS]["seed"])
    assert len(seeds) == 3


def test_names_are_bound_to_columns_in_the_given_order(spy: Spy) -> None:
    backwards = dict(reversed(DISTRIBUTIONS.items()))
    study = optuna.create_study(sampler=EmbeddingSampler(backwards, method=spy, seed=0))
    trial = study.ask()
    suggest(trial)
    assert spy.seen[0][1].names == tuple(backwards)
    x = study.trials[0].system_attrs[POINT]["x"]
    assert [trial.params[name] for name in backwards] == pytest.approx(x)


def test_running_trials_are_pending_and_failed_ones_are_not(spy: Spy) -> None:
    study = optuna.create_study(sampler=EmbeddingSampler(DISTRIBUTIONS, method=spy, seed=0))
    running = [study.ask(), study.ask(), study.ask(), study.ask()]
    suggest(running[0])
    running[1].suggest_float("x7", -1, 1)  # one parameter only, but all are decided
    suggest(running[2])
    study.tell(running[2], state=TrialState.FAIL)
    suggest(running[3])
    study.tell(running[3], 0.5)
    suggest(study.ask())
    history = spy.seen[-1][0]
    assert [str(t.state) for t in history] == ["pending", "pending", "failed", "complete"]
    assert [t.note["k"] for t in history] == [0, 1, 2, 3]
    assert history[1].y is not None
    assert history[1].params["x7"] == running[1].params["x7"]


def test_constraints_and_directions(spy: Spy) -> None:
    study = optuna.create_study(
        directions=["minimize", "maximize"], sampler=EmbeddingSampler(DISTRIBUTIONS, method=spy, seed=0)
    )

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        p = suggest(trial)
        trial.set_constraint("latency", p["x0"])
        return p["x1"], p["x2"]

    study.optimize(objective, n_trials=3)
    suggest(study.ask())
    history, _, goals = spy.seen[-1]
    assert [type(g).__name__ for g in goals.goals] == ["Minimize", "Maximize", "AtMost"]
    for ours, theirs in zip(history, study.trials, strict=False):
        assert [o.mean for o in ours.outcomes.values()] == [*theirs.values, theirs.params["x0"]]
    assert not spy.seen[0][2].constraints


def test_every_kind_of_distribution() -> None:
    distributions = {
        "step": FloatDistribution(-0.3, 0.9, step=0.3),
        "log": FloatDistribution(1e-4, 1, log=True),
        "int": IntDistribution(2, 9),
        "odd": IntDistribution(1, 9, step=2),
        "intlog": IntDistribution(1, 1000, log=True),
        "cat": CategoricalDistribution(["a", None, 3, True, 2.5]),
        "one": CategoricalDistribution(["only"]),
        "fix": FloatDistribution(2.0, 2.0),
    }
    study = optuna.create_study(sampler=EmbeddingSampler(distributions, method=Sobol(), seed=0))
    for k in range(30):
        trial = study.ask(distributions)
        study.tell(trial, float(k))
    seen = {n: {t.params[n] for t in study.trials} for n in distributions}
    assert seen["odd"] == {1, 3, 5, 7, 9}
    assert {round(v, 9) for v in seen["step"]} == {-0.3, 0.0, 0.3, 0.6, 0.9}
    assert len(seen["cat"]) == 5
    assert seen["one"] == {"only"}
    assert seen["fix"] == {2.0}
    for name, d in distributions.items():
        for value in seen[name]:
            assert d._contains(d.to_internal_repr(value))


def test_enqueued_and_fixed_values_count_as_they_were_evaluated(spy: Spy) -> None:
    study = optuna.create_study(sampler=EmbeddingSampler(DISTRIBUTIONS, method=spy, seed=0))
    study.enqueue_trial({"x3": 0.75})
    study.optimize(sphere, n_trials=2)
    suggest(study.ask())
    first = spy.seen[-1][0][0]
    assert first.params["x3"] == 0.75
    assert first.y is None  # it lies off the embedding now
    assert spy.seen[-1][0][1].y is not None


def test_without_a_space_the_completed_trials_tell_it() -> None:
    study = optuna.create_study(sampler=EmbeddingSampler(method=Sobol(), seed=0))
    study.optimize(sphere, n_trials=3)
    assert POINT not in study.trials[0].system_attrs
    assert POINT in study.trials[1].system_attrs


def test_a_space_of_ours_with_its_linear_constraint() -> None:
    space = alebo.Space(SPACE.parameters, [alebo.LinearConstraint({"x0": 1, "x1": 1}, -0.5)])
    study = optuna.create_study(sampler=EmbeddingSampler(space, method=alebo.ALEBO(dim=3), seed=0))
    trial = study.ask()
    suggest(trial)
    assert isinstance(study.sampler, EmbeddingSampler)


def test_parallel_trials_do_not_repeat_one_another() -> None:
    study = optuna.create_study(sampler=EmbeddingSampler(DISTRIBUTIONS, method=Sobol(), seed=0))
    study.optimize(sphere, n_trials=12, n_jobs=3)
    points = {tuple(t.params.values()) for t in study.trials}
    assert len(points) == 12


def test_reseeding_leaves_the_embedding_alone() -> None:
    def run(reseed: bool) -> tuple[list[Any], float]:
        sampler = EmbeddingSampler(DISTRIBUTIONS, method=Sobol(), seed=0)
        if reseed:
            sampler.reseed_rng()
        study = optuna.create_study(sampler=sampler)
        study.optimize(lambda t: sphere(t) + t.suggest_float("other", 0, 1), n_trials=2)
        return [{k: v for k, v in t.params.items() if k != "other"} for t in study.trials], study.trials[0].params[
            "other"
        ]

    (a, other_a), (b, other_b) = run(False), run(True)
    assert a == b
    assert other_a != other_b


def test_infinite_values_do_not_train(spy: Spy) -> None:
    study = optuna.create_study(sampler=EmbeddingSampler(DISTRIBUTIONS, method=spy, seed=0))
    study.optimize(lambda t: sphere(t) * 0 - np.inf, n_trials=1)
    suggest(study.ask())
    assert not spy.seen[-1][0].complete


def test_bad_input_is_refused_with_a_message() -> None:
    with pytest.raises(alebo.InputError, match="search_space"):
        EmbeddingSampler([1, 2])  # type: ignore[arg-type]
    with pytest.raises(alebo.InputError, match="method"):
        EmbeddingSampler(method="alebbo")
    with pytest.raises(alebo.InputError, match="method"):
        EmbeddingSampler(method=3)  # type: ignore[arg-type]
    for wrong in ({"budget": "x"}, {"budget": 0}, {"seed": "x"}, {"seed": 0.5}):
        with pytest.raises(alebo.InputError, match=next(iter(wrong))):
            EmbeddingSampler(DISTRIBUTIONS, **wrong)  # type: ignore[arg-type]
    with pytest.raises(alebo.InputError, match="free parameter"):
        EmbeddingSampler({"a": FloatDistribution(1, 1)})


def test_a_study_begun_with_another_default_keeps_its_method():
    space = {f"x{i}": optuna.distributions.FloatDistribution(-1, 1) for i in range(3)}
    study = optuna.create_study(sampler=EmbeddingSampler(space, seed=0, method="sobol"))
    study.optimize(lambda t: t.suggest_float("x0", -1, 1), n_trials=2)
    study.sampler = EmbeddingSampler(space, seed=0)
    study.optimize(lambda t: t.suggest_float("x0", -1, 1), n_trials=1)
    assert study.sampler._method == alebo.methods.Sobol()


def test_a_sampler_with_a_budget_proposes_what_the_optimizer_with_that_budget_does() -> None:
    make = alebo.ALEBO  # whose first dimension follows the budget
    study = optuna.create_study(sampler=EmbeddingSampler(DISTRIBUTIONS, method=make(), seed=5, budget=200))
    study.optimize(sphere, n_trials=3)
    with_budget, without = (
        alebo.Optimizer(SPACE, alebo.Minimize("value"), method=make(), seed=5, budget=b) for b in (200, None)
    )
    assert [t.params for t in with_budget.ask(3)] == [t.params for t in study.trials]
    assert [t.params for t in without.ask(3)] != [t.params for t in study.trials]


@pytest.mark.parametrize(
    ("direction", "last", "counts"),
    [
        ("minimize", 9.0, 4.0),
        ("minimize", 0.0, 2.0),
        ("minimize", 3.0, 3.0),
        ("maximize", 9.0, 2.0),
        ("maximize", 1.5, 1.5),
    ],
)
def test_a_pruned_trial_counts_between_the_median_and_the_worst(
    spy: Spy, direction: str, last: float, counts: float
) -> None:
    study = optuna.create_study(direction=direction, sampler=EmbeddingSampler(DISTRIBUTIONS, method=spy, seed=0))
    for value in (1.0, 2.0, 4.0):
        trial = study.ask()
        suggest(trial)
        study.tell(trial, value)
    pruned = study.ask()
    suggest(pruned)
    pruned.report(77.0, step=0)
    pruned.report(last, step=3)
    study.tell(pruned, state=TrialState.PRUNED)
    suggest(study.ask())
    seen = spy.seen[-1][0][3]
    assert seen.complete
    assert seen.outcomes["value 0"].mean == counts
    assert seen.y is not None


def test_a_pruned_trial_that_says_too_little_trains_nothing(spy: Spy) -> None:
    def states(
        sampler: EmbeddingSampler, *, report: float | None, constrained: bool = False, first: bool = False
    ) -> str:
        study = optuna.create_study(sampler=sampler)
        if not first:
            done = study.ask()
            suggest(done)
            if constrained:
                done.set_constraint("c", -1.0)
            study.tell(done, 1.0)
        trial = study.ask()
        suggest(trial)
        if report is not None:
            trial.report(report, step=1)
        study.tell(trial, state=TrialState.PRUNED)
        suggest(study.ask())
        return str(spy.seen[-1][0][-1].state)

    def made(**settings: Any) -> EmbeddingSampler:
        return EmbeddingSampler(DISTRIBUTIONS, method=spy, seed=0, **settings)

    assert states(made(), report=1.0) == "complete"
    assert states(made(pruned="ignore"), report=1.0) == "failed"
    assert states(made(), report=None) == "failed"
    assert states(made(), report=float("nan")) == "failed"
    assert states(made(), report=1.0, constrained=True) == "failed"
    assert states(made(), report=1.0, first=True) == "failed"
    with pytest.raises(alebo.InputError, match="pruned"):
        EmbeddingSampler(DISTRIBUTIONS, pruned="all")
