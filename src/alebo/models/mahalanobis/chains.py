"""Sampling the kernel's parameters: Hamiltonian Monte Carlo over their whole posterior, warm from one ask to the next.

The metric is Gamma = W'W / 2 with W_ij = e^{t + z_i / sqrt(2)} E_ij, every entry of the d x d matrix E and every z_i
standard normal: under this prior no direction of the embedding is special, and rows of small z leave a metric of nearly
lower rank, as it is where fewer directions matter than the embedding has. As many unknowns as data, or more, are the rule
here (d_e = 12 has 78 in Gamma); a maximum explains such data too well and a bell around it knows nothing of the other
explanations, whereas a chain wanders through all of them. Some lie too far apart to wander between, so several chains go
their own ways and share the samples. Data come one at a time, so that chains which go on from where they were need no long
start. A chain that starts with many data climbs to near a maximum of the density first, and needs few moves from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import OptimizeResult, minimize

from ..._errors import damaged_note
from .likelihood import Array, Hyperparameters, LogPosterior

LEAPS = 15  # leapfrog steps of one transition
CHAINS = 4  # that share the samples
BURN_IN = 100  # transitions of a chain that starts from nothing
CLIMB = (100, 10)  # iterations of L-BFGS-B in place of them, where a start is to be short: so many at most, and no more
STEEP = 20.0  # where the last ten gained fewer nats: the chain is to start near a maximum, not at its tip
SETTLE = (5, 1000)  # accepted transitions after the climb: at least, and times observations: few data allow more
START_POINTS = 100  # a short start sees at most so many observations,
ADJUST = 1  # and so many accepted transitions follow with all that the chain sees
SHORT_STEP = 0.02  # the largest step size that they begin with
STEERING, QUICK = 0.15, 0.6  # by how much a transition changes the logarithm of the step size; after a climb
ACCEPTED = 0.75  # share of transitions that the size of the steps is steered to
MOST_POINTS = 250  # the chain sees at most so many observations, spread evenly over their order
WIDTH = (-1.5, 1.0)  # mean and standard deviation of t
ROWS = math.sqrt(0.5)  # standard deviation of the rows' log widths around it


@dataclass(frozen=True)
class ChainState:
    """Where a chain is, and how far it steps."""

    E: Array  # d x d
    z: Array  # d, the rows' own log widths in units of ROWS
    log_width: float  # t, common to all
    log_scale: float
    log_noise: float
    log_step: float = math.log(0.05)

    @classmethod
    def first(cls, d: int, rng: np.random.Generator) -> ChainState:
        return cls(rng.normal(0.0, 0.7, (d, d)), np.zeros(d), WIDTH[0], 0.0, math.log(0.1))

    @property
    def place(self) -> Array:
        """The coordinates in which the chain moves.  -> d^2 + d + 3"""
        return np.concatenate([self.E.ravel(), self.z, [self.log_width, self.log_scale, self.log_noise]])

    def pack(self) -> list[float]:
        return [*self.place.tolist(), self.log_step]

    @classmethod
    def unpack(cls, packed: Sequence[float] | Array) -> ChainState:
        d = (math.isqrt(max(4 * len(packed) - 15, 0)) - 1) // 2  # d^2 + d + 4 numbers
        if d < 1 or d * d + d + 4 != len(packed):
            raise damaged_note(f"chains of d^2 + d + 4 numbers, and one has {len(packed)}")
        values = np.asarray(packed, dtype=float)
        return cls(values[: d * d].reshape(d, d), values[d * d : -4], *values[-4:].tolist())

    def padded(self, dim: int, rng: np.random.Generator) -> ChainState:
        """The same state in an embedding that has grown to `dim`: the new entries as the prior has them."""
        d = len(self.E)
        if d > dim:
            raise damaged_note(f"chains of at most {dim} dimensions, and one has {d}")
        if dim == d:
            return self
        E = rng.standard_normal((dim, dim))
        E[:d, :d] = self.E
        return replace(self, E=E, z=np.append(self.z, np.zeros(dim - d)))

    def hyperparameters(self) -> Hyperparameters:
        """The kernel of this state, its metric by an upper triangular factor."""
        U = np.linalg.qr(np.exp(self.log_width + ROWS * self.z)[:, None] * self.E, mode="r")
        return Hyperparameters(torch.from_numpy(np.ascontiguousarray(U)), self.log_scale, self.log_noise)


class Target:
    """The log posterior and its gradient in the coordinates of a chain: E, t, log s^2, log noise."""

    def __init__(self, posterior: LogPosterior) -> None:
        self.posterior, self.d = posterior, posterior.d

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Value and gradient; minus infinity outside of what arithmetic allows."""
        prior, d2 = self.posterior.prior, self.d**2
        z, (t, log_scale, log_noise) = x[d2:-3], x[-3:].tolist()
        rows = t + ROWS * z
        if not (rows.min() > -12 and rows.max() < 4 and -8 < log_scale < 9):
            return -math.inf, np.zeros_like(x)
        if not math.log(prior.noise_floor) <= log_noise < 3:
            return -math.inf, np.zeros_like(x)
        E = x[:d2].reshape(self.d, self.d)
        width = np.exp(rows)[:, None]
        W = width * E
        found = self.posterior.likelihood(W, log_scale, log_noise)
        if found is None:
            return -math.inf, np.zeros_like(x)
        value, dW, by_scale, by_noise = found
        by_row = (dW * W).sum(1)
        off = (t - WIDTH[0]) / WIDTH[1]
        value -= 0.5 * (float((E**2).sum() + (z**2).sum()) + off**2 + prior.scale * log_scale**2)
        noisy = log_noise - prior.noise_at  # by Student's t of three degrees: no noise is likely, much is possible
        value -= 2.0 * math.log1p(prior.noise * noisy**2 / 3.0)
        gradient = np.empty_like(x)
        gradient[:d2] = (width * dW - E).ravel()
        gradient[d2:-3] = ROWS * by_row - z
        gradient[-3] = by_row.sum() - off / WIDTH[1]
        gradient[-2] = by_scale - prior.scale * log_scale
        gradient[-1] = by_noise - 4.0 * prior.noise * noisy / (3.0 + prior.noise * noisy**2)
        return value, gradient


