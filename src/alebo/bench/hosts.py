"""The integrations beside what their hosts come with. One line for each run in results/hosts/<part>.jsonl, then the table.

    python -m alebo.bench.hosts sklearn --seeds 0-9      a pipeline of 30 parameters, 40 candidates, the same three folds
    python -m alebo.bench.hosts ax --seeds 0-4           hartmann6-100 through Ax's Client, 25 trials
    python -m alebo.bench.hosts pruned --seeds 0-7       Optuna's MedianPruner: pruned trials used or ignored, 60 trials
    python -m alebo.bench.hosts ax --table               only the table, from the stored runs

`--who` names some of the contestants; for scikit-learn and Ax also any of our methods by name. What is stored already is
not run again. scikit-optimize and Optuna's own search for scikit-learn come with the extra `peers`.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import alebo
from alebo.methods import METHODS, default_method

from .problems import problem

FOLDER = Path("results/hosts")
CANDIDATES, TRIALS, PRUNED_TRIALS, STEPS = 40, 25, 60, 9


# -- scikit-learn -----------------------------------------------------------------------------------------------------


def _scipy(space: alebo.Space) -> dict[str, Any]:
    """The space as distributions of scipy.stats and lists, for RandomizedSearchCV."""
    from scipy import stats

    out: dict[str, Any] = {}
    for p in space.parameters:
        if isinstance(p, alebo.Float):
            out[p.name] = stats.loguniform(p.low, p.high) if p.log else stats.uniform(p.low, p.high - p.low)
        elif isinstance(p, alebo.Int):
            out[p.name] = stats.randint(p.low, p.high + 1)
        elif isinstance(p, alebo.Categorical):
            out[p.name] = list(p.choices)
    return out


def _skopt(space: alebo.Space) -> dict[str, Any]:
    from skopt.space import Categorical, Integer, Real

    out: dict[str, Any] = {}
    for p in space.parameters:
        if isinstance(p, alebo.Float | alebo.Int):
            kind = Real if isinstance(p, alebo.Float) else Integer
            out[p.name] = kind(p.low, p.high, prior="log-uniform" if p.log else "uniform")
        elif isinstance(p, alebo.Categorical):
            out[p.name] = Categorical(list(p.choices))
    return out


def _search(who: str, seed: int, settings: dict[str, Any]) -> Any:
    from .hosts_pipeline import SPACE, pipeline

    if who in METHODS:
        from alebo.integrations.sklearn import AleboSearchCV

        return AleboSearchCV(pipeline(), SPACE, n_iter=CANDIDATES, method=who, random_state=seed, **settings)
    if who == "random":
        from sklearn.model_selection import RandomizedSearchCV

        return RandomizedSearchCV(pipeline(), _scipy(SPACE), n_iter=CANDIDATES, random_state=seed, **settings)
    if who == "scikit-optimize":
        from skopt import BayesSearchCV

        return BayesSearchCV(pipeline(), _skopt(SPACE), n_iter=CANDIDATES, random_state=seed, **settings)
    import optuna
    from optuna_integration import OptunaSearchCV

    optuna.logging.set_verbosity(optuna.logging.WARNING)

    from alebo.integrations.spaces import to_optuna

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    return OptunaSearchCV(pipeline(), to_optuna(SPACE), n_trials=CANDIDATES, study=study, random_state=seed, **settings)


def run_sklearn(who: str, seed: int) -> list[float]:
    """The best log loss after each candidate."""
    from sklearn.model_selection import StratifiedKFold

    from .hosts_pipeline import data

    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = _search(who, seed, {"cv": folds, "scoring": "neg_log_loss", "refit": False})
    search.fit(*data())
    if hasattr(search, "cv_results_"):
        scores = search.cv_results_["mean_test_score"]
    else:
        scores = [t.value if t.value is not None else math.nan for t in search.trials_]
    return _best(-np.asarray(scores, dtype=float))


# -- Ax ---------------------------------------------------------------------------------------------------------------


def run_ax(who: str, seed: int) -> list[float]:
    """The best value of hartmann6-100 after each trial of Ax's Client, by its default or by our node."""
    from ax.api.client import Client
    from ax.api.configs import RangeParameterConfig

    for name in [n for n in logging.root.manager.loggerDict if n.split(".")[0] == "ax"]:
        logging.getLogger(name).setLevel(logging.ERROR)
    p = problem("hartmann6-100")
    client = Client(random_seed=seed)
    ranges = zip(p.space.names, p.bounds.tolist(), strict=True)
    client.configure_experiment([RangeParameterConfig(name, (low, high), "float") for name, (low, high) in ranges])
    client.configure_optimization("-value")
    if who != "ax":
        from alebo.integrations.ax import strategy

        name, told = (
            who.removesuffix("+budget"),
            who.endswith("+budget"),
        )  # alebo+budget: told how many trials there are
        client.set_generation_strategy(strategy(method=name, seed=seed, budget=TRIALS if told else None))
    values = []
    for _ in range(TRIALS):
        ((index, x),) = client.get_next_trials(1).items()
        values.append(float(p.evaluate(np.array([x[n] for n in p.space.names], dtype=float))))
        client.complete_trial(index, {"value": values[-1]})
    return _best(np.asarray(values))


