"""Sampling the kernel's parameters: Hamiltonian Monte Carlo over their whole posterior, warm from one ask to the next.

The metric is Gamma = W'W / 2 with W_ij = e^{t_i} E_ij, every entry of the d x d matrix E standard normal: under this prior no
direction of the embedding is special, and a row whose width e^{t_i} vanishes leaves a metric of lower rank, as it is where
fewer directions matter than the embedding has. As many unknowns as data, or more, are the rule here (d_e = 12 has 78 in
Gamma); a maximum explains such data too well and a bell around it knows nothing of the other explanations, whereas a chain
wanders through all of them. Data come one at a time, so that a chain which goes on from where the last one ended needs no
long start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from .fit import Array, Hyperparameters, LogPosterior

LEAPS = 15  # leapfrog steps of one transition
BURN_IN = 100  # transitions of a chain that starts from nothing
ACCEPTED = 0.75  # share of transitions that the size of the steps is steered to
MOST_POINTS = 250  # the chain sees at most so many observations, spread evenly over their order
WIDTH = (-1.5, 1.0)  # mean and standard deviation of the rows' log widths


@dataclass(frozen=True)
class State:
    """Where a chain is, and how far it steps."""

    E: Array  # d x d
    log_width: Array  # d, of the rows of E
    log_scale: float
    log_noise: float
    log_step: float = math.log(0.05)

    @classmethod
    def first(cls, d: int, rng: np.random.Generator) -> State:
        return cls(rng.normal(0.0, 0.7, (d, d)), np.full(d, WIDTH[0]), 0.0, math.log(0.1))

    @property
    def place(self) -> Array:
        """The coordinates in which the chain moves.  -> d^2 + d + 2"""
        return np.concatenate([self.E.ravel(), self.log_width, [self.log_scale, self.log_noise]])

    def pack(self) -> list[float]:
        return [*self.place.tolist(), self.log_step]

    @classmethod
    def unpack(cls, packed: Sequence[float]) -> State:
        d = (math.isqrt(4 * len(packed) - 11) - 1) // 2  # d^2 + d + 3 numbers
        values = np.array(packed, dtype=float)
        return cls(values[: d * d].reshape(d, d), values[d * d : -3], *map(float, packed[-3:]))

    def padded(self, dim: int, rng: np.random.Generator) -> State:
        """The same state in an embedding that has grown to `dim`: the new entries as the prior has them."""
        d = len(self.E)
        if dim <= d:
            return self
        E = rng.standard_normal((dim, dim))
        E[:d, :d] = self.E
        return replace(self, E=E, log_width=np.append(self.log_width, np.full(dim - d, WIDTH[0])))

    def hyperparameters(self) -> Hyperparameters:
        """The kernel of this state, its metric by an upper triangular factor."""
        U = np.linalg.qr(np.exp(self.log_width)[:, None] * self.E, mode="r")
        return Hyperparameters(torch.from_numpy(np.ascontiguousarray(U)), self.log_scale, self.log_noise)


class Target:
    """The log posterior and its gradient in the coordinates of a chain: E, t, log s^2, log noise."""

    def __init__(self, posterior: LogPosterior) -> None:
        self.posterior, self.d = posterior, posterior.d

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Value and gradient; minus infinity outside of what arithmetic allows."""
        prior, d2 = self.posterior.prior, self.d**2
        t, log_scale, log_noise = x[d2:-2], float(x[-2]), float(x[-1])
        if not (t.min() > -12 and t.max() < 4 and -8 < log_scale < 9 and math.log(prior.noise_floor) <= log_noise < 3):
            return -math.inf, np.zeros_like(x)
        E = x[:d2].reshape(self.d, self.d)
        width = np.exp(t)[:, None]
        W = width * E
        found = self.posterior.likelihood(W, log_scale, log_noise)
        if found is None:
            return -math.inf, np.zeros_like(x)
        value, dW, by_scale, by_noise = found
        z = (t - WIDTH[0]) / WIDTH[1]
        off = log_noise - prior.noise_at  # by Student's t of three degrees: no noise is likely, much is possible
        value -= 0.5 * (float((E**2).sum() + (z**2).sum()) + prior.scale * log_scale**2)
        value -= 2.0 * math.log1p(prior.noise * off**2 / 3.0)
        gradient = np.empty_like(x)
        gradient[:d2] = (width * dW - E).ravel()
        gradient[d2:-2] = (dW * W).sum(1) - z / WIDTH[1]
        gradient[-2] = by_scale - prior.scale * log_scale
        gradient[-1] = by_noise - 4.0 * prior.noise * off / (3.0 + prior.noise * off**2)
        return value, gradient


def sample(
    posterior: LogPosterior, warm: State | None, m: int, rng: np.random.Generator
) -> tuple[list[Hyperparameters], State]:
    """m kernels drawn from their posterior, and where the chain that drew them stands."""
    target = Target(posterior.thinned(MOST_POINTS))
    state = None if warm is None else warm.padded(posterior.d, rng)
    if state is None or not math.isfinite(target(state.place)[0]):
        state = State.first(posterior.d, rng)
        for _ in range(BURN_IN):
            state = transition(target, state, rng)
    out = []
    for _ in range(m):
        state = transition(target, state, rng)
        out.append(state.hyperparameters())
    return out, state


def transition(target: Target, state: State, rng: np.random.Generator) -> State:
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
    return State.unpack([*new, state.log_step + 0.15 * (chance - ACCEPTED)])
