"""Ask and tell, and the one line `minimize`: a history, a method, and the rules between them."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._errors import AleboError, EvaluationError, InputError, StateError, StudyError
from ._seeds import derive, reproducible
from .goals import AtLeast, AtMost, Cost, Goal, Goals, Maximize, Minimize, Outcome, hypervolume_trace, pareto
from .history import History, State, Trial
from .methods import Method, default_method
from .methods import from_dict as method_from_dict
from .methods import to_dict as method_to_dict
from .space import LinearConstraint, Space

Array: TypeAlias = NDArray[np.float64]
log = logging.getLogger(__name__)

FORMAT = 1
_GOALS: dict[str, type[Goal]] = {g.__name__: g for g in (Minimize, Maximize, AtMost, AtLeast, Cost)}


class Optimizer:
    """Ask for points, tell their outcomes. Holds the history and nothing else: the same history asks the same next."""

    def __init__(
        self,
        space: Space,
        goals: Sequence[Goal] | Goal | Goals,
        *,
        method: Method | None = None,
        seed: int = 0,
        budget: int | None = None,
    ) -> None:
        if not isinstance(space, Space):
            raise InputError(f"`space` is an alebo.Space; got {type(space).__name__}. Use Space.from_bounds(bounds).")
        if budget is not None:
            budget = _whole("budget", budget, 1, "Leave it out if you do not know it.")
        self.space = space
        self.goals = goals if isinstance(goals, Goals) else Goals(goals)
        self.method = default_method() if method is None else method
        if not isinstance(self.method, Method):
            raise InputError(f"`method` is an object such as alebo.ALEBO(dim=8); got {method!r:.60}.")
        self.seed = _whole("seed", seed, None, "Any whole number will do; the same one gives the same run.")
        self.method.check(self.space, self.goals)
        self.history = History(budget=budget)

    def __repr__(self) -> str:
        h = self.history
        return (
            f"Optimizer({self.space.dimension} coordinates, {self.method!r}, seed={self.seed}: "
            f"{len(h.complete)} complete, {len(h.pending)} pending, {len(h.failed)} failed)"
        )

    @property
    def budget(self) -> int | None:
        return self.history.budget

    @property
    def asked(self) -> int:
        """How many evaluations have been asked for."""
        return self.history.asked

    def ask(self, q: int = 1) -> list[Trial]:
        """The next `q` trials, recorded as pending before anybody sees them."""
        q = _whole("q", q, 1, "Ask for one trial or more.")
        if self.budget is not None and self.asked + q > self.budget:
            raise StateError(
                f"At most {self.budget} evaluations were allowed and {self.asked} have been asked for; got a request for "
                f"{q} more. Read best(), or set a larger budget."
            )
        with reproducible(derive(self.seed, "ask", len(self.history))):
            points = self.method.suggest(self.history, self.space, self.goals, q, self.seed)
        trials = []
        for point in points:
            x = np.clip(point.x, -1.0, 1.0)
            trial = Trial(len(self.history), self.space.decode(x), x, point.y, note=dict(point.note))
            self.history = self.history.with_trial(trial)
            trials.append(trial)
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
        number = trial.number if isinstance(trial, Trial) else trial
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
        """The best feasible trial; under noise the model chooses it, and `note['chosen_by']` says so."""
        if not self.goals.single:
            raise StateError(
                f"`best` is for one objective; there are {len(self.goals.objectives)}. Call front() for the trade-offs."
            )
        candidates, chosen_by = self._feasible()
        trial = min(candidates, key=lambda pair: float(self.goals.objective_values(pair[1])[0]))[0]
        return replace(trial, note={**trial.note, "chosen_by": chosen_by})

    def front(self) -> list[Trial]:
        """The feasible trials that no other beats in every objective."""
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

    # -- saving: plain data, written whole or not at all --------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain data."""
        from . import __version__

        return {
            "format": FORMAT,
            "alebo": __version__,
            "space": self.space.to_dict(),
            "constraints": [{"coefficients": dict(c.coefficients), "upper": c.upper} for c in self.space.constraints],
            "goals": [{"type": type(g).__name__, **vars(g)} for g in self.goals.goals],
            "method": _plain_method(self.method),
            "seed": self.seed,
            "budget": self.budget,
            "trials": [t.to_dict() for t in self.history],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, method: Method | None = None) -> Optimizer:
        """The optimizer that `to_dict` wrote; `method` replaces one whose settings are not plain data."""
        space = Space.from_dict(data["space"], [LinearConstraint(**c) for c in data["constraints"]])
        goals = Goals([_GOALS[g["type"]](**{k: v for k, v in g.items() if k != "type"}) for g in data["goals"]])
        if method is None and "settings" in data["method"]:
            raise StudyError(
                f"A method whose settings are not plain data must be passed again; this study used "
                f"{data['method']['name']!r} with such settings. Write Optimizer.load(path, method=...)."
            )
        made = method_from_dict(data["method"]) if method is None else method
        opt = cls(space, goals, method=made, seed=data["seed"], budget=data["budget"])
        trials = tuple(Trial.from_dict(t) for t in data["trials"])
        for i, t in enumerate(trials):
            opt._check_trial(i, t)
        opt.history = replace(opt.history, trials=trials)
        return opt

    def _check_trial(self, place: int, t: Trial) -> None:
        """Raise a sentence unless a stored trial fits this study."""
        wrong = ""
        if t.number != place:
            wrong = f"is numbered {t.number}"
        elif t.x.shape != (self.space.dimension,) or not np.isfinite(t.x).all():
            wrong = f"has a point of shape {t.x.shape} in a space of {self.space.dimension} coordinates, or not finite"
        elif t.y is not None and not (t.y.ndim == 1 and np.isfinite(t.y).all()):
            wrong = "has embedded coordinates that are not a finite vector"
        elif t.complete and (
            set(t.outcomes) != set(self.goals.outcomes) or not all(np.isfinite(o.mean) for o in t.outcomes.values())
        ):
            wrong = f"has outcomes {sorted(t.outcomes)} where finite {sorted(self.goals.outcomes)} belong"
        if wrong:
            raise StudyError(f"Stored trials must fit their study; trial {place} {wrong}. Use a backup of the file.")
        self.space.check(t.params)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one JSON file, by way of a neighbour so that a crash never leaves half a file."""
        target = Path(path)
        try:
            text = json.dumps(self.to_dict(), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise StudyError(
                f"A saved study holds plain data (numbers, text, lists); this one does not: {error}. Use plain values "
                "for categories and fixed parameters. Nothing told is lost."
            ) from None
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        try:
            with part.open("w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise StudyError(
                f"A study is saved to a file in a folder that exists and has room; {path} cannot be written: {error}. "
                "Nothing told is lost: save it elsewhere."
            ) from None
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, method: Method | None = None) -> Optimizer:
        """The optimizer that `save` wrote; its next ask is the one it would have made if it had never stopped."""
        try:
            data = json.loads(Path(path).read_text())
        except FileNotFoundError:
            raise StudyError(
                f"A saved study must exist to be loaded; there is no file {path}. Check the path."
            ) from None
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise StudyError(
                f"A saved study is one JSON file; {path} cannot be read: {error}. Use a backup of it."
            ) from None
        if not isinstance(data, dict) or "format" not in data:
            raise StudyError(f"A saved study is written by Optimizer.save; {path} holds something else.")
        if data["format"] != FORMAT:
            raise StudyError(
                f"This alebo reads format {FORMAT}; {path} has format {data['format']}, by alebo {data.get('alebo')}. "
                "Install that version to read it."
            )
        try:
            return cls.from_dict(data, method=method)
        except StudyError as error:
            raise StudyError(f"{error} (The file is {path}.)") from None
        except (AleboError, KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise StudyError(
                f"A saved study must be whole; {path} is damaged ({type(error).__name__}: {error}). Use a backup of it."
            ) from None


def _plain_method(method: Method) -> dict[str, Any]:
    """The method as plain data; with `settings` None where they hold a function, so that it has to be passed again."""
    data = method_to_dict(method)
    try:
        json.dumps(data, allow_nan=False)
    except (TypeError, ValueError):
        return {"name": data["name"], "settings": None}
    return data


@dataclass(frozen=True)
class Result:
    """What `minimize` found. `history` has every trial; `trace[i]` is the best value after evaluation i."""

    x: Array
    fun: float
    history: History
    trace: Array
    optimizer: Optimizer
    message: str = ""

    @property
    def nfev(self) -> int:
        return len(self.history)


def trace(history: History, goals: Goals) -> Array:
    """The best feasible measured value after each finished trial, in the user's sign; NaN before the first.  -> n"""
    sign, best, out = goals.sign(goals.objectives[0].outcome), np.nan, []
    for t in history:
        if t.state is State.PENDING:
            continue
        if t.complete and goals.feasible(t.outcomes):
            best = np.fmin(best, goals.objective_values(t.outcomes)[0])
        out.append(sign * best)
    return np.array(out)


