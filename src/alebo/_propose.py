"""What stands between a method and a trial: for the Optimizer and for the sampler for Optuna."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._errors import InputError
from ._seeds import derive, reproducible
from .goals import Goals
from .history import History, Trial
from .methods import Method, build, default_method
from .space import Space

NEAR = 0.1  # a setting that moved by at most so much in the cube (5 % of its range) was rounded


class Asked(list[Trial]):
    """The trials of one ask. A list; reading `.params` of it says what to write instead."""

    def __getattr__(self, name: str) -> Any:
        if name in Trial.__dataclass_fields__:
            raise AttributeError(
                f"ask() returns a list of trials, also for one; it has no .{name}. Write opt.ask()[0].{name}, or: for "
                f"trial in opt.ask(4): trial.{name}"
            )
        raise AttributeError(f"'list' object has no attribute {name!r}")


def propose(method: Method, history: History, space: Space, goals: Goals, q: int, seed: int) -> list[Trial]:
    """`q` pending trials that the method proposes after this history, numbered on from it. The history is not changed."""
    with reproducible(derive(seed, "ask", len(history))):
        points = method.suggest(history, space, goals, q, seed)
    trials = []
    for number, point in enumerate(points, start=len(history)):
        x = np.clip(point.x, -1.0, 1.0)
        trials.append(Trial(number, space.decode(x), x, point.y, note=dict(point.note)))
    return trials


def as_method(method: Method | str | None) -> Method:
    """The method itself, the one of this name with its defaults, or the default method."""
    if method is None:
        return default_method()
    if isinstance(method, str):
        return build(method)
    if not isinstance(method, Method):
        raise InputError(
            f"`method` is an object such as alebo.ALEBO(dim=8), or a name such as 'turbo'; got {method!r:.60}."
        )
    return method


def as_run(space: Space, trial: Trial, params: Mapping[str, Any] | None) -> Trial:
    """The trial with the settings that were really run; what was proposed is kept in `earlier`.

    A rounded setting keeps its embedded point, from which models learn. A setting that is far from the proposed one is
    a point of its own, like one that was never asked.
    """
    if params is None:
        return trial
    unknown = [n for n in params if n not in space.names]
    if unknown:
        raise InputError(f"`params` names parameters of the space; {unknown[:5]} are none. Check the names.")
    run = space.canonical({**trial.params, **params})
    if run == trial.params:
        return trial
    x = space.encode(run)
    near = float(np.abs(x - space.encode(trial.params)).max()) <= NEAR
    return trial.amended(params=run, x=x, y=trial.y if near else None)
