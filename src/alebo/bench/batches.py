"""What batches reach: final values of ALEBO by the size of its batches, with constraints and several objectives.

    python -m alebo.bench.batches --seeds 200-209                      all problems, batches of 1, 4 and 16 (half an hour)
    python -m alebo.bench.batches --problems gramacy-100 --sizes 4     one of them

Values are the best feasible one, or the hypervolume with a minus, so that less is better everywhere. CPU s are of a whole run.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

import alebo
from alebo.bench.experiment import seeds
from alebo.bench.problems import Problem, problem
from alebo.goals import Goals

BUDGETS = {"hartmann6-100": 80, "gramacy-100": 48, "branin-currin-100": 48, "two-and-two": 48}


def two_and_two(D: int = 60) -> Problem:
    """Two objectives and two constraints of four directions of D parameters."""
    across = np.linalg.qr(np.random.default_rng(7).standard_normal((D, 4)))[0]

    def evaluate(x: np.ndarray) -> dict[str, float]:
        z = 2.0 * x @ across
        return {
            "a": float((z[0] - 0.6) ** 2 + (z[1] + 0.4) ** 2 + 0.3 * z[2] ** 2),
            "b": float((z[0] + 0.5) ** 2 + (z[1] - 0.5) ** 2 + 0.3 * (z[3] - 0.3) ** 2),
            "c": float(z[2] + z[0]),
            "d": float(-z[3] - z[1]),
        }

    goals = Goals(
        [
            alebo.Minimize("a", reference=3.0),
            alebo.Minimize("b", reference=3.0),
            alebo.AtMost("c", 0.6),
            alebo.AtMost("d", 0.7),
        ]
    )
    space = alebo.Space.from_bounds([(-1.0, 1.0)] * D)
    return Problem("two-and-two", space, evaluate, goals, paper_dim=8)


def final(made: Problem, q: int, seed: int) -> float:
    """What a run in batches of q has in the end: less is better."""
    method = alebo.ALEBO(dim=made.paper_dim)
    budget = BUDGETS[made.name]
    opt = alebo.Optimizer(made.space, made.goals, method=method, seed=seed, budget=budget)
    while (left := budget - len(opt.history)) > 0:
        for trial in opt.ask(min(q, left)):
            opt.tell(trial.number, made.evaluate(np.array(list(trial.params.values()))))
    if len(opt.goals.objectives) > 1:
        return -float(opt.hypervolumes()[-1])
    name = opt.goals.objectives[0].outcome
    return min(
        (t.outcomes[name].mean for t in opt.history.complete if opt.goals.feasible(t.outcomes)), default=math.inf
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default=",".join(BUDGETS), help="comma-separated")
    parser.add_argument("--sizes", default="1,4,16", help="of batches, comma-separated")
    parser.add_argument("--seeds", type=seeds, default=seeds("200-209"))
    given = parser.parse_args()
    print("| problem | evaluations | batches of | mean +- s.e. | median | CPU s |")
    print("|---|---|---|---|---|---|")
    for name in given.problems.split(","):
        made = two_and_two() if name == "two-and-two" else problem(name)
        for q in map(int, given.sizes.split(",")):
            start = time.process_time()
            ends = np.array([final(made, q, seed) for seed in given.seeds])
            each = (time.process_time() - start) / len(ends)
            error = ends.std(ddof=1) / math.sqrt(len(ends)) if len(ends) > 1 else math.nan
            row = f"{ends.mean():.4f} +- {error:.4f} | {np.median(ends):.4f} | {each:.1f}"
            print(f"| {name} | {BUDGETS[name]} | {q} | {row} |", flush=True)


if __name__ == "__main__":
    main()
