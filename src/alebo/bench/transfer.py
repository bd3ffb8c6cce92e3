"""What earlier studies save: related and unrelated sources against none, and against their best points as first points.

    python -m alebo.bench.transfer run hartmann6 --seeds 0,1,2      writes lines to results/transfer/hartmann6.jsonl
    python -m alebo.bench.transfer table                            the table of all that is there
    python -m alebo.bench.transfer cost                             CPU seconds of an ask with 500 source evaluations

Each seed has a source study of its own by the default method, and a task of its own where tasks are drawn (a shift).
A run that is in the file already is not made again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import alebo
from alebo.bench import multitask
from alebo.bench.problems import PROBLEMS, Problem
from alebo.bench.problems.functions import branin_value, hartmann6_value

from .._seeds import generator

Array: TypeAlias = NDArray[np.float64]

RESULTS = Path("results/transfer")
LONG, SHORT = 100, 50  # evaluations of source studies and of studies without sources; of those with sources
NEARLY = 0.99  # of what a study without sources gains: also reported, because its last digits take long
TASKS = 25  # evaluations of BoTorch's multi-task process
FIRST = 5  # best source points that are first points, in the comparison
SHIFT = 0.1  # largest move of an active parameter of Hartmann6, of its range
VARIANTS = ("none", "sources", "first points", "multi-task GP", "other function", "negated", "noise")


@dataclass(frozen=True)
class Pair:
    """A family of related tasks: the earlier one and the present one, by seed."""

    earlier: Callable[[int], Problem]
    present: Callable[[int], Problem]
    variants: tuple[str, ...] = ("none", "sources", "first points")


def _hartmann(seed: int) -> Problem:
    base = PROBLEMS["hartmann6-100"]()
    move = generator(seed, "transfer", "shift").uniform(-SHIFT, SHIFT, 6)
    axes = list(base.axes)
    return replace(base, name="hartmann6-100-moved", evaluate=lambda x: 7.0 + 5.0 * hartmann6_value(x[axes] - move))


def _half_lasso(half: int) -> Problem:
    from alebo.bench.problems.lasso import diabetes, loss

    X, y = diabetes()
    rows = np.arange(len(y)) % 2 == half
    base = PROBLEMS["lasso-diabetes-64"]()
    return replace(base, name=f"lasso-diabetes-64-half{half}", evaluate=lambda x: loss(X[rows], y[rows], x))


def _tuning(data: str) -> Problem:
    from alebo.bench.problems.tuning import log_loss

    return replace(PROBLEMS["tuning-22"](), name=f"tuning-22-{data}", evaluate=lambda x: log_loss(x, data))


def _hexapod(load: float, slope: float) -> Problem:
    from alebo.bench.problems.hexapod import simulate

    base = PROBLEMS["hexapod-72"]()
    return replace(base, name="hexapod-72-loaded", evaluate=lambda x: simulate(x, load=load, slope=slope).reward)


PAIRS: dict[str, Pair] = {
    "hartmann6": Pair(lambda _: PROBLEMS["hartmann6-100"](), _hartmann, VARIANTS),
    "lasso": Pair(lambda _: _half_lasso(0), lambda _: _half_lasso(1)),
    "tuning": Pair(lambda _: _tuning("breast_cancer"), lambda _: _tuning("wine")),
    "hexapod": Pair(lambda _: PROBLEMS["hexapod-72"](), lambda _: _hexapod(1.5, 0.05)),
}


def search(
    problem: Problem, seed: int, budget: int, points: Sequence[Mapping[str, Any]] = (), sources: Any = ()
) -> Any:
    """An Optimizer after a search by the default method, its best values, and the CPU seconds of every ask."""
    opt = alebo.Optimizer(problem.space, problem.goals, seed=seed, budget=budget, sources=sources)
    for point in points:
        opt.enqueue(point)
    seconds, trace, best = [], [], float("inf")
    outcome = opt.goals.objectives[0].outcome
    for _ in range(budget):
        began = time.process_time()
        trial = opt.ask()[0]
        seconds.append(time.process_time() - began)
        try:
            value = float(problem.evaluate(_array(problem, trial.params)))
        except alebo.EvaluationError as error:
            opt.fail(trial.number, str(error))
        else:
            opt.tell(trial.number, {outcome: value})
            best = min(best, problem.sign * value)
        trace.append(best)
    return opt, trace, seconds


def _array(problem: Problem, params: Mapping[str, Any]) -> Any:
    values = list(params.values())
    return np.array(values) if problem.space.continuous else values


def source_study(name: str, seed: int) -> alebo.Optimizer:
    """The earlier study of a seed, by the default method; made once, then read from its file."""
    path = RESULTS / "sources" / f"{name}-{seed}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        search(PAIRS[name].earlier(seed), 1000 + seed, LONG)[0].save(path)
    return alebo.Optimizer.load(path)


def variant(name: str, what: str, seed: int) -> dict[str, Any]:
    """One run: its trace (minimised), CPU seconds of asks, and the weight of the source at its end."""
    problem = PAIRS[name].present(seed)
    if what == "multi-task GP":
        return _multitask(name, seed)
    if what == "none":
        opt, trace, seconds = search(problem, seed, LONG)
    else:
        old = source_study(name, seed)
        ranked = sorted(old.history.complete, key=lambda t: float(old.goals.objective_values(t.outcomes)[0]))
        if what == "first points":
            opt, trace, seconds = search(problem, seed, SHORT, points=[t.params for t in ranked[:FIRST]])
        else:
            opt, trace, seconds = search(problem, seed, SHORT, sources=[_changed(old, what, seed)])
    weight = [round(w, 3) for w in alebo.methods.weights(opt.history, opt.goals)]
    ask = {"ask_seconds": round(float(np.sum(seconds)), 2)}
    return {"pair": name, "variant": what, "seed": seed, "trace": trace, "weight": weight, **ask}


def _multitask(name: str, seed: int) -> dict[str, Any]:
    """One run of BoTorch's multi-task process in the full space, of `TASKS` evaluations: a fit takes seconds."""
    old = source_study(name, seed)
    X = np.array([0.5 * (t.x + 1.0) for t in old.history.complete])
    y = np.array([float(old.goals.objective_values(t.outcomes)[0]) for t in old.history.complete])
    trace, seconds = multitask.search(PAIRS[name].present(seed), seed, TASKS, X, y)
    ask = {"ask_seconds": round(float(np.sum(seconds)), 2)}
    return {"pair": name, "variant": "multi-task GP", "seed": seed, "trace": trace, "weight": [], **ask}


