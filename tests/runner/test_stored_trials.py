"""Stored trials step by step: who takes over what and how often, what is given back and mended, what a worker sets up."""

from __future__ import annotations

import builtins
import ctypes
import hashlib
import os
import resource
import signal
import subprocess
import sys
import threading
from concurrent.futures import BrokenExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import alebo
from alebo.history import State
from alebo.methods import Sobol
from alebo.runner import _claims, _pools
from alebo.runner._pools import GivenExecutor, OwnPool, Running, _call, reason_of
from alebo.runner._records import check_sources
from alebo.runner._stop import Stop
from alebo.runner._storage import Storage
from alebo.runner._trials import ATTEMPTS
from alebo.runner._waiting import WAITING

from . import functions as fn

SPACE = alebo.Space.from_bounds([(-1, 1)] * 3)
GOAL = alebo.Minimize("loss")


def create(folder: Path, **more: Any) -> alebo.Study:
    return alebo.Study.create(folder / "s.log", SPACE, GOAL, method=Sobol(), seed=3, **more)


def owner(study: alebo.Study, number: int) -> dict[str, Any]:
    return dict(study._storage.trials()[number].user_attrs["owner"])


def give(study: alebo.Study, number: int, **new: Any) -> None:
    """Write another owner of a trial."""
    old = owner(study, number)
    assert study._storage.swap_owner(number, old, {"worker": "gone", "attempt": 1, "at": 0.0, **new})


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> alebo.Study:
    """Six trials of a worker that is gone; workers named "alive" live."""
    made = create(tmp_path)
    made.claim(6)
    monkeypatch.setattr(made._storage.claims, "alive", lambda worker: worker == "alive")
    for k in range(6):
        give(made, k)
    return made


