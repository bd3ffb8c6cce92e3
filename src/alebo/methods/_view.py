"""`View`: what a method sees of a study. Frozen, every part computed once, passed in place of five arguments.

Letters as in the paper: n completed trials, D coordinates of the cube, d_e of the embedding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..geometry import Embedding, Polytope
from ..goals import Goals, pareto
from ..history import History, Trial, incumbent
from ..models.outcomes import reported_variances, thinned
from ..space import Space

if TYPE_CHECKING:
    from ._growth import Event
    from ._plateaus import Plateaus

Array: TypeAlias = NDArray[np.float64]

ELSEWHERE = "elsewhere"  # the key of the note of a trial that was proposed as if basins were filled
IN_SUBSPACE = 1e-6  # distance from the subspace, per root of D, up to which a point counts as lying in it


# what is cached of a view and the same whatever points are under way
OF_HISTORY = frozenset({"asked", "trials", "X", "values", "feasible", "incumbent", "_embedded", "domain"})


@dataclass(frozen=True, eq=False)
class View:
    """A history as one method sees it.

    Attributes:
        seed: the study's seed.
        arm: where several methods share one history, the name of this one: trials whose note has another `arm` are data
            from elsewhere to it. None: all trials are its own.
        extra: points of the cube that are about to be evaluated but are not in the history yet; they count as pending.
        beside: the notes of such points, where they have one.
        only: the numbers of the trials to learn from; None: all.
        begun: the number of the trial with which the present search began (see `_basins`).
        search: which of the trials since then belong to it: those that were proposed as if basins were filled (True), the
            others (False), or all (None).
        plateaus: what to keep away from where the function has the same outcomes at many points (see `_plateaus`).
    """

    history: History
    space: Space
    goals: Goals
    seed: int
    arm: str | None = None
    extra: tuple[Array, ...] = ()  # each of D
    only: frozenset[int] | None = None
    beside: tuple[Mapping[str, Any], ...] = ()
    begun: int = 0
    search: bool | None = None
    plateaus: Plateaus | None = None

    def own(self, trial: Trial) -> bool:
        """Whether this method proposed the trial, and not another arm."""
        return self.arm is None or trial.note.get("arm") == self.arm

    def searched(self, trial: Trial) -> bool:
        """Whether the trial belongs to the present search."""
        return trial.number >= self.begun and (self.search is None or (ELSEWHERE in trial.note) == self.search)

    @property
    def number(self) -> int:
        """The number of the next trial."""
        return len(self.history)

    @cached_property
    def asked(self) -> int:
        """How many trials this method proposed so far: its initial points are counted by it."""
        return sum(t.asked and self.own(t) for t in self.history)

    def ends_within(self, share: float) -> bool:
        """Whether no more than this share of the budget is left; never so where the budget is not known."""
        budget = self.history.budget
        return budget is not None and self.history.asked >= (1.0 - share) * budget

    def since(self, number: int) -> int:
        """How many of its own trials there are from this number on."""
        return sum(self.own(t) for t in self.history.trials[number:])

    def last_note(self, key: str) -> Any:
        """What the last of its own trials that notes this has noted; None where none has."""
        return next(iter(self.last_notes(key, 1)), None)

    def last_notes(self, key: str, most: int) -> list[Any]:
        """What the last of its own trials that note this have noted, the newest first."""
        noted = (t.note[key] for t in reversed(self.history.trials) if key in t.note and self.own(t))
        return list(islice(noted, most))

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """The completed trials that can be learned from.  -> n"""
        return tuple(t for t in self.history.complete if self.only is None or t.number in self.only)

    @cached_property
    def X(self) -> Array:
        """Their points of the cube, as they were evaluated: whole numbers and categories rounded.  -> n x D"""
        points = [t.x if self.space.continuous else self.space.encode(t.params) for t in self.trials]
        return np.array(points).reshape(len(points), self.space.dimension)

    @cached_property
    def values(self) -> Array:
        """Their objectives, minimised.  -> n x k"""
        rows = [self.goals.objective_values(t.outcomes) for t in self.trials]
        return np.array(rows).reshape(len(rows), len(self.goals.objectives))

    @cached_property
    def feasible(self) -> NDArray[np.bool_]:
        """Whether their outcomes satisfy every constraint.  -> n"""
        return np.array([self.goals.feasible(t.outcomes) for t in self.trials], dtype=bool)

    def variances(self, outcome: str) -> Array | None:
        """Their noise variances by the reported standard errors; None where none was reported.  -> n"""
        return reported_variances([t.outcomes[outcome].sem for t in self.trials])

    @cached_property
    def pending(self) -> Array:
        """The points under way, as they are evaluated.  -> p x D"""
        points = [self.space.snap(x) for x in (*(t.x for t in self.history.pending), *self.extra)]
        return np.array(points).reshape(len(points), self.space.dimension)

    @cached_property
    def incumbent(self) -> Trial | None:
        """The best trial of all arms, by the one rule for it (`history.incumbent`)."""
        return incumbent(self.history, self.goals, self.space)

    def plus(self, x: Array, note: Mapping[str, Any] | None = None) -> Self:
        """The same with one more point under way, and its note.  x: D"""
        out = replace(self, extra=(*self.extra, x), beside=self.beside if note is None else (*self.beside, note))
        out.__dict__.update({name: value for name, value in self.__dict__.items() if name in OF_HISTORY})
        return out

    def thinned(self, most: int) -> Self:
        """The same with so many trials at most: the better half of them the best of all, the rest from all ranks alike."""
        if len(self.trials) <= most:
            return self
        chosen = thinned(self._ranked(), most)
        return replace(self, only=frozenset(self.trials[i].number for i in chosen))

    @cached_property
    def whole(self) -> Self:
        """The same with all trials."""
        return self if self.only is None else replace(self, only=None)

    @property
    def learned_from(self) -> dict[str, str]:
        """For a note, where this is not all there is to learn from: an approximation is said."""
        n, of = len(self.trials), len(self.whole.trials)
        return {"learned from": f"{n} of {of} trials"} if n < of else {}

    def _ranked(self) -> NDArray[np.int64]:
        """The trials from the best to the worst: feasible ones first, of several objectives the Pareto front first.  -> n"""
        values = self.values
        if values.shape[1] == 1:
            return np.lexsort((values[:, 0], ~self.feasible))
        front = np.zeros(len(values), dtype=bool)
        front[self.feasible] = pareto(values[self.feasible])
        ranks = values.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable").sum(axis=1)
        return np.lexsort((ranks, ~front, ~self.feasible))

    def as_history(self) -> History:
        """The history as this arm's method has to see it where it takes no View.

        Trials of other arms become data from elsewhere, and `extra` points pending trials.
        """
        trials = [t if self.own(t) else replace(t, y=None, note={}, asked=False) for t in self.history]
        for x in self.extra:
            trials.append(Trial(len(trials), self.space.decode(x), x, asked=False))
        return replace(self.history, trials=tuple(trials))

    def inside(self, embedding: Embedding, events: tuple[Event, ...] = ()) -> EmbeddedView:
        """The same, seen from a linear embedding."""
        shared = {f.name: getattr(self, f.name) for f in fields(View)}
        return EmbeddedView(**shared, embedding=embedding, events=events)


@dataclass(frozen=True, eq=False, kw_only=True)
class EmbeddedView(View):
    """A view from inside a linear embedding: only trials that lie in it, or were proposed in it, are learned from."""

    embedding: Embedding
    events: tuple[Event, ...] = field(default=())  # how the embedding came to be what it is

    @cached_property
    def _embedded(self) -> tuple[tuple[Trial, ...], Array]:
        trials, Y = [], []
        for t in self.history.complete:
            if (self.only is None or t.number in self.only) and (y := self._placed(t)) is not None:
                trials.append(t)
                Y.append(y)
        return tuple(trials), np.array(Y).reshape(len(Y), self.embedding.dim)

    def _placed(self, t: Trial) -> Array | None:
        """Where the embedding sees a trial; None off the subspace, where the model cannot place it.  -> d_e"""
        proposed = t.y if self.own(t) and t.y is not None and len(t.y) <= self.embedding.dim else None
        if proposed is not None and self.space.continuous:
            return np.concatenate([proposed, np.zeros(self.embedding.dim - len(proposed))])
        x = t.x if self.space.continuous else self.space.encode(t.params)
        if proposed is None and self.embedding.residual(x) > IN_SUBSPACE * math.sqrt(self.space.dimension):
            return None
        return self.embedding.down(x)

    @cached_property
    def failed(self) -> Array:
        """Where the embedding sees the trials that failed; one without parameters was nowhere.  -> f x d_e"""
        placed = [y for t in self.history.avoided if (y := self._placed(t)) is not None]
        return np.array(placed).reshape(len(placed), self.embedding.dim)

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """The completed trials that the embedding can see.  -> n"""
        return self._embedded[0]

    @property
    def Y(self) -> Array:
        """Where the embedding sees them: as they were proposed, never projected again.  -> n x d_e"""
        return self._embedded[1]

    @property
    def waiting(self) -> Array:
        """Where the embedding sees the points under way.  -> p x d_e"""
        return np.array([self.embedding.down(x) for x in self.pending]).reshape(-1, self.embedding.dim)

    @cached_property
    def domain(self) -> Polytope:
        """Where proposals may lie: inside the bounds (paper, eq. 1) and the linear constraints."""
        domain = self.embedding.domain
        if self.space.constraints:
            for rounded in (True, False):
                rows, bounds = self.space.rows(rounded=rounded)
                domain = self.embedding.domain.intersect(rows @ self.embedding.A, bounds - rows @ self.embedding.x0)
                if not domain.empty:
                    break
        return domain