def _changed(old: alebo.Optimizer, what: str, seed: int) -> Any:
    """The source as it is, or with outcomes of an unrelated function at the same points."""
    if what == "sources":
        return alebo.Source(old, name="earlier")
    frame = old.to_dataframe()
    outcome = old.goals.objectives[0].outcome
    if what == "negated":
        frame[outcome] = -frame[outcome]
    elif what == "noise":
        frame[outcome] = generator(seed, "transfer", "noise").normal(size=len(frame))
    else:
        i, j = generator(seed, "transfer", "axes").permutation(len(old.space))[:2]
        X = frame[list(old.space.names)].to_numpy()
        frame[outcome] = [branin_value(np.array([15.0 * row[i] - 5.0, 15.0 * row[j]])) for row in X]
    return alebo.Source(frame, name=what)


def load() -> list[dict[str, Any]]:
    """All runs that were made."""
    return [json.loads(line) for path in sorted(RESULTS.glob("*.jsonl")) for line in path.read_text().splitlines()]


def run(name: str, variants: Sequence[str], seeds: Sequence[int]) -> None:
    """Make the runs that are not there yet, one after the other."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    done = {(r["pair"], r["variant"], r["seed"]) for r in load()}
    for seed in seeds:
        for what in variants:
            if (name, what, seed) in done:
                continue
            row = variant(name, what, seed)
            with (RESULTS / f"{name}.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(name, what, seed, f"{row['trace'][-1]:.4g}", flush=True)


def rows(runs: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """One row of the table for each pair and variant."""
    for name in PAIRS:
        plain = {r["seed"]: r["trace"] for r in runs if r["pair"] == name and r["variant"] == "none"}
        for what in VARIANTS:
            found = [r for r in runs if r["pair"] == name and r["variant"] == what and r["seed"] in plain]
            if not found:
                continue
            at = {n: np.array([r["trace"][n - 1] for r in found if len(r["trace"]) >= n]) for n in (25, SHORT, LONG)}
            cells = [_mean(values) for values in at.values()]
            reach = [[_reached(r["trace"], plain[r["seed"]], share) for r in found] for share in (1.0, NEARLY)]
            weights = [sum(r["weight"]) for r in found if r["weight"]]
            yield [
                name,
                what,
                str(len(found)),
                *cells,
                *(f"{np.median(n):.0f}" if np.isfinite(np.median(n)) else f"> {len(found[0]['trace'])}" for n in reach),
                f"{np.mean(weights):.2f}" if weights else "",
                f"{np.mean([r['ask_seconds'] / len(r['trace']) for r in found]):.2f}",
            ]


def _mean(values: Array) -> str:
    if not len(values):
        return ""
    if len(values) == 1:
        return f"{values[0]:.4g}"
    return f"{values.mean():.4g} ± {values.std(ddof=1) / np.sqrt(len(values)):.2g}"


def _reached(trace: Sequence[float], plain: Sequence[float], share: float) -> float:
    """Evaluations until this share of what a study without sources gained after its first evaluation was reached."""
    level = plain[0] + share * (plain[-1] - plain[0])
    return next((float(i + 1) for i, v in enumerate(trace) if v <= level), float("inf"))


HEAD = (
    *("pair", "source", "seeds", "after 25", f"after {SHORT}", f"after {LONG}"),
    *("evaluations to reach none's last", f"{100 * NEARLY:.0f} % of it", "weight", "CPU s per ask"),
)


def table(runs: Sequence[Mapping[str, Any]]) -> str:
    """The table as Markdown: mean and standard error of the best value, minimised, after so many evaluations."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows(runs)])