def test_who_takes_over_which_trials(study: alebo.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    give(study, 1, worker="alive")
    give(study, 2, worker="alive", released=True)
    give(study, 3, worker=None)
    monkeypatch.setattr(study._storage.claims, "age", lambda stamp: 10.0)
    study.tell(4, 1.0)

    def taken(q: int, stale_after: float | None = None) -> list[int]:
        found, given_up = study._take_over(study._storage.trials(), q, stale_after)
        assert not given_up
        for t in found:
            give(study, t.number, **before[t.number])
        return [t.number for t in found]

    before = [owner(study, k) for k in range(6)]
    assert taken(9) == [0, 2, 5]
    assert taken(2) == [0, 2]
    assert taken(0) == []
    assert taken(9, stale_after=9.9) == [0, 2, 3, 5]
    assert taken(9, stale_after=10.0) == [0, 2, 5]  # older than that


def test_attempts_are_counted_where_a_trial_was_begun(study: alebo.Study) -> None:
    give(study, 1, attempt=4)
    give(study, 2, attempt=4, **{WAITING: True})
    give(study, 3, attempt=ATTEMPTS - 1)
    give(study, 4, attempt=ATTEMPTS)
    give(study, 5, attempt=ATTEMPTS + 3)
    taken, given_up = study._take_over(study._storage.trials(), 9, None)
    assert [t.number for t in taken] == [0, 1, 2, 3]
    assert [owner(study, k)["attempt"] for k in range(4)] == [2, 5, 4, ATTEMPTS]
    assert given_up
    assert [study.history[k].state for k in (4, 5)] == [State.FAILED] * 2
    assert study.history[4].reason == "its worker died or left it 10 times"
    assert {owner(study, k)["worker"] for k in range(4)} == {study.worker}


def test_those_after_the_first_are_prepared_only(study: alebo.Study) -> None:
    taken, _ = study._take_over(study._storage.trials(), 4, None, 2)
    assert [WAITING in owner(study, t.number) for t in taken] == [False, False, True, True]
    assert study.prepared() == [2, 3]
    assert study.begin(taken[3])
    assert not study.begin(taken[3])  # it has begun
    assert study.prepared() == [2]
    give(study, 2, worker="alive", **{WAITING: True})
    assert not study.begin(taken[2])  # another's by now


def test_what_was_claimed_is_given_back_and_nothing_else(study: alebo.Study) -> None:
    give(study, 0, worker=study.worker)
    give(study, 1, worker=study.worker)
    give(study, 2, worker="alive")
    study._handed = {0, 2}
    study._release()
    assert ["released" in owner(study, k) for k in range(4)] == [True, False, False, False]
    assert owner(study, 0)["worker"] == study.worker
    study.close()
    assert study._handed == set()


def test_a_finished_trial_is_read_once(tmp_path: Path) -> None:
    study = create(tmp_path)
    study.ask(3)
    study.tell(0, 1.0)
    study.fail(1, "lost")
    assert [t.state for t in study.history] == [State.COMPLETE, State.FAILED, State.PENDING]
    assert set(study._done) == {0, 1}
    again = alebo.Study.open(tmp_path / "s.log")
    first = again.history[0]
    assert again.history[0] is first


def test_a_claim_takes_over_before_it_asks(study: alebo.Study) -> None:
    assert [t.number for t in study.claim(8, begun=7)] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert [WAITING in owner(study, k) for k in range(8)] == [False] * 7 + [True]
    assert study._handed == set(range(8))


def test_an_outcome_is_in_hand_until_it_is_written(tmp_path: Path) -> None:
    study = create(tmp_path)
    study.ask(2)
    study.hold(0, 1.5)
    study.hold(0, 9.0)  # the first stands
    study.hold(2, 1.0)  # there is none
    study.hold(-1, 1.0)
    assert {k: v["outcomes"]["loss"][0] for k, v in study._in_hand.items()} == {0: 1.5}
    study.tell(0, 1.5)
    assert study._in_hand == {}
    with pytest.raises(alebo.StateError, match="already complete"):
        study.tell(0, 2.0)
    assert study._in_hand == {}
    with pytest.raises(alebo.InputError):
        study.tell(1, {"other": 1.0})
    assert study._in_hand == {}


def test_the_sources_of_a_study_are_those_it_was_begun_with() -> None:
    opt = alebo.Optimizer(alebo.Space.from_bounds([(-1, 1)] * 3), alebo.Minimize("loss"))
    check_sources("here", {"sources": [1, 2]}, (), opt)
    check_sources("here", {"sources": [1, 2]}, ["a.csv", "b.csv"], opt)
    check_sources("here", {}, (), opt)
    for stored, words in (({"sources": [1, 2]}, "begun with 2, and got 1"), ({}, "begun with none, and got 1")):
        with pytest.raises(alebo.StudyError, match=words):
            check_sources("here", stored, "a.csv", opt)


def test_a_machine_is_known_by_its_name_its_boot_and_its_container(monkeypatch: pytest.MonkeyPatch) -> None:
    """As other processes write it, also of other releases."""
    _claims._machine.cache_clear()
    monkeypatch.setattr(_claims.socket, "gethostname", lambda: "host")
    monkeypatch.setattr(_claims.Path, "read_text", lambda self: "boot\n")
    monkeypatch.setattr(_claims.os, "readlink", lambda path: "pid:[1]")
    assert _claims._machine() == hashlib.sha256(b"host/boot/pid:[1]").hexdigest()[:10]
    name, pid, machine, rest = _claims.new_worker().rsplit(":", 3)
    assert (name, pid, machine, len(rest)) == ("host", str(os.getpid()), _claims._machine(), 12)
    monkeypatch.undo()
    _claims._machine.cache_clear()


def test_a_storage_can_be_written_and_writes_once_unless_it_says_so() -> None:
    assert (Storage.read_only, Storage.twice) == (False, False)


# -- pools -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "pages", "hard", "limit"),
    [
        (None, "100 5", -1, None),
        (5000, "100 5", -1, 5000 + 100 * 4096),
        (5000, None, -1, 5000),  # nobody says how much is used
        (5000, "100 5", 10**9, 5000 + 100 * 4096),
        (5000, "100 5", 6000, 6000),
        (5000, "x", -1, 5000),
    ],
)
def test_the_memory_of_a_worker(
    monkeypatch: pytest.MonkeyPatch, memory: int | None, pages: str | None, hard: int, limit: int | None
) -> None:
    did: list[Any] = []
    handlers: dict[int, Any] = {}

    def opened(path: str) -> Any:
        assert path == "/proc/self/statm"
        if pages is None:
            raise OSError
        return open_here()

    def open_here() -> Any:
        file = SimpleNamespace(read=lambda: pages)
        return type("File", (), {"__enter__": lambda self: file, "__exit__": lambda self, *error: None})()

    monkeypatch.setattr(builtins, "open", opened)
    monkeypatch.setattr(ctypes, "CDLL", lambda *given, **how: SimpleNamespace(prctl=lambda *args: did.append(args)))
    monkeypatch.setattr(_pools.os, "getppid", lambda: 31)
    monkeypatch.setattr(_pools.signal, "signal", handlers.__setitem__)
    monkeypatch.setattr(_pools, "_be_watched", lambda: did.append("watched"))
    monkeypatch.setattr(resource, "getpagesize", lambda: 4096)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (7, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: did.append((kind, pair)))
    _pools._settle(memory, 31)
    monkeypatch.undo()
    limits = [] if limit is None else [(resource.RLIMIT_AS, (limit, hard))]
    assert did == [(1, signal.SIGKILL), "watched", *limits]
    assert handlers == {signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}


def test_a_worker_whose_driver_is_dead_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(BaseException):
        pass

    def leave(code: int) -> None:
        assert code == 1
        raise Gone

    monkeypatch.setattr(ctypes, "CDLL", lambda *given, **how: SimpleNamespace(prctl=lambda *args: 0))
    monkeypatch.setattr(_pools.os, "getppid", lambda: 1)
    monkeypatch.setattr(_pools.os, "_exit", leave)
    with pytest.raises(Gone):
        _pools._settle(None, 31)


