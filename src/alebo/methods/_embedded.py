"""What the embedding methods with a stationary kernel share: a model of embedded points and a proposal in a box."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._errors import InputError
from .._seeds import derive, generator
from ..goals import Goals
from ..history import State, Trial
from ..space import Space
from ._gp import OutcomeModel, fit_outcomes, maximise_in_box
from ._method import Method, setting

Array: TypeAlias = NDArray[np.float64]
Features: TypeAlias = Callable[[Tensor], Tensor]  # m x d_e -> m x f, about [-1, 1]

DEFAULT_DIM = 10  # where the user says nothing about the size of the embedding


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


def embedded_model(trials: Sequence[Trial], goals: Goals, F: Tensor, *, seed: int = 0) -> OutcomeModel:
    """A process per outcome on the trials' features `F` (n x f); pending ones are believed, failed ones avoided."""

    def rows(state: State) -> list[int]:
        return [i for i, t in enumerate(trials) if t.state is state]

    complete = rows(State.COMPLETE)
    model = fit_outcomes(F[complete].numpy(), [trials[i] for i in complete], goals, seed=seed)
    if failed := rows(State.FAILED):
        model = model.avoid(F[failed])
    if pending := rows(State.PENDING):
        model = model.believe(F[pending])
    return model


def coordinates(trials: Sequence[Trial]) -> Tensor:
    """The stored embedded points.  -> n x d_e"""
    return torch.from_numpy(np.stack([np.asarray(t.y) for t in trials]))


def maximise_embedded(
    model: OutcomeModel,
    trials: Sequence[Trial],
    goals: Goals,
    features: Features,
    lower: Array,
    upper: Array,
    seed: int,
) -> tuple[Array, float]:
    """The embedded point of largest log EI in the box, looked for also around the best points so far."""
    complete = [t for t in trials if t.state is State.COMPLETE]
    ranked = sorted(
        complete, key=lambda t: (not goals.feasible(t.outcomes), float(goals.objective_values(t.outcomes)[0]))
    )
    top = coordinates(ranked[:3]).numpy()
    rng = generator(seed, "around")
    steps = rng.choice([0.01, 0.1], size=(20, len(top), 1)) * (upper - lower)
    around = top + steps * rng.standard_normal((20, *top.shape))
    return maximise_in_box(
        lambda Y: model(features(Y)), lower, upper, seed=seed, extra=around.reshape(-1, len(lower)), raw=512
    )


def is_repeated(x: Array, trials: Sequence[Trial]) -> bool:
    """Whether this point of the cube was proposed before: measuring it again would teach nothing."""
    return any(float(np.abs(t.x - x).max()) < 1e-9 for t in trials)


def first_new(draw: Callable[[int], tuple[Array, Array]], trials: Sequence[Trial], seed: int) -> tuple[Array, Array]:
    """The first (x, y) that `draw` gives for ten seeds that was not proposed before; the tenth at last."""
    for k in range(10):
        x, y = draw(derive(seed, "new", k))
        if not is_repeated(x, trials):
            break
    return x, y
