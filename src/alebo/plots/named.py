"""A model of all parameters along one or two named parameters, all others at the values of one point.

An embedding's model cannot answer this: moving one parameter leaves the subspace. So it is the method's own model where that
sees all parameters, else the sparse model of the diagnosis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._errors import InputError
from ..diagnostics import Diagnosis, sparse_model
from ..history import Trial, incumbent
from ..space import Categorical, Fixed, Float, Int, Space
from ._style import Run, parameter

Array: TypeAlias = NDArray[np.float64]
Predict: TypeAlias = Callable[[Array], tuple[Array, Array]]  # m x D points of the cube -> means and variances


def predictor(run: Run, diagnosis: Diagnosis | None, outcome: str) -> Predict | None:
    """The model of all parameters of this outcome; None where there are too few trials for one."""
    fitted = None if diagnosis is None else diagnosis.fitted
    if fitted is not None and fitted.embedding is None and outcome in fitted.models:
        own, see = fitted.models[outcome], fitted.see
        return lambda X: own.predict(see(X))
    if diagnosis is not None and outcome == run.goals.objectives[0].outcome:
        return None if diagnosis.sparse is None else diagnosis.sparse.predict
    found = sparse_model(run.history, run.space, run.goals, outcome=outcome)
    return None if found is None else found.predict


def centre(run: Run, at: int | Trial | None) -> Trial | None:
    """The point through which a slice goes: the given trial, else the incumbent, else the last completed trial."""
    if isinstance(at, Trial):
        return at
    if at is not None:
        if not 0 <= at < len(run.history):
            raise InputError(f"`at` is the number of a trial; got {at}, and there are {len(run.history)}.")
        return run.history[at]
    if run.goals.single:
        found = incumbent(run.history, run.goals, run.space)
    else:
        good = [t for t in run.history.complete if run.goals.feasible(t.outcomes)]
        found = min(good, key=lambda t: float(run.goals.objective_values(t.outcomes)[0])) if good else None
    complete = run.history.complete
    return found if found is not None else complete[-1] if complete else None


def grid(space: Space, name: str, size: int) -> list[Any]:
    """Values of a parameter over its range: evenly by its scale, all choices, or whole numbers."""
    p = parameter(space, name)
    if isinstance(p, Categorical):
        return list(p.choices)
    if isinstance(p, Fixed):
        raise InputError(f"A slice needs a parameter that varies; {name!r} is fixed.")
    if isinstance(p, Float):
        ends = (math.log(p.low), math.log(p.high)) if p.log else (p.low, p.high)
        inner = np.linspace(*ends, size)[1:-1]
        return [p.low, *(np.exp(inner) if p.log else inner).tolist(), p.high]
    if p.high - p.low < size:
        return list(range(p.low, p.high + 1))
    ends = (math.log(p.low), math.log(p.high)) if p.log else (p.low, p.high)
    inner = np.linspace(*ends, size)
    return sorted({min(p.high, max(p.low, round(float(math.exp(v) if p.log else v)))) for v in inner})


def slice_data(
    predict: Predict, space: Space, params: Mapping[str, Any], name: str, *, size: int = 61
) -> dict[str, Any]:
    """Mean and standard deviation along one parameter, all others as in `params`."""
    values = grid(space, name, size)
    mean, variance = predict(np.stack([space.encode({**params, name: v}) for v in values]))
    return {
        "name": name,
        "at": values,
        "mean": mean.tolist(),
        "sd": np.sqrt(variance).tolist(),
        "log": is_log(space, name),
    }


def contour_data(
    predict: Predict, space: Space, params: Mapping[str, Any], x: str, y: str, *, size: int = 31
) -> dict[str, Any]:
    """Mean and standard deviation over the whole ranges of two parameters, all others as in `params`."""
    if x == y:
        raise InputError(f"A contour needs two parameters; got {x!r} twice. Use slices() for one.")
    across, up = grid(space, x, size), grid(space, y, size)
    base = space.encode(dict(params))
    X = np.tile(base, (len(across) * len(up), 1))  # m x D
    columns = {n: _columns(space, n, dict(params), v) for n, v in ((x, across), (y, up))}
    for i in range(len(up)):
        for j in range(len(across)):
            row = X[i * len(across) + j]
            for at, values in ((columns[x], j), (columns[y], i)):
                row[at[0]] = at[1][values]
    mean, variance = predict(X)
    shape = (len(up), len(across))
    return {
        "x": {"name": x, "at": across, "log": is_log(space, x)},
        "y": {"name": y, "at": up, "log": is_log(space, y)},
        "mean": mean.reshape(shape).tolist(),
        "sd": np.sqrt(variance).reshape(shape).tolist(),
    }


def _columns(space: Space, name: str, params: dict[str, Any], values: list[Any]) -> tuple[NDArray[np.intp], Array]:
    """The coordinates that a parameter moves, and what they are for each of its values.  -> k, m x k"""
    points = np.stack([space.encode({**params, name: v}) for v in values])
    moved = np.flatnonzero(np.ptp(points, axis=0) > 0.0) if len(values) > 1 else np.zeros(0, dtype=int)
    return moved, points[:, moved]


def is_log(space: Space, name: str) -> bool:
    """Whether a parameter is scaled by logarithms."""
    p = parameter(space, name)
    return isinstance(p, Float | Int) and p.log
