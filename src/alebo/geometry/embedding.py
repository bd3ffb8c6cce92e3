"""Linear embeddings of the cube: x = x0 + A y, with y = B (x - x0) and B = pinv(A).

Letters as in the paper: D ambient, d_e embedded dimension (`dim`), B the d_e x D matrix that maps down.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._errors import InputError
from .._seeds import generator
from .polytope import Polytope

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Embedding:
    """An affine subspace of the cube, with coordinates. Every point of `domain` maps up inside the cube."""

    A: Array  # D x d_e
    x0: Array  # D

    @property
    def D(self) -> int:
        return int(self.A.shape[0])

    @property
    def dim(self) -> int:
        return int(self.A.shape[1])

    @cached_property
    def B(self) -> Array:
        """The map down of the paper.  -> d_e x D"""
        gram = self.A.T @ self.A
        if np.allclose(gram, np.diag(np.diag(gram)), atol=1e-14) and np.diag(gram).min() > 1e-12:
            return self.A.T / np.diag(gram)[:, None]  # orthogonal columns: exact, and cheap at any D
        B: Array = np.linalg.pinv(self.A).astype(float)
        return B

    def up(self, Y: ArrayLike) -> Array:
        """Into the ambient space.  ... x d_e -> ... x D"""
        x: Array = self.x0 + np.asarray(Y, dtype=float) @ self.A.T
        return x

    def down(self, X: ArrayLike) -> Array:
        """The coordinates of the nearest point of the subspace.  ... x D -> ... x d_e"""
        y: Array = (np.asarray(X, dtype=float) - self.x0) @ self.B.T
        return y

    def residual(self, X: ArrayLike) -> Array:
        """How far points lie off the subspace.  ... x D -> ..."""
        X = np.asarray(X, dtype=float)
        off: Array = np.linalg.norm(self.up(self.down(X)) - X, axis=-1)
        return off

    @cached_property
    def domain(self) -> Polytope:
        """All y that map up inside the cube: -1 <= x0 + A y <= 1 (paper, eq. 1)."""
        moving = np.any(self.A != 0.0, axis=1)
        A, x0 = (self.A, self.x0) if moving.all() else (self.A[moving], self.x0[moving])
        idle = np.flatnonzero(~np.any(self.A != 0.0, axis=0))  # HeSBO can leave a coordinate without parameters
        box = np.zeros((2 * len(idle), self.dim))
        box[np.arange(len(idle)), idle] = 1.0
        box[len(idle) + np.arange(len(idle)), idle] = -1.0
        return Polytope(np.vstack([A, -A, box]), np.concatenate([1.0 - x0, 1.0 + x0, np.ones(len(box))]), pairs=len(A))

    def orthonormal(self) -> Embedding:
        """The same subspace in coordinates that suit a model: orthogonal axes, scaled so that a unit ball fits inside.

        The family of Mahalanobis kernels is the same in any coordinates; the numbers are better behaved in these. Columns
        of A that are empty or depend on others (HeSBO's can be) are left out, so `dim` is then the rank of A.
        """
        Q, _ = np.linalg.qr(self._independent())
        Q *= np.where(Q[np.argmax(np.abs(Q), axis=0), np.arange(Q.shape[1])] < 0, -1.0, 1.0)
        scale = 1.0 / np.linalg.norm(Q, axis=1).max()
        return Embedding(Q * scale, self.x0)

    def _independent(self) -> Array:
        """Columns of A that span the subspace: all of them where they are independent.  -> D x rank"""
        rank = int(np.linalg.matrix_rank(self.A))
        if rank == self.dim:
            return self.A
        from scipy.linalg import qr

        _, order = qr(self.A, mode="r", pivoting=True)
        return self.A[:, np.sort(order[:rank])]

    def through(self, x0: ArrayLike) -> Embedding:
        """The same directions, through another point of the cube."""
        x0 = np.asarray(x0, dtype=float)
        if x0.shape != (self.D,) or not np.all(np.abs(x0) <= 1.0):
            raise InputError(f"An embedding passes through a point of the cube [-1, 1]^{self.D}; got shape {x0.shape}.")
        return Embedding(self.A, x0)

    def beside(self, at: int) -> Embedding:
        """This embedding of all parameters but one, and that one, number `at`, on an axis of its own: coordinate 0."""
        others = np.delete(np.arange(self.D + 1), at)
        A, x0 = np.zeros((self.D + 1, self.dim + 1)), np.zeros(self.D + 1)
        A[at, 0] = 1.0
        A[others, 1:], x0[others] = self.A, self.x0
        return Embedding(A, x0)

    def including(self, x: ArrayLike) -> Embedding:
        """One more direction, so that the subspace passes through `x`; old coordinates followed by a zero give the same point.

        A point that lies in the subspace already changes nothing.
        """
        x = np.asarray(x, dtype=float)
        off = x - self.up(self.down(x))
        length = np.linalg.norm(off)
        if length <= 1e-9 * np.sqrt(self.D) or self.dim == self.D:
            return self
        return self._beside(off[:, None] / length)

    def extended(self, directions: ArrayLike) -> Embedding:
        """More directions, given: the part of each that is new; old coordinates followed by zeros give the same x.

        Args:
            directions: D x k; those that lie in the subspace, or in the span of the ones before, are left out.
        """
        N = np.asarray(directions, dtype=float)
        if N.ndim != 2 or N.shape[0] != self.D or not np.isfinite(N).all():
            raise InputError(f"`directions` is a finite D x k array with D = {self.D}; got shape {N.shape}.")
        Q, _ = np.linalg.qr(self.A)
        for column in N.T[: self.D - self.dim]:
            off = column - Q @ (Q.T @ column)
            off -= Q @ (Q.T @ off)  # once more: the first subtraction leaves rounding errors
            if np.linalg.norm(off) > 1e-9 * np.linalg.norm(column):
                Q = np.column_stack([Q, off / np.linalg.norm(off)])
        return self._beside(Q[:, self.dim :])

    def _beside(self, N: Array) -> Embedding:
        """The present directions and orthonormal others, as long as the present ones are.  N: D x k"""
        scale = np.sqrt(np.mean(np.sum(self.A**2, axis=0)))
        return Embedding(np.hstack([self.A, N * scale]), self.x0)

    def grow(self, k: int, seed: int) -> Embedding:
        """`k` more directions, orthogonal to the present ones; old coordinates followed by k zeros give the same x.

        The directions lean towards parameters that the present ones move little, so that every parameter keeps about
        the same influence and the polytope stays round.
        """
        if self.dim == self.D:
            raise InputError(
                f"An embedding has at most D = {self.D} dimensions; this one has them all. Stop growing it."
            )
        if not 1 <= k <= self.D - self.dim:
            raise InputError(
                f"An embedding grows by one or more, to at most D = {self.D} dimensions; it has {self.dim} and was "
                f"asked for {k} more. Ask for 1 to {self.D - self.dim}."
            )
        rng = generator(seed, "grow")
        Q, _ = np.linalg.qr(self.A)
        have = np.einsum("ij,ij->i", Q, Q)  # share of each parameter's axis inside the subspace
        wanted = np.maximum((self.dim + k) / self.D - have, 0.0) + 1e-3 * k / self.D
        N = rng.standard_normal((self.D, k))
        for _ in range(8):  # alternate: rows of the wanted length, columns orthonormal and off the old subspace
            N *= np.sqrt(wanted)[:, None] / np.maximum(np.linalg.norm(N, axis=1, keepdims=True), 1e-300)
            N -= Q @ (Q.T @ N)
            N, _ = np.linalg.qr(N)
            N -= Q @ (Q.T @ N)
        N, _ = np.linalg.qr(N - Q @ (Q.T @ N))
        return self._beside(N)


def _check_size(D: int, dim: int) -> None:
    if D < 1 or not 1 <= dim <= D:
        raise InputError(
            f"`1 <= dim <= D` must hold; got dim={dim}, D={D}. Choose a dim of at most the number of parameters, "
            "or leave it out and let the embedding grow by itself."
        )


def hypersphere(D: int, dim: int, seed: int) -> Embedding:
    """Columns of B drawn from the unit sphere (paper, Sec. 5): the best chance of containing an optimum."""
    _check_size(D, dim)
    B = generator(seed, "hypersphere").standard_normal((dim, D))
    B /= np.linalg.norm(B, axis=0, keepdims=True)
    return _from_down(B)


def gaussian(D: int, dim: int, seed: int) -> Embedding:
    """Entries of B drawn from N(0, 1), as REMBO's are: the polytope has sharper corners than the hypersphere's."""
    _check_size(D, dim)
    return _from_down(generator(seed, "gaussian").standard_normal((dim, D)))


def hesbo(D: int, dim: int, seed: int) -> Embedding:
    """Each parameter is plus or minus one coordinate (HeSBO): the domain is the box [-1, 1]^dim."""
    _check_size(D, dim)
    rng = generator(seed, "hesbo")
    A = np.zeros((D, dim))
    A[np.arange(D), rng.integers(dim, size=D)] = rng.choice([-1.0, 1.0], size=D)
    return Embedding(A, np.zeros(D))


def identity(D: int) -> Embedding:
    """No embedding at all: Bayesian optimization of the whole cube."""
    _check_size(D, D)
    return Embedding(np.eye(D), np.zeros(D))


def from_matrix(B: ArrayLike, x0: ArrayLike | None = None) -> Embedding:
    """An embedding by any matrix of full row rank that maps down, d_e x D, through `x0` (the centre unless told)."""
    B = np.asarray(B, dtype=float)
    if B.ndim != 2 or 0 in B.shape or not np.isfinite(B).all() or np.linalg.matrix_rank(B) < B.shape[0]:
        raise InputError(
            f"`B` is a finite d_e x D matrix of full row rank; got shape {B.shape}. Remove dependent rows."
        )
    embedding = _from_down(B)
    return embedding if x0 is None else embedding.through(x0)


def _from_down(B: Array) -> Embedding:
    return Embedding(np.linalg.pinv(B).astype(float), np.zeros(B.shape[1]))
