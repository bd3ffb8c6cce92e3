"""How a command is started and ended, with a process made by hand; and the checks of a command, each at its edge."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from alebo import EvaluationError, InputError, _processes
from alebo._processes import SUPERVISOR, Ended, TooLong, _end, run_supervised
from alebo.evaluator import CommandEvaluator, FunctionEvaluator


class Process:
    """A process that ends when its input is closed, or only when it is killed."""

    pid = 4242

    def __init__(self, report: str = "exit 0", *, late: bool = False, stubborn: bool = False) -> None:
        self.report, self.late, self.stubborn, self.did = report, late, stubborn, []  # type: ignore[var-annotated]
        read, write = os.pipe()
        os.write(write, b"printed")
        os.close(write)
        self.stdout = os.fdopen(read, "rb")
        read, write = os.pipe()
        os.close(write)
        self.stderr = os.fdopen(read, "rb")
        self.stdin = self

    def close(self) -> None:
        self.did.append("closed")

    def wait(self, timeout: float | None = None) -> None:
        self.did.append(timeout)
        if (self.late and "closed" not in self.did) or (self.stubborn and timeout is not None and "closed" in self.did):
            raise subprocess.TimeoutExpired("x", timeout or 0.0)


def started(monkeypatch: pytest.MonkeyPatch, process: Process, **how: Any) -> tuple[list[str], dict[str, Any]]:
    given: dict[str, Any] = {}

    def popen(words: list[str], **settings: Any) -> Process:
        given.update(words=words, settings=settings)
        os.write(settings["pass_fds"][0], process.report.encode())
        return process

    monkeypatch.setattr(_processes.subprocess, "Popen", popen)
    settings: dict[str, Any] = {"directory": "/here", "extra": {"A": "1"}, "memory": None, "timeout": None, **how}
    ended = run_supervised(["prog", "x"], folder=Path("/its-folder"), **settings)
    given["ended"] = ended
    return given["words"], given


@pytest.mark.parametrize(("memory", "shown"), [(None, "0"), (2**31, str(2**31)), (1.9e6, "1900000")])
def test_how_a_command_is_started(monkeypatch: pytest.MonkeyPatch, memory: Any, shown: str) -> None:
    process = Process("exit 0")
    words, given = started(monkeypatch, process, memory=memory, timeout=5.0)
    how = given["settings"]
    (status,) = how.pop("pass_fds")
    supervisor = [sys.executable, "-I", "-S", SUPERVISOR, str(os.getpid())]
    assert words == [*supervisor, str(status), "/its-folder", shown, "prog", "x"]
    assert how.pop("env") == {**os.environ, "A": "1"}
    assert (how.pop("cwd"), how.pop("start_new_session")) == ("/here", True)
    assert set(how.values()) == {subprocess.PIPE}
    assert set(how) == {"stdin", "stdout", "stderr"}
    assert given["ended"] == Ended("", "printed", "")
    assert process.did == [5.0, "closed", 0.8]


def test_what_takes_too_long_or_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TooLong) as late:
        started(monkeypatch, Process(late=True), timeout=2.0)
    assert late.value.ended == Ended("was stopped after its time limit", "printed", "")
    assert str(late.value) == "was stopped after its time limit"
    ended = started(monkeypatch, Process("signal 11"))[1]["ended"]
    assert ended.badly == "was ended by signal SIGSEGV"
    before = len(os.listdir("/proc/self/fd"))

    def broken(*given: Any, **how: Any) -> None:
        raise FileNotFoundError("no such directory")

    monkeypatch.setattr(_processes.subprocess, "Popen", broken)
    with pytest.raises(FileNotFoundError):
        run_supervised(["prog"], directory=".", extra={}, folder=Path("f"), memory=None, timeout=None)
    assert len(os.listdir("/proc/self/fd")) == before  # both ends of the pipe are closed


def test_a_supervisor_that_does_not_end_is_killed_with_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[Any] = []
    monkeypatch.setattr(_processes.os, "killpg", lambda pid, number: killed.append((pid, number)))
    stubborn: Any = Process(stubborn=True)
    _end(stubborn)
    assert killed == [(4242, signal.SIGKILL)]
    assert stubborn.did == ["closed", 0.8, None]
    quick: Any = Process()
    _end(quick)
    assert (len(killed), quick.did) == (1, ["closed", 0.8])
    for process in (stubborn, quick):
        process.stdout.close()
        process.stderr.close()


def test_a_command_is_checked_before_it_runs() -> None:
    good = CommandEvaluator((sys.executable, "{params}", "{outcomes}", "{number}", "{seed}"), ("loss",))
    good.check(["x"])
    CommandEvaluator((sys.executable, "{x}"), ("loss",)).check(["x", "y"])
    CommandEvaluator((sys.executable, "{number}", "{x}"), ("loss",)).check(["x", "number"])
    for command, parameters, words in (
        (("{gane}",), ["gain"], r"the command has \{gane\}\. Did you mean \{gain\}\?"),
        (("{zzz}",), ["gain"], r"the command has \{zzz\}\.$"),
        (("-v",), ["gain"], r"such as \{gain\}"),
        (("{number}",), [], r"such as \{x0\}"),
        (("{params}",), ["params"], "a parameter is called 'params', too"),
        (("{outcomes}", "{x}"), ["outcomes", "x"], "a parameter is called 'outcomes', too"),
    ):
        with pytest.raises(InputError, match=words):
            CommandEvaluator((sys.executable, *command), ("loss",)).check(parameters)
    with pytest.raises(InputError, match="Close the quote"):
        CommandEvaluator("prog 'a", ("loss",))  # type: ignore[arg-type]
    assert CommandEvaluator(("prog", ""), ("loss",)).command == ("prog", "")  # an empty argument is one
    for empty in ("", ("",), ("", "{x}")):
        with pytest.raises(InputError, match="an empty one"):
            CommandEvaluator(empty, ("loss",))  # type: ignore[arg-type]


def test_a_program_that_is_not_executable_is_named(tmp_path: Path) -> None:
    (tmp_path / "sim").write_text("#!/bin/sh\n")
    (tmp_path / "sim").chmod(0o644)
    with pytest.raises(InputError, match=r"must be executable; .*sim is not\. Run chmod \+x"):
        CommandEvaluator(("./sim", "{x}"), ("loss",), str(tmp_path))._program()


def test_outcomes_of_a_file(tmp_path: Path) -> None:
    run, path = CommandEvaluator(("prog",), ("a", "b")), tmp_path / "outcomes.json"
    with pytest.raises(EvaluationError, match="ended without writing them"):
        run._from_file(path)
    path.write_text('{"a": 1, "b": [2, 0.5], "c": 3}')
    assert run._from_file(path) == {"a": 1, "b": (2, 0.5)}
    for text, words in (("{", "must be JSON; it holds '{'"), ("[1]", "must be a JSON object"), ('{"a": 1}', r"\['b'\] missing"), ("[" * 99999, "must be JSON")):  # fmt: skip
        path.write_text(text)
        with pytest.raises(EvaluationError, match=words):
            run._from_file(path)


def test_a_function_keeps_what_it_printed_by_its_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "sim_that_prints.py").write_text("def run(p):\n    print('here', p['x'])\n    return p['x']\n")
    for number in ("7", None):
        monkeypatch.delenv("ALEBO_TRIAL", raising=False)
        if number is not None:
            monkeypatch.setenv("ALEBO_TRIAL", number)
        made = FunctionEvaluator("sim_that_prints:run", str(tmp_path), str(tmp_path / "logs"))
        made.check(["x"])
        assert made({"x": 3}) == 3
    kept = {p.name: p.read_text() for p in (tmp_path / "logs").rglob("*") if p.is_file()}
    assert len(kept) == 2
    assert all("here 3" in text for text in kept.values())
    assert {json.loads("".join(c for c in name.split(".")[0] if c.isdigit()).lstrip("0") or "0") for name in kept} == {
        0,
        7,
    }
