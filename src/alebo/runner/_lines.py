"""Lines of a journal: Optuna's records as JSON, each with a checksum as its last key, which Optuna passes over."""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

CREATE_STUDY, STUDY_ATTR, CREATE_TRIAL, STATE, TRIAL_ATTR, SYSTEM_ATTR, NOTHING = 0, 2, 4, 6, 8, 9, 10  # Optuna's codes
META = "alebo"  # the study attribute that says what the study is, and (with :copy) its second copy
_KEY = b',"crc":"'
_TAIL = len(_KEY) + 8 + len(b'"}')  # bytes at the end of a line that belong to its checksum
_SEALED = re.compile(rb',"crc":"[0-9a-f]{8}"\}')
_START = re.compile(rb'\{"op_code"')


def split(data: bytes) -> list[bytes]:
    """The whole lines of a piece of a journal; what stands behind the last newline is left out."""
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


def sealed(record: dict[str, Any]) -> bytes:
    """The record as a line with its checksum."""
    body = json.dumps(record, separators=(",", ":")).encode()[:-1]
    return b'%s%s%08x"}\n' % (body, _KEY, zlib.crc32(body))


def has_checksum(line: bytes) -> bool:
    """Whether this line ends as one with a checksum does."""
    end = line.rstrip(b" \n")
    return end[-_TAIL : len(end) - 10] == _KEY and end.endswith(b'"}')


def intact(line: bytes) -> bool:
    """Whether this line has a checksum, and it is right."""
    end = line.rstrip(b" \n")
    return has_checksum(line) and end[-10:-2] == b"%08x" % zlib.crc32(end[:-_TAIL])


def read(line: bytes, checked: set[str] | frozenset[str] = frozenset()) -> dict[str, Any] | None:
    """The record of a line, or None if the line is damaged.

    A line without a checksum is older, or of another program that uses Optuna. It is damaged if its worker is one of
    `checked`, those who have written checksums elsewhere in the file.
    """
    if has_checksum(line) and not intact(line):
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.get("op_code") not in range(11) or "worker_id" not in record:
        return None
    if has_checksum(line):
        return record
    return None if record["worker_id"] in checked else plausible(record)


_FIELDS: dict[int, dict[str, type | tuple[type, ...]]] = {
    CREATE_STUDY: {"study_name": str, "directions": list},
    1: {"study_id": int},
    STUDY_ATTR: {"study_id": int, "user_attr": dict},
    3: {"study_id": int, "system_attr": dict},
    CREATE_TRIAL: {"study_id": int},
    5: {"trial_id": int, "param_name": str, "distribution": str},
    STATE: {"trial_id": int, "state": int},
    7: {"trial_id": int, "step": int},
    TRIAL_ATTR: {"trial_id": int, "user_attr": dict},
    SYSTEM_ATTR: {"trial_id": int, "system_attr": dict},
    NOTHING: {},
}


def plausible(record: dict[str, Any]) -> dict[str, Any] | None:
    """A record without a checksum if it has the fields that Optuna reads, else None."""
    for key, kind in _FIELDS[record["op_code"]].items():
        if not isinstance(record.get(key), kind):
            return None
    for key in ("user_attr", "system_attr"):
        if key in record and len(record[key]) != 1:
            return None
    if record["op_code"] == CREATE_TRIAL:
        params, kinds = record.get("params", {}), record.get("distributions", {})
        if "datetime_start" not in record or not (isinstance(params, dict) and isinstance(kinds, dict)):
            return None
        return record if set(params) <= set(kinds) else None
    if record["op_code"] == STATE:
        return record if record["state"] in range(5) and "values" in record else None
    return record


def pieces(line: bytes, checked: set[str] | frozenset[str] = frozenset()) -> list[bytes]:
    """The whole lines inside one whose newline was lost, behind a line that was torn, or with only a bad checksum."""
    starts = [m.start() for m in _START.finditer(line)]
    found = []
    for start, stop in zip(starts, [*starts[1:], len(line)], strict=False):
        part = line[start:stop]
        ends = [m.end() for m in _SEALED.finditer(part)]
        part = (part[: ends[-1]] if ends else part.rstrip(b"\n")) + b"\n"
        if not intact(part):
            part = _sealed_again(part)
        if intact(part) or (not has_checksum(part) and read(part, checked) is not None):
            found.append(part)
    return found


def _sealed_again(line: bytes) -> bytes:
    """The line with its checksum written again, if only one byte of the checksum is damaged; else as it came."""
    end = line.rstrip(b" \n")
    seal = b'%s%08x"}' % (_KEY, zlib.crc32(end[:-_TAIL]))
    damaged = sum(a != b for a, b in zip(seal, end[-_TAIL:], strict=False))
    return end[:-_TAIL] + seal + b"\n" if len(end) > _TAIL and damaged == 1 else line


def joined(first: bytes, second: bytes) -> bytes | None:
    """The line that one changed bit has cut in two, or None."""
    for bit in range(8):
        whole = first.removesuffix(b"\n") + bytes([0x0A ^ (1 << bit)]) + second
        if intact(whole):
            return whole
    return None
