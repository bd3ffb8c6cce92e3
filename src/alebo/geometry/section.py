"""The decision behind containment: does an affine slice of the ambient space meet the cube [-1, 1]^D?

The paper's program (Supplement, Sec. S5) has D unknowns x and D + d equations. Written as x = p + M w the equations are
gone and d_e - d unknowns remain. Most slices are decided by a certificate that is cheap to check: a point of the slice
inside the cube, or a plane with the whole cube on one side and the slice on the other (Farkas). Newton's method on the
distance between the two finds either; a linear program decides what it leaves open, so every verdict is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

_SLACK = 1e-9  # a coordinate of 1 + 1e-9 counts as inside: rounding must not lose an optimum on the boundary


@dataclass(frozen=True, eq=False)
class Section:
    """All x = point + directions w: where a subspace meets the set of optima {x : T x = z}."""

    point: Array  # D
    directions: Array  # D x k, orthonormal columns

    def reach(self) -> float:
        """The half-width of the smallest cube around the centre that the slice meets, by the linear program alone."""
        from scipy.optimize import linprog

        D, k = self.directions.shape
        if k == 0:
            return float(np.abs(self.point).max())
        edge = np.ones((D, 1))
        found = linprog(
            np.append(np.zeros(k), 1.0),
            A_ub=np.block([[self.directions, -edge], [-self.directions, -edge]]),
            b_ub=np.concatenate([-self.point, self.point]),
            bounds=[(None, None)] * k + [(0.0, None)],
            method="highs",
        )
        if not found.success:  # w = 0 is always feasible and the value bounded by zero, so only HiGHS itself can fail
            raise RuntimeError(f"HiGHS failed on a containment program: {found.message}")
        return float(found.fun)

    def meets_cube(self) -> bool:
        """Whether some point of the slice lies in [-1, 1]^D."""
        verdict = self._certify()
        return self.reach() <= 1.0 + 10 * _SLACK if verdict is None else verdict

    def _certify(self, steps: int = 60) -> bool | None:
        """True or False with a certificate in hand; None when none was found in `steps` steps of Newton.

        Minimizes the squared distance to a cube of half-width r, from r = 0.95 upwards. The residual v at its minimum
        is orthogonal to the directions, so v.x is the same all over the slice, while |v.x| <= |v|_1 in the unit cube:
        v.point / |v|_1 is a lower bound of `reach`. It exceeds r, and becomes the next r.
        """
        p, M = self.point, self.directions
        if np.abs(p).max() <= 1.0 + _SLACK:
            return True
        k = M.shape[1]
        if k == 0:
            return False
        x, r, damping = p, 0.95, 1e-3
        over, v, f = _outside(x, r)
        for _ in range(steps):
            rows = M[over]
            H = rows.T @ rows
            H.flat[:: k + 1] += damping
            step = M @ np.linalg.solve(H, rows.T @ v)
            gained, length = 0.0, 1.0
            for _ in range(6):
                x_new = x - length * step
                over_new, v_new, f_new = _outside(x_new, r)
                if f_new < f:
                    gained = (f - f_new) / f
                    x, over, v, f = x_new, over_new, v_new, f_new
                    break
                length *= 0.4
            if gained and np.abs(x).max() <= 1.0 + _SLACK:
                return True
            if gained and length == 1.0:
                damping = max(0.1 * damping, 1e-9)
            else:
                damping = min(2.0 * damping if gained else 10.0 * damping, 1.0)
            if gained < 0.3:  # close to the minimum: look at the bound
                normal = np.zeros_like(p)
                normal[over] = v
                normal -= M @ (M.T @ normal)
                bound = float(normal @ p) / float(np.abs(normal).sum())
                if bound > 1.0 + _SLACK:
                    return False
                if bound > r + 1e-6:
                    r, damping = min(bound, 1.0), 1e-3
                    over, v, f = _outside(x, r)
        return None


def section(A: Array, x0: Array, T: Array, z: Array) -> Section | None:
    """The points x = x0 + A y with T x = z; None when no y solves the equations.  (D x d_e, D, d x D, d)"""
    Q = _orthonormal(A)
    C, gap = T @ Q, z - T @ x0
    U, s, Vt = np.linalg.svd(C, full_matrices=True)
    rank = int(np.count_nonzero(s > 1e-10))
    y = Vt[:rank].T @ ((U[:, :rank].T @ gap) / s[:rank])
    if len(gap) > rank and np.abs(C @ y - gap).max() > 1e-9:
        return None
    M = Q @ Vt[rank:].T
    point = x0 + Q @ y
    return Section(point - M @ (M.T @ point), M)  # the point nearest to the centre: inside more often than not


def _orthonormal(A: Array) -> Array:
    """Orthonormal columns that span those of A, dependent and empty columns (HeSBO's) dropped.  D x d_e -> D x rank"""
    for _ in range(2):  # by the Gram matrix, which is fast; once more where its conditioning has cost digits
        values, vectors = np.linalg.eigh(A.T @ A)
        keep = values > 1e-12 * values[-1]
        A = A @ (vectors[:, keep] / np.sqrt(values[keep]))
        if values[keep][0] > 1e-3 * values[-1]:
            break
    return A


def _outside(x: Array, r: float) -> tuple[NDArray[np.intp], Array, float]:
    """The coordinates beyond r, by how much, and the sum of squares."""
    over = np.flatnonzero(np.abs(x) > r)
    v = x[over] - np.copysign(r, x[over])
    return over, v, float(v @ v)
