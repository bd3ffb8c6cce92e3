"""Linear policies on gymnasium's MuJoCo tasks: a matrix from what the robot senses to what its motors do.

Random search finds good ones (Mania et al. 2018), which makes them a fair test of optimisers. The start is fixed, so that one
evaluation, a tenth of a second long, is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from alebo import EvaluationError, Float, Goals, InputError, Maximize, MissingPartError, Space

from ._mujoco import quiet
from ._problem import Problem

Array: TypeAlias = NDArray[np.float64]

# task -> senses, motors, steps; all with gymnasium's rewards
TASKS = {
    "HalfCheetah-v5": (17, 6, 1000),
    "Swimmer-v5": (8, 2, 1000),
    "Hopper-v5": (11, 3, 1000),
    "Walker2d-v5": (17, 6, 1000),
}


@cache
def _environment(task: str) -> Any:
    try:
        import gymnasium
    except ImportError:
        raise MissingPartError(
            'The policies need gymnasium with MuJoCo, which is not installed. Run: pip install "alebo[gym]"'
        ) from None
    try:
        with quiet():
            return gymnasium.make(task).unwrapped
    except (ImportError, gymnasium.error.DependencyNotInstalled):
        raise MissingPartError(
            'The policies need MuJoCo, which is not installed. Run: pip install "alebo[gym]"'
        ) from None


def episode(task: str, weights: Array, *, seed: int = 0) -> float:
    """The sum of rewards of the policy `action = clip(W sense)` from the start that `seed` draws."""
    senses, motors, steps = TASKS[task]
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (senses * motors,):
        raise InputError(f"A policy for {task} has {senses * motors} weights; got shape {weights.shape}.")
    W = weights.reshape(motors, senses)
    env = _environment(task)
    low, high = env.action_space.low, env.action_space.high
    total = 0.0
    with quiet():
        sense, _ = env.reset(seed=seed)
        for _ in range(steps):
            sense, gained, ended, _, _ = env.step(np.clip(W @ sense, low, high))
            total += float(gained)
            if ended:
                break
    if not np.isfinite(total):
        raise EvaluationError(
            "The simulation must stay finite to earn a reward; it diverged. The trial counts as failed."
        )
    return total


def _task(name: str, task: str) -> Callable[[], Problem]:
    def factory() -> Problem:
        senses, motors, steps = TASKS[task]
        _environment(task)
        return Problem(
            name,
            Space([Float(f"w{i}_{j}", -1.0, 1.0) for i in range(motors) for j in range(senses)]),
            lambda w: episode(task, w),
            Goals(Maximize("reward")),
            budget=200,
            about=f"Linear policy on gymnasium's {task}, {steps} steps from one fixed start. Optimum unknown.",
        )

    factory.__doc__ = f"A linear policy on {task}, to be maximised."
    return factory


halfcheetah = _task("halfcheetah-102", "HalfCheetah-v5")
swimmer = _task("swimmer-16", "Swimmer-v5")
hopper = _task("hopper-33", "Hopper-v5")
walker = _task("walker-102", "Walker2d-v5")
