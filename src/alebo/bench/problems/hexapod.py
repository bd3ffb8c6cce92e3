"""Hexapod gait, D=72: six legs of three motors, an oscillator for each joint, and a goal to walk to in 30 s.

The paper's second real problem ("Locomotion Optimization Problem" of its supplement) rebuilt in MuJoCo with a robot of our own, so that anyone can run it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from alebo import EvaluationError, Float, Goals, InputError, Maximize, MissingPartError, Optimizer, Space, StateError

from ._mujoco import quiet
from ._problem import Problem

Array: TypeAlias = NDArray[np.float64]

LEGS = ("front_left", "front_right", "middle_left", "middle_right", "rear_left", "rear_right")
JOINTS = ("coxa", "femur", "tibia")
COEFFICIENTS = ("amplitude", "offset", "phase", "frequency")
NAMES = tuple(f"{leg}_{joint}_{kind}" for leg in LEGS for joint in JOINTS for kind in COEFFICIENTS)
BOUNDS = {"amplitude": (0.0, 0.6), "offset": (-0.6, 0.6), "phase": (-math.pi, math.pi), "frequency": (0.2, 1.4)}

SECONDS = 30.0  # the paper's T = 3000 steps of 10 ms
STEP = 0.01
HOLD = 2  # the oscillators tick every 20 ms: half the arithmetic, and no gait below 1.4 Hz can tell
COUPLING = 10.0  # rad/s, pulls every pair of oscillators towards its difference of phases
RISE = 4.0  # 1/s, how fast an amplitude or offset is taken up from rest

GOAL = (5.0, 0.0)
HEIGHT = 0.21  # of the torso's centre when the robot stands with every joint at zero, to the centimetre
CEILING, SPEED_WEIGHT, HEIGHT_WEIGHT = 10.0, 0.25, 10.0

TRIPOD_BOUNDS = {  # chosen so that `couple` never leaves the bounds of the 72
    "coxa_amplitude": (0.1, 0.5),
    "femur_amplitude": (0.0, 0.6),
    "tibia_amplitude": (0.0, 0.6),
    "coxa_offset": (-0.6, 0.6),
    "femur_offset": (-0.6, 0.6),
    "tibia_offset": (-0.6, 0.6),
    "femur_phase": (-math.pi / 2, math.pi / 2),
    "tibia_phase": (-math.pi / 2, math.pi / 2),
    "tripod_phase": (0.0, math.pi),
    "frequency": (0.2, 1.4),
    "steer": (-0.1, 0.1),
}
# Tuned by hand: strides of 16 degrees at 0.6 Hz reach the goal in 30 s, the feet lifted a quarter of a cycle ahead.
TRIPOD = (0.28, 0.1, 0.0, 0.0, 0.0, 0.0, math.pi / 2, 0.0, math.pi, 0.6, 0.0)

DIVERGED = (
    "The simulation must stay finite to earn a reward; it diverged. The trial counts as failed, the search goes on."
)
ABOUT = (
    "Hexapod gait in MuJoCo after Letham et al. 2020 (Daisy in PyBullet there); reward ="
    " 10 - distance to the goal - 0.25 mean joint speed - 10 mean height deviation."
    " Optimum unknown; the hand-tuned tripod gait is TRIPOD."
)


@dataclass(frozen=True, eq=False)
class Walk:
    """What one gait did: the reward, its parts, and the path of the torso at every step."""

    reward: float
    distance: float  # m, from the last place to the goal
    speed: float  # rad/s, mean norm of the joint velocities
    deviation: float  # m, mean distance from the target height
    qpos: Array  # T x 25


def oscillate(gait: ArrayLike) -> Array:
    """Joint targets of the central pattern generator.  72 -> T x 18

    Crespi and Ijspeert 2008: each joint is an oscillator of amplitude R_i, offset X_i, phase psi_i and frequency nu_i;
    phi_i' = 2 pi nu_i + (w / 18) sum_j sin(phi_j - phi_i - (psi_j - psi_i)), and r_i follows R_i critically damped. All
    pairs are coupled, so with theta = phi - psi the sum is a mean field, and oscillators of unequal frequency lock.
    """
    amplitude, offset, phase, frequency = np.asarray(gait, dtype=float).reshape(len(LEGS) * len(JOINTS), 4).T
    dt = STEP * HOLD
    ticks = round(SECONDS / dt)
    omega = 2.0 * math.pi * frequency
    theta = np.zeros(len(omega))
    angles = np.empty((ticks, len(omega)))
    for k in range(ticks):
        angles[k] = theta
        s, c = np.sin(theta), np.cos(theta)
        theta = theta + dt * (omega + COUPLING * (s.mean() * c - c.mean() * s))
    t = dt * np.arange(ticks)[:, None]
    rise = 1.0 - (1.0 + RISE * t) * np.exp(-RISE * t)
    return np.repeat(rise * (offset + amplitude * np.cos(angles + phase)), HOLD, axis=0)


def simulate(gait: ArrayLike, *, load: float = 1.0, slope: float = 0.0) -> Walk:
    """Walk for 30 s with these 72 numbers; a simulation that diverges raises EvaluationError.

    `load` multiplies the mass of the torso; `slope` is that of the ground, uphill towards the goal, in radians.
    reward = 10 - |x_final - x_goal| - 0.25 mean_t |dq_t| - 10 mean_t |h_t - h_target|, at most 10.
    """
    gait = np.asarray(gait, dtype=float)
    if gait.shape != (len(NAMES),) or not np.all(np.isfinite(gait)):
        raise InputError(f"A gait is {len(NAMES)} finite numbers in the order of NAMES; got shape {gait.shape}.")
    mujoco, model, data, start = _robot(load, slope)
    states = _rollout(mujoco, model, data, start, oscillate(gait))
    if not np.all(np.isfinite(states)) or np.abs(states[:, 1 + model.nq :]).max() > 1e3:
        raise EvaluationError(DIVERGED)
    qpos, joint_speed = states[:, 1 : 1 + model.nq], states[:, 1 + model.nq + 6 :]
    distance = math.dist(qpos[-1, :2], GOAL)
    speed = float(np.linalg.norm(joint_speed, axis=1).mean())
    deviation = float(np.abs(qpos[:, 2] - HEIGHT).mean())
    reward = CEILING - distance - SPEED_WEIGHT * speed - HEIGHT_WEIGHT * deviation
    return Walk(reward, distance, speed, deviation, qpos)


@cache
def _robot(load: float = 1.0, slope: float = 0.0) -> tuple[Any, Any, Any, Array]:
    try:
        import mujoco
        import mujoco.rollout
    except ImportError:
        raise MissingPartError(
            'The hexapod needs MuJoCo, which is not installed. Run: pip install "alebo[hexapod]"'
        ) from None
    text = resources.files(__package__).joinpath("data/hexapod.xml").read_text()
    model = mujoco.MjModel.from_xml_string(text)
    model.body_mass[1] *= load
    model.body_inertia[1] *= load
    if slope:
        down = float(np.linalg.norm(model.opt.gravity))
        model.opt.gravity[:] = (-down * math.sin(slope), 0.0, -down * math.cos(slope))
    data = mujoco.MjData(model)
    start = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    return mujoco, model, data, start


def _rollout(mujoco: Any, model: Any, data: Any, start: Array, control: Array) -> Array:
    mujoco.mj_resetData(model, data)  # a warm start left from the gait before would leak into this one
    with quiet():
        state, _ = mujoco.rollout.rollout(model, data, initial_state=start, control=control[None])
    bad = (mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC)
    if any(data.warning[int(kind)].number for kind in bad):
        raise EvaluationError(DIVERGED)
    return np.asarray(state[0])


def couple(tripod: ArrayLike) -> Array:
    """The full gait of the 11-parameter tripod-coupled one (in the order of TRIPOD_BOUNDS).  11 -> 72

    Two sets of three legs, half a cycle apart when `tripod_phase` is pi; `steer` lengthens the strides on the left and
    shortens them on the right. The map is affine: an 11-dimensional linear embedding exists that contains
    every such gait.
    """
    p = dict(zip(TRIPOD_BOUNDS, np.asarray(tripod, dtype=float), strict=True))
    gait = np.empty((len(LEGS), len(JOINTS), len(COEFFICIENTS)))
    for i, leg in enumerate(LEGS):
        first = leg in ("front_left", "middle_right", "rear_left")
        base = (-0.5 if first else 0.5) * p["tripod_phase"]
        turn = p["steer"] if leg.endswith("left") else -p["steer"]
        gait[i, 0] = (p["coxa_amplitude"] + turn, p["coxa_offset"], base, p["frequency"])
        gait[i, 1] = (p["femur_amplitude"], p["femur_offset"], base + p["femur_phase"], p["frequency"])
        gait[i, 2] = (p["tibia_amplitude"], p["tibia_offset"], base + p["tibia_phase"], p["frequency"])
    return gait.ravel()


def hexapod() -> Problem:
    """The gait problem with every joint on its own: D=72, to be maximised, optimum unknown, ceiling 10."""
    space = Space([Float(name, *BOUNDS[name.rpartition("_")[2]]) for name in NAMES])
    return Problem(
        "hexapod-72", space, lambda x: simulate(x).reward, Goals(Maximize("reward")), budget=200, about=ABOUT
    )


def hexapod_tripod() -> Problem:
    """The same robot with its joints coupled into a tripod gait: 11 parameters, the low-dimensional truth."""
    space = Space([Float(name, low, high) for name, (low, high) in TRIPOD_BOUNDS.items()])
    return Problem(
        "hexapod-tripod-11",
        space,
        lambda x: simulate(couple(x)).reward,
        Goals(Maximize("reward")),
        budget=100,
        about=ABOUT,
    )


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demonstration found, and the picture it wrote; `note` says why that is no film, where it is not."""

    first: Walk
    best: Walk
    tripod: Walk
    optimizer: Optimizer
    picture: Path
    note: str = ""


