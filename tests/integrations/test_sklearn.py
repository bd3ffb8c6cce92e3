"""AleboSearchCV is the Optimizer inside scikit-learn's search: the same points, and everything that GridSearchCV has."""

# ruff: noqa: E402
from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

from tests.conftest import require_module

require_module("sklearn", "sklearn")
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import alebo
from alebo.integrations import _hosts
from alebo.integrations.sklearn import AleboSearchCV

X, y = make_classification(60, 5, random_state=0)
SPACE = {"C": alebo.Float("C", 1e-3, 1e3, log=True), "kernel": ["linear", "rbf"], "degree": stats.randint(2, 6)}


def search(estimator: Any = None, space: Any = None, **settings: Any) -> AleboSearchCV:
    cheap = {"n_iter": 4, "method": "sobol", "cv": 3, "random_state": 0} | settings
    return AleboSearchCV(SVC() if estimator is None else estimator, SPACE if space is None else space, **cheap)


# scikit-learn expects the same of its GridSearchCV, with this reason
EXPECTED = {"check_supervised_y_2d": "DataConversionWarning not caught"}
CHECKED = [
    AleboSearchCV(
        estimator,
        {name: alebo.Float(name, 0.1, 1.0)},
        n_iter=2,
        method="sobol",
        cv=2,
        error_score="raise",
        random_state=0,
    )
    for estimator, name in (
        (Ridge(), "alpha"),
        (LogisticRegression(), "C"),
        (make_pipeline(PCA(), Ridge()), "ridge__alpha"),
        (make_pipeline(PCA(), LogisticRegression()), "logisticregression__C"),
    )
]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    CHECKED, expected_failed_checks=lambda s: EXPECTED if "Ridge" in repr(s.estimator) else {}, xfail_strict=True
)
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("method", [None, "sobol"])
def test_the_search_proposes_what_the_optimizer_would(method: str | None) -> None:
    found = search(space={"C": SPACE["C"], "gamma": alebo.Float("gamma", 1e-4, 1, log=True)}, n_iter=7, method=method)
    found.fit(X, y)
    opt = alebo.Optimizer(found.optimizer_.space, alebo.Maximize("score"), method=method, seed=0, budget=7)
    for params, score in zip(found.cv_results_["params"], found.cv_results_["mean_test_score"], strict=True):
        trial = opt.ask()[0]
        assert trial.params == params
        opt.tell(trial.number, score)
    assert found.best_params_ == max(opt.history, key=lambda t: t.outcomes["score"].mean).params


def test_ranges_of_every_kind_reach_the_estimator() -> None:
    class Spy(BaseEstimator):  # type: ignore[misc]
        seen: list[dict[str, Any]] = []

        def __init__(self, a: Any = 0, b: Any = 0, c: Any = 0, d: Any = 0, e: Any = 0, f: Any = 0, g: Any = 0) -> None:
            self.a, self.b, self.c, self.d, self.e, self.f, self.g = a, b, c, d, e, f, g

        def fit(self, X: Any, y: Any) -> Any:
            return self

        def score(self, X: Any, y: Any) -> float:
            Spy.seen.append(self.get_params())
            return 1.0

    search(
        Spy(),
        {
            "a": stats.uniform(2, 3),
            "b": stats.loguniform(1e-4, 1),
            "c": stats.randint(1, 4),
            "d": np.array([1, 5, 9]),
            "e": [None, "x", True],
            "f": {"low": 0, "high": 10, "type": "int"},
            "g": [7],
        },
        n_iter=32,
    ).fit(X, y)
    seen = {k: {s[k] for s in Spy.seen} for k in "abcdefg"}
    assert 2 <= min(seen["a"]) < 2.5 < 4.5 < max(seen["a"]) <= 5
    assert 1e-4 <= min(seen["b"]) < 1e-3 < 1e-2 < max(seen["b"]) <= 1
    assert seen["c"] == {1, 2, 3}
    assert seen["d"] == {1, 5, 9}
    assert seen["e"] == {None, "x", True}
    assert seen["f"] >= {0, 5, 10}
    assert seen["g"] == {7}


