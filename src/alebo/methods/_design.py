"""First points: quasi-random designs that can be extended without changing the points they already have."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from .._seeds import generator

Array: TypeAlias = NDArray[np.float64]


def sobol_points(D: int, n: int, seed: int) -> Array:
    """The first `n` points of the scrambled sequence in the cube; beyond its 21,201 dimensions, uniform draws.  -> n x D"""
    rng = generator(seed, "sobol")
    if D > qmc.Sobol.MAXDIM:
        return np.stack([generator(seed, "sobol", i).uniform(-1, 1, D) for i in range(n)])
    unit = qmc.Sobol(D, scramble=True, rng=rng).random_base2(max(0, int(np.ceil(np.log2(max(n, 1))))))
    points: Array = 2.0 * unit[:n] - 1.0
    return points


def initial_points(D: int, n: int, seed: int) -> Array:
    """A design that can be extended: the first n points of one scrambled Sobol sequence in the unit cube.  -> n x D"""
    points: Array = 0.5 * (sobol_points(D, n, seed) + 1.0) if n > 0 else np.empty((0, D))
    return points
