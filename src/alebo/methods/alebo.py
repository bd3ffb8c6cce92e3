"""ALEBO: Bayesian optimization inside a linear embedding (Letham, Calandra, Rai, Bakshy 2020, Algorithm 1).

Notation of the paper: D coordinates of the cube, d_e = `dim` embedded ones, B the d_e x D map down, y an embedded point.
Inside, the same subspace is used in coordinates that suit the model (`Embedding.orthonormal`).

With `dim=None` the embedding starts small and grows on evidence that it is exhausted: nobody has to choose d_e.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from .._errors import InputError
from .._seeds import derive
from ..acquisition import Acquisition, NoisyLogEI
from ..geometry import Embedding
from ..goals import Goals, Outcome
from ..history import History
from ..space import Space
from ._batch import THIRDS, Batch
from ._fidelity import log_cost
from ._fitted import Fitted, in_embedding
from ._flat_names import grouped
from ._growth import EMBEDDINGS, embedded, through_incumbent
from ._growth import Growth as Growth
from ._initial import DESIGNS, initial_point
from ._maximise import Proposal, begun, maximise
from ._method import Method, Suggestion, Supports, setting
from ._metric import PER_DATUM
from ._metric import Laplace as Laplace
from ._metric import Sampled as Sampled
from ._notes import memory, note, remembered
from ._outcomes import OutcomeModels, fit_outcomes
from ._repeat import estimates, to_repeat
from ._transfer import expected, fewer_first, first_of_sources, informed_inside, inherited
from ._view import EmbeddedView, View

LATE_DOUBT = 0.1  # of the model's standard deviation counts in the last share of the budget


@dataclass(frozen=True)
class ALEBO(Method):
    """A Mahalanobis GP in a random linear embedding, log-EI inside its polytope; without `dim` the embedding grows."""

    dim: int | None = setting(None, "of a fixed embedding; None: it grows")
    growth: Growth | None = setting(Growth(), "when and by how much the embedding grows", parts=(Growth,))
    initial: int | None = setting(None, "points before the first model; None: 10 when fixed, fewer when growing")
    kind: str = setting("hypersphere", f"of the embedding: {', '.join(EMBEDDINGS)}")
    centre: bool = setting(True, "whether the middle of the space is the first point")
    design: str = setting("uniform", "of the first points: uniform in the polytope, or projected draws")
    metric: Sampled | Laplace = setting(
        Sampled(), "the kernel's metric: sampled, or by the paper's approximation", parts=(Sampled, Laplace)
    )
    infer_noise: bool = setting(True, "whether noise is learned where no standard errors are reported")
    settle: float = setting(
        0.2,
        "the last share of the budget: no more growth; where one noiseless objective is all there is (no constraints, cost, "
        "fidelity or pending points), also proposals where the model's mean is best",
    )
    acquisition: Callable[[OutcomeModels, Tensor | None], Acquisition] | None = setting(
        None, "your own: see docs/own_acquisition.md"
    )

    name: ClassVar[str] = "alebo"
    title: ClassVar[str] = "ALEBO"
    citation: ClassVar[str] = (
        "Letham, Calandra, Rai, Bakshy 2020, Re-Examining Linear Embeddings for High-Dimensional BO"
    )
    supports: ClassVar[Supports] = Supports(constraints=True, objectives=True, linear=True, cost=True, fidelity=True)
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._counts(dim=1, initial=1)
        self._flags("centre", "infer_noise")
        self._numbers(settle=(0.0, 1.0))
        self._parts("metric")
        self._functions("acquisition")
        for name, known in (("kind", EMBEDDINGS), ("design", DESIGNS)):
            if getattr(self, name) not in known:
                raise InputError(f"`{name}` is one of {', '.join(known)}; got {getattr(self, name)!r}.")
        if self.dim is not None and self.growth == Growth():
            object.__setattr__(self, "growth", None)  # a fixed embedding
        if self.dim is None:
            self._parts("growth")
        elif self.growth is not None:
            raise InputError(
                f"An embedding has a fixed `dim` or grows; got dim={self.dim} and {self.growth}. Write growth=Growth("
                f"start={self.dim}, ...) for one that starts at {self.dim}."
            )

    @classmethod
    def paper(cls, dim: int) -> ALEBO:
        """The settings of the paper's experiments: 10 uniform points, maximum likelihood, no noise, 25 metrics."""
        metric = Laplace(samples=25, ridge=0.0, inflation=PER_DATUM, warm=False, cold=10)
        return cls(dim=dim, initial=10, centre=False, metric=metric, infer_noise=False, settle=0.0)

    @classmethod
    def renamed(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        return grouped(settings)

    def check(self, space: Space, goals: Goals) -> None:
        super().check(space, goals)
        if self.dim is not None and self.dim > space.dimension:
            raise InputError(
                f"`dim <= D` must hold; got dim={self.dim} for {space.dimension} coordinates. Choose a smaller dim, or leave "
                "it out and the embedding grows by itself."
            )

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        return self.propose(View(history, space, goals, seed), q)

    def propose(self, view: View, q: int) -> list[Suggestion]:
        """The next q points. The paper's Algorithm 1, whose lines are named, with growth between its lines 6 and 7."""
        seen = self.embedded(view)  # line 1: B, its polytope, and the data in it
        out = first_of_sources(seen, q)
        out += self._initial_points(seen, q - len(out))  # lines 2 and 3
        if len(out) == q:
            return out
        for point in out:
            seen = seen.plus(point.x)
        seen = self._learned(through_incumbent(seen, self.growth))
        model = self.surrogate(seen)  # line 5
        aware = model.avoiding(torch.from_numpy(seen.failed))
        found = self._maximise(aware, seen, "ask", view.number, 0)  # line 6
        if self.growth is not None and self._exhausted(self.growth, aware, seen, found.value):
            seen = self.growth.grown(seen)
            model = self.surrogate(seen)
            aware = model.avoiding(torch.from_numpy(seen.failed))
            found = self._maximise(aware, seen, "grown", view.number)
        kept = {**note(seen, found), **memory(seen, model, self.metric.noted), **seen.learned_from}
        kept |= expected(seen, model, found.y)
        if (again := to_repeat(seen, model)) is not None:
            out.append(Suggestion(again.x, again.y, {**kept, "again": again.number}))
        else:
            out.append(Suggestion(found.x, found.y, kept))  # line 7: evaluated at x = A y
        batch: Batch | None = None
        for i in range(1, q - len(out) + 1):  # a batch: as if the points before were already under way
            seen = seen.plus(found.x)
            if i == 1 and self.acquisition is None and seen.plateaus is None:
                batch = Batch.after(found, aware, seen, derive(seen.seed, "batch", view.number))
            if batch is None:
                found = self._maximise(aware, seen, "ask", view.number, i, later=i)
            else:
                found = batch.next(seen, i)
            out.append(Suggestion(found.x, found.y, note(seen, found)))
        return out

    def embedded(self, view: View) -> EmbeddedView:
        """What the present embedding sees of a study."""
        most = self.dim if self.growth is None else self.growth.most
        return embedded(view, self.kind, self._first_dim(view), inherited(view, most, exact=self.growth is None))

    def surrogate(self, seen: EmbeddedView, *, alone: bool = False) -> OutcomeModels:
        """The models of every outcome, fitted to the data in the embedding; `alone`: without what sources know."""
        warm = remembered(seen, self.metric.noted, self.metric.notes) if self.metric.warm else {}
        build = self.metric.builder(len(seen.whole.trials), started=bool(warm))
        at = derive(seen.seed, "fit", seen.number)
        how: dict[str, Any] = {
            "infer_noise": self.infer_noise,
            "also": None if alone else informed_inside(seen),
            "seed": at,
        }
        return fit_outcomes(seen.Y, seen.trials, seen.goals, build=build, warm=warm, **how)

    def estimate(
        self, history: History, space: Space, goals: Goals, seed: int
    ) -> Mapping[int, Mapping[str, Outcome]] | None:
        """The model's values of every completed trial where the noise is evident; None where measurements can be trusted."""
        seen = self._learned(self.embedded(View(history, space, goals, seed)))
        if not self.infer_noise or seen.history.last_note("unexplained").get("assumption"):
            return None  # the model cannot be trusted more than the measurements
        return estimates(seen, lambda: self.surrogate(seen))

    def fitted(self, history: History, space: Space, goals: Goals, seed: int, *, fresh: bool = False) -> Fitted | None:
        seen = self._learned(self.embedded(View(history, space, goals, seed)))
        method = replace(self, metric=replace(self.metric, warm=False)) if fresh else self
        return (
            in_embedding(seen, method.surrogate(seen, alone=True), type(self.metric).__name__) if seen.trials else None
        )

    def subspace(self, history: History, space: Space, goals: Goals, seed: int) -> Embedding | None:
        return self.embedded(View(history, space, goals, seed)).embedding

    def _learned(self, seen: EmbeddedView) -> EmbeddedView:
        """The view with as many trials as the models learn from."""
        return seen if self.metric.most is None else seen.thinned(self.metric.most)

    def _first_dim(self, view: View) -> int:
        return self.dim or (self.growth or Growth()).first(view.history.budget, view.space.dimension)

    def _initial_points(self, seen: EmbeddedView, q: int) -> list[Suggestion]:
        """Uniform points of the polytope, its centre first, while there are too few for a model."""
        count = fewer_first(seen, self.initial or (6 + self._first_dim(seen) // 2 if self.growth else 10))
        ready = bool(through_incumbent(seen, self.growth).trials)  # no model without data
        numbers = range(seen.asked, min(seen.asked + q, count) if ready else seen.asked + q)
        points = [initial_point(seen, i, count, centre=self.centre, design=self.design) for i in numbers]
        return [Suggestion(seen.embedding.up(y), y, note(seen)) for y in points]

    def _exhausted(self, growth: Growth, model: OutcomeModels, seen: EmbeddedView, value: float) -> bool:
        """Whether the embedding grows now. Our log-EI decides, so an acquisition of the user's own has no growth."""
        whole = seen.whole  # whether anything improves is seen in all trials
        judged = model if whole is seen else replace(model, values=whole.values, feasible=whole.feasible)
        if self.acquisition is not None or seen.ends_within(self.settle) or not growth.due(whole, judged, value):
            return False
        # points under way lower the promise of all others: judge without them
        return not len(seen.waiting) or growth.due(
            whole, judged, self._maximise(model, seen, "free", seen.number, alone=True).value
        )

    def _maximise(
        self, model: OutcomeModels, seen: EmbeddedView, *path: str | int, later: int = 0, alone: bool = False
    ) -> Proposal:
        """The best point by the acquisition that goals, noise, pending points and fidelity call for.

        A later point of a batch is chosen by a share of the samples and a shorter climb; `alone`: as if nothing were pending.
        """
        seed = derive(seen.seed, *path)
        waiting = None if alone or not len(seen.waiting) else torch.from_numpy(seen.waiting)
        if self.acquisition is not None:
            return maximise(self.acquisition(model, waiting), model, seen, seed, short=later > 0)
        doubt = LATE_DOUBT if seen.ends_within(self.settle) and seen.space.fidelity is None else 1.0

        def by(models: OutcomeModels) -> Acquisition:
            made = models.acquisition(waiting, seed, doubt, log_cost(models, seen.space))
            return made if seen.plateaus is None else seen.plateaus.unseen_inside(made, seen)

        if later:
            return maximise(by(model.share(later)), model, seen, seed, short=True)
        many = len(model.Y) > self.metric.cheap
        quickly = model.several and seen.plateaus is None
        if quickly and (search := begun(model, seen, waiting, seed)) is not None:
            part = model.priced(search.draws.share(seen.number, THIRDS)) if many else None
            among = search.among if many else None
            found = maximise(
                model.priced(search.draws), model, seen, seed, short=False, rough=part, many=many, among=among
            )
            return found._replace(search=search)
        whole = by(model)
        rough: Acquisition | None = None
        if many:
            rough = whole.share(seen.number, THIRDS) if isinstance(whole, NoisyLogEI) else None
            rough = rough or by(model.share(seen.number))
        return maximise(whole, model, seen, seed, short=False, rough=rough, many=many)
