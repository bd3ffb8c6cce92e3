"""Do charts of importance point at parameters that matter? Random sparse functions, 5 of 60 parameters active, n = 100.

    python -m alebo.bench.importance                     20 functions by the default method, then the table
    python -m alebo.bench.importance --method sobol      the same by another method
    python -m alebo.bench.importance --functions 0-5     some of the functions
    python -m alebo.bench.importance --table             only the table, from results/importance

Three charts of the same trials: `report` (what our report shows as certain), `slope` (solid bars of the chart of 0.1: share of
the slope of the embedding's model, chance below 1 %), `fanova` (the five largest of Optuna's fANOVA importances, which has no
notion of certainty: it is given the true number). One line for each function in results/importance/<method>.jsonl.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import alebo
from alebo.diagnostics import fit_models, importances, slope_importance, sparse_model
from alebo.methods import METHODS, Method

Array: TypeAlias = NDArray[np.float64]

D, ACTIVE, N = 60, 5, 100
LEAST_SHARE = 0.05  # total-effect index of every active parameter, so that each of them matters
FOLDER = Path("results/importance")


def sparse_function(seed: int) -> tuple[Callable[[Array], float], list[int]]:
    """A smooth random function on [-1, 1]^60 of five parameters, and which they are.  -> f, 5

    A bowl with a random centre and weights, plus half a draw of a Gaussian process. Draws in which a parameter explains less
    than 5 % of the variance (total-effect index) are rejected.
    """
    rng = np.random.default_rng([7, seed])
    while True:
        active = np.sort(rng.choice(D, ACTIVE, replace=False))
        centre, weight = rng.uniform(-0.7, 0.7, ACTIVE), rng.uniform(0.3, 1.5, ACTIVE)
        W = rng.normal(size=(100, ACTIVE)) / rng.uniform(0.7, 1.5, ACTIVE)
        phase, height = rng.uniform(0.0, 2.0 * np.pi, 100), rng.normal(size=100) * np.sqrt(2.0 / 100)

        def g(
            Z: Array, c: Array = centre, a: Array = weight, W: Array = W, b: Array = phase, h: Array = height
        ) -> Array:
            value: Array = ((Z - c) ** 2 * a).sum(axis=-1) + 0.5 * np.cos(Z @ W.T + b) @ h
            return value

        one, two = rng.uniform(-1.0, 1.0, (2, 2000, ACTIVE))
        base, total = g(one), []
        for j in range(ACTIVE):
            moved = one.copy()
            moved[:, j] = two[:, j]
            total.append(float(((base - g(moved)) ** 2).mean()) / (2.0 * float(base.var())))
        if min(total) >= LEAST_SHARE:
            chosen = active.tolist()
            return lambda x: float(g(x[chosen])), chosen  # noqa: B023


def run(seed: int, method: Method) -> alebo.Optimizer:
    """A run of 100 evaluations."""
    f, _ = sparse_function(seed)
    space = alebo.Space.from_bounds([(-1.0, 1.0)] * D)
    opt = alebo.Optimizer(space, alebo.Minimize("value"), method=method, seed=seed, budget=N)
    for _ in range(N):
        t = opt.ask()[0]
        opt.tell(t.number, f(t.x))
    return opt


def charts(opt: alebo.Optimizer) -> dict[str, list[str]]:
    """The parameters that each chart shows as certain."""
    models = fit_models(opt.history, opt.space, opt.goals, method=opt.method, seed=opt.seed)
    sparse = sparse_model(opt.history, opt.space, opt.goals)
    found, source = importances(opt.space, opt.goals, models, sparse, seed=opt.seed)
    shown = {"report": [s.name for s in found if s.certain], "from": [source]}
    shown["slope"] = []
    if models is not None and models.embedding is not None and hasattr(models.models["value"].model, "gamma"):
        by_slope = slope_importance(models, "value", opt.space, seed=opt.seed)
        shown["slope"] = [s.name for s in by_slope if s.chance is not None and s.chance < 0.01]
    shown["fanova"] = fanova(opt)[:ACTIVE]
    return shown


def fanova(opt: alebo.Optimizer) -> list[str]:
    """All parameters by Optuna's fANOVA importance of the same trials, the largest first."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study()
    at: dict[str, optuna.distributions.BaseDistribution] = {
        n: optuna.distributions.FloatDistribution(-1.0, 1.0) for n in opt.space.names
    }
    for t in opt.history.complete:
        params = {n: float(t.params[n]) for n in opt.space.names}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=at, value=t.outcomes["value"].mean))
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return sorted(found, key=lambda n: -found[n])


def record(seed: int, label: str, method: Method) -> dict[str, Any]:
    """One line of the results."""
    started = time.perf_counter()
    opt = run(seed, method)
    asked = time.perf_counter()
    shown = charts(opt)
    active = [opt.space.names[i] for i in sparse_function(seed)[1]]
    seconds = {"run": round(asked - started, 1), "charts": round(time.perf_counter() - asked, 1)}
    return {
        "function": seed,
        "method": label,
        "alebo": alebo.__version__,
        "active": active,
        **shown,
        "seconds": seconds,
    }


def table(folder: Path = FOLDER) -> str:
    """Markdown: for each method and chart, how many were shown, how many of those are active, how many active were found."""
    rows = ["| trials by | functions | chart | shown as certain | of these active | of the active, found |"]
    rows.append("|---|---|---|---|---|---|")
    for path in sorted(folder.glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for chart, words in (("report", "report"), ("slope", "slope (0.1)"), ("fanova", "fANOVA, top 5")):
            shown = sum(len(r[chart]) for r in lines)
            right = sum(len(set(r[chart]) & set(r["active"])) for r in lines)
            share = f"{right / shown:.0%}" if shown else "-"
            found = right / sum(len(r["active"]) for r in lines)
            rows.append(f"| {path.stem} | {len(lines)} | {words} | {shown} | {share} | {found:.0%} |")
    return "\n".join(rows)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m alebo.bench.importance", description=__doc__)
    parser.add_argument("--method", default="default", help="default, or a name of alebo.methods.METHODS")
    parser.add_argument("--functions", default="0-19", help="0-19, or 0,3,7")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--table", action="store_true", help="only print the table")
    args = parser.parse_args()
    if not args.table:
        from alebo.bench.experiment import seeds

        args.out.mkdir(parents=True, exist_ok=True)
        path = args.out / f"{args.method}.jsonl"
        done = {json.loads(line)["function"] for line in path.read_text().splitlines()} if path.exists() else set()
        for seed in seeds(args.functions):
            if seed not in done:
                made = alebo.methods.default_method() if args.method == "default" else METHODS[args.method]()
                with path.open("a") as file:
                    file.write(json.dumps(record(seed, args.method, made)) + "\n")
    print(table(args.out))


if __name__ == "__main__":
    main()
