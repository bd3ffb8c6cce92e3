"""Test runs against a changed copy of the source, each in a fork of a process that has the large libraries loaded."""

from __future__ import annotations

import compileall
import contextlib
import os
import py_compile
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIBRARIES = ("numpy", "scipy.optimize", "scipy.stats", "torch", "gpytorch", "botorch", "optuna", "pytest", "hypothesis")


def warm_up() -> None:
    """Import what all tests need, but not the package itself: every fork imports its own, changed copy."""
    from importlib import import_module

    os.environ["OMP_NUM_THREADS"] = "1"  # a fork has none of its parent's threads
    for name in LIBRARIES:
        import_module(name)
    import_module("botorch.acquisition.multi_objective")
    assert "alebo" not in sys.modules, "a run must import its own copy of alebo"


class Scratch:
    """A copy of the repository in a temporary folder; one file of its source is changed at a time."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="alebo-mutants-")
        self.root = Path(self._folder.name) / "alebo"
        self.source, self.said = self.root / "src", Path(self._folder.name) / "said.txt"
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns("__pycache__", ".*", "build", "results"))
        (self.root / "results").symlink_to(ROOT / "results")  # large, and only read
        # by content: two mutants of one file can have the same size and second
        compileall.compile_dir(self.source, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        self._changed: tuple[Path, str] | None = None

    def change(self, file: str, text: str) -> None:
        """Write another text to a file (below src/alebo); the one that was changed before is as it was again."""
        self.restore()
        path = self.source / "alebo" / file
        self._changed = (path, path.read_text())
        path.write_text(text)

    def restore(self) -> None:
        if self._changed is not None:
            self._changed[0].write_text(self._changed[1])
            self._changed = None


@dataclass
class Job:
    """Tests to run against one change, and what came of it."""

    tests: Sequence[str]
    limit: float  # seconds
    file: str | None = None  # below src/alebo; None: nothing is changed
    text: str = ""
    data: Any = None
    outcome: str = ""  # passed, failed or late
    seconds: float = 0.0
    said: str = field(default="", repr=False)


def run_all(jobs: Sequence[Job], *, workers: int, report: Any = None) -> None:
    """Run the jobs, so many at a time; `report` is called with each when it is over."""
    free, left = [Scratch() for _ in range(workers)], list(jobs)
    running: dict[int, tuple[Job, Scratch, float]] = {}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        _run_all(left, free, running, report)
    finally:
        for pid in running:
            _end_group(pid)


def _run_all(left: list[Job], free: list[Scratch], running: dict[int, tuple[Job, Scratch, float]], report: Any) -> None:
    while left or running:
        while left and free:
            job, scratch = left.pop(0), free.pop()
            scratch.restore() if job.file is None else scratch.change(job.file, job.text)
            running[_start(job, scratch)] = (job, scratch, time.monotonic())
        for pid, (job, scratch, began) in list(running.items()):
            job.seconds = time.monotonic() - began
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done and job.seconds < job.limit:
                continue
            _end_group(pid)
            if not done:
                os.waitpid(pid, 0)
            job.said = scratch.said.read_text(errors="replace")
            job.outcome = "late" if not done else _outcome(os.waitstatus_to_exitcode(status), job.said)
            del running[pid]
            free.append(scratch)
            if report is not None:
                report(job)
        time.sleep(0.05)


def _outcome(code: int, said: str) -> str:
    """What pytest's exit code means: 1, a test failed; 2, a file could not be collected; below 0, a signal ended it."""
    if code > 2:
        raise RuntimeError(f"pytest ended with {code}, which says nothing of the tests:\n{said[-3000:]}")
    return "passed" if code == 0 else "failed"


def _end_group(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)  # what a test started and left


def _start(job: Job, scratch: Scratch) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 3
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        out = os.open(scratch.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(scratch.root)
        os.environ["PYTHONPATH"] = str(scratch.source)
        sys.path[:0] = [str(scratch.root), str(scratch.source)]
        for name in [n for n in sys.modules if n == "tests" or n.startswith("tests.")]:
            del sys.modules[name]
        import pytest

        code = int(
            pytest.main(
                [
                    "-x",
                    "-q",
                    "-W",
                    "ignore::pytest.PytestAssertRewriteWarning",
                    "-p",
                    "no:cacheprovider",
                    "-p",
                    "no:xdist",
                    *job.tests,
                ]
            )
        )
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
