"""What is done about a damaged journal: the damaged lines are moved aside, and what they said is recovered."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any

from ._lines import CREATE_STUDY, CREATE_TRIAL, META, NOTHING, STUDY_ATTR, has_checksum, intact, joined, pieces, read
from ._lines import sealed as seal

log = logging.getLogger("alebo.runner.storage")


def keep_aside(path: Path, piece: bytes) -> Path:
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
    rest = file.read(end - start)
    whole = b"".join(p for p in pieces(rest) if intact(p))  # only its newline may be missing or damaged
    aside = keep_aside(path, rest)
    file.truncate(start)
    file.seek(start)
    file.write(whole)
    log.warning(
        "The last line of %s was torn (its writer was killed) and has been moved to %s; no completed trial is lost.",
        *(path, aside),
    )
    return start + len(whole)


def checked_workers(lines: list[bytes]) -> set[str]:
    """Those who have written lines with a checksum."""
    found = re.compile(rb'"worker_id":"([^"]*)"')
    return {m.group(1).decode(errors="replace") for x in lines if has_checksum(x) and (m := found.search(x[:400]))}


def repaired(lines: list[bytes]) -> tuple[list[bytes], dict[int, bytes]]:
    """The lines of a journal with every damaged one replaced, and the damaged ones by their place.

    Optuna counts trials by the lines that create them, so a damaged line keeps its place: it is replaced by what can be
    recovered from it, by an empty trial (which the copy written with the outcome fills again), or by a record that
    readers pass over.
    """
    if all(intact(line) for line in lines):
        return lines, {}
    known = checked_workers(lines)
    records = [read(line, known) for line in lines]
    bad = {i: lines[i] for i, record in enumerate(records) if record is None}
    out: list[bytes] = []
    before: list[dict[str, Any]] = []
    second_half = -1
    for i, line in enumerate(lines):
        record = records[i]
        if i == second_half:
            continue
        if record is not None:
            out.append(line)
            before.append(record)
            continue
        whole = joined(line, lines[i + 1]) if i + 1 in bad else None
        found = pieces(line, known) if whole is None else [whole]
        if whole is not None:
            second_half = i + 1
        if not found:
            later = [r for r in records[i + 1 :] if r is not None]
            text = seal(_replacement(before, line, later, alone=len(bad) == 1))
            found = [text.rstrip(b"\n").ljust(len(line) - 1) + b"\n"]  # the same length where possible
        out += found
        before += [r for r in map(read, found) if r is not None]
    return out, bad


def heal(path: Path) -> int:
    """Make the file readable again: a torn end and damaged lines go to `.torn`. The number of damaged lines."""
    with open(path, "r+b", buffering=0) as file:
        move_torn(path, file)
    with open(path, "rb") as file:
        lines = file.readlines()
    after, bad = repaired(lines)
    if not bad:
        return 0
    for line in bad.values():
        aside = keep_aside(path, line)
    if [len(x) for x in after] == [len(x) for x in lines]:
        with open(path, "r+b", buffering=0) as file:  # who has the file open keeps its place
            for i in bad:
                file.seek(sum(map(len, lines[:i])))
                file.write(after[i])
            os.fsync(file.fileno())
    else:
        part = path.with_name(path.name + ".part")
        with open(part, "wb") as file:
            file.writelines(after)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    shown = ", ".join(str(i + 1) for i in list(bad)[:10]) + (", ..." if len(bad) > 10 else "")
    log.warning(
        "%d damaged line(s) of %s (%s) have been moved to %s; what they said was recovered where possible.",
        *(len(bad), path, shown, aside),
    )
    return len(bad)


def _replacement(
    before: list[dict[str, Any]], line: bytes, later: list[dict[str, Any]], *, alone: bool
) -> dict[str, Any]:
    code = re.search(rb'"op_code":\s*(\d+)', line)
    if not any(r["op_code"] == CREATE_STUDY for r in before):
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
    creates = None if code is None else int(code.group(1)) == CREATE_TRIAL
    missing = _one_missing(before, later)
    if creates is None or (alone and missing is not None):  # the code itself may be what was damaged
        creates = bool(missing)
    if creates:
        study_id = re.search(rb'"study_id":\s*(\d+)', line)
        return {
            "op_code": CREATE_TRIAL,
            "worker_id": "healed",
            "study_id": int(study_id.group(1)) if study_id and not alone else 0,
            "datetime_start": None,
            "state": 0,  # running, so that what was written of it later still counts
        }
    return {"op_code": NOTHING, "worker_id": "healed"}


def _one_missing(before: list[dict[str, Any]], later: list[dict[str, Any]]) -> bool | None:
    """Whether fewer trials were created before than what is said later takes for granted; None: nothing is said."""
    count = sum(r["op_code"] == CREATE_TRIAL for r in before)
    for record in later:
        if record["op_code"] == CREATE_TRIAL:
            number = record.get("user_attrs", {}).get("trial", {}).get("number")
            return None if number is None else number > count
        if record.get("trial_id", -1) >= count:
            return True
    return None
