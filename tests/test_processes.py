"""Commands and their supervisor in detail: what is kept, swept, said of an end, and taken from what was printed."""

from __future__ import annotations

import fcntl
import os
import runpy
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from alebo import EvaluationError, InputError, _processes, _supervise
from alebo._processes import PREFIX, Ended, TooLong, _how, _Tail, remove_stale_folders, run_supervised, temporary_folder
from alebo.evaluator import CommandEvaluator, FunctionEvaluator, function

PYTHON = (sys.executable, "-I", "-S", "-c")


def evaluator(
    code: str = "print(1)", *words: str, outcomes: tuple[str, ...] = ("loss",), **how: Any
) -> CommandEvaluator:
    return CommandEvaluator((*PYTHON, code, *(words or ("{x}",))), outcomes, **how)


def supervised(code: str, folder: Path, **how: Any) -> Ended:
    settings: dict[str, Any] = {"directory": ".", "extra": {}, "memory": None, "timeout": None, **how}
    return run_supervised([*PYTHON, code], folder=folder, **settings)


def test_how_a_command_ended() -> None:
    assert _how("exit 0") == ""
    assert _how("exit 3") == "ended with exit code 3"
    assert _how("signal 9") == "was ended by signal SIGKILL"
    assert _how("lost") == _how("") == "was lost: its supervisor was ended"


def test_an_exit_code_a_signal_and_both_pipes_are_reported(tmp_path: Path) -> None:
    ended = supervised("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)", tmp_path)
    assert (ended.badly, ended.printed, ended.said) == ("ended with exit code 7", "out\n", "err\n")
    assert supervised("import os; os.kill(os.getpid(), 11)", tmp_path).badly == "was ended by signal SIGSEGV"
    assert supervised("pass", tmp_path) == Ended("", "", "")
    with pytest.raises(TooLong) as late:
        supervised("import time; print('so far', flush=True); time.sleep(60)", tmp_path, timeout=0.5)
    assert (late.value.ended.printed, late.value.ended.badly) == ("so far\n", "was stopped after its time limit")


def test_a_command_runs_where_and_with_what_it_is_told(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), os.environ['MARK'], repr(sys.stdin.read()), os.getsid(0) == os.getpid())"
    ended = supervised(code, tmp_path, directory=str(tmp_path), extra={"MARK": "yes"})
    assert ended.printed.split() == [str(tmp_path.resolve()), "yes", "''", "True"]  # nothing to read, its own session


def test_the_end_of_a_pipe_is_kept_exactly() -> None:
    for size, text in ((4, "abcdefgh"), (8, "abcdefgh"), (9, "abcdefgh"), (3, "")):
        read, write = os.pipe()
        tail = _Tail(os.fdopen(read, "rb"), size)
        for letter in text:
            os.write(write, letter.encode())
        os.close(write)
        assert tail.text() == text[-size:]
        assert tail.daemon  # a pipe that a grandchild holds open does not keep this process
    read, write = os.pipe()
    tail = _Tail(os.fdopen(read, "rb"), 10)
    os.write(write, b"x" * 5000)
    os.close(write)
    assert tail.text() == "x" * 10
    assert len(tail.kept) <= 20  # whatever is printed
    read, write = os.pipe()
    tail = _Tail(os.fdopen(read, "rb"), 10)
    os.write(write, b"held open")
    before = time.monotonic()
    assert tail.text() == "held open"
    assert time.monotonic() - before < 5.0  # who still holds it is not waited for
    os.close(write)


