"""An acquisition function of your own, maximised inside the embedding's polytope: here BoTorch's upper confidence bound.

python examples/own_acquisition.py
"""

import os

from botorch.acquisition import UpperConfidenceBound

import alebo

BUDGET = int(os.environ.get("ALEBO_BUDGET", "30"))


def bound(surrogate, pending):
    """Any BoTorch acquisition over the model of minus the objective (BoTorch maximises); `pending` are points under way."""
    return UpperConfidenceBound(surrogate.objectives[0], beta=2.0)


def f(x):
    return (x[3] - 0.2) ** 2 + (x[40] + 0.5) ** 2


result = alebo.minimize(f, [(-1, 1)] * 60, budget=BUDGET, seed=0, method=alebo.ALEBO(dim=4, acquisition=bound))
print(result.message)
print(f"best value {result.fun:.5f}, x[3] = {result.x[3]:.3f}, x[40] = {result.x[40]:.3f}")
