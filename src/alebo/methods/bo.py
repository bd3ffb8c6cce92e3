"""Plain Bayesian optimization in the full space: today's default elsewhere, and what every embedding has to beat."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._seeds import derive, generator
from ..acquisition import maximise_in_box, perturbed
from ..acquisition.maximize import qmc_points
from ..goals import Goals, Outcome
from ..history import History
from ..models import fit_ard
from ..models.ard import typical_lengthscales
from ..models.priors import dense
from ..space import Space
from ._design import initial_points
from ._fitted import Fitted, by_outcome
from ._method import Method, Suggestion, Supports, setting
from ._outcomes import Build, OutcomeModels, fit_outcomes
from ._trust_region import sides

Array: TypeAlias = NDArray[np.float64]

INITIAL = "quasi-random points first; None: twice the dimension, at most 20"
CENTRE = "whether the middle of the space is the first point"
NEAR = (0.2, 0.8)  # sides of the boxes around the best points in which the search also starts
NEARBY = 128  # points in each of them


class FullSpace(Method):
    """What plain BO and the sparse one share: first points, then the largest log expected improvement in the whole cube.

    Constraints multiply the improvement by the probability of being feasible (Gardner et al. 2014); pending points count as
    measured at the model's mean, and a batch is chosen one by one in the same way. The note of a batch's first point keeps
    where the fits ended; the next fits start there.
    """

    initial: int | None
    centre: bool

    @abstractmethod
    def builder(self, D: int) -> Build:
        """What fits the model of one outcome to points of the unit cube (see `fit_outcomes`)."""

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        D, start = space.dimension, len(history)
        out = [Suggestion(x) for x in self._first_points(history, D, q, seed)]
        complete = history.complete
        if len(out) < q and len(complete) < 2:  # all is still being evaluated: more points like the first ones
            extra = qmc_points(D, q - len(out), derive(seed, self.name, "wait", start))
            return [*out, *(Suggestion(2.0 * u - 1.0) for u in extra)]
        if len(out) == q:
            return out
        model = self.surrogate(history, space, goals, seed)
        waiting = np.array([t.x for t in history.pending] + [s.x for s in out]).reshape(-1, D)
        note: dict[str, Any] = {self._remembered: model.packed()}
        if model.compressed:
            note["compressed"] = model.compressed
        while len(out) < q:
            pending = torch.from_numpy(_unit(space, waiting)) if len(waiting) else None
            x = self._maximise(model, pending, derive(seed, self.name, "maximise", start, len(out)))
            out.append(Suggestion(2.0 * x - 1.0, None, note))
            waiting = np.concatenate([waiting, out[-1].x[None]])
            note = {}
        return out

    def _first_points(self, history: History, D: int, q: int, seed: int) -> Array:
        """The first points that are still to be asked, q at most.  -> k x D"""
        size = min(2 * D, 20) if self.initial is None else self.initial
        start = len(history)
        take = min(max(size - (start - len(history.failed)), 0), q)
        ahead = int(self.centre)
        points = 2.0 * initial_points(D, max(start + take - ahead, 0), derive(seed, self.name)) - 1.0
        if self.centre:
            points = np.concatenate([np.zeros((1, D)), points])
        return points[start : start + take]

    @property
    def _remembered(self) -> str:
        """The key of a note under which the next fits find where these ended."""
        return f"{self.name} fit"

    def surrogate(
        self, history: History, space: Space, goals: Goals, seed: int, *, fresh: bool = False, salt: str = "fit"
    ) -> OutcomeModels:
        """The models of every outcome of the completed trials, in the unit cube."""
        trials = history.complete
        return fit_outcomes(
            _unit(space, np.array([t.x for t in trials])),
            trials,
            goals,
            build=self.builder(space.dimension),
            warm=None if fresh else history.last_note(self._remembered).get(self._remembered),
            seed=derive(seed, self.name, salt, len(history)),
        )

    def _maximise(self, model: OutcomeModels, pending: Tensor | None, seed: int) -> Array:
        """The point of the unit cube with the largest improvement, sought everywhere and near the best points.  -> D"""
        X, D = model.Y.numpy(), model.Y.shape[1]
        rng = generator(seed, "near")
        lengthscales = typical_lengthscales(model.objectives[0])
        near = [
            perturbed(X[i], *sides(X[i], length, lengthscales), NEARBY, rng)
            for i in model.ranked()[:2]
            for length in NEAR
        ]
        best, _ = maximise_in_box(
            model.log_ei(pending),
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
        model = self.surrogate(history, space, goals, seed, fresh=fresh)
        models = by_outcome(goals, model.objectives, model.constraints, -1.0)
        what = f"{self.title}'s model of all {space.dimension} coordinates"
        refits = len(model.objectives[0].marginals(model.Y[:1]).mean) == 1
        return Fitted(trials, model.Y.numpy(), partial(_unit, space), models, None, what, refits=refits)

    def estimate(
        self, history: History, space: Space, goals: Goals, seed: int
    ) -> Mapping[int, Mapping[str, Outcome]] | None:
        trials = history.complete
        noisy = any((o.sem or 0.0) > 0.0 for t in trials for o in t.outcomes.values())
        if not noisy or len(trials) < 3 or goals.cost is not None:
            return None
        model = self.surrogate(history, space, goals, seed, salt="estimate")
        return {t.number: {**t.outcomes, **seen} for t, seen in zip(trials, model.estimates(), strict=True)}


@dataclass(frozen=True)
class BO(FullSpace):
    """A Gaussian process over all parameters with lengthscale priors that scale with the dimension, and log-EI."""

    initial: int | None = setting(None, INITIAL)
    centre: bool = setting(False, CENTRE)

    name: ClassVar[str] = "bo"
    title: ClassVar[str] = "Plain BO"
    citation: ClassVar[str] = "Hvarfner et al. 2024, Vanilla Bayesian optimization performs great in high dimensions"
    supports: ClassVar[Supports] = Supports(constraints=True)

    def __post_init__(self) -> None:
        self._counts(initial=2)
        self._flags("centre")

    def builder(self, D: int) -> Build:
        return partial(fit_ard, prior=dense(D))


def _unit(space: Space, X: Array) -> Array:
    """Where the models see points of the cube: as they are evaluated, in the unit cube.  n x D -> n x D"""
    return 0.5 * (space.snap(X) + 1.0)
