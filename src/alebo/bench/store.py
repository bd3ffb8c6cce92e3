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

from ._format import FORMAT, KIND

_NEEDED = ("problem", "label", "method", "seed", "budget", "state", "environment")
_NEEDED_COMPLETE = ("goals", "outcomes", "truth", "feasible", "dim", "seconds")


def path_of(folder: Path, problem: str, label: str) -> Path:
    """The file that holds the runs of this problem and method."""
    return folder / problem / f"{label}.jsonl"


def append(path: Path, record: dict[str, Any]) -> bool:
    """Add a run as one line.

    Args:
        path: The file; it and its folder are made if they are missing.
        record: The run, as `replication` returns it.

    Returns:
        False where a complete run of this seed was there already: another sweep finished it first, and it is kept.
    """
    line = (json.dumps(record, separators=(",", ":")) + "\n").encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+", buffering=0) as file, _locked(file.fileno()):
        file.seek(0)
        text = file.read()
        if any(state == "complete" for state in _states(text, int(record["seed"]))):
            return False
        whole = text.rfind(b"\n") + 1
        if whole < len(text):  # an unfinished line of a killed writer: nobody else writes while we hold the lock
            file.truncate(whole)
        file.write(line)
        os.fsync(file.fileno())
    return True


def present(path: Path, seed: int, *, retry_failed: bool = False) -> bool:
    """Whether the file holds a run of this seed (with `retry_failed`: a complete one)."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return False
    states = _states(text, seed)
    return "complete" in states if retry_failed else bool(states)


def read(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The runs of one file, and the reason for each line that is not one.

    A seed that was run again after a failure counts once: a complete run replaces a failed one, a later one an earlier.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        return [], [f"cannot be read: {error}"]
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    reasons: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            why = reason(record)
        except ValueError as error:
            why = f"cannot be read: {error}"
        if why == "not a run of alebo bench" and not found and not reasons:
            return [], [why]  # a file of something else: one reason for all of it
        if why is not None:
            torn = number == len(lines) and why.startswith("cannot be read")
            reasons.append(
                f"line {number} is unfinished, from a sweep that was killed" if torn else f"line {number} {why}"
            )
            continue
        key = (record["problem"], record["label"], record["seed"])
        before = found.get(key)
        if before is None or before["state"] != "complete" or record["state"] == "complete":
            found[key] = record
    return list(found.values()), reasons


def reason(record: Any) -> str | None:
    """Why this is not a run of ours, or None."""
    if not isinstance(record, dict) or record.get("kind") != KIND:
        return "not a run of alebo bench"
    if record.get("format") != FORMAT:
        return f"format {record.get('format')}, and this alebo reads {FORMAT}"
    needed = _NEEDED + (_NEEDED_COMPLETE if record.get("state") == "complete" else ())
    missing = [key for key in needed if key not in record]
    return f"damaged: {', '.join(missing)} missing" if missing else None


def _states(text: bytes, seed: int) -> list[str]:
    """The states of all lines of this seed; an unreadable line has none."""
    states = []
    wanted = re.compile(rb'"seed":\s*%d\b' % seed)  # most lines are other seeds: they need no parsing
    for line in text.split(b"\n"):
        if wanted.search(line):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and record.get("seed") == seed:
                states.append(str(record.get("state")))
    return states


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    """Hold the file alone, against other processes and threads; the system frees the lock of a process that dies."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
