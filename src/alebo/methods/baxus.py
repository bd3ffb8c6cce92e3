"""BAxUS: a trust region in a nested sparse embedding, which splits into a larger one each time the region collapses.

Papenmeier et al. 2022, written from the paper. Like HeSBO every parameter follows one target coordinate with a sign; unlike
HeSBO the bins are of even size, and the embedding grows: a coordinate is split among the parameters that follow it, so
that every observation keeps its place in the larger space exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._errors import InputError, damaged_note
from .._seeds import derive, generator
from ..acquisition.maximize import qmc_points
from ..goals import Goals
from ..history import History, State, Trial
from ..space import Space
from ._design import initial_points
from ._method import Suggestion, Supports, setting
from ._penalised import INFEASIBLE, Infeasible, Penalised, penalised_values
from ._trust_region import (
    LENGTH,
    SHORTEST,
    Region,
    candidates,
    fit_region,
    replay,
    take_smallest,
    thompson,
)

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bins:
    """A sparse embedding: parameter i follows target coordinate `bin[i]` with sign `sign[i]`."""

    bin: NDArray[np.int64]  # D
    sign: Array  # D, of +-1
    dim: int  # d, target coordinates

    @classmethod
    def draw(cls, D: int, dim: int, rng: np.random.Generator) -> Bins:
        """Bins of even size (they differ by one parameter at most), random members, random signs."""
        return cls(rng.permutation(np.arange(D) % dim), rng.choice([-1.0, 1.0], size=D), dim)

    def up(self, Y: Array) -> Array:
        """... x d -> ... x D"""
        x: Array = self.sign * Y[..., self.bin]
        return x

    def down(self, X: Array) -> Array:
        """The coordinates of the nearest embedded point: each bin's signed mean.  ... x D -> ... x d"""
        S = np.zeros((len(self.bin), self.dim))
        S[np.arange(len(self.bin)), self.bin] = self.sign
        y: Array = X @ (S / np.bincount(self.bin, minlength=self.dim))
        return y

    def split(self, parts: int, rng: np.random.Generator) -> Bins:
        """Every bin divided evenly into `parts`, or into its single parameters where it has fewer (paper, Alg. 2)."""
        new, dim = np.empty_like(self.bin), 0
        for old in range(self.dim):
            members = rng.permutation(np.flatnonzero(self.bin == old))
            pieces = min(parts, len(members))
            new[members] = dim + np.arange(len(members)) % pieces
            dim += pieces
        return Bins(new, self.sign, dim)


