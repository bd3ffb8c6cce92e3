"""Kills and signals at random moments: of drivers, of workers, and what their simulators leave behind."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import alebo
from alebo.evaluator import CommandEvaluator
from alebo.methods import Sobol
from tests.runner.postgres import programs, running
from tests.test_evaluator import FAMILY

from .table import GOAL, Notes, Row, Setting, Slow, finish, fork, join, left, linger, space, start

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)


def drivers(folder: Path, times: int, budget: int = 150) -> Iterator[Row]:
    """One driver, killed again and again."""
    for label, setting, share in (
        ("Sobol", Setting(Sobol(), budget=budget), 2 * times // 3),
        ("ALEBO", Setting(alebo.ALEBO(dim=3), D=20, budget=40), times - 2 * times // 3),
    ):
        row, rng = Row(f"signals at a driver, {label}"), np.random.default_rng(1)
        path, notes = folder / f"{label}.log", Notes(folder, label)
        while row.faults < share:
            process = start(setting, path, notes)
            linger(process, notes.seen, int(rng.integers(0, 3)), float(rng.uniform(0.0, 0.2)))
            if process.exitcode is not None:
                if process.exitcode != 0:
                    row.stop(f"the driver ended with {process.exitcode}")
                break  # more kills than the run had time for
            os.kill(process.pid, SIGNALS[int(rng.integers(4))])
            process.join()
            row.faults += 1
        finish(row, setting, path, notes)
        yield row


def workers(folder: Path, times: int) -> Iterator[Row]:
    """Several drivers on one study; one of them is killed, and another one started."""
    for count, where in ((2, "file"), (4, "PostgreSQL"), (8, "file")):
        label = f"{count} on {where}"
        row, rng = Row(f"SIGKILL of workers, {label}"), np.random.default_rng(count)
        setting, notes = Setting(Sobol(), budget=20 * count), Notes(folder, label)
        if where == "file":
            _workers(row, setting, str(folder / f"workers{count}.log"), notes, count, times, rng)
        elif programs() is None:
            row.remark = "not possible: no PostgreSQL here"
        else:
            with running() as server:
                _workers(row, setting, server.url, notes, count, times, rng)
        yield row


def _workers(row: Row, setting: Setting, where: str, notes: Notes, count: int, times: int, rng: Any) -> None:
    row.cases += 1
    study = setting.create(where)
    processes = [start(setting, where, notes) for _ in range(count)]
    for _ in range(times):
        time.sleep(float(rng.uniform(0.2, 0.6)))
        if len(study.history.complete) > setting.budget - 2 * count:
            break
        k = int(rng.integers(count))
        processes[k].kill()
        processes[k].join()
        row.faults += 1
        processes[k] = start(setting, where, notes)
    row.twice = max(0, join(row, setting, study, notes, processes, timeout=300) - row.faults)


def _command(folder: str) -> None:
    """A driver whose simulator has a family."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(folder + "/err", os.O_APPEND | os.O_CREAT | os.O_WRONLY), 2)
    tempfile.tempdir = folder + "/tmp"
    words = (sys.executable, "-I", "-S", "-c", FAMILY + "time.sleep(300)", folder + "/marks", "{x0}")
    study = alebo.Study.create(folder + "/s.log", space(3), GOAL, method=Sobol(), budget=4)
    try:
        alebo.run(study, CommandEvaluator(words, ("loss",)), workers=2)
    except KeyboardInterrupt:
        os._exit(130)


def families(folder: Path, times: int) -> Row:
    """A driver ends while its simulator has a child, a daemon that ignores TERM, and a temporary folder."""
    row, rng = Row("a driver ends, its simulators have children"), np.random.default_rng(5)
    for k in range(times):
        home = folder / f"family{k}"
        marks, temporary = home / "marks", home / "tmp"
        for path in (home, marks, temporary):
            path.mkdir()
        process = fork.Process(target=_command, args=(str(home),))
        process.start()
        until = time.monotonic() + 60
        while len(list(marks.iterdir())) < 3 and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(float(rng.uniform(0.0, 0.3)))
        os.kill(process.pid or 0, SIGNALS[k % 4])
        process.join(timeout=30)
        row.cases += 1
        row.faults += 1
        row.orphans += left(marks, temporary)
        row.tracebacks += (home / "err").read_text().count("Traceback")
    return row


