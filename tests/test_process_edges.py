"""Edges of how commands are run: pipes in small pieces, folders of others, names of processes, the path of modules."""

from __future__ import annotations

import builtins
import fcntl
import io
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from alebo import _processes
from alebo import _supervise as sup
from alebo._processes import PREFIX, _Tail, remove_stale_folders, temporary_folder
from alebo.evaluator import CommandEvaluator, function


class Pipe:
    """A pipe from which pieces are read one at a time."""

    def __init__(self) -> None:
        self.closed = False

    def __enter__(self) -> Pipe:
        return self

    def __exit__(self, *error: object) -> None:
        self.closed = True

    def fileno(self) -> int:
        return 99


def test_a_tail_is_cut_when_it_is_longer_than_twice_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Tail, "start", lambda self: None)  # `run` is called here
    pipe, lengths, asked = Pipe(), [], []
    tail = _Tail(pipe, 10)
    pieces = iter([b"a"] * 20 + [b"b"] + [b"c"] * 10 + [b"d", b""])

    def read(fd: int, size: int) -> bytes:
        lengths.append(len(tail.kept))
        asked.append(fd)
        return next(pieces)

    monkeypatch.setattr(_processes.os, "read", read)
    tail.run()
    assert lengths == [*range(21), *range(10, 21), 10]
    assert bytes(tail.kept) == b"c" * 9 + b"d"
    assert pipe.closed
    assert set(asked) == {99}


def test_a_pipe_that_is_held_open_is_waited_for_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float | None] = []
    monkeypatch.setattr(_Tail, "start", lambda self: None)
    monkeypatch.setattr(threading.Thread, "join", lambda self, timeout=None: waits.append(timeout))
    tail = _Tail(Pipe(), 3)
    tail.kept += b"abcd\xff"
    assert tail.text() == "cd�"
    assert waits == [0.3]


def test_a_folder_that_its_command_removed_is_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary_folder() as mine:
        other = os.open(mine / ".owner", os.O_RDWR)
        with pytest.raises(BlockingIOError):  # it is locked as long as it is used
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)
        shutil.rmtree(mine)
    assert list(tmp_path.iterdir()) == []


def test_folders_of_other_users_and_links_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    for folder in ("tmp", "elsewhere", f"tmp/{PREFIX}stale"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / ".owner").touch()
    (tmp_path / "tmp" / f"{PREFIX}link").symlink_to(tmp_path / "elsewhere")
    removed: list[Any] = []
    monkeypatch.setattr(_processes.shutil, "rmtree", lambda path, ignore_errors: removed.append((path, ignore_errors)))
    uid = os.getuid()
    monkeypatch.setattr(_processes.os, "getuid", lambda: uid + 1)
    assert remove_stale_folders() == 0
    assert removed == []
    monkeypatch.setattr(_processes.os, "getuid", lambda: uid)
    assert remove_stale_folders() == 1
    assert removed == [(tmp_path / "tmp" / f"{PREFIX}stale", True)]


def fake_proc(monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]) -> None:
    """A /proc of these files; of other numbers in its list the process has just ended."""

    def opened(path: str, mode: str) -> io.BytesIO:
        assert mode == "rb"
        if path not in files:
            raise FileNotFoundError(path)
        return io.BytesIO(files[path])

    names = dict.fromkeys(path.split("/")[2] for path in files)
    monkeypatch.setattr(sup.os, "listdir", lambda path: ["self", "1", *names, "meminfo"])
    monkeypatch.setattr(builtins, "open", opened)


def test_descendants_by_the_numbers_behind_a_name_of_any_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    me = os.getpid()
    files = {
        "/proc/900001/stat": f"900001 (sh) S {me} 5 5".encode(),
        "/proc/900002/stat": b"900002 (a) Z (b) R 900001 6 6",  # its name is "a) Z (b"
        "/proc/900003/stat": f"900003 (gone) Z {me} 7 7".encode(),  # has ended
        "/proc/900004/stat": b"900004 (sleep) S 900002 8 8",
        "/proc/900005/stat": f"900005 (other) S 900099 {me} 9".encode(),
        "/proc/900006/stat": b"",
        "/proc/900007/stat": f"900007 (python) S {me} 5 5".encode(),
    }
    fake_proc(monkeypatch, files)
    found = sup._descendants()
    monkeypatch.undo()
    assert sorted(found) == [900001, 900002, 900004, 900007]


def test_marked_processes_by_a_whole_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    me = os.getpid()
    files = {
        f"/proc/{me}/environ": b"ALEBO_WORKER=w\0",
        "/proc/900001/environ": b"A=1\0ALEBO_WORKER=w\0B=2\0",
        "/proc/900002/environ": b"ALEBO_WORKER=w2\0",
        "/proc/900003/environ": b"X_ALEBO_WORKER=w\0",
        "/proc/900004/environ": b"ALEBO_WORKER=w",
    }
    fake_proc(monkeypatch, files)
    monkeypatch.setattr(sup.os.path, "isdir", lambda path: path == "/proc")
    found = sup._marked(b"ALEBO_WORKER=w")
    monkeypatch.setattr(sup.os.path, "isdir", lambda path: False)
    nothing = sup._marked(b"ALEBO_WORKER=w")
    monkeypatch.undo()
    assert (found, nothing) == ([900001, 900004], [])


def test_a_signal_to_a_process_that_has_ended_does_not_keep_the_others_from_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[tuple[int, int]] = []

    def kill(pid: int, number: int) -> None:
        if pid == 2:
            raise ProcessLookupError
        sent.append((pid, number))

    monkeypatch.setattr(sup.os, "kill", kill)
    sup._signal([1, 2, 3], 15)
    assert sent == [(1, 15), (3, 15)]


def test_the_folder_of_a_function_is_searched_before_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, answer in (("earlier", 1), ("mine", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "sim_in_two_places.py").write_text(f"def run(p):\n    return {answer}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "earlier"), *sys.path])
    assert function("sim_in_two_places:run", tmp_path / "mine")({}) == 2
    assert sys.path[0] == str(tmp_path / "mine")
    monkeypatch.delitem(sys.modules, "sim_in_two_places")


def test_a_program_named_by_a_parameter_is_taken_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def run(words: list[str], **how: Any) -> Any:
        ran.append(words)
        return SimpleNamespace(badly="", printed="1", said="")

    monkeypatch.setattr("alebo.evaluator.run_supervised", run)
    CommandEvaluator(("{tool}", "{x}"), ("loss",))({"tool": "mine", "x": 3})
    CommandEvaluator(("sh", "{x}"), ("loss",))({"x": 3})
    assert ran == [["mine", "3"], [shutil.which("sh"), "3"]]