def test_steps_of_a_pipeline_are_choices() -> None:
    pipe = Pipeline([("scale", StandardScaler()), ("svc", SVC())])
    scalers = [StandardScaler(), MinMaxScaler(), "passthrough"]
    found = search(pipe, {"scale": scalers, "svc__C": alebo.Float("svc__C", 0.1, 10, log=True)}, n_iter=8).fit(X, y)
    kinds = {type(p["scale"]) for p in found.cv_results_["params"]}
    assert kinds == {StandardScaler, MinMaxScaler, str}
    assert type(found.best_estimator_["scale"]) is type(found.best_params_["scale"])
    assert found.optimizer_.best().params["scale"].split(": ")[0] in "012"
    assert found.predict(X).shape == y.shape


def test_a_space_with_a_linear_constraint() -> None:
    names = ["a", "b"]
    space = alebo.Space(
        [alebo.Float(f"{n}__alpha", 0.1, 1) for n in names],
        [alebo.LinearConstraint({"a__alpha": 1, "b__alpha": 1}, 1.0)],
    )
    pipe = Pipeline([("a", _Keep()), ("b", Ridge())])
    found = search(pipe, space, n_iter=8, method="alebo").fit(X, y)
    assert all(p["a__alpha"] + p["b__alpha"] <= 1 + 1e-9 for p in found.cv_results_["params"])


class _Keep(BaseEstimator):  # type: ignore[misc]
    """A transformer that does nothing, with one parameter."""

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def fit(self, X: Any, y: Any = None) -> Any:
        return self

    def transform(self, X: Any) -> Any:
        return X


def test_several_metrics() -> None:
    both = {"acc": "accuracy", "auc": "roc_auc"}
    one = search(scoring=both, refit="auc", n_iter=5).fit(X, y)
    assert one.optimizer_.goals.outcomes == ("auc",)
    assert one.best_score_ == one.cv_results_["mean_test_auc"].max()
    two = search(scoring=both, refit=False, n_iter=5).fit(X, y)
    assert two.optimizer_.goals.outcomes == ("acc", "auc")
    assert two.optimizer_.front()
    by_rule = search(scoring=both, refit=lambda results: int(results["rank_test_acc"].argmin()), n_iter=5).fit(X, y)
    assert by_rule.predict(X).shape == y.shape

    def measured(estimator: Any, X: Any, y: Any) -> dict[str, float]:
        return {"acc": estimator.score(X, y)}

    assert search(scoring=measured, refit="acc").fit(X, y).best_score_ > 0.5
    with pytest.raises(alebo.InputError, match="metrics are \\['acc'\\]"):
        search(scoring=measured).fit(X, y)


