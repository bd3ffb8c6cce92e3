"""Learning from earlier studies: their processes beside the models of the present one, and what they explain.

Each source has one process for each outcome, fitted once when the study begins and stored with it (`prepared`). A model of
the present study alone gets one companion for each source (`models.coregional`); which of them are listened to is decided
by what they foresaw (`_foreseen`), so a source that misleads loses its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from .._seeds import derive
from .._tasks import Task
from ..geometry import Embedding
from ..goals import Goals
from ..history import History
from ..models import Mixture
from ..models.ard import ARDGP
from ..models.ard_fit import fit_best
from ..models.coregional import fit_coregional
from ..models.informed import Data, Informed, Inside
from ..models.outcomes import Compression, Standardisation, reported_variances, tamed, without_worst
from ..models.priors import NOISE_FLOOR, dense, sparse
from ..models.surrogate import Surrogate
from ..space import Space
from ._foreseen import DOUBT, FIRST, FORESEEN, MEMORY, WORST, expectation, log_densities
from ._method import Method, Suggestion
from ._outcomes import OutcomeModels
from ._view import EmbeddedView, View

Array: TypeAlias = NDArray[np.float64]

SOURCE = "source"  # the arm of a source's best point
HEARD = 0.1  # weight of a source from which it is listened to inside an embedding
HEDGED = 4  # first points of a study with sources, every other of which is one that a study without them begins with
TYPICAL = 0.25  # quantile of the outcomes that stands for a typical one, instead of the median, in a study with sources
TRUSTED = 0.5  # weight of the sources from which their models propose in place of first points


def prepared(task: Task, goals: Goals) -> Task:
    """The task with a fitted process for each outcome that the goals name; one that has them stays as it is."""
    if task.kernels:
        return task
    task = task.rounded()
    U, D = 0.5 * (task.X + 1.0), task.X.shape[1]
    kernels = {}
    for name, outcome, transform in roles(goals):
        if outcome not in task.means:
            continue
        gp = fit_best(
            U,
            _values(task, outcome, transform),
            [dense(D), sparse(0.1, subsets=True)],
            variances=_variances(task, outcome),
            seed=derive(0, "source", name),
        )
        kernels[name] = {
            "kernel": gp.kernel,
            "lengthscales": [float(f"{v:.6g}") for v in gp.lengthscales],
            "variance": float(f"{gp.variance:.9g}"),
            "noise": float(f"{float(np.median(gp.noises)):.9g}"),
            "mean": float(f"{gp.mean:.9g}"),
        }
    return task.fitted(kernels)


def roles(goals: Goals) -> Iterator[tuple[str, str, Callable[[Array], Array]]]:
    """Of each model its short name, its outcome, and what is done to the measured values, as `fit_outcomes` does it."""
    for i, g in enumerate(goals.objectives):
        yield f"objective {i}", g.outcome, lambda v, g=g: without_worst(-goals.sign(g.outcome) * v)  # type: ignore[misc]
    for i, c in enumerate(goals.constraints):
        yield f"constraint {i}", c.outcome, c.violation
    if goals.cost is not None:
        yield "cost", goals.cost.outcome, lambda v: np.log(np.maximum(v, 1e-300))


def process(task: Task, goals: Goals, name: str) -> ARDGP | None:
    """The process of a source for the model of this short name, in the unit cube; None where it has no such outcome."""
    known = task.kernels.get(name)
    if known is None:
        return None
    _, outcome, transform = next(role for role in roles(goals) if role[0] == name)
    values = _values(task, outcome, transform)
    units = Standardisation.of(values)
    reported = units.variances(_variances(task, outcome))
    noises = np.full(len(task), known["noise"]) if reported is None else np.maximum(reported, NOISE_FLOOR)
    return ARDGP(
        0.5 * (task.X + 1.0),
        units(values),
        known["kernel"],
        np.array(known["lengthscales"]),
        known["variance"],
        noises,
        known["mean"],
        units.shift,
        units.scale,
        known_noise=reported is not None,
    )


def informed(view: View) -> Callable[[str, Any], Any] | None:
    """What adds the sources' processes to a mixture of models of the unit cube; None where there is no source."""
    if not view.history.sources:
        return None

    def also(name: str, model: Any) -> Mixture:
        found = [process(task, view.goals, name) for task in view.history.sources]
        extra = [fit_coregional(source, Data.of(model)) for source in found if source is not None]
        return Informed((*model.models, *extra), model) if extra else model

    return also


def informed_inside(seen: EmbeddedView) -> Callable[[str, Any], Any] | None:
    """What adds the sources' processes to a model of embedded points; None where no source is listened to."""
    heard = [weight >= HEARD for weight in weights(seen.history, seen.goals)]
    if not any(heard):
        return None
    A, x0 = 0.5 * seen.embedding.A, 0.5 * (seen.embedding.x0 + 1.0)  # into the unit cube

    def also(name: str, model: Any) -> Any:
        found = [process(t, seen.goals, name) for t, listen in zip(seen.history.sources, heard, strict=True) if listen]
        data = Data.of(model, torch.from_numpy(x0 + model.points.numpy() @ A.T))
        extra = [Inside(fit_coregional(gp, data), A, x0, model.points) for gp in found if gp is not None]
        extra = [m for m in extra if _agrees(m, model)]
        return Informed((model, *extra), model) if extra else model

    return also