def test_a_worker_is_watched_by_a_process_that_does_not_find_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(_pools.os, "setsid", lambda: started.append("setsid"))
    monkeypatch.setattr(
        subprocess, "Popen", lambda words, **how: started.append((words, how, os.environ.get("ALEBO_WORKER")))
    )
    monkeypatch.setenv("ALEBO_WORKER", "before")
    _pools._be_watched()
    assert started[0] == "setsid"
    words, how, mark = started[1]
    name = os.environ["ALEBO_WORKER"]
    assert words == [sys.executable, "-I", "-S", _pools.SUPERVISOR, "watch", str(os.getpid()), name]
    assert (mark, len(name), how.pop("start_new_session")) == ("before", 16, True)
    assert set(how.values()) == {subprocess.DEVNULL}


def test_an_evaluation_knows_its_trial_and_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALEBO_TRIAL", "")
    monkeypatch.setenv("ALEBO_SEED", "")
    given = {"a": 1}
    found = _call(lambda p: (p, os.environ["ALEBO_TRIAL"], os.environ["ALEBO_SEED"]), given, 4, 9)
    assert found == (given, "4", "9")
    assert found[0] is not given


@pytest.mark.parametrize("workers", [0, -1, 1.5])
def test_workers_are_whole(workers: Any) -> None:
    with pytest.raises(alebo.InputError, match="`workers >= 1` must hold"):
        OwnPool(fn.sphere, workers, None, None)


def test_what_an_executor_says_of_itself() -> None:
    trial: Any = SimpleNamespace(number=3, params={"x": 1})

    def executor(error: BaseException | None = None) -> Any:
        def submit(*given: Any) -> Any:
            if error is not None:
                raise error
            return given

        return SimpleNamespace(submit=submit)

    for error, kind, words in (
        (BrokenExecutor("x"), alebo.StateError, "this one is broken"),
        (RuntimeError("shut"), alebo.StateError, "takes no work"),
        (AttributeError("local"), alebo.InputError, "picklable function"),
        (TypeError("local"), alebo.InputError, "picklable function"),
    ):
        with pytest.raises(kind, match=words):
            GivenExecutor(executor(error), fn.sphere, 1, None).start(trial)
    with pytest.raises(alebo.InputError, match="has `submit"):
        GivenExecutor(object(), fn.sphere, 1, None)
    pebble = SimpleNamespace(submit=len, schedule=lambda f, args, timeout: (args, timeout))
    found = GivenExecutor(pebble, fn.sphere, None, 4.0).start(trial)
    assert (found.future, found.deadline) == (([{"x": 1}], 4.0), None)  # it stops what takes too long itself
    assert reason_of(TimeoutError("slow"), None) == "TimeoutError: slow"
    assert len(reason_of(ValueError("y" * 3000), None)) == 2000
    expired = type("ProcessExpired", (Exception,), {})
    for code, words in ((-9, "died by SIGKILL (exit code -9)"), (3, "died (exit code 3)"), (0, "died (exit code 0)"), (-999, "died (exit code -999)")):  # fmt: skip
        error = expired()
        error.exitcode = code
        assert reason_of(error, None) == f"ProcessExpired: the evaluation's process {words}"
    assert (Running(trial, None, None).waiting, Running(trial, None, None).ended) == (False, None)


# -- signals -----------------------------------------------------------------------------------------------------------------


def test_a_signal_is_looked_at_when_it_suits_and_the_second_at_once() -> None:
    stop = Stop()
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with stop.handled():
        signal.raise_signal(signal.SIGTERM)  # the first is noted
        assert stop.signal == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt, match=" by SIGTERM"):
            stop.check()
        with pytest.raises(KeyboardInterrupt, match=" by SIGHUP"):
            signal.raise_signal(signal.SIGHUP)  # the second does not wait
    assert {n: signal.getsignal(n) for n in before} == before
    other = Stop()
    other.check()
    with other.at_once():
        assert other.open == 1
    with other.handled(), pytest.raises(KeyboardInterrupt) as stopped, other.at_once():
        signal.raise_signal(signal.SIGINT)
    assert str(stopped.value) == ""
    assert other.open == 0
    with pytest.raises(KeyboardInterrupt), other.at_once():
        raise AssertionError("it must not be reached")
    assert other.open == 0
    with pytest.raises(KeyboardInterrupt), other.after():
        pass
    thread = threading.Thread(target=other.check)  # only the main thread is stopped
    thread.start()
    thread.join()


def test_handlers_of_others_are_left_alone() -> None:
    mine = lambda *_: None  # noqa: E731
    old = signal.signal(signal.SIGTERM, mine)
    try:
        with Stop().handled():
            assert signal.getsignal(signal.SIGTERM) is mine
            assert signal.getsignal(signal.SIGHUP) not in (signal.SIG_DFL, None)
        assert signal.getsignal(signal.SIGTERM) is mine
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, old)
