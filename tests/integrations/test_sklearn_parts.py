"""The parts of the search for scikit-learn by themselves: batches, goals, failed candidates, what distributions become."""

# ruff: noqa: E402
from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.conftest import require_module

require_module("sklearn", "sklearn")
from scipy import stats

import alebo
from alebo import Categorical, Fixed, Float, InputError, Int
from alebo.goals import Goals
from alebo.history import State
from alebo.integrations import sklearn as ours
from alebo.integrations.sklearn import AleboSearchCV, _Choices, _distribution, _insert, _SameFolds


def search(**how: Any) -> AleboSearchCV:
    return AleboSearchCV(None, {"a": Float("a", 0, 1)}, **how)


def optimizer(*names: str, count: int = 3) -> alebo.Optimizer:
    goals = Goals([alebo.Maximize(n) for n in names])
    opt = alebo.Optimizer(alebo.Space([Float("a", 0, 1)]), goals, method="sobol", budget=9)
    opt.ask(count)
    return opt


def test_the_defaults() -> None:
    made = search()
    given = made.get_params()
    assert {k: given[k] for k in ("n_iter", "method", "batch_size", "random_state", "verbose", "refit")} == {
        **{"n_iter": 50, "method": None, "batch_size": None, "random_state": None, "verbose": 0, "refit": True},
    }
    assert (made.return_train_score, made.pre_dispatch, made.n_jobs, made.cv) == (False, "2*n_jobs", None, None)
    assert math.isnan(made.error_score)


def test_how_many_candidates_keep_the_jobs_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    results = {f"split{k}_test_score": [] for k in range(5)} | {f"split{k}_train_score": [] for k in range(5)}
    results |= {"mean_test_score": [], "params": []}
    for jobs, batch in ((1, 1), (5, 1), (6, 2), (10, 2), (11, 3)):
        monkeypatch.setattr(ours, "effective_n_jobs", lambda n, jobs=jobs: jobs)
        assert search(n_jobs=jobs)._batch(results) == batch
        assert search(n_jobs=jobs)._batch({}) == 1
    assert search(batch_size=4)._batch(results) == 4
    with pytest.raises(InputError, match="`batch_size >= 1`"):
        search(batch_size=0)._batch(results)


@pytest.mark.parametrize(
    ("how", "names"),
    [
        ({}, ["score"]),
        ({"scoring": "accuracy"}, ["score"]),
        ({"refit": "f1"}, ["f1"]),
        ({"scoring": ["f1", "auc"], "refit": "auc"}, ["auc"]),
        ({"scoring": ["f1", "auc"], "refit": False}, ["f1", "auc"]),
        ({"scoring": {"f1": 1, "auc": 2}, "refit": len}, ["f1", "auc"]),
        ({"scoring": ("f1", "auc"), "refit": False}, ["f1", "auc"]),
    ],
)
def test_what_is_maximised(how: dict[str, Any], names: list[str]) -> None:
    assert search(**how)._goals() == Goals([alebo.Maximize(n) for n in names])


def test_seeds_of_every_kind() -> None:
    assert (search(random_state=7)._seed(), search(random_state=np.int64(8))._seed()) == (7, 8)
    given = [search(random_state=np.random.RandomState(k))._seed() for k in (1, 1, 2)]
    assert given[0] == given[1] != given[2]
    assert given[0] == np.random.RandomState(1).randint(2**31 - 1)


def test_scores_are_told_by_their_place_and_those_that_are_not_finite_have_failed() -> None:
    opt = optimizer("f1", "auc")
    results = {"mean_test_f1": [0.5, math.nan, 0.7], "mean_test_auc": [0.9, 0.8, 0.6]}
    search()._tell(opt, opt.history.trials, results, 0)
    assert [t.state for t in opt.history] == [State.COMPLETE, State.FAILED, State.COMPLETE]
    assert {k: o.mean for k, o in opt.history[2].outcomes.items()} == {"f1": 0.7, "auc": 0.6}
    assert opt.history[1].reason is not None
    assert opt.history[1].reason.startswith("score {'f1': nan")
    late = optimizer("score")
    search()._tell(late, late.history.trials[1:], {"mean_test_score": [0.1, 0.2]}, 1)  # one before has no row
    assert [t.outcomes["score"].mean for t in late.history.trials[1:]] == [0.1, 0.2]
    with pytest.raises(InputError, match=r"got refit='best', and the metrics are \['f1', 'auc'\]"):
        search(refit="best")._tell(optimizer("best"), late.history.trials, results, 0)


def test_candidates_of_which_every_fit_failed() -> None:
    opt = optimizer("score")
    search()._tell_broken(opt, opt.history.trials[:1], "first\nlast " + "y" * 300 + "\n")
    assert opt.history[0].state is State.FAILED
    assert opt.history[0].reason == ("last " + "y" * 300)[:200]
    search(error_score=-2)._tell_broken(opt, opt.history.trials[1:], "why")
    assert [t.outcomes["score"].mean for t in opt.history.trials[1:]] == [-2.0, -2.0]


