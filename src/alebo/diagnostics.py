"""Is it working? Cross-validated fit, calibration, faces, containment, rank and sensitivity, and verdicts in plain words.

Letters as in the paper: D ambient and d embedded dimensions, Gamma the metric of the kernel in the embedding.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._seeds import derive, generator, reproducible
from .geometry import Embedding
from .goals import Goals
from .history import History, Trial
from .methods import ALEBO, Method
from .space import Categorical, Fixed, Space

if TYPE_CHECKING:
    from .models.gp import MahalanobisGP

Array: TypeAlias = NDArray[np.float64]
ON_A_FACE = 1e-3  # slack below which a proposal lies on a face of the polytope
SETTLED = 15  # completed trials after a growth, before which the fit in the new directions is not judged
LEAST = 8  # completed trials inside the embedding, without which there is nothing to judge


@dataclass(frozen=True, eq=False)
class View:
    """What the model sees of a history: the embedding, and the completed trials that lie in it."""

    embedding: Embedding
    Y: Array  # n x d
    trials: tuple[Trial, ...]  # the n trials

    def values(self, outcome: str) -> Array:
        """The measured values of an outcome.  -> n"""
        return np.array([t.outcomes[outcome].mean for t in self.trials])

    def variances(self, outcome: str) -> Array | None:
        """Known variances of the measurements, or None where one is not known.  -> n"""
        sems = [t.outcomes[outcome].sem for t in self.trials]
        return None if any(s is None for s in sems) else np.array([float(s or 0.0) ** 2 for s in sems])


def view(history: History, space: Space, method: Method | None = None, seed: int = 0) -> View | None:
    """The linear embedding that a history's points lie in, as its method sees it; None where they lie in none.

    A method that does not tell (or None) is not needed: A is recovered from x = x0 + A y, as many points as dimensions
    determine it, and a grown embedding gives its old points zeros in the new coordinates.
    """
    if not any(t.y is not None for t in history):
        return None
    if isinstance(method, ALEBO):
        embedding = method.embedding(history, space, seed)
        trials, Y = method.training(history, embedding, space)
        return View(embedding, Y, tuple(trials)) if trials else None
    return _recovered(history, space)


def _recovered(history: History, space: Space) -> View | None:
    inside = [t for t in history if t.y is not None]
    d = max(len(t.y) for t in inside if t.y is not None)
    if d >= space.dimension or len(inside) < d:
        return None
    Y = np.stack([np.pad(t.y, (0, d - len(t.y))) for t in inside if t.y is not None])
    X = np.stack([t.x for t in inside])
    with_origin = len(inside) > d and np.linalg.matrix_rank(np.column_stack([Y, np.ones(len(Y))])) == d + 1
    design = np.column_stack([Y, np.ones(len(Y))]) if with_origin else Y
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    solved, *_ = np.linalg.lstsq(design, X, rcond=None)
    x0 = np.where(np.abs(solved[d]) < 1e-9, 0.0, solved[d]) if with_origin else np.zeros(space.dimension)
    if np.abs(design @ solved - X).max() > 1e-6 or np.abs(x0).max() > 1.0:
        return None  # clipped or no linear map: not an embedding in the sense of this house
    keep = [i for i, t in enumerate(inside) if t.complete]
    embedding = Embedding(np.array(solved[:d].T, dtype=float), np.asarray(x0, dtype=float))
    return View(embedding, Y[keep], tuple(inside[i] for i in keep))


@dataclass(frozen=True, eq=False)
class Fit:
    """How well a model of one outcome predicts points that it has not seen."""

    outcome: str
    observed: Array  # n
    predicted: Array  # n, each from a model fitted without that point
    sd: Array  # n, of the prediction, measurement noise included
    r2: float  # share of the variation explained; can be negative
    coverage: float  # share of observations inside their central 95 % interval
    noise_share: float  # variance of the fitted noise against all variation


@dataclass(frozen=True)
class Sensitivity:
    """How much of the model's slope points along one parameter: shares add up to 1 over all parameters."""

    name: str
    share: float
    low: float  # 5 % and 95 % over the posterior of the metric
    high: float
    chance: float  # probability that a parameter without influence gets a share this large


