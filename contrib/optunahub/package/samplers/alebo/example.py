import optuna
import optunahub


NAMES = [f"x{i}" for i in range(100)]
SPACE = {name: optuna.distributions.FloatDistribution(-5, 10) for name in NAMES}


def objective(trial: optuna.Trial) -> float:
    x = [trial.suggest_float(name, -5, 10) for name in NAMES]
    return (x[17] - 3) ** 2 + (x[60] - 4) ** 2


if __name__ == "__main__":
    sampler = optunahub.load_module("samplers/alebo").EmbeddingSampler(SPACE, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=50)
    print(study.best_value)
