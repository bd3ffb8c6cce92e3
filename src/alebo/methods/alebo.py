"""ALEBO: Bayesian optimization inside a linear embedding (Letham, Calandra, Rai, Bakshy 2020, Algorithm 1).

Notation of the paper: D coordinates of the cube, d_e = `dim` embedded ones, B the d_e x D map down, y an embedded point.
Inside, the same subspace is used in coordinates that suit the model (`Embedding.orthonormal`).

With `dim=None` the embedding starts small and grows on evidence that it is exhausted: nobody has to choose d_e.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import geometry
from .._errors import InputError
from .._seeds import derive, generator
from ..acquisition import Acquisition, candidates, evaluate, scatter
from ..geometry import Embedding, Polytope
from ..goals import Goals, Outcome
from ..history import History, Trial
from ..models import PAPER, MahalanobisGP, MetricPrior, default_inflation, fit_gp, sample_gp
from ..space import Space
from ._fitted import Fitted, by_outcome
from ._method import Method, Suggestion, Supports, setting
from ._surrogate import Surrogate, fit_surrogate

Array: TypeAlias = NDArray[np.float64]
log = logging.getLogger(__name__)

UNEXPLAINED = 0.15  # share of the variation, beyond noise, that a model of a few directions may leave open
SETTLED = 0.1  # of the model's own doubt counts in the last share of the budget
ASSUMPTION_FAILS = "a few directions of a linear embedding do not explain this function"
KINDS = {"hypersphere": geometry.hypersphere, "gaussian": geometry.gaussian, "hesbo": geometry.hesbo}


@dataclass(frozen=True)
class ALEBO(Method):
    """A Mahalanobis GP in a random linear embedding, log-EI inside its polytope; `dim=None` lets the embedding grow."""

    dim: int | None = setting(None, "of the embedding; None: it starts small and grows")
    initial: int | None = setting(None, "points before the first model; None: 10 when fixed, fewer when growing")
    kind: str = setting("hypersphere", "of the embedding: hypersphere, gaussian or hesbo")
    centre: bool = setting(True, "whether the middle of the space is the first point")
    samples: int = setting(12, "metrics drawn from their posterior")
    metric: str = setting(
        "sampled", '"sampled" by Markov chains, or "laplace": fitted, and drawn from an approximation around the mode'
    )
    infer_noise: bool = setting(True, "whether noise is learned where no standard errors are told")
    ridge: float = setting(0.5, "laplace: precision of the prior on the metric's factor")
    inflation: float | None = setting(
        None, "laplace: of the covariance; None: by how many data there are, -1: n as in the paper"
    )
    warm: bool = setting(True, "whether chains and fits start where the last ones ended")
    cold: int = setting(3, "laplace: other starts of a fit")
    iterations: int = setting(100, "laplace: of a fit from each start")
    start: int | None = setting(None, "growing: first dimension; None: by the budget")
    step: int = setting(2, "growing: directions added at a time")
    most: int = setting(20, "growing: largest dimension")
    threshold: float = setting(
        -7.0, "growing: log-EI, in standard deviations of the outcomes, below which the subspace is exhausted"
    )
    patience: int = setting(
        5, "growing: evaluations between two growths, and without improvement before the threshold is relaxed"
    )
    pace: float = setting(0.2, "growing: the share of the budget over which the threshold is relaxed")
    settle: float = setting(
        0.2, "the last share of the budget: no more growth, and proposals where the model's mean is best"
    )
    acquisition: Callable[[Surrogate, Tensor | None], Acquisition] | None = setting(
        None, "your own: see docs/own_acquisition.md"
    )

    name: ClassVar[str] = "alebo"
    title: ClassVar[str] = "ALEBO"
    citation: ClassVar[str] = (
        "Letham, Calandra, Rai, Bakshy 2020, Re-Examining Linear Embeddings for High-Dimensional BO"
    )
    supports: ClassVar[Supports] = Supports(
        constraints=True, objectives=True, batches=True, integers=True, categories=True, linear=True, cost=True
    )

    def __post_init__(self) -> None:
        if self.dim is not None and (not isinstance(self.dim, int) or self.dim < 1):
            raise InputError(
                f"`dim >= 1` must hold, a whole number; got {self.dim!r}. Leave it out and the embedding grows by itself."
            )
        if self.kind not in KINDS:
            raise InputError(f"`kind` is one of {sorted(KINDS)}; got {self.kind!r}.")
        if self.initial is not None and self.initial < 1:
            raise InputError(f"`initial >= 1` must hold; got {self.initial}. A model needs a point to start from.")
        if self.metric not in ("sampled", "laplace"):
            raise InputError(
                f"`metric` is 'sampled' or 'laplace'; got {self.metric!r}. Leave it out to have it sampled."
            )
        self._counts(samples=1, iterations=1)

    @classmethod
    def paper(cls, dim: int) -> ALEBO:
        """The settings of the paper's experiments: 10 uniform points, maximum likelihood, noise known to be zero, 25 metrics."""
        return cls(
            dim=dim,
            initial=10,
            centre=False,
            samples=25,
            ridge=0.0,
            metric="laplace",
            inflation=-1.0,
            infer_noise=False,
            settle=0.0,
            warm=False,
            cold=10,
        )

    def check(self, space: Space, goals: Goals) -> None:
        super().check(space, goals)
        if self.dim is not None and self.dim > space.dimension:
            raise InputError(
                f"`dim <= D` must hold; got dim={self.dim} for {space.dimension} coordinates. Choose a smaller dim, or leave "
                "it out and the embedding grows by itself."
            )

    # -- Algorithm 1 ---------------------------------------------------------------------------------------------------

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        embedding = self.embedding(history, space, seed)  # line 1
        out: list[Suggestion] = []
        asked = history.asked
        seen = bool(self.training(history, embedding, space)[0]) or bool(history.complete and goals.single)
        while len(out) < q and (asked + len(out) < self._initial(history, space) or not seen):
            out.append(self._initial_point(history, embedding, space, asked + len(out), seed))  # line 2
        if len(out) < q:
            waiting = [s.y for s in out if s.y is not None]
            out += self._model_points(history, embedding, space, goals, q - len(out), seed, waiting)
        return out

    def _initial(self, history: History, space: Space) -> int:
        if self.initial is not None:
            return self.initial
        return 10 if self.dim is not None else 6 + self._start(history, space) // 2

    def _start(self, history: History, space: Space) -> int:
        """The first dimension of a growing embedding: 4 for 50 evaluations, one more for every 20, 15 at most.

        A larger space learns more slowly and reaches better points; 100 evaluations are taken where no budget is known.
        """
        dim = min(int(1.5 + (history.budget or 100) / 20.0), 15) if self.start is None else self.start
        return max(2, min(dim, self.most, space.dimension)) if space.dimension > 1 else 1

    def _initial_point(
        self, history: History, embedding: Embedding, space: Space, number: int, seed: int
    ) -> Suggestion:
        domain = self.domain(embedding, space)
        events = _events(history)
        if number == 0 and self.centre:
            y = domain.centre.copy()
            if space.fidelity is not None:
                y[0] = 1.0
        else:
            y = domain.sample(max(self._initial(history, space), number + 1), derive(seed, "initial"))[number]
        return Suggestion(embedding.up(y), y, {"dim": embedding.dim, "events": events})

    def _model_points(
        self, history: History, embedding: Embedding, space: Space, goals: Goals, q: int, seed: int, asked: list[Array]
    ) -> list[Suggestion]:
        events = _events(history)
        number = len(history)
        embedding, events = self._pass_through_best(history, embedding, space, goals, events, seed)
        surrogate = self.surrogate(history, embedding, space, goals, seed)  # line 5
        out: list[Suggestion] = []
        pending = [*self._pending(history, embedding, space), *[_padded(y, embedding.dim) for y in asked]]
        while len(out) < q:
            found = self._propose(
                surrogate, embedding, space, history, pending, derive(seed, "ask", number, len(out)), later=len(out)
            )
            grown = None if out else self._grown(surrogate, embedding, history, space, found[-1], events, seed)
            if grown is not None and pending:  # points that wait lower the promise of all others: judge without them
                free = self._propose(surrogate, embedding, space, history, [], derive(seed, "free", number))
                grown = self._grown(surrogate, embedding, history, space, free[-1], events, seed)
            if grown is not None:
                embedding, events = grown
                surrogate = self.surrogate(history, embedding, space, goals, seed)
                pending = [_padded(y, embedding.dim) for y in pending]
                found = self._propose(surrogate, embedding, space, history, pending, derive(seed, "grown", number))
            x, y, value = found
            note: dict[str, Any] = {"dim": embedding.dim, "events": events, "log_ei": round(value, 6)}
            if not out:
                note[self._remembered] = surrogate.packed()
                note["unexplained"] = round(max(m.unexplained() for m in surrogate.objectives), 3)
                if _assumption_fails(history, note["unexplained"]):
                    note["assumption"] = ASSUMPTION_FAILS
            out.append(Suggestion(x, y, note))
            pending.append(self._seen(embedding, space, x))
        again = self._to_repeat(history, embedding, space, surrogate)
        if again is not None:
            out[0] = Suggestion(again.x, again.y, {**out[0].note, "again": again.number})
        return out

    def _to_repeat(self, history: History, embedding: Embedding, space: Space, surrogate: Surrogate) -> Trial | None:
        """The best point measured, once, when the data first speak for noise: only a repeat tells noise from a rough function."""
        if any(m.known_noise for m in surrogate.models.values()) or any("again" in t.note for t in history.trials):
            return None
        if len(surrogate.objectives) > 1 or space.fidelity is not None or not surrogate.feasible.any():
            return None
        if not surrogate.noise_is_evident():
            return None
        trials, _ = self.training(history, embedding, space)
        return trials[int(np.argmin(np.where(surrogate.feasible, surrogate.values[:, 0], np.inf)))]

    def _propose(
        self,
        surrogate: Surrogate,
        embedding: Embedding,
        space: Space,
        history: History,
        pending: list[Array],
        seed: int,
        later: int = 0,
    ) -> tuple[Array, Array, float]:
        """Line 6: the point of the polytope that maximises the acquisition, as it will be evaluated.  -> D, d_e, ()

        The first point of a batch is chosen as if it were alone; a later one by a share of the samples and a shorter climb.
        """
        if later and self.acquisition is None:
            surrogate = surrogate.share(later)
        effort = {"raw": 128, "starts": 4, "steps": 4} if later else {}
        waiting = torch.from_numpy(np.stack(pending)) if pending else None
        if self.acquisition is not None:
            acquisition = self.acquisition(surrogate, waiting)
        elif space.fidelity is not None:
            acquisition = surrogate.acquisition(waiting, seed, log_cost=_log_cost(surrogate, space))
        else:
            acquisition = surrogate.acquisition(waiting, seed, SETTLED if self._settles(history) else 1.0)
        domain = self.domain(embedding, space)
        order = np.lexsort((surrogate.values[:, 0], ~surrogate.feasible))[:4]
        points, values = candidates(acquisition, domain, seed, around=surrogate.Y.numpy()[order], **effort)
        if space.fidelity is not None and _look_closely(history, space):
            points[:, 0] = 1.0
        if space.continuous:
            return embedding.up(points[0]), points[0], float(values[0])
        points = np.vstack([points, scatter(domain, seed, surrogate.Y.numpy()[order], 192)])
        trials, _ = self.training(history, embedding, space)
        best = np.stack([space.encode(trials[i].params) for i in order])
        x, value = _rounded(points, acquisition, embedding, space, history, best, seed)
        return x, embedding.down(x), value

    # -- what a history means ------------------------------------------------------------------------------------------

    def embedding(self, history: History, space: Space, seed: int) -> Embedding:
        """The present embedding, rebuilt from the seed and the events that the last trial's note carries."""
        D = space.dimension
        dim = self._start(history, space) if self.dim is None else self.dim
        if space.fidelity is None:
            embedding = KINDS[self.kind](D, dim, derive(seed, "embedding")).orthonormal()
        else:
            others = KINDS[self.kind](D - 1, min(dim, D - 1), derive(seed, "embedding")).orthonormal()
            embedding = others.beside(space.fidelity[0])
        rows, bounds = space.rows(rounded=True)
        if len(bounds) and embedding.domain.intersect(rows @ embedding.A, bounds - rows @ embedding.x0).empty:
            embedding = embedding.through(_feasible_point(rows, bounds))
            log.warning(
                "The embedding through the centre holds no point that satisfies the linear constraints; it was moved."
            )
        for i, event in enumerate(_events(history)):
            embedding = _apply(embedding, event, i, history, seed)
        return embedding

    def domain(self, embedding: Embedding, space: Space) -> Polytope:
        """Where proposals may lie: inside the bounds (paper, eq. 1) and the linear constraints."""
        if not space.constraints:
            return embedding.domain
        for rounded in (True, False):
            rows, bounds = space.rows(rounded=rounded)
            domain = embedding.domain.intersect(rows @ embedding.A, bounds - rows @ embedding.x0)
            if not domain.empty:
                break
        return domain

    def training(self, history: History, embedding: Embedding, space: Space) -> tuple[list[Trial], Array]:
        """The completed trials that the embedding can see, and where it sees them.  -> n trials, n x d_e"""
        trials, Y = [], []
        for t in history.complete:
            if t.y is not None and space.continuous:
                y = _padded(t.y, embedding.dim)
            else:
                x = t.x if space.continuous else space.encode(t.params)
                if t.y is None and embedding.residual(x) > 1e-6 * math.sqrt(space.dimension):
                    continue  # off the subspace: it counts for the best point, not for the model
                y = embedding.down(x)
            trials.append(t)
            Y.append(y)
        return trials, np.array(Y).reshape(len(Y), embedding.dim)

    def surrogate(
        self,
        history: History,
        embedding: Embedding,
        space: Space,
        goals: Goals,
        seed: int,
    ) -> Surrogate:
        """The models of every outcome at the present history."""
        trials, Y = self.training(history, embedding, space)
        warm = _last_note(history, self._remembered) if self.warm else None
        return fit_surrogate(
            Y,
            trials,
            goals,
            build=partial(sample_gp, samples=self.samples, afresh=_restarts(len(trials)))
            if self.metric == "sampled"
            else self._laplace(len(trials), started=bool(warm)),
            warm=warm or {},
            infer_noise=self.infer_noise,
            seed=derive(seed, "fit", len(history)),
        )

    def fitted(self, history: History, space: Space, goals: Goals, seed: int, *, fresh: bool = False) -> Fitted | None:
        method = replace(self, warm=False) if fresh else self
        embedding = method.embedding(history, space, seed)
        trials, Y = method.training(history, embedding, space)
        if not trials:
            return None
        found = method.surrogate(history, embedding, space, goals, seed)
        models = by_outcome(goals, found.objectives, found.constraints, -1.0)
        what = f"{'sampled' if self.metric == 'sampled' else 'Laplace'} Mahalanobis model in {embedding.dim} dimensions"
        return Fitted(tuple(trials), Y, embedding.down, models, embedding, what)

    @property
    def _remembered(self) -> str:
        """What a note keeps for the next fit to start from."""
        return "chains" if self.metric == "sampled" else "mode"

    def _laplace(self, n: int, *, started: bool) -> Callable[..., MahalanobisGP]:
        """The paper's fit, with its settings for n observations."""
        inflation = (
            default_inflation(n) if self.inflation is None else float(n) if self.inflation < 0 else self.inflation
        )
        often = n <= 20 or (n % 5 == 0 and n <= 500) or not started
        return partial(
            fit_gp,
            samples=self.samples,
            prior=MetricPrior(ridge=self.ridge) if self.ridge > 0 else PAPER,
            cold=self.cold if often else 0,
            iterations=self.iterations if n <= 500 else max(10, int(self.iterations * (500 / n) ** 2)),
            inflation=inflation,
        )

    def estimate(
        self, history: History, space: Space, goals: Goals, seed: int
    ) -> Mapping[int, Mapping[str, Outcome]] | None:
        """The model's view of every completed trial where the noise is evident; None where measurements can be trusted."""
        embedding = self.embedding(history, space, seed)
        trials, _ = self.training(history, embedding, space)
        if len(trials) < 5 or not self.infer_noise or history.last_note("unexplained").get("assumption"):
            return None  # nothing to believe in: what was measured counts
        if _repeatable(history):
            return None  # what looks like noise is a rough function
        surrogate = self.surrogate(history, embedding, space, goals, seed)
        if not surrogate.noise_is_evident():
            return None
        view: dict[int, Mapping[str, Outcome]] = {t.number: t.outcomes for t in history.complete}
        for t, believed in zip(trials, surrogate.believed(), strict=True):
            view[t.number] = {**t.outcomes, **believed}
        return view

    def _pending(self, history: History, embedding: Embedding, space: Space) -> list[Array]:
        return [self._seen(embedding, space, t.x) for t in history.pending]

    @staticmethod
    def _seen(embedding: Embedding, space: Space, x: Array) -> Array:
        """Where the embedding sees the point that is evaluated for x."""
        return embedding.down(x if space.continuous else space.snap(x))

    # -- growing -------------------------------------------------------------------------------------------------------

    def _grown(
        self,
        surrogate: Surrogate,
        embedding: Embedding,
        history: History,
        space: Space,
        log_ei: float,
        events: list[list[Any]],
        seed: int,
    ) -> tuple[Embedding, list[list[Any]]] | None:
        """A larger embedding where the present one is exhausted: nothing in it promises an improvement worth having.

        Or where it led to a step already seen: of a function with steps a small subspace meets few, and goes on promising.
        """
        if self.dim is not None or self.acquisition is not None or embedding.dim >= min(self.most, space.dimension):
            return None
        if self._settles(history):
            return None
        since = len(history) - (events[-1][-1] if events else 0)
        stepped = since >= 2 and space.continuous
        stepped = stepped and _on_a_known_step(self.training(history, embedding, space)[0], surrogate.values)
        exhausted = since >= self.patience and log_ei <= self._exhausted_below(surrogate, since, history.budget)
        if not exhausted and not stepped:
            return None
        k = min(self.step, min(self.most, space.dimension) - embedding.dim)
        event = ["grow", k, len(history)]
        return _apply(embedding, event, len(events), history, seed), [*events, event]

    def _settles(self, history: History) -> bool:
        """Whether the budget nears its end: what is learned now of far regions comes too late to be used."""
        return history.budget is not None and history.asked >= (1.0 - self.settle) * history.budget

    def _exhausted_below(self, surrogate: Surrogate, since: int, budget: int | None) -> float:
        """The log-EI below which the subspace counts as exhausted.

        An improvement that drowns in the noise is none, so noise raises it. And a model that keeps promising while nothing
        comes is not to be believed: after `patience` evaluations without improvement it rises, over a share `pace` of the
        budget, to an improvement of a fiftieth of a standard deviation.
        """
        noise = math.log(max(float(surrogate.objectives[0].noise.median()), 1e-300)) / 2.0
        floor = max(self.threshold, noise - 2.0)
        best = np.minimum.accumulate(np.where(surrogate.feasible, surrogate.values[:, 0], np.inf))
        spread = float(np.std(surrogate.values[:, 0])) or 1.0
        stalled = int(np.sum(best <= best[-1] + 1e-3 * spread)) - 1 if np.isfinite(best[-1]) else len(best)
        share = max(self.pace * (budget or 100), 1.0)
        relaxed = min(max((min(stalled, since) - self.patience) / share, 0.0), 1.0)
        return floor + relaxed * max(-4.0 - floor, 0.0)

    def _pass_through_best(
        self, history: History, embedding: Embedding, space: Space, goals: Goals, events: list[list[Any]], seed: int
    ) -> tuple[Embedding, list[list[Any]]]:
        """One more direction where the best point known lies off the subspace: old data told from elsewhere."""
        outside = [t for t in history.complete if t.y is None and not t.asked]
        if not goals.single or not outside:
            return embedding, events
        done = {e[1] for e in events if e[0] == "through"}
        good = [t for t in history.complete if goals.feasible(t.outcomes)]
        if not good:
            return embedding, events
        best = min(good, key=lambda t: float(goals.objective_values(t.outcomes)[0]))
        if best.y is not None or best.number in done or embedding.dim >= space.dimension:
            return embedding, events
        event = ["through", best.number, len(history)]
        return _apply(embedding, event, len(events), history, seed), [*events, event]


