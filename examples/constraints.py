"""Outcome constraints (known only after measuring) and a linear rule on the parameters (known beforehand) at once.

python examples/constraints.py
"""

import os

import alebo

BUDGET = int(os.environ.get("ALEBO_BUDGET", "40"))

# Thirty pumps; together they may draw no more than 12 units: every proposal obeys, no evaluation is wasted on it.
space = alebo.Space(
    [alebo.Float(f"pump{i}", 0.0, 1.0) for i in range(30)],
    [alebo.LinearConstraint({f"pump{i}": 1.0 for i in range(30)}, 12.0)],
)
goals = [
    alebo.Maximize("flow"),
    alebo.AtMost("noise", 55.0),  # decibels, measured together with the flow
    alebo.AtLeast("reserve", 0.2),
]


def measure(params: dict[str, float]) -> dict[str, float]:
    main, side = params["pump4"], params["pump17"]
    return {
        "flow": 10 * main + 6 * side - 4 * main * side,
        "noise": 40 + 25 * main**2 + 4 * side,
        "reserve": 1.2 - main * side - 0.5 * main,
    }


opt = alebo.Optimizer(space, goals, seed=1, budget=BUDGET)
for _ in range(BUDGET):
    trial = opt.ask()[0]
    told = opt.tell(trial.number, measure(trial.params))
    held = "holds" if opt.goals.feasible(told.outcomes) else "breaks a constraint"
    print(f"{trial.number:3d}  " + "  ".join(f"{k} {v.mean:7.3f}" for k, v in told.outcomes.items()) + f"  {held}")

try:
    best = opt.best()
    print("best:", {k: round(v.mean, 3) for k, v in best.outcomes.items()})
    print("drawn in all:", round(sum(best.params.values()), 3), "of 12")
except alebo.StateError as nothing_feasible:
    print(nothing_feasible)
