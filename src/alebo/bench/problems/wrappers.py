"""Difficulty by composition: each wrapper takes a problem and gives one that still knows its optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from alebo import Float, InputError, Space

from ..._seeds import generator
from ._problem import Problem

Array: TypeAlias = NDArray[np.float64]


def embed(
    base: Problem,
    D: int,
    *,
    name: str | None = None,
    bounds: Sequence[tuple[float, float]] | None = None,
    axes: Sequence[int] | None = None,
    seed: int = 0,
) -> Problem:
    """The problem in D axes of which only `axes` matter; drawn from `seed` where not given, so fixed for a name.

    Unused axes take the base's first bounds unless `bounds` says otherwise; used ones must keep their own.
    Optimisers are given with every unused axis at the middle of its range: any other value is as good.
    """
    d, name = base.D, name or f"{base.name}-{D}"
    if d > D:
        raise InputError(f"`D >= {d}` must hold to embed {base.name!r}; got D={D}.")
    if axes is None:
        axes = [int(i) for i in generator(seed, "axes", name).permutation(D)[:d]]
    own = base.bounds
    if bounds is None:
        limits = np.tile(own[0], (D, 1))
        limits[list(axes)] = own
    else:
        limits = np.asarray(bounds, dtype=float)
    if len(axes) != d or len(set(axes)) < d or not all(0 <= i < D for i in axes):
        raise InputError(f"`axes` must be {d} different columns below {D}; got {list(axes)}.")
    if limits.shape != (D, 2) or not np.array_equal(limits[list(axes)], own):
        raise InputError(f"`bounds` must be {D} pairs that keep {base.name!r}'s own {own.tolist()} on {list(axes)}.")
    columns = np.array(axes)

    def evaluate(x: Array) -> Any:
        return base.evaluate(x[columns])

    points = None
    if base.optimisers is not None:
        points = np.tile(limits.mean(axis=1), (len(base.optimisers), 1))
        points[:, columns] = base.optimisers
    return replace(
        base,
        name=name,
        space=Space.from_bounds([tuple(pair) for pair in limits.tolist()]),
        evaluate=evaluate,
        optimisers=points,
        axes=tuple(int(i) for i in axes),
    )


def rotate(
    base: Problem, D: int, *, name: str | None = None, bounds: tuple[float, float] = (-1.0, 1.0), seed: int = 0
) -> Problem:
    """The problem on a random linear subspace of [-1, 1]^D, or of a part of it: no single axis matters more than another.

    The first d rows of a random rotation project the point to d numbers (Sec. S8 of the paper), which are read as the
    base's cube coordinates, unclipped. The rotation belongs to the problem: one name, one subspace.
    """
    d, name = base.D, name or f"{base.name}-random-{D}"
    if d > D:
        raise InputError(f"`D >= {d}` must hold to rotate {base.name!r}; got D={D}.")
    # d rows of a Haar rotation: the QR factor of a normal matrix, signs fixed (Stewart 1980)
    Q, R = np.linalg.qr(generator(seed, "rotation", name).normal(size=(D, d)))
    T = (Q * np.sign(np.diag(R))).T  # d x D
    low, high = base.bounds.T

    def evaluate(x: Array) -> Any:
        return base.evaluate(low + 0.5 * (T @ x + 1.0) * (high - low))

    points = None
    if base.optimisers is not None:
        middle = np.full(D, 0.5 * (bounds[0] + bounds[1]))
        z = 2.0 * (base.optimisers - low) / (high - low) - 1.0
        points = middle + (z - T @ middle) @ T  # the x with T x = z that is nearest to the middle
        if points.min() < bounds[0] or points.max() > bounds[1]:
            points = None  # the nearest one leaves the box: another may not, but we do not know it
    return replace(
        base,
        name=name,
        space=Space.from_bounds([bounds] * D),
        evaluate=evaluate,
        optimum=base.optimum if points is not None else None,
        optimisers=points,
        axes=(),
    )


def noisy(base: Problem, sd: float | Mapping[str, float], *, name: str | None = None) -> Problem:
    """The problem measured with normal noise; its truth, and so its optimum, stay."""
    noise = dict(sd) if isinstance(sd, Mapping) else dict.fromkeys(base.goals.outcomes, float(sd))
    if not all(np.isfinite(s) and s >= 0 for s in noise.values()):
        raise InputError(f"`sd >= 0` must hold for every outcome; got {noise}.")
    return replace(base, name=name or f"{base.name}-noisy", noise=noise)


def shift(base: Problem, *, by: Sequence[float] | None = None, name: str | None = None, seed: int = 0) -> Problem:
    """The problem moved by a vector; without `by`, so that its optimum is uniform in the inner 80 % of the box.

    The base is then evaluated beyond its box too, so this is for functions defined there, and only a known optimiser
    that stays inside keeps the optimum known.
    """
    name = name or f"{base.name}-shifted"
    low, high = base.bounds.T
    if by is None:
        if base.optimisers is None:
            raise InputError(f"A drawn shift needs a known optimiser; {base.name!r} has none. Pass `by`.")
        u = generator(seed, "shift", name).uniform(0.1, 0.9, base.D)
        by = (low + u * (high - low) - base.optimisers[0]).tolist()
    move = np.asarray(by, dtype=float)
    if move.shape != (base.D,):
        raise InputError(f"`by` needs {base.D} numbers; got shape {move.shape}.")

    def evaluate(x: Array) -> Any:
        return base.evaluate(x - move)

    points = None
    if base.optimisers is not None:
        moved = base.optimisers + move
        inside = np.all((moved >= low) & (moved <= high), axis=1)
        points = moved[inside] if inside.any() else None
    return replace(
        base, name=name, evaluate=evaluate, optimisers=points, optimum=base.optimum if points is not None else None
    )


def permute(base: Problem, *, order: Sequence[int] | None = None, name: str | None = None, seed: int = 0) -> Problem:
    """The problem with its axes in another order: new axis i is old axis `order[i]`."""
    name = name or f"{base.name}-permuted"
    if order is None:
        order = [int(i) for i in generator(seed, "permute", name).permutation(base.D)]
    if sorted(order) != list(range(base.D)):
        raise InputError(f"`order` must name every axis below {base.D} once; got {list(order)[:10]}.")
    columns = np.array(order)
    back = np.argsort(columns)
    limits = base.bounds[columns]

    def evaluate(x: Array) -> Any:
        return base.evaluate(x[back])

    return replace(
        base,
        name=name,
        space=Space([Float(f"x{i}", lo, hi) for i, (lo, hi) in enumerate(limits.tolist())]),
        evaluate=evaluate,
        optimisers=None if base.optimisers is None else base.optimisers[:, columns],
        axes=tuple(int(back[i]) for i in base.axes),
    )
