"""Which parameters matter?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._seeds import derive, generator
from ..geometry import Embedding
from ..methods._fitted import Fitted
from ..space import Space

if TYPE_CHECKING:
    from ..models import MahalanobisGP

Array: TypeAlias = NDArray[np.float64]
CERTAIN = 0.05  # probability that any parameter at all is called certain by chance


@dataclass(frozen=True)
class Importance:
    """How much one parameter matters to the objective, as a model has it: shares add up to 1 over all parameters."""

    name: str
    share: float
    low: float | None  # 5 % and 95 % quantiles over the posterior; None where the model gives none
    high: float | None
    certain: bool  # whether it matters beyond chance, all parameters considered together
    chance: float | None = None  # probability that a parameter without influence gets a share this large


def slopes(model: MahalanobisGP, Y: Array) -> Array:
    """The gradient of the mean under each sampled metric, in the outcome's units.  k x d -> m x k x d"""
    import torch

    found: Array = model.scale * model.data.slopes(torch.from_numpy(np.ascontiguousarray(Y))).detach().numpy()
    return found


def orthonormal_slopes(model: MahalanobisGP, embedding: Embedding, Y: Array) -> Array:
    """The gradients in orthonormal coordinates of the subspace, A = Q R.  k x d -> m x k x d"""
    R = np.linalg.qr(embedding.A)[1]
    return np.linalg.solve(R.T, slopes(model, Y).swapaxes(-1, -2)).swapaxes(-1, -2)


def slope_importance(fitted: Fitted, outcome: str, space: Space, *, seed: int = 0) -> tuple[Importance, ...]:
    """How much of the slope of an embedding's model points along each named parameter, the largest first.

    In orthonormal coordinates of the subspace, C = mean of grad grad', and the share of a parameter is q' C q / tr C with
    q its row of the basis: the part of the slope that lies along it. Shares add up to one. A small embedding mixes many
    parameters into each direction, so `chance` says how often a direction that has nothing to do with the function gets
    a share as large. Certain is what stays below 5 % for all parameters together (Bonferroni).
    """
    assert fitted.embedding is not None
    model: Any = fitted.models[outcome].model
    Q = np.linalg.qr(fitted.embedding.A)[0]
    points = np.concatenate([fitted.P, fitted.embedding.domain.sample(200, derive(seed, "slopes"))])
    G = orthonormal_slopes(model, fitted.embedding, points)  # m x k x d
    C = np.einsum("mki,mkj->mij", G, G)
    C /= np.maximum(np.einsum("mii->m", C), 1e-300)[:, None, None]
    by_column = np.einsum("ji,mik,jk->mj", Q, C, Q)  # m x D
    middle = C.mean(axis=0)
    norms = np.einsum("ji,ji->j", Q, Q)
    u = generator(seed, "directions").standard_normal((20000, Q.shape[1]))
    by_luck = np.sort(np.einsum("ki,ij,kj->k", u, middle, u) / (u**2).sum(axis=1))
    found = []
    columns = space.coordinates()
    for name, at in columns.items():
        shares = by_column[:, at].sum(axis=1)
        angle = float(shares.mean()) / max(float(norms[at].sum()), 1e-300)
        chance = 1.0 - float(np.searchsorted(by_luck, angle)) / len(by_luck)
        low, high = np.quantile(shares, [0.05, 0.95])
        certain = chance < CERTAIN / len(columns)
        found.append(Importance(name, float(shares.mean()), float(low), float(high), certain, chance))
    return tuple(sorted(found, key=lambda s: -s.share))
