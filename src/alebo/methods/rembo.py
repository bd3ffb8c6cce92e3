"""REMBO: Gaussian embeddings with a box and clipping, several in turn because any one of them may fail."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._seeds import derive, generator
from ..goals import Goals
from ..history import History, State, Trial
from ..space import Space
from ._embedded import Box, Embedded, embedding_size, in_embedding, next_embedded
from ._method import Suggestion, Supports, setting

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class REMBO(Embedded):
    """Bayesian optimization of f(clip(A y)), |y_i| <= sqrt(d_e), with `projections` matrices A in rotation.

    The projections share no data. Nearly every y is clipped (see `interior_share`), which is what the kernels of
    REMBO-phi and REMBO-gamma repair and what ALEBO avoids by searching the unclipped polytope only.
    """

    initial: int = setting(2, "random points for each projection (paper, Sec. S8)")
    projections: int = setting(4, "matrices in rotation, k")

    name: ClassVar[str] = "rembo"
    title: ClassVar[str] = "REMBO"
    citation: ClassVar[str] = (
        "Wang, Hutter, Zoghi, Matheson, de Freitas 2016, Bayesian Optimization in a Billion Dimensions via Random "
        "Embeddings, JAIR 55"
    )
    supports: ClassVar[Supports] = Supports(constraints=True, batches=True)

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        d = embedding_size(self.dim, space.dimension)
        side = math.sqrt(d)
        everything = list(history)
        out: list[Suggestion] = []
        for _ in range(q):
            number = len(history) + len(out)
            turn = number % self.projections
            here = derive(seed, "ask", number)
            A = projection(space.dimension, d, derive(seed, "rembo", turn))
            box = Box(d, side, partial(clip_up, A), lambda Y: Y / side)
            trials = [t for t in in_embedding(everything, d) if t.note.get("projection") == turn]
            started = sum(t.state is not State.FAILED for t in trials)
            ready = started >= self.initial and sum(t.complete for t in trials) >= 2
            out.append(next_embedded(trials, trials, goals, box, ready=ready, seed=here, projection=turn))
            everything.append(Trial(number, {}, out[-1].x, out[-1].y, note=out[-1].note))
        return out


def projection(D: int, dim: int, seed: int) -> Array:
    """REMBO's matrix: independent N(0, 1) entries that map up (geometry.gaussian draws the map down).  -> D x d_e"""
    A: Array = generator(seed, "rembo").standard_normal((D, dim))
    return A


def isotropic(D: int, dim: int, seed: int) -> Array:
    """The matrix that Binois et al. prefer: orthogonal columns and rows of length one, so that no parameter moves further
    than another. From Gaussian entries, columns and rows made so by turns.  -> D x d_e
    """
    A: Array = generator(seed, "isotropic").standard_normal((D, dim))
    for _ in range(30):
        A = np.linalg.qr(A)[0]
        A /= np.linalg.norm(A, axis=1, keepdims=True)
    return A


def clip_up(A: Array, Y: Array) -> Array:
    """phi(y): the nearest point of the cube to A y.  ... x d_e -> ... x D"""
    return np.clip(Y @ A.T, -1.0, 1.0)


def interior_share(D: int, dim: int, samples: int, seed: int) -> float:
    """The share of REMBO's box that needs no clipping, over draws of y and of A together (paper, Fig. 2)."""
    rng = generator(seed, "interior")
    inside = 0
    for _ in range(samples):
        A = rng.standard_normal((D, dim))
        y = rng.uniform(-math.sqrt(dim), math.sqrt(dim), dim)
        inside += bool(np.abs(A @ y).max() <= 1.0)
    return inside / samples
