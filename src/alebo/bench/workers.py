"""Workers on one PostgreSQL study against one process that asks for batches: the same quality, and no proposal twice.

    python -m alebo.bench.workers --url postgresql://me@host/db --seeds 0-2 --out results/workers

For every seed: four worker processes on one study (each claims a trial, evaluates it, tells it, while the others do the
same), and beside it one optimizer that asks for four trials at a time. One line a run in
`<problem>-<budget>-<workers>.jsonl`; a run that is stored already is skipped. An evaluation takes a random 0 to `--pause` seconds, so that workers come in any order.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import alebo
from alebo.bench.experiment import seeds as seeds_of
from alebo.bench.problems import Problem, problem


class _Evaluate:
    """The problem as a function of named parameters, with a wait."""

    def __init__(self, name: str, pause: float) -> None:
        self.problem, self.pause = problem(name), pause

    def __call__(self, params: dict[str, Any]) -> dict[str, float]:
        x = np.array(list(params.values()), dtype=float)
        time.sleep(self.pause * abs(float(np.sin(1e4 * x.sum()))))
        return self.problem.outcomes(x)


def _worker(url: str, study: str, name: str, pause: float) -> None:
    import torch

    torch.set_num_threads(1)
    with ThreadPoolExecutor(1) as executor:
        alebo.run(alebo.Study.open(url, name=study), _Evaluate(name, pause), executor=executor)


def shared(
    url: str, p: Problem, method: alebo.ALEBO, seed: int, budget: int, workers: int, pause: float
) -> dict[str, Any]:
    """One study, several processes."""
    name = f"workers-{p.name}-{seed}-{time.time_ns()}"
    study = alebo.Study.create(url, p.space, p.goals, method=method, seed=seed, budget=budget, name=name)
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_worker, args=(url, name, p.name, pause)) for _ in range(workers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    history = study.history
    return {
        "exit codes": [process.exitcode for process in processes],
        "complete": len(history.complete),
        "numbers unique": sorted(t.number for t in history) == list(range(budget)),
        "duplicate proposals": len(history) - len({t.x.tobytes() for t in history}),
        "dimension": sorted({int(t.note["dim"]) for t in history if "dim" in t.note}),
        "best": float(study.best().outcomes[p.goals.outcomes[0]].mean),
    }


def batches(p: Problem, method: alebo.ALEBO, seed: int, budget: int, q: int) -> dict[str, Any]:
    """One optimizer that asks for q at a time."""
    opt = alebo.Optimizer(p.space, p.goals, method=method, seed=seed, budget=budget)
    while opt.asked < budget:
        for trial in opt.ask(min(q, budget - opt.asked)):
            opt.tell(trial.number, p.outcomes(np.array(list(trial.params.values()), dtype=float)))
    return {"complete": len(opt.history.complete), "best": float(opt.best().outcomes[p.goals.outcomes[0]].mean)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--problem", default="hartmann6-100")
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--dim", type=int, default=12)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seeds", default="0-2")
    parser.add_argument("--pause", type=float, default=1.0)
    parser.add_argument("--out", type=Path, default=Path("results/workers"))
    asked = parser.parse_args()
    import optuna
    import torch

    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    p, method = problem(asked.problem), alebo.ALEBO(dim=asked.dim)
    asked.out.mkdir(parents=True, exist_ok=True)
    path = asked.out / f"{p.name}-{asked.budget}-{asked.workers}.jsonl"
    stored = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for seed in seeds_of(asked.seeds):
        for kind in ("workers", "batches"):
            found = [r for r in stored if (r["kind"], r["seed"]) == (kind, seed)]
            if not found:
                record = (
                    shared(asked.url, p, method, seed, asked.budget, asked.workers, asked.pause)
                    if kind == "workers"
                    else batches(p, method, seed, asked.budget, asked.workers)
                )
                found = [{"kind": kind, "seed": seed, **record}]
                with path.open("a") as file:
                    file.write(json.dumps(found[0]) + "\n")
            print(json.dumps(found[0]), flush=True)


if __name__ == "__main__":
    main()
