"""Where evaluations run: processes of our own, or an executor of the user's."""

from __future__ import annotations

import ctypes
import os
import pickle
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from .._errors import InputError, MissingPartError, StateError
from .._processes import SUPERVISOR
from .._seeds import derive
from .._text import printable
from ..history import Trial


@dataclass
class Running:
    """A trial that is being evaluated."""

    trial: Trial
    future: Any
    deadline: float | None  # for executors that know no timeout of their own
    began: float = field(default_factory=time.monotonic)
    waiting: bool = False  # prepared, and not begun: all workers are busy
    ended: float | None = None  # where the pool notes it

    def note_end(self, _: Any) -> None:
        """The evaluation has ended; nobody may have looked yet."""
        self.ended = time.monotonic()


def seed_of(study_seed: int, number: int) -> int:
    """The seed of a trial's evaluation: below 2^31, and the same when the trial is repeated."""
    return derive(study_seed, "evaluation", number) % 2**31


def _for_trial(f: Callable[..., Any], number: int, seed: int) -> Callable[..., Any]:
    """An evaluator that has `for_trial` gets number and seed; a plain function stays as it is."""
    bind = getattr(f, "for_trial", None)
    return bind(number, seed) if callable(bind) else f


def _call(f: Callable[[dict[str, Any]], Any], params: Mapping[str, Any], number: int, seed: int) -> Any:
    """In a process of our pool: evaluate, with the trial's number and seed in the environment."""
    os.environ["ALEBO_TRIAL"], os.environ["ALEBO_SEED"] = str(number), str(seed)
    return f(dict(params))


class OwnPool:
    """The default: pebble's processes, in which an evaluation can be stopped, limited, and can die alone."""

    queues = True  # what is started while all workers are busy waits here, and no longer than that

    def __init__(
        self, f: Callable[..., Any], workers: int, timeout: float | None, memory: float | None, seed: int = 0
    ) -> None:
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
        self.f, self.workers, self.timeout, self.seed = f, int(workers), timeout, seed
        limit = None if memory is None else int(memory)
        self.pool = ProcessPool(max_workers=self.workers, initializer=_settle, initargs=(limit, os.getpid()))

    def start(self, trial: Trial) -> Running:
        seed = seed_of(self.seed, trial.number)
        arguments = [_for_trial(self.f, trial.number, seed), dict(trial.params), trial.number, seed]
        running = Running(trial, self.pool.schedule(_call, args=arguments, timeout=self.timeout), None)
        running.future.add_done_callback(running.note_end)
        return running

    def close(self) -> None:
        self.pool.stop()  # type: ignore[no-untyped-call]
        self.pool.join()


class GivenExecutor:
    """An executor of the user's: only `submit` is asked of it, and `done` and `result` of what it returns."""

    queues = False  # it may have more workers than it was to keep busy

    def __init__(
        self, executor: Any, f: Callable[..., Any], workers: int | None, timeout: float | None, seed: int = 0
    ) -> None:
        if not callable(getattr(executor, "submit", None)):
            raise InputError(
                f"An executor has `submit(function, *args)`; {type(executor).__name__} has not. Pass a "
                "concurrent.futures executor, "
                "or dask's client.get_executor()."
            )
        found = workers or getattr(executor, "_max_workers", None) or 1
        self.executor, self.f, self.workers, self.timeout, self.seed = executor, f, int(found), timeout, seed

    def start(self, trial: Trial) -> Running:
        f = _for_trial(self.f, trial.number, seed_of(self.seed, trial.number))
        try:
            if callable(getattr(self.executor, "schedule", None)):  # a pool of pebble's: it stops what takes too long
                scheduled = self.executor.schedule(f, args=[dict(trial.params)], timeout=self.timeout)
                return Running(trial, scheduled, None)
            future = self.executor.submit(f, dict(trial.params))  # a worker elsewhere needs no alebo
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
        return Running(trial, future, None if self.timeout is None else time.monotonic() + self.timeout)

    def close(self) -> None:
        """Nothing: it belongs to the user."""


def reason_of(error: BaseException, timeout: float | None) -> str:
    """Why an evaluation failed, for people."""
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
    return printable(f"{kind}: {error}")[:2000]


def _settle(memory: int | None, parent: int) -> None:
    """In a new worker process: die with the driver, leave nothing behind, and take no more memory than allowed."""
    if sys.platform == "linux":
        with suppress(Exception):
            ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
            if os.getppid() != parent:
                os._exit(1)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # the driver's handlers are not for us
    _be_watched()
    if memory is not None:
        import resource

        used = 0
        with suppress(OSError, ValueError), open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        limit = used + memory
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))


def _be_watched() -> None:
    """Start a process that ends what this worker has started, when this worker ends, however it ends."""
    name = secrets.token_hex(8)
    with suppress(OSError):
        os.setsid()  # Ctrl-C is for the driver; and a group of our own, that can be ended as one
        # with the environment of before, so that it does not find itself
        subprocess.Popen(
            [sys.executable, "-I", "-S", SUPERVISOR, "watch", str(os.getpid()), name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.environ["ALEBO_WORKER"] = name
