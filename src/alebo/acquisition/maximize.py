"""Where an acquisition function is largest: over a polytope (barrier method) or over a box (L-BFGS-B), from many starts at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize
from scipy.stats import qmc
from torch import Tensor

from .._seeds import generator
from ..geometry import Polytope
from ._climb import ascend, climb
from ._swift import NEAR_FACES, polish, rise
from .functions import WORTHLESS, Acquisition, value_and_gradient

Array: TypeAlias = NDArray[np.float64]

PIECE = 1000  # points that are evaluated at once: memory does not grow with their number

# The climb inside a polytope
DIRECT, LAST = (
    (1e-4,),
    (1e-3, 1e-6),
)  # weights of the barrier where the curvature is known: of all climbs, of the best end
WORTH = 1e-3  # the promised gain from which a step is worth it there
TOUCHING = 1.0 - 1e-4  # the best end is drawn towards the centre by this factor before it is climbed further

# The search of a box
QUASI = 64  # dimensions up to which its points are quasi-random
PERTURBED = 20  # coordinates, on average, in which a start leaves the incumbent


def propose(acquisition: Acquisition, domain: Polytope, seed: int, **how: Any) -> tuple[Array, float]:
    """The point of the polytope with the largest acquisition, and its value; `how` as in `candidates`.  -> d, ()"""
    points, values = candidates(acquisition, domain, seed, **how)
    return points[0], float(values[0])


def candidates(
    acquisition: Acquisition,
    domain: Polytope,
    seed: int,
    *,
    around: Array | None = None,
    extra: Array | None = None,
    rough: Acquisition | None = None,
    bend: Tensor | None = None,
    raw: int = 256,
    starts: int = 8,
    steps: int = 10,
) -> tuple[Array, Array]:
    """Local maxima of the acquisition inside the polytope, the best first.

    Args:
        acquisition: what to maximise.
        domain: the polytope.
        seed: of the starts.
        around: k x d points worth starting near: the best so far, and where the last proposals were.
        extra: k x d points that are climbed from in any case.
        rough: a cheaper likeness of the acquisition, by which points are compared and climbed; where the climbs end is
            judged, and the best end climbed further, by the acquisition itself.
        bend: d x d, a guess of the Hessian of -acquisition: climbs begin with it and need few steps.
        raw: points over the whole polytope that are compared before the climb.
        starts: of them that are climbed from.
        steps: of the climb for each weight of the barrier.

    Returns:
        k x d points and their k values.
    """
    rng = generator(seed, "propose")
    Y = scatter(domain, seed, around, raw)
    values = evaluate(rough or acquisition, Y)
    begin = Y[_pick(values, starts, rng)]
    if extra is not None and len(extra):
        begin = np.vstack([begin, extra])
    if bend is not None:
        return _directly(acquisition, rough or acquisition, domain, torch.from_numpy(begin), bend, steps)
    ends, reached = climb(rough or acquisition, domain, torch.from_numpy(begin), steps=steps)
    if rough is not None:
        reached = evaluate(acquisition, ends)
    order = np.argsort(-reached)
    ends, reached = ends[order], reached[order]
    best, value = _polish(acquisition, domain, ends[0], float(reached[0]), steps=3 * steps)
    ends[0], reached[0] = best, value
    return ends, reached


def swiftly(
    acquisition: Acquisition,
    domain: Polytope,
    seed: int,
    among: Array,
    *,
    rough: Acquisition | None = None,
    starts: int = 4,
    steps: int = 4,
    keep: Sequence[float] = (1.0, 1.0, 1.0),
    steep: float | None = None,
    polishing: int = 12,
) -> tuple[Array, Array]:
    """As `candidates`, with fewer evaluations: for functions over joint draws in a polytope of not too many faces.

    Args:
        acquisition: what to maximise.
        domain: the polytope.
        seed: of the choice of starts.
        among: k x d points that are compared before the climb.
        rough: as for `candidates`.
        starts: of the points that are climbed from.
        steps: of the climb for each weight of the barrier.
        keep: shares of the climbs that go on at each weight of the barrier.
        steep: the length that first steps have at most, where the acquisition is steep.
        polishing: steps of the last polish.

    Returns:
        k x d points and their k values, the best first.
    """
    begin = among[_pick(evaluate(rough or acquisition, among), starts, generator(seed, "propose"))]
    ends, reached, bends = rise(rough or acquisition, domain, begin, steps=steps, keep=keep, steep=steep)
    if rough is not None:
        reached = evaluate(acquisition, ends)
    order = np.argsort(-reached, kind="stable")
    ends, reached = ends[order], reached[order]
    best = polish(acquisition, domain, ends[0], bends[order[0]], steps=polishing)
    after = float(evaluate(acquisition, best[None])[0])
    if after > reached[0]:
        ends[0], reached[0] = best, after
    return ends, reached


def _directly(
    acquisition: Acquisition, rough: Acquisition, domain: Polytope, begin: Tensor, bend: Tensor, steps: int
) -> tuple[Array, Array]:
    """As `candidates` from these starts, where the curvature is known about: few steps, and the same kind for the best end."""
    bends = bend.expand(len(begin), *bend.shape).clone()
    ends, reached, bends = ascend(rough, domain, begin, steps=steps, barriers=DIRECT, bends=bends, flat=WORTH)
    if rough is not acquisition:
        reached = evaluate(acquisition, ends)
    order = np.argsort(-reached)
    ends, reached, first = ends[order], reached[order], int(order[0])
    best, _, _ = ascend(
        acquisition,
        domain,
        torch.from_numpy(ends[:1]),
        steps=steps,
        barriers=LAST,
        bends=bends[first][None],
        inside=TOUCHING,
        flat=WORTH,
    )
    after = evaluate(acquisition, best)
    if after[0] > reached[0]:
        ends[0], reached[0] = best[0], after[0]
    return ends, reached


def scatter(domain: Polytope, seed: int, around: Array | None, count: int) -> Array:
    """Points to compare: `count` over the whole polytope, and half as many near given ones.  -> k x d"""
    rng = generator(seed, "scatter")
    Y = domain.sample(count, int(rng.integers(2**62)), steps=2)
    if around is None or not len(around):
        return Y
    around = domain.pull_inside(around)
    return np.vstack([Y, around, _near(domain, around, count // 2, rng)])


def evaluate(acquisition: Acquisition, Y: Array) -> Array:
    """The acquisition at many points, in pieces: memory does not grow with their number.  k x d -> k"""
    with torch.no_grad():
        parts = [acquisition(part.unsqueeze(-2)) for part in torch.from_numpy(np.ascontiguousarray(Y)).split(PIECE)]
    return torch.nan_to_num(torch.cat(parts), nan=WORTHLESS, neginf=WORTHLESS).numpy()


def _polish(acquisition: Acquisition, domain: Polytope, y: Array, value: float, *, steps: int) -> tuple[Array, float]:
    """One SLSQP run with the constraints near the point: the barrier can stop a little short of a face."""
    slack = domain.slack(y)
    count = NEAR_FACES * domain.dim
    near = np.argpartition(slack, count)[:count] if domain.many else np.argsort(slack)[:count]
    A, b = domain.A[near], domain.b[near]

    def negative(w: Array) -> tuple[float, Array]:
        f, g = value_and_gradient(acquisition, torch.from_numpy(np.asarray(w, dtype=float))[None])
        return -float(f[0]), -g[0].numpy()

    found = minimize(
        negative,
        y,
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda w: b - A @ w, "jac": lambda w: -A},
        options={"maxiter": steps, "ftol": 1e-9},
    )
    if not np.isfinite(found.x).all():
        return y, value
    inside = domain.pull_inside(found.x)
    after = float(evaluate(acquisition, inside[None])[0])
    return (inside, after) if after > value else (y, value)


def _near(domain: Polytope, around: Array, count: int, rng: np.random.Generator) -> Array:
    """Points a random distance from given ones, in random directions, inside.  -> count x d"""
    base = around[rng.integers(len(around), size=count)]
    theta = rng.standard_normal(base.shape)
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    _, ahead = domain.ray(base, theta)
    length = np.minimum(10.0 ** rng.uniform(-2.0, 0.3, count), 0.99 * ahead)
    near: Array = base + theta * length[:, None]
    return near


def _pick(values: Array, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The best point, and others drawn in proportion to a power of their rank, so that the starts differ."""
    order = np.argsort(-values)
    top = order[: max(count, len(order) // 4)]
    weight = np.exp(-np.arange(len(top)) / (len(top) / 6.0))
    rest = rng.choice(top[1:], size=min(count - 1, len(top) - 1), replace=False, p=weight[1:] / weight[1:].sum())
    return np.concatenate([top[:1], rest])


# -- over a box --------------------------------------------------------------------------------------------------------


def maximise_in_box(
    acquisition: Acquisition,
    lower: Array,
    upper: Array,
    *,
    seed: int,
    extra: Array | None = None,
    raw: int = 1024,
    starts: int = 6,
    iterations: int = 100,
) -> tuple[Array, float]:
    """The point of the box with the largest acquisition, and its value.

    Quasi-random and extra points are compared, the best of them refined together by L-BFGS-B, the best end once more alone.

    Args:
        acquisition: what to maximise.
        lower: d lower ends.
        upper: d upper ends.
        seed: of the starts.
        extra: k x d points to compare, too: near the incumbent, say (see `perturbed`).
        raw: points over the whole box.
        starts: of all these that are refined.
        iterations: of L-BFGS-B.

    Returns:
        A point (d) and its value.
    """
    rng = generator(seed, "maximise")
    points = lower + _unit_points(len(lower), raw, rng) * (upper - lower)
    if extra is not None and len(extra):
        points = np.concatenate([np.clip(extra.reshape(-1, len(lower)), lower, upper), points])
    score = evaluate(acquisition, points)
    begin = points[_pick_by_value(score, starts, rng)]
    ends = _refine(acquisition, begin, lower, upper, iterations)
    ends = np.concatenate([ends, points[[np.argmax(score)]]])
    reached = evaluate(acquisition, ends)
    best = int(np.argmax(reached))
    alone = _refine(acquisition, ends[[best]], lower, upper, iterations // 2)
    after = float(evaluate(acquisition, alone)[0])
    return (alone[0], after) if after > reached[best] else (ends[best], float(reached[best]))


def climb_in_box(
    acquisition: Acquisition, begin: Array, lower: Array, upper: Array, *, iterations: int
) -> tuple[Array, float]:
    """The best point reached from the given ones, and its value: they are refined together by L-BFGS-B.  k x d -> d, ()"""
    begin = np.clip(begin, lower, upper)
    ends = np.concatenate([_refine(acquisition, begin, lower, upper, iterations), begin])
    reached = evaluate(acquisition, ends)
    best = int(np.argmax(reached))
    return ends[best], float(reached[best])


def perturbed(
    centre: Array, lower: Array, upper: Array, count: int, rng: np.random.Generator, *, quasi: bool = False
) -> Array:
    """Copies of a point, each with about `PERTURBED` of its coordinates replaced by random ones in a box.  -> count x d

    `quasi` takes those from a Sobol sequence, which is slow in many dimensions.
    """
    D = len(centre)
    change = rng.random((count, D)) < min(1.0, PERTURBED / D)
    idle = np.flatnonzero(~change.any(axis=1))
    change[idle, rng.integers(0, D, size=len(idle))] = True
    unit = qmc_points(D, count, int(rng.integers(2**62))) if quasi else rng.random((count, D))
    return np.where(change, lower + (upper - lower) * unit, centre)


def qmc_points(D: int, n: int, seed: int) -> Array:
    """n quasi-random points of the unit cube; uniform ones where the sequence has too few dimensions.  -> n x D"""
    rng = generator(seed, "qmc")
    if n == 0 or D > qmc.Sobol.MAXDIM:
        return rng.random((n, D))
    points: Array = qmc.Sobol(D, scramble=True, rng=rng).random_base2(math.ceil(math.log2(n)))[:n]
    return points


def _unit_points(d: int, count: int, rng: np.random.Generator) -> Array:
    if d > QUASI:
        return rng.random((count, d))
    points: Array = qmc.Sobol(d, scramble=True, rng=rng).random_base2(max(1, math.ceil(math.log2(count))))
    return points


def _pick_by_value(score: Array, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Half of the starts are the best points, the others are drawn in proportion to the exponential of their value."""
    order = np.argsort(-score, kind="stable")
    first = max(1, count // 2)
    chosen, rest = order[:first], order[first:]
    if first >= count or not len(rest):
        return chosen
    worth = score[score > WORTHLESS]
    spread = max(float(np.std(worth)) if len(worth) else 0.0, 1e-12)
    weight = np.exp((score[rest] - score[order[0]]) / spread) + 1e-12
    return np.append(
        chosen, rng.choice(rest, size=min(count - first, len(rest)), replace=False, p=weight / weight.sum())
    )


def _refine(acquisition: Acquisition, X: Array, lower: Array, upper: Array, iterations: int) -> Array:
    """All points at once uphill, by L-BFGS-B on the sum of their values.  k x d -> k x d"""

    def negative(flat: Array) -> tuple[float, Array]:
        value, gradient = value_and_gradient(acquisition, torch.from_numpy(flat.reshape(X.shape)))
        return -float(value.sum()), -gradient.numpy().ravel()

    box = Bounds(np.tile(lower, len(X)), np.tile(upper, len(X)))
    options = {"maxiter": iterations, "maxfun": 2 * iterations}
    found = minimize(negative, X.ravel(), jac=True, method="L-BFGS-B", bounds=box, options=options)
    ends: Array = np.nan_to_num(found.x).reshape(X.shape)
    return np.clip(ends, lower, upper)
