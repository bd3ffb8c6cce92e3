"""The numbers of a table: one line for each method on a problem, ranks with intervals, paired comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from alebo import InputError

from .._seeds import generator
from .published import ENOUGH
from .published import row as published_row
from .results import Results, Run

Array: TypeAlias = NDArray[np.float64]

ROUNDING = 1e-14  # relative; the mean of equal doubles is off by some 1e-16


@dataclass(frozen=True)
class Line:
    """What a method reached on a problem. Runs that found nothing feasible count as infinitely bad but in the mean."""

    problem: str
    label: str
    runs: int
    failed: int
    nothing: int  # complete runs without a feasible point: left out of mean and SE, and counted here
    mean: float
    se: float  # of the mean; NaN for one run
    median: float
    worst: float
    best: float
    within: float  # share within 1 % of the optimum; NaN where it is unknown
    reach: float  # median number of evaluations until the regret is 10 % of the optimum; inf where half never reach it
    reached: int
    model_seconds: float
    evaluation_seconds: float
    rank: float  # by mean, averaged over bootstrap draws of the runs
    rank_low: float
    rank_high: float
    published_mean: float | None = None
    published_se: float | None = None
    published_median: float | None = None
    published_seconds: float | None = None

    @property
    def z(self) -> float | None:
        """Our mean minus the published, in combined standard errors; negative is better where small is good."""
        if self.published_mean is None or self.published_se is None or self.runs < ENOUGH:
            return None
        combined = math.hypot(self.se, self.published_se)
        return (self.mean - self.published_mean) / combined if combined > 0 else None


@dataclass(frozen=True)
class Pair:
    """A method against another on the seeds that both have; a positive difference means that `label` is worse."""

    problem: str
    label: str
    against: str
    seeds: int
    difference: float  # mean of (label - against), signed so that positive is worse
    se: float
    wins: int
    losses: int
    p: float  # Wilcoxon signed rank, two-sided; NaN with fewer than 6 differing pairs


def tolerance(optimum: float, share: float) -> float:
    """What counts as within a share of the optimum; an optimum of zero has no share, so there the share itself."""
    return share * (abs(optimum) if optimum else 1.0)


def standard_errors(values: Array) -> Array:
    """Of the means over the runs, NaN left out: sample standard deviation / sqrt(n); one run has none.  n x m -> m

    What is only rounding, because all runs gave the same value, is 0.
    """
    count = (~np.isnan(values)).sum(axis=0)
    out = np.full(values.shape[1], math.nan)
    some = count > 1
    found = values[:, some]
    errors = np.nanstd(found, axis=0, ddof=1) / np.sqrt(count[some])
    out[some] = np.where(errors <= ROUNDING * np.nanmax(np.abs(found), axis=0), 0.0, errors)
    return out


def standard_error(values: Array) -> float:
    """Of one mean.  n ->"""
    return float(standard_errors(values[:, None])[0])


def scores(runs: Sequence[Run]) -> Array:
    """Final values with small as good, and inf where nothing feasible was found.  -> n"""
    values = np.array([r.sign * r.final for r in runs])
    return np.where(np.isnan(values), np.inf, values)


def evaluations_to(run: Run, share: float = 0.1) -> float:
    """Evaluations until the trace is within `share` of the optimum; inf if never, NaN where the optimum is unknown."""
    if run.optimum is None:
        return math.nan
    good = run.sign * (run.trace - run.optimum) <= tolerance(run.optimum, share)
    return float(np.argmax(good)) + 1.0 if good.any() else math.inf


def lines(results: Results, problem: str, *, draws: int = 1000, seed: int = 0) -> list[Line]:
    """One line for each method, best mean first; those with fewer than five runs after the others, without a rank."""
    labels = results.labels(problem)
    groups = {label: results.of(problem, label) for label in labels}
    groups = {label: runs for label, runs in groups.items() if runs}
    judged = [label for label, runs in groups.items() if len(runs) >= ENOUGH]
    drawn = bootstrap_ranks([scores(groups[label]) for label in judged], draws=draws, seed=seed)
    ranks = dict(zip(judged, drawn, strict=True))
    out = []
    for label, runs in groups.items():
        rank = ranks.get(label, np.full(1, np.nan))  # a method with few runs has no rank, and gives others none
        s, sign = scores(runs), runs[0].sign
        found = s[np.isfinite(s)]
        reach = np.array([evaluations_to(r) for r in runs])
        known = published_row(problem, label) or {}
        optimum = runs[0].optimum
        out.append(
            Line(
                problem=problem,
                label=label,
                runs=len(runs),
                failed=sum(r.label == label and r.problem == problem for r in results.failed),
                nothing=len(s) - len(found),
                mean=sign * float(found.mean()) + 0.0 if len(found) else math.nan,
                se=standard_error(found),
                median=sign * _median(s),
                worst=sign * float(s.max()),
                best=sign * float(s.min()),
                within=math.nan if optimum is None else float(np.mean(s - sign * optimum <= tolerance(optimum, 0.01))),
                reach=_median(reach),
                reached=int(np.isfinite(reach).sum()),
                model_seconds=float(np.mean([r.model_seconds for r in runs])),
                evaluation_seconds=float(np.mean([r.evaluation_seconds for r in runs])),
                rank=float(rank.mean()),
                rank_low=float(np.quantile(rank, 0.025)),
                rank_high=float(np.quantile(rank, 0.975)),
                published_mean=known.get("mean"),
                published_se=known.get("se"),
                published_median=known.get("median"),
                published_seconds=known.get("seconds"),
            )
        )
    # methods without a single complete run are shown too
    for label in labels:
        if label not in groups:
            n = sum(r.label == label and r.problem == problem for r in results.failed)
            nan = math.nan
            out.append(Line(problem, label, 0, n, 0, nan, nan, nan, nan, nan, nan, nan, 0, nan, nan, nan, nan, nan))
    sign = results.of(problem)[0].sign if results.of(problem) else 1.0
    return sorted(out, key=lambda line: (math.isnan(line.mean), line.runs < ENOUGH, sign * line.mean))


def _median(values: Array) -> float:
    """The middle value; of two middle ones of which one is infinite, infinite."""
    if np.isnan(values).any():
        return math.nan
    ordered = np.sort(values)
    low, high = ordered[(len(values) - 1) // 2], ordered[len(values) // 2]
    return float(low) if low == high else float(0.5 * (low + high))


def bootstrap_ranks(groups: Sequence[Array], *, draws: int = 1000, seed: int = 0) -> Array:
    """The rank of each method by its mean, in every bootstrap draw of its runs; ties share.  -> methods x draws"""
    rng = generator(seed, "ranks")
    means = np.array([rng.choice(g, size=(draws, len(g))).mean(axis=1) for g in groups]).reshape(len(groups), draws)
    better = (means[None] < means[:, None]).sum(axis=1)
    same = (means[None] == means[:, None]).sum(axis=1)
    return np.asarray(1.0 + better + 0.5 * (same - 1), dtype=np.float64)


def pairs(results: Results, problem: str, against: str) -> list[Pair]:
    """Every method against the chosen one, on the seeds that both have."""
    from scipy.stats import wilcoxon

    base = {r.seed: r for r in results.of(problem, against)}
    if not base:
        raise InputError(
            f"A comparison needs complete runs of {against!r}; {problem!r} has {', '.join(results.labels(problem))}."
        )
    out = []
    for label in results.labels(problem):
        mine = {r.seed: r for r in results.of(problem, label)}
        common = sorted(set(mine) & set(base))
        if label == against or not common:
            continue
        a, b = scores([mine[s] for s in common]), scores([base[s] for s in common])
        with np.errstate(invalid="ignore"):
            differences = np.where(a == b, 0.0, a - b)
        finite = differences[np.isfinite(differences)]
        p = math.nan
        if np.count_nonzero(finite) >= 6:
            p = float(wilcoxon(finite).pvalue)
        out.append(
            Pair(
                problem=problem,
                label=label,
                against=against,
                seeds=len(common),
                difference=float(finite.mean()) if len(finite) else math.nan,
                se=standard_error(finite),
                wins=int(np.sum(differences < 0)),
                losses=int(np.sum(differences > 0)),
                p=p,
            )
        )
    return sorted(out, key=lambda pair: pair.difference)
