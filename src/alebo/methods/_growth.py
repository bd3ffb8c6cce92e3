"""An embedding that changes: it grows on evidence that it is exhausted, and takes in good points that lie outside it.

Every change is an `Event`. A trial's note carries all events so far, so that any process can rebuild the embedding.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import geometry
from .._errors import StudyError, damaged_note
from .._seeds import derive
from ..geometry import Embedding, Polytope
from ..history import Trial
from ..models.outcomes import typical_spread
from ._outcomes import OutcomeModels
from ._settings import Settings, setting
from ._view import EmbeddedView, View

Array: TypeAlias = NDArray[np.float64]
log = logging.getLogger(__name__)

EMBEDDINGS = {"hypersphere": geometry.hypersphere, "gaussian": geometry.gaussian, "hesbo": geometry.hesbo}
RELAXED = -4.0  # the log-EI to which the threshold rises while nothing improves: a fiftieth of a standard deviation
SAME = 1e-3  # standard deviations of the outcomes by which a value must be better to count as an improvement


@dataclass(frozen=True)
class Event:
    """One change of an embedding.

    `grow`: `how` random directions were added; `towards`: `how` given ones; `through`: one direction, to the point of trial
    number `how`. `at` is how many trials there were.
    """

    kind: str
    how: int
    at: int
    columns: tuple[tuple[float, ...], ...] = ()  # the given directions, each of D

    def to_plain(self, number: int) -> list[Any]:
        """As the note of a trial proposed as this number has it; given directions only where they were first used."""
        given = [[list(c) for c in self.columns]] if self.columns and number == self.at else []
        return [self.kind, self.how, self.at, *given]

    @classmethod
    def from_plain(cls, data: Sequence[Any]) -> Event:
        """The event that `to_plain` wrote."""
        try:
            kind, how, at, *given = list(data)
            return cls(str(kind), int(how), int(at), tuple(tuple(map(float, c)) for c in given[0]) if given else ())
        except (TypeError, ValueError, OverflowError):
            raise StudyError(
                f"A trial's note holds growths as [kind, number, trial]; got {data!r:.60}. Use a backup of the study."
            ) from None


@dataclass(frozen=True)
class Growth(Settings):
    """When and by how much an embedding grows."""

    start: int | None = setting(None, "first dimension; None: by the budget")
    step: int = setting(2, "directions added at a time")
    most: int = setting(20, "largest dimension")
    threshold: float = setting(
        -7.0, "log-EI, in standard deviations of the outcomes, below which the subspace is exhausted"
    )
    patience: int = setting(
        5, "evaluations between two growths, and without improvement before the threshold is relaxed"
    )
    pace: float = setting(0.2, "the share of the budget over which the threshold is relaxed")
    directions: Callable[[EmbeddedView, int], Array | None] | None = setting(  # noqa: RUF009
        None, "a function of the view and k that gives a D x k array of directions to add; None: random ones"
    )

    def __post_init__(self) -> None:
        self._counts(start=1, step=1, most=1, patience=0)
        self._numbers(threshold=(-math.inf, math.inf), pace=(0.0, 1.0))
        self._functions("directions")

    def first(self, budget: int | None, D: int) -> int:
        """The first dimension: 4 for 50 evaluations, one more for every 20, 15 at most.

        A larger space learns more slowly and reaches better points; 100 evaluations are taken where no budget is known.
        """
        dim = min(int(1.5 + (budget or 100) / 20.0), 15) if self.start is None else self.start
        return max(2, min(dim, self.most, D)) if D > 1 else 1

    def due(self, seen: EmbeddedView, model: OutcomeModels, log_ei: float) -> bool:
        """Whether the embedding is exhausted: nothing in it promises an improvement worth having.

        Or whether its last point has the outcomes of another one: of a function with steps a small subspace meets few, and
        the model goes on promising.
        """
        if seen.embedding.dim >= min(self.most, seen.space.dimension):
            return False
        since = seen.since(seen.events[-1].at if seen.events else 0)
        stepped = since >= 2 and seen.space.continuous and _on_a_known_step(seen.trials, model.values)
        return stepped or (since >= self.patience and log_ei <= self.exhausted_below(seen, model, since))

    def exhausted_below(self, seen: EmbeddedView, model: OutcomeModels, since: int) -> float:
        """The log-EI below which the subspace counts as exhausted.

        An improvement smaller than the noise cannot be seen, so noise raises it. A model that keeps promising while nothing
        improves is not to be trusted: after `patience` evaluations without improvement the threshold rises, over a share
        `pace` of the budget, to RELAXED.
        """
        noise = math.log(max(float(model.objectives[0].noise.median()), 1e-300)) / 2.0
        floor = max(self.threshold, noise - 2.0)
        best = np.minimum.accumulate(np.where(model.feasible, model.values[:, 0], np.inf))
        spread = typical_spread(model.values[:, 0])
        stalled = int(np.sum(best <= best[-1] + SAME * spread)) - 1 if np.isfinite(best[-1]) else len(best)
        share = max(self.pace * (seen.history.budget or 100), 1.0)
        relaxed = min(max((min(stalled, since) - self.patience) / share, 0.0), 1.0)
        return floor + relaxed * max(RELAXED - floor, 0.0)

    def grown(self, seen: EmbeddedView) -> EmbeddedView:
        """The view from the larger embedding."""
        k = min(self.step, min(self.most, seen.space.dimension) - seen.embedding.dim)
        given = None if self.directions is None else self.directions(seen, k)
        if given is None:
            return _with(seen, Event("grow", k, seen.number))
        columns = tuple(tuple(float(f"{v:.9g}") for v in column) for column in np.asarray(given, dtype=float).T)
        return _with(seen, Event("towards", len(columns), seen.number, columns))


@lru_cache(maxsize=2)
def _drawn(kind: str, D: int, dim: int, seed: int) -> Embedding:
    """The embedding that a study begins with: the same at every ask, with what was computed of its polytope."""
    return EMBEDDINGS[kind](D, dim, seed).orthonormal()


@lru_cache(maxsize=12)
def _grown(embedding: Embedding, k: int, seed: int) -> Embedding:
    """The same embedding with k more directions, random by this seed."""
    return embedding.grow(k, seed)


def embedded(view: View, kind: str, dim: int, first: Embedding | None = None) -> EmbeddedView:
    """The view from the present embedding, rebuilt from the seed and the events that the last note carries (line 1).

    `first` is the embedding to begin with, of an earlier study; None: a random one of this kind.
    """
    space, D = view.space, view.space.dimension
    if first is not None:
        embedding = first
    elif space.fidelity is None:
        embedding = _drawn(kind, D, dim, derive(view.seed, "embedding"))
    else:  # the fidelity keeps a coordinate of its own
        others = _drawn(kind, D - 1, min(dim, D - 1), derive(view.seed, "embedding"))
        embedding = others.beside(space.fidelity[0])
    rows, bounds = space.rows(rounded=True)
    if len(bounds) and embedding.domain.intersect(rows @ embedding.A, bounds - rows @ embedding.x0).empty:
        embedding = embedding.through(_feasible_point(rows, bounds))
        log.warning(
            "The embedding through the centre holds no point that satisfies the linear constraints; it was moved."
        )
    seen = view.inside(embedding)
    events = view.last_note("events") or ()
    for data in events if isinstance(events, Sequence) else (events,):
        seen = _with(seen, _whole(Event.from_plain(data), view))
    return seen


def _whole(event: Event, view: View) -> Event:
    """The event with its given directions, which only the note of the trial that first used them has."""
    if event.kind != "towards" or event.columns:
        return event
    noted = [Event.from_plain(data) for t in view.history for data in t.note.get("events", ()) if len(data) > 3]
    same = [e for e in noted if e.columns and (e.kind, e.how, e.at) == (event.kind, event.how, event.at)]
    if not same or {len(c) for c in same[0].columns} != {view.space.dimension}:
        raise damaged_note(
            f"the {event.how} directions that were added at trial {event.at}, each of {view.space.dimension}"
        )
    return same[0]


def through_incumbent(seen: EmbeddedView, growth: Growth | None) -> EmbeddedView:
    """One more direction where the incumbent came from elsewhere (old data, another arm) and lies off the subspace.

    Other arms may find ever better points: then the largest dimension of `growth` is the limit.
    """
    best = seen.incumbent
    elsewhere = any((t.y is None and not t.asked) or not seen.own(t) for t in seen.history.complete)
    if not seen.goals.single or not elsewhere or best is None or (best.y is not None and seen.own(best)):
        return seen
    limit = seen.space.dimension if seen.arm is None or growth is None else min(growth.most, seen.space.dimension)
    known = {e.how for e in seen.events if e.kind == "through"}
    if best.number in known or seen.embedding.dim >= limit:
        return seen
    return _with(seen, Event("through", best.number, seen.number))


def _with(seen: EmbeddedView, event: Event) -> EmbeddedView:
    """The view after one more event."""
    now = seen.embedding
    if event.kind == "through":
        after = now.including(seen.history[event.how].x)
    elif event.kind == "towards":
        after = now.extended(np.array(event.columns).T)
    else:
        after = _grown(now, event.how, derive(seen.seed, "grow", len(seen.events)))
    return replace(seen, embedding=after, events=(*seen.events, event))


def _on_a_known_step(trials: Sequence[Trial], values: Array) -> bool:
    """Whether the last point has exactly the outcomes of another one. n x k objectives, minimised

    The worst value does not count: many programs return one for whatever went wrong.
    """
    if values.shape[1] > 1 or values[-1, 0] == values[:, 0].max():
        return False
    *others, last = trials
    alike = [t for t in others if all(t.outcomes[name].mean == o.mean for name, o in last.outcomes.items())]
    return any(not np.array_equal(t.x, last.x) for t in alike)


def _feasible_point(rows: Array, bounds: Array) -> Array:
    D = rows.shape[1]
    cube = Polytope(np.vstack([np.eye(D), -np.eye(D), rows]), np.concatenate([np.ones(2 * D), bounds]))
    return np.clip(cube.centre, -1.0, 1.0)