def minimize(
    f: Callable[[Array], Any],
    bounds: Sequence[tuple[float, float]] | Space,
    budget: int = 50,
    seed: int = 0,
    *,
    method: Method | None = None,
    goals: Sequence[Goal] | Goal | None = None,
    x0: ArrayLike | None = None,
    y0: Sequence[Any] | None = None,
    callback: Callable[[Trial, Optimizer], None] | None = None,
) -> Result:
    """Minimise an expensive function of many numbers with `budget` evaluations.

    `f` takes an array of length D and returns a number, or a mapping of outcomes when `goals` are given. `x0` (points,
    n x D) and `y0` (their known outcomes) are used as a start; `x0` alone is evaluated first. `callback(trial, optimizer)`
    is called after every evaluation. An evaluation that raises or returns no number is recorded as failed and the search
    goes on, unless the first three all fail.

    >>> import alebo
    >>> result = alebo.minimize(lambda x: (x[3] - 0.2) ** 2, [(0, 1)] * 20, budget=12, seed=1)
    >>> len(result.x), len(result.trace)
    (20, 12)
    """
    if not callable(f):
        raise InputError(f"`f` must be callable with an array; got {f!r:.60}.")
    budget = _whole("budget", budget, 1, "Say how many evaluations you can afford.")
    space = bounds if isinstance(bounds, Space) else Space.from_bounds(bounds)
    opt = Optimizer(space, Minimize("value") if goals is None else goals, method=method, seed=seed, budget=budget)
    if not opt.goals.single:
        raise InputError(
            f"`minimize` is for one objective; got {[g.outcome for g in opt.goals.objectives]}. "
            "Use Optimizer with ask, tell and front() for trade-offs."
        )
    start = _start(opt, x0, y0)
    error: EvaluationError | None = None
    while opt.asked < budget:
        if start:
            params = space.decode(space.encode(dict(zip(space.names, start.pop(0), strict=True))))
            opt.history = opt.history.with_trial(Trial(len(opt.history), params, space.encode(params)))
            trial = opt.history[-1]
        else:
            trial = opt.ask()[0]
        try:
            trial = opt.tell(trial.number, f(_array(space, trial.params)))
        except Exception as cause:  # whatever the user's function raises costs one trial, never the run
            trial = opt.fail(trial.number, f"{type(cause).__name__}: {cause}")
            error = _failure(opt, trial, cause, error)
            log.warning("%s", error)
        if callback is not None:
            callback(trial, opt)
    try:
        best = opt.best()
    except StateError as nothing:
        failure = EvaluationError(str(nothing))
        failure.optimizer = opt
        raise failure from error
    value = opt.goals.sign(opt.goals.objectives[0].outcome) * float(opt.goals.objective_values(best.outcomes)[0])
    message = (
        f"{len(opt.history.complete)} evaluations, {len(opt.history.failed)} failed; best is trial {best.number}, "
        f"by {best.note['chosen_by']}."
    )
    return Result(_array(space, best.params), value, opt.history, trace(opt.history, opt.goals), opt, message)


