"""Sheets that people fill in: never overwritten, read as the spreadsheet saved them, refused by line and column."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.cli.by_hand import STUDY, fill, refused, rows, trials


def test_a_half_filled_sheet_is_never_overwritten(study: Path, alebo: Any) -> None:
    alebo("ask", "s.toml", "-n", "2", "--output", "p.csv")
    fill(study / "p.csv", {0: {"yield": "0.4"}})
    said = alebo("ask", "s.toml", "-n", "2", "--output", "p.csv")
    assert "Added 2 points" in said.out
    table = rows(study / "p.csv")
    assert [r["trial"] for r in table] == ["0", "1", "2", "3"]
    assert table[0]["yield"] == "0.4"
    assert "Added 0 points" in alebo("ask", "s.toml", "--pending", "--output", "p.csv").out
    (study / "notes.csv").write_text("my notes\n1\n")
    refused(alebo("ask", "s.toml", "--output", "notes.csv"), "never overwritten", "--force")
    assert (study / "notes.csv").read_text() == "my notes\n1\n"
    assert len(trials(alebo)) == 4  # nothing was asked
    assert alebo("ask", "s.toml", "--output", "notes.csv", "--force").code == 0
    assert rows(study / "notes.csv")[0]["trial"] == "4"


def test_rows_are_added_as_the_spreadsheet_saved_it(study: Path, alebo: Any) -> None:
    """Excel: byte-order mark, Windows line ends, semicolons, another order of columns, one more column, an empty row."""
    alebo("ask", "s.toml", "-n", "2", "--output", "p.csv", "--semicolon")
    table = rows(study / "p.csv", ";")
    names = ["check", "yield", "solvent", "remark", "amount", "temperature", "trial"]
    lines = [";".join(names), *(";".join(r.get(n, "") for n in names) for r in table), ";;;;;;", ""]
    (study / "p.csv").write_bytes("\ufeff".encode() + "\r\n".join(lines).encode())
    assert alebo("ask", "s.toml", "--output", "p.csv").code == 0
    data = (study / "p.csv").read_bytes().decode("utf-8-sig")
    assert data.count("\r\n") == data.count("\n") == 5
    third = data.splitlines()[-1].split(";")
    assert third[-1] == "2"
    first = data.splitlines()[1].split(";")
    first[1], first[3] = "0,75", "nice colour"
    (study / "p.csv").write_bytes(data.replace(data.splitlines()[1], ";".join(first)).encode("utf-8-sig"))
    said = alebo("tell", "s.toml", "--csv", "p.csv")
    assert said.code == 0, said.err
    assert "Not used in p.csv: column 'remark'" in said.err
    assert [t["yield"] for t in trials(alebo)] == [0.75, None, None]


def test_a_sheet_of_another_study(study: Path, alebo: Any) -> None:
    (study / "t.toml").write_text(STUDY.format(more="", end='[study]\nseed = 7\nstorage = "t.journal"\nname = "t"'))
    alebo("ask", "s.toml", "-n", "2", "--output", "p.csv")
    alebo("ask", "t.toml", "-n", "2")
    fill(study / "p.csv", {0: {"yield": "0.4"}})
    refused(alebo("tell", "t.toml", "--csv", "p.csv"), "line 2, column 'check'", "another study")
    (study / "u.toml").write_text(
        '[parameters]\na=[0,1]\nb=[0,1]\n[goals]\nmaximize="yield"\n[method]\nname="sobol"\n[study]\nname="u"\n'
    )
    alebo("ask", "u.toml")
    refused(alebo("tell", "u.toml", "--csv", "p.csv"), "p.csv, line 1", "'temperature'", "another study")
    assert alebo("status", "u.toml", "--json").json["pending"] == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["line 1", "empty"]),
        ("trial,amount\n0,0.5\n", ["line 1", "yield"]),
        ("trial,yield,yield\n0,1,2\n", ["line 1", "'yield' comes twice"]),
        ("trial,yield\n7,1\n", ["line 2, column 'trial'", "trial 7 was not asked", "0 to 1"]),
        ("trial,yield\nx,1\n", ["line 2, column 'trial'", "trial x was not asked"]),
        ("trial,yield\n0,1\n\n0,1\n", ["line 4, column 'trial'", "line 2, too"]),
        ("trial,yield\n0,0,7\n", ["line 2", "column without a name", "0.7"]),
        ('trial,yield\n0,"0.7\n', ["no CSV", "quotes"]),
        ("trial,yield,yield_sem\n0,1,-1\n", ["line 2", "not negative"]),
        ("trial,yield,yield_sem\n0,1+-2,1\n", ["line 2, column 'yield_sem'", "twice"]),
        ("amount,solvent,yield\n0.5,water,1\n", ["line 2, column 'temperature'", "empty"]),
        ("temperature,amount,solvent,yield\n20,0.5,water,failed\n", ["line 2", "never asked cannot have failed"]),
        ("temperature,amount,solvent,yield\n20,7,water,1\n", ["line 2, column 'amount'", "1.0"]),
    ],
)
def test_every_refused_cell_is_named_and_nothing_is_stored(
    study: Path,
    alebo: Any,
    text: str,
    words: list[str],
) -> None:
    alebo("ask", "s.toml", "-n", "2")
    (study / "p.csv").write_text(text)
    refused(alebo("tell", "s.toml", "--csv", "p.csv"), "p.csv", *words)
    assert {t["state"] for t in trials(alebo)} == {"pending"}


def test_files_that_are_no_csv(study: Path, alebo: Any) -> None:
    (study / "p.xlsx").write_bytes(b"PK\x03\x04\x00\x00")
    refused(alebo("tell", "s.toml", "--csv", "p.xlsx"), "save the spreadsheet as CSV")
    (study / "latin.csv").write_bytes("trial,yield\n0,0.5±0.1\n".encode("latin-1"))
    refused(alebo("tell", "s.toml", "--csv", "latin.csv"), "line 2", "CSV UTF-8")


def test_any_text_is_read_or_refused_with_a_message(study: Path, alebo: Any) -> None:
    """Random damage to a good sheet: never a traceback, and stored is all of it or nothing."""
    alebo("ask", "s.toml", "-n", "2", "--output", "p.csv")
    fill(study / "p.csv", {0: {"yield": "0.4"}})
    good = (study / "p.csv").read_text()
    rng = random.Random(0)
    pieces = [",", ";", "\n", '"', "'", "=", "\r", "\t", "\0", "é", "-", "0", "trial", "\ufeff", " "]
    for k in range(40):
        text = good
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(pieces) + text[at + rng.randint(0, 2) :]
        (study / "q.csv").write_text(text)
        said = alebo("tell", "s.toml", "--csv", "q.csv", "--replace")
        assert said.code in (0, 1, 2), (k, text, said.err)
        assert "Traceback" not in said.err
