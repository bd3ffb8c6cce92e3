"""What HeSBO's embeddings hold of Hartmann6 at best, in stored runs and on average.

    python -m alebo.bench.hesbo_reach [RESULTS]

Only six parameters act, so an embedding is six coordinates and six signs for them; its best value is found by minimising
the true function over the coordinates from many starts. Held by any is the mean over 400 random embeddings: what the
method can reach in the long run, however well it searches. Left is what the search did not find of what its own holds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from alebo._seeds import derive
from alebo.bench.problems import PROBLEMS, functions
from alebo.bench.results import load
from alebo.bench.statistics import standard_error
from alebo.geometry import hesbo

Array: TypeAlias = NDArray[np.float64]
DRAWS = 400


def held(rows: Array, starts: int = 4, looks: int = 256) -> float:
    """The least value of Hartmann6 at (1 + rows y) / 2 for y in the cube.  6 x d"""
    d = rows.shape[1]
    value = functions.hartmann6().evaluate

    def f(y: Array) -> float:
        return float(value((1.0 + rows @ y) / 2.0))

    points = np.random.default_rng(0).uniform(-1.0, 1.0, (looks, d))
    first = points[np.argsort([f(y) for y in points])[:starts]]
    return min(float(minimize(f, y, method="L-BFGS-B", bounds=[(-1.0, 1.0)] * d).fun) for y in first)


def main(folder: Path) -> None:
    runs = load(folder).runs
    print(
        "| D | dim | runs | found | held by their embeddings | held by any, on average | left, median | left over 1 |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for label, d in (("hesbo-d", 6), ("hesbo-2d", 12)):
        rng = np.random.default_rng(0)
        any_ = [held(np.eye(d)[rng.integers(0, d, 6)] * rng.choice([-1.0, 1.0], (6, 1))) for _ in range(DRAWS)]
        for D in (100, 1000):
            mine = [r for r in runs if r.problem == f"hartmann6-{D}" and r.label == label]
            at = list(PROBLEMS[f"hartmann6-{D}"]().axes)
            best = [held(hesbo(D, d, derive(r.seed, "hesbo")).A[at]) for r in mine]
            found = [r.final for r in mine]
            left = np.subtract(found, best)
            cells = [f"{np.mean(v):.3f} ± {standard_error(np.array(v)):.3f}" for v in (found, best, any_)]
            cells += [f"{np.median(left):.3f}", f"{np.sum(left > 1.0)} runs"]
            print(f"| {D} | {d} | {len(mine)} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
