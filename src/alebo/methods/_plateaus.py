"""Plateaus: a function that rounds, selects or branches has the same outcomes at many points, and says them again near each.

How far plateaus reach is read off the data. The probability that two points have exactly the same outcomes is taken to fall
with their distance r in the unit cube as p + (1 - p) exp(-(r / width)^2); the width is the most probable one, where the data
speak for it. Outcomes that agree at any distance alike, such as success and failure under noise, make p large and show no width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from torch import Tensor

from ..acquisition import Acquisition, Unseen

if TYPE_CHECKING:
    from ._view import EmbeddedView, View

Array: TypeAlias = NDArray[np.float64]

PLATEAUS = "plateaus"  # the key of a note: how wide they are
REPEATED = 3  # points, at least, whose outcomes another point had before
EVIDENCE = 3.0  # nats by which a width must explain the data better than none
WIDTHS = 30  # that are compared
BACKGROUNDS = (0.0, 0.25, 0.5, 0.75)  # p, in units of the share of all pairs with the same outcomes
NEWEST = 200  # trials whose pairs are compared
APART = 1e-6  # distance up to which two points are the same


@dataclass(frozen=True, eq=False)
class Plateaus:
    """How far plateaus reach around measured points.

    Attributes:
        width: in the unit cube.
        X: n x D, the measured points of the cube.
    """

    width: float
    X: Array

    def unseen(self, acquisition: Acquisition, view: View) -> Unseen:
        """An acquisition over the unit cube, times the probability that a point is on no plateau of a known one."""
        return Unseen(acquisition, torch.from_numpy(0.5 * (self._known(view) + 1.0)), self.width)

    def unseen_inside(self, acquisition: Acquisition, seen: EmbeddedView) -> Unseen:
        """The same over an embedding: the distances are still those in the unit cube."""
        X, embedding = self._known(seen), seen.embedding
        Y = embedding.down(X)
        off = np.linalg.norm(X - embedding.up(Y), axis=1, keepdims=True)  # at a right angle to the subspace
        R: Array = np.linalg.qr(embedding.A)[1]  # |A y| = |R y|
        known, to_cube = torch.from_numpy(0.5 * np.hstack([Y @ R.T, off])), torch.from_numpy(0.5 * R.T)

        def place(W: Tensor) -> Tensor:
            return torch.nn.functional.pad(W @ to_cube, (0, 1))

        return Unseen(acquisition, known, self.width, place)

    def _known(self, view: View) -> Array:
        """The measured points and those under way.  -> n x D"""
        return np.concatenate([self.X, view.pending])


def plateaus(view: View) -> Plateaus | None:
    """What the data say of plateaus; None where they show none, and where cheaper looks have other outcomes anyway."""
    trials = view.trials[-NEWEST:]
    if view.space.fidelity is not None or len(trials) <= REPEATED:
        return None
    names = view.goals.outcomes
    Y = [tuple(t.outcomes[name].mean for name in names) for t in trials]
    if len(Y) - len(set(Y)) < REPEATED:  # before any distance: there may be many coordinates
        return None
    X = view.X[-NEWEST:]
    if len({x.tobytes() for x in X}) - len(set(Y)) < REPEATED:
        return None
    distance = 0.5 * pdist(X)
    same = pdist(np.array(Y), "chebyshev") == 0.0
    apart = distance > APART
    if not apart.any():
        return None
    width = _width(distance[apart], same[apart])
    return None if width is None else Plateaus(width, view.X)


def _width(distance: Array, same: NDArray[np.bool_]) -> float | None:
    """The most probable width, from the distances of pairs and whether their outcomes are the same.  m, m"""

    def log_likelihood(p: Array) -> float:
        p = np.clip(p, 1e-6, 1.0 - 1e-6)
        return float(np.where(same, np.log(p), np.log1p(-p)).sum())

    share = float(same.mean())
    best = log_likelihood(np.full(len(same), share)) + EVIDENCE
    width = None
    furthest = float(distance.max())
    for candidate in np.geomspace(max(float(distance.min()), 1e-3 * furthest), furthest, WIDTHS):
        near = np.exp(-((distance / candidate) ** 2))
        for background in BACKGROUNDS:
            value = log_likelihood(background * share + (1.0 - background * share) * near)
            if value > best:
                best, width = value, float(candidate)
    return width
