"""A laboratory week: ask for a batch, put everything on disk, come back, tell what was measured, ask again.

    python examples/ask_tell.py

The same by command line: alebo ask study.toml --count 4 --output points.csv, then alebo tell study.toml --csv points.csv.
"""

import os
import tempfile
from pathlib import Path

import alebo

WEEKS = max(2, int(os.environ.get("ALEBO_BUDGET", "24")) // 4)
path = Path(tempfile.mkdtemp()) / "alloy.json"

space = alebo.Space(
    [
        *(alebo.Float(f"element{i}", 0.0, 5.0) for i in range(24)),
        alebo.Int("hours", 1, 48),
        alebo.Categorical("furnace", ["old", "new"]),
    ]
)
opt = alebo.Optimizer(space, alebo.Maximize("strength"), seed=3)
opt.tell({**{f"element{i}": 1.0 for i in range(24)}, "hours": 12, "furnace": "old"}, (41.0, 1.5))  # last year's recipe
opt.save(path)

for week in range(WEEKS):
    opt = alebo.Optimizer.load(path)  # a new process, a week later: it asks what it would have asked without the break
    batch = opt.ask(4)
    opt.save(path)

    opt = alebo.Optimizer.load(path)
    for trial in batch:
        p = trial.params
        if p["hours"] > 46:
            opt.fail(trial.number, "the crucible broke")
            continue
        strength = 60 - (p["element3"] - 2) ** 2 - 2 * (p["element9"] - 1) ** 2 + (3 if p["furnace"] == "new" else 0)
        opt.tell(trial.number, {"strength": (strength - 0.01 * (p["hours"] - 20) ** 2, 0.5)})  # mean and standard error
    opt.save(path)
    best = opt.best()
    print(f"week {week + 1}: best strength {best.outcomes['strength'].mean:.2f} (trial {best.number})")
