"""Very many inequalities, as pairs of walls that face each other: `low <= T y <= high`, looked at piece by piece.

A slice of the cube has two walls for each of D parameters, and both need the same product T y. At D = 100,000 what takes
time is to write the products to memory and to read them again: so they are made in blocks that stay in the
processor's cache, and only the extremes of each block are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

ROWS, POINTS = 4096, 32  # of a block: 1 MB of products
TINY = 1e-30  # the least distance from a wall: a point on it is not divided by zero


@dataclass(frozen=True, eq=False)
class Sides:
    """All y with `low <= T y <= high`; a wall that has no other facing it has an infinite `low`."""

    Tt: NDArray[Any]  # d x k: the transpose of T, whose products are quicker
    low: NDArray[Any]  # k
    high: NDArray[Any]  # k

    @cached_property
    def single(self) -> Sides:
        """The same in single precision."""
        return Sides(*(np.ascontiguousarray(a, dtype=np.float32) for a in (self.Tt, self.low, self.high)))

    def _rows(self) -> Iterator[slice]:
        return (slice(i, i + ROWS) for i in range(0, len(self.high), ROWS))

    def _flat(self, Y: Array) -> NDArray[Any]:
        return np.ascontiguousarray(Y.reshape(-1, Y.shape[-1]), dtype=self.Tt.dtype)

    def least_slack(self, Y: Array) -> Array:
        """The smallest slack of all walls.  ... x d -> ..."""
        flat = self._flat(Y)
        out = np.full(len(flat), np.inf)
        for part in _points(len(flat)):
            for rows in self._rows():
                P = flat[part] @ self.Tt[:, rows]
                np.minimum(out[part], (self.high[rows] - P).min(axis=1), out=out[part])
                np.minimum(out[part], (P - self.low[rows]).min(axis=1), out=out[part])
        return out.reshape(Y.shape[:-1])

    def excess(self, Y: Array, centre: Array) -> Array:
        """How far points are beyond a wall, as a share of its distance from the centre, at most; 0 inside.  ... x d -> ..."""
        flat = self._flat(Y)
        out = np.zeros(len(flat))
        at = centre @ self.Tt
        for i in np.flatnonzero(self.least_slack(flat) < 0.0):
            P = flat[i] @ self.Tt
            above, below = self.high < P, self.low > P
            share = np.concatenate(
                [(P - self.high)[above] / (self.high - at)[above], (self.low - P)[below] / (at - self.low)[below]]
            )
            out[i] = share.max(initial=0.0)
        return out.reshape(Y.shape[:-1])

    def ray(self, Y: Array, directions: Array) -> tuple[Array, Array]:
        """How far back and forth one can go from inner points.  (... x d, ... x d) -> (... <= 0, ... >= 0)"""
        if Y.size > directions.size:
            directions = np.broadcast_to(directions, Y.shape)
        flat, theta = self._flat(Y), self._flat(directions)
        one = len(flat) == 1  # of which all rays begin
        shape = np.broadcast_shapes(Y.shape[:-1], directions.shape[:-1])
        top, bottom = np.full(len(theta), -np.inf), np.full(len(theta), np.inf)
        for part in _points(len(theta)):
            for rows in self._rows():
                P = (flat if one else flat[part]) @ self.Tt[:, rows]
                V = theta[part] @ self.Tt[:, rows]
                above, below = np.maximum(self.high[rows] - P, TINY), np.maximum(P - self.low[rows], TINY)
                up = V / above
                down = np.divide(V, below, out=V)
                np.maximum(top[part], np.maximum(up.max(axis=1), -down.min(axis=1)), out=top[part])
                np.minimum(bottom[part], np.minimum(up.min(axis=1), -down.max(axis=1)), out=bottom[part])
        with np.errstate(divide="ignore"):
            back, ahead = np.where(bottom < 0, 1.0 / bottom, -np.inf), np.where(top > 0, 1.0 / top, np.inf)
        return back.reshape(shape), ahead.reshape(shape)


def _points(n: int) -> Iterator[slice]:
    return (slice(i, i + POINTS) for i in range(0, n, POINTS))
