"""Ask and tell: a history, a method, and the rules between them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _saving
from ._errors import InputError, StateError, StudyError
from ._seeds import derive, reproducible
from .goals import Goal, Goals, Outcome, hypervolume_trace, pareto
from .history import History, State, Trial
from .methods import Method, build, default_method
from .space import Params, Space

Array: TypeAlias = NDArray[np.float64]
ENQUEUED = "enqueued"  # a trial's note: which point of the queue it is


class Optimizer:
    """Ask for points and tell their outcomes. The same space, goals, method, seed and history give the same next point.

    Args:
        space: The parameters, `alebo.Space([...])`.
        goals: What is wanted of the outcomes: `Minimize("loss")`, or a list with constraints (`AtMost("latency", 10)`).
        method: A method such as `alebo.ALEBO(dim=8)`, or the name of one ("turbo"). Left out: the best default we know.
        seed: Any whole number; another seed gives another run.
        budget: How many evaluations may be made in all, where known. `opt.budget = 80` changes it later.

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
    ) -> None:
        if not isinstance(space, Space):
            raise InputError(f"`space` is an alebo.Space; got {type(space).__name__}. Use Space.from_bounds(bounds).")
        self.space = space
        self.goals = goals if isinstance(goals, Goals) else Goals(goals)
        self.method = as_method(method)
        self.seed = whole("seed", seed, None, "Any whole number will do; the same one gives the same run.")
        self.method.check(self.space, self.goals)
        self.history = History()
        self.queue: tuple[Params, ...] = ()  # every point queued by `enqueue`, in order, those already asked included
        self.budget = budget

    def __repr__(self) -> str:
        h = self.history
        return (
            f"Optimizer({self.space.dimension} coordinates, {self.method!r}, seed={self.seed}: "
            f"{len(h.complete)} complete, {len(h.pending)} pending, {len(h.failed)} failed)"
        )

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

    def enqueue(self, params: Mapping[str, Any]) -> None:
        """Queue a point, such as your present settings, to be the next one asked. It counts against the budget.

        Args:
            params: A value for every parameter of the space.

        >>> import alebo
        >>> opt = alebo.Optimizer(alebo.Space([alebo.Float("gain", 0, 1)]), alebo.Minimize("loss"), method="sobol")
        >>> opt.enqueue({"gain": 0.25})
        >>> opt.ask()[0].params
        {'gain': 0.25}
        """
        self.queue = (*self.queue, self.space.canonical(params))

    def ask(self, q: int = 1) -> list[Trial]:
        """The next `q` trials as a list, also for one: `trial = opt.ask()[0]`. They are pending until told or failed.

        Queued points come first; the method proposes the others.
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

    def tell(self, trial: int | Trial | Mapping[str, Any], outcomes: Any) -> Trial:
        """Record what an evaluation gave: a number, or a mapping of outcome to value or (mean, standard error).

        `trial` is the number of an asked trial, or a mapping of parameters for a point that was never asked.
        """
        if isinstance(trial, Mapping):
            read = self.goals.read(outcomes)
            params = self.space.canonical(trial)
            done = Trial(len(self.history), params, self.space.encode(params), None, read, State.COMPLETE, asked=False)
        else:
            pending = self._pending(trial, "tell")
            done = replace(pending, outcomes=self.goals.read(outcomes), state=State.COMPLETE)
        self.history = self.history.with_trial(done)
        return done

    def fail(self, trial: int | Trial, reason: str | None = None) -> Trial:
        """Record that an evaluation crashed or was given up; the search goes on without it."""
        failed = replace(self._pending(trial, "fail"), state=State.FAILED, reason=reason)
        self.history = self.history.with_trial(failed)
        return failed

    def _pending(self, trial: int | Trial, verb: str) -> Trial:
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
        found = self.history[int(number)]
        if found.state is not State.PENDING:
            raise StateError(
                f"A trial is told once; trial {number} is already {found.state.value}. "
                "Ask for a new one, or tell its parameters as a new point."
            )
        return found

    def best(self) -> Trial:
        """The best feasible trial. Under noise the model chooses it, and `note['chosen_by']` says so."""
        if not self.goals.single:
            raise StateError(
                f"`best` is for one objective; there are {len(self.goals.objectives)}. Call front() for the trade-offs."
            )
        candidates, chosen_by = self._feasible()
        trial = min(candidates, key=lambda pair: float(self.goals.objective_values(pair[1])[0]))[0]
        return replace(trial, note={**trial.note, "chosen_by": chosen_by})

    def front(self) -> list[Trial]:
        """The Pareto front: the feasible trials that no other trial beats in every objective."""
        if self.goals.single:
            raise StateError("`front` is for several objectives; there is one. Call best().")
        candidates, _ = self._feasible()
        values = np.stack([self.goals.objective_values(outcomes) for _, outcomes in candidates])
        return [trial for (trial, _), keep in zip(candidates, pareto(values), strict=True) if keep]

    def hypervolumes(self, reference: Sequence[float] | None = None) -> Array:
        """The volume dominated by the feasible measured outcomes after each finished trial, up to the reference point.  -> n

        `reference` has one value for each objective, in their order and the user's sign. Without it, the goals' own
        references are taken, and where one is missing, a tenth of the front's range beyond its worst value.
        """
        if self.goals.single:
            raise StateError("`hypervolumes` is for several objectives; there is one. See history, or best().")
        objectives = self.goals.objectives
        if reference is None:
            given = [np.nan if g.reference is None else g.reference for g in objectives]
        elif len(reference) != len(objectives) or not np.isfinite(np.asarray(reference, dtype=float)).all():
            raise InputError(
                f"`reference` has one finite number for each of {[g.outcome for g in objectives]}; got {list(reference)}."
            )
        else:
            given = list(reference)
        at = np.array([self.goals.sign(g.outcome) * r for g, r in zip(objectives, given, strict=True)])
        finished = [t for t in self.history if t.state is not State.PENDING]
        values = np.full((len(finished), len(objectives)), np.nan)
        for i, t in enumerate(finished):
            if t.complete and self.goals.feasible(t.outcomes) and self.space.feasible(t.params):
                values[i] = self.goals.objective_values(t.outcomes)
        known = values[~np.isnan(values).any(axis=1)]
        if np.isnan(at).any() and len(known):
            front = known[pareto(known)]
            at = np.where(np.isnan(at), front.max(axis=0) + 0.1 * np.maximum(np.ptp(front, axis=0), 1e-12), at)
        return hypervolume_trace(values, at)

    def _feasible(self) -> tuple[list[tuple[Trial, Mapping[str, Outcome]]], str]:
        complete = self.history.complete
        if not complete:
            raise StateError(
                f"A best point needs one completed trial; of {len(self.history)} none is "
                f"({len(self.history.failed)} failed). Tell an outcome first."
            )
        complete = tuple(t for t in complete if self.space.at_target(t.params)) or complete  # cheap looks do not count
        estimates = self._estimates()
        chosen_by = "measured value" if estimates is None else "posterior mean"
        view = [(t, t.outcomes if estimates is None else estimates[t.number]) for t in complete]
        feasible = [(t, o) for t, o in view if self.goals.feasible(o) and self.space.feasible(t.params)]
        feasible = [pair for pair in feasible if self.goals.feasible(pair[0].outcomes)] or feasible  # measured so, too
        if not feasible:
            feasible = [
                (t, t.outcomes) for t in complete if self.goals.feasible(t.outcomes) and self.space.feasible(t.params)
            ]
        if not feasible:
            worst = min(complete, key=lambda t: float(np.maximum(self.goals.violations(t.outcomes), 0.0).sum()))
            raise StateError(
                f"A best point must satisfy the constraints; none of {len(complete)} completed trials does. The nearest "
                f"is trial {worst.number} with outcomes { {k: v.mean for k, v in worst.outcomes.items()} }. Go on asking, "
                "or loosen a bound."
            )
        return feasible, chosen_by

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
        """Write everything to one JSON file. A crash while writing leaves the earlier file as it was."""
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
        opt.history = replace(opt.history, trials=saved.history.trials)
        opt.queue = saved.queue
        return opt


class Asked(list[Trial]):
    """The trials of one ask. A list; reading `.params` of it says what to write instead."""

    def __getattr__(self, name: str) -> Any:
        if name in Trial.__dataclass_fields__:
            raise AttributeError(
                f"ask() returns a list of trials, also for one; it has no .{name}. Write opt.ask()[0].{name}, or: for "
                f"trial in opt.ask(4): trial.{name}"
            )
        raise AttributeError(f"'list' object has no attribute {name!r}")


def propose(method: Method, history: History, space: Space, goals: Goals, q: int, seed: int) -> list[Trial]:
    """`q` pending trials that the method proposes after this history, numbered on from it. The history is not changed."""
    with reproducible(derive(seed, "ask", len(history))):
        points = method.suggest(history, space, goals, q, seed)
    trials = []
    for number, point in enumerate(points, start=len(history)):
        x = np.clip(point.x, -1.0, 1.0)
        trials.append(Trial(number, space.decode(x), x, point.y, note=dict(point.note)))
    return trials


def as_method(method: Method | str | None) -> Method:
    """The method itself, the one of this name with its defaults, or the default method."""
    if method is None:
        return default_method()
    if isinstance(method, str):
        return build(method)
    if not isinstance(method, Method):
        raise InputError(
            f"`method` is an object such as alebo.ALEBO(dim=8), or a name such as 'turbo'; got {method!r:.60}."
        )
    return method


def whole(name: str, value: Any, least: int | None, way_out: str) -> int:
    """`value` as an int, or an InputError that names the argument and the way out."""
    try:
        number = int(value)
        good = not isinstance(value, str | bytes) and number == value and (least is None or number >= least)
    except (TypeError, ValueError, OverflowError):
        good = False
    if not good:
        rule = f"`{name}` must be a whole number" if least is None else f"`{name} >= {least}` must hold, a whole number"
        raise InputError(f"{rule}; got {value!r:.60}. {way_out}")
    return number
