"""CPU seconds of one ask of each method with n = 100 completed evaluations, on the one thread that an ask uses.

    python scripts/method_seconds.py turbo,baxus,cmaes,bo,saas-map,smac 100,1000

The first 99 trials are the method's own first points (or generations), whose time is not counted; one more is proposed by its
model, and the next ask is measured.
"""

from __future__ import annotations

import sys
import time

import alebo
from alebo.bench.problems import embed, functions
from alebo.methods import METHODS, build


def seconds(name: str, D: int, n: int = 100) -> float:
    """One ask of the method after n evaluations of Hartmann6 hidden among D parameters."""
    problem = embed(functions.hartmann6(), D, name=f"seconds-{D}")
    first = {"initial": n - 1} if hasattr(METHODS[name], "initial") else {}  # a cheap way to n evaluations
    method = build(name, **first)
    opt = alebo.Optimizer(problem.space, problem.goals, method=method, seed=0)
    while len(opt.history) < n - 1:
        q = min(24, n - 1 - len(opt.history)) if method.supports.batches else 1
        for trial in opt.ask(q):
            opt.tell(trial.number, problem.evaluate((trial.x + 1.0) / 2.0))
    (trial,) = opt.ask()
    opt.tell(trial.number, problem.evaluate((trial.x + 1.0) / 2.0))
    clock = time.process_time()
    opt.ask()
    return time.process_time() - clock


if __name__ == "__main__":
    for name in sys.argv[1].split(","):
        for D in map(int, sys.argv[2].split(",")):
            print(f"{name} D={D} n=100: {seconds(name, D):.2f} s", flush=True)
