"""Is the linear embedding large enough, and does the function want to leave it?

Letters as in the paper: D ambient and d embedded dimensions, Gamma the metric of the kernel in the embedding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..goals import Goals
from ..history import incumbent
from ..methods._fitted import Fitted
from .importance import orthonormal_slopes

Array: TypeAlias = NDArray[np.float64]
ON_A_FACE = 1e-3  # slack below which a proposal lies on a face of the polytope


@dataclass(frozen=True)
class Geometry:
    """What is known about the embedding; what could not be computed is None."""

    dim: int
    boundary_share: float | None = None  # of the later half of the proposals, on a face of the polytope
    pull: float | None = None  # slope at the incumbent against the typical slope; about 0 at an inner optimum
    containment: float | None = None
    directions: int | None = None  # eigenvalues of Gamma above a hundredth of the largest
    rank: float | None = None  # effective rank of Gamma, with its 5 % and 95 % quantiles
    rank_low: float | None = None
    rank_high: float | None = None
    since_growth: int | None = None  # completed trials in the present dimensions; None where it never grew


def geometry(fitted: Fitted, goals: Goals, D: int) -> Geometry | None:
    """The numbers about the embedding of these models; None where they have none."""
    if fitted.embedding is None:
        return None
    d = fitted.embedding.dim
    common = {"dim": d, "boundary_share": boundary_share(fitted), "since_growth": _since_growth(fitted)}
    first = fitted.models.get(goals.objectives[0].outcome)
    if first is None or not hasattr(first.model, "gamma"):
        return Geometry(**common)  # type: ignore[arg-type]
    R = np.linalg.qr(fitted.embedding.A)[1]
    metrics = [np.linalg.solve(R.T, np.linalg.solve(R.T, g).T) for g in first.model.gamma.detach().numpy()]
    ranks = np.array([effective_rank(g) for g in metrics])
    spectra = [np.linalg.eigvalsh(g) for g in metrics]
    directions = round(float(np.median([(e > 0.01 * e.max()).sum() for e in spectra])))
    return Geometry(
        **common,  # type: ignore[arg-type]
        pull=outward_pull(fitted, goals) if goals.single and not goals.constraints else None,
        containment=_containment(D, directions, d),
        directions=directions,
        rank=float(np.median(ranks)),
        rank_low=float(np.quantile(ranks, 0.05)),
        rank_high=float(np.quantile(ranks, 0.95)),
    )


def effective_rank(gamma: Array) -> float:
    """How many directions a metric really uses: the participation ratio of its eigenvalues, 1 to d.  d x d"""
    eigenvalues = np.maximum(np.linalg.eigvalsh(gamma), 0.0)
    total = eigenvalues.sum()
    return float(total**2 / (eigenvalues**2).sum()) if total > 0 else math.nan


def boundary_share(fitted: Fitted) -> float | None:
    """The share of the later half of the proposals that lie on a face of the polytope."""
    later = fitted.P[len(fitted.P) // 2 :]
    if len(later) < 5 or fitted.embedding is None:
        return None
    return float(np.mean(fitted.embedding.domain.slack(later).min(axis=-1) < ON_A_FACE))


def outward_pull(fitted: Fitted, goals: Goals) -> float | None:
    """How steeply the model still falls at the incumbent, against its typical slope; None where it lies inside.

    On a face of the polytope a slope that is not nearly zero points out of it: the function wants to leave the embedding.
    """
    assert fitted.embedding is not None
    inside = incumbent(fitted.trials, goals)
    if inside is None:
        return None
    best = fitted.trials.index(inside)
    y = fitted.P[best : best + 1]
    if fitted.embedding.domain.slack(y).min() >= ON_A_FACE:
        return None
    model: Any = fitted.models[goals.objectives[0].outcome].model
    G = orthonormal_slopes(model, fitted.embedding, np.concatenate([y, fitted.P]))
    typical = float(np.sqrt((G[:, 1:] ** 2).sum(axis=-1).mean()))
    return float(np.linalg.norm(G[:, 0].mean(axis=0)) / typical) if typical > 0 else None


def _since_growth(fitted: Fitted) -> int | None:
    assert fitted.embedding is not None
    sizes = [len(t.y) for t in fitted.trials if t.y is not None]
    return sizes.count(fitted.embedding.dim) if sizes and min(sizes) < fitted.embedding.dim else None


def _containment(D: int, active: int, dim: int) -> float | None:
    """The chance that an embedding of this size contains an optimum, if as many parameters matter as directions do."""
    from ..geometry.advice import probability

    return probability(D, active, dim) if 1 <= active <= min(dim, 10) and D <= 5000 else None
