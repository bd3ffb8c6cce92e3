"""How long workers wait for proposals: the idle share of their time, with and without trials prepared ahead.

    python -m alebo.bench.idle                               two and four workers, evaluations of one second (two minutes)
    python -m alebo.bench.idle --seconds 5 --budget 30       where asks are slower, because the machine is busy

Evaluations sleep, a fifth longer or shorter by chance, so that only proposals take processor time. Idle is what is left of the
workers' time from the first start to the last one.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import alebo
from alebo.bench.problems import embed, functions

D = 100


def asleep(params: dict[str, Any], *, seconds: float, folder: str) -> float:
    """Hartmann6 after a while; when it began and ended is a line of a file."""
    number = int(os.environ["ALEBO_TRIAL"])
    began = time.monotonic()
    time.sleep(seconds * float(np.random.default_rng(number).uniform(0.8, 1.2)))
    value = float(embed(functions.hartmann6(), D, name="idle").evaluate(np.array(list(params.values()))))
    Path(folder, str(number)).write_text(f"{began} {time.monotonic()}")
    return value


def idle_share(workers: int, ahead: int, *, seconds: float, budget: int, method: str) -> tuple[float, float]:
    """The idle share of the workers' time, and the median seconds of an ask."""
    with tempfile.TemporaryDirectory() as folder:
        space = embed(functions.hartmann6(), D, name="idle").space
        goal, how = alebo.Minimize("value"), alebo.methods.build(method)
        study = alebo.Study.create(Path(folder, "s.log"), space, goal, method=how, budget=budget)
        asks: list[float] = []
        f = partial(asleep, seconds=seconds, folder=folder)
        alebo.run(study, f, workers=workers, ahead=ahead, on_step=lambda step: asks.append(step.ask_seconds))
        spans = np.array([[*map(float, Path(folder, str(i)).read_text().split())] for i in range(budget)])
    first, last = spans[:, 0].min(), spans[:, 0].max()
    busy = np.clip(np.minimum(spans[:, 1], last) - spans[:, 0], 0.0, None).sum()
    return 1.0 - float(busy) / (workers * float(last - first)), float(np.median([a for a in asks if a > 0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one evaluation, on average")
    parser.add_argument("--budget", type=int, default=60)
    parser.add_argument("--method", default="alebo")
    given = parser.parse_args()
    print(f"{given.budget} evaluations of {given.seconds:g} s, Hartmann6 in {D} parameters, {given.method}\n")
    print("| workers | ahead | idle | an ask, s |")
    print("|---|---|---|---|")
    for workers in (2, 4):
        for ahead in dict.fromkeys((0, 1, workers // 2)):  # the last one is what a run does by itself
            idle, ask = idle_share(workers, ahead, **vars(given))
            print(f"| {workers} | {ahead} | {100 * idle:.1f} % | {ask:.2f} |", flush=True)


if __name__ == "__main__":
    main()
