"""`run`: evaluates a study's trials on an executor. One evaluation that breaks costs one trial, never the run."""

from __future__ import annotations

import ctypes
import logging
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .._errors import InputError, MissingPartError, StateError
from .._failures import FailureLimit
from ..history import State, Trial
from ..optimizer import Optimizer
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
    budget: int | None = None,
    timeout: float | None = None,
    memory: float | None = None,
    max_failed: float = 0.5,
    stale_after: float | None = None,
    callback: Callable[[Trial, Study], None] | None = None,
) -> Optimizer:
    """Evaluate `f(params)` until the study's budget is used; the same call continues a run that was stopped, anyhow.

    `f` takes a dictionary of named parameters and returns what `tell` takes: a number, or a mapping of outcomes.
    Without `executor`, evaluations run in `workers` processes of their own, each of at most `timeout` seconds and
    `memory` bytes beyond what a worker starts with; one that crashes, hangs or raises fails its trial, with the reason
    kept. `executor` is anything with `submit(function, *args)` that returns futures (of dask, loky, submitit, the
    standard library): then `workers` evaluations are kept under way, `timeout` gives a trial up but cannot stop its
    process, and `memory` is the executor's affair. Other processes may run the same study at the same time.

    The run ends with an EvaluationError when more than the share `max_failed` of its evaluations failed (judged from
    the tenth on). `callback(trial, study)` is called after every evaluation. Returns an Optimizer with all that is
    known.
    """
    opened = study if isinstance(study, Study) else Study.open(study)
    _check(f, opened, budget, timeout, memory, max_failed)
    if budget is not None and budget != opened.budget:
        opened.set_budget(budget)
    if opened.budget is None:
        raise InputError(
            "`budget` says when to stop; this study has none. Pass budget=, the number of evaluations in all."
        )
    pool = _ProcessPool(f, workers or 1, timeout, memory) if executor is None else _Given(executor, f, workers, timeout)
    loop = _Loop(opened, pool, max_failed, stale_after, callback)
    try:
        loop.go()
    except KeyboardInterrupt:
        sentence = (
            f"Stopped. {len(opened.history.complete)} evaluations are safe in {opened.where}; {len(loop.running)} "
            "were under way "
            "and will be repeated. To go on, run the same command again."
        )
        log.warning("%s", sentence)
        raise KeyboardInterrupt(sentence) from None
    finally:
        pool.close()
        opened.close()
    return opened.optimizer()


def _check(
    f: Any, study: Study, budget: int | None, timeout: float | None, memory: float | None, max_failed: float
) -> None:
    if not callable(f):
        raise InputError(f"`f` must be callable with a dictionary of parameters; got {f!r:.60}.")
    for name, value in (("timeout", timeout), ("memory", memory)):
        if value is not None and not value > 0:
            raise InputError(f"`{name} > 0` must hold; got {value}. Leave it out for no limit.")
    FailureLimit(max_failed)
    if budget is not None and (int(budget) != budget or budget < 1):
        raise InputError(f"`budget >= 1` must hold; got {budget}. Say how many evaluations you can afford.")


@dataclass
class _Running:
    trial: Trial
    future: Any
    deadline: float | None  # for executors that know no timeout of their own


class _Loop:
    """Keeps the pool full, tells what comes back, and judges how many failed."""

    def __init__(
        self,
        study: Study,
        pool: _ProcessPool | _Given,
        max_failed: float,
        stale_after: float | None,
        callback: Callable[[Trial, Study], None] | None,
    ) -> None:
        self.study, self.pool = study, pool
        self.limit, self.stale_after, self.callback = FailureLimit(max_failed), stale_after, callback
        self.running: list[_Running] = []
        self.finished = self.failed = 0

    def go(self) -> None:
        while True:
            room = self.pool.workers - len(self.running)
            if room > 0:
                for trial in self.study.claim(room, stale_after=self.stale_after):
                    self.running.append(self.pool.start(trial))
            if self.running:
                self._collect()
            elif self.study.waiting():  # a worker elsewhere still evaluates; should it die, its trial is ours
                time.sleep(IDLE)
            else:
                return

    def _collect(self) -> None:
        futures = [r.future for r in self.running]
        if all(isinstance(x, Future) for x in futures):
            ends = [r.deadline for r in self.running if r.deadline is not None]
            rest = max(0.0, min(ends) - time.monotonic()) if ends else None
            # with room left for more, look again: a trial of a worker that died, or a larger budget, may have come
            idle = 10 * IDLE if len(self.running) < self.pool.workers else None
            limits = [x for x in (rest, idle) if x is not None]
            wait(futures, timeout=min(limits) if limits else None, return_when=FIRST_COMPLETED)
        elif not any(x.done() for x in futures):
            time.sleep(POLL)
        for r in list(self.running):
            if r.future.done():
                self._tell(r)
            elif r.deadline is not None and time.monotonic() > r.deadline:
                with suppress(Exception):
                    r.future.cancel()
                self._finish(r, reason=f"TimeoutError: it took longer than {self.pool.timeout} seconds")

    def _tell(self, r: _Running) -> None:
        try:
            outcomes = r.future.result()
        except BrokenExecutor as error:
            raise StateError(
                f"An executor must survive the death of its workers; this one did not ({type(error).__name__}: "
                f"{error}). Nothing "
                "told is lost: run the same command again, best with the default pool, which survives."
            ) from None
        except (Exception, CancelledError) as error:
            self._finish(r, reason=_reason(error, self.pool.timeout))
            return
        try:
            self._finish(r, outcomes=outcomes)
        except InputError as error:
            self._finish(r, reason=f"{type(error).__name__}: {error}")

    def _finish(self, r: _Running, outcomes: Any = None, reason: str | None = None) -> None:
        try:
            if reason is None:
                trial = self.study.tell(r.trial.number, outcomes)
            else:
                trial = self.study.fail(r.trial.number, reason)
                log.warning("Trial %d failed: %s", r.trial.number, reason.splitlines()[0])
        except StateError as error:  # we were taken for dead, and another worker told it
            log.warning("Trial %d: %s", r.trial.number, error)
            self.running.remove(r)
            return
        self.running.remove(r)
        self.finished += 1
        self.failed += trial.state is State.FAILED
        if self.callback is not None:
            self.callback(trial, self.study)
        if trial.state is State.FAILED:
            self.limit.check(self.finished, self.failed, trial.reason or "", self.study.where)


