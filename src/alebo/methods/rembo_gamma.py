"""REMBO-gamma k_Psi: the search runs in the zonotope B [-1, 1]^D, and each y maps up to its nearest point of the cube.

Letters as in Binois et al. 2018: B has orthonormal rows, Z = {B x : x in the cube}, and
gamma(y) = argmin |x - B'y| over x in the cube with B x = y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._errors import InputError
from .._seeds import derive, generator
from ..acquisition import Through, maximise_in_box
from ..goals import Goals
from ..history import History, Trial
from ..space import Space
from ._embedded import (
    Embedded,
    around,
    best_embedded,
    embedded_log_ei,
    embedding_size,
    first_new,
    in_embedding,
    is_repeated,
)
from ._method import Suggestion, Supports
from .rembo import isotropic
from .rembo_phi import psi

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class REMBOGamma(Embedded):
    """REMBO without its box: every y of the zonotope is worth trying, and no two of them share a point of the cube."""

    name: ClassVar[str] = "rembo-gamma"
    title: ClassVar[str] = "REMBO-gamma-kPsi"
    citation: ClassVar[str] = (
        "Binois, Ginsbourger, Roustant 2020, On the choice of the low-dimensional domain for global optimization via "
        "random embeddings, J. Global Optimization 76 (preprint 2018)"
    )
    supports: ClassVar[Supports] = Supports(batches=False)

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        self.one_at_a_time(history, q)
        d = embedding_size(self.dim, space.dimension)
        here = derive(seed, "ask", len(history))
        zonotope = Zonotope.random(space.dimension, d, derive(seed, "rembo-gamma"))
        trials = in_embedding(history, d)

        def draw(k: int) -> tuple[Array, Array]:
            Y, L = zonotope.sample(1, k)
            return zonotope.of_dual(L)[0], Y[0]

        if sum(t.complete for t in trials) >= max(self.initial, 2):
            x, log_ei = _propose(zonotope, trials, goals, here)
            if not is_repeated(x, history):
                return [Suggestion(x, zonotope.B @ x, {"by": "model", "log_ei": round(log_ei, 4)})]
        x, y = first_new(draw, history, here)
        return [Suggestion(x, y, {"by": "random"})]


def _propose(zonotope: Zonotope, trials: Sequence[Trial], goals: Goals, seed: int) -> tuple[Array, float]:
    """The point of gamma(Z) with the largest log EI.

    gamma's dual gives every point of gamma(Z) as clip(B' l): searching over l needs no quadratic program and never
    leaves the zonotope. The starts are uniform in Z, which is the point of the method.
    """
    B = torch.from_numpy(zonotope.B)
    Q = B.T.contiguous()
    spread = zonotope.radius

    def features_of_x(X: Tensor) -> Tensor:
        return psi(X, X @ Q, Q) / spread

    log_ei = embedded_log_ei(trials, goals, features_of_x(torch.from_numpy(np.stack([t.x for t in trials]))), seed=seed)
    _, starts = zonotope.sample(256, derive(seed, "starts"))
    duals, inside = zonotope.dual(around(best_embedded(trials, goals), spread, seed))
    extra = np.concatenate([duals[inside], starts])
    reach = np.maximum(np.abs(extra).max(axis=0), 1.0) * 2.0
    acquisition = Through(log_ei, lambda L: features_of_x((L @ B).clamp(-1.0, 1.0)))
    best, value = maximise_in_box(acquisition, -reach, reach, seed=seed, extra=extra, raw=16)
    return zonotope.of_dual(best[None])[0], value


@dataclass(frozen=True, eq=False)
class Zonotope:
    """Z = B [-1, 1]^D for a B with orthonormal rows: membership, uniform draws, and the way up, in batches."""

    B: Array  # d_e x D

    def __post_init__(self) -> None:
        B = np.ascontiguousarray(self.B, dtype=float)
        if B.ndim != 2 or B.shape[0] > B.shape[1] or not np.allclose(B @ B.T, np.eye(len(B)), atol=1e-8):
            raise InputError(
                f"`B` has orthonormal rows; got shape {B.shape}. Take the transposed Q of a QR factorisation."
            )
        object.__setattr__(self, "B", B)

    @classmethod
    def random(cls, D: int, dim: int, seed: int) -> Zonotope:
        """The row space of a random matrix in which every parameter weighs the same."""
        return cls(np.linalg.qr(isotropic(D, dim, seed))[0].T)

    @property
    def dim(self) -> int:
        return int(self.B.shape[0])

    @cached_property
    def radius(self) -> float:
        """Its mean reach along the axes: max of e_i'B x over the cube is the row's absolute sum."""
        return float(np.abs(self.B).sum(axis=1).mean())

    def gamma(self, Y: Array) -> Array:
        """The nearest points of the cube with B x = y; an error where some y lies outside.  m x d_e -> m x D"""
        Y = np.atleast_2d(np.asarray(Y, dtype=float))
        L, inside = self.dual(Y)
        if not inside.all():
            raise InputError(
                f"gamma is defined on the zonotope B [-1, 1]^D; {int((~inside).sum())} of {len(Y)} points lie outside. "
                "Draw points with `sample`, or shrink them towards the origin."
            )
        return self.of_dual(L)

    def of_dual(self, L: Array) -> Array:
        """The minimiser for these dual points, x = clip(B' l).  m x d_e -> m x D"""
        return np.clip(L @ self.B, -1.0, 1.0)

    def dual(self, Y: Array, *, tolerance: float = 1e-10, iterations: int = 60) -> tuple[Array, NDArray[np.bool_]]:
        """Dual solutions and which points lie inside.  m x d_e -> m x d_e, m

        As B B' = I, |x - B'y|^2 = |x|^2 - |y|^2 on B x = y: the smallest x is wanted, whose optimality conditions are
        x = clip(B' l), B x = y. That is the gradient of a convex, piecewise quadratic function of l, of d_e unknowns
        whatever D: a damped semismooth Newton method over all points at once. Outside Z it has no solution, and |l|
        runs away.
        """
        m, d = Y.shape
        L = Y.copy()
        eye = np.eye(d)
        pairs = (self.B[:, None] * self.B[None]).reshape(d * d, -1).T  # D x d^2: B diag(free) B' is one product
        active = np.arange(m)
        size = tolerance * (1.0 + np.sqrt(self.B.shape[1]))
        solved = np.zeros(m, dtype=bool)

        def loss(l: Array, y: Array) -> Array:
            U = np.abs(l @ self.B)
            value: Array = np.where(U <= 1.0, 0.5 * U * U, U - 0.5).sum(axis=1) - (l * y).sum(axis=1)
            return value

        for _ in range(iterations):
            l, y = L[active], Y[active]
            U = l @ self.B
            residual = np.clip(U, -1.0, 1.0) @ self.B.T - y
            done = np.abs(residual).max(axis=1) <= size
            solved[active[done]] = True
            keep = ~done & (np.abs(l).max(axis=1) < 1e6)
            active, l, y, U, residual = active[keep], l[keep], y[keep], U[keep], residual[keep]
            if not len(active):
                break
            free = (np.abs(U) < 1.0).astype(float)
            H = (free @ pairs).reshape(-1, d, d)
            norm = np.linalg.norm(residual, axis=1)
            H += (1e-12 + 1e-3 * np.minimum(norm, 1.0) ** 2)[:, None, None] * eye  # a corner leaves H singular
            step = np.linalg.solve(H, -residual[..., None])[..., 0]
            slope = (residual * step).sum(axis=1)
            before = loss(l, y)
            t = np.ones(len(active))
            for _ in range(30):  # Armijo, all points at once
                worse = loss(l + t[:, None] * step, y) > before + 1e-4 * t * slope + 1e-13 * np.abs(before)
                if not worse.any():
                    break
                t = np.where(worse, 0.5 * t, t)
            L[active] = l + t[:, None] * step
        return L, solved

    def sample(self, n: int, seed: int) -> tuple[Array, Array]:
        """Uniform points of Z and their dual solutions: draws from a ball around Z, those outside rejected."""
        rng = generator(seed, "zonotope-sample")
        Ys: list[Array] = []
        Ls: list[Array] = []
        have = 0
        probe = rng.standard_normal((2048, self.dim))
        probe /= np.linalg.norm(probe, axis=1, keepdims=True)
        top = 1.02 * float(np.abs(probe @ self.B).sum(axis=1).max())  # the ball's radius, found by trying directions
        while have < n:
            m = max(32, 2 * n)
            U = rng.standard_normal((m, self.dim))
            U /= np.linalg.norm(U, axis=1, keepdims=True)
            support = np.abs(U @ self.B).sum(
                axis=1
            )  # no point of Z goes farther along u: most outer draws need no dual
            r = top * rng.random(m) ** (1.0 / self.dim)
            Y = (U * r[:, None])[r <= support]
            L, inside = self.dual(Y)
            Ys.append(Y[inside])
            Ls.append(L[inside])
            have += int(inside.sum())
        return np.concatenate(Ys)[:n], np.concatenate(Ls)[:n]
