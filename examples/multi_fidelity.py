"""Few full trainings, many short ones: `epochs` is a fidelity, which is not embedded and may be chosen cheaply.

python examples/multi_fidelity.py
"""

import math
import os

import alebo

BUDGET = int(os.environ.get("ALEBO_BUDGET", "30"))

space = alebo.Space(
    [*[alebo.Float(f"x{i}", -1.0, 1.0) for i in range(60)], alebo.Fidelity("epochs", 1.0, 100.0, log=True)]
)
opt = alebo.Optimizer(space, alebo.Minimize("loss"), seed=0, budget=BUDGET)
for _ in range(BUDGET):
    trial = opt.ask()[0]
    p = trial.params
    unfinished = 1.0 - math.log(p["epochs"]) / math.log(100.0)
    opt.tell(trial.number, (p["x3"] - 0.2) ** 2 + (p["x40"] + 0.5) ** 2 + 0.3 * unfinished * math.sin(3.0 * p["x3"]))
best = opt.best()  # judged at 100 epochs
spent = sum(t.params["epochs"] for t in opt.history)
print(
    f"best loss {best.outcomes['loss'].mean:.5f} at {best.params['epochs']:.0f} epochs; {spent:.0f} epochs spent in all"
)
