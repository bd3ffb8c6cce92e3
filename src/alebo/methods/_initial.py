"""Lines 2 and 3 of Algorithm 1: points before there is a model."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._seeds import derive
from ._view import EmbeddedView

Array: TypeAlias = NDArray[np.float64]


def initial_point(seen: EmbeddedView, number: int, of: int, *, centre: bool) -> Array:
    """The embedded point with this number of `of` uniform ones; with `centre` the first is the polytope's centre.  -> d_e"""
    if number > 0 or not centre:
        points: Array = seen.domain.sample(max(of, number + 1), derive(seen.seed, "initial"))
        return np.asarray(points[number])
    y: Array = seen.domain.centre.copy()
    if seen.space.fidelity is not None:
        y[0] = 1.0  # the first look is careful
    return y