def _apply(embedding: Embedding, event: list[Any], i: int, history: History, seed: int) -> Embedding:
    if event[0] == "grow":
        return embedding.grow(int(event[1]), derive(seed, "grow", i))
    return embedding.including(history[int(event[1])].x)


def _assumption_fails(history: History, unexplained: float) -> bool:
    """Whether, with sixty evaluations and more, the typical model of the last twenty leaves too much unexplained."""
    past = [t.note["unexplained"] for t in history.trials if "unexplained" in t.note]
    return len(history.complete) >= 60 and float(np.median([*past[-19:], unexplained])) > UNEXPLAINED


def _on_a_known_step(trials: list[Trial], values: Array) -> bool:
    """Whether the last point came to exactly the outcomes of another one. n x k objectives, minimised

    The worst value does not count: many programs return one for whatever went wrong.
    """
    if values.shape[1] > 1 or values[-1, 0] == values[:, 0].max():
        return False
    *others, last = trials
    alike = [t for t in others if all(t.outcomes[name].mean == o.mean for name, o in last.outcomes.items())]
    return any(not np.array_equal(t.x, last.x) for t in alike)


def _repeatable(history: History) -> bool:
    """Whether points were evaluated more than once, and every outcome came out the same each time."""
    first: dict[bytes, Trial] = {}
    pairs = [(first.setdefault(t.x.tobytes(), t), t) for t in history.complete]
    repeats = [(one, two) for one, two in pairs if one is not two]
    return bool(repeats) and all(
        abs(two.outcomes[name].mean - one.outcomes[name].mean)
        <= 1e-6 * float(np.std([t.outcomes[name].mean for t in history.complete]))
        for one, two in repeats
        for name in one.outcomes
    )


