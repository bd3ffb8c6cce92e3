"""Evaluations of different cost: improvement is sought per second, not per evaluation.

python examples/cost_aware.py
"""

import math
import os

import alebo

BUDGET = int(os.environ.get("ALEBO_BUDGET", "30"))

space = alebo.Space([alebo.Float(f"x{i}", -1.0, 1.0) for i in range(60)])
opt = alebo.Optimizer(space, [alebo.Minimize("loss"), alebo.Cost("seconds")], seed=0, budget=BUDGET)
spent = 0.0
for _ in range(BUDGET):
    trial = opt.ask()[0]
    p = trial.params
    seconds = math.exp(2.0 * p["x9"])  # one side of x9 is 50 times dearer than the other and no better
    opt.tell(trial.number, {"loss": (p["x3"] - 0.2) ** 2 + (p["x40"] + 0.5) ** 2, "seconds": seconds})
    spent += seconds
best = opt.best()
print(
    f"best loss {best.outcomes['loss'].mean:.5f} in trial {best.number}; {spent:.0f} s spent, {spent / BUDGET:.2f} s each"
)
