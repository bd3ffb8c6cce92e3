"""Line 6 of Algorithm 1: the point of the polytope with the largest acquisition, as it will be evaluated."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from ..acquisition import Acquisition, PerCost, PerLook, at_target, candidates, evaluate, scatter
from ._fidelity import at_target_next
from ._outcomes import OutcomeModels
from ._rounding import rounded
from ._view import EmbeddedView

Array: TypeAlias = NDArray[np.float64]

AROUND = 4  # of the best points evaluated, near which the search also starts
SCATTERED = 192  # points over the polytope from which the search among rounded points also starts
SHORT: dict[str, Any] = {"raw": 128, "starts": 4, "steps": 4}  # for the later points of a batch


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
) -> Proposal:
    """The best point found; `short` spends less on it, `rough` is a cheaper likeness for most of the search."""
    order = np.lexsort((model.values[:, 0], ~model.feasible))[:AROUND]
    best = seen.Y[order]
    effort = SHORT if short else {}
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


def _promise(acquisition: Acquisition, y: Array, value: float) -> float:
    """What a point promises by itself: `value`, its acquisition, without what it costs or how careful the look is."""
    if not isinstance(acquisition, PerCost | PerLook):
        return value
    point = torch.from_numpy(y)[None]
    if isinstance(acquisition, PerLook):
        point = at_target(point)
    return float(evaluate(acquisition.acquisition, point.numpy())[0])
