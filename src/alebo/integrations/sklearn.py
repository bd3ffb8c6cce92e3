"""For scikit-learn: `AleboSearchCV`, with the interface of GridSearchCV and RandomizedSearchCV."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from .._checks import whole
from .._errors import InputError
from ..goals import Goals, Maximize
from ..history import Trial
from ..optimizer import Optimizer
from ..parameters import parameter_from
from ..space import Categorical, Fidelity, Fixed, Float, Int, Parameter, Space
from ._hosts import check_host

check_host("AleboSearchCV", "scikit-learn", "1.5", "2", "sklearn")

from joblib import effective_n_jobs  # noqa: E402
from sklearn.model_selection._search import BaseSearchCV  # noqa: E402
from sklearn.utils import check_random_state  # noqa: E402

PATIENCE = 10  # so many candidates may fail before the first one that works
ALL_FAILED = "All the "  # how scikit-learn's message begins where every fold of every candidate failed
PLAIN = str | int | float | bool | None


class AleboSearchCV(BaseSearchCV):
    """Search over the parameters of an estimator by Bayesian optimization, with cross-validation as in GridSearchCV.

    Everything that GridSearchCV has is here, because it is inherited: `best_params_`, `cv_results_`, `refit`, several
    metrics, pipelines, `clone`, pickling, `set_params`. After `fit`, `optimizer_` holds the run for reports and plots.

    Args:
        estimator: The estimator, or a pipeline.
        param_distributions: What each parameter may be, by its name ("svc__C" in a pipeline): an alebo.Float, Int,
            Categorical or Fixed; a list of choices; or `uniform`, `loguniform` and `randint` of scipy.stats, as for
            RandomizedSearchCV. Or an alebo.Space, which may have linear constraints.
        n_iter: How many candidates to evaluate.
        method: A method such as `alebo.ALEBO(dim=8)`, or the name of one ("turbo"). None: the best default we know.
        batch_size: Candidates that are proposed together. None: as many as keep `n_jobs` busy, one if the folds do.
        random_state: A whole number for the same search every time.
        scoring: As in GridSearchCV. With several metrics, `refit` names the one to maximise; with refit=False or a
            function, all of them are objectives.
        n_jobs: As in GridSearchCV.
        refit: As in GridSearchCV.
        cv: As in GridSearchCV. Every candidate is scored on the same folds.
        verbose: As in GridSearchCV.
        pre_dispatch: As in GridSearchCV.
        error_score: The score of a fold whose fit failed. NaN: the candidate counts as failed. "raise": the error ends
            the search.
        return_train_score: As in GridSearchCV.

    >>> import alebo
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> ranges = [alebo.Float("C", 1e-3, 1e3, log=True), alebo.Float("gamma", 1e-4, 10, log=True)]
    >>> search = AleboSearchCV(SVC(), alebo.Space(ranges), n_iter=8, random_state=0).fit(X, y)
    >>> sorted(search.best_params_), len(search.cv_results_["params"]), search.score(X, y) > 0.9
    (['C', 'gamma'], 8, True)
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Mapping[str, Any] | Space,
        *,
        n_iter: int = 50,
        method: Any = None,
        batch_size: int | None = None,
        random_state: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.method = method
        self.batch_size = batch_size
        self.random_state = random_state
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )

    def _run_search(self, evaluate_candidates: Callable[..., dict[str, Any]]) -> None:
        """Ask, evaluate on the folds, tell, until `n_iter` candidates are evaluated (called by `fit`)."""
        n_iter = whole("n_iter", self.n_iter, 1, "It is the number of candidates to evaluate.")
        choices = _Choices(self.param_distributions)
        opt = Optimizer(choices.space, self._goals(), method=self.method, seed=self._seed(), budget=n_iter)
        folds = _SameFolds(self.cv) if hasattr(self.cv, "split") else None  # the others are the same each time anyway
        results: dict[str, Any] = {}
        broken: list[tuple[int, dict[str, Any]]] = []  # place and parameters of candidates with no row in the results
        while opt.asked < n_iter:
            trials = opt.ask(min(self._batch(results), n_iter - opt.asked))
            candidates = [choices.real(t.params) for t in trials]
            with warnings.catch_warnings():
                # scikit-learn repeats this one after every batch; it is said once, at the end
                warnings.filterwarnings("ignore", message="One or more of the .* scores are non-finite")
                try:
                    results = evaluate_candidates(candidates, cv=folds)
                except ValueError as error:
                    if self.error_score == "raise" or not str(error).lstrip().startswith(ALL_FAILED):
                        raise
                    broken += [(t.number, c) for t, c in zip(trials, candidates, strict=True)]
                    if not results and (len(broken) >= min(PATIENCE, n_iter)):
                        raise
                    self._tell_broken(opt, trials, str(error))
                else:
                    self._tell(opt, trials, results, len(broken))
        if broken:
            _insert(results, broken, self.error_score)
        if opt.history.failed:
            warnings.warn(
                f"{len(opt.history.failed)} of {n_iter} candidates have no finite score and count as failed. To see why, "
                "set error_score='raise'.",
                stacklevel=2,
            )
        self.optimizer_ = opt

    def _goals(self) -> Goals:
        """The metric that `refit` names; all metrics where it names none."""
        several = isinstance(self.scoring, list | tuple | set | dict)
        if not several:
            return Goals(Maximize(self.refit if isinstance(self.refit, str) else "score"))
        if isinstance(self.refit, str):
            return Goals(Maximize(self.refit))
        return Goals([Maximize(str(name)) for name in self.scoring])

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _batch(self, results: Mapping[str, Any]) -> int:
        """How many candidates to propose together; without `batch_size` one first, which tells the number of folds."""
        if self.batch_size is not None:
            return whole("batch_size", self.batch_size, 1, "None fits it to n_jobs.")
        metric = next((key.removeprefix("split0") for key in results if key.startswith("split0_test_")), None)
        if metric is None:
            return 1
        folds = sum(key.startswith("split") and key.endswith(metric) for key in results)
        return max(1, math.ceil(int(effective_n_jobs(self.n_jobs)) / folds))

    def _tell(self, opt: Optimizer, trials: Sequence[Trial], results: Mapping[str, Any], without_row: int) -> None:
        for trial in trials:
            scores = {}
            for name in opt.goals.outcomes:
                column = results.get(f"mean_test_{name}")
                if column is None:
                    found = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
                    raise InputError(
                        f"`refit` names a metric of `scoring`; got refit={self.refit!r}, and the metrics are {found}. "
                        "Name one of them, or give `scoring` as a dict or list."
                    )
                scores[name] = float(column[trial.number - without_row])
            if all(map(math.isfinite, scores.values())):
                opt.tell(trial.number, scores)
            else:
                opt.fail(trial.number, f"score {scores}")

    def _tell_broken(self, opt: Optimizer, trials: Sequence[Trial], why: str) -> None:
        reason = why.strip().splitlines()[-1][:200]
        for trial in trials:
            if math.isfinite(self.error_score):
                opt.tell(trial.number, dict.fromkeys(opt.goals.outcomes, float(self.error_score)))
            else:
                opt.fail(trial.number, reason)


