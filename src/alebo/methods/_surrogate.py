"""The models of all outcomes in one shared embedding, and the acquisition that the goals call for (paper, S7)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from botorch.models.model import ModelList
from numpy.typing import NDArray
from torch import Tensor

from .._seeds import derive
from ..acquisition import Acquisition, LogEI, NoisyLogEHVI, NoisyLogEI, PerCost, PerLook, at_target
from ..goals import AtMost, Goals, Outcome
from ..history import Trial
from ..models import MahalanobisGP

NOISY = (
    1e-3  # inferred noise variance, of standardised outcomes, from which measured values are no longer taken as true
)


@dataclass(frozen=True, eq=False)
class Surrogate:
    """One fitted model for each objective (of its negative: BoTorch maximises), constraint (g <= 0) and cost (its log)."""

    goals: Goals
    Y: Tensor  # n x d
    objectives: tuple[MahalanobisGP, ...]
    constraints: tuple[MahalanobisGP, ...]
    cost: MahalanobisGP | None
    values: NDArray[np.float64]  # n x k, objectives as measured, minimised
    feasible: NDArray[np.bool_]  # n, as measured

    @property
    def models(self) -> dict[str, MahalanobisGP]:
        named = [(f"objective {i}", m) for i, m in enumerate(self.objectives)]
        named += [(f"constraint {i}", m) for i, m in enumerate(self.constraints)]
        return dict(named + ([] if self.cost is None else [("cost", self.cost)]))

    @property
    def noisy(self) -> bool:
        """Whether some objective or constraint is measured with noise that matters."""
        return any(float(m.noise.median()) > NOISY for m in (*self.objectives, *self.constraints))

    def noise_is_evident(self) -> bool:
        """Whether standard errors were told, or the data speak clearly for noise: by a likelihood ratio against none."""
        for m in (*self.objectives, *self.constraints):
            if m.known_noise:
                if float(m.noise.median()) > NOISY:
                    return True
            elif float(m.noise.median()) > 5.0 * NOISY and len(m.v) >= 20 and m.noise_evidence() > 5.0:
                return True
        return False

    def believed(self) -> list[dict[str, Outcome]]:
        """The posterior mean and standard deviation of every objective and constrained outcome at the trained points."""
        out: list[dict[str, Outcome]] = [{} for _ in range(len(self.Y))]

        def add(name: str, model: MahalanobisGP, sign: float, bound: float) -> None:
            for i, (mean, variance) in enumerate(zip(*model.moments(self.Y.unsqueeze(-2)), strict=True)):
                out[i][name] = Outcome(sign * float(mean) + bound, float(variance) ** 0.5)

        for c, model in zip(self.goals.constraints, self.constraints, strict=True):
            add(c.outcome, model, 1.0 if isinstance(c, AtMost) else -1.0, c.bound)
        for g, model in zip(self.goals.objectives, self.objectives, strict=True):
            add(g.outcome, model, -self.goals.sign(g.outcome), 0.0)
        return out

    def packed(self) -> dict[str, list[list[float]]]:
        """Where the next fit starts, as plain numbers short enough for a note."""
        return {
            name: [[float(f"{v:.6g}") for v in part] for part in model.memory] for name, model in self.models.items()
        }

    @property
    def model(self) -> MahalanobisGP | ModelList:
        """All models as BoTorch takes them: the one, or a list of objectives (maximised) and constraints (g <= 0)."""
        models = (*self.objectives, *self.constraints)
        return models[0] if len(models) == 1 else ModelList(*models)

    @property
    def best(self) -> float:
        """The best feasible value as measured, maximised: `best_f` of BoTorch's acquisition functions."""
        values = self.objectives[0].train_targets
        good = torch.from_numpy(self.feasible)
        return float(values[good].max() if bool(good.any()) else values.min())

    def share(self, i: int, of: int = 3) -> Surrogate:
        """The same with a third of every model's samples: another third for each i."""
        return replace(
            self,
            objectives=tuple(m.share(i, of) for m in self.objectives),
            constraints=tuple(m.share(i, of) for m in self.constraints),
        )

    def acquisition(
        self,
        pending: Tensor | None,
        seed: int,
        doubt: float = 1.0,
        log_cost: Callable[[Tensor], Tensor] | None = None,
    ) -> Acquisition:
        """What the next point should maximise; for one objective, in units of its standardised value.

        `log_cost` is given where coordinate 0 is a fidelity: improvement then counts at the target, per unit of that cost.
        """
        target = None if log_cost is None else at_target
        acquisition: Acquisition
        if len(self.objectives) > 1:
            acquisition = NoisyLogEHVI(
                self.objectives,
                self.constraints,
                reference=self.reference(),
                pending=pending,
                target=target,
                seed=seed,
            )
        elif pending is None and not self.constraints and not self.noisy and (self.cost is None or target is not None):
            model = self.objectives[0]
            best = math.nan if target is None else float(model.marginals(target(model.points)).mean.max())
            acquisition = LogEI(model, best=best, doubt=doubt)
        else:
            acquisition = NoisyLogEI(self.objectives[0], self.constraints, pending=pending, target=target, seed=seed)
        if log_cost is not None:
            return PerLook(acquisition, self.objectives, log_cost)
        return acquisition if self.cost is None else PerCost(acquisition, self.cost)

    def reference(self) -> NDArray[np.float64] | None:
        """The given reference point, maximised; None where one of them is to be inferred."""
        given = [g.reference for g in self.goals.objectives]
        if any(r is None for r in given):
            return None
        signs = [self.goals.sign(g.outcome) for g in self.goals.objectives]
        return -np.array([s * float(r) for s, r in zip(signs, given, strict=True) if r is not None])