def sample(
    posterior: LogPosterior, warm: ChainState | None, m: int, rng: np.random.Generator, *, short: bool = False
) -> tuple[list[ChainState], ChainState]:
    """m kernels drawn from their posterior by one chain, and where it stands then; `short`: how one without `warm` starts."""
    target = Target(posterior.thinned(MOST_POINTS))
    state = None if warm is None else warm.padded(posterior.d, rng)
    if state is None or not math.isfinite(target(state.place)[0]):
        state = ChainState.first(posterior.d, rng)
        if short:
            state = started(posterior, target, state, rng)
        else:
            for _ in range(BURN_IN):
                state = transition(target, state, rng)
    out = []
    for _ in range(m):
        state = transition(target, state, rng)
        out.append(state)
    return out, state


def started(posterior: LogPosterior, target: Target, state: ChainState, rng: np.random.Generator) -> ChainState:
    """A state from which few moves are needed: near a maximum, found with a part of the data where there are many."""
    if target.posterior.n <= START_POINTS:
        return settled(target, climbed(target, state, rng), rng)
    part = Target(posterior.thinned(START_POINTS))
    state = settled(part, climbed(part, state, rng), rng)
    return settled(target, state, rng, wanted=ADJUST)


def climbed(target: Target, state: ChainState, rng: np.random.Generator) -> ChainState:
    """A state near a maximum of the density, by quasi-Newton steps uphill, and the size of the steps that suits it."""
    reached: list[float] = []

    def negative(x: Array) -> tuple[float, Array]:
        value, gradient = target(x)
        return (-value, -gradient) if math.isfinite(value) else (1e25, gradient)

    def enough(intermediate_result: OptimizeResult) -> None:
        reached.append(float(intermediate_result.fun))
        if len(reached) > CLIMB[1] and reached[-1 - CLIMB[1]] - reached[-1] < STEEP:
            raise StopIteration

    options = {"maxiter": CLIMB[0], "maxfun": 2 * CLIMB[0], "maxcor": 20}
    found = minimize(negative, state.place, jac=True, method="L-BFGS-B", callback=enough, options=options)
    return ChainState.unpack(np.append(found.x, math.log(_first_step(target, found.x, rng))))


def _first_step(target: Target, x: Array, rng: np.random.Generator) -> float:
    """The largest of ever smaller steps by which a single leap keeps its energy to one nat."""
    value, slope = target(x)
    momentum = rng.standard_normal(len(x))
    for step in SHORT_STEP * 0.5 ** np.arange(10):
        half = momentum + 0.5 * step * slope
        there, after = target(x + step * half)
        end = half + 0.5 * step * after
        if there - 0.5 * float(end @ end) > value - 0.5 * float(momentum @ momentum) - 1.0:
            break
    return float(step)


def settled(target: Target, state: ChainState, rng: np.random.Generator, wanted: int | None = None) -> ChainState:
    """The state some accepted transitions later; the size of the steps is found on the way."""
    wanted = max(SETTLE[0], SETTLE[1] // target.posterior.n) if wanted is None else wanted
    for _ in range(3 * wanted):
        before, state = state, transition(target, state, rng, steering=QUICK)
        wanted -= not np.array_equal(before.E, state.E)
        if wanted <= 0:
            break
    return state


def transition(
    target: Target, state: ChainState, rng: np.random.Generator, *, steering: float = STEERING
) -> ChainState:
    """One move of Hamiltonian Monte Carlo, and a step size steered towards the wanted share of acceptance."""
    x = state.place
    value, slope = target(x)
    step = math.exp(state.log_step) * rng.uniform(0.7, 1.3)
    momentum = rng.standard_normal(len(x))
    energy = value - 0.5 * float(momentum @ momentum)
    new, there = x, value
    for _ in range(LEAPS):
        momentum = momentum + 0.5 * step * slope
        new = new + step * momentum
        there, slope = target(new)
        if not math.isfinite(there):
            break
        momentum = momentum + 0.5 * step * slope
    gain = there - 0.5 * float(momentum @ momentum) - energy if math.isfinite(there) else -math.inf
    chance = math.exp(min(gain, 0.0)) if math.isfinite(energy) else 1.0
    if rng.uniform() >= chance:
        new = x
    return ChainState.unpack(np.append(new, state.log_step + steering * (chance - ACCEPTED)))
