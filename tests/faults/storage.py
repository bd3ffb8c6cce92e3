"""Files that rot, disks that are full, clocks that jump."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

import alebo
from alebo.methods import Sobol
from tests.runner import functions as fn
from tests.runner.postgres import programs, running

from .table import GOAL, Notes, Row, Setting, compare, finish, join, space, start


def torn(folder: Path, times: int) -> Row:
    row, rng, setting = Row("torn last line"), np.random.default_rng(3), Setting(Sobol(), budget=6)
    for k in range(times):
        path, notes = folder / f"torn{k}.log", Notes(folder, f"torn{k}")
        alebo.run(Setting(Sobol(), budget=4).create(path), fn.sphere, callback=notes.witness)
        line = path.read_bytes().splitlines()[int(rng.integers(2, 10))]
        with open(path, "ab") as file:
            file.write(line[: int(rng.integers(1, len(line)))])
        row.faults += 1
        finish(row, setting, path, notes)
    return row


def damaged(folder: Path, times: int) -> Row:
    row, rng, setting = Row("damaged line in the middle"), np.random.default_rng(4), Setting(Sobol(), budget=8)
    whole = Notes(folder, "whole")
    alebo.run(Setting(Sobol(), budget=6).create(folder / "whole.log"), fn.sphere, callback=whole.witness)
    lines = (folder / "whole.log").read_bytes().splitlines(keepends=True)
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
        path, notes = folder / f"damaged{k}.log", Notes(folder, f"damaged{k}")
        path.write_bytes(b"".join([*lines[:i], bytes(line), *lines[i + 1 :]]))
        notes.seen.write_bytes(whole.seen.read_bytes())
        row.faults += 1
        finish(row, setting, path, notes)
    return row


def flips(folder: Path, times: int) -> Row:
    """One bit changed, anywhere in the file."""
    row, rng = Row("one flipped bit"), np.random.default_rng(7)
    study = alebo.Study.create(folder / "flips.log", space(5), GOAL, method=Sobol(), budget=9)
    for k, trial in enumerate(study.ask(6)):
        study.fail(trial.number, "broken") if k == 2 else study.tell(trial.number, (k / 7, 0.1))
    before = {t.number: t.to_dict() for t in study.history.complete}
    data = (folder / "flips.log").read_bytes()
    path = folder / "flipped.log"
    for _ in range(times):
        hurt = bytearray(data)
        hurt[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        for old in folder.glob("flipped.log*"):
            old.unlink()
        path.write_bytes(hurt)
        row.cases += 1
        row.faults += 1
        row.completed += len(before)
        try:
            after = {t.number: t.to_dict() for t in alebo.Study.open(path).history.complete}
        except Exception as error:
            row.stop(error)
            continue
        row.lost += sum(n not in after for n in before)
        row.changed += sum(n in after and after[n] != t for n, t in before.items())
        row.lost += not path.with_name("flipped.log.torn").exists()  # a damaged line that nobody has named
    return row


@contextmanager
def small_disk(folder: Path, size: str = "96k") -> Iterator[tuple[Path, Callable[[], None], str]]:
    """A full file system: a small tmpfs where that may be mounted, else a limit on the size of files."""
    folder.mkdir()
    mounted = (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True
        ).returncode
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
        yield folder, more, f"tmpfs of {size}" if mounted else "RLIMIT_FSIZE"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)


def disk_full(folder: Path) -> Row:
    row, setting, notes = Row("disk full"), Setting(Sobol(), D=100, budget=30), Notes(folder, "disk")
    with small_disk(folder / "disk") as (disk, more, row.remark):
        path = disk / "s.log"
        study = setting.create(path)
        for _ in range(3):  # the same command, still full: again a message
            try:
                alebo.run(study, fn.sphere, callback=notes.witness)
            except alebo.StudyError as error:
                row.faults += "free some space" in str(error)
        more()
        finish(row, setting, path, notes)
    return row


def database_disk_full(folder: Path) -> Row:
    """PostgreSQL on a file system that is full for a while."""
    row, setting, notes = Row("PostgreSQL's disk full, 2 workers"), Setting(Sobol(), budget=24), Notes(folder, "pgdisk")
    disk = folder / "pgdisk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=220m", "tmpfs", str(disk)]
    if programs() is None or subprocess.run(mount, capture_output=True).returncode:
        row.remark = "not possible: no PostgreSQL, or no file system may be mounted"
        return row
    try:
        disk.chmod(0o755)
        with running(disk) as server:
            study = setting.create(server.url)
            row.cases += 1
            processes = [start(setting, server.url, notes) for _ in range(2)]
            while len(study.history.complete) < 4 and any(p.exitcode is None for p in processes):
                time.sleep(0.1)
            with suppress(OSError), open(disk / "ballast", "wb", buffering=0) as file:
                while True:
                    file.write(b"\0" * 65536)
            row.faults += 1
            time.sleep(5.0)
            (disk / "ballast").unlink()
            with suppress(RuntimeError):  # it may have ended because its log could not be written
                server.start()
            row.twice = join(row, setting, study, notes, processes, timeout=200)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)
    return row


def clocks(folder: Path, jumps: int) -> Row:
    """Two drivers under a wall clock that jumps by days, forwards and backwards.

    (libfaketime 0.9.10 is no help here: under it, a sleep of Python 3.11 ends with EINVAL when the clock is moved.)
    """
    row, setting = Row("the clock jumps by days, 2 drivers"), Setting(Sobol(), budget=10 * jumps)
    library = folder / "clock.so"
    source = Path(__file__).with_name("clock.c")
    build = ["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    if shutil.which("cc") is None or subprocess.run(build, capture_output=True).returncode:
        row.remark = "not possible: no C compiler"
        return row
    notes, offset, path = Notes(folder, "clock"), folder / "clock.offset", folder / "clock.log"
    offset.write_text("0")
    setting.create(path)
    environment = {**os.environ, "LD_PRELOAD": str(library), "ALEBO_CLOCK": str(offset)}
    command = [sys.executable, "-m", "tests.faults.driver", str(path), str(folder), "clock", str(setting.budget)]
    processes = [subprocess.Popen(command, env=environment) for _ in range(2)]
    rng = np.random.default_rng(8)
    stop = threading.Event()
    while any(p.poll() is None for p in processes):
        stop.wait(0.4)
        offset.write_text(str(int(rng.integers(-20, 20)) * 86400))
        row.faults += 1
    row.cases += 1
    for process in processes:
        if process.wait():
            row.stop(f"a driver ended with {process.returncode}")
    history = alebo.Study.open(path).history
    notes.check(row, history)
    row.lost += sum(not t.complete for t in history)
    row.twice = notes.begun_twice()
    compare(row, history, setting.twin())
    return row


def breaking(folder: Path, budget: int) -> Row:
    row, setting, notes = (
        Row("30 % crash, 10 % hang, 10 % NaN"),
        Setting(Sobol(), budget=budget),
        Notes(folder, "broken"),
    )
    row.cases += 1
    try:
        study = setting.create(folder / "breaking.log")
        history = alebo.run(
            study, fn.unreliable, workers=4, timeout=1.0, max_failed=1.0, callback=notes.witness
        ).history
    except Exception as error:
        row.stop(error)
        return row
    notes.check(row, history)
    reasons = [(t.reason or "").split(":")[0] for t in history.failed]
    row.faults = len(reasons)
    row.remark = ", ".join(f"{n} {reasons.count(n)}" for n in sorted(set(reasons)))
    row.lost += sum(not t.reason for t in history.failed)  # a failure without its reason is a loss, too
    if len(history) != setting.budget or history.pending:
        row.stop("the run did not end")
    asked = alebo.Optimizer(space(30), GOAL, method=Sobol(), seed=3).ask(budget)
    compare(row, history, [t.to_dict() for t in asked])
    return row
