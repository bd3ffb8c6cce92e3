"""Goals: what is wanted of the outcomes. Signs, feasibility and the Pareto front are defined here and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._checks import listed
from ._errors import InputError

Array: TypeAlias = NDArray[np.float64]


class Outcome(NamedTuple):
    """One measured number and, where known, its standard error.

    Args:
        mean: The measured number.
        sem: Its standard error; None where it is not known.
    """

    mean: float
    sem: float | None = None


@dataclass(frozen=True)
class Minimize:
    """Make this outcome small; `reference` is the worst value of interest when there are several objectives.

    Args:
        outcome: The name of the outcome.
        reference: Its worst value of interest, for the hypervolume; None: derived from the front.
    """

    outcome: str
    reference: float | None = None
    sign: ClassVar[float] = 1.0  # times the outcome is what is minimised


@dataclass(frozen=True)
class Maximize:
    """Make this outcome large; `reference` is the worst value of interest when there are several objectives.

    Args:
        outcome: The name of the outcome.
        reference: Its worst value of interest, for the hypervolume; None: derived from the front.
    """

    outcome: str
    reference: float | None = None
    sign: ClassVar[float] = -1.0


MOST = 1e300  # size of a violation: some of them can be added


class _Bounded:
    """What AtMost and AtLeast share: a constraint reads g = sign * (outcome - bound) <= 0, and only here."""

    bound: float
    sign: ClassVar[float]

    def violation(self, value: Any) -> Any:
        """How far an outcome (a number or an array) is on the wrong side of the bound; at most 0 where it is not."""
        with np.errstate(over="ignore"):
            amount = (value - self.bound) * self.sign
        return np.clip(amount, -MOST, MOST) if np.any(np.abs(amount) > MOST) else amount

    def value(self, violation: Any) -> Any:
        """The outcome that has this violation: the inverse of `violation`."""
        return self.sign * violation + self.bound


@dataclass(frozen=True)
class AtMost(_Bounded):
    """A point is feasible only where this outcome, measured with the others, does not exceed `bound`.

    Args:
        outcome: The name of the outcome.
        bound: The largest value that is feasible.
    """

    outcome: str
    bound: float
    sign: ClassVar[float] = 1.0


@dataclass(frozen=True)
class AtLeast(_Bounded):
    """A point is feasible only where this outcome, measured with the others, reaches `bound`.

    Args:
        outcome: The name of the outcome.
        bound: The smallest value that is feasible.
    """

    outcome: str
    bound: float
    sign: ClassVar[float] = -1.0


@dataclass(frozen=True)
class Cost:
    """What an evaluation consumed (seconds, money): proposals then maximise improvement per unit of it.

    Args:
        outcome: The name of the outcome.
    """

    outcome: str


def _is_finite(value: Any) -> bool:
    try:
        return not isinstance(value, str | bytes | bool) and math.isfinite(value)
    except (TypeError, OverflowError):
        return False


Goal: TypeAlias = Minimize | Maximize | AtMost | AtLeast | Cost


class Goals:
    """All goals of a study. Inside the package every objective is minimised and every constraint reads `g <= 0`.

    Args:
        goals: One goal or more, at least one of them Minimize or Maximize.
    """

    def __init__(self, goals: Sequence[Goal] | Goal) -> None:
        one = isinstance(goals, Minimize | Maximize | AtMost | AtLeast | Cost)
        rule = "Goals are Minimize, Maximize, AtMost, AtLeast and Cost, one or a list of them"
        way = f"Write Minimize({goals!r:.60})." if isinstance(goals, str) else "Write Minimize('loss'), say."
        self.goals: tuple[Goal, ...] = (goals,) if one else listed(goals, rule, way)
        for g in self.goals:
            if not isinstance(g, Minimize | Maximize | AtMost | AtLeast | Cost):
                raise InputError(
                    f"Goals are Minimize, Maximize, AtMost, AtLeast and Cost; got {g!r}. Write Minimize('loss'), say."
                )
        self.objectives: tuple[Minimize | Maximize, ...] = tuple(
            g for g in self.goals if isinstance(g, Minimize | Maximize)
        )
        self.constraints: tuple[AtMost | AtLeast, ...] = tuple(g for g in self.goals if isinstance(g, AtMost | AtLeast))
        costs = tuple(g for g in self.goals if isinstance(g, Cost))
        self.cost: Cost | None = costs[0] if costs else None
        if not self.objectives:
            raise InputError("Goals need one objective or more; got none. Add Minimize(...) or Maximize(...).")
        if len(costs) > 1:
            raise InputError(f"One Cost at most; got {[c.outcome for c in costs]}. Add them up into one outcome.")
        names = [g.outcome for g in self.objectives]
        if len(set(names)) < len(names):
            raise InputError(f"Each objective is a different outcome; got {names}. Remove the repeated one.")
        for g in self.goals:
            if not isinstance(g.outcome, str) or not g.outcome:
                raise InputError(f"An outcome's name is a text; got {g.outcome!r:.60}. Write Minimize('loss'), say.")
        for c in self.constraints:
            if not _is_finite(c.bound):
                raise InputError(
                    f"A bound is a finite number; {c.outcome!r} has {c.bound!r:.60}. Drop the goal if any value will do."
                )
        for g in self.objectives:
            if g.reference is not None and not _is_finite(g.reference):
                raise InputError(
                    f"A reference is a finite number or None; {g.outcome!r} has {g.reference!r:.60}. Leave it out."
                )
        self._check_contradictions()
        self.outcomes: tuple[str, ...] = tuple(dict.fromkeys(g.outcome for g in self.goals))

    def _check_contradictions(self) -> None:
        for name in {c.outcome for c in self.constraints}:
            tops = [c.bound for c in self.constraints if c.outcome == name and isinstance(c, AtMost)]
            bottoms = [c.bound for c in self.constraints if c.outcome == name and isinstance(c, AtLeast)]
            if tops and bottoms and max(bottoms) > min(tops):
                raise InputError(
                    f"Constraints must leave some values; {name!r} is at least {max(bottoms)} and at most {min(tops)}. "
                    "Loosen one of the two."
                )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Goals) and self.goals == other.goals

    def __hash__(self) -> int:
        return hash(self.goals)

    def __repr__(self) -> str:
        return f"Goals({list(self.goals)!r})"

    @property
    def single(self) -> bool:
        """Whether there is exactly one objective."""
        return len(self.objectives) == 1

    def sign(self, outcome: str) -> float:
        """+1 where the outcome itself is minimised, -1 where its negative is (Maximize).

        Args:
            outcome: The name of an outcome.

        Returns:
            The sign.
        """
        return next((g.sign for g in self.objectives if g.outcome == outcome), 1.0)

    def read(self, raw: Any) -> dict[str, Outcome]:
        """The outcomes of an evaluation, checked: a number for one outcome, or a mapping of numbers or (mean, sem) pairs.

        Args:
            raw: What the evaluation returned.

        Returns:
            The outcomes by name.
        """
        if not isinstance(raw, Mapping):
            if len(self.outcomes) > 1:
                raise InputError(
                    f"A mapping of outcomes is needed for {list(self.outcomes)}; got {raw!r:.60}. "
                    f"Write {{{', '.join(repr(n) + ': ...' for n in self.outcomes)}}}."
                )
            if isinstance(raw, list):  # a pair is a tuple; a list is a function that returned a vector
                raise InputError(
                    f"Outcome {self.outcomes[0]!r} must be one number; got a list of {len(raw)}. Return one finite "
                    "number, or the pair (mean, standard error) as a tuple."
                )
            raw = {self.outcomes[0]: raw}
        missing = [n for n in self.outcomes if n not in raw]
        extra = [n for n in raw if n not in self.outcomes]
        if missing or extra:
            raise InputError(
                f"The reported outcomes must be exactly {list(self.outcomes)}; missing {missing}, unknown {extra}. "
                "Tell them all at once, or call fail for an evaluation that did not finish."
            )
        read = {name: _outcome(name, raw[name]) for name in self.outcomes}
        if self.cost is not None and (spent := read[self.cost.outcome].mean) <= 0.0:
            raise InputError(
                f"A cost must be positive; {self.cost.outcome!r} has {spent}. Tell what the evaluation consumed, however "
                "little it was."
            )
        return read

    def objective_values(self, outcomes: Mapping[str, Outcome]) -> Array:
        """The objectives, all to be minimised.  -> m

        Args:
            outcomes: What was measured, by name.

        Returns:
            m values.
        """
        return np.array([g.sign * outcomes[g.outcome].mean for g in self.objectives])

    def violations(self, outcomes: Mapping[str, Outcome]) -> Array:
        """How far each constraint is exceeded; at most zero where it holds.  -> c

        Args:
            outcomes: What was measured, by name.

        Returns:
            c values.
        """
        return np.array([c.violation(outcomes[c.outcome].mean) for c in self.constraints])

    def feasible(self, outcomes: Mapping[str, Outcome]) -> bool:
        """Whether the measured outcomes satisfy every constraint.

        Args:
            outcomes: What was measured, by name.

        Returns:
            True where all hold.
        """
        return bool(np.all(self.violations(outcomes) <= 0.0))


def pareto(values: Array) -> NDArray[np.bool_]:
    """Which rows no other row beats in every column (all minimised); of equal rows the first stays.  n x m -> n"""
    keep = np.ones(len(values), dtype=bool)
    for i, v in enumerate(values):
        better = np.all(values <= v, axis=1) & np.any(values < v, axis=1)
        same = np.all(values == v, axis=1)
        same[i:] = False
        keep[i] = not (better.any() or same.any())
    return keep


def hypervolume_trace(points: Array, reference: Array) -> Array:
    """The volume that the points so far dominate below the reference (all minimised).  n x m -> n"""
    out, kept = np.zeros(len(points)), np.zeros((0, points.shape[1]))
    for i, p in enumerate(points):
        if not np.isnan(p).any() and np.all(p < reference):
            beaten = np.all(kept <= p, axis=1).any()
            if not beaten:
                kept = np.vstack([kept[~np.all(kept >= p, axis=1)], p])
        out[i] = _hypervolume(kept, reference)
    return out


def _hypervolume(front: Array, reference: Array) -> float:
    if not len(front):
        return 0.0
    order = front[np.argsort(front[:, 0])]
    if front.shape[1] == 1:
        return float(reference[0] - order[0, 0])
    # slices along the first objective: between two points, all up to the first of them are on the front of the others
    edges = np.append(order[1:, 0], reference[0])
    total = 0.0
    for i, (left, right) in enumerate(zip(order[:, 0], edges, strict=True)):
        if right > left:
            total += float(right - left) * _hypervolume(
                np.unique(order[: i + 1, 1:][pareto(order[: i + 1, 1:])], axis=0), reference[1:]
            )
    return total


def _outcome(name: str, value: Any) -> Outcome:
    way_out = "Return one finite number (or a pair: mean, standard error); call fail for an evaluation that broke."
    sem: float | None = None
    if isinstance(value, Outcome):
        value, sem = value
    elif isinstance(value, tuple | list) and len(value) == 2:
        value, sem = value[0], value[1]
    try:
        if value is None or isinstance(value, str | bytes) or np.iscomplexobj(value) or np.ma.is_masked(value):
            raise TypeError
        array = np.asarray(value, dtype=float)
        mean = float(array) if array.ndim == 0 else float(array.item()) if array.size == 1 else math.nan
        vector = array.size != 1
        sem = None if sem is None else float(sem)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(f"Outcome {name!r} must be a number; got {value!r:.60}. {way_out}") from None
    if vector:
        raise InputError(f"Outcome {name!r} must be one number; got an array of shape {array.shape}. {way_out}")
    if not math.isfinite(mean):
        raise InputError(f"Outcome {name!r} must be finite; got {mean}. {way_out}")
    if sem is not None and not (math.isfinite(sem) and sem >= 0.0):
        raise InputError(f"A standard error must be finite and not negative; {name!r} has {sem}. {way_out}")
    return Outcome(mean, sem)