def demo(
    budget: int = 100,
    seed: int = 0,
    out: str | Path = "hexapod.gif",
    progress: Callable[[Optimizer, float, float], None] | None = None,
    *,
    method: Any = None,
) -> Demo:
    """Learn to walk with `budget` gaits and film the first, the best and the hand-tuned tripod gait side by side.

    `progress(optimizer, seconds of the model, seconds of the simulation)` is called after every gait. Where no OpenGL
    is found, a plot of the three paths is written instead of the film.
    """
    from .hexapod_film import film

    problem = hexapod()
    opt = Optimizer(problem.space, problem.goals, method=method, seed=seed, budget=budget)
    walks: dict[int, Walk] = {}
    top: tuple[float, int] | None = None
    for _ in range(budget):
        began = time.monotonic()
        trial = opt.ask()[0]
        asked = time.monotonic()
        try:
            walk = simulate([trial.params[name] for name in NAMES])
        except EvaluationError as error:
            opt.fail(trial.number, str(error))
        else:
            opt.tell(trial.number, walk.reward)
            if top is None or walk.reward > top[0]:
                top = (walk.reward, trial.number)
                walks = {**dict(list(walks.items())[:1]), trial.number: walk}  # the first and the best are enough
        if progress is not None:
            progress(opt, asked - began, time.monotonic() - asked)
    if top is None:
        raise StateError(f"A film needs one gait that did not diverge; of {budget} none did. Try another seed.")
    first, best, tripod = next(iter(walks.values())), walks[top[1]], simulate(couple(TRIPOD))
    picture, note = film({"first": first, f"best of {budget}": best, "tripod, by hand": tripod}, out)
    return Demo(first, best, tripod, opt, picture, note)
