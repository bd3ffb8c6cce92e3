"""docs/by_hand.md is what really happens: the story is run again, and compared but for what the method proposes."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def masked(text: str) -> list[str]:
    """The page without the numbers, solvents and marks that depend on the method's proposals, and without bars."""
    rows = re.sub(r"(?m)^(\d+),\d.*?,(?:water|ethanol),([^,]*),[a-z]{4}$", r"\1,...,\2,...", text)
    rows = re.sub(r"[▁▂▃▄▅▆▇█]+|, embedding of \d+ dimensions", "", rows)
    best = re.sub(r"(?m)^(temperature|hours|amount|solvent) +\S+$", r"\1", rows)
    return [" ".join(line.split()) for line in best.splitlines()]


def test_the_page_is_what_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    spec = importlib.util.spec_from_file_location("by_hand_page", ROOT / "scripts" / "by_hand_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "by_hand.md").read_text(encoding="utf-8")
    again = module.in_a_folder()
    assert masked(again) == masked(page), "Run: python scripts/by_hand_page.py"