def _events(history: History) -> list[list[Any]]:
    """How the embedding has changed so far: [what, how, when]."""
    return list(_last_note(history, "events") or [])


def _last_note(history: History, key: str) -> Any:
    return history.last_note(key).get(key)


def _restarts(n: int) -> bool:
    """Whether one more chain starts at n observations: from 20 on, each time that they have become a quarter more."""
    return n >= 20 and int(4.0 * math.log(n)) > int(4.0 * math.log(n - 1))


def _log_cost(surrogate: Surrogate, space: Space) -> Callable[[Tensor], Tensor]:
    """The logarithm of an evaluation's cost: as modelled where it is told, else in proportion to the fidelity."""
    if surrogate.cost is not None:
        cost = surrogate.cost
        return lambda X: cost.moments(X)[0]
    assert space.fidelity is not None
    level = space.fidelity[1]

    def proportional(X: Tensor) -> Tensor:
        share = 0.5 * (X[..., 0, 0] + 1.0)
        if level.log:
            return math.log(level.low) + share * math.log(level.high / level.low)
        return torch.log((level.low + share * (level.high - level.low)).clamp_min(1e-3 * level.high))

    return proportional


def _look_closely(history: History, space: Space) -> bool:
    """Whether the next evaluation is made at the target fidelity: every fifth, and the last tenth of the budget."""
    asked = history.asked
    return asked % 5 == 4 or (history.budget is not None and asked >= 0.9 * history.budget - 1)


