"""A real tuning job, 22 mixed parameters: boosted trees, a logistic model and what is done to the data before.

The data are scikit-learn's breast cancer set (569 tumours, 30 measurements); the loss is the cross-validated log loss.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from alebo import Categorical, Float, Goals, Int, Minimize, MissingPartError, Space

from ._problem import Problem

Array: TypeAlias = NDArray[np.float64]
FOLDS = 3

SPACE = Space(
    [
        Float("clip_low", 0.0, 0.05),  # values beyond these quantiles are pulled in
        Float("clip_high", 0.0, 0.05),
        Categorical("scale", ["none", "standard", "quantile", "power"]),
        Int("quantiles", 10, 200, log=True),
        Float("keep", 0.2, 1.0),  # share of the columns kept, by F score
        Categorical("pca", ["off", "instead", "beside"]),
        Int("components", 2, 15),
        Categorical("whiten", [False, True]),
        Float("learning_rate", 0.01, 1.0, log=True),
        Int("trees", 10, 80, log=True),
        Int("leaves", 2, 63, log=True),
        Int("depth", 1, 12),
        Int("leaf_samples", 1, 60, log=True),
        Float("l2", 1e-6, 100.0, log=True),
        Int("bins", 8, 255, log=True),
        Float("columns", 0.1, 1.0),
        Categorical("interactions", ["any", "pairwise", "none"]),
        Float("shift", -1.0, 1.0),  # added to the log odds; weights of classes would do the same, and cost seconds
        Float("logistic_c", 1e-4, 100.0, log=True),
        Categorical("logistic_balance", [False, True]),
        Float("blend", 0.0, 1.0),  # share of the logistic model
        Float("sharpness", 0.3, 3.0, log=True),  # what the log odds are multiplied by
    ]
)


@cache
def _folds(data: str = "breast_cancer") -> tuple[tuple[Array, Array, Array, Array], ...]:
    try:
        from sklearn.datasets import load_breast_cancer, load_wine
        from sklearn.model_selection import StratifiedKFold
    except ImportError:
        raise MissingPartError(
            'The tuning job needs scikit-learn, which is not installed. Run: pip install "alebo[tuning]"'
        ) from None
    if data == "wine":  # the second of three cultivars against the others
        X, kind = load_wine(return_X_y=True)
        y = (kind == 1).astype(float)
    else:
        X, y = load_breast_cancer(return_X_y=True)
        y = 1.0 - y  # 1 is malignant
    parts = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y)
    return tuple((X[a], y[a], X[b], y[b]) for a, b in parts)


def _prepare(p: dict[str, Any], train: Array, y: Array, test: Array) -> tuple[Array, Array]:
    from sklearn.decomposition import PCA
    from sklearn.feature_selection import f_classif
    from sklearn.preprocessing import PowerTransformer, QuantileTransformer, StandardScaler

    low, high = np.quantile(train, [p["clip_low"], 1.0 - p["clip_high"]], axis=0)
    train, test = np.clip(train, low, high), np.clip(test, low, high)
    scaler = {
        "none": None,
        "standard": StandardScaler(),
        "quantile": QuantileTransformer(n_quantiles=p["quantiles"], output_distribution="normal", random_state=0),
        "power": PowerTransformer(),
    }[p["scale"]]
    if scaler is not None:
        train, test = scaler.fit_transform(train), scaler.transform(test)
    kept = np.sort(np.argsort(-f_classif(train, y)[0], kind="stable")[: max(2, round(p["keep"] * train.shape[1]))])
    train, test = train[:, kept], test[:, kept]
    if p["pca"] != "off":
        pca = PCA(min(p["components"], train.shape[1]), whiten=p["whiten"], svd_solver="full").fit(train)
        a, b = pca.transform(train), pca.transform(test)
        both = p["pca"] == "beside"
        train, test = (np.hstack([train, a]), np.hstack([test, b])) if both else (a, b)
    return train, test


def log_loss(values: Any, data: str = "breast_cancer") -> float:
    """The mean log loss over three folds for 22 values in the order of SPACE; `data`: breast_cancer or wine."""
    folds = _folds(data)
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    p = dict(zip(SPACE.names, values, strict=True))
    SPACE.check(p)
    losses = []
    for train, y, test, truth in folds:
        A, B = _prepare(p, train, y, test)
        trees = HistGradientBoostingClassifier(
            learning_rate=p["learning_rate"],
            max_iter=int(p["trees"]),
            max_leaf_nodes=int(p["leaves"]),
            max_depth=int(p["depth"]),
            min_samples_leaf=int(p["leaf_samples"]),
            l2_regularization=p["l2"],
            max_bins=int(p["bins"]),
            max_features=p["columns"],
            interaction_cst={"any": None, "pairwise": "pairwise", "none": "no_interactions"}[p["interactions"]],
            early_stopping=False,
            random_state=0,
        ).fit(A, y)
        balance = "balanced" if p["logistic_balance"] else None
        logistic = make_pipeline(
            StandardScaler(), LogisticRegression(C=p["logistic_c"], class_weight=balance, max_iter=300)
        ).fit(A, y)
        share = p["blend"]
        odds = (1.0 - share) * trees.decision_function(B) + share * logistic.decision_function(B)
        signed = (p["shift"] + p["sharpness"] * odds) * np.where(truth == 1.0, 1.0, -1.0)
        losses.append(np.mean(np.logaddexp(0.0, -signed)))
    return float(np.mean(losses))


DEFAULTS: dict[str, Any] = {  # scikit-learn's own settings of the trees, as far as the space allows
    "clip_low": 0.0, "clip_high": 0.0, "scale": "none", "quantiles": 100, "keep": 1.0, "pca": "off", "components": 10,
    "whiten": False, "learning_rate": 0.1, "trees": 80, "leaves": 31, "depth": 12, "leaf_samples": 20, "l2": 1e-6, "bins": 255,
    "columns": 1.0, "interactions": "any", "shift": 0.0, "logistic_c": 1.0, "logistic_balance": False,
    "blend": 0.0, "sharpness": 1.0,
}  # fmt: skip


def tuning() -> Problem:
    """The tuning job, to be minimised: 22 parameters, 31 coordinates of the cube."""
    _folds()
    return Problem(
        "tuning-22",
        SPACE,
        log_loss,
        Goals(Minimize("log_loss")),
        budget=100,
        about="Boosted trees blended with a logistic model on scikit-learn's breast cancer data. Optimum unknown.",
    )
