"""Who asks, and who is alive: locks that die with the process that holds them, beside a file or in a database.

A lock that the operating system (or the database server) drops when its holder dies is a lease that needs no clock.
Such a lock can also go while its holder lives: the server restarts, a connection is cut, somebody deletes the lock
file. Every worker therefore renews its lock every `BEAT` seconds, and a worker counts as dead only if its process is
known to be gone, or if its lock was seen free for `LEASE` seconds of this process's own monotonic clock without an
interruption of the storage.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import secrets
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

from .._errors import StudyError

log = logging.getLogger("alebo.runner.storage")

APPEND, ASK, FIRST_WORKER = 0, 1, 16  # places (bytes) in the lock file
BEAT = 2.0  # seconds between two renewals
LEASE = 20.0  # seconds for which a lock must be seen free before its worker counts as dead


def number_of(text: str, bits: int = 60) -> int:
    """A number for a name, the same in every process."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> (64 - bits)


@cache
def _machine() -> str:
    """Where process numbers mean the same: this boot of this machine, and this container."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts += [Path("/proc/sys/kernel/random/boot_id").read_text().strip(), os.readlink("/proc/self/ns/pid")]
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:10]


def new_worker() -> str:
    """A name that nobody else has: host, process, machine, and a random part."""
    return f"{socket.gethostname()}:{os.getpid()}:{_machine()}:{secrets.token_hex(6)}"


def _gone(worker: str) -> bool:
    """Whether this worker's process has certainly ended: it ran here, and its number is free."""
    parts = worker.rsplit(":", 3)
    if len(parts) != 4 or parts[2] != _machine() or not parts[1].isdigit():
        return False
    try:
        os.kill(int(parts[1]), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    with suppress(OSError, IndexError):
        return Path(f"/proc/{parts[1]}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    return False


class Claims(ABC):
    """What workers on one study agree on: who is asking now, and which of them live."""

    def __init__(self) -> None:
        self._free: dict[str, float] = {}  # worker -> when its lock was first seen free (monotonic)
        self._stop: threading.Event | None = None
        self.waiting: Callable[[], AbstractContextManager[None]] = nullcontext  # around a wait for a lock

    @abstractmethod
    def asking(self) -> AbstractContextManager[None]:
        """A context in which no other worker of this study asks."""

    @abstractmethod
    def live(self, worker: str) -> None:
        """Be alive under this name until `close` or until the process ends, however it ends."""

    @abstractmethod
    def renew(self) -> None:
        """Take again the locks that were lost while this process lived."""

    @abstractmethod
    def _held(self, worker: str) -> bool:
        """Whether somebody holds the lock of this name now."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back."""

    def alive(self, worker: str) -> bool:
        """Whether this worker must be taken for alive."""
        if self._held(worker):
            self._free.pop(worker, None)
            return True
        if _gone(worker):
            return False
        return time.monotonic() - self._free.setdefault(worker, time.monotonic()) < LEASE

    def interrupted(self) -> None:
        """The storage was away: what was seen before says nothing about who lives."""
        self._free.clear()

    def stamp(self) -> dict[str, Any]:
        """This moment, for `age`."""
        up = time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
        return {"at": time.time(), "boot": _machine(), "up": up}

    def age(self, stamp: Mapping[str, Any]) -> float:
        """Seconds since a stamp; a clock that was moved since changes nothing where machine and boot are the same."""
        now = self.stamp()
        if stamp.get("boot") == now["boot"]:
            return float(now["up"] - stamp["up"])
        return float(now["at"] - float(stamp["at"]))

    def _keep_renewing(self) -> None:
        """Start the thread that renews, once."""
        if self._stop is not None:
            return
        stop = self._stop = threading.Event()
        owner = os.getpid()

        def beat() -> None:
            while not stop.wait(BEAT) and os.getpid() == owner:
                try:
                    self.renew()
                except Exception as error:
                    log.debug("A lease could not be renewed: %s", type(error).__name__)

        threading.Thread(target=beat, name="alebo-lease", daemon=True).start()

    def _stop_renewing(self) -> None:
        if self._stop is not None:
            self._stop.set()
        self._stop = None


class _Handle:
    """The one open lock file of this process: POSIX locks go when *any* handle on the file is closed."""

    known: dict[tuple[str, int], _Handle] = {}
    guard = threading.RLock()

    def __init__(self, path: str) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.threads: dict[int, threading.RLock] = {}
        self.mine: set[int] = set()

    @classmethod
    def of(cls, path: str) -> _Handle:
        """The handle of this path; a lock file that was deleted is made again, with the locks of this process."""
        key = (os.path.realpath(path), os.getpid())  # a forked child inherits the file but not the locks
        with cls.guard:
            handle = cls.known.get(key)
            if handle is not None and _same_file(handle.file, key[0]):
                return handle
            before, handle = handle, cls(key[0])
            cls.known[key] = handle
            if before is not None:
                log.warning("The lock file %s was deleted or replaced; it has been made again.", path)
                for place in before.mine:
                    with suppress(OSError):
                        fcntl.lockf(handle.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                handle.mine = before.mine
                handle.threads = before.threads
            return handle

    def thread_lock(self, place: int) -> threading.RLock:
        with self.guard:
            return self.threads.setdefault(place, threading.RLock())


@contextmanager
def _locked(path: str, place: int, waiting: Callable[[], AbstractContextManager[None]] = nullcontext) -> Iterator[None]:
    """Alone at this place, among threads (a POSIX lock does not tell them apart) and among processes."""
    with _Handle.of(path).thread_lock(place):
        handle = _Handle.of(path)
        try:
            while True:
                with waiting():
                    fcntl.lockf(handle.file, fcntl.LOCK_EX, 1, place)
                if _same_file(handle.file, os.path.realpath(path)):
                    break  # else it was deleted while we waited: others lock its successor
                fcntl.lockf(handle.file, fcntl.LOCK_UN, 1, place)
                handle = _Handle.of(path)
            yield
        finally:
            fcntl.lockf(handle.file, fcntl.LOCK_UN, 1, place)


def _same_file(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False


class FileClaims(Claims):
    """Claims beside a journal file: POSIX record locks on bytes of `<journal>.claims`."""

    def __init__(self, journal: Path) -> None:
        super().__init__()
        self.path = f"{journal}.claims"
        self.places: set[int] = set()

    def appending(self) -> AbstractContextManager[None]:
        """A context in which no other alebo process appends to the journal."""
        return _locked(self.path, APPEND)

    def asking(self) -> AbstractContextManager[None]:
        return _locked(self.path, ASK, self.waiting)

    @staticmethod
    def _place(worker: str) -> int:
        return FIRST_WORKER + number_of(worker)

    def live(self, worker: str) -> None:
        handle, place = _Handle.of(self.path), self._place(worker)
        fcntl.lockf(handle.file, fcntl.LOCK_EX, 1, place)
        handle.mine.add(place)
        self.places.add(place)
        self._keep_renewing()

    def renew(self) -> None:
        _Handle.of(self.path)

    def _held(self, worker: str) -> bool:
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
        self._stop_renewing()
        for place in self.places:
            with suppress(OSError):
                handle = _Handle.of(self.path)
                fcntl.lockf(handle.file, fcntl.LOCK_UN, 1, place)
                handle.mine.discard(place)
        self.places.clear()


class NoClaims(Claims):
    """Claims on a study that can only be read: nobody is taken for dead, and nobody asks."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def asking(self) -> AbstractContextManager[None]:
        raise StudyError(
            f"Asking needs a study that can be written; {self.where} and its folder are read-only. Copy it to a folder "
            "of yours, or change the permissions."
        )

    def appending(self) -> AbstractContextManager[None]:
        return nullcontext()

    def live(self, worker: str) -> None:
        self.asking()

    def renew(self) -> None:
        """Nothing is held."""

    def _held(self, worker: str) -> bool:
        return True

    def close(self) -> None:
        """Nothing is held."""
