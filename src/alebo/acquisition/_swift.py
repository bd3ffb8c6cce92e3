"""Climbing with few evaluations, in NumPy: for acquisition functions over joint draws, which cost more than the steps.

The method of `_climb`, with these differences: a search along a step evaluates only the points that still need it, climbs that
are behind end at the next weight of the barrier, and the best end is polished in the coordinates of the curvature found so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize

from ..geometry import Polytope
from ._climb import ARMIJO, BARRIERS, HALVINGS, INSIDE, REACH, SHORTER, STILL
from ._quick import Quick
from .functions import WORTHLESS, Acquisition, value_and_gradient

Array: TypeAlias = NDArray[np.float64]

WORTH = 1e-3  # the promised gain from which a step is worth it
NEAR_FACES = 6  # constraints per dimension that the polish sees
LEAST = 1e-300


class Ends(NamedTuple):
    """Where climbs ended, the best first."""

    points: Array  # k x d, inside
    values: Array  # k
    bends: Array  # k x d x d, the Hessians of -acquisition as the steps found them


def with_gradient(acquisition: Acquisition, W: Array) -> tuple[Array, Array]:
    """The value at each point and its gradient, never nan.  k x d -> k, k x d"""
    if not isinstance(acquisition, Quick):
        value, gradient = value_and_gradient(acquisition, torch.from_numpy(np.ascontiguousarray(W)))
        return value.numpy(), gradient.numpy()
    f, g = acquisition.rising(W)
    ok = np.isfinite(f) & np.isfinite(g).all(1)
    return (f, g) if ok.all() else (np.where(ok, f, WORTHLESS), np.where(ok[:, None], g, 0.0))


class Walls:
    """The log-barrier of all faces of a polytope, two walls facing each other in one product."""

    def __init__(self, domain: Polytope) -> None:
        self.T, self.low, self.high = domain.sides.Tt.T, domain.sides.low, domain.sides.high
        self.one_sided = bool(np.isinf(self.low).any())
        self.row, self.column = np.triu_indices(domain.dim)
        self.products = self.T[:, self.row] * self.T[:, self.column]  # m x d (d + 1) / 2

    def slack(self, W: Array) -> tuple[Array, Array]:
        """Below and above; infinite where there is no lower wall.  k x d -> k x m, k x m"""
        at = W @ self.T.T
        return at - self.low, self.high - at

    def value(self, slack: tuple[Array, Array]) -> Array:
        """-> k"""
        below, above = (np.log(np.maximum(s, LEAST)) for s in slack)
        if self.one_sided:
            below = np.where(np.isinf(below), 0.0, below)
        return np.asarray(-(below + above).sum(1))

    def derivatives(self, slack: tuple[Array, Array], mu: float) -> tuple[Array, Array]:
        """Gradients and Hessians, times mu.  -> k x d, k x d x d"""
        below, above = (1.0 / s for s in slack)
        half = mu * ((below**2 + above**2) @ self.products)
        bend = np.empty((len(half), self.T.shape[1], self.T.shape[1]))
        bend[:, self.row, self.column] = bend[:, self.column, self.row] = half
        return mu * ((above - below) @ self.T), bend

    def reach(self, slack: tuple[Array, Array], step: Array) -> Array:
        """How many such steps lead to the nearest wall.  k x d -> k"""
        speed = step @ self.T.T
        nearest = np.maximum((speed / slack[1]).max(1), (-speed / slack[0]).max(1))
        return np.asarray(1.0 / np.maximum(nearest, LEAST))


def rise(
    acquisition: Acquisition,
    domain: Polytope,
    W: Array,
    *,
    steps: int,
    keep: Sequence[float] = (1.0, 1.0, 1.0),
    steep: float | None = None,
) -> Ends:
    """Maximise from every row of W at once: Newton on a shrinking log-barrier, quasi-Newton on the acquisition.

    Args:
        acquisition: what to maximise.
        domain: the polytope.
        W: k x d starts.
        steps: for each weight of the barrier, at most.
        keep: shares of the climbs, the best ones, that go on at each weight of the barrier; the others stay where they are.
        steep: the length that first steps have at most, where the acquisition is steep; None: any.
    """
    k, d = W.shape
    eye, walls = np.eye(d), Walls(domain)
    W = domain.pull_inside(W)
    W = domain.centre + INSIDE * (W - domain.centre)
    f, g = with_gradient(acquisition, W)
    scale = np.ones(k) if steep is None else np.maximum(1.0, np.linalg.norm(g, axis=1) / steep)
    H = scale[:, None, None] * eye
    for mu, share in zip(BARRIERS, keep, strict=True):
        live = np.sort(np.argsort(-f, kind="stable")[: max(1, round(share * k))])
        for _ in range(steps):
            slack = walls.slack(W[live])
            G, bend = walls.derivatives(slack, mu)
            G -= g[live]  # gradient of what is minimised: -acquisition + mu barrier
            step = -np.linalg.solve(H[live] + bend + 1e-10 * eye, G[..., None])[..., 0]
            slope = (step * G).sum(1)
            t = np.minimum(REACH * walls.reach(slack, step), 1.0)
            merit = mu * walls.value(slack) - f[live]
            left = np.flatnonzero(slope <= -WORTH)
            before, was = W[live], g[live]
            moved = np.zeros(len(live), dtype=bool)
            for _ in range(HALVINGS):  # the first of ever shorter steps that brings a share of what it promises
                if not len(left):
                    break
                trial = before[left] + t[left, None] * step[left]
                value, gradient = with_gradient(acquisition, trial)
                reached = mu * walls.value(walls.slack(trial)) - value
                ok = reached <= merit[left] + ARMIJO * t[left] * slope[left]
                at = live[left[ok]]
                W[at], f[at], g[at] = trial[ok], value[ok], gradient[ok]
                moved[left[ok]] = True
                left = left[~ok]
                t[left] *= SHORTER
            live = live[moved]  # a search that found nothing would find nothing again from the same place
            if not len(live):
                break
            s = W[live] - before[moved]
            H[live] = _bfgs(H[live], s, was[moved] - g[live])
            if np.abs(s).max() <= STILL * (1.0 + np.abs(W).max()):
                break
    order = np.argsort(-f, kind="stable")
    return Ends(domain.pull_inside(W[order]), f[order], H[order])


def _bfgs(H: Array, s: Array, y: Array) -> Array:
    """Powell's damped update, as in `_climb`.  k x d x d, k x d, k x d -> k x d x d"""
    Hs = (H @ s[..., None])[..., 0]
    sHs, sy = (s * Hs).sum(1), (s * y).sum(1)
    damped = np.where(sy >= 0.2 * sHs, 1.0, 0.8 * sHs / np.maximum(sHs - sy, LEAST))[:, None]
    r = damped * y + (1.0 - damped) * Hs
    sr = np.maximum((s * r).sum(1), LEAST)[:, None, None]
    with np.errstate(over="ignore", invalid="ignore"):
        new = H - Hs[:, :, None] * Hs[:, None, :] / np.maximum(sHs, LEAST)[:, None, None]
        new += r[:, :, None] * r[:, None, :] / sr
    usable = (sHs > 1e-16) & np.isfinite(new).all((1, 2))
    return np.where(usable[:, None, None], new, H)


def polish(acquisition: Acquisition, domain: Polytope, y: Array, bend: Array, *, steps: int) -> Array:
    """One SLSQP run with the faces near a point, in coordinates in which `bend` is the identity.  d, d x d -> d, inside"""
    slack = domain.slack(y)
    near = np.argsort(slack)[: NEAR_FACES * domain.dim]
    try:
        C = np.linalg.inv(np.linalg.cholesky(bend)).T
    except np.linalg.LinAlgError:
        C = np.eye(domain.dim)
    A, b = domain.A[near] @ C, slack[near]

    def negative(u: Array) -> tuple[float, Array]:
        value, gradient = with_gradient(acquisition, (y + C @ u)[None])
        return -float(value[0]), -(C.T @ gradient[0])

    found = minimize(
        negative,
        np.zeros(domain.dim),
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda u: b - A @ u, "jac": lambda u: -A},
        options={"maxiter": steps, "ftol": 1e-9},
    )
    end = y + C @ found.x
    return domain.pull_inside(end) if np.isfinite(end).all() else y