def test_all_stale_folders_are_swept_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stale, kept, locks = [], [], []
    for k in range(5):  # several of each, because a folder's order is any
        for kind in ("stale", "new", "owned"):
            path = tmp_path / f"{PREFIX}{kind}{k}"
            path.mkdir()
            (stale if kind == "stale" else kept).append(path)
            if kind != "new":  # without an owner it is being made
                lock = os.open(path / ".owner", os.O_RDWR | os.O_CREAT)
                if kind == "owned":
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    locks.append(lock)
                else:
                    os.close(lock)
    (tmp_path / f"{PREFIX}link").symlink_to(stale[0])
    other = tmp_path / "another-run"
    other.mkdir()
    (other / ".owner").touch()
    assert remove_stale_folders() == 5
    assert not any(p.exists() for p in stale)
    assert all(p.exists() for p in [*kept, other])
    for lock in locks:
        os.close(lock)
    with temporary_folder() as mine:
        assert mine.name.startswith(PREFIX)
        assert os.listdir(mine) == [".owner"]
    assert not mine.exists()


def test_the_looks_of_the_supervisor_grow_to_a_tenth_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_supervise, "_looks", 0)
    pauses = [_supervise._pause() for _ in range(60)]
    assert pauses[:2] == pytest.approx([0.0024, 0.00288])
    assert pauses == sorted(pauses)
    assert pauses[-1] == 0.1


def test_the_first_look_of_a_supervisor_is_the_shortest() -> None:
    """As it is when the program begins: commands of milliseconds are not waited for."""
    fresh = runpy.run_path(_supervise.__file__)
    assert [fresh["_pause"]() for _ in range(3)] == pytest.approx([0.0024, 0.00288, 0.003456])


def test_descendants_are_found_and_those_that_ended_are_not() -> None:
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    dead = os.fork()
    if dead == 0:
        os._exit(0)
    try:
        time.sleep(0.2)
        found = _supervise._descendants()
        assert child in found
        assert dead not in found  # a zombie
        assert os.getpid() not in found
    finally:
        os.kill(child, signal.SIGKILL)
        codes = {pid: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in (child, dead)}
    assert codes == {child: -9, dead: 0}


# -- the evaluator -----------------------------------------------------------------------------------------------------------


def test_words_of_a_command_are_filled_in() -> None:
    run = CommandEvaluator("prog --a={a} {b}-{a} {params}", ["loss"])  # type: ignore[arg-type]
    assert run.command == ("prog", "--a={a}", "{b}-{a}", "{params}")
    assert (run.fields, run.outcomes) == (("a", "b", "params"), ("loss",))
    show = "import sys, os; print(sys.argv[1:]); print(len(sys.argv[1]))"
    for value, text in ((True, "true"), (0.1, "0.1"), (1e-20, "1e-20"), (7, "7"), ("a b", "a b")):
        assert evaluator(show, "{x}")({"x": value}) == {"loss": len(text)}
    assert evaluator("import sys; print(sys.argv[1] + sys.argv[2])", "{number}", "{seed}", number=4, seed=5)({}) == {
        "loss": 45
    }
    assert evaluator("import sys; print(sys.argv[1])", "{number}", number=4)({}, 6) == {"loss": 6}
    assert evaluator().for_trial(3, 9) == evaluator(number=3, seed=9)


@pytest.mark.parametrize("limit", [0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["timeout", "memory"])
def test_limits_are_positive(name: str, limit: float) -> None:
    with pytest.raises(InputError, match=f"`{name} > 0` must hold"):
        evaluator(**{name: limit})
    assert getattr(evaluator(**{name: 0.5}), name) == 0.5


def test_a_program_is_found_beside_the_study_on_the_path_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "sim").write_text("#!/bin/sh\necho 2\n")
    (tmp_path / "sim").chmod(0o755)
    here = CommandEvaluator(("./sim", "{x}"), ("loss",), str(tmp_path))
    assert here._program() == str((tmp_path / "sim").resolve())
    assert here({"x": 1}) == {"loss": 2}
    assert CommandEvaluator(("sh", "{x}"), ("loss",), str(tmp_path))._program().endswith("/sh")
    with pytest.raises(InputError, match="there is no 'sim'"):
        CommandEvaluator(("sim", "{x}"), ("loss",), str(tmp_path))._program()
    assert CommandEvaluator(("{x}",), ("loss",))._program() == "{x}"
    with pytest.raises(InputError, match="needs a program"):
        CommandEvaluator((), ("loss",))


