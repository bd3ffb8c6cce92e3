"""Optuna's journal file, made safe against a killed writer, a damaged line and a full disk.

The format is Optuna's own and any Optuna reads it; what differs is the writing: under a lock that dies with its holder,
whole or not at all, and with a checksum in every line.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from .._errors import StudyError
from ._claims import FileClaims, NoClaims
from ._heal import heal, move_torn, repaired
from ._lines import has_checksum, intact, read, sealed, split

log = logging.getLogger("alebo.runner.storage")

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


class _Lock:
    """Optuna's symbolic-link lock, but a link that a dead process left is removed at once, not after half a minute."""

    def __init__(self, path: str, claims: FileClaims | NoClaims) -> None:
        self.link = path + ".lock"
        self.claims = claims
        self.optuna = JournalFileSymlinkLock(path)

    @contextmanager
    def held(self) -> Iterator[None]:
        with self.claims.appending():
            # We hold the lock that every living alebo process needs: a link of ours that is still there has a dead
            # owner.
            with suppress(OSError):
                if os.path.islink(self.link) and os.readlink(self.link).startswith("alebo"):
                    os.unlink(self.link)
                    log.warning("A lock of a process that died was cleared: %s", self.link)
            try:
                os.symlink(f"alebo-{os.getpid()}", self.link)
            except FileExistsError:  # another program that uses Optuna (its dashboard) is writing: wait as Optuna does
                self.optuna.acquire()
            try:
                yield
            finally:
                with suppress(FileNotFoundError):  # a person who cleans up may have removed it
                    os.unlink(self.link)


class Journal(JournalFileBackend):
    """Optuna's file backend, with our lock, with checksums, and with an append that leaves nothing half-written."""

    def __init__(self, path: Path, claims: FileClaims | NoClaims) -> None:
        self.path = path
        self.read_only = isinstance(claims, NoClaims)
        self.guard = _Lock(str(path), claims)
        self._alone = threading.local()
        self._checked: set[str] = set()  # workers that write checksums
        if not self.read_only:
            with self.guard.held():
                if path.exists():
                    heal(path)
                else:
                    path.touch()
        super().__init__(str(path))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Inside, nobody else appends: what was read stays true until it was written."""
        if getattr(self._alone, "held", False):
            yield
            return
        try:
            with self.guard.held():
                self._alone.held = True
                try:
                    yield
                finally:
                    self._alone.held = False
        except OSError as error:
            raise _explained(self.path, error) from error

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Write these records, or raise and leave the file as it was."""
        if self.read_only:
            raise StudyError(f"A study file must be writable; {self.path} is read-only. Copy it to a folder of yours.")
        data = b"".join(map(sealed, logs))
        try:
            with self.alone(), open(self.path, "r+b", buffering=0) as file:
                end = move_torn(self.path, file)
                try:
                    file.seek(end)
                    view = memoryview(data)
                    while view:
                        view = view[file.write(view) :]
                    os.fsync(file.fileno())
                except BaseException:
                    file.truncate(end)
                    raise
        except OSError as error:
            raise _explained(self.path, error) from error

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:  # type: ignore[override]
        """The records from this one on, each checked; a line that was damaged since is healed first."""
        for attempt in (0, 1):
            lines = self._new_lines(log_number_from)
            records = self._checked_records(lines)
            if None not in records:
                break
            if self.read_only or attempt:
                records = [read(x) for x in self._repaired_in_memory()[log_number_from:]]
                break
            with self.alone():
                heal(self.path)
            self._log_number_offset = {0: 0}  # the lines may have moved
        yield from (r for r in records if r is not None)

    def _new_lines(self, first: int) -> list[bytes]:
        """The whole lines from this one on."""
        with open(self.path, "rb") as file:
            start = max(n for n in self._log_number_offset if n <= first)
            file.seek(self._log_number_offset[start])
            lines = split(file.read())  # without one that is being written, or torn
        offset = self._log_number_offset[start]
        self._log_number_offset = {0: 0, start: offset, start + len(lines): offset + sum(map(len, lines))}
        return lines[first - start :]

    def _checked_records(self, lines: list[bytes]) -> list[dict[str, Any] | None]:
        records: list[dict[str, Any] | None] = []
        for line in lines:
            if intact(line):
                record = json.loads(line)
                self._checked.add(record["worker_id"])
            else:
                record = None if has_checksum(line) else read(line, self._checked)
            records.append(record)
        return records

    def _repaired_in_memory(self) -> list[bytes]:
        with open(self.path, "rb") as file:
            after, bad = repaired(split(file.read()))
        log.warning("%d damaged line(s) of %s were left out while reading.", len(bad), self.path)
        return after


def _explained(path: Path, error: OSError) -> StudyError:
    if error.errno in _FULL:
        return StudyError(
            f"A study needs free disk space; {path} could not grow ({os.strerror(error.errno or 0)}). Nothing that was "
            "written is lost: free some space, and run the same command again."
        )
    return StudyError(f"A study file must be writable; {path} is not ({error}). Check its folder, and run again.")
