"""A trust region: its size, the rule by which it changes, its model, and Thompson sampling inside it.

TuRBO has one or several in the whole space, BAxUS one in an embedding. Points are in the unit cube.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from ..acquisition import perturbed
from ..history import State, Trial
from ..models import ARDGP, fit_ard
from ..models.priors import trust_region

Array: TypeAlias = NDArray[np.float64]

LENGTH, SHORTEST, LONGEST = 0.8, 0.5**7, 1.6  # of a unit cube's side: start, collapse, cap (paper, Sec. 2)
SUCCESSES = 3  # in a row, then the region doubles
IMPROVEMENT = 1e-3  # a success lowers the best value by more than this share of it


@dataclass(frozen=True)
class Region:
    """A trust region's side length and counters, and the rule by which a finished batch changes them."""

    length: float = LENGTH
    successes: int = 0  # batches in a row
    failures: int = 0  # evaluations in a row
    best: float = math.inf

    def after(self, values: Sequence[float], patience: int) -> Region:
        """The region after a batch of these values (inf for an evaluation that failed).

        Failures are counted in evaluations: for batches of q, `patience` of them are the ceil(patience / q) batches of
        the paper.
        """
        low = min(values)
        if math.isinf(self.best):
            return Region(self.length, 0, 0, low)
        if low < self.best - IMPROVEMENT * abs(self.best):
            successes, failures = self.successes + 1, 0
        else:
            successes, failures = 0, self.failures + len(values)
        length = self.length
        if successes == SUCCESSES:
            length, successes = min(2.0 * length, LONGEST), 0
        elif failures >= patience:
            length, failures = length / 2.0, 0
        return Region(length, successes, failures, min(low, self.best))

    @property
    def collapsed(self) -> bool:
        return self.length < SHORTEST


def replay(trials: Sequence[Trial], values: dict[int, float], patience: int, region: Region | None = None) -> Region:
    """The region after these trials: initial points set the best value, batches that are over move the counters."""
    state = Region() if region is None else region
    batches: dict[int, list[Trial]] = {}
    for t in trials:
        if t.note.get("initial", True):
            best = min(state.best, values.get(t.number, math.inf))
            state = Region(state.length, state.successes, state.failures, best)
        else:
            batches.setdefault(int(t.note["batch"]), []).append(t)
    for members in batches.values():
        if all(t.state is not State.PENDING for t in members) and not state.collapsed:
            state = state.after([values.get(t.number, math.inf) for t in members], patience)
    return state


def fit_region(X: Array, y: Array) -> ARDGP:
    """The region's process: Matern-5/2, a lengthscale a coordinate, most likely within the paper's bounds.  n x D, n"""
    return fit_ard(X, y, trust_region())


def sides(centre: Array, length: float, lengthscales: Array) -> tuple[Array, Array]:
    """The region around `centre` inside [0, 1]: sides in proportion to the lengthscales, a volume of length^D.  -> D, D"""
    half = 0.5 * length * np.exp(np.log(lengthscales) - np.log(lengthscales).mean())
    return np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)


def candidates(centre: Array, length: float, lengthscales: Array, count: int, rng: np.random.Generator) -> Array:
    """Points of the region around `centre`, each perturbed in about 20 of its coordinates.  -> count x D, in [0, 1]"""
    return perturbed(centre, *sides(centre, length, lengthscales), count, rng, quasi=True)


def thompson(gp: ARDGP, points: Array, draws: int, seed: int) -> Array:
    """Joint posterior draws at the points.  N x D -> draws x N"""
    values: Array = gp.draws(torch.as_tensor(points), draws, seed).numpy()
    return values


def take_smallest(draws: Array) -> list[int]:
    """For each draw the candidate with its smallest value, none twice.  draws x N -> indices"""
    left, chosen = draws.copy(), []
    for draw in left:
        chosen.append(int(np.argmin(draw)))
        left[:, chosen[-1]] = math.inf
    return chosen
