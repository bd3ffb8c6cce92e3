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
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alebo import InputError, StudyError
from alebo.methods import Method

from . import store
from ._clash import clash
from ._format import FORMAT, KIND
from ._progress import KEPT, progress
from ._tally import Tally
from .labels import Label, Unfit, describe
from .one_run import environment
from .problems import Problem, problem


@dataclass(frozen=True)
class Task:
    """One run to make, and the file that it is appended to."""

    problem: str
    method: str
    label: str
    seed: int
    budget: int
    path: Path
    settings: str = ""  # the method as a record has it, in JSON; empty where it could not be built


def seeds(text: str) -> list[int]:
    """`0-4,7` as numbers; each at most once."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
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

    A method that is not defined for a problem (constraints, several objectives, a dimension that the problem does not state)
    is an error; with a list `refused` the pair is left out and the reason put there, so that one sweep can cover problems of
    different kinds.
    """
    check_folder(out)
    if not problems:
        raise InputError("Name one problem or more, such as --problem branin-100; got none.")
    if len(set(problems)) < len(problems):
        raise InputError(f"Each problem once; got {list(problems)}.")
    if budget is not None and budget < 1:
        raise InputError(f"`budget >= 1` must hold; got {budget}.")
    tasks = []
    for name in problems:
        made = problem(name)
        for label in methods:
            try:
                method = _fitting(label, made)
            except Unfit as error:
                if refused is None:
                    raise
                refused.append(f"{made.name}, {label.label}: {error}")
                continue
            path = store.path_of(out, made.name, label.label)
            store.check_place(path)
            settings = json.dumps(describe(method), default=repr)
            each = budget or made.budget
            tasks += [Task(name, label.text, label.label, seed, each, path, settings) for seed in seeds]
    if refused and not tasks:
        raise InputError(refused[0])
    return sorted(tasks, key=lambda t: t.seed)  # every method gets its first seeds first: a partial sweep is comparable


def _fitting(label: Label, made: Problem) -> Method:
    """The method for this problem; Unfit where it is not defined for it."""
    method = label.make(made)
    try:
        method.check(made.space, made.goals)
    except InputError as error:
        raise Unfit(str(error)) from None
    return method


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
    """Make the runs that are not there yet. Ctrl-C stops at once, loses only the runs in flight, and says so.

    Nothing is run where another run is stored in the place of one of these: of fewer evaluations, or of other settings.
    """
    if jobs < 1:
        raise InputError(f"`jobs >= 1` must hold; got {jobs}.")
    tally, todo = Tally(), []
    refuse_clashes(tasks)
    for task in tasks:
        if not tally.skip(task, retry_failed=retry_failed):
            todo.append(task)
    try:
        with progress(sum(t.budget for t in todo), show=show) as step:
            _Sweep(todo, tally, step, retry_failed=retry_failed).run(jobs)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Stopped: {tally.words}. {KEPT}") from None
    return tally


def refuse_clashes(tasks: Sequence[Task]) -> None:
    """Raise an InputError where a complete run that is stored is another than the wanted one."""
    found: dict[str, list[str]] = {}
    for task in tasks:
        stored = store.stored(task.path, task.seed)
        why = None if stored is None else clash(stored, task.budget, task.settings)
        if why is not None:
            found.setdefault(why, []).append(f"{task.path.parent.name}/{task.label} seed {task.seed}")
    if found:
        shown = [
            f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {why}"
            for why, names in found.items()
        ]
        more = f"; and {len(shown) - 3} more kinds" if len(shown) > 3 else ""
        raise InputError(
            f"Runs under one label share settings and budget; other runs are stored. {'; '.join(shown[:3])}{more}. "
            "Give the new runs a label of their own (mine=name(...)), or another --out."
        )


def without_short(tasks: Sequence[Task]) -> tuple[list[Task], list[str]]:
    """The tasks without those in whose place a shorter run is stored, and a message for each file of such runs.

    For suites, whose tables show such runs as too short.
    """
    kept: list[Task] = []
    short: dict[str, list[Task]] = {}
    for task in tasks:
        stored = store.stored(task.path, task.seed)
        if stored is not None and stored["state"] == "complete" and stored["budget"] < task.budget:
            why = f"{stored['budget']} evaluations are stored, {task.budget} are wanted"
            short.setdefault(f"{task.path.parent.name}, {task.label}: {why}", []).append(task)
        else:
            kept.append(task)
    return kept, [
        f"{why} (seed{'s' if len(found) > 1 else ''} {', '.join(str(t.seed) for t in found)}). Another --out makes them."
        for why, found in short.items()
    ]


class _Sweep:
    """The threads of a sweep, each with a process of its own. The first error of any stops all, and is raised."""

    def __init__(self, todo: Sequence[Task], tally: Tally, step: Any, *, retry_failed: bool) -> None:
        self.todo, self.tally, self.step, self.retry_failed = todo, tally, step, retry_failed
        self.waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
        for task in todo:
            self.waiting.put(task)
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.errors: list[Exception] = []

    def run(self, jobs: int) -> None:
        workers = [_Worker() for _ in range(min(jobs, max(1, len(self.todo))))]
        threads = [threading.Thread(target=self._guarded, args=(w,), daemon=True) for w in workers]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive() and not self.stopping.is_set():
                    thread.join(0.2)
        finally:
            self.stopping.set()
            for worker in workers:
                worker.stop()
            for thread in threads:
                thread.join(5)
        if self.errors:
            raise self.errors[0]

    def _guarded(self, worker: _Worker) -> None:
        try:
            while not self.stopping.is_set():
                self._one(worker, self.waiting.get_nowait())
        except queue.Empty:
            return
        except OSError as error:
            self._stop(
                StudyError(
                    f"Every run needs a process of its own; none can be started: {error}. Runs that were stored are kept: "
                    "mend this, and give the same command again for the others."
                )
            )
        except Exception as error:  # a full disk, a file that was replaced: no further run could be stored
            self._stop(error)

    def _stop(self, error: Exception) -> None:
        self.errors.append(error)
        self.stopping.set()

    def _one(self, worker: _Worker, task: Task) -> None:
        refuse_clashes([task])
        with self.lock:
            there = self.tally.skip(task, retry_failed=self.retry_failed)  # another sweep made it meanwhile
        if there:
            self.step(task, task.budget, None)
            return
        record = worker.run(task, lambda k: self.step(task, 1, None))
        if self.stopping.is_set():
            return
        kept = store.append(task.path, record)
        failed = record["state"] != "complete"
        with self.lock:
            self.tally.made += kept and not failed
            self.tally.skipped += not kept  # another sweep was quicker
            self.tally.failed += kept and failed
        self.step(task, 0, record["error"] if failed else None)
