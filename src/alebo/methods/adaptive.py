"""Adaptive: several methods share one history and the evaluations, and those that improve get more of them.

No single structure fits every expensive function. Each *arm* assumes another one: few directions (ALEBO), few parameters
or all of them a little (a sparse and a dense model of the full space, averaged), or a good region nearby (a trust region).
All arms learn from all evaluations. A rule that looks only at improvement that really came decides who proposes next
(`Sharing`), so nobody has to know beforehand which structure a function has.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._errors import AleboError, InputError
from .._seeds import derive
from ..geometry import Embedding
from ..goals import Goals, Outcome
from ..history import History
from ..space import Space
from ._arms import Arm, MethodArm, arm_named, in_batches, known, learns, one_at_a_time, weighs
from ._basins import elsewhere
from ._design import sobol_points
from ._findings import finding as finding
from ._findings import shares as shares
from ._fitted import Fitted, by_outcome
from ._full_space import MOST_TRIALS, FullSpaceArm
from ._method import Method, Suggestion, Supports, setting
from ._plateaus import PLATEAUS, plateaus
from ._repeat import estimates
from ._sharing import Sharing as Sharing
from ._transfer import HEDGED, SOURCE, TRUSTED, best_point, weights
from ._view import ELSEWHERE, View
from .alebo import ALEBO

Array: TypeAlias = NDArray[np.float64]
log = logging.getLogger(__name__)

FIRST = (8, 5)  # first points at most: in the embedding, and in the whole cube
SHARE_OF_FIRST = 3  # and together at most one in so many of the budget
LEFT_OUT = "left out"  # the key of a note: the arms that cannot do what is asked, and why
NUMERICAL = (ArithmeticError, np.linalg.LinAlgError, RuntimeError, ValueError)  # what a failed fit raises


@dataclass(frozen=True)
class Adaptive(Method):
    """A growing embedding, full-space models and a trust region share the evaluations by their success."""

    arms: tuple[str, ...] = setting(
        ("full", "local", "embedding"),
        "that share the evaluations: full, dense, sparse, local, embedding, or the name of any other method",
    )
    initial: int | None = setting(
        None, f"points before the first model; None: a third of the budget, {sum(FIRST)} at most"
    )
    sharing: Sharing = setting(Sharing(), "the rule by which evaluations are shared", parts=(Sharing,))

    name: ClassVar[str] = "adaptive"
    title: ClassVar[str] = "Adaptive"
    citation: ClassVar[str] = "this package: ALEBO, full-space BO and a trust region that share one history"
    supports: ClassVar[Supports] = Supports(constraints=True, objectives=True, linear=True, cost=True, fidelity=True)
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        given: Any = self.arms
        if not isinstance(given, list | tuple) or not given:
            raise InputError(f"`arms` is a list of one name or more; got {given!r}. Known: {', '.join(known())}.")
        object.__setattr__(self, "arms", tuple(given))
        twice = [name for i, name in enumerate(self.arms) if name in self.arms[:i]]
        if twice:
            raise InputError(f"Every arm is named once; got {twice[0]!r} twice. Leave one of them out.")
        for name in self.arms:
            arm_named(name)
        self._counts(initial=1)
        self._parts("sharing")

    def check(self, space: Space, goals: Goals) -> None:
        super().check(space, goals)
        self.able(space, goals)

    def able(self, space: Space, goals: Goals) -> tuple[list[Arm], dict[str, str]]:
        """The arms that can do what is asked, and why the others cannot. InputError where none can."""
        arms = [arm_named(name) for name in self.arms]
        reasons = {arm.name: arm.unable(space, goals) for arm in arms}
        left = [arm for arm in arms if reasons[arm.name] is None]
        out = {name: reason for name, reason in reasons.items() if reason is not None}
        if not left:
            listed = "; ".join(f"{name}: {reason}" for name, reason in out.items())
            raise InputError(f"One arm at least must be able to do what is asked; none of {len(arms)} is. {listed}")
        return left, out

    def check_sources(self, space: Space, goals: Goals) -> None:
        arms, _ = self.able(space, goals)
        if not any(learns(arm) for arm in arms):
            able = ", ".join(name for name in known() if learns(arm_named(name)))
            raise InputError(
                f"Sources need an arm that learns from them; those that can do what is asked do not: "
                f"{', '.join(repr(arm.name) for arm in arms)}. Arms that learn: {able}. Name one of them, or leave out the "
                "sources."
            )

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        arms, out = self.able(space, goals)
        one_at_a_time(arms, history, q)
        view = View(history, space, goals, seed)
        view = replace(view, plateaus=plateaus(view))
        if len(arms) == 1 and isinstance(arms[0], MethodArm):
            points = self._alone(view, arms[0], q)
        elif view.history.sources:
            points = self._informed(view, arms, q)
        else:
            points = self._first_points(view, arms, q)
            for s in points:
                view = view.plus(s.x)
            points += self._elsewhere(view, arms, q - len(points))
        said = any(LEFT_OUT in t.note for t in history)
        if out and not said:  # once, in the note of the first trial that this method proposes
            points[0] = replace(points[0], note={**points[0].note, LEFT_OUT: out})
        return points

    def _alone(self, view: View, arm: MethodArm, q: int) -> list[Suggestion]:
        """The next q points of the one arm that is able: there is nothing to share, and its first points are its own, too."""
        alone = MethodArm(arm.name, ALEBO()) if arm.name == "embedding" else arm
        try:
            points = alone.propose(view, q)
        except AleboError:
            raise
        except NUMERICAL as error:
            return self._spare_points(view, q, {arm.name: _failure(arm.name, error)})
        return [replace(s, note={"arm": arm.name, **s.note, **_weighed(arm, view, s)}) for s in points]

    def _first_points(self, view: View, arms: Sequence[Arm], q: int) -> list[Suggestion]:
        """While there are too few for a model: the embedding's own first points, then quasi-random ones of the cube.

        The embedding's begin with the centre of the space. Without that arm the centre comes first, too.
        """
        history = view.history
        embedded, scattered = self._counts_of_first(view, any(arm.name == "embedding" for arm in arms))
        foreign = sum(not t.asked for t in history.failed)
        started = len(history) - foreign  # its own that failed count: the models learn to stay away from them
        out: list[Suggestion] = []
        if started < embedded:
            first = MethodArm("embedding", ALEBO(initial=embedded))
            out = list(first.propose(replace(view, arm=first.name), min(embedded - started, q)))
            out = [replace(s, note={**s.note, "arm": first.name}) for s in out]
        take = min(max(embedded + scattered - started - len(out), 0), q - len(out))
        if len(history.complete) < 2:  # no model yet: all is still being evaluated
            take = q - len(out)
        start = len(history) + len(out)
        points = self._scattered(view, start, take)
        if start == 0 and take:
            points[0] = 0.0
        return out + [Suggestion(x, None, {"arm": "initial"}) for x in points]

    def _informed(self, view: View, arms: Sequence[Arm], q: int) -> list[Suggestion]:
        """The next q points of a study with sources: their best points and first points in turn, then the arms.

        Of as many points as a study without sources begins with, those are made while the sources' weight is below
        `TRUSTED`, and at every other of the first `HEDGED`.
        """
        total = sum(self._counts_of_first(view, any(arm.name == "embedding" for arm in arms)))
        full = [arm for arm in arms if isinstance(arm, FullSpaceArm)] or arms  # these carry what the sources know
        trust = sum(weights(view.history, view.goals)) >= TRUSTED
        out: list[Suggestion] = []
        while len(out) < q:
            notes = [t.note for t in view.history] + [s.note for s in out]
            begun, first = len(notes), sum("first" in note for note in notes)
            best = best_point(view, sum(note.get("arm") == SOURCE for note in notes))
            if begun % 2 == 0 and best is not None:
                points = [Suggestion(best, None, {"arm": SOURCE})]
            elif len(view.history.complete) < 2 or (begun < total and not trust) or (begun % 2 and begun < HEDGED):
                points = [self._first_point(view, arms, first, [s for s in out if "first" in s.note])]
                if len(view.history.complete) > 1 and isinstance(full[0], FullSpaceArm):  # what the sources foresee
                    expected = full[0].expects(view, points[0].x)
                    points = [replace(points[0], note={**points[0].note, **expected})]
            else:
                points = self._shared(view, full if begun < total else arms, q - len(out) if begun >= HEDGED else 1)
            out += points
            for s in points:
                view = view.plus(s.x)
        return out

    def _first_point(self, view: View, arms: Sequence[Arm], k: int, ahead: Sequence[Suggestion]) -> Suggestion:
        """The k-th of the points that a study without sources begins with; `ahead` are those of the same batch."""
        embedded, _ = self._counts_of_first(view, any(arm.name == "embedding" for arm in arms))
        if k < embedded:
            again = sum(s.note["arm"] == "embedding" for s in ahead)
            first = MethodArm("embedding", ALEBO(initial=embedded))
            point = list(first.propose(replace(view, arm=first.name, extra=()), again + 1))[-1]
            return replace(point, note={**point.note, "arm": first.name, "first": k})
        x = sobol_points(view.space.dimension, k + 1, derive(view.seed, self.name))[k]
        return Suggestion(x if k else np.zeros_like(x), None, {"arm": "initial", "first": k})

    def _counts_of_first(self, view: View, embedding: bool) -> tuple[int, int]:
        """How many first points are the embedding's, and how many are quasi-random points of the cube.

        Under linear constraints all are the embedding's, which knows them.
        """
        budget = view.history.budget
        total = self.initial or (sum(FIRST) if budget is None else min(sum(FIRST), max(2, budget // SHARE_OF_FIRST)))
        embedded = math.ceil(total * FIRST[0] / sum(FIRST)) if embedding else 0
        embedded = total if view.space.constraints else embedded
        return embedded, total - embedded

    def _shared(self, view: View, arms: Sequence[Arm], q: int) -> list[Suggestion]:
        """The next q points, by the arms whose turn it is; an arm that refuses, or whose fit fails, is left out of this ask.

        One that is not defined for batches takes part where nothing is under way, with one point.
        """
        by_name = {arm.name: arm for arm in arms}
        failed: dict[str, str] = {}
        refused: dict[str, InputError] = {}
        out: list[Suggestion] = []
        while len(out) < q:
            able = [name for name in by_name if name not in failed and name not in refused]
            able = [name for name in able if in_batches(by_name[name]) or not len(view.pending)]
            if not able and refused and not failed:
                raise next(iter(refused.values()))
            if not able:
                return out + self._spare_points(view, q - len(out), failed)
            turns: list[str] = []
            while len(out) + len(turns) < q:
                turns.append(self._turn(view, able, [s.note["arm"] for s in out] + turns))
            name = turns[0]
            count = next((i for i, turn in enumerate(turns) if turn != name), len(turns))  # in a row
            count = count if in_batches(by_name[name]) else 1
            try:
                points = by_name[name].propose(self._seen(view, name), count)
            except InputError as error:  # a refusal is no failed fit
                log.warning("The arm %r refuses this ask: %s", name, error)
                refused[name] = error
                continue
            except AleboError:  # nor is a damaged note
                raise
            except NUMERICAL as error:
                failed[name] = _failure(name, error)
                continue
            for s in points:
                said: dict[str, Any] = {"skipped": dict(failed)} if failed else {}
                said |= {"refused": {k: str(e) for k, e in refused.items()}} if refused else {}
                out.append(replace(s, note={**s.note, "arm": name, **said, **_weighed(by_name[name], view, s)}))
                view = view.plus(s.x, out[-1].note)
        return out

    def _elsewhere(self, view: View, arms: Sequence[Arm], q: int) -> list[Suggestion]:
        """The next q points, of a search that goes on as if exhausted basins were filled (`_basins`).

        In the last share of the budget the best of them is refined first.
        """
        full = [arm for arm in arms if isinstance(arm, FullSpaceArm)]
        sparse = {arm.name: arm.priors.index("sparse") for arm in full if "sparse" in arm.priors}
        seen, said = elsewhere(view, sparse, self.sharing.final)
        points = self._shared(seen, arms, q)
        mark = {ELSEWHERE: True} if seen.search else {}
        return [replace(s, note={**s.note, **mark, **(said if i == 0 else {})}) for i, s in enumerate(points)]

    def _turn(self, view: View, arms: Sequence[str], ahead: Sequence[str]) -> str:
        """Who proposes next."""
        return self.sharing.next(view, arms, ahead)

    def _seen(self, view: View, name: str) -> View:
        """What an arm sees: everything."""
        return replace(view, arm=name)

    def _spare_points(self, view: View, q: int, failed: Mapping[str, str]) -> list[Suggestion]:
        """Quasi-random points where no arm could fit a model, so that the run goes on."""
        points = self._scattered(view, len(view.history), q)
        return [Suggestion(x, None, {"arm": "initial", "skipped": dict(failed)}) for x in points]

    def _scattered(self, view: View, start: int, count: int) -> Array:
        """Quasi-random points of the cube, from the one with this number on.  -> count x D

        Linear constraints may leave next to nothing of the cube: there they are random points of the embedding instead,
        inside the constraints.
        """
        if not view.space.constraints or not count:
            return sobol_points(view.space.dimension, start + count, derive(view.seed, self.name))[start:]
        seen = ALEBO().embedded(replace(view, arm="embedding"))
        return seen.embedding.up(seen.domain.sample(count, derive(view.seed, self.name, "scattered", start)))

    # -- what it found -------------------------------------------------------------------------------------------------

    def _model_arm(self, space: Space, goals: Goals) -> Arm:
        """The arm whose model speaks for the method: the first of the full space, or else the first."""
        arms, _ = self.able(space, goals)
        return next((arm for arm in arms if isinstance(arm, FullSpaceArm) and arm.region is None), arms[0])

    def estimate(
        self, history: History, space: Space, goals: Goals, seed: int
    ) -> Mapping[int, Mapping[str, Outcome]] | None:
        """The model's values of every completed trial where the noise is evident; None where measurements can be trusted."""
        arm = self._model_arm(space, goals)
        if not isinstance(arm, FullSpaceArm):
            return arm.method.estimate(history, space, goals, seed) if isinstance(arm, MethodArm) else None
        view = View(history, space, goals, seed, arm=arm.name).thinned(MOST_TRIALS)
        return estimates(view, partial(arm.judged, view))

    def subspace(self, history: History, space: Space, goals: Goals, seed: int) -> Embedding | None:
        if "embedding" not in self.arms:
            return None
        return ALEBO(initial=1, centre=False).embedded(View(history, space, goals, seed, arm="embedding")).embedding

    def fitted(self, history: History, space: Space, goals: Goals, seed: int, *, fresh: bool = False) -> Fitted | None:
        arm = self._model_arm(space, goals)
        if not isinstance(arm, FullSpaceArm):
            return arm.method.fitted(history, space, goals, seed, fresh=fresh) if isinstance(arm, MethodArm) else None
        if len(history.complete) < 2:
            return None
        view = View(history, space, goals, seed, arm=arm.name).thinned(MOST_TRIALS)
        model = arm.judged(view, fresh=fresh)
        models = by_outcome(goals, model.objectives, model.constraints, -1.0)
        what = f"average of a dense and a sparse model of all {space.dimension} coordinates"
        if history.sources:
            what += f", and of those that learn from {len(history.sources)} earlier studies,"
        see = partial(_unit, space)
        return Fitted(view.trials, model.Y.numpy(), see, models, None, what, refits=False)


def _failure(name: str, error: Exception) -> str:
    """What the note says of an arm whose fit failed."""
    log.warning("The arm %r is left out of this ask: %s", name, error)
    return f"{type(error).__name__}: {error}"[:200]


def _weighed(arm: Arm, view: View, point: Suggestion) -> dict[str, float]:
    """For the note of a point whose acquisition was weighed by plateaus: how wide they are."""
    if view.plateaus is None or not weighs(arm) or "log_ei" not in point.note or "again" in point.note:
        return {}
    return {PLATEAUS: round(view.plateaus.width, 4)}


def _unit(space: Space, X: Array) -> Array:
    """Where the full-space models see points of the cube.  n x D -> n x D"""
    return 0.5 * (space.snap(X) + 1.0)
