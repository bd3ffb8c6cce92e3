"""The supervisor of commands, step by step: with a clock, processes and signals made by hand."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from alebo import _supervise as sup

TERM, KILL, HUP, INT = signal.SIGTERM, signal.SIGKILL, signal.SIGHUP, signal.SIGINT


class Hand:
    """Time that moves when somebody sleeps, and a list of what was done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.did = 100.0, []  # type: ignore[var-annotated]
        self.handlers: dict[int, Any] = {}
        monkeypatch.setattr(sup.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(sup.time, "sleep", self.sleep)
        monkeypatch.setattr(sup.signal, "signal", self.handlers.__setitem__)
        monkeypatch.setattr(sup.os, "kill", lambda pid, number: self.did.append((self.at, "kill", pid, number)))
        monkeypatch.setattr(sup.os, "killpg", lambda pid, number: self.did.append((self.at, "killpg", pid, number)))

    @property
    def at(self) -> float:
        return round(self.now - 100.0, 4)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Hand:
    return Hand(monkeypatch)


# -- main ----------------------------------------------------------------------------------------------------------------


class Gone(Exception):
    """In place of the end of this process."""


def run_main(
    monkeypatch: pytest.MonkeyPatch, reaped: list[int | None], parents: list[int], ready: list[Any], **how: Any
) -> dict[str, Any]:
    """What `main` did, where the looks at the child, the parent and standard input give these."""
    did: dict[str, Any] = {"inherit": [], "selects": [], "removed": [], "wrote": [], "reaper": how.get("reaper", True)}
    looks = iter(parents)
    monkeypatch.setattr(sys, "argv", ["_supervise.py", "77", "9", "/tmp/its-folder", "4096", "prog", "a", "b"])
    monkeypatch.setattr(sup, "_looks", 0)
    monkeypatch.setattr(sup, "_prctl", lambda option, value: did.setdefault("prctl", (option, value)) and did["reaper"])
    monkeypatch.setattr(sup, "_reap", lambda child: reaped.pop(0))
    monkeypatch.setattr(sup, "_become", lambda command, memory: did.update(became=(command, memory)))
    monkeypatch.setattr(
        sup, "_end_all", lambda child, code, reaper: did.update(ended=(child, code, reaper)) or how.get("last", code)
    )
    monkeypatch.setattr(sup.os, "getppid", lambda: next(looks))
    monkeypatch.setattr(sup.os, "fork", lambda: how.get("fork", 55))
    monkeypatch.setattr(sup.os, "set_inheritable", lambda fd, on: did["inherit"].append((fd, on)))
    monkeypatch.setattr(sup.os, "write", lambda fd, text: did["wrote"].append((fd, text)))
    monkeypatch.setattr(shutil, "rmtree", lambda path, ignore_errors: did["removed"].append((path, ignore_errors)))

    def select(*given: Any) -> tuple[list[int], list[int], list[int]]:
        did["selects"].append(given)
        now = ready.pop(0)
        if callable(now):
            now()
            raise InterruptedError
        return ([0] if now else [], [], [])

    monkeypatch.setattr(sup.select, "select", select)
    assert sup.main() == 0
    return did


def test_a_command_that_ends_is_reported(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    did = run_main(monkeypatch, [None, None, 3], [77] * 9, [False, False])
    assert did["prctl"] == (36, 1)  # PR_SET_CHILD_SUBREAPER
    assert did["inherit"] == [(9, False)]
    assert did["selects"] == [([0], [], [], pytest.approx(0.002 * 1.2**k)) for k in (1, 2)]
    assert did["ended"] == (55, 3, True)
    assert did["wrote"] == [(9, b"exit 3")]
    assert (did["removed"], "became" in did) == ([], False)
    assert hand.handlers[INT] is signal.SIG_IGN
    assert set(hand.handlers) == {INT, TERM, HUP}


@pytest.mark.parametrize(
    ("last", "text"), [(0, b"exit 0"), (1, b"exit 1"), (-1, b"signal 1"), (-9, b"signal 9"), (None, b"lost")]
)
def test_how_an_end_is_written(monkeypatch: pytest.MonkeyPatch, hand: Hand, last: int | None, text: bytes) -> None:
    did = run_main(monkeypatch, [None], [77] * 9, [True], last=last, reaper=False)  # standard input was closed
    assert did["ended"] == (55, None, False)
    assert did["wrote"] == [(9, text)]


def test_the_folder_of_a_dead_caller_is_removed(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    did = run_main(monkeypatch, [None], [77, 1, 1], [False], last=-15)
    assert did["removed"] == [("/tmp/its-folder", True)]
    assert did["wrote"] == [(9, b"signal 15")]
    did = run_main(monkeypatch, [], [1, 1], [], last=None)  # dead before the first look
    assert (did["selects"], did["removed"]) == ([], [("/tmp/its-folder", True)])


@pytest.mark.parametrize("number", [TERM, HUP])
def test_a_request_to_end_is_followed(monkeypatch: pytest.MonkeyPatch, hand: Hand, number: int) -> None:
    """One that comes while it waits: the wait is interrupted."""
    asked: Any = lambda: hand.handlers[number](number, None)  # noqa: E731
    did = run_main(monkeypatch, [None, None], [77] * 9, [False, asked], last=-15)
    assert len(did["selects"]) == 2
    assert did["ended"] == (55, None, True)
    assert did["wrote"] == [(9, b"signal 15")]


def test_the_child_becomes_the_command(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    assert run_main(monkeypatch, [0], [77] * 9, [], fork=0)["became"] == (["prog", "a", "b"], 4096)


def test_watch_is_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["_supervise.py", "watch", "31", "worker-x"])
    monkeypatch.setattr(sup, "watch", lambda worker, name: (worker, name))
    assert sup.main() == (31, "worker-x")  # type: ignore[comparison-overlap]


# -- the child -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [0, 1, 2**30])
def test_what_a_child_does_before_it_is_the_command(monkeypatch: pytest.MonkeyPatch, hand: Hand, memory: int) -> None:
    did: list[Any] = []
    monkeypatch.setattr(sup.os, "setsid", lambda: did.append("setsid"))
    monkeypatch.setattr(sup.os, "open", lambda path, flags: did.append((path, flags)) or 17)
    monkeypatch.setattr(sup.os, "dup2", lambda a, b: did.append((a, b)))
    monkeypatch.setattr(sup, "_prctl", lambda option, value: did.append((option, value)))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: did.append((kind, pair)))
    monkeypatch.setattr(sup.os, "write", lambda fd, text: did.append((fd, text)))

    def execvp(program: str, words: list[str]) -> None:
        did.append((program, words))
        raise FileNotFoundError("no such program")

    def leave(code: int) -> None:
        did.append(code)
        raise Gone

    monkeypatch.setattr(sup.os, "execvp", execvp)
    monkeypatch.setattr(sup.os, "_exit", leave)
    with pytest.raises(Gone):
        sup._become(["prog", "a"], memory)
    limit = [(resource.RLIMIT_AS, (memory, memory))] if memory else []
    assert did == [
        *("setsid", (os.devnull, os.O_RDONLY), (17, 0), (1, KILL), *limit),
        *(("prog", ["prog", "a"]), (2, b"cannot start prog: no such program\n"), 127),
    ]
    defaults = (TERM, INT, HUP, signal.SIGPIPE, signal.SIGXFSZ)
    assert hand.handlers == dict.fromkeys(defaults, signal.SIG_DFL)


def test_the_call_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        def __init__(self, name: str | None) -> None:
            assert name is None

        def prctl(self, *given: int) -> int:
            calls.append(given)
            return codes.pop(0)

    calls: list[Any] = []
    codes = [0, -1, 1]
    monkeypatch.setattr(ctypes, "CDLL", Library)
    monkeypatch.setattr(sys, "platform", "linux")
    assert [sup._prctl(36, k) for k in (1, 2, 3)] == [True, False, False]
    assert calls == [(36, 1, 0, 0, 0), (36, 2, 0, 0, 0), (36, 3, 0, 0, 0)]
    assert sup._prctl(36, 1) is False  # an error: no codes are left
    monkeypatch.setattr(sys, "platform", "darwin")
    codes.append(0)
    assert sup._prctl(36, 1) is False


@pytest.mark.parametrize(
    ("waits", "code"),
    [
        ([(0, 0)], None),
        ([(8, 0), (55, 3 << 8), (9, 0), (0, 0)], 3),
        ([(55, 15), ChildProcessError()], -15),
        ([ChildProcessError()], None),
    ],
)
def test_children_are_collected_until_none_has_ended(
    monkeypatch: pytest.MonkeyPatch, waits: list[Any], code: int | None
) -> None:
    def waitpid(pid: int, options: int) -> tuple[int, int]:
        assert (pid, options) == (-1, os.WNOHANG)
        found = waits.pop(0)
        if isinstance(found, BaseException):
            raise found
        return found  # type: ignore[no-any-return]

    monkeypatch.setattr(sup.os, "waitpid", waitpid)
    assert sup._reap(55) == code
    assert waits == []


# -- the end -------------------------------------------------------------------------------------------------------------


def test_all_are_asked_once_and_then_ended(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    codes = iter([None, -15])
    monkeypatch.setattr(sup, "_reap", lambda child: next(codes, None))

    def descendants() -> list[int]:
        return [] if hand.now > 100.55 else [7] if hand.now < 100.03 else [7, 8]  # one more comes later

    monkeypatch.setattr(sup, "_descendants", descendants)
    assert sup._end_all(55, None, True) == -15
    polite = [d for d in hand.did if d[3] == TERM]
    assert polite == [(0.0, "kill", 7, TERM), (0.04, "kill", 8, TERM)]
    hard = [d for d in hand.did if d[3] == KILL]
    assert {d[2] for d in hard} == {7, 8}
    times = sorted({d[0] for d in hard})
    assert 0.5 < times[0] <= 0.52 + 1e-9
    assert {round(b - a, 6) for a, b in pairwise(times)} == {0.01}
    assert 0.55 < hand.at < 0.57


def test_an_exit_code_that_is_known_stays(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    monkeypatch.setattr(sup, "_reap", lambda child: None)
    monkeypatch.setattr(sup, "_descendants", list)
    assert sup._end_all(55, 3, True) == 3
    assert hand.did == []


def test_what_nothing_ends_is_given_up(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    monkeypatch.setattr(sup, "_reap", lambda child: None)
    monkeypatch.setattr(sup, "_descendants", lambda: [7])
    assert sup._end_all(55, 4, True) == 4
    assert hand.now == pytest.approx(130.0, abs=0.02)


def test_without_a_subreaper_the_group_is_ended(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    monkeypatch.setattr(sup, "_reap", lambda child: None)

    def killpg(pid: int, number: int) -> None:
        hand.did.append((pid, number))
        if hand.now > 100.6:
            raise ProcessLookupError

    monkeypatch.setattr(sup.os, "killpg", killpg)
    assert sup._end_all(55, 2, False) == 2
    assert set(hand.did) == {(55, TERM), (55, KILL)}
    assert hand.did.index((55, KILL)) == 26  # every fiftieth of a second for half a one: 0.00 to 0.50


def quarters(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    """A clock of quarters of a second, whatever is slept: it meets every limit exactly."""
    monkeypatch.setattr(sup.time, "sleep", lambda seconds: hand.sleep(0.25))


def test_at_the_end_of_the_grace_nothing_is_ended_yet(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    quarters(monkeypatch, hand)
    monkeypatch.setattr(sup, "_reap", lambda child: None)
    monkeypatch.setattr(sup, "_descendants", lambda: [7])
    assert sup._end_all(55, None, True) is None
    assert hand.did[:2] == [(0.0, "kill", 7, TERM), (0.75, "kill", 7, KILL)]
    assert hand.at == 30.25  # of a system call that hangs: more than thirty seconds


# -- the watch -----------------------------------------------------------------------------------------------------------


def watched(monkeypatch: pytest.MonkeyPatch, hand: Hand, left: Iterator[list[int]]) -> list[Any]:
    parents = iter([31, 31, 1])
    marks: list[bytes] = []
    monkeypatch.setattr(sup.os, "getppid", lambda: next(parents))
    monkeypatch.setattr(sup, "_marked", lambda mark: marks.append(mark) or next(left))
    assert sup.watch(31, "w") == 0
    assert set(marks) == {b"ALEBO_WORKER=w"}
    assert hand.handlers == {INT: signal.SIG_IGN, TERM: signal.SIG_IGN}
    assert hand.did[0] == (1.0, "killpg", 31, KILL)  # after two looks, half a second apart
    return hand.did[1:]


def test_what_a_dead_worker_left_has_time_to_end(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    assert watched(monkeypatch, hand, iter([[7]] * 20 + [[]])) == []
    assert hand.at == pytest.approx(1.0 + 20 * 0.05)


def test_what_a_dead_worker_left_is_ended(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    did = watched(monkeypatch, hand, iter([[7, 8]] * 34 + [[]]))
    assert {d[1:] for d in did} == {("kill", 7, KILL), ("kill", 8, KILL)}
    assert 2.5 < did[0][0] < 2.56  # three times the grace


def test_a_watch_ends_whatever_is_left(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    watched(monkeypatch, hand, iter([[7]] * 1000))
    assert 12.5 < hand.at < 12.6


def test_at_the_limits_of_a_watch_it_waits_once_more(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    quarters(monkeypatch, hand)
    parents = iter([31, 1])
    monkeypatch.setattr(sup.os, "getppid", lambda: next(parents))
    monkeypatch.setattr(sup, "_marked", lambda mark: [7])
    assert sup.watch(31, "w") == 0
    assert hand.did[:2] == [(0.25, "killpg", 31, KILL), (2.0, "kill", 7, KILL)]  # 1.5 seconds and a look later
    assert hand.at == 12.0


def test_marked_processes_are_found_by_their_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = f"mark-{os.getpid()}"
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "print(1, flush=True); input()"],
        env={"ALEBO_WORKER": mark, "OTHER": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        assert sup._marked(f"ALEBO_WORKER={mark}".encode()) == [child.pid]
        assert sup._marked(f"ALEBO_WORKER={mark[:-1]}".encode()) == []
        pid = child.pid
        monkeypatch.setattr(sup.os, "getpid", lambda: pid)
        assert sup._marked(f"ALEBO_WORKER={mark}".encode()) == []  # never itself
    finally:
        child.communicate(b"\n")
    assert child.returncode == 0
