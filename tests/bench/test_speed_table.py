"""The history of `make bench`: a slow-down is seen, and nothing else is called one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from alebo.bench import instructions, speed, speed_picture, speed_table


def line(ratio: float, mb: float = 500.0, counted: int | None = 1000, seconds: float = 1.0) -> dict[str, Any]:
    rows = {"n=200, D=1000": {"seconds": seconds, "ratio": ratio}, "peak MB, D=1000, n=5000": {"mb": mb}}
    return {"commit": "abc", "instructions": counted, "rows": rows}


def test_what_is_a_fifth_slower_or_larger_than_the_last_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bench" / "history.jsonl"
    assert speed_table.keep(line(2.0), path) == []
    assert speed_table.keep(line(2.3, 590.0, 1190), path) == []
    assert speed_table.keep(line(2.0), path) == []
    said = speed_table.keep(line(2.5, 700.0, 1300), path)
    assert [s.split(":")[0] for s in said] == ["instructions", "n=200, D=1000", "peak MB, D=1000, n=5000"]
    assert "1.25 times that of abc" in said[1]
    assert [json.loads(text)["instructions"] for text in path.read_text().splitlines()] == [1000, 1190, 1000, 1300]


def test_what_cannot_be_compared_is_not_called_slower() -> None:
    assert speed_table.slower(line(2.0, counted=None), line(2.0)) == []
    assert speed_table.slower(line(9.0), line(2.0, seconds=0.001)) == []  # too short to be measured
    assert speed_table.slower(line(9.0), {"commit": "abc", "rows": {"gone": {"seconds": 1.0, "ratio": 1.0}}}) == []


def test_every_row_with_a_goal_is_measured_and_curves_are_read_from_their_names() -> None:
    names = list(speed_table.rows())
    assert set(speed_table.GOALS) <= set(names)
    assert set(speed_table.BEFORE) <= set(names)
    found = speed_picture.curves({"rows": {name: {"seconds": 1.0} for name in names}})
    assert list(found["n"]) == [50, 200, 500, 1000, 2000, 5000]
    assert list(found["D"]) == [100, 1000, 10_000, 100_000]


def test_a_small_row_is_measured() -> None:
    opt = speed.told(20, 12, 3)
    assert not any("fit" in t.note for t in opt.history)
    assert 0.0 < speed.first_seconds(opt) < 60.0
    assert speed_table.reference() > 0.0


def test_instructions_are_counted_where_they_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    instructions.work()
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert instructions.count() is None
