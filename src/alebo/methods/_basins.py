"""Searching for another basin, once nothing more is to be expected of the one that was found.

Further evaluations in an exhausted basin are wasted. It is then *filled*: measured values around its lowest point are raised
to what first points typically have, and the search goes on with the values so changed. What was measured stays what it is for
everybody else. Each filled basin is written into the note of the next trial, and each trial of the search elsewhere is marked,
so that any process goes on in the same way.

Only where the sparse model explains the data: it knows which parameters matter, and so how wide the basin is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._errors import damaged_note
from ..goals import Outcome
from ..history import Trial
from ..models.ard_fit import remembered_lengthscales
from ..models.outcomes import typical_spread
from ..models.subsets import ACTIVE
from ._foreseen import FORESEEN
from ._view import ELSEWHERE, View

Array: TypeAlias = NDArray[np.float64]

FILLED = "filled"  # the key of a note
NEGLIGIBLE = 0.001  # of the distance from the typical first value to the best: a smaller improvement is none
LATEST = 4  # evaluations of full-space models in a row that promise less than that
LAST_DIGITS, REFINED = 1e-4, 3  # the same two in the last share of the budget, where the best point is refined
EXPLAINED = 0.9  # share of the variation that the sparse model predicts, leave-one-out
WIDTH = 0.9  # of what is filled, in lengthscales
RIM = 10  # evaluations elsewhere after which more is filled: they may follow the rim of what was filled
WIDER = 1.5  # by this factor
AWAY = 1.5  # lengthscales beyond which a point may be on the slope of another basin
ANOTHER = 0.6  # share of the way to the best value at which it is: then only the inner part of this basin stays filled
OUTSIDE = 0.6  # share of the way to the level below which a point does not belong to the basin
CHANGED = 0.05  # share of the way to the level: beyond it an outcome does not tell which model foresaw it


@dataclass(frozen=True)
class Basin:
    """A filled basin: its lowest trial, and the lengthscales, in the unit cube, of the coordinates that matter there."""

    trial: int
    at: int  # the number of the first trial that was proposed after it was filled
    where: tuple[int, ...]  # k
    lengths: tuple[float, ...]  # k

    def to_plain(self) -> list[Any]:
        """As a note has it."""
        return [self.trial, self.at, list(self.where), list(self.lengths)]

    @classmethod
    def from_plain(cls, data: Any, D: int) -> Basin:
        """The basin that `to_plain` wrote, of a cube of D coordinates."""
        try:
            trial, at, where, lengths = data
            made = cls(int(trial), int(at), tuple(map(int, where)), tuple(map(float, lengths)))
        except (TypeError, ValueError, OverflowError):
            raise damaged_note("a filled basin as [trial, number, coordinates, lengthscales]") from None
        known = 0 <= made.trial < made.at and all(0 <= i < D for i in made.where)
        if not known or len(made.where) != len(made.lengths) or not all(0.0 < l < math.inf for l in made.lengths):
            raise damaged_note(
                "a filled basin around an earlier trial, with a positive lengthscale for each coordinate"
            )
        return made

    def shares(self, X: Array, width: float) -> Array:
        """How far points of the cube are filled, from 0 to 1; the basin's lowest trial is among them.  n x D -> n"""
        where = list(self.where)
        off = 0.5 * (X[:, where] - X[self.trial, where]) / (width * np.array(self.lengths))
        out: Array = np.exp(-0.5 * np.einsum("ij,ij->i", off, off))
        return out


def basins(view: View) -> list[Basin]:
    """The basins that were filled so far, oldest first, without those whose lowest trial was forgotten since."""
    noted = [t for t in view.history if FILLED in t.note]
    found = [Basin.from_plain(t.note[FILLED], view.space.dimension) for t in noted]
    if any(basin.at > t.number for t, basin in zip(noted, found, strict=True)):
        raise damaged_note("a filled basin around an earlier trial")
    return [basin for basin in found if view.history[basin.trial].complete]