@dataclass(frozen=True)
class BAxUS(Penalised):
    """Thompson sampling in one trust region of an embedding that starts tiny and reaches all D dimensions near `reach`."""

    splits: int = setting(3, "of a coordinate when the region collapses: it becomes splits + 1")
    initial: int = setting(10, "points that start each life")
    reach: int | None = setting(
        None, "evaluations after which the full space is open; None: the budget, or else ten a dimension"
    )
    candidates: int | None = setting(None, "of the Thompson sampling; None: 100 a target dimension, at most 2000")
    infeasible: Infeasible = setting("refuse", INFEASIBLE)

    name: ClassVar[str] = "baxus"
    title: ClassVar[str] = "BAxUS"
    citation: ClassVar[str] = (
        "Papenmeier et al. 2022, Increasing the scope as you learn: adaptive BO in nested subspaces"
    )
    supports: ClassVar[Supports] = Supports(categories=False)

    def __post_init__(self) -> None:
        if self.splits is None or self.initial is None:
            raise InputError("`splits` and `initial` are whole numbers; got None. Leave them out for the defaults.")
        self._counts(splits=1, initial=2, reach=1, candidates=2)
        self._check_infeasible()

    def sizes(self, D: int) -> list[int]:
        """The target dimensions, first to last; the first is chosen so that splitting ends near D (paper, Sec. 3.3)."""
        base = self.splits + 1
        plans = []
        for first in range(1, min(self.splits, D) + 1):
            n = max(0, round(math.log(D / first, base)))
            plans.append((abs(D - first * base**n), -first, [first * base**i for i in range(n + 1)]))
        planned = min(plans)[2]
        return [min(d, D) for d in planned[:-1]] + [D] if planned[-1] < D else [*(d for d in planned if d < D), D]

    def patience(self, stage: int, D: int, budget: int | None) -> int:
        """Failed evaluations that halve the region: few at first, so that the last size is reached in time (paper, eq. 3)."""
        sizes = self.sizes(D)
        if sizes[stage] == D:
            return D
        reach = self.reach or budget or 10 * D
        share = reach * sizes[stage] / sum(sizes)
        halvings = math.floor(math.log2(LENGTH / SHORTEST))
        return max(1, min(round(share / halvings), sizes[stage]))

    def bins(self, D: int, life: int, stage: int, seed: int) -> Bins:
        """The embedding of a stage: the first one drawn, then split as often as the stage says."""
        sizes = self.sizes(D)
        bins = Bins.draw(D, sizes[0], generator(seed, "baxus", "bins", life))
        for i in range(1, stage + 1):
            parts = D if sizes[i] == D else self.splits + 1
            bins = bins.split(parts, generator(seed, "baxus", "split", life, i))
        return bins

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        D, batch, values = space.dimension, len(history), penalised_values(history, goals)
        life, stage, trials, region = self._state(history, values, D)
        bins = self.bins(D, life, stage, seed)
        asked = [t for t in trials if t.state is not State.FAILED]
        take = min(max(self.initial - len(asked), 0), q)
        unit = initial_points(bins.dim, len(trials) + take, derive(seed, "baxus", life))[len(trials) :]
        first = [True] * take
        known = [t for t in trials if t.number in values]
        rest = q - take
        if rest and len(known) < 2:
            unit = np.concatenate([unit, qmc_points(bins.dim, rest, derive(seed, "baxus", "wait", batch))])
            first += [True] * rest
        elif rest:
            Y = 0.5 * (bins.down(np.array([t.x for t in known])) + 1.0)
            y = np.array([values[t.number] for t in known])
            gp = fit_region(Y, y)
            count = min(100 * bins.dim, 2000) if self.candidates is None else self.candidates
            rng = generator(seed, "baxus", "candidates", batch)
            places = candidates(Y[np.argmin(y)], region.length, gp.lengthscales, max(count, q), rng)
            draws = thompson(gp, places, rest, derive(seed, "baxus", "draw", batch))
            unit = np.concatenate([unit, places[take_smallest(draws)]])
            first += [False] * rest
        Yq = 2.0 * unit - 1.0
        note = {"life": life, "stage": stage, "dim": bins.dim, "batch": batch}
        return [Suggestion(bins.up(y), y, {**note, "initial": i}) for y, i in zip(Yq, first, strict=True)]

    def _state(self, history: History, values: dict[int, float], D: int) -> tuple[int, int, list[Trial], Region]:
        """The present life and stage, the observations that count in it, and its region.

        A collapse before the full space opens the next stage and keeps every observation; one in the full space begins
        a new life there, without them.
        """
        own = [t for t in history if "stage" in t.note]
        life, stage = max(((int(t.note["life"]), int(t.note["stage"])) for t in own), default=(0, 0))
        last = len(self.sizes(D)) - 1
        if stage > last:
            raise damaged_note(f"a stage of at most {last}")
        trials = [t for t in own if t.note["life"] == life]
        before = [t for t in trials if t.note["stage"] < stage or t.note["initial"]]
        best = min((values[t.number] for t in before if t.number in values), default=math.inf)
        searched = [t for t in trials if t.note["stage"] == stage and not t.note["initial"]]
        region = replay(searched, values, self.patience(stage, D, history.budget), Region(best=best))
        if not region.collapsed:
            return life, stage, trials, region
        if stage < last:
            best = min((values[t.number] for t in trials if t.number in values), default=math.inf)
            return life, stage + 1, trials, Region(best=best)
        return life + 1, last, [], Region()
