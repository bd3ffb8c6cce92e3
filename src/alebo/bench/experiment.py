"""A sweep: every (problem, method, seed) once, in worker processes of one thread.

A run that is stored already is skipped, so an interrupted sweep continues. A failed run is stored and shown, never dropped.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alebo import InputError

from . import store
from ._format import FORMAT, KIND
from .labels import Label
from .one_run import environment
from .problems import problem


@dataclass(frozen=True)
class Task:
    """One run to make, and the file that it is appended to."""

    problem: str
    method: str
    label: str
    seed: int
    budget: int
    path: Path


@dataclass
class Tally:
    """What a sweep did."""

    made: int = 0
    skipped: int = 0
    failed: int = 0
    failed_before: int = 0  # of those skipped

    @property
    def hint(self) -> str:
        """How failed runs of before are made again; empty where there are none."""
        n = self.failed_before
        return f" {n} of these failed then: --retry-failed makes them again." if n else ""


def seeds(text: str) -> list[int]:
    """`0-4,7` as numbers; each at most once."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()) or (dash and int(last) < int(first)):
            raise InputError(f"Seeds are written 0-49 or 0,3,7 or 0-4,9; got {part.strip()!r} in {text!r}.")
        found.extend(range(int(first), int(last or first) + 1))
    twice = sorted({s for s in found if found.count(s) > 1})
    if twice:
        raise InputError(
            f"Each seed once; got {twice[:5]} more than once in {text!r}. A repeated run would count twice."
        )
    return found


def plan(
    problems: Sequence[str],
    methods: Sequence[Label],
    seeds: Sequence[int],
    out: Path,
    *,
    budget: int | None = None,
    refused: list[str] | None = None,
) -> list[Task]:
    """Every run of the sweep, checked before the first starts: names, abilities, settings, the folder.

    A method that is not defined for a problem (constraints, several objectives) is an error; with a list `refused` the pair is
    left out and the reason put there, so that one sweep can cover problems of different kinds.
    """
    check_folder(out)
    if len(set(problems)) < len(problems):
        raise InputError(f"Each problem once; got {list(problems)}.")
    if budget is not None and budget < 1:
        raise InputError(f"`budget >= 1` must hold; got {budget}.")
    tasks = []
    for name in problems:
        made = problem(name)
        for label in methods:
            method = label.make(made)
            try:
                method.check(made.space, made.goals)
            except InputError as error:
                if refused is None:
                    raise
                refused.append(f"{made.name}, {label.label}: {error}")
                continue
            for seed in seeds:
                path = store.path_of(out, made.name, label.label)
                tasks.append(Task(name, label.text, label.label, seed, budget or made.budget, path))
    if refused and not tasks:
        raise InputError(refused[0])
    return sorted(tasks, key=lambda t: t.seed)  # every method gets its first seeds first: a partial sweep is comparable


def check_folder(out: Path) -> None:
    """Raise an InputError unless results can be written there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise InputError(
            f"Results need a folder that can be written to; {out} cannot: {error.strerror}. Choose another --out."
        ) from None


class _Worker:
    """One process that runs tasks one after the other; a new one is started when it dies."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def run(self, task: Task, on_step: Any) -> dict[str, Any]:
        if self.process is not None and self.process.poll() is not None:
            self.stop()
        if self.process is None:
            threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
            self.process = subprocess.Popen(
                [sys.executable, "-m", "alebo.bench._worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, **threads},
            )
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(
                json.dumps({k: getattr(task, k) for k in ("problem", "method", "seed", "budget")}) + "\n"
            )
            process.stdin.flush()
            for line in process.stdout:
                answer = json.loads(line)
                if "evaluations" in answer:
                    on_step(answer["evaluations"])
                    continue
                return dict(answer["record"]) if "record" in answer else broken(task, answer["error"])
        except (BrokenPipeError, ValueError) as error:
            return broken(task, f"the worker process broke: {error}")
        return broken(task, f"the worker process died with code {process.wait()}")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()
            self.process = None


def broken(task: Task, error: str) -> dict[str, Any]:
    """The record of a run that could not even report: it is counted and shown like any other failure."""
    return {
        "kind": KIND,
        "format": FORMAT,
        "problem": task.path.parent.name,
        "label": task.label,
        "method": {"name": task.method},
        "seed": task.seed,
        "budget": task.budget,
        "state": "failed",
        "error": error,
        "environment": environment(),
    }


def run(tasks: Sequence[Task], *, jobs: int = 1, retry_failed: bool = False, show: bool = True) -> Tally:
    """Make the runs that are not there yet. Ctrl-C stops at once and loses only the runs in flight."""
    if jobs < 1:
        raise InputError(f"`jobs >= 1` must hold; got {jobs}.")
    todo = [t for t in tasks if not store.present(t.path, t.seed, retry_failed=retry_failed)]
    there = [t for t in tasks if t not in todo]
    tally = Tally(
        skipped=len(there), failed_before=sum(not store.present(t.path, t.seed, retry_failed=True) for t in there)
    )
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in todo:
        waiting.put(task)
    workers = [_Worker() for _ in range(min(jobs, max(1, len(todo))))]
    stopping = threading.Event()
    lock = threading.Lock()
    with _progress(sum(t.budget for t in todo), show=show) as step:

        def loop(worker: _Worker) -> None:
            while not stopping.is_set():
                try:
                    task = waiting.get_nowait()
                except queue.Empty:
                    return
                if store.present(task.path, task.seed, retry_failed=retry_failed):  # another sweep made it meanwhile
                    with lock:
                        tally.skipped += 1
                    step(task, task.budget, None)
                    continue
                record = worker.run(task, lambda k, task=task: step(task, 1, None))
                if stopping.is_set():
                    return
                store.append(task.path, record)
                failed = record["state"] != "complete"
                with lock:
                    tally.made += 1
                    tally.failed += failed
                step(task, 0, record["error"] if failed else None)

        threads = [threading.Thread(target=loop, args=(w,), daemon=True) for w in workers]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)
        finally:
            stopping.set()
            for worker in workers:
                worker.stop()
            for thread in threads:
                thread.join(5)
    return tally


@contextmanager
def _progress(total: int, *, show: bool) -> Iterator[Any]:
    """A bar in evaluations with the time left; where there is no terminal, a line a minute."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        "[progress.description]{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        "left",
        TimeRemainingColumn(),
    )
    bar = Progress(
        *(TextColumn(c) if isinstance(c, str) else c for c in columns),
        console=console,
        disable=not show or not console.is_terminal,
    )
    with bar:
        handle = bar.add_task("evaluations", total=max(total, 1))
        start, done, last = time.monotonic(), 0, time.monotonic()
        lock = threading.Lock()

        def step(task: Task, advance: int, error: str | None) -> None:
            nonlocal done, last
            with lock:
                done += advance
                bar.update(
                    handle, advance=advance, description=f"{task.path.parent.name} {task.label} seed {task.seed}"
                )
                if error is not None and show:
                    console.print(
                        f"failed: {task.path.parent.name} {task.label} seed {task.seed}: {error}",
                        style="red",
                        markup=False,
                    )
                now = time.monotonic()
                if show and not console.is_terminal and now - last > 60:
                    last, left = now, (now - start) / max(done, 1) * (total - done)
                    console.print(f"{done} of {total} evaluations, about {left / 60:.0f} minutes left", markup=False)

        yield step
