"""Which trials are the best: one by its value, or the Pareto front; and the hypervolume of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._errors import InputError, StateError
from .goals import Goals, Outcome, hypervolume_trace, pareto
from .history import History, State, Trial, counts
from .space import Space

Array: TypeAlias = NDArray[np.float64]
Estimates: TypeAlias = Callable[
    [], Mapping[int, Mapping[str, Outcome]] | None
]  # the model's outcomes; None: trust those measured


def best(history: History, space: Space, goals: Goals, estimates: Estimates) -> Trial:
    """The best feasible trial. Under noise the model chooses it, and `note['chosen_by']` says so."""
    if not goals.single:
        raise StateError(
            f"`best` is for one objective; there are {len(goals.objectives)}. Call front() for the trade-offs."
        )
    candidates, chosen_by = _feasible(history, space, goals, estimates)
    trial = min(candidates, key=lambda pair: float(goals.objective_values(pair[1])[0]))[0]
    return replace(trial, note={**trial.note, "chosen_by": chosen_by})


def front(history: History, space: Space, goals: Goals, estimates: Estimates) -> list[Trial]:
    """The Pareto front: the feasible trials that no other trial beats in every objective."""
    if goals.single:
        raise StateError("`front` is for several objectives; there is one. Call best().")
    candidates, _ = _feasible(history, space, goals, estimates)
    values = np.stack([goals.objective_values(outcomes) for _, outcomes in candidates])
    return [trial for (trial, _), keep in zip(candidates, pareto(values), strict=True) if keep]


def hypervolumes(history: History, space: Space, goals: Goals, reference: Sequence[float] | None) -> Array:
    """The volume dominated by the feasible measured outcomes after each finished trial, up to the reference point.  -> n

    `reference` has one value for each objective, in their order and the user's sign. Without it, the goals' own
    references are taken, and where one is missing, a tenth of the front's range beyond its worst value.
    """
    if goals.single:
        raise StateError("`hypervolumes` is for several objectives; there is one. See history, or best().")
    objectives = goals.objectives
    if reference is None:
        given = [np.nan if g.reference is None else g.reference for g in objectives]
    elif len(reference) != len(objectives) or not np.isfinite(np.asarray(reference, dtype=float)).all():
        raise InputError(
            f"`reference` has one finite number for each of {[g.outcome for g in objectives]}; got {list(reference)}."
        )
    else:
        given = list(reference)
    at = np.array([goals.sign(g.outcome) * r for g, r in zip(objectives, given, strict=True)])
    finished = [t for t in history if t.state is not State.PENDING]
    values = np.full((len(finished), len(objectives)), np.nan)
    for i, t in enumerate(finished):
        if counts(t, goals, space):
            values[i] = goals.objective_values(t.outcomes)
    known = values[~np.isnan(values).any(axis=1)]
    if np.isnan(at).any() and len(known):
        front = known[pareto(known)]
        at = np.where(np.isnan(at), front.max(axis=0) + 0.1 * np.maximum(np.ptp(front, axis=0), 1e-12), at)
    return hypervolume_trace(values, at)


def _feasible(
    history: History, space: Space, goals: Goals, estimates: Estimates
) -> tuple[list[tuple[Trial, Mapping[str, Outcome]]], str]:
    complete = history.complete
    if not complete:
        raise StateError(
            f"A best point needs one completed trial; of {len(history)} none is "
            f"({len(history.failed)} failed). Tell an outcome first."
        )
    complete = tuple(t for t in complete if space.at_target(t.params)) or complete  # cheap looks do not count
    estimated = estimates()
    chosen_by = "measured value" if estimated is None else "posterior mean"
    view = [(t, t.outcomes if estimated is None else estimated[t.number]) for t in complete]
    feasible = [(t, o) for t, o in view if goals.feasible(o) and space.feasible(t.params)]
    feasible = [pair for pair in feasible if goals.feasible(pair[0].outcomes)] or feasible  # measured so, too
    if not feasible:
        feasible = [(t, t.outcomes) for t in complete if goals.feasible(t.outcomes) and space.feasible(t.params)]
    if not feasible:
        worst = min(complete, key=lambda t: float(np.maximum(goals.violations(t.outcomes), 0.0).sum()))
        raise StateError(
            f"A best point must satisfy the constraints; none of {len(complete)} completed trials does. The nearest "
            f"is trial {worst.number} with outcomes { {k: v.mean for k, v in worst.outcomes.items()} }. Go on asking, "
            "or loosen a bound."
        )
    return feasible, chosen_by