def fit_surrogate(
    Y: NDArray[np.float64],
    trials: Sequence[Trial],
    goals: Goals,
    *,
    build: Callable[..., MahalanobisGP],
    warm: Mapping[str, Sequence[Sequence[float]]],
    infer_noise: bool,
    seed: int,
) -> Surrogate:
    """A model of every outcome at the embedded points Y of completed trials, each made by `build`.  Y: n x d"""
    X = torch.from_numpy(np.ascontiguousarray(Y))

    def model(name: str, outcome: str, transform: Any) -> MahalanobisGP:
        raw = [t.outcomes[outcome] for t in trials]
        sems = np.array([np.nan if o.sem is None else o.sem for o in raw])
        variances: NDArray[np.float64] | None = None
        if np.isfinite(sems).any():  # known standard errors; where one is missing, the typical one
            variances = np.where(np.isfinite(sems), sems, np.nanmedian(sems)) ** 2
        elif not infer_noise:
            variances = np.zeros(len(raw))
        return build(
            X,
            torch.from_numpy(transform(np.array([o.mean for o in raw]))),
            variances=None if variances is None else torch.from_numpy(variances),
            seed=derive(seed, name),
            warm=warm.get(name, ()),
        )

    objectives = tuple(
        model(f"objective {i}", g.outcome, lambda v, g=g: -goals.sign(g.outcome) * v)
        for i, g in enumerate(goals.objectives)
    )
    constraints = tuple(
        model(f"constraint {i}", c.outcome, lambda v, c=c: (v - c.bound) * (1.0 if isinstance(c, AtMost) else -1.0))
        for i, c in enumerate(goals.constraints)
    )
    cost = None
    if goals.cost is not None:
        cost = model("cost", goals.cost.outcome, lambda v: np.log(np.maximum(v, 1e-300)))
    values = np.stack([goals.objective_values(t.outcomes) for t in trials])
    feasible = np.array([goals.feasible(t.outcomes) for t in trials])
    return Surrogate(goals, X, objectives, constraints, cost, values, feasible)
