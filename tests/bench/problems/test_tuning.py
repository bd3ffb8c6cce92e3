"""The tuning job: a mixed space that evaluates anywhere, references that are beaten, and the message."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from tests.conftest import require_module

import alebo
from alebo.bench.problems import problem, tuning


@pytest.fixture(autouse=True)
def _sklearn() -> None:
    require_module("sklearn", "tuning")


def values(seed: int) -> list[object]:
    return list(tuning.SPACE.decode(np.random.default_rng(seed).uniform(-1, 1, tuning.SPACE.dimension)).values())


def test_size_and_defaults() -> None:
    p = problem("tuning-22")
    assert p.D == 22
    assert p.space.dimension == 31
    default = p.outcomes(np.array(list(tuning.DEFAULTS.values()), dtype=object))["log_loss"]
    assert 0.05 < default < 0.2
    logistic = list((tuning.DEFAULTS | {"blend": 1.0}).values())
    assert p.outcomes(np.array(logistic, dtype=object))["log_loss"] < default  # these data are nearly linear


def test_trees_are_scikit_learn_s() -> None:
    """With the defaults and no blend, the loss is that of the plain classifier."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import log_loss

    losses = []
    for A, y, B, truth in tuning._folds():
        trees = HistGradientBoostingClassifier(max_iter=80, max_depth=12, l2_regularization=1e-6, random_state=0)
        losses.append(log_loss(truth, trees.fit(A, y).predict_proba(B)))
    assert tuning.log_loss(list(tuning.DEFAULTS.values())) == pytest.approx(np.mean(losses), rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_evaluates_anywhere(seed: int) -> None:
    assert 0 < tuning.log_loss(values(seed)) < 5


def test_error_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(alebo.InputError):
        tuning.log_loss(list((tuning.DEFAULTS | {"trees": 10_000}).values()))
    tuning._folds.cache_clear()
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(alebo.MissingPartError, match=r'pip install "alebo\[tuning\]"'):
        problem("tuning-22")
