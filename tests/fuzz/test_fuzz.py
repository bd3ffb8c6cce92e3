"""A short campaign of every kind with a fixed seed, and the corpus; `make fuzz` for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from .campaign import Count, attempt, campaign
from .targets import TARGETS, Target

INPUTS = {"study": 300, "saved": 200, "journal": 60, "notes": 60, "sheet": 150, "output": 100}


@pytest.mark.parametrize("name", list(TARGETS))
def test_no_damaged_input_gives_a_traceback(name: str, tmp_path: Path) -> None:
    count = campaign(name, tmp_path, INPUTS[name], seed=0)
    assert not count.findings, "\n".join(text for text, _ in count.findings.values())
    assert count.refused > INPUTS[name] // 20  # the damage is real
    assert count.inputs == INPUTS[name]


@pytest.mark.parametrize("name", list(TARGETS))
def test_the_corpus_is_read_or_refused(name: str, tmp_path: Path) -> None:
    target, count = TARGETS[name](tmp_path / name), Count()
    for data in [*target.seeds, *target.found]:
        attempt(target, data, count)
    assert not count.findings, "\n".join(text for text, _ in count.findings.values())
    assert count.accepted >= 1
    assert count.refused >= len(target.found)


def test_the_campaign_counts_an_exception_as_a_finding(tmp_path: Path) -> None:
    class Broken(Target):
        name = "study"

        def read(self, data: bytes) -> None:
            raise KeyError("lost")

    count = Count()
    attempt(Broken(tmp_path), b"", count)
    assert count.tracebacks == 1
    assert next(iter(count.findings)).startswith("KeyError")
