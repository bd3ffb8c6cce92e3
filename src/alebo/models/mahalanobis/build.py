"""Building the Mahalanobis GP: its kernel sampled by Markov chains, or fitted with the paper's Laplace approximation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..._seeds import generator
from ..outcomes import Standardisation
from .chains import CHAINS, ChainState, sample
from .laplace import default_inflation, draws
from .likelihood import Hyperparameters, LogPosterior, MetricPrior, cold_start, fit
from .model import MahalanobisGP


def sample_gp(
    Y: Tensor,
    values: Tensor,
    *,
    variances: Tensor | None = None,
    samples: int = 12,
    seed: int = 0,
    prior: MetricPrior | None = None,
    warm: Sequence[Sequence[float]] = (),
    afresh: bool = False,
) -> MahalanobisGP:
    """Sample the kernel's posterior given outcomes at embedded points: metric, scale and noise together.

    `variances` are known noise variances (None: the noise is inferred); `warm` is the `memory` of a model of fewer data. With
    `afresh` one more chain starts from nothing, and the one with the smallest leave-one-out density ends. Noise and detail
    explain the same data in two ways, and no chain walks from one to the other: a chain whose leave-one-out density is
    smaller than the best chain's, by a factor e for each outcome, continues from where that one is. (Not sooner: of two that
    differ by less, the one with the larger density is often just the more confident one.)
    """
    target, units = _standardised(Y, values, variances, MetricPrior() if prior is None else prior)
    rng = generator(seed, "chain")

    def model(runs: Sequence[tuple[list[Hyperparameters], ChainState]]) -> MahalanobisGP:
        found = [h for kernels, _ in runs for h in kernels]
        return MahalanobisGP(
            target.Y,
            target.v,
            torch.stack([target.noise(h.log_noise) for h in found]),
            torch.stack([h.U for h in found]),
            torch.tensor([math.exp(h.log_scale) for h in found], dtype=torch.double),
            units.shift,
            units.scale,
            variances is not None,
            [end.pack() for _, end in runs],
        )

    def densities(made: MahalanobisGP) -> list[float]:
        owner = torch.repeat_interleave(torch.arange(len(runs)), torch.tensor([len(kernels) for kernels, _ in runs]))
        parts = [torch.nonzero(owner[made.data.keep] == i).flatten() for i in range(len(runs))]
        return [made.loo_log_density(part) if len(part) else -math.inf for part in parts]

    starts: list[ChainState | None] = [ChainState.unpack(packed) for packed in warm] or [None] * min(CHAINS, samples)
    shares = [len(part) for part in np.array_split(np.arange(samples), len(starts))]
    runs = [sample(target, start, m, rng) for start, m in zip(starts, shares, strict=True)]
    if warm and afresh:
        runs.append(sample(target, None, shares[0], rng))
    made = model(runs)
    score = densities(made)
    best = runs[int(np.argmax(score))][1]
    lost = [i for i, s in enumerate(score) if s < max(score) - target.n]
    for i in lost:
        runs[i] = sample(target, best, len(runs[i][0]), rng)
    if len(runs) > len(starts):
        del runs[int(np.argmin(score))]
    return model(runs) if lost or len(runs) < len(score) else made


def fit_gp(
    Y: Tensor,
    values: Tensor,
    *,
    variances: Tensor | None = None,
    samples: int = 10,
    seed: int = 0,
    prior: MetricPrior | None = None,
    warm: Sequence[Sequence[float]] = (),
    cold: int = 3,
    iterations: int = 100,
    inflation: float | None = None,
) -> MahalanobisGP:
    """The paper's way (S2): the best metric, scale and noise, and draws from a Laplace approximation of the metric.

    `cold` random starts are tried beside `warm`; `inflation` scales the Laplace covariance (None: `default_inflation`).
    The mode is the first sample.
    """
    target, units = _standardised(Y, values, variances, MetricPrior() if prior is None else prior)
    rng = generator(seed, "fit")
    d = target.d
    start = Hyperparameters.remembered(warm[0]).padded(d, rng) if warm else None
    others = [cold_start(d, rng) for _ in range(cold if start is not None else max(cold, 1))]
    mode, _ = fit(target, start, others, iterations=iterations)
    U = draws(target, mode, samples, rng, inflation=default_inflation(target.n) if inflation is None else inflation)
    variance = torch.full((len(U),), math.exp(mode.log_scale), dtype=torch.double)
    noise = target.noise(mode.log_noise).unsqueeze(0)
    return MahalanobisGP(
        target.Y, target.v, noise, U, variance, units.shift, units.scale, variances is not None, [mode.pack().tolist()]
    )


def _standardised(
    Y: Tensor, values: Tensor, variances: Tensor | None, prior: MetricPrior
) -> tuple[LogPosterior, Standardisation]:
    """The posterior of the kernel given the standardised outcomes, and their units."""
    units = Standardisation.of(values.double().numpy())
    v = torch.from_numpy(units(values.double().numpy()))
    known = units.variances(None if variances is None else variances.double().numpy())
    return LogPosterior(Y.double(), v, None if known is None else torch.from_numpy(known), prior), units
