"""The table of `make coverage`: counted by package, low ones named, files without their host left out and named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import coverage


def report(folder: Path, **share: int) -> str:
    """A report of coverage.py in which so many of 80 lines and 20 branches of each file ran."""
    files: dict[str, Any] = {}
    for name, ran in share.items():
        lines, branches = min(ran, 80), max(ran - 80, 0)
        counts = {"covered_lines": lines, "covered_branches": branches, "num_statements": 80, "num_branches": 20}
        files[f"src/alebo/{name.replace('__', '/')}.py"] = {"summary": counts}
    path = folder / "coverage.json"
    path.write_text(json.dumps({"files": files}))
    return str(path)


def test_packages_are_counted_and_a_low_one_ends_with_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert coverage.main(report(tmp_path, goals=95, runner__study=100, runner___heal=90, cli__main=10)) == 0
    said = capsys.readouterr().out
    assert [line.split()[:5] for line in said.splitlines()] == [
        ["cli", "10", "of", "100", "10.0"],  # not judged
        ["goals", "95", "of", "100", "95.0"],
        ["runner", "190", "of", "200", "95.0"],
        ["all", "295", "of", "400", "73.8"],
    ]
    assert coverage.main(report(tmp_path, goals=94)) == 1
    assert "<-- below 95.0" in capsys.readouterr().out


def test_a_file_whose_host_is_missing_is_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = report(tmp_path, integrations__optuna=96, integrations__mlflow=5)
    monkeypatch.setattr(coverage, "find_spec", lambda host: None if host == "mlflow" else object())
    assert coverage.main(path) == 0
    said = capsys.readouterr().out
    assert "integrations           96 of    100" in said
    assert "left out: src/alebo/integrations/mlflow.py (its tests need mlflow, which is not installed)" in said
    monkeypatch.setattr(coverage, "find_spec", lambda host: object())
    assert coverage.main(path) == 1
    assert all((Path("src/alebo") / name).is_file() for name in coverage.HOSTS)
