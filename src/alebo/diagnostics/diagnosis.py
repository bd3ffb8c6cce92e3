"""All numbers about a run in one place, and the verdicts that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..goals import Goals
from ..history import History
from ..methods import Learned, Method, learned
from ..methods._fitted import Fitted
from ..methods._notes import approximation
from ..methods.adaptive import finding
from ..space import Space
from .embedding import geometry
from .fit import Fit, cross_validate, judge
from .importance import Importance, slope_importance
from .models import fit_models, is_constant
from .progress import reasons, since_improvement
from .sparse import SparseModel, sparse_model
from .verdict import Verdict, verdicts


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """All numbers from which the verdicts are drawn; what could not be computed is None or empty."""

    n: int  # completed trials
    failed: int
    infeasible: int
    reasons: tuple[tuple[str, int], ...]  # why trials failed, the most common first
    since_improvement: int | None  # finished trials since the last improvement
    D: int
    dim: int | None = None  # of the embedding; None where the model sees all coordinates
    model: str = ""  # the method's model in words; empty where there is none to judge
    fits: tuple[Fit, ...] = ()
    boundary_share: float | None = None
    pull: float | None = None  # slope at the incumbent against the typical slope; about 0 at an inner optimum
    containment: float | None = None
    directions: int | None = None  # eigenvalues of Gamma above a hundredth of the largest
    rank: float | None = None  # effective rank of Gamma
    rank_low: float | None = None
    rank_high: float | None = None
    importance: tuple[Importance, ...] = ()  # the largest first
    importance_from: str = ""  # the model behind it, in words
    verdicts: tuple[Verdict, ...] = ()
    method: str = ""
    title: str = ""  # the method's name for people
    modelled: bool = True  # whether the method has a model that could be judged
    grows: bool = False
    since_growth: int | None = None  # completed trials in the present dimensions; None where it never grew
    unexplained: float | None = None  # as the method noted when it last said that its assumption fails
    finding: str | None = None  # what the arms of the adaptive method have found, in words
    approximation: str | None = None  # where the models learn from a part of the trials only, in words
    learned: tuple[Learned, ...] = ()  # what earlier studies have told
    fitted: Fitted | None = None  # the method's models themselves, for figures
    sparse: SparseModel | None = None  # the sparse model of all parameters, for figures

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain data, for scripts."""
        apart = ("fits", "importance", "verdicts", "reasons", "fitted", "sparse", "learned")
        plain = {k: v for k, v in vars(self).items() if k not in apart}
        return {
            **plain,
            "reasons": dict(self.reasons),
            "fits": [
                {"outcome": f.outcome, "r2": f.r2, "coverage": f.coverage, "noise_share": f.noise_share}
                for f in self.fits
            ],
            "importance": [vars(s) for s in self.importance],
            "verdicts": [vars(v) for v in self.verdicts],
            "learned": [vars(s) for s in self.learned],
        }


def diagnose(
    history: History,
    space: Space,
    goals: Goals,
    *,
    method: Method | None = None,
    seed: int = 0,
    models: Fitted | None = None,
) -> Diagnosis:
    """Everything that can be said about a run from its history and its method's model.

    Args:
        history: All trials of the run.
        space: Its parameters.
        goals: Its goals.
        method: The method of the run, which is asked for its model; None where it is not known.
        seed: The seed of the run.
        models: What `fit_models` gave, where it was called before.

    Returns:
        The numbers, with verdicts in plain words.
    """
    complete = history.complete
    said = Diagnosis(
        n=len(complete),
        failed=len(history.failed),
        infeasible=sum(not goals.feasible(t.outcomes) for t in complete),
        reasons=reasons(history),
        since_improvement=since_improvement(history, goals, space),
        D=space.dimension,
        method="" if method is None else method.name,
        title="" if method is None else method.title,
        modelled=method is None or type(method).fitted is not Method.fitted,
        grows=_grows(method),
        unexplained=_unexplained(history),
        finding=finding(history),
        approximation=approximation(history),
        learned=tuple(learned(history, space, goals)),
    )
    fitted = fit_models(history, space, goals, method=method, seed=seed) if models is None else models
    if fitted is not None:
        said = _with_model(said, fitted, history, space, goals, method, seed)
    sparse = sparse_model(history, space, goals)
    found, source = importances(space, goals, fitted, sparse, seed=seed)
    said = replace(said, importance=found, importance_from=source, fitted=fitted, sparse=sparse)
    return replace(said, verdicts=verdicts(said))


def _with_model(
    said: Diagnosis,
    fitted: Fitted,
    history: History,
    space: Space,
    goals: Goals,
    method: Method | None,
    seed: int,
) -> Diagnosis:
    fits = cross_validate(history, space, goals, fitted, method=method, seed=seed)
    if not fits:
        return said  # no outcome varies: there is nothing to judge
    shape = geometry(fitted, goals, space.dimension)
    return replace(said, fits=fits, model=fitted.what, **({} if shape is None else vars(shape)))


def importances(
    space: Space, goals: Goals, fitted: Fitted | None, sparse: SparseModel | None, *, seed: int = 0
) -> tuple[tuple[Importance, ...], str]:
    """How much each parameter matters to the first objective, the largest first, and the model that says so, in words.

    From the embedding's model or from the sparse model of all parameters: whichever predicts left-out points better. Empty
    where there is neither.
    """
    first = goals.objectives[0].outcome
    if fitted is not None and _has_slopes(fitted, first) and not is_constant(fitted.values(first)):
        better = sparse is None or _loo_log_density(fitted, first) > sparse.log_density
        if better:
            return slope_importance(fitted, first, space, seed=seed), fitted.what
    return ((), "") if sparse is None else (sparse.importance, "sparse model of all parameters")


def _has_slopes(fitted: Fitted, outcome: str) -> bool:
    """Whether it is a Mahalanobis model in an embedding, whose slopes point along parameters."""
    return fitted.embedding is not None and hasattr(getattr(fitted.models.get(outcome), "model", None), "gamma")


def _loo_log_density(fitted: Fitted, outcome: str) -> float:
    """The mean leave-one-out log density of the method's model, the kernel kept, in standardised units."""
    model = fitted.models[outcome]
    return judge(outcome, fitted.values(outcome), *model.leave_one_out(), model.noise).log_density


def _grows(method: Method | None) -> bool:
    return getattr(method, "name", "") == "alebo" and getattr(method, "dim", 0) is None


def _unexplained(history: History) -> float | None:
    """What the model left open, where the last ask noted that a few linear directions do not explain the function."""
    last = history.last_note("unexplained")
    if "arm" in last:
        return None  # the embedding is one arm of several, and the others do not share its assumption
    return float(last["unexplained"]) if "assumption" in last else None
