"""What the fault laboratory counts, and the drivers that it kills."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import alebo
from alebo._processes import SUPERVISOR
from alebo.methods import Method, Sobol
from tests.runner import functions as fn

GOAL = alebo.Minimize("loss")
fork = multiprocessing.get_context("fork")
COLUMNS = ("cases", "faults", "completed", "lost", "changed", "twice", "stuck", "orphans", "tracebacks")


@dataclass
class Row:
    """One line of the table.

    Attributes:
        cases: Runs, files or commands.
        faults: Faults that were injected.
        completed: Outcomes that a driver was told are written; it wrote them down outside of the study.
        lost: Of these, how many are not in the study afterwards.
        changed: Of these, how many have another value.
        twice: Trials evaluated again although their worker was not killed.
        stuck: Runs that could not continue.
        orphans: Processes and temporary folders that were left.
        tracebacks: Of drivers.
        equal, compared: Proposals equal to those of the same run uninterrupted.
    """

    fault: str
    cases: int = 0
    faults: int = 0
    completed: int = 0
    lost: int = 0
    changed: int = 0
    twice: int = 0
    stuck: int = 0
    orphans: int = 0
    tracebacks: int = 0
    equal: int = 0
    compared: int = 0
    remark: str = ""

    @property
    def good(self) -> bool:
        bad = self.lost + self.changed + self.twice + self.stuck + self.orphans + self.tracebacks
        return not bad and self.equal == self.compared and (self.faults > 0 or "not possible" in self.remark)

    def line(self) -> str:
        counts = " ".join(f"{getattr(self, c):>{max(6, len(c))}}" for c in COLUMNS)
        return f"{self.fault:44} {counts}  {self.equal:>5} of {self.compared:<5} {self.remark}"

    @staticmethod
    def head() -> str:
        return f"{'fault':44} " + " ".join(f"{c:>6}" for c in COLUMNS) + "  equal proposals  remark"

    def stop(self, why: object) -> None:
        """A run could not continue."""
        self.stuck += 1
        self.remark += f"{type(why).__name__}: {why}. " if isinstance(why, BaseException) else f"{why}. "


def space(D: int) -> alebo.Space:
    return alebo.Space.from_bounds([(-1, 1)] * D)


@dataclass(frozen=True)
class Setting:
    """A run, and the same run in memory."""

    method: Method = field(default_factory=Sobol)
    D: int = 30
    budget: int = 40
    seed: int = 3

    def create(self, where: str | Path, name: str = "alebo") -> alebo.Study:
        return alebo.Study.create(
            where, space(self.D), GOAL, method=self.method, seed=self.seed, budget=self.budget, name=name
        )

    def twin(self, f: Callable[[dict[str, Any]], float] = fn.sphere) -> list[dict[str, Any]]:
        opt = alebo.Optimizer(space(self.D), GOAL, method=self.method, seed=self.seed, budget=self.budget)
        for _ in range(self.budget):
            trial = opt.ask()[0]
            opt.tell(trial.number, f(trial.params))
        return [t.to_dict() for t in opt.history]


@dataclass(frozen=True)
class Notes:
    """What drivers write down outside of the study: acknowledged outcomes, evaluations begun, errors."""

    folder: Path
    label: str

    @property
    def seen(self) -> Path:
        return self.folder / f"{self.label}.seen"

    @property
    def begun(self) -> Path:
        return self.folder / f"{self.label}.begun"

    @property
    def errors(self) -> Path:
        return self.folder / f"{self.label}.err"

    def witness(self, trial: alebo.Trial, study: alebo.Study) -> None:
        """A callback: what has been acknowledged."""
        if trial.complete:
            _append(self.seen, json.dumps([trial.number, trial.outcomes["loss"].mean]))

    def check(self, row: Row, history: alebo.History) -> None:
        """Count what was acknowledged, and what of it is lost or changed."""
        told = dict(map(json.loads, self.seen.read_text().splitlines())) if self.seen.exists() else {}
        kept = {t.number: t.outcomes["loss"].mean for t in history.complete}
        row.completed += len(told)
        row.lost += sum(n not in kept for n in told)
        row.changed += sum(n in kept and kept[n] != v for n, v in told.items())
        if self.errors.exists():
            said = self.errors.read_text(errors="replace")
            row.tracebacks += said.count("Traceback (most recent")
            if "Traceback" in said:
                row.remark += " | ".join(said.strip().splitlines()[-3:])[:400]

    def begun_twice(self) -> int:
        lines = self.begun.read_text().split() if self.begun.exists() else []
        return len(lines) - len(set(lines))


def _append(path: Path, line: str) -> None:
    handle = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    os.write(handle, (line + "\n").encode())
    os.close(handle)


@dataclass(frozen=True)
class Slow:
    """An evaluation that takes a while and writes down that it has begun."""

    notes: Notes
    seconds: float = 0.03

    def __call__(self, params: dict[str, Any]) -> float:
        _append(self.notes.begun, os.environ["ALEBO_TRIAL"])
        time.sleep(self.seconds)
        return fn.sphere(params)


def drive(setting: Setting, where: str, notes: Notes, f: Any = None, workers: int = 1) -> None:
    """A driver, to be killed. What it says goes to a file."""
    handle = os.open(notes.errors, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    os.dup2(handle, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.disable(logging.WARNING)
    code = 0
    try:
        alebo.run(setting.create(where), f or Slow(notes), workers=workers, callback=notes.witness)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    os._exit(code)


def start(setting: Setting, where: str | Path, notes: Notes, f: Any = None, workers: int = 1) -> Any:
    process = fork.Process(target=drive, args=(setting, str(where), notes, f, workers))
    process.start()
    return process


def compare(row: Row, history: alebo.History, twin: list[dict[str, Any]]) -> None:
    """Proposals equal to those of the uninterrupted run."""
    row.compared += len(twin)
    row.equal += sum(a.x.tolist() == b["x"] and a.params == b["params"] for a, b in zip(history, twin, strict=False))


def finish(row: Row, setting: Setting, where: str | Path, notes: Notes, f: Callable[..., float] = fn.sphere) -> None:
    """Run to the end in this process, and count."""
    row.cases += 1
    try:
        study = setting.create(where)
        history = alebo.run(study, f, callback=notes.witness).history
    except Exception as error:
        row.stop(error)
        return
    notes.check(row, history)
    if [t.number for t in history] != list(range(setting.budget)) or not all(t.complete for t in history):
        row.stop("numbers or states are not those of a finished run")
    compare(row, history, setting.twin())


def join(row: Row, setting: Setting, study: alebo.Study, notes: Notes, processes: list[Any], timeout: float) -> int:
    """Wait for workers in processes of their own, and count. Returns how many trials were begun twice."""
    for process in processes:
        process.join(timeout=timeout)
        if process.exitcode != 0:
            row.stop(f"a worker ended with {process.exitcode}")
    history = study.history
    notes.check(row, history)
    row.lost += sum(not t.complete for t in history)
    compare(row, history, setting.twin())  # Sobol's k-th point is the same whoever asks
    return notes.begun_twice()


def linger(process: Any, seen: Path, more: int, after: float) -> None:
    """Let a driver report so many outcomes more, then a moment: on a busy machine, too, kills come in the middle."""

    def told() -> int:
        return len(seen.read_text().splitlines()) if seen.exists() else 0

    begin, until = told(), time.monotonic() + 60
    while process.exitcode is None and told() < begin + more and time.monotonic() < until:
        time.sleep(0.01)
    process.join(timeout=after)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def helpers() -> int:
    """Supervisors and watchers of this tree that nobody waits for any more."""
    count = 0
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            parent = (path / "stat").read_text().rsplit(")", 1)[1].split()[1]
            count += parent == "1" and SUPERVISOR.encode() in (path / "cmdline").read_bytes()
    return count


def left(marks: Path, temporary: Path, patience: float = 5.0) -> int:
    """Processes that signed in and still live, and temporary folders, after a moment at most."""
    until = time.monotonic() + patience
    while True:
        count = sum(alive(int(p.name)) for p in marks.iterdir()) + len(list(temporary.glob("alebo-run-*")))
        count += helpers()
        if not count or time.monotonic() > until:
            return count
        time.sleep(0.05)