@dataclass(frozen=True)
class Verdict:
    """One plain sentence about a run. `key` names the rule; `level` is good, note or warning."""

    key: str
    level: str
    text: str


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """All numbers from which the verdicts are drawn; what could not be computed is None or empty."""

    n: int  # completed trials
    failed: int
    infeasible: int
    reasons: tuple[tuple[str, int], ...]  # why trials failed, the most common first
    since_improvement: int | None  # finished trials since the last improvement
    D: int
    dim: int | None = None
    fits: tuple[Fit, ...] = ()
    boundary_share: float | None = None
    pull: float | None = None  # slope at the best point against the typical slope; about 0 at an inner optimum
    containment: float | None = None
    directions: int | None = None  # eigenvalues of Gamma above a hundredth of the largest
    rank: float | None = None  # effective rank of Gamma
    rank_low: float | None = None
    rank_high: float | None = None
    sensitivity: tuple[Sensitivity, ...] = ()  # the largest first
    verdicts: tuple[Verdict, ...] = ()
    method: str = ""
    grows: bool = False
    since_growth: int | None = None  # completed trials in the present dimensions; None where it never grew
    unexplained: float | None = None  # as the method noted when it last said that its assumption fails

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain data, for scripts."""
        plain = {k: v for k, v in vars(self).items() if k not in ("fits", "sensitivity", "verdicts", "reasons")}
        return {
            **plain,
            "reasons": dict(self.reasons),
            "fits": [
                {"outcome": f.outcome, "r2": f.r2, "coverage": f.coverage, "noise_share": f.noise_share}
                for f in self.fits
            ],
            "sensitivity": [vars(s) for s in self.sensitivity],
            "verdicts": [vars(v) for v in self.verdicts],
        }


@dataclass(frozen=True, eq=False)
class Models:
    """The fitted models of a history's outcomes and the view they were fitted to."""

    view: View
    by_outcome: dict[str, MahalanobisGP] = field(default_factory=dict)


def fit_models(
    history: History, space: Space, goals: Goals, *, method: Method | None = None, seed: int = 0
) -> Models | None:
    """One model per outcome in the embedding; None where there is no embedding or too little in it."""
    import torch

    from .models.gp import sample_gp

    seen = view(history, space, method, seed)
    if seen is None or len(seen.trials) < LEAST:
        return None
    wanted = [g.outcome for g in (*goals.objectives, *goals.constraints)]
    fitted = {}
    with reproducible(derive(seed, "diagnostics")):
        for outcome in dict.fromkeys(wanted):
            values = seen.values(outcome)
            if np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())):
                continue  # a constant: nothing to fit
            known = seen.variances(outcome)
            fitted[outcome] = sample_gp(
                torch.from_numpy(seen.Y),
                torch.from_numpy(values),
                variances=None if known is None else torch.from_numpy(known),
                seed=derive(seed, "diagnostics", outcome),
            )
    return Models(seen, fitted)


