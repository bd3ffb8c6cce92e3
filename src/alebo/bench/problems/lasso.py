"""Sparse regression with one penalty for each feature, D=60 to 1000: find the features that matter by cross-validation.

After LassoBench (Šehić et al. 2022), written here: synthetic data with few true features, and one real data set.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from alebo import Float, Goals, InputError, Minimize, MissingPartError, Space

from ..._seeds import generator
from ._problem import Problem

Array: TypeAlias = NDArray[np.float64]

# features, rows, true features: the four sizes of LassoBench's synthetic problems
SIZES = {"simple": (60, 30, 3), "medium": (100, 50, 5), "high": (300, 150, 15), "hard": (1000, 500, 50)}
FOLDS = 5
SNR = 10.0
SPAN = 2.0  # a penalty lies between its data set's largest useful one and a hundredth of it


def _sklearn() -> Any:
    try:
        import sklearn
    except ImportError:
        raise MissingPartError(
            'Sparse regression needs scikit-learn, which is not installed. Run: pip install "alebo[tuning]"'
        ) from None
    return sklearn


@cache
def synthetic(size: str) -> tuple[Array, Array, Array]:
    """Features (standardised), target and true coefficients; drawn once from the size's name."""
    if size not in SIZES:
        raise InputError(f"The synthetic problems are {', '.join(SIZES)}; got {size!r}.")
    D, n, active = SIZES[size]
    rng = generator(0, "lasso", size)
    X = rng.normal(size=(n, D))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    beta = np.zeros(D)
    beta[rng.permutation(D)[:active]] = rng.choice([-1.0, 1.0], size=active) * rng.uniform(1.0, 2.0, size=active)
    clean = X @ beta
    y = clean + rng.normal(size=n) * clean.std() / np.sqrt(SNR)
    return X, (y - y.mean()) / y.std(), beta


@cache
def diabetes() -> tuple[Array, Array]:
    """The diabetes data that scikit-learn ships: 442 people, 10 measurements, their squares and products: 64 columns."""
    _sklearn()
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    squares = [
        X[:, i] * X[:, j] for i in range(10) for j in range(i, 10) if not (i == j == 1)
    ]  # sex squared is constant
    X = np.column_stack([X, *squares])
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def loss(X: Array, y: Array, x: ArrayLike) -> float:
    """Cross-validated squared error of the Lasso whose feature j pays `largest * 10**(x_j - 1)` for each unit.

    x in [-1, 1]; with one penalty for all, `largest` is where every coefficient becomes zero.
    """
    _sklearn()
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Lasso

    x = np.asarray(x, dtype=float)
    if x.shape != (X.shape[1],):
        raise InputError(f"One number for each of the {X.shape[1]} features is needed; got shape {x.shape}.")
    largest = float(np.abs(X.T @ y).max()) / len(y)
    scaled = X / (10.0 ** (0.5 * SPAN * (x - 1.0)))  # a feature's penalty moves into its scale
    errors = []
    for fold in range(FOLDS):
        held = np.arange(len(y)) % FOLDS == fold
        model = Lasso(alpha=largest, fit_intercept=True, max_iter=300, tol=1e-3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the smallest penalties are far from any good one
            model.fit(scaled[~held], y[~held])
        errors.append(np.mean((model.predict(scaled[held]) - y[held]) ** 2))
    return float(np.mean(errors))


def oracle(size: str) -> Array:
    """A point that knows the truth: low penalties on the true features, the highest on all others.  -> D"""
    return np.where(synthetic(size)[2] != 0, -0.5, 1.0)


def _problem(name: str, X: Array, y: Array, about: str) -> Problem:
    return Problem(
        name,
        Space([Float(f"penalty{j}", -1.0, 1.0) for j in range(X.shape[1])]),
        lambda x: loss(X, y, x),
        Goals(Minimize("error")),
        budget=200,
        about=about + " Optimum unknown; the target has variance 1, so an error of 1 means nothing was learnt.",
    )


def lasso_synthetic(size: str) -> Problem:
    """A synthetic problem of one of the SIZES; `oracle(size)` is a good point."""
    D, n, active = SIZES.get(size, (0, 0, 0))
    X, y, _ = synthetic(size)
    return _problem(
        f"lasso-{size}-{D}", X, y, f"Weighted Lasso after LassoBench: {n} rows, {active} of {D} features true."
    )


def lasso_simple() -> Problem:
    return lasso_synthetic("simple")


def lasso_medium() -> Problem:
    return lasso_synthetic("medium")


def lasso_high() -> Problem:
    return lasso_synthetic("high")


def lasso_hard() -> Problem:
    return lasso_synthetic("hard")


def lasso_diabetes() -> Problem:
    """The real one: which of 64 columns of the diabetes data predict how the illness goes on."""
    X, y = diabetes()
    return _problem(
        "lasso-diabetes-64", X, y, "Weighted Lasso on scikit-learn's diabetes data with squares and products."
    )
