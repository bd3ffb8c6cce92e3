"""Optuna with the EmbeddingSampler: a hundred parameters, of which a few matter.

python examples/optuna_study.py
"""

from __future__ import annotations

import os

import optuna

from alebo.integrations.optuna import EmbeddingSampler

NAMES = [f"x{i}" for i in range(100)]
SPACE = {name: optuna.distributions.FloatDistribution(-5.0, 10.0) for name in NAMES}


def objective(trial: optuna.Trial) -> float:
    """Two parameters matter, and their sum is constrained; the sampler is told neither."""
    x = {name: trial.suggest_float(name, -5.0, 10.0) for name in NAMES}
    trial.set_constraint("sum", x["x17"] + x["x60"] - 8.0)  # feasible at zero and below
    return (x["x17"] - 3.0) ** 2 + (x["x60"] - 4.0) ** 2


def main(trials: int = 40) -> optuna.Study:
    # The space is given, so that the first trial already lies in the embedding. Without it the sampler waits for a
    # completed trial to learn the names, as Optuna's own samplers do.
    study = optuna.create_study(sampler=EmbeddingSampler(SPACE, seed=0, budget=trials))
    study.optimize(objective, n_trials=trials)
    return study


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    found = main(int(os.environ.get("ALEBO_BUDGET", "40")))
    print(f"best value {found.best_value:.3f} in trial {found.best_trial.number} of {len(found.trials)}")
