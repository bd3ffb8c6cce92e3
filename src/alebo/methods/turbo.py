"""TuRBO: local models in trust regions that grow on success, shrink on failure and start anew when they collapse.

Eriksson et al. 2019, written from the paper. Everything a region "remembers" is read off the history: each trial's note
says which region it served, in which life of that region, and with which others it was asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from .._seeds import derive, generator
from ..goals import Goals
from ..history import History, State, Trial
from ..space import Space
from ._method import Suggestion, Supports, setting
from ._penalised import INFEASIBLE, Infeasible, Penalised, told

if TYPE_CHECKING:
    from ._gp import GP

Array: TypeAlias = NDArray[np.float64]

LENGTH, SHORTEST, LONGEST = 0.8, 0.5**7, 1.6  # of a unit cube's side: start, collapse, cap (paper, Sec. 2)
SUCCESSES = 3  # in a row, then the region doubles
IMPROVEMENT = 1e-3  # a success lowers the best value by more than this share of it
PERTURBED = 20  # coordinates, on average, in which a candidate leaves the region's centre


@dataclass(frozen=True)
class Region:
    """A trust region's side length and counters, and the rule by which a finished batch changes them."""

    length: float = LENGTH
    successes: int = 0  # batches in a row
    failures: int = 0  # evaluations in a row
    best: float = math.inf

    def after(self, values: Sequence[float], patience: int) -> Region:
        """The region after a batch of these values (inf for an evaluation that failed).

        Failures are counted in evaluations: for batches of q, `patience` of them are the ceil(patience / q) batches of
        the paper.
        """
        low = min(values)
        if math.isinf(self.best):
            return Region(self.length, 0, 0, low)
        if low < self.best - IMPROVEMENT * abs(self.best):
            successes, failures = self.successes + 1, 0
        else:
            successes, failures = 0, self.failures + len(values)
        length = self.length
        if successes == SUCCESSES:
            length, successes = min(2.0 * length, LONGEST), 0
        elif failures >= patience:
            length, failures = length / 2.0, 0
        return Region(length, successes, failures, min(low, self.best))

    @property
    def collapsed(self) -> bool:
        return self.length < SHORTEST


@dataclass(frozen=True)
class TuRBO(Penalised):
    """Thompson sampling in one trust region of the whole space, or in several that compete for every evaluation."""

    regions: int = setting(1, "that compete for every evaluation: 1 is TuRBO-1, m is TuRBO-m")
    initial: int | None = setting(
        None, "points that start each life of a region; None: twice the dimension, at most 20"
    )
    candidates: int | None = setting(None, "of the Thompson sampling; None: 100 a dimension, at most 2000")
    infeasible: Infeasible = setting("refuse", INFEASIBLE)

    name: ClassVar[str] = "turbo"
    title: ClassVar[str] = "TuRBO"
    citation: ClassVar[str] = "Eriksson et al. 2019, Scalable global optimization via local Bayesian optimization"
    supports: ClassVar[Supports] = Supports(categories=False)  # no distance between them, so no region

    def __post_init__(self) -> None:
        self._counts(regions=1, initial=2, candidates=2)
        self._check_infeasible()

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        D, batch = space.dimension, len(history)
        size = min(2 * D, 20) if self.initial is None else self.initial
        values = told(history, goals)
        lives = [self._life(history, values, r, D) for r in range(self.regions)]
        out: list[Suggestion] = []
        for r, (life, trials, _) in enumerate(lives):  # a region that is young needs its first points first
            asked = [t for t in trials if t.state is not State.FAILED]
            first, take = len(trials), min(max(size - len(asked), 0), q - len(out))
            points = initial_points(D, first + take, derive(seed, "turbo", r, life))[first:]
            out += [Suggestion(2.0 * u - 1.0, note=_note(r, life, batch, True)) for u in points]
        ready = [(r, *lives[r]) for r in range(self.regions) if sum(t.number in values for t in lives[r][1]) >= 2]
        if len(out) == q or not ready:
            # all is still being evaluated: more points like the first ones
            extra = qmc_points(D, q - len(out), derive(seed, "turbo", "wait", batch))
            return [*out, *(Suggestion(2.0 * u - 1.0, note=_note(0, lives[0][0], batch, True)) for u in extra)]
        return [*out, *self._thompson(ready, values, D, q - len(out), batch, seed)]

    def _life(self, history: History, values: dict[int, float], region: int, D: int) -> tuple[int, list[Trial], Region]:
        """The region's present life: its number, its trials, and the state they led to; a collapse begins the next."""
        own = [t for t in history if t.note.get("region") == region]
        life = max((int(t.note["life"]) for t in own), default=0)
        trials = [t for t in own if t.note["life"] == life]
        if region == 0 and life == 0:
            elsewhere = [t for t in history if "region" not in t.note and t.number in values]
            trials = [*elsewhere, *trials]
        state = replay(trials, values, patience=max(4, D))
        return (life + 1, [], Region()) if state.collapsed else (life, trials, state)

    def _thompson(
        self,
        ready: list[tuple[int, int, list[Trial], Region]],
        values: dict[int, float],
        D: int,
        q: int,
        batch: int,
        seed: int,
    ) -> list[Suggestion]:
        count = min(100 * D, 2000) if self.candidates is None else self.candidates
        places, draws = [], []
        for r, _, trials, state in ready:
            X = np.array([0.5 * (t.x + 1.0) for t in trials if t.number in values])
            y = np.array([values[t.number] for t in trials if t.number in values])
            gp = fit_region(X, y)
            rng = generator(seed, "turbo", "candidates", batch, r)
            places.append(candidates(X[np.argmin(y)], state.length, gp.lengthscales.numpy(), count, rng))
            draws.append(thompson(gp, places[-1], q, derive(seed, "turbo", "draw", batch, r)))
        out = []
        for i in range(q):  # one joint draw a place in the batch; the regions compete through their draws
            j = int(np.argmin([d[i].min() for d in draws]))
            c = int(np.argmin(draws[j][i]))
            draws[j][:, c] = math.inf  # no candidate twice
            out.append(Suggestion(2.0 * places[j][c] - 1.0, note=_note(ready[j][0], ready[j][1], batch, False)))
        return out


