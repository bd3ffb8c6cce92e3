"""The base functions: low-dimensional problems before anything is embedded, rotated, shifted or made noisy."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from alebo import AtMost, Categorical, Float, Goals, Int, Minimize, Space

from ._problem import Problem

Array: TypeAlias = NDArray[np.float64]

BRANIN_OPTIMUM = 0.39788735772973816
HARTMANN6_OPTIMUM = -3.3223680114155156
GRAMACY_OPTIMUM = 0.5997880520100676

_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def branin_value(x: Array) -> float:
    u, v = float(x[0]), float(x[1])
    bowl = v - 5.1 / (4 * math.pi**2) * u**2 + 5 / math.pi * u - 6
    return bowl**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(u) + 10


def hartmann6_value(x: Array) -> float:
    return -float(_ALPHA @ np.exp(-np.sum(_A * (np.asarray(x, dtype=float) - _P) ** 2, axis=1)))


def gramacy_value(x: Array) -> dict[str, float]:
    u, v = float(x[0]), float(x[1])
    return {
        "sum": u + v,
        "wave": 1.5 - u - 2 * v - 0.5 * math.sin(2 * math.pi * (u**2 - 2 * v)),
        "disc": u**2 + v**2 - 1.5,
    }


def levy_value(x: Array) -> float:
    w = 1.0 + (np.asarray(x, dtype=float) - 1.0) / 4.0
    middle = np.sum((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2))
    return float(math.sin(math.pi * w[0]) ** 2 + middle + (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2))


def ackley_value(x: Array) -> float:
    x = np.asarray(x, dtype=float)
    waves = math.exp(float(np.mean(np.cos(2 * math.pi * x))))
    return -20.0 * math.exp(-0.2 * math.sqrt(float(np.mean(x**2)))) - waves + 20.0 + math.e


def rosenbrock_value(x: Array) -> float:
    x = np.asarray(x, dtype=float)
    return float(np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2))


def branin_currin_value(x: Array) -> dict[str, float]:
    u, v = float(x[0]), float(x[1])
    factor = 1.0 - math.exp(-1.0 / (2.0 * v)) if v > 0 else 1.0
    ratio = (2300 * u**3 + 1900 * u**2 + 2092 * u + 60) / (100 * u**3 + 500 * u**2 + 4 * u + 20)
    return {"branin": branin_value(np.array([15.0 * u - 5.0, 15.0 * v])), "currin": factor * ratio}


def branin() -> Problem:
    """Branin: three equal optima in two dimensions."""
    points = np.array([[-math.pi, 12.275], [math.pi, 2.275], [9.42477796076938, 2.475]])
    return Problem(
        "branin",
        Space.from_bounds([(-5, 10), (0, 15)]),
        branin_value,
        optimum=BRANIN_OPTIMUM,
        optimisers=points,
        budget=50,
        active=2,
    )


def hartmann6() -> Problem:
    """Hartmann6: four wells in six dimensions."""
    point = [0.20168952, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730054]
    return Problem(
        "hartmann6",
        Space.from_bounds([(0, 1)] * 6),
        hartmann6_value,
        optimum=HARTMANN6_OPTIMUM,
        optimisers=np.array([point]),
        budget=200,
        active=6,
    )


def gramacy() -> Problem:
    """Gramacy et al. 2016: a linear objective under two constraints, one of them wavy."""
    return Problem(
        "gramacy",
        Space.from_bounds([(0, 1), (0, 1)]),
        gramacy_value,
        Goals([Minimize("sum"), AtMost("wave", 0.0), AtMost("disc", 0.0)]),
        optimum=GRAMACY_OPTIMUM,
        optimisers=np.array([[0.195122683, 0.404665370]]),
        budget=50,
        active=2,
    )


def levy(d: int) -> Problem:
    """Levy in d dimensions, all of which matter."""
    return Problem(
        f"levy{d}",
        Space.from_bounds([(-10, 10)] * d),
        levy_value,
        optimum=0.0,
        optimisers=np.ones((1, d)),
        budget=200,
        active=d,
    )


def ackley(d: int) -> Problem:
    """Ackley in d dimensions, all of which matter, in the box [-5, 10]^d that high-dimensional comparisons use."""
    return Problem(
        f"ackley{d}",
        Space.from_bounds([(-5, 10)] * d),
        ackley_value,
        optimum=0.0,
        optimisers=np.zeros((1, d)),
        budget=200,
        active=d,
    )


def rosenbrock(d: int) -> Problem:
    """Rosenbrock's valley in d dimensions, all of which matter."""
    return Problem(
        f"rosenbrock{d}",
        Space.from_bounds([(-5, 10)] * d),
        rosenbrock_value,
        optimum=0.0,
        optimisers=np.ones((1, d)),
        budget=200,
        active=d,
    )


def branin_currin() -> Problem:
    """Branin against Currin: two objectives, judged by the hypervolume below the reference (18, 6)."""
    return Problem(
        "branin-currin",
        Space.from_bounds([(0, 1), (0, 1)]),
        branin_currin_value,
        Goals([Minimize("branin", reference=18.0), Minimize("currin", reference=6.0)]),
        optimum=59.36011874867746,  # known to this many digits from a dense front (BoTorch states the same)
        budget=60,
        active=2,
    )


def mixed() -> Problem:
    """Hartmann6 of four real and two whole numbers, and two categories that matter, among 55 parameters (70 encoded)."""
    space = Space(
        [Float(f"x{i}", 0.0, 1.0) for i in range(40)]
        + [Int(f"n{i}", 0, 10) for i in range(10)]
        + [Categorical(f"c{i}", ["a", "b", "c", "d"]) for i in range(5)]
    )
    return Problem("mixed-70", space, mixed_value, optimum=None, budget=100, active=14)


def mixed_value(x: Any) -> float:
    """Numbers first, then categories: -3.32 at best, 0.5 and 0.3 more for the wrong categories."""
    point = np.array([x[4], x[12], x[23], x[37], x[42] / 10.0, x[47] / 10.0], dtype=np.float64)
    wrong = 0.5 * (x[51] != "c") + 0.3 * (x[53] not in ("a", "d"))
    return hartmann6_value(point) + float(wrong)
