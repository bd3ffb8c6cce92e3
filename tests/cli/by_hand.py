"""A study by hand, and its sheets: what the tests of them share."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from tests.cli.conftest import Said

STUDY = """\
[parameters]
temperature = {{ low = 20, high = 80, step = 5 }}
amount = [0.0, 1.0]
solvent = ["water", "ethanol"]
{more}
[goals]
maximize = "yield"
[method]
name = "sobol"
{end}
"""


def rows(path: Path, separator: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text()), delimiter=separator))


def fill(path: Path, changes: dict[int, dict[str, str]], *, separator: str = ",") -> None:
    """Fill in cells of a sheet, by trial number."""
    table = rows(path, separator)
    for row in table:
        row |= changes.get(int(row["trial"]), {})
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), delimiter=separator)
        writer.writeheader()
        writer.writerows(table)


def trials(alebo: Any) -> list[dict[str, Any]]:
    out = alebo("export", "s.toml", "--format", "json")
    return json.loads(out.out) if out.code == 0 else []


def refused(said: Said, *words: str) -> None:
    assert said.code != 0, said.out
    for word in words:
        assert word in said.err, f"{word!r} is not in: {said.err}"
    assert "Traceback" not in said.err
