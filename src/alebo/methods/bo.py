"""Plain Bayesian optimization in the full space: today's default elsewhere, and the twin every embedding has to beat."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._seeds import derive, generator
from ..goals import AtMost, Goals, Outcome
from ..history import History, Trial
from ..space import Space
from ._fitted import Fitted, by_outcome
from ._method import Method, Suggestion, Supports, setting
from .turbo import candidates, initial_points, qmc_points

if TYPE_CHECKING:
    from torch import Tensor

    from ._ard import Priors
    from ._gp import GP, OutcomeModel

Array: TypeAlias = NDArray[np.float64]
Fit: TypeAlias = "Callable[[Array, Array, Array | None], GP]"  # n x D in the unit cube, n values, n variances or None


class FullSpace(Method):
    """What plain BO and the sparse one share: first points, then the best log expected improvement in the whole cube.

    Constraints multiply the improvement by the probability of being feasible (Gardner et al. 2014); pending points are
    believed at the model's mean, and a batch is chosen one by one in the same way.
    """

    initial: int | None

    @abstractmethod
    def models(self, X: Array, history: Sequence[Trial], goals: Goals, seed: int) -> Sequence[OutcomeModel]:
        """One model of all outcomes, or several that are averaged."""

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        D, start = space.dimension, len(history)
        size = min(2 * D, 20) if self.initial is None else self.initial
        used = len(history) - len(history.failed)
        take = min(max(size - used, 0), q)
        first = initial_points(D, start + take, derive(seed, self.name))[start:]
        out = [Suggestion(2.0 * u - 1.0) for u in first]
        complete = history.complete
        if len(out) < q and len(complete) < 2:  # all is still being evaluated: more points like the first ones
            extra = qmc_points(D, q - len(out), derive(seed, self.name, "wait", start))
            return [*out, *(Suggestion(2.0 * u - 1.0) for u in extra)]
        if len(out) == q:
            return out
        import torch

        X = 0.5 * (space.snap(np.array([t.x for t in complete])) + 1.0)
        models = self.models(X, complete, goals, derive(seed, self.name, "fit", start))
        waiting = np.array([t.x for t in history.pending] + [s.x for s in out]).reshape(-1, D)
        while len(out) < q:
            believed = torch.as_tensor(0.5 * (space.snap(waiting) + 1.0)) if len(waiting) else None
            now = models if believed is None else [m.believe(believed) for m in models]
            u = self._maximise(now, X, complete, goals, derive(seed, self.name, "maximise", start, len(out)))
            out.append(Suggestion(2.0 * u - 1.0))
            waiting = np.concatenate([waiting, out[-1].x[None]])
        return out

    def _maximise(
        self, models: Sequence[OutcomeModel], X: Array, trials: Sequence[Trial], goals: Goals, seed: int
    ) -> Array:
        """The point of the unit cube with the largest averaged improvement, sought everywhere and near the best points."""
        import torch

        from ._gp import maximise_in_box

        D = X.shape[1]
        score = np.array(
            [float(goals.objective_values(t.outcomes)[0]) if goals.feasible(t.outcomes) else math.inf for t in trials]
        )
        if not np.isfinite(score).any():
            score = np.array([float(np.maximum(goals.violations(t.outcomes), 0.0).sum()) for t in trials])
        rng = generator(seed, "near")
        lengthscales = models[0].objective.lengthscales.numpy()
        near = [
            candidates(X[i], length, lengthscales, 128, rng) for i in np.argsort(score)[:2] for length in (0.2, 0.8)
        ]

        def acquisition(Z: Tensor) -> Tensor:
            if len(models) == 1:
                return models[0](Z)
            return torch.logsumexp(torch.stack([m(Z) for m in models]), dim=0) - math.log(len(models))

        best, _ = maximise_in_box(
            acquisition,
            np.zeros(D),
            np.ones(D),
            seed=seed,
            starts=5,
            raw=512,
            extra=np.concatenate(near),
            iterations=60,
        )
        return best

    def fitted(self, history: History, space: Space, goals: Goals, seed: int, *, fresh: bool = False) -> Fitted | None:
        trials = history.complete
        if len(trials) < 2:
            return None

        def see(X: Array) -> Array:
            return 0.5 * (space.snap(X) + 1.0)

        P = see(np.array([t.x for t in trials]))
        drawn = self.models(P, trials, goals, derive(seed, self.name, "fit", len(history)))
        constraints = list(zip(*(m.constraints for m in drawn), strict=True))
        models = by_outcome(goals, [[m.objective for m in drawn]], [list(c) for c in constraints], 1.0)
        what = f"{self.title}'s model of all {space.dimension} coordinates"
        return Fitted(trials, P, see, models, None, what, refits=len(drawn) == 1)

    def estimate(
        self, history: History, space: Space, goals: Goals, seed: int
    ) -> Mapping[int, Mapping[str, Outcome]] | None:
        trials = history.complete
        noisy = any((o.sem or 0.0) > 0.0 for t in trials for o in t.outcomes.values())
        if not noisy or len(trials) < 3 or goals.cost is not None:
            return None
        import torch

        X = 0.5 * (space.snap(np.array([t.x for t in trials])) + 1.0)
        model = self.models(X, trials, goals, derive(seed, self.name, "estimate", len(history)))[0]
        view: dict[int, dict[str, Outcome]] = {t.number: dict(t.outcomes) for t in trials}
        Z = torch.as_tensor(X)
        sign = goals.sign(goals.objectives[0].outcome)
        named: list[tuple[str, GP, Callable[[float], float]]] = [
            (goals.objectives[0].outcome, model.objective, lambda v: sign * v)
        ]
        for c, gp in zip(goals.constraints, model.constraints, strict=True):
            flip, bound = (1.0 if isinstance(c, AtMost) else -1.0), c.bound
            named.append((c.outcome, gp, lambda v, flip=flip, bound=bound: bound + flip * v))  # type: ignore[misc]
        with torch.no_grad():
            for name, gp, back in named:
                mean, variance = gp.posterior(Z)
                for t, m, v in zip(trials, mean.tolist(), variance.tolist(), strict=True):
                    view[t.number][name] = Outcome(back(m), math.sqrt(v))
        return view


@dataclass(frozen=True)
class BO(FullSpace):
    """A Gaussian process over all parameters with lengthscale priors that scale with the dimension, and log-EI."""

    initial: int | None = setting(None, "quasi-random points first; None: twice the dimension, at most 20")

    name: ClassVar[str] = "bo"
    title: ClassVar[str] = "Plain BO"
    citation: ClassVar[str] = "Hvarfner et al. 2024, Vanilla Bayesian optimization performs great in high dimensions"
    supports: ClassVar[Supports] = Supports(constraints=True)

    def __post_init__(self) -> None:
        self._counts(initial=2)

    def models(self, X: Array, history: Sequence[Trial], goals: Goals, seed: int) -> Sequence[OutcomeModel]:
        from ._ard import fit

        priors = dimension_scaled(X.shape[1])
        return [outcome_model(X, history, goals, lambda X, y, v: fit(X, y, priors, variance=v))]


def dimension_scaled(D: int) -> Priors:
    """BoTorch's default: squared exponential, unit scale, log-normal densities of lengthscales and noise."""
    from ._ard import Priors

    centre, width2 = math.sqrt(2.0) + 0.5 * math.log(D), 3.0

    def penalty(log_l: Array) -> tuple[float, Array]:
        t = log_l - centre
        return float(np.sum(t * t) / (2.0 * width2) + np.sum(log_l)), t / width2 + 1.0

    mode = math.exp(centre - width2)
    return Priors(
        "rbf", (0.025, 1e4), (1.0, 1.0), (1e-4, 2.0), penalty, (-4.0, 1.0), (mode, 4.0 * mode), math.exp(-5.0)
    )


def outcome_model(X: Array, trials: Sequence[Trial], goals: Goals, fit: Fit) -> OutcomeModel:
    """A process for the objective and one for every constraint, by this fit; told standard errors are used."""
    import torch

    from ._gp import OutcomeModel

    def column(value: Callable[[Mapping[str, Outcome]], float], name: str) -> Any:
        sems = [t.outcomes[name].sem for t in trials]
        known = None if any(s is None for s in sems) else np.array([float(s) ** 2 for s in sems if s is not None])
        return fit(X, np.array([value(t.outcomes) for t in trials]), known)

    objective = column(lambda o: float(goals.objective_values(o)[0]), goals.objectives[0].outcome)
    constraints = tuple(
        column(lambda o, i=i: float(goals.violations(o)[i]), c.outcome)  # type: ignore[misc]
        for i, c in enumerate(goals.constraints)
    )
    feasible = np.array([goals.feasible(t.outcomes) for t in trials])
    best: float | None = None
    if feasible.any():  # the model's view of the best: the same as the measured one where there is no noise
        with torch.no_grad():
            best = float(objective.posterior(torch.as_tensor(X))[0].numpy()[feasible].min())
    return OutcomeModel(objective, constraints, best)
