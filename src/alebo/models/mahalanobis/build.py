"""Building the Mahalanobis GP: its kernel sampled by Markov chains, or fitted with the paper's Laplace approximation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from ..._seeds import generator
from .._memory import require_memory
from ..outcomes import Standardisation
from .chains import CHAINS, ChainState, sample
from .laplace import default_inflation, draws
from .likelihood import Hyperparameters, LogPosterior, MetricPrior, cold_start, fit
from .model import MahalanobisGP

Run: TypeAlias = tuple[list[ChainState], ChainState]  # the kernels that a chain drew, and where it stands then

FEW = 30  # observations beyond which a first model's chains start short
CHEAP = (
    100  # observations up to which all kernels are drawn again, and every later chain that starts does so from nothing
)
LEAST_MOVES = 2  # kernels that are drawn again with any number of observations
NEWEST = 10  # outcomes by which kernels of the asks before are judged


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

    `variances` are known noise variances (None: the noise is inferred); `warm` is the `memory` of a model of fewer data,
    followed by those of models before it. With many data few kernels are new, the others are of these memories (`moves`);
    those that the newest outcomes contradict are left out, and drawn again where less than half would be left.
    With `afresh` one more chain starts from nothing, and the one with the smallest leave-one-out density ends. Noise and
    detail explain the same data in two ways, and no chain walks from one to the other: a chain whose leave-one-out density
    is smaller than the best chain's, by a factor e for each outcome, continues from where that one is. (Not sooner: of two
    that differ by less, the one with the larger density is often just the more confident one.)
    """
    target, units = _prepared(Y, values, variances, prior, samples)
    rng = generator(seed, "chain")

    def model(runs: Sequence[Run], kept: Sequence[Hyperparameters] = ()) -> MahalanobisGP:
        found = [state.hyperparameters() for kernels, _ in runs for state in kernels] + list(kept)
        return MahalanobisGP(
            target.Y,
            target.v,
            torch.stack([target.noise(h.log_noise) for h in found]),
            torch.stack([h.U for h in found]),
            torch.tensor([math.exp(h.log_scale) for h in found], dtype=torch.double),
            units.shift,
            units.scale,
            variances is not None,
            _memory(runs, all_kernels=target.n > CHEAP and not kept),
        )

    starts, shares, kept = _plan(warm, target, samples)
    short = target.n > (CHEAP if warm else FEW)
    runs: list[Run] = [
        sample(target, start, m, rng, short=short) if m or start is None else ([], start)
        for start, m in zip(starts, shares, strict=True)
    ]
    if warm and afresh:
        runs.append(sample(target, None, shares[0], rng, short=short))
    made = model(runs, kept)
    score, stale = _densities(made, runs), _contradicted(made, len(kept))
    best = runs[int(np.argmax(score))][1]
    lost = [i for i, s in enumerate(score) if runs[i][0] and s < max(score) - target.n]
    for i in lost:
        runs[i] = sample(target, best, len(runs[i][0]), rng)
    if len(runs) > len(starts):
        del runs[int(np.argmin([s if runs[i][0] else math.inf for i, s in enumerate(score)]))]
    enough = len(made.U) - len(stale) >= samples // 2
    if enough and not lost and len(runs) == len(score):
        return made.among(_others(made, len(kept), stale)) if stale else made
    if not enough:
        _draw_more(runs, len(stale), target, rng)
    return model(runs, [h for i, h in enumerate(kept) if i not in stale])


def _draw_more(runs: list[Run], count: int, target: LogPosterior, rng: np.random.Generator) -> None:
    """So many more kernels, by each chain in turn."""
    for j in range(count):
        kernels, end = runs[j % len(runs)]
        more, end = sample(target, end, 1, rng)
        runs[j % len(runs)] = ([*kernels, *more], end)


def moves(n: int, samples: int) -> int:
    """How many of the kernels are newly drawn at n observations; the others are those of the asks before.

    All of them up to `CHEAP` observations; beyond, as many as cost about the same (each costs n^3), since one more
    observation changes the posterior less and less.
    """
    return min(samples, max(LEAST_MOVES, round(samples * (CHEAP / n) ** 3))) if n > CHEAP else samples


