"""The models of all outcomes of a history, and the acquisition function that the goals call for (paper, S7)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from botorch.models.model import ModelList
from numpy.typing import NDArray
from torch import Tensor

from .._seeds import derive
from ..acquisition import Acquisition, LogEI, NoisyLogEHVI, NoisyLogEI, PerCost, PerLook, Quick, at_target, quick
from ..goals import Goals, Outcome
from ..history import Trial
from ..models.outcomes import Compression, reported_variances
from ..models.surrogate import in_units

Array: TypeAlias = NDArray[np.float64]

NOISY = (
    1e-3  # inferred noise variance, of standardised outcomes, from which measured values are no longer taken as true
)


@dataclass(frozen=True, eq=False)
class OutcomeModels:
    """One fitted model for each objective (of its negative: BoTorch maximises), constraint (g <= 0) and cost (its log).

    The models follow `models.surrogate`; which kind they are is the method's choice.
    """

    goals: Goals
    Y: Tensor  # n x d
    objectives: tuple[Any, ...]
    constraints: tuple[Any, ...]
    cost: Any | None
    values: Array  # n x k, objectives as measured, minimised
    feasible: NDArray[np.bool_]  # n, as measured
    squeezed: Mapping[str, Compression]  # by model: the map of its outcomes, where some are extreme

    @property
    def models(self) -> dict[str, Any]:
        """All models by a short name."""
        named = [(f"objective {i}", m) for i, m in enumerate(self.objectives)]
        named += [(f"constraint {i}", m) for i, m in enumerate(self.constraints)]
        return dict(named + ([] if self.cost is None else [("cost", self.cost)]))

    @property
    def compressed(self) -> list[str]:
        """The outcomes of which some values are so extreme that the models see them compressed: for a trial's note."""
        names = {f"objective {i}": g.outcome for i, g in enumerate(self.goals.objectives)}
        names |= {f"constraint {i}": c.outcome for i, c in enumerate(self.goals.constraints)}
        return list(dict.fromkeys(names[name] for name in self.squeezed if name in names))

    @property
    def noisy(self) -> bool:
        """Whether some objective or constraint is measured with noise that matters."""
        return any(float(m.noise.median()) > NOISY for m in (*self.objectives, *self.constraints))

    def noise_is_evident(self) -> bool:
        """Whether standard errors were reported, or the data speak clearly for noise: by a likelihood ratio against none."""
        for m in (*self.objectives, *self.constraints):
            if m.known_noise:
                if float(m.noise.median()) > NOISY:
                    return True
            elif float(m.noise.median()) > 5.0 * NOISY and len(m.v) >= 20 and m.noise_evidence() > 5.0:
                return True
        return False

    def estimates(self) -> list[dict[str, Outcome]]:
        """The posterior mean and standard deviation of every objective and constrained outcome at the training points."""
        out: list[dict[str, Outcome]] = [{} for _ in range(len(self.Y))]

        def add(name: str, model: Any, back: Callable[[float], float]) -> None:
            for i, (mean, sd) in enumerate(zip(*in_units(model, self.Y), strict=True)):
                out[i][name] = Outcome(back(float(mean)), float(sd))

        for c, model in zip(self.goals.constraints, self.constraints, strict=True):
            add(c.outcome, model, c.value)
        for g, model in zip(self.goals.objectives, self.objectives, strict=True):
            sign = -self.goals.sign(g.outcome)
            add(g.outcome, model, lambda v, sign=sign: sign * v)  # type: ignore[misc]
        return out

    def packed(self) -> dict[str, Any]:
        """Where the next fit starts, as plain numbers short enough for a note."""
        return {name: _rounded(model.memory) for name, model in self.models.items()}

    @property
    def model(self) -> Any:
        """All models as BoTorch takes them: the one, or a list of objectives (maximised) and constraints (g <= 0)."""
        models = (*self.objectives, *self.constraints)
        return models[0] if len(models) == 1 else ModelList(*models)

    @property
    def best(self) -> float:
        """The best feasible value as measured, maximised: `best_f` of BoTorch's acquisition functions."""
        first = self.objectives[0]
        values = first.shift + first.scale * first.v
        good = torch.from_numpy(self.feasible)
        return float(values[good].max() if bool(good.any()) else values.min())

    def ranked(self) -> NDArray[np.int64]:
        """The trials from the best to the worst: feasible ones first, or else by how far they violate the constraints.

        By the first objective where there are several.  -> n
        """
        if self.feasible.any() or not self.constraints:
            return np.lexsort((self.values[:, 0], ~self.feasible))
        amounts = [(c.shift + c.scale * c.v).clamp_min(0.0).numpy() for c in self.constraints]
        return np.argsort(np.sum(amounts, axis=0), kind="stable")

    def share(self, i: int, of: int = 3) -> OutcomeModels:
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
        return self.priced(acquisition)

    @property
    def several(self) -> bool:
        """Whether there are several objectives, or constraints: an acquisition then needs joint draws of all of them."""
        return len(self.objectives) + len(self.constraints) > 1

    def drawn(self, pending: Tensor | None, seed: int) -> Quick | None:
        """The acquisition over joint draws, to which more points under way can be added; without what they cost.

        None where the models' draws cannot be stacked.
        """
        acquisition: NoisyLogEI | NoisyLogEHVI
        if len(self.objectives) > 1:
            acquisition = NoisyLogEHVI(
                self.objectives, self.constraints, reference=self.reference(), pending=pending, seed=seed
            )
        else:
            acquisition = NoisyLogEI(self.objectives[0], self.constraints, pending=pending, seed=seed)
        return quick(acquisition)

    def priced(self, acquisition: Acquisition) -> Acquisition:
        """The acquisition for each unit of cost, where evaluations have one."""
        return acquisition if self.cost is None else PerCost(acquisition, self.cost)

    def log_ei(self, pending: Tensor | None = None, failed: Tensor | None = None, doubt: float = 1.0) -> LogEI:
        """Constrained log-EI over the best posterior mean at a feasible point: what the other papers' methods maximise.

        Pending points count as measured at the models' means; failed ones as bad as the worst, or they would come again.
        """
        objective, constraints = self.objectives[0], self.constraints
        best: Tensor | None = None
        if self.feasible.any():
            known = objective.marginals(self.Y).mean  # p x n
            best = known[:, torch.from_numpy(self.feasible)].max(1, keepdim=True).values
        if failed is not None:
            objective = self.avoiding(failed).objectives[0]
        if pending is not None and len(pending):
            likely = all(float((c.shift + c.scale * c.marginals(pending).mean).max()) <= 0.0 for c in constraints)
            if best is not None and likely:
                best = torch.maximum(best, objective.marginals(pending).mean.max(1, keepdim=True).values)
            objective, constraints = (
                objective.believing(pending),
                tuple(c.believing(pending) for c in constraints),
            )
        return LogEI(objective, constraints, best=best, doubt=doubt)

    def avoiding(self, failed: Tensor) -> OutcomeModels:
        """The same with failed points as bad as the worst measured one: without that, they would be proposed again.  f x d"""
        if not len(failed):
            return self
        worst = [m.conditioned(failed, m.v.min().expand(len(failed))) for m in self.objectives]
        return replace(self, objectives=tuple(worst))

    def reference(self) -> Array | None:
        """The given reference point, maximised; None where one of them is to be inferred."""
        given = [g.reference for g in self.goals.objectives]
        if any(r is None for r in given):
            return None
        out = []
        for i, (g, r) in enumerate(zip(self.goals.objectives, given, strict=True)):
            value = np.array([-self.goals.sign(g.outcome) * float(r)]) if r is not None else np.zeros(1)
            name = f"objective {i}"
            out.append(float(self.squeezed[name](value)[0]) if name in self.squeezed else float(value[0]))
        return np.array(out)


