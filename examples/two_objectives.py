"""Two objectives and a batch of four at a time: the trade-offs, not one best point.

python examples/two_objectives.py
"""

import os

import alebo

BUDGET = int(os.environ.get("ALEBO_BUDGET", "28"))

space = alebo.Space([alebo.Float(f"x{i}", -1.0, 1.0) for i in range(60)])
opt = alebo.Optimizer(
    space, [alebo.Minimize("weight", reference=2.0), alebo.Maximize("strength", reference=0.0)], seed=0
)
for _ in range(BUDGET // 4):
    for trial in opt.ask(4):
        p = trial.params
        weight = 1.0 + p["x3"] + 0.2 * p["x40"] ** 2
        opt.tell(trial.number, {"weight": weight, "strength": 1.0 + p["x3"] - 0.5 * (p["x40"] - 0.3) ** 2})
front = sorted(opt.front(), key=lambda t: t.outcomes["weight"].mean)
volumes = opt.hypervolumes()
print(
    f"{len(front)} best trade-offs of {len(opt.history)} designs; hypervolume {volumes[3]:.3f} after 4, {volumes[-1]:.3f} now:"
)
for t in front:
    print(f"  weight {t.outcomes['weight'].mean:.3f}  strength {t.outcomes['strength'].mean:.3f}  (trial {t.number})")
