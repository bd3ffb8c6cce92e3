"""Lines 2 and 3 of Algorithm 1: points before there is a model."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._errors import InputError
from .._seeds import derive, generator
from ._view import EmbeddedView

Array: TypeAlias = NDArray[np.float64]

DESIGNS = ("uniform", "projected")
DRAWS = 2  # of [-b, b]^D for each point wanted


def initial_point(seen: EmbeddedView, number: int, of: int, *, centre: bool, design: str = "uniform") -> Array:
    """The embedded point with this number of `of` by the design; with `centre` the first is the polytope's centre.  -> d_e"""
    if number > 0 or not centre:
        n = max(of, number + 1)
        points = projected(seen, n) if design == "projected" else seen.domain.sample(n, derive(seen.seed, "initial"))
        return np.asarray(points[number])
    y: Array = seen.domain.centre.copy()
    if seen.space.fidelity is not None:
        y[0] = 1.0  # the first look is careful
    return y


def projected(seen: EmbeddedView, n: int) -> Array:
    """The first points of the original implementation: uniform draws of [-b, b]^D, projected to the subspace.  -> n x d_e

    b is 16 at first, and halved until n of 2 n projections lie inside the polytope. So they gather around its centre, where
    uniform points of a polytope of many dimensions lie near its surface. (Of a thousand draws n lie inside with a larger b,
    and those are nearly uniform.)
    """
    rng, b = generator(seen.seed, "projected"), 16.0
    while b > 1e-6:
        Y = seen.embedding.down(rng.uniform(-b, b, (DRAWS * n, seen.space.dimension)))
        inside = Y[seen.domain.contains(Y)]
        if len(inside) >= n:
            return np.asarray(inside[:n])
        b /= 2.0
    raise InputError(
        "Projected first points gather around the middle of the space, which the linear constraints forbid here. "
        'Use design="uniform".'
    )
