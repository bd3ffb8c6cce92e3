"""docs/by_hand.md is what really happens: the story is run again, and compared but for what the method proposes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .by_hand_page import PAGE, in_a_folder


def masked(text: str) -> list[str]:
    """The page without the numbers, solvents and marks that depend on the method's proposals, and without bars."""
    rows = re.sub(r"(?m)^(\d+),\d.*?,(?:water|ethanol),([^,]*),[a-z]{4}$", r"\1,...,\2,...", text)
    rows = re.sub(r"[▁▂▃▄▅▆▇█]+|, embedding of \d+ dimensions", "", rows)
    best = re.sub(r"(?m)^(temperature|hours|amount|solvent) +\S+$", r"\1", rows)
    return [" ".join(line.split()) for line in best.splitlines()]


def test_the_page_is_what_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    page = PAGE.read_text(encoding="utf-8")
    assert masked(in_a_folder()) == masked(page), "Run: python -m tests.cli.by_hand_page"
