"""A scikit-learn pipeline with 30 parameters that matter more or less: five models that vote, behind one preparation.

The data are scikit-learn's breast cancer set (569 tumours, 30 measurements). One evaluation (three folds) takes about a
tenth of a second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from alebo import Categorical, Float, Int, Space

MODELS = ("logistic", "tree", "forest", "neighbours", "bayes")

SPACE = Space(
    [
        Categorical("scale__kind", ["none", "standard", "minmax", "robust"]),
        Int("select__k", 5, 30),
        Int("reduce__pca__n_components", 2, 5),
        Categorical("reduce__pca__whiten", [True, False]),
        *(Float(f"vote__weight_{name}", 0.0, 1.0) for name in MODELS),
        Float("vote__sharpness", 0.3, 3.0, log=True),
        Float("vote__logistic__C", 1e-4, 1e3, log=True),
        Float("vote__logistic__tol", 1e-5, 1e-1, log=True),
        Categorical("vote__logistic__class_weight", [None, "balanced"]),
        Categorical("vote__logistic__fit_intercept", [True, False]),
        Int("vote__tree__max_depth", 1, 15),
        Int("vote__tree__min_samples_split", 2, 50, log=True),
        Int("vote__tree__min_samples_leaf", 1, 40, log=True),
        Float("vote__tree__max_features", 0.1, 1.0),
        Float("vote__tree__ccp_alpha", 1e-5, 1e-1, log=True),
        Categorical("vote__tree__criterion", ["gini", "entropy"]),
        Int("vote__forest__n_estimators", 3, 12),
        Int("vote__forest__max_depth", 1, 15),
        Int("vote__forest__min_samples_leaf", 1, 40, log=True),
        Float("vote__forest__max_features", 0.1, 1.0),
        Categorical("vote__forest__bootstrap", [True, False]),
        Int("vote__neighbours__n_neighbors", 1, 60, log=True),
        Categorical("vote__neighbours__weights", ["uniform", "distance"]),
        Float("vote__neighbours__p", 1.0, 2.0),
        Float("vote__bayes__var_smoothing", 1e-10, 1.0, log=True),
        Float("vote__floor", 1e-4, 1e-1, log=True),
    ]
)


def data() -> tuple[Any, Any]:
    """Measurements and classes.  569 x 30, 569"""
    found: tuple[Any, Any] = load_breast_cancer(return_X_y=True)
    return found


class Scale(TransformerMixin, BaseEstimator):
    """A scaler by its name."""

    def __init__(self, kind: str = "standard") -> None:
        self.kind = kind

    def fit(self, X: Any, y: Any = None) -> Scale:
        kinds = {"standard": StandardScaler, "minmax": MinMaxScaler, "robust": RobustScaler}
        self.scaler_ = FunctionTransformer() if self.kind == "none" else kinds[self.kind]()
        self.scaler_.fit(X)
        return self

    def transform(self, X: Any) -> Any:
        return self.scaler_.transform(X)


class Vote(ClassifierMixin, BaseEstimator):
    """Five models; the weighted mean of their probabilities, sharpened, and kept away from zero and one."""

    def __init__(
        self, logistic: Any = None, tree: Any = None, forest: Any = None, neighbours: Any = None, bayes: Any = None,
        weight_logistic: float = 1.0, weight_tree: float = 1.0, weight_forest: float = 1.0, weight_neighbours: float = 1.0,
        weight_bayes: float = 1.0, sharpness: float = 1.0, floor: float = 1e-3,
    ) -> None:  # fmt: skip
        self.logistic, self.tree, self.forest, self.neighbours, self.bayes = logistic, tree, forest, neighbours, bayes
        self.weight_logistic, self.weight_tree, self.weight_forest = weight_logistic, weight_tree, weight_forest
        self.weight_neighbours, self.weight_bayes = weight_neighbours, weight_bayes
        self.sharpness, self.floor = sharpness, floor

    def fit(self, X: Any, y: Any) -> Vote:
        self.classes_ = np.unique(y)
        self.models_ = {name: clone(getattr(self, name)).fit(X, y) for name in MODELS}
        return self

    def predict_proba(self, X: Any) -> Any:
        weights = np.array([getattr(self, f"weight_{name}") for name in MODELS]) + 1e-9
        each = np.stack([self.models_[name].predict_proba(X)[:, 1] for name in MODELS])
        mean = np.clip(weights @ each / weights.sum(), 1e-9, 1.0 - 1e-9)
        odds = self.sharpness * np.log(mean / (1.0 - mean))
        p = 0.5 * self.floor + (1.0 - self.floor) / (1.0 + np.exp(-odds))
        return np.column_stack([1.0 - p, p])

    def predict(self, X: Any) -> Any:
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


def pipeline() -> Any:
    """The pipeline, with scikit-learn's own settings where the space does not set them."""
    vote = Vote(
        LogisticRegression(max_iter=200),
        DecisionTreeClassifier(random_state=0),
        ExtraTreesClassifier(10, random_state=0),
        KNeighborsClassifier(),
        GaussianNB(),
    )
    both = FeatureUnion([("keep", "passthrough"), ("pca", PCA(2))])
    return Pipeline([("scale", Scale()), ("select", SelectKBest()), ("reduce", both), ("vote", vote)])
