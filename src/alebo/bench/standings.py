"""What a suite says of its methods: normalised regret, average ranks, wins and losses, data and performance profiles.

Normalised regret of a run after n evaluations is (value - best) / (start - best), between 0 and 1: 1 is the median random point,
0 the best value known. A failed run, and one that found nothing feasible, has regret 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from alebo import InputError

from .._seeds import generator
from ._left_out import Absent, absent, check_chosen, damaged
from .published import is_study
from .results import Results, Run
from .suite import Entry, Suite

Array: TypeAlias = NDArray[np.float64]

CHECKPOINTS = (50, 100, 200)
TARGETS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02)  # normalised regrets that count as solved, in profiles
DRAWS = 1000


@dataclass(frozen=True)
class Cell:
    """The runs of one method on one problem."""

    regret: Array  # runs x budget
    seeds: tuple[int, ...]  # of the rows
    failed: int  # rows that are failed runs
    short: int  # complete runs with fewer evaluations than the suite asks for, left out
    values: Array  # final values in the user's sign, NaN where failed or nothing feasible
    seconds: float  # CPU seconds of the method for one evaluation

    @property
    def end(self) -> Array:
        """Regret at the end of the budget.  -> runs"""
        return self.regret[:, -1]

    def at(self, n: int) -> float:
        """Mean regret after n evaluations; NaN beyond the budget."""
        return float(self.regret[:, n - 1].mean()) if n <= self.regret.shape[1] else math.nan


@dataclass(frozen=True)
class Standing:
    """One method over the problems that all methods of the table have run."""

    label: str
    runs: int  # complete, over the common problems
    failed: int  # the same
    problems: int  # of the suite, with at least one run
    rank: float  # average over the common problems
    low: float  # 95 % interval over bootstrap draws of problems and runs
    high: float
    regret: tuple[float, ...]  # mean at CHECKPOINTS, over the common problems with so many evaluations
    seconds: float  # CPU seconds of one proposal, mean over the common problems


@dataclass(frozen=True)
class Duel:
    """A method against another over the common problems; a win is a smaller mean regret."""

    label: str
    wins: int
    losses: int
    run_wins: int  # on seeds that both have
    run_losses: int
    p: float  # Wilcoxon signed rank over problems, two-sided; NaN with fewer than 6 that differ
    unpaired: tuple[str, ...] = ()  # common problems on which the two have no seed in common


@dataclass(frozen=True)
class Standings:
    """The numbers of a suite for some methods."""

    suite: Suite
    labels: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]  # (problem, label)
    best: dict[str, float]  # by problem: where regret is 0
    short: dict[tuple[str, str], int] = field(default_factory=dict)  # runs that are too short, where all of them are
    aside: tuple[str, ...] = ()  # problem/method whose runs are left out: the method has runs on the other variant
    foreign: tuple[tuple[Path, str], ...] = ()  # files and lines of the suite's problems that are no runs
    absent: tuple[Absent, ...] = ()  # methods with runs that are not in the table
    damaged: frozenset[tuple[str, str]] = frozenset()  # (problem, label) whose lines are all damaged

    @cached_property
    def common(self) -> tuple[Entry, ...]:
        """The problems with runs of every method, at least one of them complete."""
        return tuple(
            e
            for e in self.suite.entries
            if all((e.name, label) in self.cells for label in self.labels)
            and any(self.cells[e.name, label].failed < len(self.cells[e.name, label].seeds) for label in self.labels)
        )

    def reaching(self, n: int) -> tuple[Entry, ...]:
        """The common problems that have n evaluations or more."""
        return tuple(e for e in self.common if e.budget >= n)

    def lines(self, *, draws: int = DRAWS) -> list[Standing]:
        """One for each method, best average rank first."""
        ranks = self._ranks(draws)
        out = []
        for i, label in enumerate(self.labels):
            mine = [self.cells[e.name, label] for e in self.common]
            regret = []
            for n in CHECKPOINTS:
                values = [self.cells[e.name, label].at(n) for e in self.reaching(n)]
                regret.append(float(np.mean(values)) if values else math.nan)
            low, high = np.percentile(ranks[1:, i], [2.5, 97.5]) if len(ranks) > 1 else (math.nan, math.nan)
            seconds = [c.seconds for c in mine if not math.isnan(c.seconds)]
            out.append(
                Standing(
                    label,
                    sum(len(c.seeds) - c.failed for c in mine),
                    sum(c.failed for c in mine),
                    sum(other == label for _, other in self.cells),
                    float(ranks[0, i]),
                    float(low),
                    float(high),
                    tuple(regret),
                    float(np.mean(seconds)) if seconds else math.nan,
                )
            )
        return sorted(out, key=lambda s: s.rank)

    def _ranks(self, draws: int) -> Array:
        """Average ranks: the first row of the runs as they are, then of bootstrap draws.  -> 1 + draws x methods

        Each problem and method has random numbers of its own, so a draw of its runs depends on no other method.
        """
        from scipy.stats import rankdata

        by_problem = []
        for e in self.common:
            means = []
            for label in self.labels:
                end = self.cells[e.name, label].end
                rng = generator(0, "suite", "runs", e.name, label)
                drawn = end[rng.integers(len(end), size=(draws, len(end)))].mean(axis=1)
                means.append(np.concatenate([[end.mean()], drawn]))
            by_problem.append(rankdata(np.round(np.stack(means, axis=1), 12), axis=1))
        ranks = np.stack(by_problem)  # problems x 1 + draws x methods
        rng = generator(0, "suite", "problems")
        weights = rng.multinomial(len(ranks), np.full(len(ranks), 1 / len(ranks)), size=draws) / len(ranks)
        weights = np.concatenate([np.full((1, len(ranks)), 1 / len(ranks)), weights])
        return np.asarray(np.einsum("bp,pbm->bm", weights, ranks))

    def duels(self, against: str) -> list[Duel]:
        """Every other method against this one."""
        if against not in self.labels:
            raise InputError(f"`against` must be one of the methods {', '.join(self.labels)}; got {against!r}.")
        return [self._duel(label, against) for label in self.labels if label != against]

    def _duel(self, label: str, against: str) -> Duel:
        from scipy.stats import wilcoxon

        differences, unpaired, run_wins, run_losses = [], [], 0, 0
        for e in self.common:
            mine, other = self.cells[e.name, label], self.cells[e.name, against]
            differences.append(mine.end.mean() - other.end.mean())
            theirs = dict(zip(other.seeds, other.end, strict=True))
            unpaired += [] if set(mine.seeds) & set(theirs) else [e.name]
            for seed, value in zip(mine.seeds, mine.end, strict=True):
                run_wins += int(seed in theirs and value < theirs[seed] - 1e-12)
                run_losses += int(seed in theirs and value > theirs[seed] + 1e-12)
        d = np.round(differences, 12)
        p = float(wilcoxon(d[d != 0]).pvalue) if np.count_nonzero(d) >= 6 else math.nan
        return Duel(label, int(np.sum(d < 0)), int(np.sum(d > 0)), run_wins, run_losses, p, tuple(unpaired))

    def data_profile(self, label: str) -> Array:
        """Share of targets reached after 1, 2, ... evaluations, over runs, problems and TARGETS; problems weigh alike."""
        longest = max(e.budget for e in self.common)
        shares = []
        for e in self.common:
            regret = self.cells[e.name, label].regret
            solved = np.mean([(regret <= tau).mean(axis=0) for tau in TARGETS], axis=0)
            shares.append(np.concatenate([solved, np.full(longest - e.budget, solved[-1])]))
        return np.asarray(np.mean(shares, axis=0))

    def performance_profile(self, ratios: Array) -> dict[str, Array]:
        """Share of (problem, target) that a method's median run reaches within `ratio` times the quickest method's evaluations.

        Targets that no method reaches count as not reached.
        """
        needed = np.array(
            [[self._needed(e, label, tau) for label in self.labels] for e in self.common for tau in TARGETS]
        )
        quickest = needed.min(axis=1)
        out = {}
        for i, label in enumerate(self.labels):
            reached = np.isfinite(needed[:, i])
            within = needed[reached, i, None] <= ratios * quickest[reached, None]
            out[label] = within.sum(axis=0) / len(needed)
        return out

    def _needed(self, entry: Entry, label: str, tau: float) -> float:
        good = self.cells[entry.name, label].regret <= tau
        each = np.where(good.any(axis=1), good.argmax(axis=1) + 1.0, np.inf)
        return float(
            np.sort(each)[(len(each) - 1) // 2]
        )  # the median; the lower one of two, so that inf never mixes in


def standings(results: Results, suite: Suite, labels: Sequence[str] = (), *, make: str | None = None) -> Standings:
    """The numbers of a suite from stored runs.

    Args:
        results: Runs of any problems; those of the suite are used.
        suite: The suite.
        labels: The methods; without any, the largest block of methods and problems in which every method has runs.
        make: The command that makes runs, for the message where there are too few.
    """
    twice = sorted({label for label in labels if list(labels).count(label) > 1})
    if twice:
        raise InputError(f"Each method once; got {', '.join(twice)} more than once. Name it once.")
    found = {entry.name: [r for r in results.runs if r.problem in entry.names] for entry in suite.entries}
    best = {e.name: _best(e, found[e.name]) for e in suite.entries}
    cells: dict[tuple[str, str], Cell] = {}
    short: dict[tuple[str, str], int] = {}
    aside: list[tuple[str, str]] = []
    for entry in suite.entries:
        for label in dict.fromkeys(r.label for r in found[entry.name]):
            runs, other = _variant(entry, [r for r in found[entry.name] if r.label == label])
            aside += [(name, label) for name in other]
            cell = _cell(entry, runs, best[entry.name])
            if cell is None:
                short[entry.name, label] = len(runs)
            else:
                cells[entry.name, label] = cell
    chosen = tuple(labels) or _block(suite, cells)
    lost = damaged(results, suite)
    check_chosen(suite, chosen, cells, short, lost, named=bool(labels), make=make)
    ours = {name for entry in suite.entries for name in entry.names}
    made = Standings(
        suite,
        chosen,
        {key: cell for key, cell in cells.items() if key[1] in chosen},
        best,
        {key: n for key, n in short.items() if key[1] in chosen},
        tuple(f"{name}/{label}" for name, label in aside if label in chosen),
        tuple((path, why) for path, why in results.foreign if path.parent.name in ours),
        absent(chosen, cells, short, lost, named=bool(labels)),
        frozenset(pair for pair in lost if pair[1] in chosen),
    )
    if not made.common:
        raise InputError(
            f"No problem of suite {suite.name!r} has runs of all of {', '.join(chosen)}. Choose fewer methods."
        )
    return made


def _variant(entry: Entry, runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """The runs of one variant of the problem: its own where it has complete ones; and the variants left out."""
    by_name = {name: [r for r in runs if r.problem == name] for name in entry.names}
    there = [name for name in entry.names if by_name[name]]
    first = next((name for name in there if any(r.complete for r in by_name[name])), there[0])
    return by_name[first], [name for name in there if name != first]


def _best(entry: Entry, runs: Sequence[Run]) -> float:
    """The best value known: the entry's own, or a stored run's where that is better."""
    values = [entry.sign * r.final for r in runs if r.complete and not math.isnan(r.final)]
    values += [entry.sign * entry.best] if entry.best is not None else []
    return entry.sign * min(values) if values else math.nan


def _cell(entry: Entry, runs: Sequence[Run], best: float) -> Cell | None:
    """The runs as regrets; None where all are too short."""
    n = entry.budget
    complete = [r for r in runs if r.complete and len(r.values) >= n]
    failed = [r for r in runs if not r.complete]
    short = sum(r.complete for r in runs) - len(complete)
    if not complete and not failed:
        return None
    rows, values = [], []
    for r in complete:
        trace = r.trace[:n]
        scaled = (trace - best) / (entry.start - best)
        rows.append(np.clip(np.where(np.isnan(scaled), 1.0, scaled), 0.0, 1.0))
        values.append(r.final if len(r.values) == n else float(trace[-1]))
    rows += [np.ones(n)] * len(failed)
    values += [math.nan] * len(failed)
    seconds = float(np.mean([r.model_seconds for r in complete])) if complete else math.nan
    seeds = tuple(r.seed for r in (*complete, *failed))
    return Cell(np.array(rows), seeds, len(failed), short, np.array(values), seconds)


def _block(suite: Suite, cells: dict[tuple[str, str], Cell]) -> tuple[str, ...]:
    """The methods of the largest block (methods x problems) without a gap; studies of one setting do not compete."""
    labels = [label for label in dict.fromkeys(label for _, label in cells) if not is_study(label)]
    covered = {label: {e.name for e in suite.entries if (e.name, label) in cells} for label in labels}
    labels.sort(key=lambda label: (-len(covered[label]), label))
    blocks = []
    for k in range(2, len(labels) + 1):
        common = set.intersection(*(covered[label] for label in labels[:k]))
        blocks.append((k * len(common), k))
    size = max(blocks, default=(0, 0))[1]
    return tuple(labels[:size])