def _whole(name: str, value: Any, least: int | None, way_out: str) -> int:
    """`value` as an int, or a sentence."""
    try:
        whole = int(value)
        good = not isinstance(value, str | bytes) and whole == value and (least is None or whole >= least)
    except (TypeError, ValueError, OverflowError):
        good = False
    if not good:
        rule = f"`{name}` must be a whole number" if least is None else f"`{name} >= {least}` must hold, a whole number"
        raise InputError(f"{rule}; got {value!r:.60}. {way_out}")
    return whole


def _array(space: Space, params: Mapping[str, Any]) -> Array:
    values = [params[n] for n in space.names]
    try:
        return np.array(values, dtype=float)
    except ValueError:
        return np.array(values, dtype=object)


def _start(opt: Optimizer, x0: ArrayLike | None, y0: Sequence[Any] | None) -> list[Array]:
    """Points to evaluate first; those whose outcomes are known are told at once."""
    if x0 is None:
        if y0 is not None:
            raise InputError("`y0` belongs to points `x0`; got no x0. Pass both, or neither.")
        return []
    try:
        X = np.atleast_2d(np.array(x0, dtype=object))  # object: a category must not turn its neighbours into text
    except ValueError:
        raise InputError(
            f"`x0` is a point of {len(opt.space)} values or a list of them; got rows of several lengths."
        ) from None
    if X.ndim != 2 or X.shape[1] != len(opt.space):
        raise InputError(f"`x0` is a point of {len(opt.space)} values or a list of them; got shape {X.shape}.")
    if y0 is None:
        return list(X)
    outcomes = (
        list(y0) if isinstance(y0, Sequence | np.ndarray) and not isinstance(y0, Outcome) and np.shape(y0[:1]) else [y0]
    )
    if len(outcomes) != len(X):
        raise InputError(f"`x0` and `y0` belong together; got {len(X)} points and {len(outcomes)} outcomes.")
    for row, outcome in zip(X, outcomes, strict=True):
        opt.tell(dict(zip(opt.space.names, row.tolist(), strict=True)), outcome)
    return []


def _failure(opt: Optimizer, trial: Trial, cause: Exception, before: EvaluationError | None) -> EvaluationError:
    error = EvaluationError(
        f"An evaluation must return one finite number; trial {trial.number} gave {type(cause).__name__}: {cause} "
        "It is recorded as failed and the search goes on."
    )
    error.optimizer = opt
    if len(opt.history) == 3 and len(opt.history.failed) == 3:
        stop = EvaluationError(
            f"An evaluation must return one finite number; the first three all failed, the last with "
            f"{type(cause).__name__}: {cause} Correct the function; what was told is in this error's `optimizer`."
        )
        stop.optimizer = opt
        raise stop from cause
    return error
