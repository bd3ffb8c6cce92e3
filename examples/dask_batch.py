"""A study on a dask cluster: four evaluations under way at any time, and the same command continues it.

    python examples/dask_batch.py

The cluster is local here; with dask-jobqueue's SLURMCluster, say, nothing else changes. Workers need your function's module,
not alebo.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from distributed import Client, LocalCluster

import alebo


def simulate(params: dict[str, float]) -> dict[str, float]:
    """Something slow: two numbers come back, one to be small, one to be kept below a bound."""
    time.sleep(0.05)
    loss = (params["x3"] - 0.3) ** 2 + (params["x31"] + 0.5) ** 2
    return {"loss": loss, "load": params["x3"] - params["x31"]}


def main(budget: int = 24, path: str | Path = "dask_study.log") -> alebo.Optimizer:
    study = alebo.Study.create(
        path,
        alebo.Space.from_bounds([(-1.0, 1.0)] * 50),
        [alebo.Minimize("loss"), alebo.AtMost("load", 1.0)],
        method=alebo.ALEBO(dim=6),
        seed=0,
        budget=budget,
    )
    with (
        LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        return alebo.run(study, simulate, executor=client.get_executor(), workers=4, timeout=60)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:  # for a run that you mean to continue, give a path that stays
        opt = main(int(os.environ.get("ALEBO_BUDGET", "24")), Path(folder) / "study.log")
    best = opt.best()
    print(f"best loss {best.outcomes['loss'].mean:.4f} in trial {best.number} of {len(opt.history)}")
