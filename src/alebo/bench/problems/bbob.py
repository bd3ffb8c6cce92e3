"""Five functions of the BBOB suite (Hansen et al. 2009) in 100 dimensions, all active: one of each of its five groups.

Instance 1 of each, from the package `ioh` (IOHexperimenter, BSD licence). The optimum is known; it is not in the middle.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from alebo import Goals, InputError, Minimize, MissingPartError, Space

from ._problem import Problem

# number -> group: separable, low conditioning, high conditioning, multi-modal with and without global structure
FUNCTIONS = {2: "Ellipsoid", 8: "Rosenbrock", 12: "Bent cigar", 17: "Schaffer F7", 24: "Lunacek bi-Rastrigin"}


def bbob(function: int, D: int = 100) -> Problem:
    """Function `function` of the suite, instance 1, in [-5, 5]^D."""
    try:
        import ioh
    except ImportError:
        raise MissingPartError(
            'The BBOB functions are in the package ioh, which is not installed. Run: pip install "alebo[bbob]"'
        ) from None
    made = ioh.get_problem(function, instance=1, dimension=D, problem_class=ioh.ProblemClass.BBOB)

    def evaluate(x: ArrayLike) -> float:
        point = np.asarray(x, dtype=float)
        if point.shape != (D,):
            raise InputError(f"BBOB's function {function} takes {D} numbers; got shape {point.shape}.")
        return float(made(point))

    return Problem(
        f"bbob-f{function}-{D}",
        Space.from_bounds([(-5.0, 5.0)] * D),
        evaluate,
        Goals(Minimize("value")),
        optimum=float(made.optimum.y),
        optimisers=np.array([made.optimum.x]),
        budget=200,
        active=D,
        about=f"BBOB f{function}, {FUNCTIONS.get(function, made.meta_data.name)}, instance 1.",
    )


f2, f8, f12, f17, f24 = (partial(bbob, number) for number in FUNCTIONS)