def _note(region: int, life: int, batch: int, initial: bool) -> dict[str, Any]:
    return {"region": region, "life": life, "batch": batch, "initial": initial}


def replay(trials: Sequence[Trial], values: dict[int, float], patience: int, region: Region | None = None) -> Region:
    """The region after these trials: initial points set the best value, batches that are over move the counters."""
    state = Region() if region is None else region
    batches: dict[int, list[Trial]] = {}
    for t in trials:
        if t.note.get("initial", True):
            best = min(state.best, values.get(t.number, math.inf))
            state = Region(state.length, state.successes, state.failures, best)
        else:
            batches.setdefault(int(t.note["batch"]), []).append(t)
    for members in batches.values():
        if all(t.state is not State.PENDING for t in members) and not state.collapsed:
            state = state.after([values.get(t.number, math.inf) for t in members], patience)
    return state


def initial_points(D: int, n: int, seed: int) -> Array:
    """A design that can be extended: the first n points of one scrambled Sobol sequence in the unit cube.  -> n x D"""
    from .sobol import sobol_points

    points: Array = 0.5 * (sobol_points(D, n, seed) + 1.0) if n > 0 else np.empty((0, D))
    return points


def qmc_points(D: int, n: int, seed: int) -> Array:
    """n quasi-random points of the unit cube; uniform ones where the sequence has too few dimensions.  -> n x D"""
    rng = generator(seed, "qmc")
    if n == 0 or D > qmc.Sobol.MAXDIM:
        return rng.random((n, D))
    points: Array = qmc.Sobol(D, scramble=True, rng=rng).random_base2(math.ceil(math.log2(n)))[:n]
    return points


def fit_region(X: Array, y: Array) -> GP:
    """The region's process: Matern-5/2, a lengthscale a coordinate, most likely within the paper's bounds."""
    from ._ard import Priors, fit

    return fit(X, y, Priors("matern", (0.005, 2.0), (0.05, 20.0), (5e-4, 0.2), starts=(0.5, 2.0), start_noise=5e-3))


def candidates(centre: Array, length: float, lengthscales: Array, count: int, rng: np.random.Generator) -> Array:
    """Points of the region around `centre`, each perturbed in about 20 of its coordinates.  -> count x D, in [0, 1]

    The region's sides are in proportion to the lengthscales, with a volume of length^D.
    """
    D = len(centre)
    weights = np.exp(np.log(lengthscales) - np.log(lengthscales).mean())
    low, high = np.clip(centre - 0.5 * length * weights, 0.0, 1.0), np.clip(centre + 0.5 * length * weights, 0.0, 1.0)
    moved = rng.random((count, D)) < min(1.0, PERTURBED / D)
    idle = np.flatnonzero(~moved.any(axis=1))
    moved[idle, rng.integers(0, D, size=len(idle))] = True
    inside = low + (high - low) * qmc_points(D, count, int(rng.integers(2**62)))
    return np.where(moved, inside, centre)


def thompson(gp: GP, points: Array, draws: int, seed: int) -> Array:
    """Joint posterior draws at the points.  N x D -> draws x N"""
    import torch

    with torch.no_grad():
        values: Array = gp.sample(torch.as_tensor(points), draws, seed).numpy()
    return values
