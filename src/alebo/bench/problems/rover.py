"""Rover trajectory, D=60 and D=100: thirty or fifty points steer a smooth path around boxes from one corner to the other.

After Wang et al. 2018 (Batched Large-scale Bayesian Optimization in High-dimensional Spaces), with a map of our own: boxes that
leave the border free, so that a good path is known.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import BSpline

from alebo import Float, Goals, InputError, Maximize, Space

from ..._seeds import generator
from ._problem import Problem

Array: TypeAlias = NDArray[np.float64]

SIZES, SAMPLES, DEGREE = (30, 50), 1000, 3
START, GOAL = np.array([0.05, 0.05]), np.array([0.95, 0.95])
BOXES, HALF = 15, 0.06
CEILING, MISS, HIT, LENGTH = 5.0, 10.0, 20.0, 0.05


@cache
def boxes() -> Array:
    """Centres of the obstacles, drawn once: squares that stay a tenth away from the border.  -> 15 x 2"""
    return generator(0, "rover").uniform(0.1 + HALF, 0.9 - HALF, size=(BOXES, 2))


@cache
def _basis(points: int) -> Array:
    """A clamped cubic B-spline: the path is this matrix times the points.  -> 1000 x points"""
    inner = np.linspace(0.0, 1.0, points - DEGREE + 1)
    knots = np.concatenate([np.zeros(DEGREE), inner, np.ones(DEGREE)])
    return np.asarray(BSpline.design_matrix(np.linspace(0.0, 1.0, SAMPLES), knots, DEGREE).toarray())


def path(points: ArrayLike) -> Array:
    """The way the rover takes.  60 or 100 -> 1000 x 2"""
    points = np.asarray(points, dtype=float)
    if points.shape not in [(2 * n,) for n in SIZES]:
        raise InputError(
            f"A rover's path has 60 numbers, x and y of 30 points, or 100, of 50 points; got shape {points.shape}."
        )
    way: Array = _basis(len(points) // 2) @ points.reshape(-1, 2)
    return way


def reward(points: ArrayLike) -> float:
    """5, less 10 for each unit that start and goal are missed by, 20 for each unit inside a box, 0.05 for each unit of way."""
    way = path(points)
    steps = np.linalg.norm(np.diff(way, axis=0), axis=1)
    middle = 0.5 * (way[1:] + way[:-1])
    inside = np.any(np.all(np.abs(middle[:, None] - boxes()) < HALF, axis=2), axis=1)
    missed = np.abs(way[0] - START).sum() + np.abs(way[-1] - GOAL).sum()
    return float(CEILING - MISS * missed - HIT * steps[inside].sum() - LENGTH * steps.sum())


def border(points: int = 30) -> Array:
    """A good path: along the border, where no box stands.  -> 2 points"""
    s = np.linspace(0.0, 2.0, points)
    x, y = np.clip(s, 0.0, 1.0), np.clip(s - 1.0, 0.0, 1.0)
    way: Array = START + np.stack([x, y], axis=1) * (GOAL - START)
    return way.ravel()


def rover(points: int = 30) -> Problem:
    """The rover's problem, to be maximised; the optimum lies between the border's reward (4.91) and 4.94."""
    return Problem(
        f"rover-{2 * points}",
        Space([Float(f"{axis}{i}", 0.0, 1.0) for i in range(points) for axis in "xy"]),
        reward,
        Goals(Maximize("reward")),
        budget=200,
        about="Rover trajectory after Wang et al. 2018, with our own map; no straight way (4.936) can be beaten.",
    )


def rover_100() -> Problem:
    """The same map, steered by fifty points."""
    return rover(50)
