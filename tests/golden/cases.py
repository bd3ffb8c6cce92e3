"""The runs whose proposals are recorded: a name, and a function from nothing to the points of the cube."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import alebo
from alebo.methods import METHODS, Method

Array = NDArray[np.float64]
Outcomes = Callable[[Array, dict[str, Any], int], Any]  # cube point, parameters, number of the trial -> what is told

_H_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_H_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def branin(u: Array) -> float:
    """Branin's function of two numbers in [-1, 1]."""
    a, b = 2.5 + 7.5 * u[0], 7.5 + 7.5 * u[1]
    bend = b - 5.1 / (4 * math.pi**2) * a**2 + 5 / math.pi * a - 6
    return float(bend**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10)


def hartmann(u: Array) -> float:
    """Hartmann6 of six numbers in [-1, 1]."""
    v = 0.5 * (u[:6] + 1.0)
    return float(-np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-np.sum(_H_A * (v - _H_P) ** 2, axis=1)))


def gramacy(u: Array) -> dict[str, float]:
    """Gramacy's constrained problem of two numbers in [-1, 1]."""
    a, b = 0.5 * (u[:2] + 1.0)
    first = 1.5 - a - 2 * b - 0.5 * math.sin(2 * math.pi * (a * a - 2 * b))
    return {"loss": float(a + b), "first": float(first), "second": float(a * a + b * b - 1.5)}


def cube(D: int) -> alebo.Space:
    return alebo.Space.from_bounds([(-1.0, 1.0)] * D)


def run(
    method: Method | None,
    space: alebo.Space,
    f: Outcomes,
    asks: int,
    *,
    goals: Any = None,
    q: int = 1,
    lag: int = 0,
    seed: int = 5,
    budget: int | None = None,
    before: Callable[[alebo.Optimizer], None] | None = None,
) -> Array:
    """The points of `asks` asks of q each; outcomes come `lag` batches late.  -> asks q x D"""
    opt = alebo.Optimizer(
        space, goals or alebo.Minimize("loss"), method=method or alebo.ALEBO(), seed=seed, budget=budget
    )
    if before is not None:
        before(opt)
    first, waiting = len(opt.history), []
    for _ in range(asks):
        waiting.append(opt.ask(q))
        if len(waiting) > lag:
            for t in waiting.pop(0):
                if t.number % 7 == 6 and q > 1:
                    opt.fail(t.number, "lost")
                else:
                    opt.tell(t.number, f(t.x, t.params, t.number))
    return np.stack([t.x for t in opt.history.trials[first:]])


def _noise(number: int, scale: float) -> float:
    return scale * float(np.random.default_rng(number).standard_normal())


def _mixed() -> alebo.Space:
    return alebo.Space(
        [
            *[alebo.Float(f"f{i}", 0.0, 1.0) for i in range(12)],
            *[alebo.Int(f"i{i}", 1, 9) for i in range(4)],
            alebo.Float("rate", 1e-4, 1.0, log=True),
            alebo.Categorical("kind", ["a", "b", "c"]),
        ],
        [alebo.LinearConstraint({"f0": 1.0, "f1": 1.0}, 1.5)],
    )


def _mixed_value(x: Array, p: dict[str, Any], number: int) -> float:
    return float(
        (p["f3"] - 0.3) ** 2 + 0.05 * abs(p["i1"] - 6) + {"a": 0.2, "b": 0.0, "c": 0.5}[p["kind"]] + 0.1 * p["f0"]
    )


def _with_fidelity(D: int) -> alebo.Space:
    return alebo.Space([alebo.Fidelity("level", 0.1, 1.0), *[alebo.Float(f"f{i}", -1.0, 1.0) for i in range(D)]])


def _old_data(opt: alebo.Optimizer) -> None:
    for X in np.random.default_rng(1).uniform(-1, 1, (6, opt.space.dimension)):
        opt.tell(opt.space.decode(X), branin(X[[3, 7]]))


def _bowl(x: Array, p: dict[str, Any], number: int) -> float:
    return float((x[3] - 0.4) ** 2 + 2.0 * (x[7] + 0.3) ** 2 + 0.3 * x[3] * x[7])


def _briefly(name: str, settings: dict[str, Any], initial: int) -> Array:
    return run(METHODS[name](**settings), cube(20), _bowl, initial + 8)


