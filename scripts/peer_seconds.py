"""CPU seconds of one ask of the embedding, line and additive methods with n = 100 evaluations of Hartmann6, one thread.

    python scripts/peer_seconds.py 100,1000
    python scripts/peer_seconds.py 1000 ebo,add-gp-ucb

The hundred points are the method's own first design, prolonged (REMBO's are shared out among its four projections), or a
Sobol sequence where it has none (LineBO). Embeddings have 12 dimensions, as in the paper. For Add-GP-UCB the measured ask
is one of those, one in ten, that compare decompositions: the slowest.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import alebo  # noqa: E402
from alebo._seeds import reproducible  # noqa: E402
from alebo.bench.problems import embed, functions  # noqa: E402
from alebo.methods import Sobol, build  # noqa: E402

PEERS = "rembo,rembo-phi,rembo-gamma,hesbo,coordinate-linebo,random-linebo,descent-linebo,add-gp-ucb,ebo"


def seconds(name: str, D: int, n: int = 100) -> float:
    """One ask of the method after n evaluations of Hartmann6 hidden among D parameters."""
    problem = embed(functions.hartmann6(), D, name=f"seconds-{D}")
    settings = {"dim": 12} if name.startswith(("rembo", "hesbo")) else {}
    method = build(name, **settings)
    has_design = "initial" in {f.name for f in dataclasses.fields(method)}  # type: ignore[arg-type]
    first = dataclasses.replace(method, initial=n) if has_design else Sobol()  # type: ignore[type-var]
    opt = alebo.Optimizer(problem.space, problem.goals, method=first, seed=0)
    while len(opt.history) < n:
        (trial,) = opt.ask()
        opt.tell(trial.number, problem.evaluate((trial.x + 1.0) / 2.0))
    clock = time.process_time()
    with reproducible(1):
        method.suggest(opt.history, problem.space, opt.goals, 1, 0)
    return time.process_time() - clock


if __name__ == "__main__":
    names = sys.argv[2] if len(sys.argv) > 2 else PEERS
    for name in names.split(","):
        for D in map(int, sys.argv[1].split(",")):
            print(f"{name} D={D} n=100: {seconds(name, D):.2f} s", flush=True)
