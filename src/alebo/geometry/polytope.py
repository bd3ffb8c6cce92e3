"""A convex polytope {y : A y <= b}, and what the search needs of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._errors import InputError
from .._seeds import generator
from ._sides import Sides

Array: TypeAlias = NDArray[np.float64]

MANY = (
    8000  # inequalities beyond which they are looked at in pairs, piece by piece, and random walks use single precision
)


@dataclass(frozen=True, eq=False)
class Polytope:
    """All y with `A y <= b`. Bounded and with an interior; an empty one raises when its centre is asked for."""

    A: Array  # m x d
    b: Array  # m
    pairs: int = 0  # the first so many rows come again, negated, right after them: two walls facing each other

    def __post_init__(self) -> None:
        A, b = np.asarray(self.A, dtype=float), np.asarray(self.b, dtype=float)
        if A.ndim != 2 or b.shape != A.shape[:1] or not (np.isfinite(A).all() and np.isfinite(b).all()):
            raise InputError(f"A polytope is `A y <= b` with finite A (m x d) and b (m); got {A.shape} and {b.shape}.")
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "b", b)

    @property
    def dim(self) -> int:
        return int(self.A.shape[1])

    @property
    def many(self) -> bool:
        """Whether it has so many inequalities that most of the time goes into looking at all of them."""
        return len(self.b) > MANY

    @cached_property
    def sides(self) -> Sides:
        """The same inequalities as `low <= T y <= high`: half as many rows where they come in pairs."""
        p = self.pairs
        rest = self.A[2 * p :]
        low = np.concatenate([-self.b[p : 2 * p], np.full(len(rest), -np.inf)])
        T = np.concatenate([self.A[:p], rest])
        return Sides(np.ascontiguousarray(T.T), low, np.concatenate([self.b[:p], self.b[2 * p :]]))

    def slack(self, Y: Array) -> Array:
        """The slack of each inequality: positive inside.  ... x d -> ... x m"""
        slack: Array = self.b - Y @ self.A.T
        return slack

    def contains(self, Y: Array, tolerance: float = 1e-9) -> NDArray[np.bool_]:
        """Whether each point satisfies every inequality.  ... x d -> ..."""
        Y = np.asarray(Y, dtype=float)
        if self.many:
            return self.sides.least_slack(Y) >= -tolerance
        inside: NDArray[np.bool_] = np.all(self.slack(Y) >= -tolerance, axis=-1)
        return inside

    def intersect(self, A: Array, b: Array) -> Polytope:
        """The part that also satisfies `A y <= b`."""
        return Polytope(np.vstack([self.A, A]), np.concatenate([self.b, b]), self.pairs)

    @cached_property
    def chebyshev(self) -> tuple[Array, float]:
        """The centre and radius of the largest ball inside; a radius of zero or less means no interior."""
        from scipy.optimize import linprog

        norms = np.linalg.norm(self.A, axis=1)
        cost = np.zeros(self.dim + 1)
        cost[-1] = -1.0
        found = linprog(
            cost,
            A_ub=np.column_stack([self.A, norms]),
            b_ub=self.b,
            bounds=[(None, None)] * self.dim + [(None, 1e6)],
            method="highs",
        )
        if not found.success:
            return np.zeros(self.dim), -np.inf
        return np.asarray(found.x[:-1]), float(found.x[-1])

    @cached_property
    def empty(self) -> bool:
        """Whether the interior is empty."""
        if self.b.min() > 1e-9:  # the origin is inside
            return False
        return self.chebyshev[1] <= 1e-9

    @cached_property
    def centre(self) -> Array:
        """A point well inside: the origin where it is, else the centre of the largest ball.  -> d"""
        if self.b.min() > 1e-6:
            return np.zeros(self.dim)
        if self.empty:
            raise InputError(
                "A polytope to search in must have an interior; this one has none. Loosen its constraints."
            )
        return self.chebyshev[0]

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """The smallest box around it, by 2 d linear programs.  -> (d, d)"""
        from scipy.optimize import linprog

        ends = np.empty((2, self.dim))
        for j in range(self.dim):
            for k, sign in enumerate((1.0, -1.0)):
                cost = np.zeros(self.dim)
                cost[j] = sign
                found = linprog(cost, A_ub=self.A, b_ub=self.b, bounds=[(None, None)] * self.dim, method="highs")
                if not found.success:
                    raise InputError(f"A polytope must be bounded and not empty; its coordinate {j} is not.")
                ends[k, j] = sign * found.fun
        return ends[0], ends[1]

    def ray(self, Y: Array, directions: Array) -> tuple[Array, Array]:
        """How far back and forth one can go from inner points.  (... x d, ... x d) -> (... <= 0, ... >= 0)"""
        return self.sides.ray(Y, directions) if self.many else self._ends(self.slack(Y), directions @ self.A.T)

    @staticmethod
    def _ends(slack: Array, speed: Array) -> tuple[Array, Array]:
        """The ends of rays along which the slack of each inequality shrinks at `speed`: one division whatever its sign."""
        with np.errstate(divide="ignore", over="ignore"):
            nearness = speed / np.maximum(slack, 1e-300)
            top, bottom = nearness.max(axis=-1), nearness.min(axis=-1)
            return np.where(bottom < 0, 1.0 / bottom, -np.inf), np.where(top > 0, 1.0 / top, np.inf)

    def sample(self, n: int, seed: int, steps: int | None = None) -> Array:
        """`n` points, uniform: radial draws from the centre, then hit-and-run from each.  -> n x d

        No step can be refused, so it takes the same time wherever the polytope is thin. The radial draws are weighted
        by at most the fourth power of their length: the d-th would be exact but picks a few long rays again and again,
        and at d = 20 their descendants are still too alike after hit-and-run. The 3 d steps taken unless told suffice in
        slices of a cube; a body with corners as sharp as a simplex's wants 10 d or more.
        """
        rng = generator(seed, "polytope")
        d = self.dim
        if self.many:
            return self._sample_many(n, rng, 3 * d if steps is None else steps)
        chunk = max(1, int(2e7 // max(1, len(self.b))))  # at most 160 MB of slacks at a time
        if n > chunk:
            parts = [self.sample(min(chunk, n - i), int(rng.integers(2**62)), steps) for i in range(0, n, chunk)]
            return np.concatenate(parts)
        draws = min(4 * n + 16, max(chunk, n))
        centre, shape = self._rounding
        theta = rng.standard_normal((draws, d))
        theta = theta / np.linalg.norm(theta, axis=1, keepdims=True) @ shape.T
        _, reach = self.ray(centre[None], theta)
        weight = (reach / reach.max()) ** min(d, 4)
        picked = rng.choice(draws, size=n, p=weight / weight.sum())
        Y = centre + theta[picked] * (reach[picked] * rng.random(n) ** (1.0 / d))[:, None]
        block = max(1, int(5e5 // max(1, len(self.b))))  # 4 MB of slacks stay in the processor's cache
        for i in range(0, n, block):
            self._walk(Y[i : i + block], rng, 3 * d if steps is None else steps)
        return self.pull_inside(Y)

    def _sample_many(self, n: int, rng: np.random.Generator, steps: int) -> Array:
        """As `sample`, in single precision until the end: a chord may be wrong by its rounding errors, no point may."""
        d = self.dim
        centre, shape = self._rounding
        theta = rng.standard_normal((4 * n + 16, d))
        theta = theta / np.linalg.norm(theta, axis=1, keepdims=True) @ shape.T
        sides = self.sides.single
        _, reach = sides.ray(centre[None], theta)
        weight = (reach / reach.max()) ** min(d, 4)
        picked = rng.choice(len(theta), size=n, p=weight / weight.sum())
        Y = centre + theta[picked] * (reach[picked] * rng.random(n) ** (1.0 / d))[:, None]
        for _ in range(steps):
            theta = rng.standard_normal((n, d)) @ shape.T
            back, ahead = sides.ray(Y, theta)
            Y += theta * (back + (ahead - back) * rng.random(n))[:, None]
        return self.pull_inside(Y)

    @cached_property
    def _rounding(self) -> tuple[Array, Array]:
        """The analytic centre and a map L of the unit ball to the ellipsoid that the walls leave there (Dikin's).

        In coordinates L z the polytope is as round as an ellipsoid can make it, so hit-and-run forgets its start as
        quickly in a thin slice as in the cube.  -> (d, d x d)
        """
        y = self.centre
        for _ in range(100):  # Newton's method on -sum(log(slack))
            inverse = 1.0 / self.slack(y)
            scaled = self.A * inverse[:, None]
            try:
                L = np.linalg.inv(np.linalg.cholesky(scaled.T @ scaled)).T
            except np.linalg.LinAlgError:
                raise InputError(
                    "A polytope to sample from must be bounded; this one is not. Bound every direction."
                ) from None
            gradient = L.T @ (self.A.T @ inverse)
            decrement = float(np.linalg.norm(gradient))
            if decrement < 1e-3:
                break
            step = -L @ gradient
            reach = float(self.ray(y, step)[1])
            t = 1.0 if reach > 1.0 else 0.95 * reach  # beyond the wall there is nothing
            while t > 1e-12 and np.log(self.slack(y + t * step) * inverse).sum() < 0.25 * t * decrement**2:
                t *= 0.5
            y = y + t * step
        return y, L

    def _walk(self, Y: Array, rng: np.random.Generator, steps: int) -> None:
        """Move points in place by hit-and-run, `steps` times to a uniform point of the chord in a uniform direction."""
        slack = self.slack(Y)
        for _ in range(steps):
            theta = rng.standard_normal(Y.shape) @ self._rounding[1].T
            speed = theta @ self.A.T
            back, ahead = self._ends(slack, speed)
            step = (back + (ahead - back) * rng.random(len(Y)))[:, None]
            Y += theta * step
            speed *= step
            slack -= speed

    def pull_inside(self, Y: Array) -> Array:
        """The same points, moved towards the centre by as little as puts rounding errors back inside.  ... x d"""
        if self.many:
            over = self.sides.excess(Y, self.centre)[..., None]
            if not over.any():
                return Y
            return self._shrunk(Y, over)
        slack = self.slack(Y)
        if (slack >= 0.0).all():
            return Y
        margin = self.b - self.A @ self.centre
        over = np.maximum(0.0, -slack / np.maximum(margin, 1e-300)).max(axis=-1, keepdims=True)
        return self._shrunk(Y, over)

    def _shrunk(self, Y: Array, over: Array) -> Array:
        shrink = np.where(over > 0, 1.0 / (1.0 + over * (1.0 + 1e-12)), 1.0)
        inside: Array = self.centre + (Y - self.centre) * shrink
        return inside
