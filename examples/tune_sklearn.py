"""Tune a support vector machine with 66 knobs: a weight for each of 64 pixels, and its two parameters on a log scale.

pip install "alebo[tuning]"
python examples/tune_sklearn.py
"""

import os

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import alebo

BUDGET = int(os.environ.get("ALEBO_BUDGET", "40"))
X, y = load_digits(return_X_y=True)
X, y = X[:400] / 16.0, y[:400]

space = alebo.Space(
    [
        alebo.Float("C", 1e-2, 1e3, log=True),
        alebo.Float("gamma", 1e-4, 1e1, log=True),
        *(alebo.Float(f"pixel{i}", 0.0, 2.0) for i in range(64)),
    ]
)


def accuracy(params: dict[str, float]) -> tuple[float, float]:
    """Mean and standard error of the accuracy over three folds: the model is told how far to trust it."""
    weights = np.array([params[f"pixel{i}"] for i in range(64)])
    scores = cross_val_score(SVC(C=params["C"], gamma=params["gamma"]), X * weights, y, cv=3)
    return float(scores.mean()), float(scores.std() / np.sqrt(len(scores)))


opt = alebo.Optimizer(space, alebo.Maximize("accuracy"), seed=0, budget=BUDGET)
for _ in range(BUDGET):
    trial = opt.ask()[0]
    told = opt.tell(trial.number, {"accuracy": accuracy(trial.params)})
    print(f"{trial.number:3d}  accuracy {told.outcomes['accuracy'].mean:.3f}")

best = opt.best()
print(f"best: trial {best.number}, accuracy {best.outcomes['accuracy'].mean:.3f} (chosen by {best.note['chosen_by']})")
print(f"      C = {best.params['C']:.3g}, gamma = {best.params['gamma']:.3g}")
