"""CPU seconds of one ask of every method with n = 100 evaluations of Hartmann6, one thread, as the table of docs/methods.md.

    python -m alebo.bench.method_seconds 100,1000
    python -m alebo.bench.method_seconds 1000 ebo,add-gp-ucb

The first 99 points are the method's own first design, prolonged (or its own asks, where it has none); one more is
proposed by its model, and the next ask is measured. Embeddings have 12 dimensions, as in the paper. For Add-GP-UCB the
measured ask is one of those, one in ten, that compare decompositions: the slowest. SAASBO by NUTS is run only when named.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import alebo  # noqa: E402
from alebo.bench.problems import embed, functions  # noqa: E402
from alebo.bench.published import row  # noqa: E402
from alebo.methods import METHODS, build  # noqa: E402

UNFINISHED = {"rembo-gamma", "add-gp-ucb", "ebo"}  # at D = 1000, published: no run within 24 hours
PUBLISHED = {"hesbo": "hesbo-2d"}  # where the paper has more than one row


def settings(name: str, n: int) -> dict[str, Any]:
    """The method's settings that lead to n evaluations cheaply."""
    out: dict[str, Any] = {}
    if name.startswith(("alebo", "rembo", "hesbo")):
        out["dim"] = 12
    if name == "rembo":
        out["initial"] = -(-n // alebo.methods.REMBO.projections)  # of each projection
    elif hasattr(METHODS[name], "initial"):
        out["initial"] = n
    if name == "add-gp-ucb":
        out["cycle"] = 1
    return out


def seconds(name: str, D: int, n: int = 100) -> float:
    """One ask of the method after n evaluations of Hartmann6 hidden among D parameters."""
    problem = embed(functions.hartmann6(), D, name=f"seconds-{D}")
    method = build(name, **settings(name, n - 1))
    opt = alebo.Optimizer(problem.space, problem.goals, method=method, seed=0)
    while len(opt.history) < n:
        left = n - 1 - len(opt.history)
        for trial in opt.ask(min(24, left) if method.supports.batches and left else 1):
            opt.tell(trial.number, problem.evaluate((trial.x + 1.0) / 2.0))
    clock = time.process_time()
    opt.ask()
    return time.process_time() - clock


def paper(name: str, D: int) -> str:
    known = (row(f"hartmann6-{D}", PUBLISHED.get(name, name)) or {}).get("seconds")
    if known:
        return f"{known:.3g}"
    return "24 h" if D == 1000 and name in UNFINISHED else "-"


if __name__ == "__main__":
    sizes = [int(D) for D in sys.argv[1].split(",")]
    names = sys.argv[2].split(",") if len(sys.argv) > 2 else [name for name in METHODS if name != "saasbo"]
    print("| method | " + " | ".join([f"D={D}" for D in sizes] + [f"paper, D={D}" for D in sizes]) + " |")
    print("|---" * (1 + 2 * len(sizes)) + "|")
    for name in names:
        cells = [f"{seconds(name, D):.2f}" for D in sizes] + [paper(name, D) for D in sizes]
        print(f"| {METHODS[name].title} | " + " | ".join(cells) + " |", flush=True)
