"""Stored runs: one JSON-lines file for each problem and method, `<folder>/<problem>/<label>.jsonl`, one line a run.

A line is appended in one write under a lock, so several sweeps can share a folder. A sweep that is killed while it writes
leaves at most an unfinished last line: readers report it, and the next append removes it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alebo import InputError, StudyError

from ._format import FORMAT, KIND, NAME
from ._record import damage


def path_of(folder: Path, problem: str, label: str) -> Path:
    """The file that holds the runs of this problem and method; an InputError where a name would lead elsewhere."""
    for what, name in (("problem", problem), ("label", label)):
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InputError(
                f"A problem names a folder and a label a file: letters, digits and . _ + - only, the first a letter or "
                f"digit; got the {what} {name!r}. Give it such a name."
            )
    return folder / problem / f"{label}.jsonl"


def check_place(path: Path) -> None:
    """Raise an InputError where runs cannot be appended to this file: something else is there, or it is read-only."""
    for there, good, word in ((path.parent, os.path.isdir, "folder"), (path, os.path.isfile, "file")):
        if os.path.lexists(there) and not (good(there) and os.access(there, os.W_OK)):
            raise InputError(
                f"Runs are stored in a {word} {there}; what is there is no {word} that can be written to. "
                "Move it away, or choose another --out."
            )


def append(path: Path, record: dict[str, Any]) -> bool:
    """Add a run as one line.

    Args:
        path: The file; it and its folder are made if they are missing.
        record: The run, as `replication` returns it.

    Returns:
        False where a complete run of this seed was there already: another sweep finished it first, and it is kept.
    """
    line = (json.dumps(record, separators=(",", ":")) + "\n").encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+", buffering=0) as file, _locked(file.fileno()):
            file.seek(0)
            text = file.read()
            if any(run["state"] == "complete" for run in _runs(text, path, int(record["seed"]))):
                return False
            whole = text.rfind(b"\n") + 1
            if whole < len(text):  # of a killed writer: nobody else writes while we hold the lock
                if _is_json(text[whole:]):
                    line = b"\n" + line  # a whole line that lacks its end alone
                else:
                    file.truncate(whole)
            while line:  # a full disk takes a part, and refuses the next
                line = line[file.write(line) :]
            os.fsync(file.fileno())
    except OSError as error:
        raise StudyError(
            f"Every run must be stored; {path} cannot be written: {error.strerror or error}. Runs that were stored are kept: "
            "mend this, and give the same command again for the others."
        ) from error
    return True


def present(path: Path, seed: int, *, retry_failed: bool = False) -> bool:
    """Whether the file holds a run of this seed (with `retry_failed`: a complete one)."""
    run = stored(path, seed)
    return run is not None and (run["state"] == "complete" or not retry_failed)


def stored(path: Path, seed: int) -> dict[str, Any] | None:
    """The run of this seed that counts, as `read` gives it; None where there is none."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(
            f"Runs are stored in files; {path} cannot be read: {error.strerror or error}. "
            "Move what is in its place away, or choose another --out."
        ) from None
    runs = _runs(text, path, seed)
    return next((run for run in runs if run["state"] == "complete"), runs[-1] if runs else None)


def read(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The runs of one file, and the reason for each line that is not one.

    A seed that was run again after a failure counts once: a complete run replaces a failed one, and a later failure an
    earlier one. Of two complete runs that differ the first counts, and the other is reported.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        return [], [f"cannot be read: {error}"]
    found: dict[int, tuple[int, dict[str, Any]]] = {}
    reasons: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            why = reason(record, path)
        except (ValueError, RecursionError) as error:
            why = f"cannot be read: {error}"
        if why == "not a run of alebo bench" and not found and not reasons:
            return [], [why]  # a file of something else: one reason for all of it
        if why is not None:
            torn = number == len(lines) and why.startswith("cannot be read")
            reasons.append(
                f"line {number} is unfinished, from a sweep that was killed" if torn else f"line {number} {why}"
            )
            continue
        first, before = found.get(record["seed"], (number, None))
        if before is None or before["state"] != "complete":
            found[record["seed"]] = number, record
        elif record["state"] == "complete" and record != before:
            reasons.append(
                f"line {number} is another complete run of seed {record['seed']}: that of line {first} counts"
            )
    return [record for _, record in found.values()], reasons


def reason(record: Any, path: Path | None = None) -> str | None:
    """Why this is not a run of ours (or not one of this file), or None."""
    if not isinstance(record, dict) or record.get("kind") != KIND:
        return "not a run of alebo bench"
    if record.get("format") != FORMAT:
        return f"format {record.get('format')!r:.40}, and this alebo reads {FORMAT}"
    why = damage(record)
    if why is None and path is not None:
        whole = Path(os.path.abspath(path))
        if (record["problem"], f"{record['label']}.jsonl") != (whole.parent.name, whole.name):
            why = f"is a run of {record['problem']}/{record['label']:.80}, which has a file of its own"
    return why


def _runs(text: bytes, path: Path, seed: int) -> list[dict[str, Any]]:
    """The runs of this seed, without lines that are none."""
    wanted = re.compile(rb'"seed":\s*%d\b' % seed)  # most lines are other seeds: they need no parsing
    lines = (_parsed(line, path) for line in text.split(b"\n") if wanted.search(line))
    return [run for run in lines if run is not None and run["seed"] == seed]


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _parsed(line: bytes, path: Path) -> dict[str, Any] | None:
    """The run of a line, or None."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if reason(record, path) is None else None


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    """Hold the file alone, against other processes and threads; the system frees the lock of a process that dies."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
