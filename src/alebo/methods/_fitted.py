"""What a method's models look like from outside: predictions of each outcome in the user's units.

Diagnostics, plots and the report judge the model that a method really uses. They ask the method for it (`Method.fitted`)
and know nothing else about it than what stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from ..geometry import Embedding
from ..goals import Goals
from ..history import Trial
from ..models.surrogate import Surrogate, in_units

if TYPE_CHECKING:
    from ._outcomes import OutcomeModels
    from ._view import EmbeddedView

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Predictor:
    """A fitted model of one outcome: value = sign * (the model's value) + offset."""

    model: Surrogate
    sign: float = 1.0
    offset: float = 0.0

    def predict(self, P: Array) -> tuple[Array, Array]:
        """Mean and variance of the noiseless outcome at the model's own coordinates.  k x c -> k, k"""
        parts = [rows for rows in np.array_split(np.asarray(P, dtype=float), max(1, len(P) // 250)) if len(rows)]
        with torch.no_grad():
            both = [in_units(self.model, torch.from_numpy(np.ascontiguousarray(rows))) for rows in parts]
        if not both:
            return np.zeros(0), np.zeros(0)
        mean, sd = (np.concatenate([pair[i].numpy() for pair in both]) for i in (0, 1))
        return self.sign * mean + self.offset, np.square(sd)

    @property
    def targets(self) -> Array:
        """What the model was fitted to, in the user's units: the measured values, compressed where the method does so.  -> n"""
        v: Array = np.asarray(self.model.v)
        return self.sign * (self.model.shift + self.model.scale * v) + self.offset

    @property
    def noise(self) -> float:
        """The typical variance of a measurement, as the model has it."""
        return float(self.model.noise.mean()) * float(self.model.scale) ** 2

    def leave_one_out(self) -> tuple[Array, Array]:
        """Mean and standard deviation of each measurement as the others predict it, the kernel kept.  -> n, n"""
        mean, sd = (t.detach().numpy() for t in self.model.leave_one_out())
        return self.sign * mean + self.offset, sd


@dataclass(frozen=True, eq=False)
class Fitted:
    """The models from which a method would propose next, and where they see the completed trials."""

    trials: tuple[Trial, ...]  # n, those that the models were fitted to
    P: Array  # n x c, the models' own coordinates of them
    see: Callable[[Array], Array]  # m x D points of the cube -> m x c
    models: Mapping[str, Predictor]  # by outcome
    embedding: Embedding | None = None  # None: the coordinates are those of the whole cube
    what: str = "model"  # in words, for people
    refits: bool = True  # whether it is quick enough to be fitted again without some of the points

    def values(self, outcome: str) -> Array:
        """The measured values of an outcome.  -> n"""
        return np.array([t.outcomes[outcome].mean for t in self.trials])


def by_outcome(
    goals: Goals, objectives: Sequence[Surrogate], constraints: Sequence[Surrogate], flip: float
) -> dict[str, Predictor]:
    """Models of the objectives (times `flip`, minimised) and of the violations g <= 0, as predictors of the outcomes."""
    out: dict[str, Predictor] = {}
    for goal, model in zip(goals.objectives, objectives, strict=True):
        out.setdefault(goal.outcome, Predictor(model, flip * goals.sign(goal.outcome)))
    for c, model in zip(goals.constraints, constraints, strict=True):
        out.setdefault(c.outcome, Predictor(model, c.sign, c.bound))
    return out


def in_embedding(seen: EmbeddedView, found: OutcomeModels, kind: str) -> Fitted:
    """The models of ALEBO in its present embedding; `kind` says how their metric was found."""
    models = by_outcome(seen.goals, found.objectives, found.constraints, -1.0)
    kind = kind if kind == "Laplace" else kind.lower()
    what = f"{kind} Mahalanobis model in {seen.embedding.dim} dimensions"
    return Fitted(seen.trials, seen.Y, seen.embedding.down, models, seen.embedding, what)
