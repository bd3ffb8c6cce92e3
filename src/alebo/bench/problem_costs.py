"""CPU seconds of one evaluation of every real problem, at random points: `python -m alebo.bench.problem_costs [NAME ...]`."""

from __future__ import annotations

import sys

import numpy as np

from alebo import AleboError

from .one_run import cpu_seconds
from .problems import problem

NAMES = [
    "hexapod-72", "hexapod-tripod-11", "nasbench101-36", "nasbench201-30", "rover-60", "lasso-simple-60", "lasso-medium-100",
    "lasso-high-300", "lasso-hard-1000", "lasso-diabetes-64", "swimmer-16", "hopper-33", "halfcheetah-102", "walker-102",
    "tuning-22", "mopta08-124", "rover-100", "hpob-5971-9970-16", "hpob-6767-31-18",
    "bbob-f2-100", "bbob-f8-100", "bbob-f12-100", "bbob-f17-100", "bbob-f24-100",
    "levy100-100", "ackley100-100", "rosenbrock100-100",
]  # fmt: skip


def main(names: list[str]) -> None:
    print("problem | D | CPU s | lowest | median | highest of 20 random points")
    for name in names:
        try:
            p = problem(name)
        except AleboError as error:
            print(f"{name}: {error}")
            continue
        rng, values, seconds = np.random.default_rng(0), [], []
        for _ in range(21):
            x = p.space.decode(rng.uniform(-1, 1, p.space.dimension))
            kind = float if all(isinstance(v, int | float) for v in x.values()) else object
            began = cpu_seconds()
            values.append(p.outcomes(np.array(list(x.values()), dtype=kind))[p.goals.objectives[0].outcome])
            seconds.append(cpu_seconds() - began)
        low, middle, high = np.percentile(values[1:], [0, 50, 100])  # the first pays for what is loaded once
        print(f"{name} | {p.D} | {np.mean(seconds[1:]):.4f} | {low:.4g} | {middle:.4g} | {high:.4g}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or NAMES)
