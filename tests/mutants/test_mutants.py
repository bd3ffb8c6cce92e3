"""The data of `make mutants`: every mistake can be put in, every test and file is there, and the table counts right."""

from __future__ import annotations

import re
import tomllib

import pytest

from .__main__ import HERE, ROOT, table, with_mistake
from .runs import Job

NAMED = tomllib.loads((HERE / "named.toml").read_text())["mistake"]
TARGETS = tomllib.loads((HERE / "targets.toml").read_text())["target"]
SOURCE = ROOT / "src" / "alebo"


@pytest.mark.parametrize("mistake", NAMED, ids=lambda m: m["what"])
def test_a_named_mistake_can_be_put_in_and_its_test_exists(mistake: dict[str, str]) -> None:
    assert with_mistake(mistake) != (SOURCE / mistake["file"]).read_text()
    file, _, name = mistake["test"].partition("::")
    assert re.search(rf"def {name}\b", (ROOT / file).read_text())


def test_every_file_of_a_target_has_its_tests() -> None:
    for target in TARGETS:
        assert all(list(SOURCE.glob(pattern)) for pattern in target["files"]), target["files"]
        assert all((ROOT / test).is_file() for test in target["tests"]), target["tests"]
    known = {p for t in TARGETS for pattern in t["files"] for p in SOURCE.glob(pattern)}
    for package in ("geometry", "models", "acquisition", "runner"):
        assert known >= {p for p in (SOURCE / package).rglob("*.py") if p.name != "__init__.py"}


def test_equivalent_mutants_are_of_lines_that_are_there() -> None:
    for entry in tomllib.loads((HERE / "equivalent.toml").read_text()).get("equivalent", []):
        lines = [line.strip() for line in (SOURCE / entry["file"]).read_text().splitlines()]
        assert entry["old"] in lines, entry
        assert entry["new"] not in lines, entry
        assert len(entry["reason"]) > 20


def test_the_table_counts_by_package_and_lists_survivors() -> None:
    def mutant(package: str, line: int) -> dict[str, object]:
        return {
            "package": package,
            "file": f"{package}.py",
            "line": line,
            "operator": "AddNot",
            "old": f"a{line}",
            "new": "b",
        }

    mutants = [mutant("goals", 1), mutant("goals", 2), mutant("space", 3), mutant("space", 4)]
    jobs = [Job([], 1.0, data=m, outcome=o) for m, o in zip(mutants[:3], ("failed", "passed", "late"), strict=True)]
    text = table(mutants, jobs, {("space.py", "a4", "b"): "the same number"})
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if "%" in line}
    assert rows == {
        "goals": ["2", "0", "1", "1", "50%"],
        "space": ["2", "1", "1", "0", "100%"],
        "all": ["4", "1", "2", "1", "67%"],
    }
    assert "survived: src/alebo/goals.py:2  AddNot\n  - a2\n  + b" in text
    assert "equivalent: src/alebo/space.py:4  the same number" in text
