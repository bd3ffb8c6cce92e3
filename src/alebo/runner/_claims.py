"""Who asks, and who is alive: locks that die with the process that holds them, in a file or in PostgreSQL.

A lock that the operating system (or the database server) drops when its holder dies needs no heartbeat and no guessing
by age: a trial whose owner's lock is free belongs to nobody and can be taken over at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

APPEND, ASK, FIRST_WORKER = 0, 1, 16  # places (bytes) in the lock file


def number_of(text: str, bits: int = 60) -> int:
    """A number for a name, the same in every process."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> (64 - bits)


class Claims(ABC):
    """What workers on one study agree on: who is asking now, and which of them live."""

    @abstractmethod
    def asking(self) -> Any:
        """A context in which no other worker of this study asks."""

    @abstractmethod
    def live(self, worker: str) -> None:
        """Be alive under this name until `close` or until the process ends, however it ends."""

    @abstractmethod
    def alive(self, worker: str) -> bool:
        """Whether somebody lives under this name."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back."""


class _Handle:
    """The one open lock file of this process: POSIX locks go when *any* handle on the file is closed."""

    known: dict[tuple[str, int], _Handle] = {}
    guard = threading.Lock()

    def __init__(self, path: str) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.threads: dict[int, threading.RLock] = {}
        self.mine: set[int] = set()

    @classmethod
    def of(cls, path: str) -> _Handle:
        key = (os.path.realpath(path), os.getpid())  # a forked child inherits the file but not the locks
        with cls.guard:
            handle = cls.known.get(key)
            if handle is not None and not _same_file(handle.file, key[0]):
                handle = None  # somebody removed the lock file: it must be made again
            if handle is None:
                handle = cls.known[key] = cls(key[0])
            return handle

    @contextmanager
    def held(self, place: int) -> Iterator[None]:
        """Alone at this place, among threads (a POSIX lock does not tell them apart) and among processes."""
        with self.guard:
            thread_lock = self.threads.setdefault(place, threading.RLock())
        with thread_lock:
            fcntl.lockf(self.file, fcntl.LOCK_EX, 1, place)
            try:
                yield
            finally:
                fcntl.lockf(self.file, fcntl.LOCK_UN, 1, place)


def _same_file(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False


class FileClaims(Claims):
    """Claims beside a journal file: POSIX record locks on bytes of `<journal>.claims`."""

    def __init__(self, journal: Path) -> None:
        self.path = f"{journal}.claims"
        self.places: set[int] = set()

    def appending(self) -> Any:
        """A context in which no other alebo process appends to the journal."""
        return _Handle.of(self.path).held(APPEND)

    def asking(self) -> Any:
        return _Handle.of(self.path).held(ASK)

    @staticmethod
    def _place(worker: str) -> int:
        return FIRST_WORKER + number_of(worker)

    def live(self, worker: str) -> None:
        handle, place = _Handle.of(self.path), self._place(worker)
        fcntl.lockf(handle.file, fcntl.LOCK_EX, 1, place)
        handle.mine.add(place)
        self.places.add(place)

    def alive(self, worker: str) -> bool:
        handle, place = _Handle.of(self.path), self._place(worker)
        if place in handle.mine:
            return True
        try:
            fcntl.lockf(handle.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError:
            return True
        fcntl.lockf(handle.file, fcntl.LOCK_UN, 1, place)
        return False

    def close(self) -> None:
        for place in self.places:
            with suppress(OSError):
                handle = _Handle.of(self.path)
                fcntl.lockf(handle.file, fcntl.LOCK_UN, 1, place)
                handle.mine.discard(place)
        self.places.clear()


class PostgresClaims(Claims):
    """Claims in PostgreSQL: advisory locks of one connection, which the server drops when the connection goes."""

    def __init__(self, engine: Any, name: str) -> None:
        self.engine = engine
        self.name = name
        self.workers: set[str] = set()
        self.guard = threading.RLock()
        self._connection: Any = None

    def _run(self, function: str, key: int) -> Any:
        """Call an advisory-lock function; a connection lost in between is opened again and its claims renewed."""
        from sqlalchemy import text
        from sqlalchemy.exc import DBAPIError

        statement = text(f"SELECT {function}(CAST(:key AS bigint))")
        for attempt in (0, 1):
            try:
                if self._connection is None:
                    self._connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
                    for worker in self.workers:
                        self._connection.execute(
                            text("SELECT pg_advisory_lock(CAST(:key AS bigint))"), {"key": self._key(worker)}
                        )
                return self._connection.execute(statement, {"key": key}).scalar()
            except DBAPIError:
                self._drop()
                if attempt:
                    raise
        raise AssertionError("unreachable")

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                self._connection.invalidate()
            with suppress(Exception):
                self._connection.close()
        self._connection = None

    def _key(self, what: str) -> int:
        return number_of(f"alebo/{self.name}/{what}")

    @contextmanager
    def asking(self) -> Iterator[None]:
        with self.guard:
            self._run("pg_advisory_lock", self._key("ask"))
            try:
                yield
            finally:
                self._run("pg_advisory_unlock", self._key("ask"))

    def live(self, worker: str) -> None:
        with self.guard:
            self._run("pg_advisory_lock", self._key(worker))
            self.workers.add(worker)

    def alive(self, worker: str) -> bool:
        with self.guard:
            if worker in self.workers:
                return True
            if not self._run("pg_try_advisory_lock", self._key(worker)):
                return True
            self._run("pg_advisory_unlock", self._key(worker))
            return False

    def close(self) -> None:
        with self.guard:
            self.workers.clear()
            self._drop()