Build: TypeAlias = Callable[..., Any]  # (X, values, *, variances, seed, warm) -> a model
Also: TypeAlias = Callable[[str, Any], Any]  # (a model's short name, the model) -> the model with what else is known


def fit_outcomes(
    Y: Array,
    trials: Sequence[Trial],
    goals: Goals,
    *,
    build: Build,
    warm: Mapping[str, Any] | None = None,
    infer_noise: bool = True,
    tame: Callable[[Array], Array] | None = None,
    also: Also | None = None,
    seed: int = 0,
) -> OutcomeModels:
    """A model of every outcome at the points Y of completed trials, each made by `build`.

    Outcomes so extreme that they would hide all other differences are compressed first (`models.outcomes.Compression`).

    Args:
        Y: n x d, where the models see the trials.
        trials: n completed trials.
        goals: what is wanted of their outcomes.
        build: called with (X, values, variances=, seed=, warm=) for each outcome.
        warm: what `OutcomeModels.packed` returned for fewer data.
        infer_noise: whether noise is inferred where no standard errors were reported; else it is zero.
        tame: applied to the values of an objective, maximised, before its model is fitted.
        also: adds to each model what earlier studies know (`_transfer`); None: nothing.
        seed: of the fits.

    Returns:
        The fitted models.
    """
    X = torch.from_numpy(np.ascontiguousarray(Y))
    squeezed: dict[str, Compression] = {}
    bounded = tame or (lambda values: values)

    def model(name: str, outcome: str, transform: Callable[[Array], Array], zero: bool = False) -> Any:
        raw = [t.outcomes[outcome] for t in trials]
        values = transform(np.array([o.mean for o in raw]))
        squeeze = Compression.of(values)
        if squeeze.changes(values).any():
            squeezed[name] = squeeze
            values = squeeze(values) - (float(squeeze(np.zeros(1))[0]) if zero else 0.0)  # a constraint's zero stays
        noise = _variances([o.sem for o in raw], infer_noise)
        start = (warm or {}).get(name, ())
        made = build(X, torch.from_numpy(values), variances=noise, seed=derive(seed, name), warm=start)
        return made if also is None else also(name, made)

    objectives = tuple(
        model(f"objective {i}", g.outcome, lambda v, g=g: bounded(-goals.sign(g.outcome) * v))  # type: ignore[misc]
        for i, g in enumerate(goals.objectives)
    )
    constraints = tuple(
        model(f"constraint {i}", c.outcome, c.violation, zero=True) for i, c in enumerate(goals.constraints)
    )
    cost = None
    if goals.cost is not None:
        cost = model("cost", goals.cost.outcome, lambda v: np.log(np.maximum(v, 1e-300)))
    values = np.stack([goals.objective_values(t.outcomes) for t in trials])
    feasible = np.array([goals.feasible(t.outcomes) for t in trials])
    return OutcomeModels(goals, X, objectives, constraints, cost, values, feasible, squeezed)


def _variances(sems: Sequence[float | None], infer: bool) -> Tensor | None:
    """The reported variances; without any None where noise is to be inferred, else zeros.  n -> n"""
    known = reported_variances(sems)
    if known is None and infer:
        return None
    return torch.from_numpy(np.zeros(len(sems)) if known is None else known)


def _rounded(memory: Any) -> Any:
    """Numbers to six digits, at any depth."""
    return [_rounded(v) if isinstance(v, list | tuple) else float(f"{v:.6g}") for v in memory]
