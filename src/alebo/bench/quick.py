"""The main comparison in small: Branin in 100 dimensions, a few seeds, about five minutes on two cores."""

from __future__ import annotations

import time
from pathlib import Path

from . import experiment, tables
from .labels import labels
from .results import load

PROBLEMS = ("branin-100", "gramacy-100")
METHODS = "alebo,alebo-fixed,hesbo-2d,sobol"
SEEDS = range(5)


def quick(out: Path, *, jobs: int = 2, seeds: range = SEEDS, problems: tuple[str, ...] = PROBLEMS) -> float:
    """Run, print the table, and return the seconds it took. Runs that are there are kept, so a second call is instant."""
    clock = time.monotonic()
    tasks = experiment.plan(problems, labels(METHODS), list(seeds), out)
    experiment.run(tasks, jobs=jobs)
    results = load(out)
    results.check_unmixed()
    tables.terminal(results, against="alebo")
    return time.monotonic() - clock
