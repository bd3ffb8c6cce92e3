"""`python -m tests.faults`: kill, tear, damage and starve running studies, and see that they resume. Prints one table.

Three figures for every fault: completed trials lost (a driver writes down every outcome that it told, outside of the
study, and all must be there with their values afterwards), runs that could not continue, and proposals that differ from
those of the same run uninterrupted. Everything is real: processes killed by SIGKILL, a PostgreSQL server, a file system
that is full.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import alebo
from alebo.methods import Method, Sobol
from tests.runner import functions as fn
from tests.runner.postgres import programs, server

GOAL = alebo.Minimize("loss")
fork = multiprocessing.get_context("fork")


@dataclass
class Row:
    """One line of the table."""

    fault: str
    times: int = 0
    completed: int = 0
    lost: int = 0
    stuck: int = 0
    equal: int = 0
    compared: int = 0
    remark: str = ""

    @property
    def good(self) -> bool:
        return not self.lost and not self.stuck and self.equal == self.compared and self.times > 0


def quick(params: dict[str, Any]) -> float:
    time.sleep(0.03)
    return fn.sphere(params)


def space(D: int) -> alebo.Space:
    return alebo.Space.from_bounds([(-1, 1)] * D)


@dataclass(frozen=True)
class Setting:
    """A run, and the same run in memory."""

    method: Method
    D: int = 30
    budget: int = 40
    seed: int = 3

    def create(self, where: str | Path, name: str = "alebo") -> alebo.Study:
        return alebo.Study.create(
            where, space(self.D), GOAL, method=self.method, seed=self.seed, budget=self.budget, name=name
        )

    def twin(self, f: Callable[[dict[str, Any]], float]) -> list[dict[str, Any]]:
        opt = alebo.Optimizer(space(self.D), GOAL, method=self.method, seed=self.seed, budget=self.budget)
        for _ in range(self.budget):
            trial = opt.ask()[0]
            opt.tell(trial.number, f(trial.params))
        return [t.to_dict() for t in opt.history]


def witness(path: Path) -> Callable[[alebo.Trial, alebo.Study], None]:
    """A callback that writes down, outside of the study, what has been told."""

    def note(trial: alebo.Trial, study: alebo.Study) -> None:
        if trial.complete:
            line = json.dumps([trial.number, trial.outcomes["loss"].mean]) + "\n"
            handle = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
            os.write(handle, line.encode())
            os.close(handle)

    return note


def missing(path: Path, history: alebo.History) -> tuple[int, int]:
    """(witnessed, lost)"""
    told = {tuple(json.loads(line)) for line in path.read_text().splitlines()} if path.exists() else set()
    kept = {(t.number, t.outcomes["loss"].mean) for t in history.complete}
    return len(told), len(told - kept)


def drive(setting: Setting, where: str, name: str, seen: str, create: bool) -> None:
    """A driver, to be killed."""
    logging.disable(logging.WARNING)
    study = setting.create(where, name) if create else alebo.Study.open(where, name=name)
    alebo.run(study, quick, callback=witness(Path(seen)))
    os._exit(0)


def compare(row: Row, history: alebo.History, twin: list[dict[str, Any]]) -> None:
    """Proposals equal to those of the uninterrupted run."""
    row.compared += len(twin)
    row.equal += sum(a.x.tolist() == b["x"] and a.params == b["params"] for a, b in zip(history, twin, strict=False))


def linger(process: Any, seen: Path, more: int, after: float) -> None:
    """Let a driver tell so many outcomes more, then a moment: on a busy machine, too, kills come in the middle."""

    def told() -> int:
        return len(seen.read_text().splitlines()) if seen.exists() else 0

    start, until = told(), time.monotonic() + 60
    while process.exitcode is None and told() < start + more and time.monotonic() < until:
        time.sleep(0.01)
    process.join(timeout=after)


def driver_kills(folder: Path, times: int) -> Iterator[Row]:
    for label, setting in (
        ("Sobol", Setting(Sobol(), budget=150)),
        ("ALEBO", Setting(alebo.ALEBO(dim=3), D=20, budget=60)),
    ):
        row = Row(f"SIGKILL of the driver, {label}")
        rng = np.random.default_rng(1)
        path, seen = folder / f"{label}.log", folder / f"{label}.seen"
        while row.times < times // 2:
            process = fork.Process(target=drive, args=(setting, str(path), "alebo", str(seen), True))
            process.start()
            linger(process, seen, int(rng.integers(0, 3)), float(rng.uniform(0.0, 0.2)))
            if process.exitcode is not None and row.times:
                row.remark = "finished before the last kills"  # more kills than the run had time for
                break
            process.kill()
            process.join()
            row.times += 1
        finish(row, setting, path, seen)
        yield row


def finish(row: Row, setting: Setting, path: Path, seen: Path, f: Callable[..., float] = quick) -> None:
    """Run to the end, and count."""
    try:
        history = alebo.run(setting.create(path), f, callback=witness(seen)).history
    except Exception as error:
        row.stuck += 1
        row.remark = f"{type(error).__name__}: {error}"
        return
    told, lost = missing(seen, history)
    row.completed += told
    row.lost += lost
    compare(row, history, setting.twin(fn.sphere))


def worker_kills(folder: Path, times: int) -> Row:
    row = Row("SIGKILL of workers, 4 on PostgreSQL")
    if programs() is None:
        row.remark = "no PostgreSQL here"
        return row
    setting = Setting(Sobol(), budget=160)
    seen = folder / "workers.seen"
    rng = np.random.default_rng(2)
    with server() as url:
        study = setting.create(url)

        def start() -> Any:
            process = fork.Process(target=drive, args=(setting, url, "alebo", str(seen), False))
            process.start()
            return process

        workers = [start() for _ in range(4)]
        while row.times < times and len(study.history.complete) < setting.budget - 8:
            time.sleep(float(rng.uniform(0.3, 0.9)))
            k = int(rng.integers(4))
            workers[k].kill()
            workers[k].join()
            row.times += 1
            workers[k] = start()
        for worker in workers:
            worker.join(timeout=300)
            row.stuck += worker.exitcode != 0
        history = study.history
        told, row.lost = missing(seen, history)
        row.completed = told
        row.lost += sum(not t.complete for t in history)
        numbers = [t.number for t in history]
        row.remark = f"numbers unique: {numbers == list(range(setting.budget))}; duplicates: {len(numbers) - len({t.x.tobytes() for t in history})}"
        row.stuck += numbers != list(range(setting.budget))
        compare(row, history, setting.twin(fn.sphere))  # Sobol's k-th point is the same whoever asks
    return row


def torn(folder: Path, times: int) -> Row:
    row, rng, setting = Row("torn last line"), np.random.default_rng(3), Setting(Sobol(), budget=6)
    for k in range(times):
        path = folder / f"torn{k}.log"
        half = Setting(Sobol(), budget=4)
        alebo.run(half.create(path), fn.sphere, callback=witness(path.with_suffix(".seen")))
        data = path.read_bytes()
        line = data.splitlines()[int(rng.integers(2, 10))]
        with open(path, "ab") as file:
            file.write(line[: int(rng.integers(1, len(line)))])
        row.times += 1
        finish(row, setting, path, path.with_suffix(".seen"), fn.sphere)
    return row


def damaged(folder: Path, times: int) -> Row:
    row, rng, setting = Row("damaged line in the middle"), np.random.default_rng(4), Setting(Sobol(), budget=8)
    whole = folder / "whole.log"
    alebo.run(Setting(Sobol(), budget=6).create(whole), fn.sphere, callback=witness(folder / "whole.seen"))
    lines = whole.read_bytes().splitlines(keepends=True)
    for k in range(times):
        i = k % (len(lines) - 1)
        line = bytearray(lines[i])
        where = int(rng.integers(0, len(line) - 2))
        length = int(rng.integers(1, len(line) - where))
        if k % 3 == 0:
            line[where : where + length] = bytes(rng.integers(128, 255, length).tolist())  # garbage
        elif k % 3 == 1:
            line[where : where + length] = b"\0" * length  # a hole, as after a power cut
        else:
            line = line[:where] + b"\n"  # cut short
        path = folder / f"damaged{k}.log"
        path.write_bytes(b"".join([*lines[:i], bytes(line), *lines[i + 1 :]]))
        path.with_suffix(".seen").write_bytes((folder / "whole.seen").read_bytes())
        row.times += 1
        finish(row, setting, path, path.with_suffix(".seen"), fn.sphere)
    return row


@contextmanager
def small_disk(folder: Path) -> Iterator[tuple[Path, Callable[[], None], str]]:
    """A full file system: a small tmpfs where that may be mounted, else a limit on the size of files."""
    folder.mkdir()
    mounted = (
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(folder)], capture_output=True).returncode
        == 0
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if not mounted:
        resource.setrlimit(resource.RLIMIT_FSIZE, (90_000, hard))

    def more() -> None:
        if mounted:
            subprocess.run(["mount", "-o", "remount,size=8m", str(folder)], check=True)
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    try:
        yield folder, more, "tmpfs of 96 kB" if mounted else "RLIMIT_FSIZE"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)


def disk_full(folder: Path) -> Row:
    row, setting = Row("disk full"), Setting(Sobol(), D=100, budget=30)
    with small_disk(folder / "disk") as (disk, more, row.remark):
        path, seen = disk / "s.log", folder / "disk.seen"
        study = setting.create(path)
        for _ in range(3):  # the same command, still full: again a sentence
            try:
                alebo.run(study, fn.sphere, callback=witness(seen))
            except alebo.StudyError as error:
                row.times += "make room" in str(error)
        more()
        finish(row, setting, path, seen, fn.sphere)
    return row


def breaking(folder: Path) -> Row:
    row, setting = Row("30 % crash, 10 % hang, 10 % NaN"), Setting(Sobol(), budget=100)
    path, seen = folder / "breaking.log", folder / "breaking.seen"
    try:
        study = setting.create(path)
        history = alebo.run(
            study, fn.unreliable, workers=4, timeout=1.0, max_failed=1.0, callback=witness(seen)
        ).history
    except Exception as error:
        row.stuck, row.remark = 1, f"{type(error).__name__}: {error}"
        return row
    told, row.lost = missing(seen, history)
    row.completed = told
    reasons = [(t.reason or "").split(":")[0] for t in history.failed]
    row.times = len(reasons)
    row.remark = ", ".join(f"{n} {reasons.count(n)}" for n in sorted(set(reasons)))
    row.lost += sum(not t.reason for t in history.failed)  # a failure without its reason is a loss, too
    row.stuck += len(history) != setting.budget or bool(history.pending)
    compare(row, history, [t.to_dict() for t in alebo.Optimizer(space(30), GOAL, method=Sobol(), seed=3).ask(100)])
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--driver-kills", type=int, default=60)
    parser.add_argument("--worker-kills", type=int, default=20)
    parser.add_argument("--tears", type=int, default=20)
    parser.add_argument("--damages", type=int, default=60)
    parser.add_argument("--only", default="", help="run only the faults whose name has this word")
    asked = parser.parse_args()
    import optuna
    import torch

    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.disable(logging.WARNING)
    steps: dict[str, Callable[[Path], Iterator[Row] | Row]] = {
        "driver": lambda folder: driver_kills(folder, asked.driver_kills),
        "workers": lambda folder: worker_kills(folder, asked.worker_kills),
        "torn": lambda folder: torn(folder, asked.tears),
        "damaged": lambda folder: damaged(folder, asked.damages),
        "disk": disk_full,
        "breaking": breaking,
    }
    head = f"{'fault':38} {'times':>5} {'completed':>9} {'lost':>5} {'stuck':>6} {'equal proposals':>16}  remark"
    print(head + "\n" + "-" * len(head), flush=True)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="alebo-faults-") as temporary:
        for name, step in steps.items():
            if asked.only not in name:
                continue
            found = step(Path(temporary))
            for row in [found] if isinstance(found, Row) else found:
                rows.append(row)
                equal = f"{row.equal} of {row.compared}"
                print(
                    f"{row.fault:38} {row.times:5d} {row.completed:9d} {row.lost:5d} {row.stuck:6d} {equal:>16}  "
                    f"{row.remark}",
                    flush=True,
                )
    lost, stuck = sum(r.lost for r in rows), sum(r.stuck for r in rows)
    equal = sum(r.equal for r in rows), sum(r.compared for r in rows)
    print(
        f"completed trials lost: {lost}; runs that could not continue: {stuck}; proposals equal: {equal[0]} of {equal[1]}"
    )
    return 0 if rows and all(r.good for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
