"""The history of a study: its trials and what they gave. Everything else, the incumbent included, is derived from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from . import _show
from ._tasks import Task
from .goals import Goals, Outcome
from .space import Space

Array: TypeAlias = NDArray[np.float64]

FORGOTTEN = "forgotten:"  # with it begins the reason of a trial that was withdrawn


class State(StrEnum):
    """Where a trial stands."""

    PENDING = "pending"
    COMPLETE = "complete"
    FAILED = "failed"


@dataclass(frozen=True, eq=False, repr=False)
class Trial:
    """One evaluation: its parameters, where it lies in the cube and in the embedding, and what came of it.

    Args:
        number: Its place in the history.
        params: The values by name, as they were run.
        x: The proposed point of the cube.  D
        y: Its embedded coordinates; None where it came from elsewhere.  d_e
        outcomes: What was measured, by name.
        state: Pending, complete or failed.
        note: What the method has to remember, plain data.
        reason: Why it failed or was corrected.
        asked: False for a point that was reported without having been proposed.
        earlier: What it was before each correction, oldest first.
    """

    number: int
    params: dict[str, Any]
    x: Array  # D, the proposed point of the cube
    y: Array | None = None  # d_e, its embedded coordinates; None where it came from elsewhere
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    state: State = State.PENDING
    note: dict[str, Any] = field(default_factory=dict)  # what the method wants to remember, plain data
    reason: str | None = None  # why it failed
    asked: bool = True  # False for a point that was reported without having been proposed
    earlier: tuple[
        Trial, ...
    ] = ()  # what it was before it was corrected, oldest first; the trial itself is what counts

    @property
    def withdrawn(self) -> bool:
        """Whether its record was withdrawn with `forget`."""
        return self.state is State.FAILED and (self.reason or "").startswith(FORGOTTEN)

    @property
    def complete(self) -> bool:
        return self.state is State.COMPLETE

    def amended(self, reason: str | None = None, **changes: Any) -> Trial:
        """This trial with `changes`; what it was is kept in `earlier`, with the reason of the correction.

        Args:
            reason: Why it is corrected.
            changes: The new fields.

        Returns:
            The corrected trial.
        """
        was = replace(self, earlier=(), reason=reason if reason is not None else self.reason)
        return replace(self, **changes, earlier=(*self.earlier, was))

    def __repr__(self) -> str:
        what = _show.measured(self.outcomes) or self.reason or ""
        return (
            f"Trial({self.number}, {self.state.value}{': ' + what[:80] if what else ''}; {_show.point(self.params, 3)})"
        )

    def __str__(self) -> str:
        return _show.text(f"Trial {self.number}: {self.state.value}", self._rows())

    def _repr_html_(self) -> str:
        return _show.html(f"Trial {self.number}: {self.state.value}", self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("measured", _show.measured(self.outcomes))] if self.outcomes else []
        rows += [("reason", self.reason[:200])] if self.reason else []
        rows += [("parameters", _show.point(self.params))]
        return rows + ([("corrected", f"{len(self.earlier)} times")] if self.earlier else [])

    def to_dict(self) -> dict[str, Any]:
        """Plain data; floats survive JSON exactly."""
        data = {
            "number": self.number,
            "params": dict(self.params),
            "x": self.x.tolist(),
            "y": None if self.y is None else self.y.tolist(),
            "outcomes": {k: [v.mean, v.sem] for k, v in self.outcomes.items()},
            "state": self.state.value,
            "note": self.note,
            "reason": self.reason,
            "asked": self.asked,
        }
        return data | ({"earlier": [t.to_dict() for t in self.earlier]} if self.earlier else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Trial:
        """The trial that `to_dict` wrote.

        Args:
            data: Plain data.

        Returns:
            The trial.
        """
        return cls(
            number=int(data["number"]),
            params=dict(data["params"]),
            x=np.asarray(data["x"], dtype=float),
            y=None if data["y"] is None else np.asarray(data["y"], dtype=float),
            outcomes={k: Outcome(float(m), None if s is None else float(s)) for k, (m, s) in data["outcomes"].items()},
            state=State(data["state"]),
            note=dict(data["note"]),
            reason=data["reason"],
            asked=bool(data["asked"]),
            earlier=tuple(Trial.from_dict({"number": data["number"], **t}) for t in data.get("earlier", ())),
        )


@dataclass(frozen=True)
class Span:
    """When and by whom a trial was evaluated; `end` None while it runs."""

    number: int
    worker: str
    start: datetime
    end: datetime | None
    state: State


@dataclass(frozen=True, repr=False)
class History(Sequence[Trial]):
    """All trials in the order they were created, and how many evaluations may be made in all (None: not known).

    Args:
        trials: All trials, in the order of their numbers.
        budget: How many evaluations may be asked for in all; None: not known.
        sources: Earlier studies to learn from.
    """

    trials: tuple[Trial, ...] = ()
    budget: int | None = None
    sources: tuple[Task, ...] = ()

    @overload
    def __getitem__(self, i: int) -> Trial: ...
    @overload
    def __getitem__(self, i: slice) -> tuple[Trial, ...]: ...
    def __getitem__(self, i: int | slice) -> Trial | tuple[Trial, ...]:
        return self.trials[i]

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def __repr__(self) -> str:
        counts = f"{len(self.complete)} complete, {len(self.pending)} pending, {len(self.failed)} failed"
        return f"History({len(self)} trials: {counts}; budget {self.budget})"

    def last_note(self, key: str) -> Mapping[str, Any]:
        """The note of the last trial that notes this; empty where none does.

        Args:
            key: A key of the notes.

        Returns:
            The note.
        """
        return next((t.note for t in reversed(self.trials) if key in t.note), {})

    @property
    def asked(self) -> int:
        """How many trials a method proposed: what counts against the budget."""
        return sum(t.asked for t in self.trials)

    @property
    def complete(self) -> tuple[Trial, ...]:
        return tuple(t for t in self.trials if t.state is State.COMPLETE)

    @property
    def pending(self) -> tuple[Trial, ...]:
        return tuple(t for t in self.trials if t.state is State.PENDING)

    @property
    def failed(self) -> tuple[Trial, ...]:
        return tuple(t for t in self.trials if t.state is State.FAILED)

    @property
    def avoided(self) -> tuple[Trial, ...]:
        """The failed trials that are kept away from. One without parameters was nowhere; one that was withdrawn says nothing."""
        return tuple(t for t in self.failed if t.params and not t.withdrawn)

    def with_trial(self, trial: Trial) -> History:
        """This history with one more trial, or with the trial of that number replaced.

        Args:
            trial: The new or changed trial.

        Returns:
            The new history; this one stays as it is.
        """
        if trial.number < len(self.trials):
            return replace(self, trials=(*self.trials[: trial.number], trial, *self.trials[trial.number + 1 :]))
        return replace(self, trials=(*self.trials, trial))


def counts(trial: Trial, goals: Goals, space: Space | None = None) -> bool:
    """Whether a trial can be the incumbent.

    It is complete, feasible by its measured outcomes and by the linear constraints, and evaluated at the target fidelity.
    `space` None: the constraints and the fidelity are not looked at.
    """
    if not trial.complete or not goals.feasible(trial.outcomes):
        return False
    return space is None or (space.feasible(trial.params) and space.at_target(trial.params))


def incumbents(history: Sequence[Trial], goals: Goals, space: Space | None = None) -> list[tuple[Trial, Trial | None]]:
    """Each finished trial with the incumbent after it: the first of the best that `counts`; None before there is one.

    For one objective, by measured values. This is the only rule for "best so far": traces, plots, progress, diagnostics and
    methods use it.
    """
    best: Trial | None = None
    out: list[tuple[Trial, Trial | None]] = []
    lowest = np.inf
    for trial in history:
        if trial.state is State.PENDING:
            continue
        if counts(trial, goals, space):
            value = float(goals.objective_values(trial.outcomes)[0])
            if best is None or value < lowest:
                best, lowest = trial, value
        out.append((trial, best))
    return out


def incumbent(history: Sequence[Trial], goals: Goals, space: Space | None = None) -> Trial | None:
    """The best trial that `counts`; None where there is none."""
    pairs = incumbents(history, goals, space)
    return pairs[-1][1] if pairs else None