def lifted(view: View, filled: Sequence[Basin]) -> View:
    """The view with every value as if the basins had been filled, and with the number at which the present search began.

    Once there is a better point outside of them, values are again what was measured.
    """
    if not filled or view.incumbent is None:
        return view
    goals, trials = view.goals, view.history.trials
    outcome = goals.objectives[0].outcome
    X = np.array([t.x for t in trials])
    values = np.array([float(goals.objective_values(t.outcomes)[0]) if t.complete else math.nan for t in trials])
    level = _level(view)
    begun = filled[-1].at
    away = values[(_shares(filled, X, AWAY) < OUTSIDE) & np.isfinite(values)]
    if len(away) and level - away.min() >= ANOTHER * (level - np.nanmin(values)):
        share = _shares(filled, X, WIDTH)
        share = np.where(share < OUTSIDE, 0.0, share)
    else:
        spent = sum(ELSEWHERE in t.note for t in trials[begun:])
        share = _shares(filled, X, WIDTH * WIDER ** (spent // RIM))
    if share[view.incumbent.number] < OUTSIDE:
        return replace(view, begun=begun)
    values = values + share * np.maximum(level - values, 0.0)
    made = [
        _with_value(t, outcome, goals.sign(outcome) * float(v), s) if t.complete else t
        for t, v, s in zip(trials, values, share, strict=True)
    ]
    return replace(view, history=replace(view.history, trials=tuple(made)), begun=begun, search=True)


def _shares(filled: Sequence[Basin], X: Array, width: float) -> Array:
    """How far points are filled, by the basin that fills them most.  n x D -> n"""
    out: Array = np.max([basin.shares(X, width) for basin in filled], axis=0)
    return out


def _level(view: View) -> float:
    """The value that points before the first model typically have; without any the worst value."""
    done = view.history.complete
    first = [t for t in done if "log_ei" not in t.note]
    values = [float(view.goals.objective_values(t.outcomes)[0]) for t in first or done]
    return float(np.median(values)) if first else max(values)


def _with_value(trial: Trial, outcome: str, value: float, share: float) -> Trial:
    note = {k: v for k, v in trial.note.items() if k != FORESEEN} if share > CHANGED else trial.note
    return replace(trial, outcomes={**trial.outcomes, outcome: Outcome(value, trial.outcomes[outcome].sem)}, note=note)


def exhausted(view: View, arms: Sequence[str], latest: int = LATEST, negligible: float = NEGLIGIBLE) -> bool:
    """Whether the latest evaluations by these arms promised next to nothing, and nothing better came meanwhile."""
    if view.incumbent is None:
        return False
    own = [t.number for t in view.trials if view.searched(t) and t.note.get("arm") in arms and "log_ei" in t.note]
    own = own[-latest:]
    if len(own) < latest:
        return False
    good = view.values[view.feasible, 0]
    before = good[[t.number < own[0] for t, ok in zip(view.trials, view.feasible, strict=True) if ok]]
    least = negligible * (_level(view) - float(good.min()))
    promised = max(math.exp(min(float(view.history[i].note["log_ei"]), 0.0)) for i in own)
    if promised * typical_spread(view.values[:, 0]) >= least:
        return False
    return bool(len(before)) and float(before.min() - good.min()) < least


def around_incumbent(view: View, memory: Sequence[float]) -> Basin | None:
    """The basin of the incumbent, with the lengthscales that a fit remembers; None where no coordinate matters."""
    lengths = np.exp(remembered_lengthscales(memory, view.space.dimension))
    where = np.flatnonzero(lengths < ACTIVE)
    if view.incumbent is None or not len(where):
        return None
    rounded = tuple(float(f"{l:.4g}") for l in lengths[where])
    return Basin(view.incumbent.number, view.number, tuple(int(i) for i in where), rounded)


def elsewhere(view: View, arms: dict[str, int], final: float) -> tuple[View, dict[str, Any]]:
    """What proposals are to be made for, and what the note of the next trial has to say of it.

    Args:
        view: the study; with several objectives there is no basin.
        arms: the arms with a sparse model, and its place among their models.
        final: the last share of the budget, in which the best point of all is refined until nothing comes of that, either.

    Returns:
        The view, as if exhausted basins were filled; and a note, with the present basin where it is the last of them.
    """
    if not view.goals.single:
        return view, {}
    filled = basins(view)
    seen = lifted(view, filled)
    if view.ends_within(final):
        best = replace(view, search=False) if seen.search else seen
        since = max(best.begun, math.ceil((1.0 - final) * (view.history.budget or 0)))
        if not exhausted(replace(best, begun=since), list(arms), REFINED, LAST_DIGITS):
            return best, {}
        if seen.search:
            return seen, {}
    elif not exhausted(seen, list(arms)):
        return seen, {}
    basin = _explained(seen, arms)
    return (seen, {}) if basin is None else (lifted(view, [*filled, basin]), {FILLED: basin.to_plain()})


def _explained(view: View, arms: dict[str, int]) -> Basin | None:
    """The basin of the incumbent by the latest sparse model; None where that explains too little."""
    last = next((t.note for t in reversed(view.history.trials) if t.note.get("arm") in arms and "sparse" in t.note), {})
    fits = last.get("fit", {}).get("objective 0", ())
    if not last or last["sparse"].get("explained", 0.0) < EXPLAINED or len(fits) <= arms[last["arm"]]:
        return None
    return around_incumbent(view, fits[arms[last["arm"]]])
