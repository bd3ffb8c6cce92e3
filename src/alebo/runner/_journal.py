"""Optuna's journal file, made safe against a killed writer, a damaged line and a full disk.

The format is Optuna's own and any Optuna reads it; what differs is the writing: under a lock that dies with its holder,
and whole or not at all.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from .._errors import StudyError
from ._claims import FileClaims

log = logging.getLogger(__name__)

CREATE_STUDY, STUDY_ATTR, CREATE_TRIAL, NOTHING = 0, 2, 4, 10  # Optuna's codes; the last is one that readers pass over
META = "alebo"  # the study attribute that says what the study is, and (with :copy) its second copy
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}


class _Lock:
    """Optuna's symbolic-link lock, but a link that a dead process left is removed at once, not after half a minute."""

    def __init__(self, path: str, claims: FileClaims) -> None:
        self.link = path + ".lock"
        self.claims = claims
        self.optuna = JournalFileSymlinkLock(path)

    @contextmanager
    def held(self) -> Iterator[None]:
        with self.claims.appending():
            # We hold the lock that every living alebo process needs: a link of ours that is still there has a dead
            # owner.
            if os.path.islink(self.link) and os.readlink(self.link).startswith("alebo"):
                log.warning("A lock of a process that died was cleared: %s", self.link)
                os.unlink(self.link)
            try:
                os.symlink(f"alebo-{os.getpid()}", self.link)
            except FileExistsError:  # another program that uses Optuna (its dashboard) is writing: wait as Optuna does
                self.optuna.acquire()
            try:
                yield
            finally:
                os.unlink(self.link)