def test_their_rows_are_put_in_at_their_places() -> None:
    def results() -> dict[str, Any]:
        return {
            "params": [{"a": 1}, {"a": 2}],
            "param_a": np.ma.MaskedArray([1, 2], mask=False),
            "mean_fit_time": np.array([0.1, 0.2]),
            "split0_test_score": np.array([0.5, 0.7]),
            "split0_train_score": np.array([0.6, 0.8]),
            "mean_test_score": np.array([0.5, 0.7]),
            "std_test_score": np.array([0.01, 0.02]),
            "rank_test_score": np.array([2, 1]),
        }

    for score in (math.nan, -1.0, 0.6):
        found = results()
        _insert(found, [(0, {"a": 8}), (2, {"a": 9})], score)
        assert found["params"] == [{"a": 8}, {"a": 1}, {"a": 9}, {"a": 2}]
        assert found["param_a"].tolist() == [8, 1, 9, 2]
        for key, known in (("mean_test_score", [0.5, 0.7]), ("split0_test_score", [0.5, 0.7]), ("split0_train_score", [0.6, 0.8])):  # fmt: skip
            np.testing.assert_array_equal(found[key], [score, known[0], score, known[1]])
        np.testing.assert_array_equal(found["mean_fit_time"], [math.nan, 0.1, math.nan, 0.2])
        spread = 0.0 if math.isfinite(score) else math.nan
        np.testing.assert_array_equal(found["std_test_score"], [spread, 0.01, spread, 0.02])
        assert found["rank_test_score"].tolist() == ([2, 4, 2, 1] if score == 0.6 else [3, 2, 3, 1])
        assert found["rank_test_score"].dtype == np.int32


def test_every_candidate_is_scored_on_the_same_folds() -> None:
    calls: list[Any] = []
    splitter = SimpleNamespace(split=lambda *data, **more: calls.append((data, more)) or iter([1, 2]))
    folds = _SameFolds(splitter)
    assert [list(folds.split("X", groups=3)) for _ in range(3)] == [[1, 2]] * 3
    assert calls == [(("X",), {"groups": 3})]


def test_choices_of_every_kind() -> None:
    objects = [len, max]
    made = _Choices(
        {
            "a": Float("a", 0, 1),
            "n": {"type": "int", "low": 1, "high": 3},
            "k": ["u", "v"],
            "one": [5],
            "f": objects,
            "g": np.array([1, 2, 3]),
            "only": [sorted],
        }
    )
    by_name = dict(zip(made.space.names, made.space.parameters, strict=True))
    assert by_name["n"] == Int("n", 1, 3)
    assert by_name["k"] == Categorical("k", ["u", "v"])
    assert by_name["one"] == Fixed("one", 5)
    assert by_name["g"] == Categorical("g", [1, 2, 3])
    assert isinstance(by_name["f"], Categorical)
    first, second = by_name["f"].choices
    assert first.startswith("0: <built-in function len>")
    real = made.real({"a": 0.5, "f": second, "k": "u", "only": by_name["only"].value})  # type: ignore[union-attr]
    assert real == {"a": 0.5, "f": max, "k": "u", "only": sorted}
    long = _Choices({"f": [tuple(range(99)), None]}).space.parameters[0]
    assert len(long.choices[0]) == len("0: ") + 40  # type: ignore[union-attr]
    space = alebo.Space([Float("a", 0, 1)])
    assert _Choices(space).space is space
    wrong: list[tuple[Any, str]] = [
        ({"a": []}, "has none"),
        ({"b": Float("a", 0, 1)}, "has the name of its key"),
        ([1], "maps names to Float"),
        (alebo.Space([Float("a", 0, 1), alebo.Fidelity("l", 0.1, 1)]), "'l' is a Fidelity"),
    ]
    for given, words in wrong:
        with pytest.raises(InputError, match=words):
            _Choices(given)


def test_a_wrong_key_of_a_parameter_is_named() -> None:
    with pytest.raises(alebo.InputError, match=r"'depth' is an int, which has no `hihg`.* Did you mean 'high'\?"):
        _Choices({"depth": {"type": "int", "low": 1, "hihg": 9}})


def test_distributions_of_scipy() -> None:
    assert _distribution("a", stats.uniform(2, 3)) == Float("a", 2.0, 5.0)
    assert _distribution("a", stats.loguniform(1e-2, 10)) == Float("a", 0.01, 10.0, log=True)
    assert _distribution("a", stats.randint(1, 5)) == Int("a", 1, 4)
    assert _distribution("a", stats.randint(3, 4)) == Fixed("a", 3)
    for wrong in (stats.norm(0, 1), stats.loguniform(1e-2, 10, loc=1.0), 3, "text"):
        with pytest.raises(InputError, match=r"A parameter is an alebo\.Float"):
            _distribution("a", wrong)