class Fragile(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fails to fit where `a` is above a limit: in every fold, or in the folds that hold the first sample."""

    def __init__(self, a: float = 0.0, limit: float = 0.5, some: bool = False) -> None:
        self.a, self.limit, self.some = a, limit, some

    def fit(self, X: Any, y: Any) -> Any:
        if self.a > self.limit and (not self.some or 7.0 in X[:, 0]):
            raise RuntimeError("too large")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.classes_[0])

    def score(self, X: Any, y: Any) -> float:
        return -((self.a - 0.4) ** 2)


Z = np.vstack([[7.0] * 5, X[1:]])


@pytest.mark.parametrize(("some", "size"), [(False, 1), (False, 3), (True, 1)])
def test_candidates_that_fail_are_rows_and_do_not_end_the_search(some: bool, size: int) -> None:
    space = {"a": alebo.Float("a", 0, 1)}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = search(Fragile(some=some), space, n_iter=9, batch_size=size, return_train_score=True).fit(Z, y)
    rows = found.cv_results_
    assert {len(v) for v in rows.values()} == {9}
    large = np.array([p["a"] > 0.5 for p in rows["params"]])
    assert 2 <= large.sum() <= 7
    assert np.isnan(rows["mean_test_score"]).tolist() == large.tolist()
    assert rows["param_a"].tolist() == [p["a"] for p in rows["params"]]
    assert rows["params"] == [t.params for t in found.optimizer_.history]
    assert [t.complete for t in found.optimizer_.history] == (~large).tolist()
    assert rows["rank_test_score"].min() == 1
    assert set(rows["rank_test_score"][large]) == {(~large).sum() + 1}
    assert found.best_params_["a"] <= 0.5
    assert found.best_params_ == rows["params"][found.best_index_]
    assert sum("count as failed" in str(w.message) for w in said) == 1


def test_an_error_score_that_is_a_number_is_the_score() -> None:
    space = {"a": alebo.Float("a", 0, 1)}
    found = search(Fragile(), space, n_iter=6, error_score=-9.0).fit(X, y)
    assert -9.0 in found.cv_results_["mean_test_score"]
    assert len(found.optimizer_.history.complete) == 6


def test_a_search_where_nothing_fits_ends_with_the_error() -> None:
    class Counted(Fragile):
        fits = 0

        def fit(self, X: Any, y: Any) -> Any:
            Counted.fits += 1
            return super().fit(X, y)

    with pytest.raises(ValueError, match="fits failed"):
        search(Counted(limit=-1), {"a": alebo.Float("a", 0, 1)}, n_iter=50).fit(X, y)
    assert Counted.fits == 30
    with pytest.raises(RuntimeError, match="too large"):
        search(Fragile(limit=-1), {"a": alebo.Float("a", 0, 1)}, error_score="raise").fit(X, y)


def test_every_candidate_sees_the_same_folds() -> None:
    found = search(
        Ridge(), {"alpha": [1.0, 1.0 + 1e-15]}, cv=ShuffleSplit(2, random_state=np.random.RandomState(0))
    ).fit(X, y)
    assert len(set(np.round(found.cv_results_["split0_test_score"], 9))) == 1


def test_clone_pickle_and_random_state() -> None:
    made = search(cv=KFold(3), n_iter=3)
    first = pickle.loads(pickle.dumps(clone(made))).fit(X, y)
    again = pickle.loads(pickle.dumps(first))
    assert again.best_params_ == first.best_params_
    assert np.array_equal(again.predict(X), first.predict(X))
    assert clone(made).fit(X, y).cv_results_["params"] == first.cv_results_["params"]
    other = clone(made).set_params(random_state=np.random.RandomState(3)).fit(X, y)
    assert other.cv_results_["params"] != first.cv_results_["params"]


def test_batches_keep_the_jobs_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    ask = alebo.Optimizer.ask
    monkeypatch.setattr(alebo.Optimizer, "ask", lambda self, q=1: (asked.append(q), ask(self, q))[1])
    search(n_iter=7, cv=2).fit(X, y)
    assert asked == [1] * 7
    asked.clear()
    monkeypatch.setattr("alebo.integrations.sklearn.effective_n_jobs", lambda n: 6)
    search(n_iter=8, cv=2, scoring=["accuracy", "roc_auc"], refit="roc_auc").fit(X, y)
    assert asked == [1, 3, 3, 1]
    asked.clear()
    search(n_iter=7, cv=2, batch_size=3).fit(X, y)
    assert asked == [3, 3, 1]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"space": [{"C": [1, 2]}, {"C": [3, 4], "kernel": ["rbf"]}]}, "several spaces"),
        ({"space": {"C": stats.norm(0, 1)}}, "norm"),
        ({"space": {"C": (1, 2)}}, r"alebo.Float\('C'"),
        ({"space": {"C": stats.loguniform(1, 10, loc=5)}}, "without"),
        ({"space": {"C": alebo.Float("gamma", 1, 2)}}, "name of its key"),
        ({"space": {"C": []}}, "none"),
        ({"space": alebo.Space([alebo.Fidelity("max_iter", 1, 9)])}, "Fidelity"),
        ({"n_iter": 0}, "n_iter"),
        ({"batch_size": 0}, "batch_size"),
        ({"method": "alebbo"}, "alebo"),
    ],
)
def test_bad_input_is_refused_before_the_first_fit(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(alebo.InputError, match=words):
        search(Fragile(limit=-1), **settings).fit(X, y)


@pytest.mark.parametrize(("found", "good"), [("1.4.2", False), ("1.5.0", True), ("1.99.1rc1", True), ("2.0", False)])
def test_a_host_that_is_too_old_or_too_new_is_named(monkeypatch: pytest.MonkeyPatch, found: str, good: bool) -> None:
    monkeypatch.setattr(_hosts, "version", lambda package: found)
    if good:
        _hosts.check_host("AleboSearchCV", "scikit-learn", "1.5", "2", "sklearn")
        return
    with pytest.raises(alebo.MissingPartError, match=rf"1.5 or later, before 2; version {found}.*pip install"):
        _hosts.check_host("AleboSearchCV", "scikit-learn", "1.5", "2", "sklearn")
