"""Lines of a journal and their healing, each function by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from alebo.runner import _heal, _lines


def line(code: int = _lines.NOTHING, worker: str = "w", **more: Any) -> bytes:
    return _lines.sealed({"op_code": code, "worker_id": worker, **more})


# -- lines -------------------------------------------------------------------------------------------------------------------


def test_a_sealed_line_is_intact_until_any_byte_changes() -> None:
    good = line(k=[1, "a"])
    assert good.endswith(b'"}\n')
    assert _lines.intact(good)
    assert _lines.has_checksum(good)
    assert _lines.intact(good.rstrip(b"\n") + b"   \n")  # padded to its old length
    assert json.loads(good) | {"crc": 0} == {"op_code": 10, "worker_id": "w", "k": [1, "a"], "crc": 0}
    for i in range(len(good) - 1):
        damaged = bytearray(good)
        damaged[i] ^= 1
        assert not _lines.intact(bytes(damaged)), i
    assert not _lines.has_checksum(b'{"op_code":10,"worker_id":"w"}\n')
    assert _lines.split(good + good + b"torn") == [good, good]
    assert _lines.split(b"") == []


def test_a_line_without_a_checksum_is_read_where_it_is_plausible() -> None:
    def bare(code: int, **more: Any) -> bytes:
        return json.dumps({"op_code": code, "worker_id": "w", **more}).encode() + b"\n"

    good = [
        (0, {"study_name": "s", "directions": [1]}),
        (1, {"study_id": 0}),
        (2, {"study_id": 0, "user_attr": {"a": 1}}),
        (4, {"study_id": 0, "datetime_start": None, "params": {"a": 1}, "distributions": {"a": "x", "b": "y"}}),
        (6, {"trial_id": 1, "state": 1, "values": None}),
        (8, {"trial_id": 1, "user_attr": {"a": 1}}),
        (9, {"trial_id": 1, "system_attr": {"a": 1}}),
        (10, {}),
    ]
    for code, fields in good:
        assert _lines.read(bare(code, **fields)) is not None
        assert _lines.read(bare(code, **fields), {"w"}) is None  # its writer has checksums elsewhere
        assert _lines.read(bare(code, **fields), {"other"}) is not None
    wrong = [
        (0, {"study_name": 1, "directions": [1]}),
        (2, {"study_id": 0, "user_attr": {}}),
        (2, {"study_id": 0, "user_attr": {"a": 1, "b": 2}}),
        (4, {"study_id": 0}),
        (4, {"study_id": 0, "datetime_start": None, "params": {"c": 1}, "distributions": {"a": "x"}}),
        (4, {"study_id": 0, "datetime_start": None, "params": []}),
        (6, {"trial_id": 1, "state": 5, "values": None}),
        (6, {"trial_id": 1, "state": 4}),
        (8, {"trial_id": "1", "user_attr": {"a": 1}}),
        (11, {}),
        (-1, {}),
    ]
    for code, fields in wrong:
        assert _lines.read(bare(code, **fields)) is None, (code, fields)
    for text in (b"", b"[]\n", b"{}\n", b'{"op_code":10}\n', b"{" * 9999):
        assert _lines.read(text) is None
    assert _lines.read(line()) is not None
    assert _lines.read(line().replace(b'"w"', b'"v"')) is None


def test_what_is_left_of_joined_cut_and_torn_lines_is_found() -> None:
    one, two = line(k=1), line(k=2)
    assert _lines.pieces(one.rstrip(b"\n") + two) == [one, two]
    assert _lines.pieces(one[:20] + two) == [two]
    assert _lines.pieces(two + one[:20]) == [two]
    bad = bytearray(one)
    bad[-4] ^= 1  # one digit of the checksum: what it seals is right
    assert _lines.pieces(bytes(bad)) == [one]
    bad[-6] ^= 1
    assert _lines.pieces(bytes(bad)) == []
    assert _lines.pieces(b'{"op_code": 10, "worker_id": "v"}\n') == [b'{"op_code": 10, "worker_id": "v"}\n']
    assert _lines.pieces(b'{"op_code": 10, "worker_id": "v"}\n', {"v"}) == []
    long = line(k="x" * 40)
    for bit in range(8):
        cut = bytearray(long)
        at = long.index(b"xxx") + 5
        cut[at] = 0x0A
        halves = bytes(cut[: at + 1]), bytes(cut[at + 1 :])
        if long[at] == 0x0A ^ (1 << bit):
            assert _lines.joined(*halves) == long
    assert _lines.joined(one, two) is None


# -- healing ------------------------------------------------------------------------------------------------------------------


def test_a_torn_end_goes_aside_and_its_whole_lines_stay(tmp_path: Path) -> None:
    path = tmp_path / "s.log"
    one, two = line(k=1), line(k="y" * 70_000)  # longer than one block of reading back
    for content, kept in (
        (one + two, one + two),
        (one + two[:100], one),
        (one + two[:66_000], one),
        (one + two.rstrip(b"\n"), one + two),  # only its newline is missing
        (two[:10], b""),
        (b"", b""),
    ):
        path.write_bytes(content)
        with open(path, "r+b", buffering=0) as file:
            assert _heal.move_torn(path, file) == len(kept)
        assert path.read_bytes() == kept
        aside = path.with_name("s.log.torn")
        assert aside.exists() == (content != kept)
        aside.unlink(missing_ok=True)


def test_a_damaged_line_keeps_its_place_and_length() -> None:
    make = line(_lines.CREATE_STUDY, study_name="s", directions=[1])
    trial = line(_lines.CREATE_TRIAL, study_id=0, datetime_start=None, user_attrs={"trial": {"number": 0}})
    attr = line(_lines.TRIAL_ATTR, trial_id=0, user_attr={"a": 1})
    lines = [make, trial, attr]
    assert _heal.repaired(lines) == (lines, {})
    broken = trial.replace(b'"study_id"', b'"study_xx"')
    after, bad = _heal.repaired([make, broken, attr])
    assert (list(bad), bad[1], [len(x) for x in after]) == ([1], broken, [len(x) for x in lines])
    made = _lines.read(after[1])
    assert made is not None
    assert (made["op_code"], made["state"], made["study_id"]) == (_lines.CREATE_TRIAL, 0, 0)  # an empty, running trial
    after, _ = _heal.repaired([make, trial, attr.replace(b'"a"', b'"b"')])
    assert _lines.read(after[2])["op_code"] == _lines.NOTHING  # type: ignore[index]
    meta = line(_lines.STUDY_ATTR, study_id=0, user_attr={"alebo": {"name": "s", "directions": [2]}})
    after, _ = _heal.repaired([make.replace(b'"s"', b'"t"'), meta])
    made = _lines.read(after[0])
    assert made is not None
    assert (made["op_code"], made["study_name"], made["directions"]) == (_lines.CREATE_STUDY, "s", [2])


def test_whether_a_trial_is_missing_is_told_by_what_comes_later() -> None:
    made = [{"op_code": _lines.CREATE_TRIAL}]

    def create(number: int | None) -> dict[str, Any]:
        return {"op_code": _lines.CREATE_TRIAL, "user_attrs": {} if number is None else {"trial": {"number": number}}}

    assert _heal._one_missing(made, [create(1)]) is False
    assert _heal._one_missing(made, [create(2)]) is True
    assert _heal._one_missing(made, [create(None)]) is None
    assert _heal._one_missing(made, [{"op_code": 8, "trial_id": 0}]) is None
    assert _heal._one_missing(made, [{"op_code": 8, "trial_id": 0}, {"op_code": 8, "trial_id": 1}]) is True
    assert _heal._one_missing(made, []) is None
    assert _heal.checked_workers([line(worker="a"), b'{"op_code":10,"worker_id":"b"}\n']) == {"a"}


def test_of_two_damaged_lines_each_is_replaced_by_what_it_was() -> None:
    make = line(_lines.CREATE_STUDY, study_name="s", directions=[1])
    trials = [
        line(_lines.CREATE_TRIAL, study_id=3, datetime_start=None, user_attrs={"trial": {"number": k}}) for k in (0, 1)
    ]
    broken = [t.replace(b"datetime", b"date_ime") for t in trials]
    after, bad = _heal.repaired([make, *broken])
    assert sorted(bad) == [1, 2]
    found = [_lines.read(x) for x in after[1:]]
    assert [(r["op_code"], r["study_id"]) for r in found if r] == [(_lines.CREATE_TRIAL, 3)] * 2