def cross_validate(Y: Array, values: Array, variances: Array | None = None, *, folds: int = 10, seed: int = 0) -> Fit:
    """Predict each point by a model fitted to the others: one at a time up to 20 points, in `folds` parts beyond.

    The metric is fitted anew every time. The cheap formula that keeps it calls an overfitted metric good.
    """
    import torch

    from .models.gp import sample_gp

    n = len(Y)
    parts = n if n <= 20 else folds if n <= 60 else max(3, folds // 2)
    order = generator(seed, "folds").permutation(n)
    predicted, sd, noise = np.empty(n), np.empty(n), []
    for i in range(parts):
        out = order[i::parts]
        kept = np.setdiff1d(order, out)
        if np.ptp(values[kept]) <= 1e-12 * max(1.0, float(np.abs(values[kept]).max())):
            predicted[out], sd[out] = values[kept].mean(), 1e-12
            continue
        with reproducible(derive(seed, "fold", i)):
            model = sample_gp(
                torch.from_numpy(Y[kept]),
                torch.from_numpy(values[kept]),
                variances=None if variances is None else torch.from_numpy(variances[kept]),
                seed=derive(seed, "fold", i),
            )
            posterior = model.posterior(torch.from_numpy(Y[out]).unsqueeze(-2))
            average = float(model.noise.mean()) * model.scale**2
        extra = average if variances is None else variances[out]
        predicted[out] = posterior.mean.detach().numpy().reshape(-1)
        sd[out] = np.sqrt(np.maximum(posterior.variance.detach().numpy().reshape(-1), 0.0) + extra)
        noise.append(average)
    total = float(np.var(values))
    r2 = 1.0 - float(np.mean((values - predicted) ** 2)) / total if total > 0 else math.nan
    coverage = float(np.mean(np.abs(values - predicted) <= 1.959964 * sd))
    return Fit("", values, predicted, sd, r2, coverage, float(np.mean(noise)) / total if noise and total > 0 else 0.0)


def effective_rank(gamma: Array) -> float:
    """How many directions a metric really uses: the participation ratio of its eigenvalues, 1 to d.  d x d"""
    eigenvalues = np.maximum(np.linalg.eigvalsh(gamma), 0.0)
    total = eigenvalues.sum()
    return float(total**2 / (eigenvalues**2).sum()) if total > 0 else math.nan


def slopes(model: MahalanobisGP, Y: Array) -> Array:
    """The gradient of the mean under each sampled metric, in the outcome's units.  k x d -> m x k x d"""
    T, alphas, variances = (t.detach().numpy() for t in (model.Y, model.data.alpha, model.variance))  # n x d, m x n, m
    out = []
    for U, alpha, variance in zip(model.U.detach().numpy(), alphas, variances, strict=True):
        k = variance * np.exp(-0.5 * _squared(Y @ U.T, T @ U.T)) * alpha  # k x n
        out.append(model.scale * (k @ T - k.sum(axis=1, keepdims=True) * Y) @ (U.T @ U))
    return np.stack(out)


def _squared(P: Array, Q: Array) -> Array:
    both: Array = (P**2).sum(axis=1)[:, None] + (Q**2).sum(axis=1)[None, :] - 2.0 * P @ Q.T
    return np.maximum(both, 0.0)


def sensitivity(model: MahalanobisGP, seen: View, space: Space, *, seed: int = 0) -> tuple[Sensitivity, ...]:
    """How much of the model's slope points along each named parameter, the largest first.

    In orthonormal coordinates of the subspace, C = mean of grad grad', and the share of a parameter is q' C q / tr C with
    q its row of the basis: the part of the slope that lies along it. Shares add up to one. A small embedding mixes many
    parameters into each direction, so `chance` says how often a direction that has nothing to do with the function gets
    a share as large.
    """
    Q, R = np.linalg.qr(seen.embedding.A)  # A = Q R: slopes by y = A^+ x become slopes along Q
    points = np.concatenate([seen.Y, seen.embedding.domain.sample(200, derive(seed, "slopes"))])
    G = np.linalg.solve(R.T, slopes(model, points).swapaxes(-1, -2)).swapaxes(-1, -2)  # m x k x d, along Q
    C = np.einsum("mki,mkj->mij", G, G)
    C /= np.maximum(np.einsum("mii->m", C), 1e-300)[:, None, None]
    by_column = np.einsum("ji,mik,jk->mj", Q, C, Q)  # m x D
    middle = C.mean(axis=0)
    norms = np.einsum("ji,ji->j", Q, Q)
    u = generator(seed, "directions").standard_normal((20000, Q.shape[1]))
    by_luck = np.sort(np.einsum("ki,ij,kj->k", u, middle, u) / (u**2).sum(axis=1))
    out, at = [], 0
    for p in space.parameters:
        width = len(p.choices) if isinstance(p, Categorical) else int(not isinstance(p, Fixed))
        if width:
            shares = by_column[:, at : at + width].sum(axis=1)
            angle = float(shares.mean()) / max(float(norms[at : at + width].sum()), 1e-300)
            chance = 1.0 - float(np.searchsorted(by_luck, angle)) / len(by_luck)
            low, high = np.quantile(shares, [0.05, 0.95])
            out.append(Sensitivity(p.name, float(shares.mean()), float(low), float(high), chance))
        at += width
    return tuple(sorted(out, key=lambda s: -s.share))


def boundary_share(seen: View) -> float | None:
    """The share of the later half of the proposals that lie on a face of the polytope."""
    later = seen.Y[len(seen.Y) // 2 :]
    if len(later) < 5:
        return None
    return float(np.mean(seen.embedding.domain.slack(later).min(axis=-1) < ON_A_FACE))


def outward_pull(model: MahalanobisGP, seen: View, goals: Goals) -> float | None:
    """How steeply the model still falls at the best point, against its typical slope; None where the best is inside.

    On a face of the polytope a slope that is not nearly zero points out of it: the function wants to leave the embedding.
    """
    best = int(np.argmin([goals.objective_values(t.outcomes)[0] for t in seen.trials]))
    y = seen.Y[best : best + 1]
    if seen.embedding.domain.slack(y).min() >= ON_A_FACE:
        return None
    R = np.linalg.qr(seen.embedding.A)[1]
    G = np.linalg.solve(R.T, slopes(model, np.concatenate([y, seen.Y])).swapaxes(-1, -2)).swapaxes(-1, -2)
    typical = float(np.sqrt((G[:, 1:] ** 2).sum(axis=-1).mean()))
    return float(np.linalg.norm(G[:, 0].mean(axis=0)) / typical) if typical > 0 else None


def diagnose(
    history: History,
    space: Space,
    goals: Goals,
    *,
    method: Method | None = None,
    seed: int = 0,
    models: Models | None = None,
) -> Diagnosis:
    """Everything that can be said about a run from its history and the method's view; `models` saves fitting again."""
    complete = history.complete
    infeasible = sum(not goals.feasible(t.outcomes) for t in complete)
    reasons = Counter((t.reason or "no reason given").splitlines()[0][:120] for t in history.failed)
    common: dict[str, Any] = {
        "n": len(complete),
        "failed": len(history.failed),
        "infeasible": infeasible,
        "reasons": tuple(reasons.most_common(3)),
        "since_improvement": _since_improvement(history, goals, space),
        "D": space.dimension,
        "method": "" if method is None else method.name,
        "grows": getattr(method, "name", "") == "alebo" and getattr(method, "dim", 0) is None,
        "unexplained": _unexplained(history),
    }
    found = fit_models(history, space, goals, method=method, seed=seed) if models is None else models
    if found is None or not found.by_outcome:
        bare = Diagnosis(**common)
        return Diagnosis(**common, verdicts=verdicts(bare))
    seen = found.view
    fits = []
    for outcome in found.by_outcome:
        with_name = vars(cross_validate(seen.Y, seen.values(outcome), seen.variances(outcome), seed=seed))
        fits.append(Fit(**{**with_name, "outcome": outcome}))
    first = next(iter(found.by_outcome.values()))
    in_Q = np.linalg.qr(seen.embedding.A)[1]
    metrics = [np.linalg.solve(in_Q.T, np.linalg.solve(in_Q.T, g).T) for g in first.gamma.detach().numpy()]
    ranks = np.array([effective_rank(g) for g in metrics])
    spectra = [np.linalg.eigvalsh(g) for g in metrics]
    directions = round(float(np.median([(e > 0.01 * e.max()).sum() for e in spectra])))
    pull = outward_pull(first, seen, goals) if goals.single and not goals.constraints else None
    common |= {
        "pull": pull,
        "since_growth": _since_growth(seen),
        "dim": seen.embedding.dim,
        "fits": tuple(fits),
        "boundary_share": boundary_share(seen),
        "rank": float(np.median(ranks)),
        "rank_low": float(np.quantile(ranks, 0.05)),
        "rank_high": float(np.quantile(ranks, 0.95)),
        "directions": directions,
        "containment": _containment(space.dimension, directions, seen.embedding.dim),
        "sensitivity": sensitivity(first, seen, space, seed=seed),
    }
    return Diagnosis(**common, verdicts=verdicts(Diagnosis(**common)))


def _unexplained(history: History) -> float | None:
    """What the model left open, where the last ask noted that a few linear directions do not explain the function."""
    last = history.last_note("unexplained")
    return float(last["unexplained"]) if "assumption" in last else None


def _since_growth(seen: View) -> int | None:
    sizes = [len(t.y) for t in seen.trials if t.y is not None]
    return sizes.count(seen.embedding.dim) if sizes and min(sizes) < seen.embedding.dim else None


def _containment(D: int, active: int, dim: int) -> float | None:
    """The chance that an embedding of this size contains an optimum, if as many parameters matter as directions do."""
    from .geometry.advice import probability

    return probability(D, active, dim) if 1 <= active <= min(dim, 10) and D <= 5000 else None


def _since_improvement(history: History, goals: Goals, space: Space) -> int | None:
    if not goals.single:
        return None
    best, since = math.inf, None
    for t in history:
        good = t.complete and goals.feasible(t.outcomes) and space.at_target(t.params)
        if good and float(goals.objective_values(t.outcomes)[0]) < best:
            best, since = float(goals.objective_values(t.outcomes)[0]), 0
        elif since is not None and t.state.value != "pending":
            since += 1
    return since


# -- verdicts: pure rules on the numbers ------------------------------------------------------------------------------


def verdicts(d: Diagnosis) -> tuple[Verdict, ...]:
    """Plain words for the numbers, the warnings first."""
    rules = (
        _failures, _feasibility, _early, _fit, _assumption, _calibration, _noise, _faces, _rank, _contains, _stalled, _parameters,
    )  # fmt: skip
    said = [v for rule in rules for v in rule(d)]
    order = {"warning": 0, "note": 1, "good": 2}
    return tuple(sorted(said, key=lambda v: order[v.level]))


def _failures(d: Diagnosis) -> Sequence[Verdict]:
    share = d.failed / max(1, d.n + d.failed)
    if d.failed < 3 or share < 0.2:
        return ()
    why = f" Most often: {d.reasons[0][0]}." if d.reasons else ""
    return [
        Verdict("failures", "warning", f"{share:.0%} of the evaluations failed ({d.failed} of {d.n + d.failed}).{why}")
    ]


def _feasibility(d: Diagnosis) -> Sequence[Verdict]:
    if d.n >= 20 and d.infeasible == d.n:
        return [
            Verdict(
                "infeasible",
                "warning",
                f"None of {d.n} evaluations satisfies the constraints. Loosen a bound, or tell a point that is known to "
                "satisfy them.",
            )
        ]
    if d.n >= 20 and d.infeasible > 0.8 * d.n:
        return [
            Verdict(
                "infeasible",
                "note",
                f"{d.infeasible} of {d.n} evaluations break a constraint: the feasible part is small.",
            )
        ]
    return ()


def _early(d: Diagnosis) -> Sequence[Verdict]:
    if not d.fits:
        if d.method and d.method != "alebo":
            words = f"{d.method} keeps no linear embedding, so there is no model of it to judge."
            return [Verdict("no_model", "note", words)]
        words = f"With {d.n} evaluations there is too little to judge a model by. Come back later."
        return [Verdict("early", "note", words)]
    if d.since_growth is not None and d.since_growth < SETTLED:
        words = (
            f"The embedding grew to {d.dim} dimensions {d.since_growth} evaluations ago: the model has yet to learn the new "
            "directions, and its fit is not judged."
        )
        return [Verdict("early", "note", words)]
    if not _enough(d) and d.dim is not None:
        words = (
            f"{d.n} evaluations are few for an embedding of {d.dim} dimensions, whose model has {_unknowns(d.dim)} unknowns: "
            "what it says may still change, and its fit is not judged yet."
        )
        return [Verdict("early", "note", words)]
    return ()


def _unknowns(dim: int) -> int:
    return dim * (dim + 1) // 2 + 3


def _enough(d: Diagnosis) -> bool:
    """Whether there are data enough to judge a model: as many as unknowns, or eight for each dimension, and no new ones."""
    if d.since_growth is not None and d.since_growth < SETTLED:
        return False
    return d.dim is not None and d.n >= max(25, min(_unknowns(d.dim), 8 * d.dim))


def _fit(d: Diagnosis) -> Sequence[Verdict]:
    out = []
    for f in d.fits:
        share = f"{max(0.0, f.r2):.0%}".replace("%", " %")
        if _enough(d) and f.r2 < 0.3:
            more = f"dim={min(d.D, 2 * (d.dim or 4))}" if not d.grows else "more evaluations"
            out.append(
                Verdict(
                    "poor_fit",
                    "warning",
                    f"The model explains {share} of the variation of {f.outcome!r} after {d.n} evaluations: a linear "
                    f"embedding is probably wrong here, or measurements are very noisy. Try {more}, a method that needs no "
                    'embedding (method name = "turbo"), or check a repeated evaluation for noise.',
                )
            )
        elif f.r2 >= 0.7 and len(f.observed) >= 15:
            out.append(Verdict("good_fit", "good", f"The model explains {share} of the variation of {f.outcome!r}."))
    return out


def _assumption(d: Diagnosis) -> Sequence[Verdict]:
    if d.unexplained is None:
        return ()
    return [
        Verdict(
            "assumption",
            "warning",
            f"The method's assumption fails here: a few directions of a linear embedding leave {d.unexplained:.0%} of the "
            f"variation unexplained after {d.n} evaluations (or there is more noise than the model believes in). The best "
            "point is taken as measured. Try a local search, such as turbo or cmaes.",
        )
    ]


def _calibration(d: Diagnosis) -> Sequence[Verdict]:
    out = []
    for f in d.fits:
        n = len(f.observed)
        # at most 5 % outside is the promise; beyond chance (three standard errors) and by a margin is a warning
        if _enough(d) and f.coverage < min(0.85, 0.95 - 3.0 * math.sqrt(0.95 * 0.05 / n)):
            out.append(
                Verdict(
                    "overconfident",
                    "warning",
                    f"The model of {f.outcome!r} is too sure of itself: {f.coverage:.0%} of the values lie in their 95 % "
                    "interval. Expect surprises; a jump or a cliff in the function does this.",
                )
            )
    return out


def _noise(d: Diagnosis) -> Sequence[Verdict]:
    return [
        Verdict(
            "noisy",
            "note",
            f"About {min(1.0, f.noise_share):.0%} of the variation of {f.outcome!r} looks like noise. Telling standard errors "
            "(value, error) helps the model; the best point is chosen by the model, not by the luckiest measurement.",
        )
        for f in d.fits
        if _enough(d) and f.noise_share > 0.2
    ]


def _faces(d: Diagnosis) -> Sequence[Verdict]:
    # proposals on faces are common (directions that do not matter end there); a slope left at the best point is not
    if d.boundary_share is None or d.boundary_share <= 0.5 or d.pull is None or d.pull < 0.3 or not _enough(d):
        return ()
    way = "give it more evaluations to grow" if d.grows else "leave dim out, so that it grows, or choose a larger one"
    return [
        Verdict(
            "faces",
            "warning",
            f"The best point lies on a face of the polytope, where the model still falls ({d.pull:.0%} of its typical "
            f"slope), and so do {d.boundary_share:.0%} of the later proposals: the function wants to leave this embedding. "
            f"Try another seed, or {way}; wider parameter bounds may help, too.",
        )
    ]


def _rank(d: Diagnosis) -> Sequence[Verdict]:
    if d.rank is None or d.dim is None or not _enough(d) or d.dim < 3:
        return ()
    if d.rank_low is not None and d.rank_low > 0.7 * d.dim:
        return [
            Verdict(
                "full_rank",
                "note",
                f"Gamma uses {d.rank:.1f} of its {d.dim} directions: all of them seem to matter, and more may be missing.",
            )
        ]
    return ()


def _contains(d: Diagnosis) -> Sequence[Verdict]:
    if d.containment is None or d.containment >= 0.5 or d.directions is None or not _enough(d):
        return ()
    return [
        Verdict(
            "containment",
            "note" if d.grows else "warning",
            f"If {d.directions} parameters matter, a random embedding of {d.dim} of {d.D} dimensions contains an "
            f"optimum with a chance of {d.containment:.0%} only. "
            + (
                "It grows when it stops finding improvements."
                if d.grows
                else "A larger dim, or none (it grows), is safer."
            ),
        )
    ]


def _stalled(d: Diagnosis) -> Sequence[Verdict]:
    if d.since_improvement is None or d.since_improvement < max(20, (d.n + d.failed) // 3):
        return ()
    return [
        Verdict(
            "stalled",
            "note",
            f"No improvement in the last {d.since_improvement} evaluations. It may have converged: stop, or check with another "
            "seed.",
        )
    ]


def _parameters(d: Diagnosis) -> Sequence[Verdict]:
    if not d.sensitivity or not d.fits or d.fits[0].r2 < 0.3:
        return ()
    clear = [s for s in d.sensitivity if s.chance < 0.05 / len(d.sensitivity)]
    if clear:
        names = ", ".join(s.name for s in clear[:8]) + (", ..." if len(clear) > 8 else "")
        return [Verdict("parameters", "good", f"These parameters matter beyond chance: {names}.")]
    return [
        Verdict(
            "parameters_unclear",
            "note",
            f"An embedding of {d.dim} dimensions mixes {d.D} parameters too much to say for certain which ones matter; the "
            "list is an ordering of suspects.",
        )
    ]
