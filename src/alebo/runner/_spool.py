"""Outcomes in hand while a study's storage is away: kept as local files, and written when it is back.

One small file for each outcome, in a folder of the study under `ALEBO_SPOOL` (by default `~/.local/state/alebo/spool`).
Every process that opens the study on this machine writes what it finds there; the first outcome of a trial stands, so
it does not matter who does it, or how often.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from .._urls import is_url

log = logging.getLogger("alebo.runner.storage")
Key: TypeAlias = int | str  # the number of a trial, or `point-...` for a point that was never asked


def named(key: Key) -> str:
    """What an outcome is of, for messages."""
    return f"trial {key}" if isinstance(key, int) else "a point that was not asked"


def folder_of(where: str, name: str) -> Path:
    """The spool folder of a study. The password of a database address plays no part in it."""
    root = os.environ.get("ALEBO_SPOOL")
    if root is None:
        state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
        root = os.path.join(state, "alebo", "spool")
    place = re.sub(r"://[^@]*@", "://", where) if is_url(where) else os.path.realpath(where)
    return Path(root) / hashlib.sha256(f"{place}#{name}".encode()).hexdigest()[:20]


class Spool:
    """The spool folder of one study."""

    def __init__(self, where: str, name: str) -> None:
        self.folder = folder_of(where, name)
        self._files: dict[Key, Path] = {}  # of this process

    def keep(self, number: Key, record: Mapping[str, Any]) -> Path | None:
        """Write an outcome down; where it is, or None if that is impossible, too."""
        if number in self._files:
            return self._files[number]
        path = self.folder / f"{number}-{secrets.token_hex(4)}.json"
        part = path.with_suffix(".part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                json.dump(record, file)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except (OSError, TypeError, ValueError) as error:
            log.warning("The outcome of %s could not be kept in %s: %s", named(number), self.folder, error)
            with suppress(OSError):
                part.unlink()
            return None
        self._files[number] = path
        log.warning("The outcome of %s is kept in %s until it is written.", named(number), path)
        return path

    def has(self, number: Key) -> bool:
        """Whether this process has kept an outcome of this trial."""
        return number in self._files

    def drop(self, number: Key) -> None:
        """An outcome is written, or refused: its file is needed no more."""
        path = self._files.pop(number, None)
        if path is not None:
            self.discard(path)

    def discard(self, path: Path) -> None:
        """Remove a file, and the folder with its last one."""
        with suppress(OSError):
            path.unlink()
            self.folder.rmdir()

    def found(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """What was kept by processes that could not write it."""
        if not self.folder.is_dir():
            return
        for path in sorted(self.folder.glob("*.json")):
            try:
                record = json.loads(path.read_text())
            except (OSError, ValueError):
                continue
            if isinstance(record, dict):
                yield path, record
