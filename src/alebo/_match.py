"""Matching the rows of an earlier study with the parameters and outcomes of the present one, by name."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._errors import InputError
from ._tasks import Task
from .goals import Goals, Outcome
from .models.outcomes import thinned
from .parameters import Categorical, Fixed, Float, Int
from .space import Space

Array: TypeAlias = NDArray[np.float64]

MOST = 300  # evaluations of a source that are learned from: the best of them, and as many of all the others
HELD = 4000  # rows held at a time while a long file is read
FARTHEST = 3.0  # half widths of a range from its middle beyond which a point is left out
SEM = "_sem"  # after the name of an outcome: its standard error
_VALUE = re.compile(r"\s*([^\s±]+?)\s*(?:(?:\+-|\+/-|±)\s*(\S+)\s*)?")


@dataclass(frozen=True, eq=False)
class Row:
    """One evaluation of an earlier study."""

    params: Mapping[str, Any]
    outcomes: Mapping[str, Outcome]
    complete: bool

    def param(self, name: str, p: Any) -> Any:
        """The value of a parameter."""
        return self.params.get(name)

    def outcome(self, name: str) -> Outcome | None:
        """What was measured; None where nothing was."""
        return self.outcomes.get(name)


class Text(Row):
    """One row of a table, by column: of text, or of the values of a DataFrame."""

    def __init__(self, cells: Mapping[str, Any], *, comma: bool = False, where: str = "") -> None:
        state = str(cells.get("state") or "complete").strip().lower()
        super().__init__(cells, {}, state == "complete")
        object.__setattr__(self, "comma", comma)
        object.__setattr__(self, "where", where)

    def param(self, name: str, p: Any) -> Any:
        """The value of a parameter: a number, or the choice that is written so."""
        value = self.params.get(name)
        if isinstance(p, Categorical):
            same = [c for c in p.choices if c == value]
            if not same and value is not None:
                same = [c for c in p.choices if str(c) == str(value).strip().removeprefix("'")]
            return same[0] if same else value
        if isinstance(value, str) and isinstance(p, Float | Int):
            return self._number(value, name)
        return value

    def outcome(self, name: str) -> Outcome | None:
        """What was measured: a number, or `0.31 ± 0.02`; the error may have a column of its own."""
        value, sem = self.params.get(name), self.params.get(name + SEM)
        if isinstance(value, str):
            found = _VALUE.fullmatch(value)
            if found is None or not value.strip():
                return None if not value.strip() else Outcome(self._number(value, name))
            value, sem = self._number(found.group(1), name), found.group(2) or sem
        if value is None:
            return None
        error = self._number(sem, name + SEM) if isinstance(sem, str) and sem.strip() else sem
        known = isinstance(error, int | float) and not math.isnan(error)
        return Outcome(float(value), float(error) if known else None)  # type: ignore[arg-type]

    def _number(self, text: str, column: str) -> float:
        try:
            return float(text.replace(",", ".") if getattr(self, "comma", False) else text)
        except ValueError:
            where = getattr(self, "where", "")
            at = f"{where}, " if where else ""
            raise InputError(
                f"{at}column {column!r} holds numbers; got {text!r:.40}. Correct it, or empty the cell."
            ) from None


class Matcher:
    """What the names of the present study are called in a source, and what they were where it does not have them."""

    def __init__(
        self,
        name: str,
        space: Space,
        goals: Goals,
        given: Mapping[str, Any],
        columns: Mapping[str, str],
        file: str | None = None,
    ) -> None:
        self.name, self.space, self.goals, self.file = name, space, goals, file
        self.given, self.columns = dict(given), dict(columns)
        for where, names, known in (
            ("given", self.given, space.names),
            ("columns", self.columns, (*space.names, *goals.outcomes)),
        ):
            for what in names:
                if what not in known:
                    near = difflib.get_close_matches(what, known, n=1)
                    way = f"Did you mean {near[0]!r}?" if near else f"It has {_listed(known)}."
                    raise self.wrong(
                        f"says something of {what!r}, which the present study does not have. {way} Correct the name in "
                        f"`{where}`, or leave it out there."
                    )
        for p in space.parameters:
            if p.name in self.given:
                try:
                    _coordinates(p, self.given[p.name])
                except (InputError, ValueError, TypeError) as error:
                    raise self.wrong(f"states a value of {p.name!r} that it cannot have: {error}") from None

    def wrong(self, what: str) -> InputError:
        """The error that names the source, and its file."""
        return InputError(f"The source {self.name!r}{f' ({self.file})' if self.file else ''} {what}")

    def task(self, rows: Iterable[Row], names: Sequence[str]) -> Task:
        """The evaluations that can be learned from; what is left out is said in the task."""
        said = self._names(names)
        measured = [o for o in self.goals.outcomes if self.columns.get(o, o) in names]
        kept: list[tuple[Array, list[Outcome]]] = []
        total = failed = unread = outside = 0
        for row in rows:
            total += 1
            found = [row.outcome(self.columns.get(o, o)) for o in measured] if row.complete else []
            if not row.complete or any(o is None or not _is_outcome(o) for o in found):
                failed += 1
                continue
            try:
                x = np.concatenate([self._place(p, row) for p in self.space.parameters])
            except (InputError, ValueError, TypeError, OverflowError):
                unread += 1
                continue
            if np.abs(x).max() > FARTHEST:
                outside += 1
                continue
            kept.append((x, [o for o in found if o is not None]))
            if len(kept) >= HELD:
                kept = self._thinned(kept, measured, HELD // 2)
        self._refuse_empty(total, failed, unread, outside, len(kept))
        counts = (
            (failed, "failed, were pending or have no finite outcome"),
            (unread, "have values that parameters cannot have"),
        )
        said += [f"{n} of {total} evaluations {why}, and are left out." for n, why in counts if n]
        if outside:
            said.append(f"{outside} of {total} evaluations lie far outside the present bounds, and are left out.")
        if total - failed - unread - outside > MOST:
            kept = self._thinned(kept, measured, MOST)
            said.append(f"{MOST} of {total} evaluations are learned from: the best, and some of all others.")
        return self._made(kept, measured, said)

    def _names(self, names: Sequence[str]) -> list[str]:
        """Refuse a source without what is needed; say what of it is left out."""
        free = [p.name for p in self.space.parameters if not isinstance(p, Fixed)]
        there = [n for n in free if self.columns.get(n, n) in names]
        if not there:
            raise self.wrong(
                f"has no parameter of the present study; it has {_listed(names)}, and the study {_listed(free)}. Say what they "
                'are called there: Source(..., columns={"gain": "old_gain"}).'
            )
        missing = [n for n in free if n not in there and n not in self.given]
        if missing:
            raise self.wrong(
                f"lacks {_listed(missing)}. Say which value each had there: Source(..., given={{{missing[0]!r}: ...}}), or in "
                f'study.toml: learn_from = [{{ path = "...", given = {{ {missing[0]} = ... }} }}].'
            )
        twice = [n for n in there if n in self.given]
        if twice:
            raise self.wrong(f"has values of {twice[0]!r}; `given` states another. Leave it out of `given`.")
        outcomes = [o for o in self.goals.outcomes if self.columns.get(o, o) in names]
        first = self.goals.objectives[0].outcome
        if first not in outcomes:
            raise self.wrong(
                f"has no outcome {first!r}, the objective of the present study; it has {_listed(names)}. Say what it is called "
                f'there: Source(..., columns={{{first!r}: "..."}}).'
            )
        said = [f"It has no {o!r}: that is learned here." for o in self.goals.outcomes if o not in outcomes]
        used = {self.columns.get(n, n) for n in (*self.space.names, *self.goals.outcomes)}
        used |= {o + SEM for o in used} | {"trial", "state", "reason", "check"}
        rest = [n for n in names if n not in used]
        if rest:
            said.append(f"{_listed(rest)} {'is' if len(rest) == 1 else 'are'} not in the present study, and left out.")
        return said + [f"{n!r} had the value {v!r} there." for n, v in self.given.items()]

    def _place(self, p: Any, row: Row) -> Array:
        if isinstance(p, Fixed):
            return np.zeros(0)
        value = self.given[p.name] if p.name in self.given else row.param(self.columns.get(p.name, p.name), p)
        return _coordinates(p, value)

    def _refuse_empty(self, total: int, failed: int, unread: int, outside: int, kept: int) -> None:
        if kept >= 2:
            return
        if total and failed == total:
            raise self.wrong(f"has {total} evaluations, none of them with finite outcomes. Leave it out.")
        raise self.wrong(
            f"has {kept} evaluations that can be learned from, of {total}: {failed} without finite outcomes, {unread} with "
            f"values that parameters cannot have, {outside} far outside the present bounds. Two are needed."
        )

    def _thinned(
        self, kept: list[tuple[Array, list[Outcome]]], measured: Sequence[str], most: int
    ) -> list[tuple[Array, list[Outcome]]]:
        """So many of the evaluations, in their order: the best, and as many again from all other ranks."""
        wrong, values = [], []
        for _, found in kept:
            by = dict(zip(measured, found, strict=True))
            values.append(self.goals.sign(self.goals.objectives[0].outcome) * by[self.goals.objectives[0].outcome].mean)
            wrong.append(any(c.violation(by[c.outcome].mean) > 0.0 for c in self.goals.constraints if c.outcome in by))
        order = np.lexsort((np.array(values), np.array(wrong)))
        return [kept[i] for i in sorted(thinned(order, most).tolist())]

    def _made(self, kept: list[tuple[Array, list[Outcome]]], measured: Sequence[str], said: list[str]) -> Task:
        means = {o: np.array([found[i].mean for _, found in kept]) for i, o in enumerate(measured)}
        first = self.goals.objectives[0].outcome
        if np.ptp(means[first]) <= 1e-12 * max(float(np.abs(means[first]).max()), 1e-300):
            raise self.wrong(
                f"has the same {first!r} in all of its {len(kept)} evaluations, {means[first][0]:g}: there is nothing to learn. "
                "Leave it out, or check its column."
            )
        flat = [o for o, v in means.items() if np.ptp(v) <= 1e-12 * max(float(np.abs(v).max()), 1e-300)]
        said += [f"Its {o!r} never changed: that is learned here." for o in flat]
        errors = {
            o: np.array([math.nan if found[i].sem is None else found[i].sem for _, found in kept], dtype=float)
            for i, o in enumerate(measured)
        }
        sems = {o: v for o, v in errors.items() if o not in flat and np.isfinite(v).any()}
        means = {o: v for o, v in means.items() if o not in flat}
        return Task(self.name, np.stack([x for x, _ in kept]), means, sems, tuple(said))


def _coordinates(p: Any, value: Any) -> Array:
    """Where a value lies, on the scale on which the present range is [-1, 1]; it may lie beyond.  -> 1, or one per choice"""
    if isinstance(p, Fixed):
        return np.zeros(0)
    if isinstance(p, Categorical):
        if value not in p.choices:
            raise InputError(f"{p.name!r} is one of {list(p.choices)!r:.60}; got {value!r:.40}.")
        out = np.full(len(p.choices), -1.0)
        out[p.choices.index(value)] = 1.0
        return out
    v, half = float(value), 0.5 if isinstance(p, Int) else 0.0
    if isinstance(p, Float) and p.gridded:
        half = 0.5 * (p.step or 0.0)
    low, high = p.low - half, p.high + half
    if not math.isfinite(v) or (p.log and v - (0.5 if isinstance(p, Int) else 0.0) <= 0.0):
        raise InputError(f"{p.name!r} is a finite number, on a log scale above 0; got {value!r:.40}.")
    if p.log:
        at = 0.5 * (math.log(v - 0.5) + math.log(v + 0.5)) if isinstance(p, Int) else math.log(v)
        low, high = math.log(low), math.log(high)
    else:
        at = v
    return np.array([2.0 * (at - low) / (high - low) - 1.0])


def _is_outcome(outcome: Outcome) -> bool:
    return math.isfinite(outcome.mean) and (outcome.sem is None or (math.isfinite(outcome.sem) and outcome.sem >= 0.0))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:4])) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
