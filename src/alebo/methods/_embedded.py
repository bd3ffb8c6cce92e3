"""What the embedding methods with a stationary kernel share: a model of embedded points and a proposal in a box."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._errors import InputError
from .._seeds import derive, generator
from ..acquisition import LogEI, Through, maximise_in_box
from ..goals import Goals
from ..history import State, Trial
from ..models import fit_ard
from ..models.priors import embedded
from ..space import Space
from ._method import Method, Suggestion, setting
from ._outcomes import OutcomeModels, fit_outcomes

Array: TypeAlias = NDArray[np.float64]
Features: TypeAlias = Callable[[Tensor], Tensor]  # m x d_e -> m x f, about [-1, 1]
Draw: TypeAlias = Callable[[int], tuple[Array, Array]]  # a seed -> a random x (D) and its y (d_e)

DEFAULT_DIM = 10  # where the user says nothing about the size of the embedding


class Box(NamedTuple):
    """An embedding y in [-side, side]^dim, the way up into the cube, and the features that its kernel compares."""

    dim: int
    side: float
    up: Callable[[Array], Array]  # d_e -> D
    features: Features


@dataclass(frozen=True)
class Embedded(Method):
    """A method that searches an embedding of `dim` coordinates, of which every setting is a count."""

    dim: int | None = setting(None, "of the embedding, d_e; None: 10")
    initial: int = setting(10, "random points first")

    def __post_init__(self) -> None:
        self._counts(**{setting.name: 1 for setting in fields(self)})

    def check(self, space: Space, goals: Goals) -> None:
        super().check(space, goals)
        embedding_size(self.dim, space.dimension)


def embedding_size(dim: int | None, D: int) -> int:
    """The size that was asked for, checked against the number of coordinates; DEFAULT_DIM where none was."""
    if dim is None:
        return min(DEFAULT_DIM, D)
    if dim > D:
        raise InputError(
            f"`1 <= dim <= D` must hold; got dim={dim}, D={D}. Choose a dim of at most the number of coordinates."
        )
    return dim


def in_embedding(trials: Sequence[Trial], d: int) -> list[Trial]:
    """The trials that have a point in an embedding of this size."""
    return [t for t in trials if t.y is not None and len(t.y) == d]


def coordinates(trials: Sequence[Trial]) -> Tensor:
    """The stored embedded points.  -> n x d_e"""
    return torch.from_numpy(np.stack([np.asarray(t.y) for t in trials]))


def embedded_models(trials: Sequence[Trial], goals: Goals, F: Tensor, *, seed: int = 0) -> OutcomeModels:
    """A process per outcome of completed trials on their features `F` (n x f)."""
    return fit_outcomes(F.numpy(), trials, goals, build=partial(fit_ard, prior=embedded(F.shape[1])), seed=seed)


def embedded_log_ei(trials: Sequence[Trial], goals: Goals, F: Tensor, *, seed: int = 0) -> LogEI:
    """Constrained log-EI of features, from trials with features `F` (n x f); pending and failed trials are kept away from."""

    def rows(state: State) -> list[int]:
        return [i for i, t in enumerate(trials) if t.state is state]

    complete = rows(State.COMPLETE)
    model = embedded_models([trials[i] for i in complete], goals, F[complete], seed=seed)
    failed = [i for i in rows(State.FAILED) if not trials[i].withdrawn]
    return model.log_ei(F[rows(State.PENDING)], F[failed])


def best_embedded(trials: Sequence[Trial], goals: Goals, count: int = 3) -> Array:
    """The embedded points of the best completed trials.  -> count x d_e"""
    complete = [t for t in trials if t.state is State.COMPLETE]
    ranked = sorted(
        complete, key=lambda t: (not goals.feasible(t.outcomes), float(goals.objective_values(t.outcomes)[0]))
    )
    return coordinates(ranked[:count]).numpy()


def around(points: Array, scale: Array | float, seed: int) -> Array:
    """Twenty points near each of these, at two distances in units of `scale`.  k x d -> 20 k x d"""
    rng = generator(seed, "around")
    steps = rng.choice([0.01, 0.1], size=(20, len(points), 1)) * scale
    near: Array = (points + steps * rng.standard_normal((20, *points.shape))).reshape(-1, points.shape[1])
    return near


def propose_embedded(
    trials: Sequence[Trial], goals: Goals, features: Features, side: float, d: int, seed: int
) -> tuple[Array, float]:
    """The point of [-side, side]^d with the largest log-EI, and its value; looked for also around the best points so far."""
    acquisition = Through(embedded_log_ei(trials, goals, features(coordinates(trials)), seed=seed), features)
    ends = np.full(d, side)
    extra = around(best_embedded(trials, goals), 2.0 * ends, seed)
    return maximise_in_box(acquisition, -ends, ends, seed=seed, extra=extra, raw=512)


def is_repeated(x: Array, trials: Sequence[Trial]) -> bool:
    """Whether this point of the cube was proposed before: measuring it again would teach nothing."""
    return any(float(np.abs(t.x - x).max()) < 1e-9 for t in trials)


def first_new(draw: Draw, trials: Sequence[Trial], seed: int) -> tuple[Array, Array]:
    """The first (x, y) that `draw` gives for ten seeds that was not proposed before; the tenth at last."""
    for k in range(10):
        x, y = draw(derive(seed, "new", k))
        if not is_repeated(x, trials):
            break
    return x, y


def uniform_draw(side: float, d: int, up: Callable[[Array], Array]) -> Draw:
    """Uniform points of [-side, side]^d and where they lie in the cube."""

    def draw(seed: int) -> tuple[Array, Array]:
        y = generator(seed, "initial").uniform(-side, side, d)
        return up(y), y

    return draw


def next_embedded(
    trials: Sequence[Trial],
    known: Sequence[Trial],
    goals: Goals,
    box: Box,
    *,
    ready: bool,
    seed: int,
    **note: Any,
) -> Suggestion:
    """The next point of an embedding that is a box: where log-EI is largest, or a random one.

    Args:
        trials: those that lie in the embedding.
        known: those whose points are not to be proposed again.
        goals: what is wanted of their outcomes.
        box: the embedding.
        ready: whether the model proposes; else, and where it would repeat a point, the proposal is random.
        seed: of this proposal.
        note: what the note says beside who proposed the point.
    """
    if ready:
        y, log_ei = propose_embedded(trials, goals, box.features, box.side, box.dim, seed)
        if not is_repeated(box.up(y), known):
            return Suggestion(box.up(y), y, {**note, "by": "model", "log_ei": round(log_ei, 4)})
    x, y = first_new(uniform_draw(box.side, box.dim, box.up), known, seed)
    return Suggestion(x, y, {**note, "by": "random"})
