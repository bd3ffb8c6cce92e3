"""A short version of every fault of the laboratory; `make faults` is the long one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import require_part
from tests.runner.postgres import programs

from . import kills, storage
from .__main__ import random_verbs
from .table import Row


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ALEBO_SPOOL", str(tmp_path / "spool"))
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def good(*rows: Row) -> bool:
    for row in rows:
        print(Row.head(), row.line(), sep="\n")
    return all(row.good for row in rows)


def test_signals_at_a_driver(tmp_path: Path) -> None:
    rows = kills.drivers(tmp_path, 6, budget=30)
    assert good(next(iter(rows)))


def test_simulators_that_misbehave(tmp_path: Path) -> None:
    assert good(kills.simulators(tmp_path, 1, megabytes=64, seconds=1.0))


def test_flipped_bits(tmp_path: Path) -> None:
    assert good(storage.flips(tmp_path, 60))


def test_torn_and_damaged_lines(tmp_path: Path) -> None:
    assert good(storage.torn(tmp_path, 2), storage.damaged(tmp_path, 6))


def test_a_full_disk(tmp_path: Path) -> None:
    assert good(storage.disk_full(tmp_path))


def test_a_clock_that_jumps(tmp_path: Path) -> None:
    assert good(storage.clocks(tmp_path, 1))


def test_restarts_of_postgresql(tmp_path: Path) -> None:
    require_part("PostgreSQL", programs() is not None, "Install it: apt-get install postgresql.")
    assert good(kills.restarts(tmp_path, trials=8, every=2.0, seconds=0.5, count=2))


def test_random_verbs() -> None:
    assert good(random_verbs(8, 25))
