"""Do charts of importance point at parameters that matter? Random sparse functions, 5 of 60 parameters active, n = 100.

    python -m alebo.bench.importance                     20 functions by ALEBO, then the table
    python -m alebo.bench.importance --method sobol      the same by another method
    python -m alebo.bench.importance --functions 0-5     some of the functions
    python -m alebo.bench.importance --noise 0.1         measured with noise: a tenth of the function's deviation over the cube
    python -m alebo.bench.importance --table             only the table, from results/importance

Three charts of the same trials: `report` (what our report shows as certain), `slope` (solid bars of the chart of 0.1: share of
the slope of the embedding's model, chance below 1 %), `fanova` (the five largest of Optuna's fANOVA importances, which has no
notion of certainty: it is given the true number). One line for each function in results/importance/<method>.jsonl.

The rule for "certain" was chosen while functions 0 to 19 were in view; 100 and beyond were not looked at before it stood.
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
FRESH = 100  # functions from here on were not looked at before the rule stood
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


def noise_of(seed: int, share: float) -> Callable[[], float]:
    """Draws of normal noise with this share of the function's standard deviation over the cube."""
    f, rng = sparse_function(seed)[0], np.random.default_rng([8, seed])
    spread = float(np.std([f(x) for x in rng.uniform(-1.0, 1.0, (2000, D))]))
    return lambda: share * spread * float(rng.standard_normal())


def run(seed: int, method: Method, noise: float = 0.0) -> alebo.Optimizer:
    """A run of 100 evaluations."""
    f, more = sparse_function(seed)[0], noise_of(seed, noise)
    space = alebo.Space.from_bounds([(-1.0, 1.0)] * D)
    opt = alebo.Optimizer(space, alebo.Minimize("value"), method=method, seed=seed, budget=N)
    for _ in range(N):
        t = opt.ask()[0]
        opt.tell(t.number, f(t.x) + (more() if noise else 0.0))
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


def record(seed: int, label: str, method: Method, noise: float = 0.0) -> dict[str, Any]:
    """One line of the results."""
    started = time.perf_counter()
    opt = run(seed, method, noise)
    asked = time.perf_counter()
    shown = charts(opt)
    active = [opt.space.names[i] for i in sparse_function(seed)[1]]
    seconds = {"run": round(asked - started, 1), "charts": round(time.perf_counter() - asked, 1)}
    return {
        "function": seed,
        "method": label,
        **({"noise": noise} if noise else {}),
        "alebo": alebo.__version__,
        "active": active,
        **shown,
        "seconds": seconds,
    }


def table(folder: Path = FOLDER) -> str:
    """Markdown: for each method and chart, how many were shown, how many of those are active, how many active were found.

    Functions 0 to 19, which were in view when the rule was chosen, and later ones have rows of their own.
    """
    rows = ["| trials by | functions | chart | shown as certain | of these active | of the active, found |"]
    rows.append("|---|---|---|---|---|---|")
    for path in sorted(folder.glob("*.jsonl")):
        everything = [json.loads(line) for line in path.read_text().splitlines()]
        for fresh in (False, True):
            lines = [r for r in everything if (r["function"] >= FRESH) == fresh]
            rows += _rows(path.stem, lines) if lines else []
    return "\n".join(rows)


def _rows(label: str, lines: list[dict[str, Any]]) -> list[str]:
    numbers = sorted(r["function"] for r in lines)
    rows = []
    for chart, words in (("report", "report"), ("slope", "slope (0.1)"), ("fanova", "fANOVA, top 5")):
        shown = sum(len(r[chart]) for r in lines)
        right = sum(len(set(r[chart]) & set(r["active"])) for r in lines)
        share = f"{right / shown:.0%}" if shown else "-"
        found = right / sum(len(r["active"]) for r in lines)
        span = f"{len(lines)} ({numbers[0]} to {numbers[-1]})"
        rows.append(f"| {label} | {span} | {words} | {shown} | {share} | {found:.0%} |")
    return rows


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m alebo.bench.importance", description=__doc__)
    parser.add_argument("--method", default="alebo", choices=METHODS, help="whose trials")
    parser.add_argument("--functions", default="0-19", help="0-19, or 0,3,7")
    parser.add_argument("--noise", type=float, default=0.0, help="its share of the function's deviation over the cube")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--table", action="store_true", help="only print the table")
    args = parser.parse_args()
    if not args.table:
        from alebo.bench.experiment import seeds

        args.out.mkdir(parents=True, exist_ok=True)
        path = args.out / f"{args.method}{f'-noise-{args.noise:g}' if args.noise else ''}.jsonl"
        done = {json.loads(line)["function"] for line in path.read_text().splitlines()} if path.exists() else set()
        for seed in seeds(args.functions):
            if seed not in done:
                made = METHODS[args.method]()
                with path.open("a") as file:
                    file.write(json.dumps(record(seed, args.method, made, args.noise)) + "\n")
    print(table(args.out))


if __name__ == "__main__":
    main()
