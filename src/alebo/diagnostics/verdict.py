"""What follows from the numbers: plain rules, and their words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .diagnosis import Diagnosis

AFTER_GROWTH = 15  # completed trials after a growth, before which the fit in the new directions is not judged


@dataclass(frozen=True)
class Verdict:
    """One statement about a run. `key` names the rule; `level` is good, note or warning."""

    key: str
    level: str
    text: str


def verdicts(d: Diagnosis) -> tuple[Verdict, ...]:
    """Plain words for the numbers, the warnings first."""
    rules = (
        _failures, _feasibility, _early, _fit, _assumption, _calibration, _noise, _faces, _rank, _contains, _stalled, _parameters, _arms,
        _approximation, _sources,
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
                f"None of {d.n} evaluations satisfies the constraints. Loosen a bound, or report a point that is known to "
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
        if not d.modelled:
            words = f"{d.title or d.method} has no model of the whole space, so there is none to judge."
            return [Verdict("no_model", "note", words)]
        words = f"With {d.n} evaluations there is no model to judge yet."
        return [Verdict("early", "note", words)]
    if d.since_growth is not None and d.since_growth < AFTER_GROWTH:
        words = (
            f"The embedding grew to {d.dim} dimensions {d.since_growth} evaluations ago: the model has yet to learn the new "
            "directions, and its fit is not judged."
        )
        return [Verdict("early", "note", words)]
    if not _enough(d) and d.dim is None:
        words = f"{d.n} evaluations are few: what the model says may still change, and its fit is not judged yet."
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
    if d.since_growth is not None and d.since_growth < AFTER_GROWTH:
        return False
    return d.n >= (25 if d.dim is None else max(25, min(_unknowns(d.dim), 8 * d.dim)))


def _fit(d: Diagnosis) -> Sequence[Verdict]:
    out = []
    for f in d.fits:
        share = f"{max(0.0, f.r2):.0%}".replace("%", " %")
        if _enough(d) and f.r2 < 0.3:
            more = f"dim={min(d.D, 2 * (d.dim or 4))}" if not d.grows else "more evaluations"
            why = "a linear embedding is probably wrong here, or measurements are very noisy. Try " + more
            why += ', a method that needs no embedding (method name = "turbo")'
            if d.dim is None:
                why = "the function may be rough, or measurements very noisy. Try more evaluations"
            words = f"The model explains {share} of the variation of {f.outcome!r} after {d.n} evaluations: {why}, or check a "
            out.append(Verdict("poor_fit", "warning", words + "repeated evaluation for noise."))
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
            f"variation unexplained after {d.n} evaluations (or there is more noise than the model infers). The best "
            "point is taken as measured. Try a local search, such as turbo or cmaes.",
        )
    ]


def _arms(d: Diagnosis) -> Sequence[Verdict]:
    return () if d.finding is None else [Verdict("arms", "note", d.finding)]


def _approximation(d: Diagnosis) -> Sequence[Verdict]:
    return () if d.approximation is None else [Verdict("approximation", "note", d.approximation)]


def _sources(d: Diagnosis) -> Sequence[Verdict]:
    return [Verdict("sources", "note", str(source)) for source in d.learned]


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
            f"About {min(1.0, f.noise_share):.0%} of the variation of {f.outcome!r} looks like noise. Reporting standard errors "
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
            f"slope), and so do {d.boundary_share:.0%} of the later proposals: better points probably lie outside this embedding. "
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
    if not d.importance:
        return ()
    clear = [s for s in d.importance if s.certain]
    if clear:
        names = ", ".join(s.name for s in clear[:8]) + (", ..." if len(clear) > 8 else "")
        return [Verdict("parameters", "good", f"These parameters matter beyond chance: {names}.")]
    if not _enough(d):
        return ()
    return [
        Verdict(
            "parameters_unclear",
            "note",
            f"After {d.n} evaluations it is not certain which of {len(d.importance)} parameters matter; the chart lists the "
            "most likely ones.",
        )
    ]
