"""A flag or a value that would mean nothing is refused, with the way out, before anything is stored or asked."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.by_hand import fill, refused, rows
from tests.cli.conftest import new

TWO = '[parameters]\nx={count=2,low=0,high=1}\n[goals]\nminimize="loss"\nat_most={weight=10}\n[method]\nname="sobol"\n'


@pytest.fixture
def two(here: Path, alebo: Any) -> Path:
    """A folder with h.toml, of two outcomes and two trials that are asked, and their sheet."""
    (here / "h.toml").write_text(TWO)
    assert alebo("ask", "h.toml", "-n", "2", "--output", "sheet.csv").code == 0
    return here


def pending(alebo: Any) -> Any:
    return alebo("status", "h.toml", "--json").json["pending"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["0", "loss=0.5", "weight=1", "--failed"], ["has no outcomes", "'loss=0.5'", "--failed"]),
        (["0", "x0=0.5", "--failed"], ["'x0=0.5'", "--failed"]),
        (["0", "loss=0.3", "weight=0.2", "loss=0.4"], ["'loss' comes twice"]),
        (["0", "loss=0.3", "weight=0.2", "x0=0.4", "x0=0.4"], ["'x0' comes twice"]),
        (["0", "loss=0.3", "weight=0.2", "--reason", "because"], ["`--reason`", "--failed", "--replace"]),
        (["0", "loss=0.3", "weight=0.2", "--replace"], ["trial 0 is pending", "without --replace"]),
        (["0", "--failed", "--replace"], ["trial 0 is pending", "without --replace"]),
        (["--csv", "sheet.csv", "--failed"], ["`--failed` is for one trial", "failed in its cell"]),
        (["--csv", "sheet.csv", "--reason", "because"], ["`--reason`"]),
    ],
)
def test_telling_more_than_can_be_stored(two: Path, alebo: Any, words: list[str], said: list[str]) -> None:
    fill(two / "sheet.csv", {0: {"loss": "0.4", "weight": "1"}})
    refused(alebo("tell", "h.toml", *words), *said)
    assert pending(alebo) == 2


def test_a_second_outcome_is_corrected_on_the_command_line(two: Path, alebo: Any) -> None:
    told = ["tell", "h.toml", "1", "loss=0.4", "weight=1"]
    assert alebo(*told).code == 0
    said = alebo(*told)
    refused(said, "trial 1 is already complete", "--replace")
    assert "amend" not in said.err
    refused(alebo("tell", "h.toml", "1", "--failed"), "already complete", "alebo forget h.toml 1")
    assert alebo(*told, "--replace", "--reason", "scale").code == 0
    assert alebo("forget", "h.toml", "1").code == 0
    said = alebo("tell", "h.toml", "1", "--failed")
    refused(said, "trial 1 is already failed. Add --replace to correct it.")
    assert "alebo forget" not in said.err
    said = alebo("forget", "h.toml", "0")
    refused(said, "trial 0 is pending", "alebo tell h.toml 0 --failed")
    assert "`forget`" not in said.err


@pytest.mark.parametrize("cells", [{"loss": "failed", "weight": "3"}, {"loss": "0.1", "weight": "FAILED"}])
def test_a_failed_row_has_no_outcome(two: Path, alebo: Any, cells: dict[str, str]) -> None:
    fill(two / "sheet.csv", {1: cells})
    refused(alebo("tell", "h.toml", "--csv", "sheet.csv"), "sheet.csv, line 3", "failed", "Nothing of this file")
    assert pending(alebo) == 2
    fill(two / "sheet.csv", {1: {"loss": "failed", "weight": "failed"}})
    assert alebo("tell", "h.toml", "--csv", "sheet.csv", "--reason", "spilled").code == 0
    assert alebo("status", "h.toml", "--json").json["failures"] == [{"number": 1, "reason": "spilled"}]


def test_a_failed_row_has_no_standard_error(two: Path, alebo: Any) -> None:
    (two / "s.csv").write_text("trial,loss,weight,loss_sem\n0,failed,,0.1\n")
    refused(alebo("tell", "h.toml", "--csv", "s.csv"), "s.csv, line 2, column 'loss_sem'", "failed")
    assert pending(alebo) == 2


def test_settings_that_are_corrected_in_a_failed_row_are_named(two: Path, alebo: Any) -> None:
    fill(two / "sheet.csv", {0: {"loss": "failed", "x0": "0.125"}})
    said = alebo("tell", "h.toml", "--csv", "sheet.csv")
    assert said.code == 0
    assert "line 2: trial 0 failed, so its corrected 'x0' is not stored" in said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--json", "--output", "new.csv"], ["--json", "--output"]),
        (["--json", "--format", "csv"], ["--json", "--format"]),
        (["--semicolon"], ["`--semicolon`", "--output", "--format csv"]),
        (["--semicolon", "--output", "sheet.csv"], ["sheet.csv", "commas", "without --semicolon"]),
        (["--force"], ["`--force`", "--output"]),
        (["--pending", "--count", "3"], ["`--count`", "--pending"]),
    ],
)
def test_asking_with_a_flag_that_does_nothing(two: Path, alebo: Any, words: list[str], said: list[str]) -> None:
    before = (two / "sheet.csv").read_text()
    refused(alebo("ask", "h.toml", *words), *said)
    assert pending(alebo) == 2  # nothing was asked
    assert not (two / "new.csv").exists()
    assert (two / "sheet.csv").read_text() == before


def test_a_sheet_of_points_to_queue(two: Path, alebo: Any) -> None:
    (two / "q.csv").write_text("x0,x1,remark\n0.5,0.25,mine\n")
    said = alebo("enqueue", "h.toml", "--csv", "q.csv")
    assert said.code == 0, said.err
    assert "Not used in q.csv: column 'remark'" in said.err
    (two / "empty.csv").write_text("x0,x1\n")
    refused(alebo("enqueue", "h.toml", "--csv", "empty.csv"), "empty.csv", "no row", "Nothing of this file")
    refused(alebo("enqueue", "h.toml", "x0=0.5", "x1=0.5", "x0=0.7"), "'x0' comes twice")


def test_a_run_with_no_worker(here: Path, alebo: Any) -> None:
    new(alebo, budget=2)
    refused(alebo("run", "--workers", "0"), "`--workers` is a whole number of 1 or more; got 0")
    refused(alebo("run", "--workers", "-1"), "got -1")
    assert not (here / "study.journal").exists()


def test_a_port_is_for_a_live_page(two: Path, alebo: Any) -> None:
    refused(alebo("report", "h.toml", "--port", "99"), "`--port`", "--watch")
    assert not list(two.glob("*.html"))


# -- the format of a file is that of its ending --------------------------------------------------------------------------


@pytest.fixture
def told(two: Path, alebo: Any) -> Path:
    assert alebo("tell", "h.toml", "0", "loss=0.5", "weight=1").code == 0
    return two


def test_the_ending_of_a_file_chooses_its_format(told: Path, alebo: Any) -> None:
    assert alebo("export", "h.toml", "--output", "trials.json").code == 0
    assert json.loads((told / "trials.json").read_text())[0]["loss"] == 0.5
    assert alebo("export", "h.toml", "--output", "trials.CSV").code == 0
    assert rows(told / "trials.CSV")[0]["loss"] == "0.5"
    assert alebo("export", "h.toml", "--format", "csv", "--output", "trials.txt").code == 0
    assert len(list(csv.reader((told / "trials.txt").read_text().splitlines()))) == 3
    assert alebo("best", "h.toml", "--output", "best.JSON").code == 0
    assert json.loads((told / "best.JSON").read_text())[0]["number"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["export", "h.toml", "--output", "t.txt"], ["'t.txt'", ".csv, .json or .parquet", "--format"]),
        (["export", "h.toml", "--output", "t"], ["'t'", "--format"]),
        (["export", "h.toml", "--format", "csv", "--output", "t.json"], ["'t.json'", "--format csv"]),
        (["export", "h.toml", "--json", "--format", "csv"], ["--json", "--format csv"]),
        (["export", "h.toml", "--json", "--output", "t.json"], ["--json", "--output"]),
        (["best", "h.toml", "--output", "t.txt"], ["'t.txt'", ".csv or .json"]),
        (["best", "h.toml", "--output", "t"], ["'t'", ".csv or .json"]),
    ],
)
def test_an_ending_that_says_nothing_is_refused(told: Path, alebo: Any, words: list[str], said: list[str]) -> None:
    refused(alebo(*words), *said)
    assert not [p for p in told.iterdir() if p.stem == "t"]


def test_export_prints_json(told: Path, alebo: Any) -> None:
    assert alebo("export", "h.toml", "--json").json == alebo("export", "h.toml", "--format", "json").json


def test_every_command_but_bench_takes_json() -> None:
    from typer.main import get_command

    from alebo.cli.app import app

    page = (Path(__file__).parents[2] / "docs" / "start.md").read_text()
    assert "Every command but `alebo bench` takes `--json`" in page
    commands = get_command(app).commands  # type: ignore[attr-defined]
    without = [name for name, c in commands.items() if not any("--json" in p.opts for p in c.params)]
    assert without == ["bench"]


@pytest.mark.parametrize(
    ("verb", "file"), [("best", "b.csv"), ("best", "b.json"), ("export", "x.csv"), ("export", "x.json")]
)
def test_a_folder_that_is_not_there_is_made(told: Path, alebo: Any, verb: str, file: str) -> None:
    said = alebo(verb, "h.toml", "--output", f"deep/er/{file}")
    assert said.code == 0, said.err
    assert (told / "deep" / "er" / file).stat().st_size > 10


@pytest.mark.parametrize(
    ("verb", "file"), [("best", "b.csv"), ("best", "b.json"), ("export", "x.csv"), ("export", "x.json")]
)
def test_a_file_that_cannot_be_written(told: Path, alebo: Any, verb: str, file: str) -> None:
    (told / "plain").write_text("no folder")
    refused(alebo(verb, "h.toml", "--output", f"plain/{file}"), f"plain/{file}", "cannot be written", "Choose another")


def test_a_report_that_cannot_be_written(told: Path, alebo: Any) -> None:
    (told / "plain").write_text("no folder")
    refused(alebo("report", "h.toml", "--output", "plain/r.html"), "plain/r.html", "cannot be written")
