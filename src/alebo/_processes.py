"""Commands under a supervisor that ends all they started, and temporary folders that do not stay behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

SUPERVISOR = str(Path(__file__).with_name("_supervise.py"))
PREFIX = "alebo-run-"  # of temporary folders
KEPT = {"stdout": 2**22, "stderr": 2**16}  # bytes that are kept of what a command prints: the last ones


@dataclass(frozen=True)
class Ended:
    """How a command ended: `badly` is empty, or says how; what it printed, and what it said on standard error."""

    badly: str
    printed: str
    said: str


class TooLong(TimeoutError):
    """A command took longer than it may; `ended` holds what it had printed."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended.badly)
        self.ended = ended


def run_supervised(
    words: Sequence[str],
    *,
    directory: str,
    extra: Mapping[str, str],
    folder: Path,
    memory: int | None,
    timeout: float | None,
) -> Ended:
    """Run a command to its end, and end everything that it started: now, and also should this process be killed.

    Args:
        words: The program and its arguments.
        directory: Where it runs.
        extra: Environment variables besides those of this process.
        folder: A temporary folder, removed by the supervisor should this process be killed.
        memory: Bytes of address space for each of its processes; None: no limit.
        timeout: Seconds; None: no limit.

    Raises:
        TooLong: It took longer, and was ended.
        OSError: It could not be started.
    """
    report, status = os.pipe()
    try:
        process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", SUPERVISOR, str(os.getpid())),
                *(str(status), str(folder), str(int(memory or 0)), *words),
            ],
            cwd=directory,
            env={**os.environ, **extra},
            stdin=subprocess.PIPE,  # closed, by us or by our death: the end
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for us
            pass_fds=(status,),
        )
    except OSError:
        os.close(report)
        raise
    finally:
        os.close(status)
    printed, said = _Tail(process.stdout, KEPT["stdout"]), _Tail(process.stderr, KEPT["stderr"])
    late = False
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        late = True
    finally:
        _end(process)
        ended = os.read(report, 100).decode()
        os.close(report)
        text, words_said = printed.text(), said.text()
    if late:
        raise TooLong(Ended("was stopped after its time limit", text, words_said))
    return Ended(_how(ended), text, words_said)


class _Tail(threading.Thread):
    """Reads a pipe to its end and keeps the last bytes: a program may print more than fits into memory."""

    def __init__(self, pipe: Any, size: int) -> None:
        super().__init__(daemon=True)
        self.pipe, self.size, self.kept = pipe, size, bytearray()
        self.start()

    def run(self) -> None:
        with self.pipe, suppress(OSError, ValueError):
            while piece := os.read(self.pipe.fileno(), 65536):
                self.kept += piece
                if len(self.kept) > 2 * self.size:
                    del self.kept[: -self.size]

    def text(self) -> str:
        """What was read; a pipe that somebody still holds open is not waited for."""
        self.join(timeout=0.3)
        return bytes(self.kept[-self.size :]).decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command, by its supervisor, and everything it started."""
    with suppress(OSError):
        assert process.stdin is not None
        process.stdin.close()
    try:
        process.wait(timeout=0.8)  # half a second of grace is the supervisor's
    except subprocess.TimeoutExpired:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _how(ended: str) -> str:
    """How a command ended, from its supervisor's report, if not well."""
    kind, _, code = ended.partition(" ")
    if kind == "signal":
        return f"was ended by signal {signal.Signals(int(code)).name}"
    if kind == "exit":
        return "" if code == "0" else f"ended with exit code {code}"
    return "was lost: its supervisor was ended"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for one evaluation. It is gone afterwards; should this process be killed, at the next start."""
    import fcntl

    _sweep_once()
    path = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = os.open(path / ".new", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(path / ".new", path / ".owner")  # from now on, who can lock it may remove the folder
        yield path
    finally:
        os.close(lock)
        shutil.rmtree(path, ignore_errors=True)


@cache
def _sweep_once() -> None:
    remove_stale_folders()


def remove_stale_folders() -> int:
    """Remove the temporary folders that killed processes of this user left behind. How many there were."""
    import fcntl

    count = 0
    for path in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        try:
            if path.is_symlink() or path.stat().st_uid != os.getuid():
                continue
            lock = os.open(path / ".owner", os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
            count += 1
        except OSError:
            continue
        finally:
            os.close(lock)
    return count