@pytest.mark.parametrize(
    ("outcomes", "line", "found"),
    [
        (("loss",), "3", {"loss": 3}),
        (("loss",), "[3, 0.5]", {"loss": (3, 0.5)}),
        (("loss",), '{"loss": [1], "more": 7}', {"loss": (1,)}),
        (("a", "b"), "a=1 b: 2e-3, c=5", {"a": 1.0, "b": 0.002}),
        (("a", "b"), '{"a": 1, "b": [2, 0.1]}', {"a": 1, "b": (2, 0.1)}),
        (("a",), f"{sys.float_info.max!r}", {"a": sys.float_info.max}),
        (("a",), "true", "number or"),
        (("a",), "[1, 2, 3]", "number or"),
        (("a",), "[]", "number or"),
        (("a",), "1e999", "finite"),
        (("a",), "1" + "0" * 400, "finite"),
        (("a", "b"), "3", "must be a JSON object"),
        (("a", "b"), "a=1", "'b'"),
        (("a",), "a=one", "last line printed"),
        (("a",), "", "printed nothing"),
    ],
)
def test_outcomes_of_the_last_line(outcomes: tuple[str, ...], line: str, found: Any) -> None:
    run = evaluator(outcomes=outcomes)
    if isinstance(found, dict):
        assert run._from_line(f"words\n{line}\n\n") == found
    else:
        with pytest.raises(EvaluationError, match=found):
            run._from_line(f"\n{line}\n  \n")


def test_the_last_words_of_a_command_that_failed() -> None:
    with pytest.raises(EvaluationError, match=r"exit code 4; its last words: the end$"):
        evaluator("import sys; print('first\\nthe end', file=sys.stderr); sys.exit(4)")({"x": 1})
    with pytest.raises(EvaluationError, match=r"exit code 4 \(memory limit 2048 MB\)\.$"):
        evaluator("import sys; sys.exit(4)", memory=2**31)({"x": 1})
    with pytest.raises(EvaluationError) as long:
        evaluator("import sys; print('y' * 999, file=sys.stderr); sys.exit(4)")({"x": 1})
    assert str(long.value).count("y") == 200
    with pytest.raises(EvaluationError, match="could not start"):
        evaluator(directory="/nowhere/at/all")({"x": 1})


def test_what_a_command_printed_is_kept(tmp_path: Path) -> None:
    run = evaluator("import sys; print('out', file=sys.stderr); print(5)", logs=str(tmp_path / "logs"), number=3)
    assert run({"x": 1}) == {"loss": 5}
    (kept,) = [p for p in (tmp_path / "logs").rglob("*") if p.is_file()]
    text = kept.read_text()
    assert "3" in kept.name
    for part in ("$ ", "\n5\n", "--- standard error ---\nout\n", "--- the command ended well ---"):
        assert part in text


def test_a_python_function_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "sim_by_name.py").write_text(
        "class Sim:\n    @staticmethod\n    def run(p): return p['x'] + 1\nvalue = 3\n"
    )
    assert function("sim_by_name:Sim.run", tmp_path)({"x": 1}) == 2
    assert sys.path.count(str(tmp_path.resolve())) == 1
    function("sim_by_name:Sim.run", tmp_path)
    assert sys.path.count(str(tmp_path.resolve())) == 1
    assert FunctionEvaluator("sim_by_name:Sim.run", str(tmp_path))({"x": 4}) == 5
    for name, words in (("sim_by_name", "module:function"), (":f", "module:function"), ("sim_by_name:", "module:function"), ("sim_by_name:value", "callable"), ("sim_by_name:Sim.rum", "Did you mean 'run'"), ("not_there_at_all:f", "importable")):  # fmt: skip
        with pytest.raises(InputError, match=words):
            function(name, tmp_path)


def test_a_folder_is_swept_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(_processes, "remove_stale_folders", lambda: calls.append(1))
    _processes._sweep_once.cache_clear()
    for _ in range(3):
        with temporary_folder():
            pass
    assert len(calls) == 1
