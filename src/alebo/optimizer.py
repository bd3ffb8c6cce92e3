"""Ask and tell: a history, a method, and the rules between them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _best, _frame, _saving, _show
from ._checks import whole
from ._errors import InputError, StateError, StudyError
from ._propose import Asked, as_method, as_run, propose
from ._saving import ENQUEUED
from ._seeds import derive, reproducible
from .goals import Goal, Goals, Outcome
from .history import FORGOTTEN, History, State, Trial, incumbent
from .methods import Method
from .sources import learned_from
from .space import Params, Space

Array: TypeAlias = NDArray[np.float64]


class Optimizer:
    """Ask for points and tell their outcomes. The same space, goals, method, seed and history give the same next point.

    Args:
        space: The parameters, `alebo.Space([...])`.
        goals: What is wanted of the outcomes: `Minimize("loss")`, or a list with constraints (`AtMost("latency", 10)`).
        method: A method such as `alebo.ALEBO(dim=8)`, or the name of one ("turbo"). Left out: the best default we know.
        seed: Any whole number; another seed gives another run.
        budget: How many evaluations may be made in all, where known. `opt.budget = 80` changes it later.
        sources: Earlier studies to learn from: `alebo.Source`, or what one is made of.

    >>> import alebo
    >>> space = alebo.Space([alebo.Float("gain", 0, 1), alebo.Float("rate", 1e-5, 1, log=True)])
    >>> opt = alebo.Optimizer(space, alebo.Maximize("score"), method="sobol", seed=0)
    >>> for trial in opt.ask(3):
    ...     done = opt.tell(trial.number, 1 - trial.params["gain"])
    >>> opt.best().complete
    True
    """

    def __init__(
        self,
        space: Space,
        goals: Sequence[Goal] | Goal | Goals,
        *,
        method: Method | str | None = None,
        seed: int = 0,
        budget: int | None = None,
        sources: Any = (),
    ) -> None:
        if not isinstance(space, Space):
            raise InputError(f"`space` is an alebo.Space; got {type(space).__name__}. Use Space.from_bounds(bounds).")
        self.space = space
        self.goals = goals if isinstance(goals, Goals) else Goals(goals)
        self.method = as_method(method)
        self.seed = whole("seed", seed, None, "Any whole number will do; the same one gives the same run.")
        self.method.check(self.space, self.goals)
        self.history = History(sources=learned_from(sources, self.space, self.goals, self.method))
        self.queue: tuple[Params, ...] = ()  # every point queued by `enqueue`, in order, those already asked included
        self.budget = budget

    def __repr__(self) -> str:
        h = self.history
        return f"Optimizer({self.space.dimension} coordinates, {self.method!r:.60}, seed={self.seed}: {_counts(h)})"

    def __str__(self) -> str:
        return _show.text("Optimizer", self._rows())

    def _repr_html_(self) -> str:
        return _show.html("Optimizer", self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        h, best = self.history, incumbent(self.history, self.goals, self.space) if self.goals.single else None
        rows = [
            ("parameters", f"{len(self.space)} ({self.space.dimension} coordinates)"),
            ("goals", ", ".join(f"{type(g).__name__}({g.outcome!r})" for g in self.goals.goals)[:120]),
            ("method", f"{self.method!r:.80}, seed {self.seed}"),
            ("trials", f"{_counts(h)}; budget {h.budget}"),
        ]
        rows += [("learns from", f"{task.name}: {len(task)} evaluations") for task in h.sources]
        return rows + (
            [] if best is None else [("best measured", f"trial {best.number}: {_show.measured(best.outcomes)}")]
        )

    def to_dataframe(self) -> Any:
        """Every trial as a row of a pandas DataFrame: number, state, parameters, outcomes, standard errors, reason."""
        return _frame.dataframe(self.history, self.space, self.goals)

    @property
    def budget(self) -> int | None:
        """How many evaluations may be asked for in all (None: not known). Set it to a larger number to go on."""
        return self.history.budget

    @budget.setter
    def budget(self, budget: int | None) -> None:
        if budget is not None:
            budget = whole("budget", budget, 1, "Leave it out if you do not know it.")
        self.history = replace(self.history, budget=budget)

    @property
    def asked(self) -> int:
        """How many evaluations have been asked for."""
        return self.history.asked

    @property
    def queued(self) -> tuple[Params, ...]:
        """The points of `enqueue` that were not asked yet, in order."""
        used = {t.note.get(ENQUEUED) for t in self.history}
        return tuple(p for k, p in enumerate(self.queue) if k not in used)

    def enqueue(self, params: Mapping[str, Any] | Sequence[Any]) -> None:
        """Queue a point, such as your present settings, to be the next one asked. It counts against the budget.

        Args:
            params: A value for every parameter of the space, by name or in its order.

        >>> import alebo
        >>> opt = alebo.Optimizer(alebo.Space([alebo.Float("gain", 0, 1)]), alebo.Minimize("loss"), method="sobol")
        >>> opt.enqueue({"gain": 0.25})
        >>> opt.ask()[0].params
        {'gain': 0.25}
        """
        self.queue = (*self.queue, self.space.canonical(params))

    def ask(self, q: int = 1) -> list[Trial]:
        """The next `q` trials as a list, also for one: `trial = opt.ask()[0]`. They are pending until `tell` or `fail`.

        Queued points come first; the method proposes the others.

        Args:
            q: How many trials.

        Returns:
            The trials.
        """
        q = whole("q", q, 1, "Ask for one trial or more.")
        if self.budget is not None and self.asked + q > self.budget:
            raise StateError(
                f"At most {self.budget} evaluations were allowed and {self.asked} have been asked for; got a request for "
                f"{q} more. Read best(), or set a larger budget: opt.budget = {self.asked + q}."
            )
        trials = Asked()
        used = {t.note.get(ENQUEUED) for t in self.history}
        for k, params in enumerate(self.queue):
            if k not in used and len(trials) < q:
                trials.append(Trial(len(self.history), dict(params), self.space.encode(params), note={ENQUEUED: k}))
                self.history = self.history.with_trial(trials[-1])
        if len(trials) < q:
            for trial in propose(self.method, self.history, self.space, self.goals, q - len(trials), self.seed):
                trials.append(trial)
                self.history = self.history.with_trial(trial)
        return trials

    def tell(
        self, trial: int | Trial | Mapping[str, Any], outcomes: Any, *, params: Mapping[str, Any] | None = None
    ) -> Trial:
        """Record what an evaluation gave.

        Args:
            trial: The number of an asked trial, or a mapping of parameters for a point that was never asked.
            outcomes: A number, or a mapping of outcome to value or (mean, standard error).
            params: The settings that were really run, where they differ from those proposed (some or all of them).

        Returns:
            The completed trial.
        """
        if isinstance(trial, Mapping):
            if params is not None:
                raise InputError(
                    "`params` corrects the settings of an asked trial; a point never asked is its own params."
                )
            read = self.goals.read(outcomes)
            point = self.space.canonical(trial)
            done = Trial(len(self.history), point, self.space.encode(point), None, read, State.COMPLETE, asked=False)
        else:
            pending = self._pending(trial, "tell")
            read = self.goals.read(outcomes)
            done = replace(as_run(self.space, pending, params), outcomes=read, state=State.COMPLETE)
        self.history = self.history.with_trial(done)
        return done

    def amend(
        self,
        trial: int | Trial,
        outcomes: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        reason: str | None = None,
    ) -> Trial:
        """Correct a finished trial. What it was is kept in `trial.earlier`; the model sees the corrected one only.

        Args:
            trial: The trial or its number.
            outcomes: The right outcomes, all of them; None where only the settings were wrong.
            params: The settings that were really run, where they were recorded wrongly.
            reason: Why, for the record.

        >>> import alebo
        >>> opt = alebo.Optimizer(alebo.Space([alebo.Float("gain", 0, 1)]), alebo.Minimize("loss"), method="sobol")
        >>> opt.tell(opt.ask()[0], 31.0).outcomes["loss"].mean
        31.0
        >>> opt.amend(0, 0.31, reason="typing mistake").outcomes["loss"].mean
        0.31
        >>> opt.history[0].earlier[0].outcomes["loss"].mean
        31.0
        """
        found = self._finished(trial, "amend")
        if outcomes is None and (params is None or not found.complete):
            raise InputError(
                f"`amend` needs the right outcomes, or the settings of a trial that has outcomes; trial {found.number} is "
                f"{found.state.value}. Write opt.amend({found.number}, {{{self.goals.outcomes[0]!r}: 0.31}})."
            )
        read = found.outcomes if outcomes is None else self.goals.read(outcomes)
        run = as_run(self.space, found, params)
        done = found.amended(
            reason,
            params=run.params,
            x=run.x,
            y=run.y,
            outcomes=read,
            state=State.COMPLETE,
        )
        done = replace(done, reason=None)
        self.history = self.history.with_trial(done)
        return done

    def forget(self, trial: int | Trial, reason: str | None = None) -> Trial:
        """Withdraw what was recorded for a trial, a failure too: the models know nothing of it. `trial.earlier` keeps the record."""
        found = self._finished(trial, "forget")
        why = f"{FORGOTTEN} {reason or 'by hand'}"
        gone = replace(found.amended(reason), outcomes={}, state=State.FAILED, reason=why)
        self.history = self.history.with_trial(gone)
        return gone

    def fail(self, trial: int | Trial, reason: str | None = None) -> Trial:
        """Record that an evaluation crashed or was given up; the search goes on without it.

        Args:
            trial: The trial or its number.
            reason: Why, in a few words.
        """
        failed = replace(self._pending(trial, "fail"), state=State.FAILED, reason=reason)
        self.history = self.history.with_trial(failed)
        return failed

    def _finished(self, trial: int | Trial, verb: str) -> Trial:
        found = self._found(trial, verb)
        if found.state is State.PENDING:
            raise StateError(
                f"`{verb}` is for a finished trial; trial {found.number} is pending. Use tell or fail for it."
            )
        return found

    def _pending(self, trial: int | Trial, verb: str) -> Trial:
        found = self._found(trial, verb)
        if found.state is not State.PENDING:
            raise StateError(
                f"A trial is reported once; trial {found.number} is already {found.state.value}. Ask for a new one, correct it "
                "with amend, or tell its parameters as a new point."
            )
        return found

    def _found(self, trial: int | Trial, verb: str) -> Trial:
        number: Any = trial.number if isinstance(trial, Trial) else trial
        if isinstance(number, list) and number and isinstance(number[0], Trial):
            raise InputError(
                f"`{verb}` takes one trial; got the list that ask() returns. Write: for trial in opt.ask(4): "
                f"opt.{verb}(trial, ...), or opt.ask()[0] for one."
            )
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 <= number < len(self.history):
            raise InputError(
                f"`{verb}` needs the number of a trial that was asked for; got {number!r}, and there are "
                f"{len(self.history)} trials (numbered from 0). For a point never asked, tell its parameters."
            )
        return self.history[int(number)]

    def best(self) -> Trial:
        """The best feasible trial. Under noise the model chooses it, and `note['chosen_by']` says so."""
        return _best.best(self.history, self.space, self.goals, self._estimates)

    def front(self) -> list[Trial]:
        """The Pareto front: the feasible trials that no other trial beats in every objective."""
        return _best.front(self.history, self.space, self.goals, self._estimates)

    def hypervolumes(self, reference: Sequence[float] | None = None) -> Array:
        """The volume dominated by the feasible measured outcomes after each finished trial, up to the reference point.  -> n

        Args:
            reference: One value for each objective, in their order and the user's sign. Without it, the goals' own
                references are taken, and where one is missing, a tenth of the front's range beyond its worst value.
        """
        return _best.hypervolumes(self.history, self.space, self.goals, reference)

    def _estimates(self) -> Mapping[int, Mapping[str, Outcome]] | None:
        with reproducible(derive(self.seed, "estimate", len(self.history))):
            return self.method.estimate(self.history, self.space, self.goals, self.seed)

    # -- saving -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return _saving.Saved(self.space, self.goals, self.method, self.seed, self.history, self.queue).to_dict()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, method: Method | None = None) -> Optimizer:
        """The optimizer that `to_dict` wrote; `method` replaces one whose settings are not plain data."""
        return cls._of(_saving.Saved.from_dict(data, method=method))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one JSON file. A crash while writing leaves the earlier file as it was.

        Args:
            path: The file.
        """
        _saving.write(self.to_dict(), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, method: Method | None = None) -> Optimizer:
        """The optimizer that `save` wrote; its next ask is the one it would have made if it had never stopped.

        Args:
            path: The file.
            method: Needed only where the method's settings are not plain data (a function of yours, say).
        """
        saved = _saving.read(path, method=method)
        try:
            return cls._of(saved)
        except (InputError, TypeError, ValueError) as error:
            raise StudyError(
                f"A saved study must be whole; {path} is damaged ({type(error).__name__}: {error}). Use a backup of it."
            ) from None

    @classmethod
    def _of(cls, saved: _saving.Saved) -> Optimizer:
        opt = cls(saved.space, saved.goals, method=saved.method, seed=saved.seed, budget=saved.history.budget)
        opt.history = saved.history
        opt.queue = saved.queue
        return opt


def _counts(h: History) -> str:
    return f"{len(h.complete)} complete, {len(h.pending)} pending, {len(h.failed)} failed"
