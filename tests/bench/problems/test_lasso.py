"""Sparse regression: the oracle beats one penalty for all, the penalties mean what they say, and the messages."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from tests.conftest import require_module

import alebo
from alebo.bench.problems import lasso, problem


@pytest.fixture(autouse=True)
def _sklearn() -> None:
    require_module("sklearn", "tuning")


@pytest.mark.parametrize("size", ["simple", "medium", "high"])
def test_the_truth_beats_any_common_penalty(size: str) -> None:
    X, y, beta = lasso.synthetic(size)
    D, n, active = lasso.SIZES[size]
    assert X.shape == (n, D)
    assert np.count_nonzero(beta) == active
    common = min(lasso.loss(X, y, np.full(D, v)) for v in np.linspace(-1, 1, 9))
    assert lasso.loss(X, y, lasso.oracle(size)) < common


def test_names_and_sizes() -> None:
    for name, D in (("lasso-simple-60", 60), ("lasso-hard-1000", 1000), ("lasso-diabetes-64", 64)):
        p = problem(name)
        assert (p.name, p.D) == (name, D)


def test_highest_penalty_learns_nothing_and_penalties_are_lasso_s() -> None:
    X, y = lasso.diabetes()
    assert lasso.loss(X, y, np.ones(64)) == pytest.approx(1.0, abs=0.03)
    from sklearn.linear_model import Lasso

    # one penalty for all is the plain Lasso at `largest * 10**(x - 1)`
    alpha = np.abs(X.T @ y).max() / len(y) * 10.0**-0.6
    folds = [np.arange(len(y)) % 5 == k for k in range(5)]
    plain = [np.mean((Lasso(alpha=alpha, tol=1e-8).fit(X[~h], y[~h]).predict(X[h]) - y[h]) ** 2) for h in folds]
    assert lasso.loss(X, y, np.full(64, 0.4)) == pytest.approx(np.mean(plain), rel=1e-3)


def test_error_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(alebo.InputError, match="simple"):
        lasso.synthetic("huge")
    with pytest.raises(alebo.InputError, match="64 features"):
        problem("lasso-diabetes-64").evaluate(np.zeros(3))
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(alebo.MissingPartError, match=r'pip install "alebo\[tuning\]"'):
        problem("lasso-simple-60").evaluate(np.zeros(60))
