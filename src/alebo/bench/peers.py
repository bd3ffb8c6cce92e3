"""What others would do with the same evaluations, as methods for `alebo bench run`: Optuna's samplers, BoTorch in the full space.

alebo bench run --problem mixed-70 --method "alebo,tpe=alebo.bench.peers:OptunaSampler(kind=tpe)" ...
alebo bench run --problem branin-currin-100 --method "alebo,full=alebo.bench.peers:BoTorchDefault" ...
alebo bench run --problem branin-100 --method "batch4=alebo.bench.peers:Batched(q=4)" ...
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch

from alebo import ALEBO, Goals, History, InputError, Maximize, Space, State
from alebo.methods import Method, Sobol, Suggestion, Supports

from .._seeds import derive


@dataclass(frozen=True)
class OptunaSampler(Method):
    """Optuna's TPESampler or GPSampler with its default settings, given the completed trials."""

    kind: str = "tpe"

    name: ClassVar[str] = "optuna-sampler"
    title: ClassVar[str] = "A sampler of Optuna"
    citation: ClassVar[str] = "Akiba et al. 2019"
    supports: ClassVar[Supports] = Supports(batches=False)

    def __post_init__(self) -> None:
        if self.kind not in ("tpe", "gp"):
            raise InputError(f"`kind` is tpe or gp; got {self.kind!r}.")

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        import optuna
        from optuna.trial import create_trial

        from alebo.integrations.spaces import to_optuna

        made = {"tpe": optuna.samplers.TPESampler, "gp": optuna.samplers.GPSampler}[self.kind]
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            study = optuna.create_study(sampler=made(seed=derive(seed, "optuna", len(history)) % 2**32))
            distributions = to_optuna(space)
            for t in history.complete:
                params = {name: t.params[name] for name in distributions}
                value = float(goals.objective_values(t.outcomes)[0])
                study.add_trial(create_trial(params=params, distributions=distributions, value=value))
            asked = study.ask(distributions)
        return [Suggestion(space.encode({**_constants(space), **asked.params}))]


def _constants(space: Space) -> dict[str, Any]:
    return {p.name: p.value for p in space.parameters if hasattr(p, "value")}


@dataclass(frozen=True)
class BoTorchDefault(Method):
    """BoTorch's default process in the full space: qLogNEI for one objective, qLogNEHVI for several."""

    initial: int = 10
    restarts: int = 4
    raw: int = 128
    steps: int = 100  # of L-BFGS-B for each proposal

    name: ClassVar[str] = "full-space"
    title: ClassVar[str] = "BoTorch in the full space"
    citation: ClassVar[str] = "Balandat et al. 2020; Ament et al. 2023"
    supports: ClassVar[Supports] = Supports(objectives=True, batches=False)

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        if len(history.complete) < self.initial:
            return Sobol(centre=True).suggest(history, space, goals, q, seed)
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
        from botorch.optim import optimize_acqf

        X = torch.from_numpy(np.stack([(t.x + 1.0) / 2.0 for t in history.complete]))
        values = -np.stack([goals.objective_values(t.outcomes) for t in history.complete])  # maximised
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = _default_model(X, torch.from_numpy(values))
            acquisition: Any
            if goals.single:
                acquisition = qLogNoisyExpectedImprovement(model, X, prune_baseline=True)
            else:
                signs = [-1.0 if isinstance(g, Maximize) else 1.0 for g in goals.objectives]
                given = [g.reference for g in goals.objectives]
                if any(r is None for r in given):
                    raise InputError("The hypervolume needs a reference of every objective.")
                reference = [-s * float(r) for s, r in zip(signs, given, strict=True) if r is not None]
                acquisition = qLogNoisyExpectedHypervolumeImprovement(model, reference, X, prune_baseline=True)
            bounds = torch.stack([torch.zeros(X.shape[1]), torch.ones(X.shape[1])]).double()
            point, _ = optimize_acqf(
                acquisition,
                bounds,
                1,
                num_restarts=self.restarts,
                raw_samples=self.raw,
                options={"maxiter": self.steps, "seed": derive(seed, "full", len(history)) % 2**31},
            )
        return [Suggestion(2.0 * point[0].numpy() - 1.0, None, {"by": "model"})]


def _default_model(X: torch.Tensor, values: torch.Tensor) -> Any:
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from gpytorch.mlls import ExactMarginalLogLikelihood

    models = []
    for column in values.T:
        models.append(SingleTaskGP(X, column[:, None], outcome_transform=Standardize(1)))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(models[-1].likelihood, models[-1]))
    return models[0] if len(models) == 1 else ModelListGP(*models)


@dataclass(frozen=True)
class Batched(Method):
    """ALEBO as it would propose in batches of q: the outcomes of a batch become known only when all of it is proposed."""

    q: int = 4
    dim: int | None = None

    name: ClassVar[str] = "batched"
    title: ClassVar[str] = "ALEBO in batches"
    citation: ClassVar[str] = ALEBO.citation
    supports: ClassVar[Supports] = ALEBO.supports

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        known = len(history) - len(history) % self.q
        waiting = tuple(replace(t, state=State.PENDING, outcomes={}) for t in history.trials[known:])
        seen = replace(history, trials=(*history.trials[:known], *waiting))
        return ALEBO(dim=self.dim).suggest(seen, space, goals, q, seed)
