"""Line 6 of Algorithm 1: the point of the polytope with the largest acquisition, as it will be evaluated."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..acquisition import Acquisition, LogEI, PerCost, PerLook, at_target, candidates, evaluate, scatter
from ._fidelity import at_target_next
from ._outcomes import OutcomeModels
from ._rounding import rounded
from ._view import EmbeddedView

Array: TypeAlias = NDArray[np.float64]

AROUND = 4  # of the best points evaluated, near which the search also starts
SCATTERED = 192  # points over the polytope from which the search among rounded points also starts
SHORT: dict[str, Any] = {"raw": 128, "starts": 4, "steps": 4}  # for the later points of a batch
LIGHT: dict[str, Any] = {"steps": 5}  # with many data: the polish does the rest
BENT: dict[str, Any] = {"raw": 128, "starts": 5, "steps": 12}  # where climbs begin with the curvature of the metric
BEND = 32.0  # times the metric: about the curvature of log-EI where it is largest
LEAST_BEND = 1e-3  # in directions that do not matter


class Proposal(NamedTuple):
    """A point to evaluate, where the embedding sees it, and what it promises: its log-EI, whatever it costs."""

    x: Array  # D
    y: Array  # d_e
    value: float


def maximise(
    acquisition: Acquisition,
    model: OutcomeModels,
    seen: EmbeddedView,
    seed: int,
    *,
    short: bool,
    rough: Acquisition | None = None,
    many: bool = False,
) -> Proposal:
    """The best point found; `short` spends less on it, `rough` is a cheaper likeness for most of the search.

    With `many` data climbs are shorter. Those of log-EI begin with the curvature that the model's metric lets expect; where
    noise or pending points make it more rugged than the metric, they do not.
    """
    order = np.lexsort((model.values[:, 0], ~model.feasible))[:AROUND]
    best = seen.Y[order]
    effort = SHORT if short else LIGHT if many else {}
    if many and isinstance(acquisition, LogEI) and (bend := _bend(model)) is not None:
        effort = {**BENT, "bend": bend}
    points, values = candidates(acquisition, seen.domain, seed, around=best, rough=rough, **effort)
    if not seen.space.continuous:
        points = np.vstack([points, scatter(seen.domain, seed, best, SCATTERED)])
    if seen.space.fidelity is not None and at_target_next(seen):
        points[:, 0] = 1.0
    if seen.space.continuous:
        return Proposal(seen.embedding.up(points[0]), points[0], _promise(acquisition, points[0], float(values[0])))
    x, value = rounded(seen, acquisition, points, seen.X[order], seed)
    y = seen.embedding.down(x)
    return Proposal(x, y, _promise(acquisition, y, value))


def _bend(model: OutcomeModels) -> Tensor | None:
    """About the Hessian of -acquisition, by the average metric of the first objective; None where it has none.  -> d x d"""
    gamma: Tensor | None = getattr(model.objectives[0], "gamma", None)
    if gamma is None:
        return None
    return BEND * gamma.mean(0) + LEAST_BEND * torch.eye(gamma.shape[-1], dtype=gamma.dtype)


def _promise(acquisition: Acquisition, y: Array, value: float) -> float:
    """What a point promises by itself: `value`, its acquisition, without what it costs or how careful the look is."""
    if not isinstance(acquisition, PerCost | PerLook):
        return value
    point = torch.from_numpy(y)[None]
    if isinstance(acquisition, PerLook):
        point = at_target(point)
    return float(evaluate(acquisition.acquisition, point.numpy())[0])
