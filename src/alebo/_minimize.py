"""`minimize`: a function, its bounds and a budget, in one call."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import callable_or_none, prepared_ahead, whole
from ._errors import EvaluationError, InputError
from ._failures import FailureLimit, full_stop
from ._result import Result, result_of, values_of
from .goals import Goal, Minimize, Outcome
from .history import State, Trial
from .live import Progress
from .methods import Method
from .optimizer import Optimizer
from .space import Space

Array: TypeAlias = NDArray[np.float64]
log = logging.getLogger(__name__)


def minimize(
    f: Callable[..., Any],
    bounds: Sequence[tuple[float, float]] | Space,
    budget: int = 50,
    seed: int = 0,
    *,
    method: Method | str | None = None,
    goals: Sequence[Goal] | Goal | None = None,
    x0: ArrayLike | None = None,
    y0: Sequence[Any] | None = None,
    callback: Callable[[Trial, Optimizer], Any] | None = None,
    timeout: float | None = None,
    n_jobs: int = 1,
    ahead: int | None = None,
    progress: bool = False,
    max_failed: float = 0.5,
    sources: Any = (),
) -> Result:
    """Minimise an expensive function of many parameters with `budget` evaluations.

    Ctrl-C ends the run and returns what was found so far. An evaluation that raises or returns no number costs one trial; the run
    ends with an EvaluationError when more than the share `max_failed` of its evaluations failed, judged from the tenth on.

    Args:
        f: Takes a NumPy array of length D for plain bounds, a dictionary of names for a Space with names. Returns a
            number, or (mean, standard error), or a mapping of outcomes when `goals` are given.
        bounds: (low, high) pairs, or a Space.
        budget: How many evaluations to make.
        seed: Any whole number; another seed gives another run.
        method: A method such as `alebo.ALEBO(dim=8)`, or the name of one ("turbo"). Left out: the best default we know.
        goals: For an outcome to maximise, or with constraints; one objective.
        x0: A point, or several (n x D), to evaluate first, within the budget; with `y0` they are not evaluated.
        y0: The known outcomes of `x0`.
        callback: `callback(trial, optimizer)` after every evaluation. True or StopIteration ends the run.
        timeout: Seconds after which no evaluation is started any more; those under way are waited for.
        n_jobs: Evaluations at a time, in threads. For processes see `alebo.run`.
        ahead: Points prepared while all jobs are busy, so that none waits. None: one for every two jobs.
        progress: Show the run live, in a terminal or a notebook.
        max_failed: The share of evaluations that may fail.
        sources: Earlier studies to learn from: `alebo.Source`, or what one is made of.

    Returns:
        The best point and its value, every trial, and the optimizer, with which one can go on.

    >>> import alebo
    >>> result = alebo.minimize(lambda x: (x[3] - 0.2) ** 2, [(0, 1)] * 20, budget=12, seed=1)
    >>> len(result.x), len(result.trace)
    (20, 12)
    >>> space = alebo.Space([alebo.Float("gain", 0, 1), alebo.Int("layers", 1, 4)])
    >>> result = alebo.minimize(lambda p: p["gain"] * p["layers"], space, budget=5, method="sobol")
    """
    if not callable(f):
        raise InputError(f"`f` must be callable with an array; got {f!r:.60}.")
    budget = whole("budget", budget, 1, "Say how many evaluations you can afford.")
    n_jobs = whole("n_jobs", n_jobs, 1, "It is the number of evaluations at a time.")
    limit, end, ahead = FailureLimit(max_failed), _end(timeout), prepared_ahead(ahead, n_jobs)
    opt = _optimizer(bounds, goals, method=method, seed=seed, budget=budget, sources=sources)
    _start(opt, x0, y0)
    with Progress(opt.goals, space=opt.space) if progress else nullcontext() as view:
        return result_of(opt, *_Run(opt, f, limit, callback, view, end).go(n_jobs, ahead))


def _end(timeout: float | None) -> float | None:
    """When no evaluation is started any more, by the monotonic clock."""
    if timeout is None:
        return None
    if not (isinstance(timeout, int | float) and timeout > 0 and math.isfinite(timeout)):
        raise InputError(f"`timeout > 0` must hold, in seconds; got {timeout!r}. Leave it out for no limit.")
    return time.monotonic() + timeout


def _optimizer(
    bounds: Sequence[tuple[float, float]] | Space, goals: Sequence[Goal] | Goal | None, **settings: Any
) -> Optimizer:
    space = bounds if isinstance(bounds, Space) else Space.from_bounds(bounds)
    opt = Optimizer(space, Minimize("value") if goals is None else goals, **settings)
    if not opt.goals.single:
        raise InputError(
            f"`minimize` is for one objective; got {[g.outcome for g in opt.goals.objectives]}. "
            "Use Optimizer with ask, tell and front() for several."
        )
    return opt


class Named(dict[str, Any]):
    """What `f` receives for a Space with names: a dictionary, which NumPy also reads as an array of its values.

    >>> import numpy as np
    >>> point = Named({"gain": 0.5, "layers": 3}, np.array([0.5, 3.0]))
    >>> point["gain"], point[1], np.asarray(point).tolist()
    (0.5, 3, [0.5, 3.0])
    """

    def __init__(self, params: Mapping[str, Any], values: Array) -> None:
        super().__init__(params)
        self._values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self._values.astype(dtype) if dtype is not None else self._values.copy()

    def __missing__(self, place: Any) -> Any:
        if isinstance(place, int | np.integer):
            return list(self.values())[place]
        raise KeyError(place)


class _NotBegun(Exception):
    """The run ended before this prepared trial was begun."""


class _Run:
    """The evaluations of one `minimize`: which trial comes next, what came back, and when to stop."""

    def __init__(
        self,
        opt: Optimizer,
        f: Callable[..., Any],
        limit: FailureLimit,
        callback: Callable[[Trial, Optimizer], Any] | None,
        view: Progress | None,
        deadline: float | None,
    ) -> None:
        callable_or_none("callback", callback)
        self.opt, self.f, self.limit, self.callback = opt, f, limit, callback
        self.view, self.deadline = view, deadline
        self.made = self.failed = 0
        self.last: BaseException | None = None  # what the last failed evaluation raised
        self.ended = ""
        self.started: dict[int, float] = {}  # when each evaluation began
        if view is not None:
            view.start(opt.history)

    def go(self, jobs: int, ahead: int) -> tuple[str, BaseException | None]:
        """All evaluations, `jobs` at a time. Returns why they ended early, if they did, and the last failure."""
        try:
            return self.parallel(jobs, ahead) if jobs > 1 or ahead else self.serial(), self.last
        except KeyboardInterrupt:
            if not self.opt.history.complete:
                raise
            return "Stopped by Ctrl-C", self.last

    def serial(self) -> str:
        """One evaluation after the other, in this thread. Returns why it ended early, if it did."""
        for trial in self._next():
            self._show(trial)
            began = time.monotonic()
            try:
                value = self.f(self._argument(trial))
            except Exception as error:  # whatever the user's function raises costs one trial, never the run
                self._fail(trial, error)
            else:
                self._tell(trial, value)
            self._after(trial.number, time.monotonic() - began)
        return self.ended

    def parallel(self, jobs: int, ahead: int) -> str:
        """`jobs` evaluations at a time, in threads; `ahead` more wait in the pool, which begins one when a thread is free."""
        running: dict[Future[Any], Trial] = {}
        waiting: list[Trial] = []
        left: dict[Future[Any], Trial] = {}
        trials = self._next()
        pool = ThreadPoolExecutor(jobs)
        try:
            while True:
                while len(running) < jobs + ahead and (trial := next(trials, None)) is not None:
                    late = len(running) >= jobs
                    running[pool.submit(self._evaluate, trial, late)] = trial
                    if late:
                        waiting.append(trial)
                    else:
                        self._show(trial)
                if not running:
                    return self.ended
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=lambda x: running[x].number):
                    trial, error = running.pop(future), future.exception()
                    if isinstance(error, _NotBegun):
                        left[future] = trial
                        continue
                    if isinstance(error, Exception):
                        self._fail(trial, error)
                    else:
                        self._tell(trial, future.result())  # a KeyboardInterrupt or SystemExit is raised here
                    self._after(trial.number, time.monotonic() - self.started[trial.number])
                    if waiting:
                        self._show(waiting.pop(0))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            self._withdraw({**running, **left})

    def _evaluate(self, trial: Trial, late: bool) -> Any:
        """In a thread: evaluate, unless the run ended while the trial waited."""
        if late and (self.ended or (self.deadline is not None and time.monotonic() >= self.deadline)):
            raise _NotBegun
        self.started[trial.number] = time.monotonic()
        return self.f(self._argument(trial))

    def _withdraw(self, left: Mapping[Future[Any], Trial]) -> None:
        """Take back the trials that nobody began: the last ones. The next ask may make others of them."""
        trials = self.opt.history.trials
        numbers = {
            t.number for x, t in left.items() if x.cancelled() or (x.done() and isinstance(x.exception(), _NotBegun))
        }
        while trials and trials[-1].number in numbers:
            trials = trials[:-1]
        self.opt.history = replace(self.opt.history, trials=trials)

    def _next(self) -> Iterator[Trial]:
        """The trials to evaluate, until the budget, the timeout or the callback ends it."""
        while not self.ended and self.opt.budget is not None and self.opt.asked < self.opt.budget:
            if self.deadline is not None and time.monotonic() >= self.deadline:
                self.ended = "Stopped by the timeout"
                return
            began = time.monotonic()
            trial = self.opt.ask()[0]
            if self.view is not None:
                self.view.update(self.opt.history, model_seconds=time.monotonic() - began)
            yield trial

    def _show(self, trial: Trial) -> None:
        """Its evaluation begins."""
        if self.view is not None:
            self.view.began(trial.number)

    def _argument(self, trial: Trial) -> Any:
        values = values_of(self.opt.space, trial.params)
        return values if self.opt.space.positional else Named(trial.params, values)

    def _tell(self, trial: Trial, value: Any) -> None:
        try:
            self.opt.tell(trial.number, value)
        except InputError as error:
            self._fail(trial, error)

    def _fail(self, trial: Trial, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"
        self.opt.fail(trial.number, reason)
        self.last = error
        self.failed += 1
        log.warning(
            "An evaluation must return one finite number; trial %d gave %s It is recorded as failed and the search goes on.",
            trial.number,
            full_stop(reason),
        )

    def _after(self, number: int, seconds: float) -> None:
        trial = self.opt.history[number]
        self.made += 1
        if self.view is not None:
            self.view.update(self.opt.history, evaluation_seconds=seconds)
        if self.callback is not None:
            try:
                stop = self.callback(trial, self.opt)
            except StopIteration:
                stop = True
            if stop is True:
                self.ended = "Stopped by the callback"
        if trial.state is State.FAILED:
            try:
                self.limit.check(self.made, self.failed, trial.reason or "", "this error's `optimizer`")
            except EvaluationError as error:
                error.optimizer = self.opt
                raise error from self.last


def _start(opt: Optimizer, x0: ArrayLike | None, y0: Any) -> None:
    """Queue the points to evaluate first; record those whose outcomes are known."""
    if x0 is None:
        if y0 is not None:
            raise InputError("`y0` belongs to points `x0`; got no x0. Pass both, or neither.")
        return
    if isinstance(x0, Mapping):
        x0 = [[opt.space.canonical(x0)[n] for n in opt.space.names]]
    try:
        X = np.atleast_2d(np.array(x0, dtype=object))  # object: a category must not turn its neighbours into text
    except ValueError:
        raise InputError(
            f"`x0` is a point of {len(opt.space)} values or a list of them; got rows of several lengths."
        ) from None
    if X.ndim != 2 or X.shape[1] != len(opt.space):
        raise InputError(f"`x0` is a point of {len(opt.space)} values or a list of them; got shape {X.shape}.")
    points = [dict(zip(opt.space.names, row.tolist(), strict=True)) for row in X]
    if y0 is None:
        if opt.budget is not None and len(points) > opt.budget:
            raise InputError(
                f"Every point of `x0` is evaluated and counts against `budget`; got {len(points)} points and a budget of "
                f"{opt.budget}. Raise the budget to {len(points)} or more, leave points out, or give their outcomes as `y0`."
            )
        for point in points:
            opt.enqueue(point)
        return
    known: Any = y0.item() if isinstance(y0, np.ndarray) and y0.ndim == 0 else y0
    several = isinstance(known, Sequence | np.ndarray) and not isinstance(known, Outcome)
    outcomes = list(known) if several and np.shape(known[:1]) else [known]
    if len(outcomes) != len(X):
        raise InputError(f"`x0` and `y0` belong together; got {len(X)} points and {len(outcomes)} outcomes.")
    for point, outcome in zip(points, outcomes, strict=True):
        opt.tell(point, outcome)