def _agrees(model: Surrogate, alone: Surrogate) -> bool:
    """Whether a model predicts left-out outcomes nearly as well as the one that knows the present study alone."""
    v = alone.shift + alone.scale * alone.v
    sharp = 1e-3 * alone.scale
    means, sds = zip(model.leave_one_out(), alone.leave_one_out(), strict=True)
    one, other = (
        float((-0.5 * ((v - mean) / (sd + sharp)) ** 2 - (sd + sharp).log()).sum())
        for mean, sd in zip(means, sds, strict=True)
    )
    return one >= other - DOUBT


def inherited(view: View, most: int | None, *, exact: bool) -> Embedding | None:
    """The embedding of the first source that was searched in one of at most (or exactly) so many dimensions."""
    for task in view.history.sources:
        if task.embedding is not None:
            made = Embedding(np.array(task.embedding["A"]), np.array(task.embedding["x0"])).orthonormal()
            if most is None or made.dim == most or (made.dim < most and not exact):
                return made
    return None


def searched(
    method: Method | None, history: History, space: Space, goals: Goals, seed: int
) -> dict[str, list[Any]] | None:
    """The embedding in which a study was searched, as plain data; None where it was searched in none."""
    found = None if method is None else method.subspace(history, space, goals, seed)
    if found is None:
        return None
    short = np.vectorize(lambda v: float(f"{v:.9g}"))
    return {"A": short(found.A).tolist(), "x0": short(found.x0).tolist()}


def best_point(view: View, k: int) -> Array | None:
    """The best feasible point of the k-th source; None where there is no such source.  -> D

    By the first objective where there are several. Without a feasible point it is the one that violates least.
    """
    if k >= len(view.history.sources):
        return None
    task, goals = view.history.sources[k], view.goals
    values, wrong = np.zeros(len(task)), np.zeros(len(task))
    for name, outcome, transform in roles(goals):
        if outcome not in task.means:
            continue
        if name == "objective 0":
            values = goals.sign(outcome) * task.means[outcome]
        elif name.startswith("constraint"):
            off = np.maximum(transform(task.means[outcome]), 0.0)
            wrong += off / (float(off.max()) or 1.0)
    x: Array = np.clip(task.X[np.lexsort((values, wrong))[0]], -1.0, 1.0)
    return view.space.snap(x)


def taming(sources: Sequence[Task]) -> Callable[[Array], Array]:
    """What is done to very bad values of an objective; with sources most points are near good ones from the start."""
    return partial(without_worst, below=TYPICAL) if sources else without_worst


def first_of_sources(seen: EmbeddedView, q: int) -> list[Suggestion]:
    """The best points of the sources that were not asked yet, at most q, for a method that has the study to itself."""
    if seen.arm is not None or not seen.history.sources:
        return []
    asked = sum(t.note.get("arm") == SOURCE for t in seen.history)
    points = [best_point(seen, k) for k in range(asked, min(asked + q, len(seen.history.sources)))]
    return [Suggestion(x, None, {"arm": SOURCE}) for x in points if x is not None]


def fewer_first(seen: EmbeddedView, count: int) -> int:
    """How many first points such a method makes: with sources that are trusted, `HEDGED` at most."""
    if seen.arm is not None or sum(weights(seen.history, seen.goals)) < TRUSTED:
        return count
    return min(count, HEDGED)


def expected(seen: EmbeddedView, model: OutcomeModels, y: Array) -> dict[str, Any]:
    """What each model expects at a point, for the note of a method that has the study to itself.  d_e"""
    if seen.arm is not None or not isinstance(model.objectives[0], Informed):
        return {}
    return {FORESEEN: {FIRST: expectation(model.objectives[0], y)}}


def weights(history: History, goals: Goals) -> list[float]:
    """The weight of each source, by what its models foresaw against the best model without: together at most 1.

    From the notes of the trials; before there are any, all count alike.
    """
    count = len(history.sources)
    if not count:
        return []
    complete, alone, score = history.complete, np.zeros(1), np.zeros(count)
    if complete:
        g = goals.objectives[0]
        means = np.array([t.outcomes[g.outcome].mean for t in complete])
        values = -goals.sign(g.outcome) * means
        if any("first" in t.note for t in complete):
            values = taming(history.sources)(values)
        values = tamed(values)
        scale = Standardisation.of(values).scale
        for trial, value in zip(complete, values, strict=True):
            logs = log_densities(trial.note.get(FORESEEN), FIRST, float(value), scale)
            if logs is None or len(logs) <= count:
                continue
            logs = np.maximum(logs - logs.max(), -WORST)
            own = logs[:-count] if len(alone) in (1, len(logs) - count) else logs[:-count].max()
            alone, score = MEMORY * alone + own, MEMORY * score + logs[-count:]
    share = np.exp(np.append(score, alone.max()) - max(score.max(), alone.max()))
    return [float(w) for w in (share / share.sum())[:-1]]


def _values(task: Task, outcome: str, transform: Callable[[Array], Array]) -> Array:
    """The source's values as a model sees them: signs as in the present goals, extreme ones compressed.  -> n"""
    values = transform(task.means[outcome])
    return Compression.of(values)(values)


def _variances(task: Task, outcome: str) -> Array | None:
    sems = task.sems.get(outcome)
    return None if sems is None else reported_variances([None if np.isnan(s) else float(s) for s in sems])