def _plan(
    warm: Sequence[Sequence[float]], target: LogPosterior, samples: int
) -> tuple[list[ChainState | None], list[int], list[Hyperparameters]]:
    """Where the chains start, how many kernels each draws, and the kernels that are kept from the asks before."""
    heads = [ChainState.unpack(packed) for packed in warm[:CHAINS]]
    starts: list[ChainState | None] = [*heads] or [None] * min(CHAINS, samples)
    kept: list[Hyperparameters] = []
    if heads and all(len(head.E) == target.d for head in heads):
        known = dict.fromkeys(tuple(packed) for packed in warm if len(packed) == len(warm[0]))
        free = samples - moves(target.n, samples)
        sound = islice((packed for packed in known if _is_state(packed, target.d)), free)
        kept = [ChainState.unpack(packed).hyperparameters() for packed in sound]
    shares = [len(part) for part in np.array_split(np.arange(samples - len(kept)), len(starts))]
    return starts, shares, kept


def _memory(runs: Sequence[Run], *, all_kernels: bool) -> list[list[float]]:
    """Where the chains stand, those whose turn is next first; and the other kernels, which may serve again at the next asks."""
    ends = [end.pack() for _, end in sorted(runs, key=lambda run: len(run[0]) > 0)]
    return ends + [state.pack() for kernels, _ in runs for state in kernels[:-1] if all_kernels]


def _is_state(packed: Sequence[float], d: int) -> bool:
    """Whether these are the numbers of a chain in d dimensions: kernels of a smaller embedding, or damaged ones, are not."""
    with suppress(ValueError, TypeError):
        return len(packed) == d * d + d + 4 and bool(np.isfinite(np.array(packed, dtype=float)).all())
    return False


def _densities(made: MahalanobisGP, runs: Sequence[Run]) -> list[float]:
    """The leave-one-out log density under the kernels of each run; minus infinity where it has none."""
    owner = torch.repeat_interleave(torch.arange(len(runs)), torch.tensor([len(kernels) for kernels, _ in runs]))
    keep = made.data.keep[: len(owner)]
    parts = [torch.nonzero(owner[keep] == i).flatten() for i in range(len(runs))]
    return [made.loo_log_density(part) if len(part) else -math.inf for part in parts]


def _contradicted(made: MahalanobisGP, kept: int) -> set[int]:
    """Which of the last `kept` kernels foresaw the newest outcomes worse than the best kernel, by a factor e for each."""
    if not kept:
        return set()
    foresaw = torch.full((len(made.data.keep),), -math.inf, dtype=torch.double)
    foresaw[made.data.keep] = made.data.foresaw(NEWEST)
    worse = foresaw[-kept:] < foresaw.max() - NEWEST
    return set(torch.nonzero(worse).flatten().tolist())


def _others(made: MahalanobisGP, kept: int, stale: set[int]) -> Tensor:
    """The kernels of a model without these of the last `kept` that were given to it.  -> indices"""
    given = len(made.data.keep)
    wanted = torch.ones(given, dtype=torch.bool)
    wanted[[given - kept + i for i in stale]] = False
    return torch.nonzero(wanted[made.data.keep]).flatten()


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
    target, units = _prepared(Y, values, variances, prior, samples)
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


def _prepared(
    Y: Tensor, values: Tensor, variances: Tensor | None, prior: MetricPrior | None, samples: int
) -> tuple[LogPosterior, Standardisation]:
    """The posterior of the kernel given the standardised outcomes, and their units; refused where memory cannot hold it."""
    require_memory(len(Y), samples)
    units = Standardisation.of(values.double().numpy())
    v = torch.from_numpy(units(values.double().numpy()))
    known = units.variances(None if variances is None else variances.double().numpy())
    given = None if known is None else torch.from_numpy(known)
    return LogPosterior(Y.double(), v, given, MetricPrior() if prior is None else prior), units