# -- Optuna: pruned trials --------------------------------------------------------------------------------------------


def run_pruned(who: str, seed: int) -> list[float]:
    """The best final value after each of 60 trials of which the MedianPruner ends many early; `who` is last or ignore.

    Hartmann6 of 6 among 30 parameters; a trial reports nine values that come down to the final one at a speed of its own.
    """
    import optuna

    from alebo.integrations.optuna import EmbeddingSampler

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    f = problem("hartmann6-100")
    used = [*f.axes, *(i for i in range(f.D) if i not in f.axes)][:30]
    low, high = f.bounds.T
    space = {f"x{i}": optuna.distributions.FloatDistribution(low[i], high[i]) for i in used}
    sampler = EmbeddingSampler(space, method="alebo", seed=seed, budget=PRUNED_TRIALS, pruned=who)
    study = optuna.create_study(sampler=sampler, pruner=optuna.pruners.MedianPruner(n_warmup_steps=2))

    def objective(trial: optuna.Trial) -> float:
        x = 0.5 * (low + high)
        for i in used:
            x[i] = trial.suggest_float(f"x{i}", low[i], high[i])
        value = float(f.evaluate(x))
        speed = 2.0 + 2.0 * x[used[-1]]  # which depends on a parameter that does not matter in the end
        for step in range(STEPS):
            trial.report(value + 2.0 * math.exp(-step / speed), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study.optimize(objective, n_trials=PRUNED_TRIALS)
    done = optuna.trial.TrialState.COMPLETE
    return _best(np.array([t.value if t.state is done and t.value is not None else math.nan for t in study.trials]))


PARTS: dict[str, tuple[Callable[[str, int], list[float]], tuple[str, ...]]] = {
    "sklearn": (run_sklearn, ("adaptive", "alebo", "random", "optuna", "scikit-optimize")),
    "ax": (run_ax, ("adaptive", "alebo", "alebo+budget", "ax")),
    "pruned": (run_pruned, ("last", "ignore")),
}


def _best(values: Any) -> list[float]:
    """The smallest value so far; infinite before the first one."""
    return [round(float(v), 6) for v in np.minimum.accumulate(np.where(np.isnan(values), math.inf, values))]


def stored(part: str, folder: Path = FOLDER) -> list[dict[str, Any]]:
    """The runs that are there."""
    path = folder / f"{part}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(part: str, who: str, seed: int, folder: Path = FOLDER) -> dict[str, Any]:
    """One run, stored as one line."""
    began, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = PARTS[part][0](who, seed)
    line = {
        "who": who, "seed": seed, "best": trace[-1], "seconds": round(time.perf_counter() - began, 1),
        "cpu": round(time.process_time() - cpu, 1), "default": default_method().name, "alebo": alebo.__version__,
        "trace": [v if math.isfinite(v) else None for v in trace],
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{part}.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    return line


def table(part: str, folder: Path = FOLDER) -> str:
    """Markdown: the best value at the end, its mean, standard error and median over seeds, and the seconds of a run."""
    rows = [
        "| by | runs | mean | standard error | median | worst | CPU seconds a run |",
        "|---|---|---|---|---|---|---|",
    ]
    lines = stored(part, folder)
    for who in dict.fromkeys(line["who"] for line in lines):
        mine = [line for line in lines if line["who"] == who]
        best = np.array([line["best"] for line in mine])
        spread = best.std(ddof=1) / math.sqrt(len(best)) if len(best) > 1 else math.nan
        cpu = np.mean([line["cpu"] for line in mine])
        rows.append(
            f"| {who} | {len(best)} | {best.mean():.5f} | {spread:.5f} | {np.median(best):.5f} | {best.max():.5f} | {cpu:.0f} |"
        )
    return "\n".join(rows)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m alebo.bench.hosts", description=__doc__.splitlines()[0] if __doc__ else "")  # fmt: skip
    parser.add_argument("part", choices=sorted(PARTS))
    parser.add_argument("--seeds", default="0-4", help="such as 0-4 or 3")
    parser.add_argument("--who", default=None, help="contestants, with commas between")
    parser.add_argument("--table", action="store_true", help="only the table, from the stored runs")
    given = parser.parse_args(words)
    first, _, last = given.seeds.partition("-")
    if not given.table:
        have = {(line["who"], line["seed"]) for line in stored(given.part)}
        for seed in range(int(first), int(last or first) + 1):
            for who in given.who.split(",") if given.who else PARTS[given.part][1]:
                if (who, seed) not in have:
                    line = run(given.part, who, seed)
                    print(f"{given.part} {who} seed {seed}: {line['best']} in {line['seconds']} s", flush=True)
    print(table(given.part))


if __name__ == "__main__":
    main()
