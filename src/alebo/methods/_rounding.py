"""Whole numbers and categories: the search goes on among the points that can be evaluated."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._seeds import generator
from ..acquisition import Acquisition, evaluate
from ._view import EmbeddedView

Array: TypeAlias = NDArray[np.float64]

ROUNDS, PARENTS, CHILDREN = 4, 8, 100  # of the search among rounded points


def rounded(
    seen: EmbeddedView,
    acquisition: Acquisition,
    points: Array,  # k x d_e, where the acquisition is large
    best: Array,  # b x D, the best points evaluated
    seed: int,
) -> tuple[Array, float]:
    """The most promising point that can be evaluated, new if any is, and its acquisition.  -> D, ()

    Rounding moves a point off the subspace, away from where the acquisition is large. So the search goes on among rounded
    points, from the most promising ones and the best evaluated: a step along the subspace, or a new value of one coordinate.
    """
    rng = generator(seed, "rounded")
    space, embedding, half = seen.space, seen.embedding, CHILDREN // 2
    X = space.snap(np.clip(embedding.up(points), -1.0, 1.0))
    worth = evaluate(acquisition, embedding.down(X))
    for _ in range(ROUNDS if space.fidelity is None else 0):
        parents = np.vstack([X[np.argsort(-worth)[:PARENTS]], best])
        children = parents[rng.integers(len(parents), size=CHILDREN)]
        steps = rng.standard_normal((half, embedding.dim))
        steps *= (10.0 ** rng.uniform(-1.5, 0.7, half) / np.linalg.norm(steps, axis=1))[:, None]
        children[:half] += steps @ embedding.A.T
        where = rng.integers(space.dimension, size=half)
        children[np.arange(half, CHILDREN), where] = np.where(space.one_hot[where], 2.0, rng.uniform(-1.0, 1.0, half))
        children = space.snap(children)
        X, worth = np.vstack([X, children]), np.append(worth, evaluate(acquisition, embedding.down(children)))
    known = [t.params for t in seen.history]
    chosen, rank = 0, (False, False, -math.inf)
    for i in np.argsort(-worth):
        params = space.decode(X[i])
        now = (space.feasible(params), params not in known, float(worth[i]))
        if now > rank:
            chosen, rank = int(i), now
        if now[0] and now[1]:
            break
    return X[chosen], float(worth[chosen])