def _padded(y: Array, dim: int) -> Array:
    return np.concatenate([y, np.zeros(dim - len(y))])


def _feasible_point(rows: Array, bounds: Array) -> Array:
    D = rows.shape[1]
    cube = Polytope(np.vstack([np.eye(D), -np.eye(D), rows]), np.concatenate([np.ones(2 * D), bounds]))
    return np.clip(cube.centre, -1.0, 1.0)


def _rounded(
    points: Array,
    acquisition: Acquisition,
    embedding: Embedding,
    space: Space,
    history: History,
    best: Array,  # k x D, the best points evaluated
    seed: int,
) -> tuple[Array, float]:
    """The most promising point that can be evaluated, new if any is, and its acquisition.  -> D, ()

    Rounding moves a point off the subspace, away from where the acquisition is large. So the search goes on among rounded
    points, from the most promising ones and the best evaluated: a step along the subspace, or one coordinate drawn anew.
    """
    rng = generator(seed, "rounded")
    X = space.snap(np.clip(embedding.up(points), -1.0, 1.0))
    worth = evaluate(acquisition, embedding.down(X))
    for _ in range(4 if space.fidelity is None else 0):
        parents = np.vstack([X[np.argsort(-worth)[:8]], best])
        children = parents[rng.integers(len(parents), size=100)]
        steps = rng.standard_normal((50, embedding.dim))
        steps *= (10.0 ** rng.uniform(-1.5, 0.7, 50) / np.linalg.norm(steps, axis=1))[:, None]
        children[:50] += steps @ embedding.A.T
        where = rng.integers(space.dimension, size=50)
        children[np.arange(50, 100), where] = np.where(space.one_hot[where], 2.0, rng.uniform(-1.0, 1.0, 50))
        children = space.snap(children)
        X, worth = np.vstack([X, children]), np.append(worth, evaluate(acquisition, embedding.down(children)))
    known = [t.params for t in history]
    chosen, rank = 0, (False, False, -math.inf)
    for i in np.argsort(-worth):
        params = space.decode(X[i])
        now = (space.feasible(params), params not in known, float(worth[i]))
        if now > rank:
            chosen, rank = int(i), now
        if now[0] and now[1]:
            break
    return X[chosen], float(worth[chosen])