CASES: dict[str, Callable[[], Array]] = {
    "branin-100": lambda: run(None, cube(100), lambda x, p, n: branin(x[[17, 60]]), 20, budget=50),
    "hartmann6-1000": lambda: run(None, cube(1000), lambda x, p, n: hartmann(x[100:700:100]), 14, budget=200),
    "growing": lambda: run(None, cube(30), lambda x, p, n: float(np.sum((x[:8] - 0.3) ** 2)), 30, budget=40, seed=1),
    "gramacy": lambda: run(
        None,
        cube(60),
        lambda x, p, n: gramacy(x[[5, 40]]),
        20,
        goals=[alebo.Minimize("loss"), alebo.AtMost("first", 0.0), alebo.AtMost("second", 0.0)],
        budget=50,
    ),
    "two-objectives": lambda: run(
        None,
        cube(30),
        lambda x, p, n: {"a": branin(x[[3, 4]]), "b": -hartmann(x[3:9])},
        14,
        goals=[alebo.Minimize("a"), alebo.Maximize("b")],
    ),
    "mixed": lambda: run(None, _mixed(), _mixed_value, 20, budget=40),
    "batches": lambda: run(None, cube(50), lambda x, p, n: hartmann(x[10:16]), 6, q=4, lag=1, budget=60),
    "told-noise": lambda: run(
        None, cube(50), lambda x, p, n: (hartmann(x[10:16]) + _noise(n, 0.2), 0.2 if n % 4 else None), 20, budget=50
    ),
    "inferred-noise": lambda: run(
        None, cube(50), lambda x, p, n: branin(x[[10, 30]]) / 30.0 + _noise(n, 0.8), 28, budget=40
    ),
    "fidelity": lambda: run(
        None, _with_fidelity(30), lambda x, p, n: branin(x[[5, 9]]) + 20.0 * (1.0 - p["level"]), 18, budget=30
    ),
    "cost": lambda: run(
        None,
        cube(30),
        lambda x, p, n: {"loss": branin(x[[5, 9]]), "seconds": 2.0 + float(x[0])},
        16,
        goals=[alebo.Minimize("loss"), alebo.Cost("seconds")],
    ),
    "old-data": lambda: run(None, cube(40), lambda x, p, n: branin(x[[3, 7]]), 16, before=_old_data, budget=40),
    "settled": lambda: run(None, cube(20), _bowl, 20, budget=20),
    "paper": lambda: run(alebo.ALEBO.paper(4), cube(100), lambda x, p, n: branin(x[[17, 60]]), 20),
    "fixed-dim": lambda: run(alebo.ALEBO(dim=8), cube(100), lambda x, p, n: branin(x[[17, 60]]), 20),
    "bo-constraints-batches": lambda: run(
        METHODS["bo"](initial=6),
        cube(20),
        lambda x, p, n: gramacy(x[[5, 14]]),
        6,
        q=3,
        lag=1,
        goals=[alebo.Minimize("loss"), alebo.AtMost("first", 0.0), alebo.AtLeast("second", -5.0)],
    ),
    "bo-mixed-noise": lambda: run(
        METHODS["bo"](initial=6),
        alebo.Space([alebo.Int("i", 0, 5), alebo.Categorical("c", ["a", "b"]), *cube(8).parameters]),
        lambda x, p, n: (float((p["i"] - 2) ** 2 + (p["c"] == "a") + x[5] ** 2) + _noise(n, 0.3), 0.3),
        14,
    ),
    "turbo-batches": lambda: run(METHODS["turbo"](initial=6), cube(20), _bowl, 6, q=4, lag=1),
    **{
        name: partial(_briefly, name, settings, initial)
        for name, settings, initial in (
            ("rembo", {"dim": 4, "initial": 2}, 8),
            ("rembo-phi", {"dim": 4, "initial": 5}, 5),
            ("rembo-gamma", {"dim": 4, "initial": 5}, 5),
            ("hesbo", {"dim": 4, "initial": 5}, 5),
            ("coordinate-linebo", {}, 5),
            ("random-linebo", {}, 5),
            ("descent-linebo", {}, 5),
            ("add-gp-ucb", {"initial": 5}, 5),
            ("ebo", {"initial": 5}, 5),
            ("smac", {"initial": 5, "challengers": 50, "searches": 2}, 2),
            ("cmaes", {}, 16),
            ("turbo", {"initial": 6}, 8),
            ("baxus", {"initial": 5}, 8),
            ("bo", {"initial": 5}, 5),
            ("saasbo", {"initial": 5, "warmup": 6, "samples": 6, "thinning": 3}, 0),
            ("saas-map", {"initial": 5}, 5),
            ("sobol", {}, 4),
        )
    },
}
