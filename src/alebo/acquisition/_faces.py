"""The faces of a polytope as a climb sees them: a barrier that grows without bound towards each of them.

`barrier` takes all faces where they are few. A face far away then pushes a little, too; of 200,000 faces these little
pushes are strong, and most of the time goes into them. So there only faces near a point push.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..geometry import Polytope

Array: TypeAlias = NDArray[np.float64]

MANY_FACES = 400  # beyond, the barrier's Hessians are built one by one: less memory
PRODUCTS = 400_000  # numbers that the products of all pairs' normals may be: 3 MB
NEAR = 0.25  # of the way from the centre to a face: from the last quarter on it pushes, where there are very many
AHEAD = 1.05  # steps are looked ahead so far: a face beyond does not shorten one


class Barrier(Protocol):
    """The barrier at k points, k x d. It is told when they move."""

    def value(self) -> Tensor:
        """At the points.  -> k"""

    def derivatives(self, mu: float) -> tuple[Tensor, Tensor]:
        """Gradients and Hessians, times mu.  -> k x d, k x d x d"""

    def reach(self, step: Tensor) -> Tensor:
        """How many such steps lead to the nearest face; where one does not, perhaps infinity.  k x d -> k"""

    def value_at(self, trial: Tensor, t: Tensor) -> Tensor:
        """At these points: `t` (k) of the steps that `reach` was asked for away.  k x d -> k"""

    def move(self, W: Tensor) -> None:
        """The points are these now.  k x d"""


def barrier(domain: Polytope, W: Tensor, *, paired: bool = False) -> Barrier:
    """What is needed of the faces at these points, k x d; `paired`: faster, and other in the last digits."""
    if domain.many:
        return NearFaces(domain, W)
    return PairedFaces(domain, W) if paired and domain.pairs * domain.dim**2 <= PRODUCTS else AllFaces(domain, W)


class AllFaces:
    """The log-barrier of all faces: -sum log(slack)."""

    def __init__(self, domain: Polytope, W: Tensor) -> None:
        self.A, self.b = torch.from_numpy(domain.A), torch.from_numpy(domain.b)
        self.move(W)

    def move(self, W: Tensor) -> None:
        self.slack = self.b - W @ self.A.mT

    def value(self) -> Tensor:
        return -self.slack.log().sum(-1)

    def derivatives(self, mu: float) -> tuple[Tensor, Tensor]:
        A, inverse = self.A, 1.0 / self.slack
        if len(self.b) <= MANY_FACES:
            bend = mu * torch.einsum("km,mi,mj->kij", inverse**2, A, A)
        else:
            bend = mu * torch.stack([(A * (row**2)[:, None]).mT @ A for row in inverse])
        return mu * inverse @ A, bend

    def reach(self, step: Tensor) -> Tensor:
        speed = step @ self.A.mT
        far = torch.full_like(self.slack, math.inf)
        return torch.where(speed > 0, self.slack / speed.clamp_min(1e-300), far).min(-1).values

    def value_at(self, trial: Tensor, t: Tensor) -> Tensor:
        return -(self.b - trial @ self.A.mT).clamp_min(1e-300).log().sum(-1)


class PairedFaces(AllFaces):
    """The same barrier, whose Hessians at all points are one product of matrices; two faces of a pair share their part."""

    def __init__(self, domain: Polytope, W: Tensor) -> None:
        super().__init__(domain, W)
        self.pairs = domain.pairs
        self.row, self.column = torch.triu_indices(domain.dim, domain.dim)
        once = torch.cat([self.A[: self.pairs], self.A[2 * self.pairs :]])
        self.products = once[:, self.row] * once[:, self.column]  # m x d (d + 1) / 2

    def derivatives(self, mu: float) -> tuple[Tensor, Tensor]:
        inverse, p = 1.0 / self.slack, self.pairs
        squares = inverse**2
        half = torch.cat([squares[:, :p] + squares[:, p : 2 * p], squares[:, 2 * p :]], dim=1) @ self.products
        bend = self.A.new_empty(len(inverse), self.A.shape[1], self.A.shape[1])
        bend[:, self.row, self.column] = bend[:, self.column, self.row] = mu * half
        return mu * inverse @ self.A, bend


class Near(NamedTuple):
    """The faces near one point."""

    u: Array  # j, slack by width
    width: Array  # j, the slack at which the face begins to push
    normals: Array  # d x j, outwards

    def phi(self) -> float:
        """The barrier at the point."""
        rest = 1.0 - self.u
        return float((-np.log(self.u) - rest - 0.5 * rest**2).sum())


class NearFaces:
    """A barrier of the faces nearby, for polytopes of very many: u = slack / (NEAR * slack at the centre), and for u < 1

        phi(u) = -log u - (1 - u) - (1 - u)^2 / 2,   phi' = -(1 - u)^2 / u,   phi'' = 1 / u^2 - 1,

    which is convex, twice continuously differentiable and 0 from u = 1 on. Faces come in pairs, low <= T y <= high.
    """

    def __init__(self, domain: Polytope, W: Tensor) -> None:
        self.sides = domain.sides
        at = domain.centre @ self.sides.Tt
        self.above = NEAR * (self.sides.high - at)
        self.below = np.where(np.isinf(self.sides.low), 0.0, NEAR * (at - self.sides.low))
        self.top, self.bottom = self.sides.high - self.above, self.sides.low + self.below  # where a face begins to push
        self.W = self.tried = W
        self.P = self.at = W.numpy() @ self.sides.Tt  # k x m
        self.near = self.found = [self._near(p) for p in self.P]

    def move(self, W: Tensor) -> None:
        last, self.W = self.W, W
        for i, w in enumerate(W):
            if torch.equal(w, self.tried[i]):  # a step that was accepted: its faces are known
                self.P[i], self.near[i] = self.at[i], self.found[i]
            elif not torch.equal(w, last[i]):
                self.P[i] = w.numpy() @ self.sides.Tt
                self.near[i] = self._near(self.P[i])

    def _near(self, p: Array) -> Near:
        sides = self.sides
        high, low = np.flatnonzero(p > self.top), np.flatnonzero(p < self.bottom)
        width = np.concatenate([self.above[high], self.below[low]])
        slack = np.concatenate([sides.high[high] - p[high], p[low] - sides.low[low]])
        normals = np.concatenate([sides.Tt[:, high], -sides.Tt[:, low]], axis=1)
        return Near(np.maximum(slack / width, 1e-300), width, normals)

    def value(self) -> Tensor:
        return torch.tensor([near.phi() for near in self.near], dtype=self.W.dtype)

    def derivatives(self, mu: float) -> tuple[Tensor, Tensor]:
        slopes, bends = [], []
        for u, width, normals in self.near:
            slopes.append(normals @ ((1.0 - u) ** 2 / (u * width)))  # the slack shrinks outwards: two signs cancel
            bends.append((normals * ((1.0 / u**2 - 1.0) / width**2)) @ normals.T)
        return torch.from_numpy(mu * np.stack(slopes)), torch.from_numpy(mu * np.stack(bends))

    def reach(self, step: Tensor) -> Tensor:
        self.V = step.numpy() @ self.sides.Tt
        out = np.full(len(step), np.inf)
        for i, (p, v) in enumerate(zip(self.P, self.V, strict=True)):
            end = p + AHEAD * v
            hit = np.flatnonzero((end > self.sides.high) | (end < self.sides.low))
            if len(hit):
                wall = np.where(v[hit] > 0, self.sides.high[hit], self.sides.low[hit])
                out[i] = max(float(((wall - p[hit]) / v[hit]).min()), 0.0)
        return torch.from_numpy(out)

    def value_at(self, trial: Tensor, t: Tensor) -> Tensor:
        self.tried, self.at = trial, self.P + t.numpy()[:, None] * self.V
        self.found = [self._near(p) for p in self.at]
        return torch.tensor([near.phi() for near in self.found], dtype=trial.dtype)
