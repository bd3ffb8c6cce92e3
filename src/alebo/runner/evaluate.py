"""`run`: evaluates a study's trials on an executor. One evaluation that breaks costs one trial, never the run."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any

from .._checks import callable_or_none, prepared_ahead, whole
from .._errors import InputError, StateError
from .._failures import FailureLimit
from ..history import State, Trial
from ..optimizer import Optimizer
from ._pools import GivenExecutor, OwnPool, Running, reason_of
from ._stop import LOOK, Stop
from .study import Study

log = logging.getLogger(__name__)

POLL = 0.05  # seconds between looks at futures that cannot be waited for
IDLE = 0.5  # seconds between looks at what other workers do


def run(
    study: Study | str | os.PathLike[str],
    f: Callable[[dict[str, Any]], Any],
    *,
    executor: Any = None,
    workers: int | None = None,
    ahead: int | None = None,
    budget: int | None = None,
    timeout: float | None = None,
    memory: float | None = None,
    max_failed: float = 0.5,
    stale_after: float | None = None,
    callback: Callable[[Trial, Study], None] | None = None,
    on_step: Callable[[Step], None] | None = None,
    on_start: Callable[[Trial], None] | None = None,
) -> Optimizer:
    """Evaluate `f(params)` until the study's budget is used; the same call continues a run that was stopped, anyhow.

    `f` takes a dictionary of named parameters and returns what `tell` takes: a number, or a mapping of outcomes.
    Without `executor`, evaluations run in `workers` processes of their own, each of at most `timeout` seconds and
    `memory` bytes beyond what a worker starts with; one that crashes, hangs or raises fails its trial, with the reason
    kept. `executor` is anything with `submit(function, *args)` that returns futures (of dask, loky, submitit, the
    standard library): then `workers` evaluations are kept under way, `timeout` gives a trial up but cannot stop its
    process, and `memory` is the executor's affair. Other processes may run the same study at the same time.

    Args:
        study: A study, or the path or URL of one.
        f: The function. In a process of our own it finds the trial's number and seed in the environment, as
            ALEBO_TRIAL and ALEBO_SEED.
        executor: Where evaluations run; None: processes of our own.
        workers: How many evaluations are kept under way.
        ahead: Trials prepared while all workers are busy, so that none waits. None: one for every two workers.
        budget: How many evaluations may be made in all, where it is to differ from the study's.
        timeout: Seconds that one evaluation may take.
        memory: Bytes that one evaluation may take.
        max_failed: The share of failed evaluations (judged from the tenth on) that ends the run with an
            EvaluationError.
        stale_after: Trials asked by hand so many seconds ago are evaluated here, too.
        callback: Called as `callback(trial, study)` after every evaluation.
        on_step: Called with a `Step` after every evaluation: the trial, and the seconds it took.
        on_start: Called with the trial when its evaluation starts.

    Returns:
        An Optimizer with all that is known.

    Ctrl-C, SIGTERM and SIGHUP end the run with a KeyboardInterrupt that says how to go on; nothing that the
    evaluations started is left running. A computation of the method and a callback are finished first; a second
    signal does not wait for them.
    """
    opened = study if isinstance(study, Study) else Study.open(study)
    _check(f, budget, ahead, timeout, memory, max_failed, callback=callback, on_step=on_step, on_start=on_start)
    _set_budget(opened, budget)
    pool = (
        OwnPool(f, workers or 1, timeout, memory, opened.seed)
        if executor is None
        else GivenExecutor(executor, f, workers, timeout, opened.seed)
    )
    loop = _Loop(opened, pool, FailureLimit(max_failed), stale_after, callback, on_step, on_start)
    loop.ahead = prepared_ahead(ahead, pool.workers)
    return _finish(loop)


def _set_budget(study: Study, budget: int | None) -> None:
    if budget is not None and budget != study.budget:
        study.set_budget(budget)
    if study.budget is None:
        raise InputError(
            "`budget` says when to stop; this study has none. Pass budget=, the number of evaluations in all."
        )


def _finish(loop: _Loop) -> Optimizer:
    """Evaluate until the end; an interrupt says how to go on, and everything that was started ends."""
    study, stop = loop.study, loop.stop
    study.obey(stop)
    try:
        with stop.handled():
            loop.go()
        stop.check()  # it came with the last evaluation
    except KeyboardInterrupt as interrupt:
        loop.hold_finished()
        study.rescue()
        message = (
            f"Stopped{interrupt}. {study.known} evaluations are safe in {study.where}; {sum(not r.waiting for r in loop.running)} were under way "
            "and will be repeated. To go on, run the same command again."
        )
        log.warning("%s", message)
        raise KeyboardInterrupt(message) from None
    finally:
        loop.end()
        study.obey(None)
        loop.pool.close()
        study.close()
    return study.optimizer()


def _check(
    f: Any,
    budget: int | None,
    ahead: int | None,
    timeout: float | None,
    memory: float | None,
    max_failed: float,
    **called: Any,
) -> None:
    for name, call in called.items():
        callable_or_none(name, call)
    if not callable(f):
        raise InputError(f"`f` must be callable with a dictionary of parameters; got {f!r:.60}.")
    limits: dict[str, Any] = {"timeout": timeout, "memory": memory}
    for name, value in limits.items():
        if value is not None and not (isinstance(value, Real) and float(value) > 0):
            raise InputError(f"`{name} > 0` must hold, a number; got {value!r:.60}. Leave it out for no limit.")
    FailureLimit(max_failed)
    prepared_ahead(ahead, 1)
    if budget is not None:
        whole("budget", budget, 1, "Say how many evaluations you can afford.")


@dataclass(frozen=True)
class Step:
    """One finished evaluation of a run, with the seconds it took.

    Attributes:
        trial: What came back.
        study: The study, with everything known.
        ask_seconds: What `claim` took (mostly the method) since the step before.
        evaluation_seconds: From the start of the evaluation to its end.
    """

    trial: Trial
    study: Study
    ask_seconds: float
    evaluation_seconds: float


class _Loop:
    """Keeps the pool full, tells what comes back, and judges how many failed."""

    def __init__(
        self,
        study: Study,
        pool: OwnPool | GivenExecutor,
        limit: FailureLimit,
        stale_after: float | None,
        callback: Callable[[Trial, Study], None] | None,
        on_step: Callable[[Step], None] | None,
        on_start: Callable[[Trial], None] | None = None,
    ) -> None:
        self.study, self.pool = study, pool
        self.limit, self.stale_after, self.callback, self.on_step = limit, stale_after, callback, on_step
        self.on_start = on_start
        self.stop = Stop()
        self.ahead = 0
        self.running: list[Running] = []  # in the order in which they begin
        self.freed: list[float] = []  # when workers became free since the last look
        self.finished = self.failed = 0
        self.asking = 0.0  # seconds since the last step
        study.while_away.append(self.hold_finished)

    def end(self) -> None:
        """The run is over."""
        self.study.while_away.remove(self.hold_finished)

    def hold_finished(self) -> None:
        """Have in hand what evaluations gave that is not written yet."""
        for r in self.running:
            if r.future is not None and r.future.done():
                with suppress(Exception, CancelledError):
                    self.study.hold(r.trial.number, r.future.result())

    def go(self) -> None:
        while True:
            self.stop.check()
            self._fill()
            if self.running:
                self._collect()
            elif self.study.waiting():  # a worker elsewhere still evaluates; should it die, its trial is ours
                time.sleep(IDLE)
            else:
                return

    def _fill(self) -> None:
        """Keep every worker busy, and as many trials prepared as are wanted."""
        free = self.pool.workers - sum(not r.waiting for r in self.running)
        for r in [r for r in self.running if r.waiting][: max(free, 0)]:
            self._begin(r)
        self.freed.clear()
        wanted = self.pool.workers + self.ahead - len(self.running)
        if wanted <= 0:
            return
        free = max(0, self.pool.workers - len(self.running))
        start = time.monotonic()
        trials = self.study.claim(wanted, stale_after=self.stale_after, begun=free)
        self.asking += time.monotonic() - start
        for i, trial in enumerate(trials):
            if i < free and self.on_start is not None:
                self.on_start(trial)
            held = i >= free and not self.pool.queues
            r = Running(trial, None, None) if held else self._start(trial)
            r.waiting = i >= free
            self.running.append(r)

    def _begin(self, r: Running) -> None:
        """A worker is free for this prepared trial; in a pool that queues it has begun already."""
        ours = self.study.begin(r.trial)
        if r.future is None:
            if not ours:  # we were taken for dead, and another worker has it
                self.running.remove(r)
                return
            started = self._start(r.trial)
            r.future, r.deadline, r.began = started.future, started.deadline, started.began
        else:
            r.began = self.freed.pop(0) if self.freed else time.monotonic()
        r.waiting = False
        if self.on_start is not None:
            self.on_start(r.trial)

    def _start(self, trial: Trial) -> Running:
        own = isinstance(self.pool, OwnPool)
        with nullcontext() if own else self.stop.at_once():  # an executor may evaluate before it returns
            return self.pool.start(trial)

    def _collect(self) -> None:
        futures = [r.future for r in self.running if r.future is not None]
        if all(isinstance(x, Future) for x in futures):
            ends = [r.deadline for r in self.running if r.deadline is not None]
            rest = max(0.0, min(ends) - time.monotonic()) if ends else None
            # with a worker free, look again: a trial of a worker that died, or a larger budget, may have come
            idle = 10 * IDLE if len(self.running) < self.pool.workers else None
            self._wait(futures, min(x for x in (rest, idle, inf) if x is not None))
        elif not any(x.done() for x in futures):
            time.sleep(POLL)
        for r in [r for r in self.running if r.future is not None]:
            if r.future.done():
                if r.waiting:  # begun and ended since the last look
                    self._begin(r)
                self._tell(r)
            elif r.deadline is not None and time.monotonic() > r.deadline:
                with suppress(Exception):
                    r.future.cancel()
                self._finish(r, reason=f"TimeoutError: it took longer than {self.pool.timeout} seconds")

    def _wait(self, futures: list[Any], seconds: float) -> None:
        """Until one of them is done, so many seconds at most, or until a signal says to stop."""
        until = time.monotonic() + seconds
        while not wait(futures, min(LOOK, max(0.0, until - time.monotonic())), FIRST_COMPLETED).done:
            self.stop.check()
            if time.monotonic() >= until:
                return

    def _tell(self, r: Running) -> None:
        try:
            outcomes = r.future.result()
        except BrokenExecutor as error:
            raise StateError(
                f"An executor must survive the death of its workers; this one did not ({type(error).__name__}: "
                f"{error}). Nothing reported is lost: run the same command again, best with the default pool, which survives."
            ) from None
        except (Exception, CancelledError) as error:
            self._finish(r, reason=reason_of(error, self.pool.timeout))
            return
        try:
            self._finish(r, outcomes=outcomes)
        except InputError as error:
            self._finish(r, reason=f"{type(error).__name__}: {error}")

    def _finish(self, r: Running, outcomes: Any = None, reason: str | None = None) -> None:
        try:
            if reason is None:
                trial = self.study.tell(r.trial.number, outcomes)
            else:
                trial = self.study.fail(r.trial.number, reason)
                log.warning("Trial %d failed: %s", r.trial.number, reason.splitlines()[0])
        except StateError as error:  # we were taken for dead, and another worker finished it
            log.warning("Trial %d: %s", r.trial.number, error)
            self.running.remove(r)
            return
        self.running.remove(r)
        ended = time.monotonic() if r.ended is None else r.ended
        self.freed.append(ended)
        self.finished += 1
        self.failed += trial.state is State.FAILED
        if self.callback is not None:
            self.callback(trial, self.study)
        if self.on_step is not None:
            asked, self.asking = self.asking, 0.0
            self.on_step(Step(trial, self.study, asked, ended - r.began))
        if trial.state is State.FAILED:
            self.limit.check(self.finished, self.failed, trial.reason or "", self.study.where)
