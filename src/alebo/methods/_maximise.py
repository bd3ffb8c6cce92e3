"""Line 6 of Algorithm 1: the point of the polytope with the largest acquisition, as it will be evaluated."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..acquisition import (
    Acquisition,
    LogEI,
    PerCost,
    PerLook,
    Quick,
    Unseen,
    at_target,
    candidates,
    evaluate,
    scatter,
    swiftly,
)
from ._fidelity import at_target_next
from ._outcomes import OutcomeModels
from ._rounding import rounded
from ._view import EmbeddedView

Array: TypeAlias = NDArray[np.float64]

AROUND = 4  # of the best points evaluated, near which the search also starts
SCATTERED = 192  # points over the polytope from which the search among rounded points also starts
SHORT: dict[str, Any] = {"raw": 128, "starts": 4, "steps": 4}  # for the later points of a batch
COMPARED = (
    256,
    128,
)  # points over the polytope that the points of a batch compare, with one objective and with several
LATER: dict[str, Any] = {"starts": 4, "steps": 4}  # the climbs of later points
FIRST: dict[str, Any] = {"starts": 6, "steps": 5}  # those of the first one, with many data and several outcomes
FEWER: dict[str, Any] = {"keep": (1.0, 0.5, 0.25)}  # each evaluation of several outcomes takes longer
STEEP: dict[str, Any] = {"steep": 0.5}  # the hypervolume falls steeply away from the front
LIGHT: dict[str, Any] = {"steps": 5}  # with many data: the polish does the rest
BENT: dict[str, Any] = {"raw": 128, "starts": 5, "steps": 12}  # where climbs begin with the curvature of the metric
BEND = 32.0  # times the metric: about the curvature of log-EI where it is largest
LEAST_BEND = 1e-3  # in directions that do not matter


class Search(NamedTuple):
    """What the points of a batch share."""

    draws: Quick  # of all outcomes at the measured points and those under way
    among: Array  # k x d, from the best of which climbs start


class Proposal(NamedTuple):
    """A point to evaluate, where the embedding sees it, and what it promises: its log-EI, whatever it costs."""

    x: Array  # D
    y: Array  # d_e
    value: float
    search: Search | None = None  # how it was found, where later points can go on with it


def maximise(
    acquisition: Acquisition,
    model: OutcomeModels,
    seen: EmbeddedView,
    seed: int,
    *,
    short: bool,
    rough: Acquisition | None = None,
    many: bool = False,
    among: Array | None = None,
) -> Proposal:
    """The best point found; `short` spends less on it, `rough` is a cheaper likeness for most of the search.

    Where points `among` which it starts are given (k x d), the search is that for functions over joint draws.

    With `many` data climbs are shorter. Those of log-EI begin with the curvature that the model's metric lets expect; where
    noise or pending points make it more rugged than the metric, they do not.
    """
    order = _best(model)
    around = seen.Y[order]
    points, values = _searched(acquisition, model, seen, seed, around, short=short, rough=rough, many=many, among=among)
    if not seen.space.continuous:
        points = np.vstack([points, scatter(seen.domain, seed, around, SCATTERED)])
    if seen.space.fidelity is not None and at_target_next(seen):
        points[:, 0] = 1.0
    if seen.space.continuous:
        return Proposal(seen.embedding.up(points[0]), points[0], _promise(acquisition, points[0], float(values[0])))
    x, value = rounded(seen, acquisition, points, seen.X[order], seed)
    y = seen.embedding.down(x)
    return Proposal(x, y, _promise(acquisition, y, value))


def begun(model: OutcomeModels, seen: EmbeddedView, waiting: Tensor | None, seed: int) -> Search | None:
    """A search by joint draws; None where there is a fidelity, or the models' draws cannot be stacked.  waiting: p x d"""
    draws = None if seen.space.fidelity is not None else model.drawn(waiting, seed)
    count = COMPARED[len(model.objectives) > 1]
    return None if draws is None else Search(draws, scatter(seen.domain, seed, seen.Y[_best(model)], count))


def _best(model: OutcomeModels) -> NDArray[np.int64]:
    """The trials near which the search also starts."""
    return np.lexsort((model.values[:, 0], ~model.feasible))[:AROUND]


def _searched(
    acquisition: Acquisition,
    model: OutcomeModels,
    seen: EmbeddedView,
    seed: int,
    around: Array,
    *,
    short: bool,
    rough: Acquisition | None,
    many: bool,
    among: Array | None,
) -> tuple[Array, Array]:
    """Local maxima of the acquisition, the best first, and their values.  -> k x d, k"""
    if among is not None and not seen.domain.many:
        effort = {**(LATER if short else FIRST), **(FEWER if model.several else {})}
        effort |= STEEP if len(model.objectives) > 1 else {}
        return swiftly(acquisition, seen.domain, seed, among, rough=rough, **effort)
    effort = SHORT if short else LIGHT if many else {}
    if many and isinstance(acquisition, LogEI) and (bend := _bend(model)) is not None:
        effort = {**BENT, "bend": bend}
    return candidates(acquisition, seen.domain, seed, around=around, rough=rough, **effort)


def _bend(model: OutcomeModels) -> Tensor | None:
    """About the Hessian of -acquisition, by the average metric of the first objective; None where it has none.  -> d x d"""
    gamma: Tensor | None = getattr(model.objectives[0], "gamma", None)
    if gamma is None:
        return None
    return BEND * gamma.mean(0) + LEAST_BEND * torch.eye(gamma.shape[-1], dtype=gamma.dtype)


def _promise(acquisition: Acquisition, y: Array, value: float) -> float:
    """What a point promises by itself: `value`, its acquisition, without what it costs or how careful the look is."""
    priced = acquisition.acquisition if isinstance(acquisition, Unseen) else acquisition
    if not isinstance(priced, PerCost | PerLook):
        return value
    point = torch.from_numpy(y)[None]
    if isinstance(priced, PerLook):
        point = at_target(point)
    return float(evaluate(priced.acquisition, point.numpy())[0])
