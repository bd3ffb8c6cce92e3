"""How fast one iteration is: against the plain BoTorch construction of the same step, and as D and n grow.

    python -m alebo.bench.speed            all tables (about five minutes)
    python -m alebo.bench.speed plain      one whole iteration against plain BoTorch
    python -m alebo.bench.speed growth     seconds and memory as D and n grow
    python -m alebo.bench.speed goals      two constraints and a batch of four against the plain iteration

CPU seconds, one thread. Every row of `growth` runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

import alebo
from alebo.bench.problems import Problem, embed, functions
from alebo.goals import Goal
from alebo.history import History, State, Trial
from alebo.methods import View
from alebo.models import MahalanobisKernel

NOTES = 8  # last trials whose notes are those of the last asks

GOALS: list[Goal] = [alebo.Minimize("value")]
CONSTRAINTS: list[Goal] = [alebo.AtMost("a", 0.0), alebo.AtMost("b", 0.0)]
CONSTRAINED: list[Goal] = [*GOALS, *CONSTRAINTS]
TWO_OBJECTIVES: list[Goal] = [*GOALS, alebo.Minimize("other"), *CONSTRAINTS]


def hartmann(D: int) -> Problem:
    return embed(functions.hartmann6(), D, name=f"speed-{D}")


def told(D: int, n: int, dim: int, *, wanted: list[Goal] = GOALS, seed: int = 0) -> alebo.Optimizer:
    """An optimizer with n completed trials, uniform in its embedding, and no model yet."""
    method = alebo.ALEBO(dim=dim)
    problem = hartmann(D)
    space = problem.space
    opt = alebo.Optimizer(space, wanted, method=method, seed=seed)
    embedding = method.embedded(View(opt.history, space, opt.goals, seed)).embedding
    trials = []
    for i, y in enumerate(embedding.domain.sample(n, 1)):
        x = np.clip(embedding.up(y), -1.0, 1.0)
        trials.append(Trial(i, space.decode(x), x, y, opt.goals.read(outcomes(problem, x, wanted)), State.COMPLETE))
    opt.history = History(tuple(trials))
    return opt


def prepared(D: int, n: int, dim: int, *, wanted: list[Goal] = GOALS) -> alebo.Optimizer:
    """An optimizer with n completed trials, uniform in its embedding, the last of which was proposed by the model."""
    opt = told(D, n - 1, dim, wanted=wanted)
    asked = opt.ask()[0]  # a warm start for the iteration that is measured
    opt.tell(asked.number, outcomes(hartmann(D), asked.x, wanted))
    return opt


def first_seconds(opt: alebo.Optimizer) -> float:
    """CPU seconds of the first ask, with old data and nothing to go on from."""
    start = time.process_time()
    opt.ask()
    return time.process_time() - start


def outcomes(problem: Problem, x: Any, wanted: list[Goal]) -> Any:
    """What an evaluation gives for these goals."""
    value = float(problem.evaluate((np.asarray(x) + 1.0) / 2.0))
    if len(wanted) == 1:
        return value
    out = {"value": value, "a": float(np.mean(x[:5])) - 0.1, "b": float(np.sin(x[5] + x[6]))}
    return {**out, "other": float(np.sum(np.square(x[2:8] - 0.5)))} if wanted is TWO_OBJECTIVES else out


def ask_seconds(opt: alebo.Optimizer, q: int = 1, repeats: int = 3) -> float:
    """CPU seconds of one whole iteration (model, proposal): the median of a few, at different asks.

    The history stays as it is but for the notes, which are those of the last asks, as in a run.
    """
    times = []
    for _ in range(repeats):
        history = opt.history
        start = time.process_time()
        opt.ask(q)
        times.append(time.process_time() - start)
        first, *later = history.trials[-NOTES:]
        notes = [*(t.note for t in later), opt.history[-q].note]
        moved = [replace(t, note=n) for t, n in zip((first, *later), notes, strict=True)]
        opt.history = replace(history, trials=(*history.trials[:-NOTES], *moved))
    return float(np.median(times))


def plain_seconds(opt: alebo.Optimizer) -> tuple[float, float]:
    """The same step built from BoTorch's parts alone: fit_gpytorch_mll, and optimize_acqf with inequality constraints."""
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.kernels import ScaleKernel
    from gpytorch.mlls import ExactMarginalLogLikelihood

    method = opt.method
    assert isinstance(method, alebo.ALEBO)
    embedding = method.embedded(View(opt.history, opt.space, opt.goals, opt.seed)).embedding
    Y = torch.from_numpy(np.stack([t.y for t in opt.history if t.y is not None]))
    v = torch.tensor([[-t.outcomes["value"].mean] for t in opt.history], dtype=torch.double)
    start = time.process_time()
    kernel = ScaleKernel(MahalanobisKernel(embedding.dim))
    model = SingleTaskGP(Y, v, covar_module=kernel, outcome_transform=Standardize(1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    fitted = time.process_time()
    A, b = torch.from_numpy(embedding.domain.A), torch.from_numpy(embedding.domain.b)
    where = torch.arange(embedding.dim)
    low, high = embedding.domain.bounds
    optimize_acqf(
        LogExpectedImprovement(model, best_f=v.max()),
        bounds=torch.from_numpy(np.stack([low, high])),
        q=1,
        num_restarts=10,
        raw_samples=128,
        inequality_constraints=[(where, -row, -float(end)) for row, end in zip(A, b, strict=True)],
        options={"batch_limit": 1, "maxiter": 200},
    )
    return fitted - start, time.process_time() - fitted


def plain() -> None:
    print("\nOne whole iteration, n = 200, d_e = 12, CPU seconds on one thread\n")
    print("| D | ours | plain BoTorch: fit | proposal | whole | times faster |")
    print("|---|---|---|---|---|---|")
    for D in (100, 1000):
        opt = prepared(D, 200, 12)
        ours = ask_seconds(opt, repeats=5)
        fit, proposal = plain_seconds(opt)
        print(
            f"| {D} | {ours:.2f} | {fit:.1f} | {proposal:.1f} | {fit + proposal:.1f} | {(fit + proposal) / ours:.0f} |"
        )


def goals() -> None:
    print("\nTwo constraints and q = 4 against one plain iteration, n = 200, d_e = 12, CPU seconds\n")
    print("| D | plain | two constraints, q = 4 | ratio |")
    print("|---|---|---|---|")
    for D in (100, 1000):
        one = ask_seconds(prepared(D, 200, 12), repeats=5)
        many = ask_seconds(prepared(D, 200, 12, wanted=CONSTRAINED), q=4, repeats=3)
        print(f"| {D} | {one:.2f} | {many:.2f} | {many / one:.1f} |")


def growth() -> None:
    print("\nHow cost grows: CPU seconds of one iteration, and peak memory of the whole process\n")
    print("| D | n | d_e | s | peak MB |")
    print("|---|---|---|---|---|")
    cells = [(D, 50, 12) for D in (100, 1000, 10_000, 100_000)]
    cells += [(1000, n, 12) for n in (50, 200, 500, 1000, 2000)] + [(1000, 500, 20)]
    for D, n, dim in cells:
        command = [sys.executable, "-m", "alebo.bench.speed", "cell", str(D), str(n), str(dim)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        cell = json.loads(done.stdout.splitlines()[-1])
        print(f"| {D} | {n} | {dim} | {cell['seconds']:.2f} | {cell['peak_mb']:.0f} |", flush=True)


def cell(D: int, n: int, dim: int) -> None:
    seconds = ask_seconds(prepared(D, n, dim), repeats=1 if n > 500 or D > 10_000 else 3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    print(json.dumps({"seconds": seconds, "peak_mb": peak}))


if __name__ == "__main__":
    torch.set_num_threads(1)
    words = sys.argv[1:]
    if words[:1] == ["cell"]:
        cell(*map(int, words[1:4]))
    else:
        for part in (plain, goals, growth):
            if not words or part.__name__ in words:
                part()