SIMULATORS: dict[str, tuple[str, bool]] = {  # code, and whether it gives an outcome
    "daemonises": (FAMILY + "print(1.0)", True),
    "daemonises and hangs": (FAMILY + "time.sleep(300)", False),
    "ignores TERM": (
        FAMILY + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(300)",
        False,
    ),
    "forks fifty times": (FAMILY + "for _ in range(50): child(_ % 2)\nprint(1.0)", True),
    "stops itself": (FAMILY + "os.kill(os.getpid(), signal.SIGSTOP)", False),
    "closes its pipes and hangs": (FAMILY + "os.close(1); os.close(2); time.sleep(300)", False),
    "floods standard error": (FAMILY + "x = b'x' * 2**20\nfor _ in range(%d): os.write(2, x)\nprint(1.0)", True),
    "eats memory": (FAMILY + "x = [bytearray(2**24) for _ in range(10**6)]", False),
    "crashes": (FAMILY + "os.kill(os.getpid(), signal.SIGSEGV)", False),
}


def simulators(folder: Path, times: int, megabytes: int = 1024, seconds: float = 2.0) -> Row:
    """Simulators that do what they should not, as external commands."""
    row, old = Row("simulators that fork, hang, flood, eat memory"), tempfile.tempdir
    try:
        for k in range(times):
            for n, (name, (code, good)) in enumerate(SIMULATORS.items()):
                home = folder / f"simulator{k}-{n}"
                marks, temporary = home / "marks", home / "tmp"
                for path in (home, marks, temporary):
                    path.mkdir()
                tempfile.tempdir = str(temporary)
                code = code % megabytes if "%d" in code else code
                words = (sys.executable, "-I", "-S", "-c", code, str(marks), "{x}")
                limit = 60.0 if good else seconds
                began = time.monotonic()
                row.cases += 1
                row.faults += 1
                try:
                    got = CommandEvaluator(words, ("loss",), timeout=limit, memory=2**29)({"x": 1.0})
                    if not good or got != {"loss": 1.0}:
                        row.stop(f"{name} gave {got}")
                except alebo.EvaluationError as error:
                    if good:
                        row.stop(f"{name}: {error}")
                if not good and time.monotonic() - began > limit + 5.0:  # a busy machine is given some seconds
                    row.stop(f"{name} took {time.monotonic() - began:.1f} s with a limit of {limit} s")
                row.orphans += left(marks, temporary)
    finally:
        tempfile.tempdir = old
    return row


def restarts(folder: Path, *, trials: int, every: float, seconds: float, count: int = 4) -> Row:
    """Workers on PostgreSQL, the server restarted again and again and its connections cut."""
    row, rng = Row(f"PostgreSQL restarted or cut, {count} workers"), np.random.default_rng(6)
    if programs() is None:
        row.remark = "not possible: no PostgreSQL here"
        return row
    setting, notes = Setting(Sobol(), budget=trials), Notes(folder, "restarts")
    with running() as server:
        study = setting.create(server.url)
        row.cases += 1
        began = time.monotonic()
        processes = [start(setting, server.url, notes, Slow(notes, seconds)) for _ in range(count)]
        while any(p.exitcode is None for p in processes):
            until = time.monotonic() + every
            while any(p.exitcode is None for p in processes) and time.monotonic() < until:
                time.sleep(0.1)
            if all(p.exitcode is not None for p in processes) or time.monotonic() - began > 1500:
                break
            kind = int(rng.integers(3))
            if kind == 2:
                server.cut()
            else:
                server.restart(("fast", "immediate")[kind], away=float(rng.uniform(0.1, 1.5)))
            row.faults += 1
        row.twice = join(row, setting, study, notes, processes, timeout=60)
        complete = len(study.history.complete)
    row.remark = row.remark or f"{complete} complete, {time.monotonic() - began:.0f} s"
    return row