class _SameFolds:
    """A splitter whose first split is used for every candidate: also one that shuffles again each time it is called."""

    def __init__(self, splitter: Any) -> None:
        self._splitter = splitter
        self._folds: list[Any] | None = None

    def split(self, *data: Any, **more: Any) -> Iterator[Any]:
        if self._folds is None:
            self._folds = list(self._splitter.split(*data, **more))
        return iter(self._folds)


class _Choices:
    """The Space of what the user gave, and the way back: a choice that is no plain value (an estimator) has a label."""

    def __init__(self, given: Any) -> None:
        self._behind: dict[str, dict[str, Any]] = {}
        if isinstance(given, Space):
            self.space = given
        elif isinstance(given, Mapping):
            self.space = Space([self._parameter(str(name), what) for name, what in given.items()])
        else:
            raise InputError(
                "`param_distributions` maps names to Float, Int, Categorical, Fixed, lists or distributions of scipy.stats, "
                f"or is an alebo.Space; got {type(given).__name__}. A list of several spaces (parameters that exist only "
                "with others) is not possible: search each of them, or use one pipeline step as a choice."
            )
        if self.space.fidelity is not None:
            raise InputError(
                f"Every candidate is scored on all folds; {self.space.fidelity[1].name!r} is a Fidelity. Use Float or Fixed."
            )

    def _parameter(self, name: str, what: Any) -> Parameter:
        if isinstance(what, Float | Int | Categorical | Fixed):
            if what.name != name and not isinstance(what, Fidelity):
                raise InputError(
                    f"A parameter has the name of its key; {name!r} is {what!r:.80}. Rename one, or pass a Space."
                )
            return what
        if isinstance(what, Mapping):
            return parameter_from(name, what)
        if isinstance(what, np.ndarray):
            what = what.tolist()
        if isinstance(what, list):
            return self._listed(name, what)
        return _distribution(name, what)

    def _listed(self, name: str, choices: list[Any]) -> Parameter:
        if not choices:
            raise InputError(f"A list of choices has one or more; {name!r} has none.")
        if not all(isinstance(c, PLAIN) for c in choices):
            self._behind[name] = {f"{i}: {' '.join(repr(c).split())[:40]}": c for i, c in enumerate(choices)}
            choices = list(self._behind[name])
        return Categorical(name, choices) if len(choices) > 1 else Fixed(name, choices[0])

    def real(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters for the estimator: objects instead of their labels."""
        return {k: self._behind[k][v] if k in self._behind else v for k, v in params.items()}


def _distribution(name: str, what: Any) -> Parameter:
    """A range of ours for `uniform`, `loguniform` and `randint` of scipy.stats."""
    kind = getattr(getattr(what, "dist", None), "name", None)
    if kind in ("uniform", "loguniform", "reciprocal", "randint"):
        low, high = (float(v) for v in what.support())
        if kind == "randint":
            return Int(name, int(low), int(high)) if high > low else Fixed(name, int(low))
        if kind == "uniform":
            return Float(name, low, high)
        if low > 0 and math.isclose(float(what.ppf(0.5)), math.sqrt(low * high), rel_tol=1e-6):
            return Float(name, low, high, log=True)
    raise InputError(
        f"A parameter is an alebo.Float, Int, Categorical or Fixed, a list of choices, or uniform, loguniform (without "
        f"loc) or randint of scipy.stats; {name!r} is {kind or repr(what):.80}. Write alebo.Float({name!r}, low, high)."
    )


def _insert(results: dict[str, Any], broken: Sequence[tuple[int, dict[str, Any]]], error_score: float) -> None:
    """Rows for candidates whose every fold failed, at their places, into the results that `fit` keeps."""
    for place, candidate in broken:
        for key, column in results.items():
            if key == "params":
                column.insert(place, candidate)
                continue
            if key.startswith("param_"):
                filled: Any = np.empty(len(column) + 1, dtype=column.dtype)
                filled[:place], filled[place + 1 :] = column.data[:place], column.data[place:]
                filled[place] = candidate[key.removeprefix("param_")]
                results[key] = np.ma.MaskedArray(filled, mask=False)
            else:
                value = error_score if "_test_" in key or "_train_" in key else math.nan
                value = 0.0 if key.startswith("std_") and math.isfinite(error_score) else value
                results[key] = np.insert(column, place, 0 if key.startswith("rank_") else value)
    for key in [k for k in results if k.startswith("rank_test_")]:
        mean: NDArray[np.float64] = results["mean_test_" + key.removeprefix("rank_test_")]
        worst = np.nanmin(mean) - 1.0
        results[key] = rankdata(-np.where(np.isnan(mean), worst, mean), method="min").astype(np.int32)
