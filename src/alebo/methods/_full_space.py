"""Arms that search the whole cube with one lengthscale for each parameter, everywhere or near the best point.

What differs between them is data: the priors whose models are averaged, and whether the search is limited to a region.
Points are in the unit cube here, x = -1 + 2 u.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from .._seeds import derive, generator
from ..acquisition import Acquisition, PerCost, climb_in_box, evaluate, perturbed
from ..geometry import Embedding
from ..goals import Goals
from ..models import Mixture, fit_mixture
from ..models.ard import ARDGP
from ..models.ard_fit import MANY
from ..models.coregional import CoregionalGP
from ..models.priors import ARDPrior, dense, sparse
from ..models.surrogate import unexplained
from ..space import Space
from ._foreseen import FORESEEN, foreseen, trusted
from ._method import Suggestion
from ._outcomes import OutcomeModels, fit_outcomes
from ._repeat import to_repeat
from ._rounding import rounded
from ._sharing import gains
from ._transfer import TRUSTED, informed, taming, weights
from ._view import View

Array: TypeAlias = NDArray[np.float64]

MOST_TRIALS = 500  # that the models learn from: the best of them, and as many of all the others
MOST_COORDINATES = 20_000  # beyond, one fit with a lengthscale for each of them takes gigabytes
FIT = "fit"  # the key of a note under which the next fits find where these ended
NEAR = (0.02, 0.2, 0.8)  # sides of the boxes around the best points in which the search also starts
NEARBY = 64  # points in each of them
WIDEST = 5.0  # times the typical lengthscale: no box is wider than that for a parameter that does nothing
FAR = 256  # points over the whole cube or region
BEST = 3  # of all these points are climbed from, and the best of the FAR: most climbs begin near the incumbent, because
ITERATIONS = 60  # in many dimensions the largest acquisition of all often lies in a corner where nothing is known
LATE, LATE_DOUBT = 0.2, 0.1  # in the last share of the budget so much of the models' standard deviation counts
SELDOM = (
    3  # the one fit in so many, of models that know no source, that is made from the start while sources are trusted
)
NAMED = 8  # parameters at most that a finding names
RELEVANT = 0.95  # share of the inverse squared lengthscales that the named parameters make up

PRIORS: dict[str, Callable[[int], ARDPrior]] = {
    "dense": dense,
    "matern": partial(dense, kernel="matern"),
    "sparse": lambda D: sparse(0.1, subsets=True),
}
HANDICAPS = {"sparse": 3.0}  # nats by which a model must have foreseen better before it is listened to


@dataclass(frozen=True)
class Region:
    """A box around the incumbent that grows when its arm improves and shrinks when it does not.

    After Eriksson et al. 2019; when it becomes smaller than `shortest` it starts again at `length`, around the incumbent
    of that time.
    """

    length: float = 0.8  # of a unit cube's side
    longest: float = 1.6
    shortest: float = 0.5**6
    successes: int = 2  # in a row, then the side doubles
    least_patience: int = 4  # failures in a row that halve it: D / 10, and no fewer than this

    def side(self, view: View) -> float:
        """The present side length, from the record of the arm's own evaluations."""
        patience = max(self.least_patience, view.space.dimension // 10)
        side, won, lost = self.length, 0, 0
        for trial, gain in zip(view.trials, gains(view.trials, view.goals), strict=True):
            if not view.own(trial) or not view.searched(trial):
                continue
            won, lost = (won + 1, 0) if gain > 0.0 else (0, lost + 1)
            if won == self.successes:
                side, won = min(2.0 * side, self.longest), 0
            elif lost == patience:
                side, lost = 0.5 * side, 0
            if side < self.shortest:
                side = self.length
        return side


@dataclass(frozen=True)
class FullSpaceArm:
    """Log-EI of a mixture of full-space models, maximised over the cube or over a region around the incumbent."""

    name: str
    bet: str  # the kind of function that it is made for, in words
    priors: tuple[str, ...]  # of PRIORS
    region: Region | None = field(default=None)

    def unable(self, space: Space, goals: Goals) -> str | None:
        """Why this arm cannot do what is asked; None where it can."""
        if space.constraints:
            return "it searches a box, and linear constraints cut the box"
        if space.fidelity is not None:
            return "it has no model of a fidelity"
        if space.dimension > MOST_COORDINATES:
            return f"its models have a lengthscale for each of at most {MOST_COORDINATES} coordinates; got {space.dimension}"
        return None

    def surrogate(self, view: View, *, fresh: bool = False) -> OutcomeModels:
        """The models of every outcome, in the unit cube."""
        D = view.space.dimension
        priors: list[ARDPrior] = [PRIORS[name](D) for name in self.priors]
        warm = None if fresh else self._remembered(view)
        if warm and len(view.trials) % SELDOM and sum(weights(view.history, view.goals)) >= TRUSTED:
            priors = [replace(prior, subsets=False, rugged=False) for prior in priors]  # sources propose: these compare
        return fit_outcomes(
            0.5 * (view.X + 1.0),
            view.trials,
            view.goals,
            build=partial(fit_mixture, priors=priors),
            warm=warm,
            seed=derive(view.seed, self.name, "fit", view.number),
            tame=taming(view.history.sources),
            also=informed(view),
        )

    def _remembered(self, view: View) -> Any:
        """Where the arm's last fit ended; before its first one, with many trials, where another arm's of the same prior did.

        A search for the parameters that matter takes seconds then, and the other arm has just made it.
        """
        own = view.last_note(FIT)
        if own is not None or len(view.trials) <= MANY:
            return own
        others = {arm.name: arm.priors for arm in full_space_arms() if "sparse" in arm.priors and arm.name != self.name}
        notes = [t.note for t in view.history] + list(view.beside)
        last = next((n for n in reversed(notes) if n.get("arm") in others and isinstance(n.get(FIT), Mapping)), None)
        if last is None:
            return None
        at = others[last["arm"]].index("sparse")
        found = {name: fits[at] for name, fits in last[FIT].items() if len(fits) > at}
        return {name: [fit if prior == "sparse" else () for prior in self.priors] for name, fit in found.items()}

    def propose(self, view: View, q: int) -> list[Suggestion]:
        """The next q points, each as if those before it had been measured at the models' means."""
        side = None if self.region is None else self.region.side(view)
        view = view.thinned(MOST_TRIALS)
        fitted = self.surrogate(view)
        model = self.heard(fitted, view)
        again = to_repeat(view, model)
        out: list[Suggestion] = []
        note: dict[str, Any] = {FIT: fitted.packed(), **self._found(fitted, view), **view.learned_from}
        for i in range(q):
            seed = derive(view.seed, self.name, view.number, i)
            u, value = self._maximise(model, view, side, seed)
            x = 2.0 * u - 1.0
            if again is not None:
                x, note, again = again.x, {**note, "again": again.number}, None
            kept = {**note, "log_ei": round(value, 6), FORESEEN: foreseen(fitted, 0.5 * (x + 1.0))}
            out.append(Suggestion(x, None, kept if side is None else {**kept, "side": side}))
            view, note = view.plus(x), {}
        return out

    def heard(self, fitted: OutcomeModels, view: View) -> OutcomeModels:
        """The models that foresaw nearly as well as the best."""
        return trusted(fitted, view, [HANDICAPS.get(name, 0.0) for name in self.priors])

    def judged(self, view: View, *, fresh: bool = False) -> OutcomeModels:
        """The models that speak for the arm; with sources, those that are listened to."""
        model = self.surrogate(view, fresh=fresh)
        return self.heard(model, view) if view.history.sources else model

    def expects(self, view: View, x: Array) -> dict[str, Any]:
        """What its models expect at a point that another proposes, for a note.  D"""
        view = view.thinned(MOST_TRIALS)
        fitted = self.surrogate(view)
        return {FIT: fitted.packed(), FORESEEN: foreseen(fitted, 0.5 * (x + 1.0))}

    def _maximise(self, model: OutcomeModels, view: View, side: float | None, seed: int) -> tuple[Array, float]:
        """The point of the unit cube, or of the region, with the largest acquisition, and its value.  -> D, ()"""
        X, D = model.Y.numpy(), view.space.dimension
        acquisition = self._acquisition(model, view, seed)
        order = model.ranked()[:2]
        best = X[order[0]]
        low, high = (np.zeros(D), np.ones(D)) if side is None else _box(best, np.full(D, side))
        rng = generator(seed, "near")
        weights = _first(model.objectives[0]).lengthscales
        weights = np.minimum(weights / np.exp(np.log(weights).mean()), WIDEST)
        near = np.concatenate(
            [
                perturbed(X[i], *_box(X[i], length * weights), NEARBY, rng)
                for i in (order if side is None else order[:1])
                for length in NEAR
            ]
        )
        far = low + rng.random((FAR, D)) * (high - low)
        points = np.clip(np.concatenate([far, near]), low, high)
        worth = evaluate(acquisition, points)
        begin = points[[*np.argsort(-worth)[:BEST], int(np.argmax(worth[:FAR]))]]
        u, value = climb_in_box(acquisition, begin, low, high, iterations=ITERATIONS)
        if view.space.continuous:
            return u, value
        cube = view.inside(Embedding(2.0 * np.eye(D), -np.ones(D)))
        points = np.vstack([u, near])
        x, value = rounded(cube, acquisition, points, view.X[order], seed)
        return 0.5 * (x + 1.0), value

    def _acquisition(self, model: OutcomeModels, view: View, seed: int) -> Acquisition:
        """What goals and pending points call for."""
        pending = torch.from_numpy(0.5 * (view.pending + 1.0)) if len(view.pending) else None
        failed = [view.space.snap(t.x) for t in view.history.avoided]
        avoided = torch.from_numpy(0.5 * (np.array(failed) + 1.0)) if failed else None
        if len(model.objectives) > 1:
            aware = model if avoided is None else model.avoiding(avoided)
            return self._off_plateaus(aware.acquisition(pending, seed), view)
        late = view.ends_within(LATE) and not view.search
        late = late and not model.noisy and not model.constraints and model.cost is None
        acquisition = self._off_plateaus(model.log_ei(pending, avoided, LATE_DOUBT if late else 1.0), view)
        return acquisition if model.cost is None else PerCost(acquisition, model.cost)

    def _off_plateaus(self, acquisition: Acquisition, view: View) -> Acquisition:
        """The acquisition, weighed by how probably a point is new where there are plateaus."""
        return acquisition if view.plateaus is None else view.plateaus.unseen(acquisition, view)

    def _found(self, model: OutcomeModels, view: View) -> dict[str, Any]:
        """What the sparse model says: how much it explains, and by which parameters."""
        mixture = model.objectives[0]
        if "sparse" not in self.priors or not isinstance(mixture, Mixture):
            return {}
        part = mixture.models[self.priors.index("sparse")]
        if not isinstance(part, ARDGP):
            return {}
        weight = part.lengthscales**-2.0 * part.X.var(axis=0)
        names = _by_parameter(weight, view.space)
        ranked = sorted(names, key=lambda name: -names[name])
        total = sum(names.values()) or 1.0
        shares = np.cumsum([names[name] / total for name in ranked])
        count = int(np.searchsorted(shares, RELEVANT)) + 1
        found = {"explained": round(1.0 - min(unexplained(part), 1.0), 3), "count": count}
        return {"sparse": {**found, "parameters": ranked[: min(count, NAMED)]}}


def _by_parameter(weight: Array, space: Space) -> dict[str, float]:
    """The weights of a parameter's coordinates, added.  D"""
    return {name: float(weight[where].sum()) for name, where in space.coordinates().items()}


def _first(model: Any) -> ARDGP | CoregionalGP:
    """The first model of a mixture."""
    part = model.models[0]
    if isinstance(part, Mixture):  # of what a source knows
        part = part.models[0]
    assert isinstance(part, ARDGP | CoregionalGP)
    return part


def _box(centre: Array, sides: Array) -> tuple[Array, Array]:
    """The box around a point, inside the unit cube.  D, D -> D, D"""
    return np.clip(centre - 0.5 * sides, 0.0, 1.0), np.clip(centre + 0.5 * sides, 0.0, 1.0)


def full_space_arms() -> Sequence[FullSpaceArm]:
    """The arms of the full space, by the structure that they expect."""
    return (
        FullSpaceArm("full", "all parameters matter a little, or a few alone", ("dense", "sparse")),
        FullSpaceArm("dense", "all parameters matter a little", ("dense",)),
        FullSpaceArm("sparse", "a few parameters matter", ("sparse",)),
        FullSpaceArm("local", "the best point can be improved nearby", ("matern", "sparse"), Region()),
    )
