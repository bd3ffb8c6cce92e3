"""One run: a problem, a method, a seed; everything that tables and figures need, as one small record."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import time
import traceback
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

import alebo
from alebo import AleboError, EvaluationError, MissingPartError, Optimizer

from ._format import FORMAT, KIND
from .labels import Label, describe
from .problems import Problem

MANY = 10  # constraints
TEN = 10  # evaluations whose seconds are stored as one number


def replication(
    problem: Problem,
    label: Label | str,
    seed: int,
    *,
    budget: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Run a method on a problem once and return its record. Whatever goes wrong is in the record, never raised."""
    label = Label.parse(label) if isinstance(label, str) else label
    budget = problem.budget if budget is None else int(budget)
    record: dict[str, Any] = {
        "kind": KIND,
        "format": FORMAT,
        "problem": problem.name,
        "D": problem.D,
        "optimum": problem.optimum,
        "goals": [{"type": type(g).__name__, **vars(g)} for g in problem.goals.goals],
        "label": label.label,
        "method": {"name": label.name, **label.settings},
        "seed": int(seed),
        "budget": budget,
        "state": "failed",
        "error": None,
        "outcomes": {name: [] for name in _stored(problem)},  # as measured; None where an evaluation failed
        "truth": {name: [] for name in problem.noise if problem.noise[name]},  # without noise, where there is noise
        "feasible": [] if problem.goals.constraints else None,  # None: every finished evaluation is
        "dim": [],  # [evaluation, dimension] whenever the method's embedding changes its size
        "seconds": {"model": [], "evaluation": 0.0},  # of one CPU thread: for every ten evaluations, and in all
        "best": None,
        "environment": environment(),
    }
    try:
        method = label.make(problem)
        record["method"] = describe(method)
        optimizer = Optimizer(problem.space, problem.goals, method=method, seed=int(seed), budget=budget)
        for k in range(budget):
            _step(problem, optimizer, record, int(seed), k)
            if progress is not None:
                progress(k + 1)
        if not optimizer.history.complete:
            last = optimizer.history.failed[-1].reason
            raise EvaluationError(f"All {budget} evaluations failed; the last: {last}")
        clock = time.process_time()
        record["best"] = _best(problem, optimizer)
        record["seconds"]["best"] = _seconds(clock)
        record["state"] = "complete"
    except Exception as error:
        record["error"] = f"{type(error).__name__}: {error}"
        if not isinstance(error, AleboError):
            record["traceback"] = traceback.format_exc(limit=-4).replace(str(Path(alebo.__file__).parent), "alebo")
    return record


def _step(problem: Problem, optimizer: Optimizer, record: dict[str, Any], seed: int, k: int) -> None:
    clock = time.process_time()
    trial = optimizer.ask()[0]
    model = record["seconds"]["model"]
    if k % TEN == 0:
        model.append(0.0)
    model[-1] = round(model[-1] + _seconds(clock), 4)
    clock = cpu_seconds()
    try:
        values = list(trial.params.values())
        numbers = all(isinstance(v, int | float) for v in values)
        truth = problem.outcomes(np.array(values, dtype=float if numbers else object))
        measured = problem.add_noise(truth, seed=seed, number=k)
        trial = optimizer.tell(trial.number, measured)
        feasible = problem.goals.feasible(trial.outcomes)
    except MissingPartError:
        raise  # every other evaluation would end the same way
    except Exception as error:  # a problem may crash at some points (real ones do): that costs one evaluation
        optimizer.fail(trial.number, f"{type(error).__name__}: {error}")
        truth, measured, feasible = {}, {}, False
    record["seconds"]["evaluation"] = round(record["seconds"]["evaluation"] + cpu_seconds() - clock, 5)
    for name, series in record["outcomes"].items():
        series.append(_round(measured.get(name)))
    for name, series in record["truth"].items():
        series.append(_round(truth.get(name)))
    if record["feasible"] is not None:
        record["feasible"].append(feasible)
    dim = trial.note.get("dim", None if trial.y is None else len(trial.y))
    if dim is not None and (not record["dim"] or record["dim"][-1][1] != dim):
        record["dim"].append([k, dim])
    if "assumption" in trial.note:  # the method itself says that it does not fit the problem
        record.setdefault("assumption_fails_from", k)


def _best(problem: Problem, optimizer: Optimizer) -> dict[str, Any] | None:
    """What the user is handed at the end, valued without noise: the trial's number, its value, how it was chosen."""
    if not problem.goals.single:
        return None
    try:
        best = optimizer.best()
    except alebo.StateError:
        return None  # nothing feasible was found: a result, not a failure
    values = list(best.params.values())
    numbers = all(isinstance(v, int | float) for v in values)
    truth = (
        problem.outcomes(np.array(values, dtype=float if numbers else object))
        if any(problem.noise.values())
        else {name: outcome.mean for name, outcome in best.outcomes.items()}
    )
    value = problem.value(truth)
    return {
        "number": best.number,
        "value": None if np.isnan(value) else _round(value),
        "chosen_by": best.note.get("chosen_by"),
    }


def _stored(problem: Problem) -> list[str]:
    """The outcomes that a record keeps: all, but for constraints where there are many; `feasible` tells enough of them."""
    goals = problem.goals
    return [g.outcome for g in goals.objectives] if len(goals.constraints) > MANY else list(goals.outcomes)


def cpu_seconds() -> float:
    """CPU seconds of this process and of the programs that it ran to their end."""
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def _seconds(start: float) -> float:
    return round(time.process_time() - start, 4)


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.10g}")


@cache
def environment() -> dict[str, Any]:
    """What the numbers were made with: versions, machine, kernels, threads, and the commit where there is one."""
    versions: dict[str, str] = {"alebo": alebo.__version__}
    for name in ("numpy", "scipy", "torch", "gpytorch", "botorch", "cma", "smac", "mujoco"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "versions": versions,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        "kernels": _kernels(),
        "threads": os.environ.get("OMP_NUM_THREADS", "unset"),
        "commit": _commit(),
    }


def _kernels() -> str:
    """Which arithmetic the processor gets from the libraries: with others a run rounds differently, and then goes its own way."""
    import torch

    blas = {str(lib["architecture"]) for lib in threadpool_info() if lib.get("architecture")}
    return ", ".join([f"torch {torch.backends.cpu.get_cpu_capability()}", *(f"BLAS {name}" for name in sorted(blas))])


def _commit() -> str | None:
    """The last commit that touched the code, with a + where files were changed since."""
    root = Path(alebo.__file__).parents[2]
    try:
        last, changed = (
            subprocess.run(
                ["git", *call, "--", "src"], cwd=root, capture_output=True, text=True, timeout=10
            ).stdout.strip()
            for call in (["log", "-1", "--format=%h"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return (last + "+" * bool(changed)) or None