class Journal(JournalFileBackend):
    """Optuna's file backend, with our lock and with an append that leaves nothing half-written."""

    def __init__(self, path: Path, claims: FileClaims) -> None:
        self.path = path
        self._more_to_come = False
        self.guard = _Lock(str(path), claims)
        with self.guard.held():
            if path.exists():
                heal(path)
            else:
                path.touch()
        super().__init__(str(path))

    @contextmanager
    def more_to_come(self) -> Iterator[None]:
        """Inside, records are written but not yet forced to the disk: the last one, outside, does it for all."""
        self._more_to_come = True
        try:
            yield
        finally:
            self._more_to_come = False

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Write these records, or raise and leave the file as it was."""
        data = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in logs).encode()
        try:
            with self.guard.held(), open(self.path, "r+b", buffering=0) as file:
                end = move_torn(self.path, file)
                try:
                    file.seek(end)
                    view = memoryview(data)
                    while view:
                        view = view[file.write(view) :]
                    if not self._more_to_come:
                        os.fsync(file.fileno())
                except BaseException:
                    file.truncate(end)
                    raise
        except OSError as error:
            raise _sentence(self.path, error) from error


def _sentence(path: Path, error: OSError) -> StudyError:
    if error.errno in _FULL:
        return StudyError(
            f"A study needs room to write; {path} could not grow ({os.strerror(error.errno or 0)}). Nothing that was "
            "written is lost: make room, and run the same command again."
        )
    return StudyError(f"A study file must be writable; {path} is not ({error}). Check its folder, and run again.")


def _keep(path: Path, piece: bytes) -> Path:
    """Move damaged bytes aside, where a person can look at them."""
    aside = path.with_name(path.name + ".torn")
    with open(aside, "ab") as file:
        file.write(piece.rstrip(b"\n") + b"\n")
    return aside


def move_torn(path: Path, file: Any) -> int:
    """The end of the last whole line; what a killed writer left behind it goes to `.torn`."""
    end = int(file.seek(0, os.SEEK_END))
    if end == 0:
        return 0
    file.seek(end - 1)
    if file.read(1) == b"\n":
        return end
    start = end
    while start > 0:  # back to the newline before the torn line
        block = min(65536, start)
        file.seek(start - block)
        piece = file.read(block)
        found = piece.rfind(b"\n")
        start -= block
        if found >= 0:
            start += found + 1
            break
    file.seek(start)
    aside = _keep(path, file.read(end - start))
    file.truncate(start)
    log.warning(
        "The last line of %s was torn (its writer was killed) and has been moved to %s; no completed trial is lost.",
        path,
        aside,
    )
    return start


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or record.get("op_code") not in range(11) or "worker_id" not in record:
        return None
    return record


def heal(path: Path) -> int:
    """Make the file readable again: a torn end and damaged lines go to `.torn`. The number of damaged lines.

    Optuna counts trials by the lines that create them, so a damaged line keeps its place: it is replaced by the record
    that can be recovered from it, by an empty trial (which the copy told with the outcome fills again), or by one that
    readers pass over.
    """
    with open(path, "r+b", buffering=0) as file:
        move_torn(path, file)
    with open(path, "rb") as file:
        lines = file.readlines()
    records = [_record(line) for line in lines]
    bad = [i for i, record in enumerate(records) if record is None]
    if not bad:
        return 0
    for i in bad:
        aside = _keep(path, lines[i])
    for i in bad:
        records[i] = _replacement(records, lines[i], i)
    moved = False
    for i in bad:
        text = json.dumps(records[i], separators=(",", ":")).encode()
        moved |= len(text) + 1 > len(lines[i])
        lines[i] = text.ljust(len(lines[i]) - 1) + b"\n"  # the same length: who has the file open keeps its place
    if moved:
        part = path.with_name(path.name + ".part")
        with open(part, "wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    else:
        with open(path, "r+b", buffering=0) as file:
            for i in bad:
                file.seek(sum(map(len, lines[:i])))
                file.write(lines[i])
            os.fsync(file.fileno())
    log.warning(
        "%d damaged line(s) of %s have been moved to %s; what they said was recovered where possible.",
        len(bad),
        path,
        aside,
    )
    return len(bad)


def _replacement(records: list[dict[str, Any] | None], line: bytes, i: int) -> dict[str, Any]:
    for start in [m.start() for m in re.finditer(rb'\{"op_code"', line)][1:]:  # a torn line with a whole one behind it
        found = _record(line[start:])
        if found is not None:
            return found
    later = [r for r in records[i + 1 :] if r is not None]
    code = re.search(rb'"op_code":\s*(\d+)', line)
    if not any(r is not None and r["op_code"] == CREATE_STUDY for r in records[:i]):
        study = next(
            (r["user_attr"][k] for r in later if r["op_code"] == STUDY_ATTR for k in r["user_attr"] if META in k), None
        )
        if study is not None:
            return {
                "op_code": CREATE_STUDY,
                "worker_id": "healed",
                "study_name": study["name"],
                "directions": study["directions"],
            }
    if code is not None and int(code.group(1)) != CREATE_TRIAL:
        return {"op_code": NOTHING, "worker_id": "healed"}
    if code is not None or _one_missing(records, later, i):
        study_id = re.search(rb'"study_id":\s*(\d+)', line)
        return {
            "op_code": CREATE_TRIAL,
            "worker_id": "healed",
            "study_id": int(study_id.group(1)) if study_id else 0,
            "datetime_start": None,
            "state": 0,  # running, so that what was written of it later still counts
        }
    return {"op_code": NOTHING, "worker_id": "healed"}


def _one_missing(records: list[dict[str, Any] | None], later: list[dict[str, Any]], i: int) -> bool:
    """Whether trials created before place i are fewer than what is said later takes for granted."""
    count = sum(r is not None and r["op_code"] == CREATE_TRIAL for r in records[:i])
    for record in later:
        if record["op_code"] == CREATE_TRIAL:
            number = record.get("user_attrs", {}).get("trial", {}).get("number")
            return number is not None and number > count
        if record.get("trial_id", -1) >= count:
            return True
    return False
