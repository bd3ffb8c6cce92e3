"""TuRBO: local models in trust regions that grow on success, shrink on failure and start again when they collapse.

Eriksson et al. 2019, written from the paper. Everything a region "remembers" is read off the history: each trial's note
says which region it served, in which life of that region, and with which others it was asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._seeds import derive, generator
from ..acquisition.maximize import qmc_points
from ..goals import Goals
from ..history import History, State, Trial
from ..space import Space
from ._design import initial_points
from ._method import Suggestion, Supports, setting
from ._penalised import INFEASIBLE, Infeasible, Penalised, penalised_values
from ._trust_region import Region, candidates, fit_region, replay, thompson

Array: TypeAlias = NDArray[np.float64]


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
        values = penalised_values(history, goals)
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
            places.append(candidates(X[np.argmin(y)], state.length, gp.lengthscales, count, rng))
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