def _reason(error: BaseException, timeout: float | None) -> str:
    kind = type(error).__name__
    if kind == "ProcessExpired":
        code = getattr(error, "exitcode", None)
        name = ""
        if isinstance(code, int) and code < 0:
            with suppress(ValueError):
                name = f" by {signal.Signals(-code).name}"
        return f"ProcessExpired: the evaluation's process died{name} (exit code {code})"
    if isinstance(error, TimeoutError) and timeout is not None:
        return f"TimeoutError: it took longer than {timeout} seconds"
    return f"{kind}: {error}"[:2000]


class _ProcessPool:
    """The default: pebble's processes, in which an evaluation can be stopped, limited, and can die alone."""

    def __init__(self, f: Callable[..., Any], workers: int, timeout: float | None, memory: float | None) -> None:
        try:
            from pebble import ProcessPool
        except ImportError:
            raise MissingPartError(
                'The default pool needs pebble, which is not installed. Run: pip install "optuna>=5" "pebble>=5.1"'
            ) from None
        try:
            pickle.dumps(f)
        except Exception as error:
            raise InputError(
                f"An evaluation runs in a process of its own, so `f` must be picklable; {f!r:.60} is not "
                f"({type(error).__name__}). "
                "Define it with `def` at the top of a module, or pass "
                "executor=concurrent.futures.ThreadPoolExecutor(1)."
            ) from None
        if int(workers) != workers or workers < 1:
            raise InputError(f"`workers >= 1` must hold; got {workers}.")
        self.f, self.workers, self.timeout = f, int(workers), timeout
        limit = None if memory is None else int(memory)
        self.pool = ProcessPool(max_workers=self.workers, initializer=_settle, initargs=(limit, os.getpid()))

    def start(self, trial: Trial) -> _Running:
        return _Running(trial, self.pool.schedule(self.f, args=[dict(trial.params)], timeout=self.timeout), None)

    def close(self) -> None:
        self.pool.stop()  # type: ignore[no-untyped-call]
        self.pool.join()


class _Given:
    """An executor of the user's: only `submit` is asked of it, and `done` and `result` of what it returns."""

    def __init__(self, executor: Any, f: Callable[..., Any], workers: int | None, timeout: float | None) -> None:
        if not callable(getattr(executor, "submit", None)):
            raise InputError(
                f"An executor has `submit(function, *args)`; {type(executor).__name__} has not. Pass a "
                "concurrent.futures executor, "
                "or dask's client.get_executor()."
            )
        found = workers or getattr(executor, "_max_workers", None) or 1
        self.executor, self.f, self.workers, self.timeout = executor, f, int(found), timeout

    def start(self, trial: Trial) -> _Running:
        try:
            if callable(getattr(self.executor, "schedule", None)):  # a pool of pebble's: it stops what takes too long
                scheduled = self.executor.schedule(self.f, args=[dict(trial.params)], timeout=self.timeout)
                return _Running(trial, scheduled, None)
            future = self.executor.submit(self.f, dict(trial.params))  # a worker elsewhere needs no alebo
        except BrokenExecutor as error:
            raise StateError(
                f"An executor must be able to work; this one is broken ({error}). Make a new one, and run the same "
                "command again."
            ) from None
        except RuntimeError as error:
            raise StateError(
                f"An executor must be open while a study runs; this one takes no work ({error}). Make a new one (and "
                "keep its "
                "`with` block open), and run the same command again."
            ) from None
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputError(
                f"This executor needs a picklable function; {self.f!r:.60} is not ({error}). Define it with `def` at "
                "the top of a module."
            ) from None
        return _Running(trial, future, None if self.timeout is None else time.monotonic() + self.timeout)

    def close(self) -> None:
        """Nothing: it belongs to the user."""


def _settle(memory: int | None, parent: int) -> None:
    """In a new worker process: die with the driver, and take no more memory than allowed beyond what is in use now."""
    if sys.platform == "linux":
        with suppress(Exception):
            ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
            if os.getppid() != parent:
                os._exit(1)
    if memory is not None:
        import resource

        used = 0
        with suppress(OSError, ValueError), open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        limit = used + memory
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))