def cost(evaluations: int = 500, asks: int = 30) -> str:
    """CPU seconds of an ask with a source of so many evaluations, and without; and of reading the source once."""
    problem = _hartmann(0)
    X = generator(0, "transfer", "cost").random((evaluations, problem.D))
    old = alebo.Optimizer(problem.space, problem.goals, method="sobol")
    for row in X:
        old.tell(dict(zip(problem.space.names, row.tolist(), strict=True)), hartmann6_value(row[list(problem.axes)]))
    began = time.process_time()
    alebo.Optimizer(problem.space, problem.goals, sources=[old])
    once = time.process_time() - began
    with_, without = (np.mean(search(problem, 0, asks, sources=s)[2]) for s in ([old], ()))
    return (
        f"{evaluations} source evaluations, D = {problem.D}, {asks} asks: {with_:.2f} CPU s an ask, {without:.2f} without; "
        f"{once:.1f} s once, when the study begins."
    )


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m alebo.bench.transfer", description=__doc__)
    parser.add_argument("what", choices=["run", "table", "cost"])
    parser.add_argument("pair", nargs="?", choices=list(PAIRS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--variants", default=None, help="separated by commas; left out: all of the pair")
    given = parser.parse_args(arguments)
    if given.what == "table":
        print(table(load()))
        return
    if given.what == "cost":
        print(cost())
        return
    for name in [given.pair] if given.pair else PAIRS:
        chosen = given.variants.split(",") if given.variants else PAIRS[name].variants
        run(name, chosen, [int(s) for s in given.seeds.split(",")])


if __name__ == "__main__":
    main(sys.argv[1:])
