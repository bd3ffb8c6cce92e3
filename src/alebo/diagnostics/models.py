"""Which model does the method use, and what does it see of the history?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._seeds import derive, reproducible
from ..geometry import Embedding
from ..goals import Goals
from ..history import History, State, Trial
from ..methods import Method
from ..methods._fitted import Fitted, Predictor
from ..space import Space

Array: TypeAlias = NDArray[np.float64]
LEAST = 8  # completed trials that a model must see to be judged


def fit_models(
    history: History,
    space: Space,
    goals: Goals,
    *,
    method: Method | None = None,
    seed: int = 0,
    fresh: bool = False,
) -> Fitted | None:
    """The models that the method would propose from now; None where it has none or sees too few trials.

    Without a method, points that lie in a linear embedding are modelled as ALEBO does by default.

    Args:
        history: All trials of the run.
        space: Its parameters.
        goals: Its goals.
        method: The method of the run; None where it is not known.
        seed: The seed of the run.
        fresh: Whether to ignore what earlier fits left in the notes.
    """
    with reproducible(derive(seed, "diagnostics")):
        if method is None:
            found = recovered(history, space, goals, seed)
        else:
            found = method.fitted(history, space, goals, seed, fresh=fresh)
    return None if found is None or len(found.trials) < LEAST else found


def without(history: History, numbers: Collection[int]) -> History:
    """The history in which these trials have no outcome: a model does not see them, all else stays as it was."""
    hidden = {n: replace(history[n], state=State.FAILED, outcomes={}) for n in numbers}
    return replace(history, trials=tuple(hidden.get(t.number, t) for t in history))


def recovered(history: History, space: Space, goals: Goals, seed: int) -> Fitted | None:
    """A sampled Mahalanobis model in the linear embedding that the points alone show; None where they show none."""
    found = recovered_embedding(history, space)
    if found is None:
        return None
    embedding, trials, Y = found
    if len(trials) < LEAST:
        return None
    import torch

    from ..models import sample_gp
    from ..models.outcomes import reported_variances

    models = {}
    for outcome in dict.fromkeys(g.outcome for g in (*goals.objectives, *goals.constraints)):
        values = np.array([t.outcomes[outcome].mean for t in trials])
        known = reported_variances([t.outcomes[outcome].sem for t in trials])
        if not is_constant(values):
            made = sample_gp(
                torch.from_numpy(Y),
                torch.from_numpy(values),
                variances=None if known is None else torch.from_numpy(known),
                seed=derive(seed, "diagnostics", outcome),
            )
            models[outcome] = Predictor(made)
    what = f"sampled Mahalanobis model in {embedding.dim} dimensions"
    return Fitted(tuple(trials), Y, embedding.down, models, embedding, what)


def recovered_embedding(history: History, space: Space) -> tuple[Embedding, list[Trial], Array] | None:
    """The linear embedding x = x0 + A y that the trials lie in, and its completed trials.  -> embedding, n trials, n x d

    As many points as dimensions determine A; a grown embedding gives its old points zeros in the new coordinates.
    """
    inside = [t for t in history if t.y is not None]
    d = max((len(t.y) for t in inside if t.y is not None), default=0)
    if d < 1 or d >= space.dimension or len(inside) < d:
        return None
    Y = np.stack([np.pad(t.y, (0, d - len(t.y))) for t in inside if t.y is not None])
    X = np.stack([t.x for t in inside])
    with_origin = len(inside) > d and np.linalg.matrix_rank(np.column_stack([Y, np.ones(len(Y))])) == d + 1
    design = np.column_stack([Y, np.ones(len(Y))]) if with_origin else Y
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    solved, *_ = np.linalg.lstsq(design, X, rcond=None)
    x0 = np.where(np.abs(solved[d]) < 1e-9, 0.0, solved[d]) if with_origin else np.zeros(space.dimension)
    if np.abs(design @ solved - X).max() > 1e-6 or np.abs(x0).max() > 1.0:
        return None  # clipped points, or no linear map
    keep = [i for i, t in enumerate(inside) if t.complete]
    embedding = Embedding(np.array(solved[:d].T, dtype=float), np.asarray(x0, dtype=float))
    return embedding, [inside[i] for i in keep], Y[keep]


def is_constant(values: Array) -> bool:
    """Whether an outcome never changes, so that there is nothing to model.  n"""
    return len(values) == 0 or float(np.ptp(values)) <= 1e-12 * max(1.0, float(np.abs(values).max()))
