"""A study by hand: sheets, corrections, old data, and everything that people write into cells."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest

from alebo.cli.sheet import guarded, number, short, unguarded
from alebo.parameters import Float
from tests.cli.conftest import Said
from tests.conftest import require_module

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


@pytest.fixture
def study(here: Path) -> Path:
    (here / "s.toml").write_text(STUDY.format(more="", end=""))
    return here


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


# -- commas, units, numbers --------------------------------------------------------------------------------------------


def test_a_comma_never_means_an_error(study: Path, alebo: Any) -> None:
    assert alebo("ask", "s.toml").code == 0
    refused(alebo("tell", "s.toml", "0", "yield=0,7"), "comma", "0.7+-0.1", "Write 0.7")
    assert trials(alebo)[0]["state"] == "pending"
    assert alebo("tell", "s.toml", "0", "yield=0.7+-0.1").code == 0
    assert trials(alebo)[0]["yield_sem"] == 0.1


def test_a_comma_in_a_cell_is_refused_with_its_line(study: Path, alebo: Any) -> None:
    alebo("ask", "s.toml", "-n", "2", "--output", "p.csv")
    fill(study / "p.csv", {0: {"yield": "0.4"}, 1: {"yield": "0,55"}})
    refused(alebo("tell", "s.toml", "--csv", "p.csv"), "p.csv, line 3, column 'yield'", "0.55", "Nothing of this file")
    assert [t["state"] for t in trials(alebo)] == ["pending", "pending"]


def test_a_decimal_comma_is_read_where_the_file_is_plainly_so(study: Path, alebo: Any) -> None:
    alebo("ask", "s.toml", "-n", "2", "--output", "p.csv", "--semicolon")
    text = (study / "p.csv").read_text()
    assert text.startswith("trial;temperature;amount;solvent;yield;check\n")
    assert "0," in text
    fill(study / "p.csv", {0: {"yield": "0,55+-0,01"}, 1: {"yield": "1.5"}}, separator=";")
    assert alebo("tell", "s.toml", "--csv", "p.csv").code == 0
    first, second = trials(alebo)
    assert (first["yield"], first["yield_sem"], second["yield"]) == (0.55, 0.01, 1.5)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("0.7 g", "Write 0.7."),
        ("1.234,5", "number"),
        ("0.7 0.1", "number"),
        ("nan", "number"),
        ("1_000", "number"),
        ("", "number"),
    ],
)
def test_what_is_no_number(text: str, word: str) -> None:
    from alebo import InputError

    with pytest.raises(InputError, match=word):
        number(text, "yield")


def test_numbers_as_people_write_them() -> None:
    assert number(" 0.7 ", "y") == 0.7
    assert number("-1e-3", "y") == -0.001
    assert number("0.7 ± .1", "y") == (0.7, 0.1)
    assert number("0.7+/-0.1", "y") == (0.7, 0.1)
    assert number("0,7", "y", comma=True) == 0.7


def test_a_whole_number_beyond_all_bounds_is_not_read_as_one() -> None:
    from alebo.cli.sheet import setting
    from alebo.parameters import Int

    assert setting(Int("n", 1, 5), "3") == 3
    assert setting(Int("n", 1, 5), "1e999") == float("inf")  # refused by the range, with its column


def test_exported_settings_are_short() -> None:
    assert short(Float("a", 0, 1), 0.4067532198765) == "0.4068"
    assert short(Float("a", 20, 80), 43.2171234) == "43.217"
    assert short(Float("a", 1e-6, 1, log=True), 3.21987654e-5) == "3.22e-05"
    assert short(Float("a", 20, 80, step=5), 45.0) == "45"
    assert short(Float("a", 0, 0.99996), 0.99996) == "0.99996"


@pytest.mark.parametrize("text", ["=1+1", "+a", "-x", "@cmd", "plain", "-3.5", "'quoted"])
def test_formulas_are_guarded_and_read_back(text: str) -> None:
    written = guarded(text)
    assert not written.startswith(("=", "@"))
    assert unguarded(written) == text


# -- the settings really run ---------------------------------------------------------------------------------------------


def test_edited_settings_are_what_is_stored(study: Path, alebo: Any) -> None:
    alebo("ask", "s.toml", "-n", "2", "--output", "p.csv")
    before = rows(study / "p.csv")
    other = "water" if before[0]["solvent"] == "ethanol" else "ethanol"
    fill(
        study / "p.csv",
        {0: {"yield": "0.4", "amount": "0.41", "solvent": other, "temperature": "42"}, 1: {"yield": "0.5"}},
    )
    said = alebo("tell", "s.toml", "--csv", "p.csv")
    assert "really run: temperature = 42, amount = 0.41" in said.out
    first, second = trials(alebo)
    assert (first["amount"], first["solvent"], first["temperature"]) == (0.41, other, 42.0)
    proposed = alebo("ask", "s.toml", "--json").json
    assert proposed
    # the second row was not edited: the exact proposal stays, not the rounded cell
    assert second["amount"] != float(before[1]["amount"]) or len(str(second["amount"])) > 6
    assert second["amount"] == pytest.approx(float(before[1]["amount"]), abs=1e-4)


@pytest.mark.parametrize(
    ("column", "text", "words"),
    [
        ("amount", "1.7", ["column 'amount'", "`0.0 <= amount <= 1.0`"]),
        ("amount", "0.4 g", ["column 'amount'", "without a unit", "Write 0.4"]),
        ("solvent", "acetone", ["column 'solvent'", "water, ethanol"]),
        ("temperature", "hot", ["column 'temperature'", "is a number"]),
        ("temperature", "1e999", ["column 'temperature'", "`20.0 <= temperature <= 80.0`"]),
    ],
)
def test_edited_settings_that_cannot_be(study: Path, alebo: Any, column: str, text: str, words: list[str]) -> None:
    alebo("ask", "s.toml", "-n", "2", "--output", "p.csv")
    fill(study / "p.csv", {0: {"yield": "0.4"}, 1: {"yield": "0.5", column: text}})
    refused(alebo("tell", "s.toml", "--csv", "p.csv"), "p.csv, line 3", "Nothing of this file was stored", *words)
    assert {t["state"] for t in trials(alebo)} == {"pending"}


def test_settings_in_words(study: Path, alebo: Any) -> None:
    alebo("ask", "s.toml")
    assert alebo("tell", "s.toml", "0", "yield=0.5", "amount=0.25").code == 0
    assert trials(alebo)[0]["amount"] == 0.25


# -- corrections ---------------------------------------------------------------------------------------------------------


def test_a_wrong_entry_is_corrected(study: Path, alebo: Any) -> None:
    alebo("ask", "s.toml", "-n", "2")
    alebo("tell", "s.toml", "0", "yield=70")
    refused(alebo("tell", "s.toml", "0", "yield=0.7"), "already complete", "amend")
    said = alebo("tell", "s.toml", "0", "yield=0.7", "--replace", "--reason", "typing mistake")
    assert "it was yield = 70" in said.out
    assert alebo("best", "s.toml", "--json").json["outcomes"]["yield"] == 0.7
    (told,) = alebo("tell", "s.toml", "0", "--replace", "amount=0.5", "--json").json["told"]
    assert [e["outcomes"]["yield"][0] for e in told["earlier"]] == [70.0, 0.7]
    gone = alebo("forget", "s.toml", "0", "--reason", "wrong bottle")
    assert "it was yield = 0.7" in gone.out
    assert [t["state"] for t in trials(alebo)] == ["failed", "pending"]
    assert "forgotten: wrong bottle" in alebo("status", "s.toml").out
    assert alebo("tell", "s.toml", "0", "yield=0.6", "--replace").code == 0
    refused(alebo("forget", "s.toml", "1"), "pending")
    refused(alebo("forget", "s.toml", "9"), "2 trials")


def test_two_people_tell_the_same_trial(study: Path, alebo: Any) -> None:
    alebo("ask", "s.toml", "-n", "3", "--output", "anna.csv")
    (study / "ben.csv").write_text((study / "anna.csv").read_text())
    fill(study / "anna.csv", {0: {"yield": "0.4"}, 1: {"yield": "failed"}})
    fill(study / "ben.csv", {0: {"yield": "0.4"}, 1: {"yield": "failed"}, 2: {"yield": "0.6"}})
    assert alebo("tell", "s.toml", "--csv", "anna.csv").code == 0
    said = alebo("tell", "s.toml", "--csv", "ben.csv")
    assert "2 rows were recorded before, with the same values" in said.out
    assert [t["state"] for t in trials(alebo)] == ["complete", "failed", "complete"]
    fill(study / "ben.csv", {0: {"yield": "0.9"}})
    refused(alebo("tell", "s.toml", "--csv", "ben.csv"), "ben.csv, line 2", "yield = 0.4", "--replace")
    assert trials(alebo)[0]["yield"] == 0.4
    assert alebo("tell", "s.toml", "--csv", "ben.csv", "--replace").code == 0
    assert trials(alebo)[0]["yield"] == 0.9


# -- sheets --------------------------------------------------------------------------------------------------------------


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


# -- beginning: old data, a baseline, no program ---------------------------------------------------------------------------


def test_old_data_come_before_the_first_ask(study: Path, alebo: Any) -> None:
    (study / "old.csv").write_text("yield,solvent,amount,temperature\n0.3,water,0.2,37.5\n0.5,ethanol,0.9,60\n")
    assert "2 complete" in alebo("tell", "s.toml", "--csv", "old.csv").out
    assert "2 rows were recorded before" in alebo("tell", "s.toml", "--csv", "old.csv").out
    assert alebo("best", "s.toml", "--json").json["params"]["temperature"] == 60.0
    assert alebo("ask", "s.toml", "--json").json[0]["number"] == 2


def test_a_baseline_from_the_study_file_and_from_words(here: Path, alebo: Any) -> None:
    (here / "s.toml").write_text(
        STUDY.format(
            more="x = { count = 3, low = 0, high = 1 }",
            end='[[baseline]]\ntemperature = 40\namount = 0.5\nsolvent = "water"\nx = 0.25\n'
            '[[baseline]]\ntemperature = 45\namount = 0.5\nsolvent = "water"\nx = [0.1, 0.2, 0.3]\n',
        )
    )
    said = alebo("enqueue", "s.toml", "temperature=50", "amount=0.1", "solvent=ethanol", "x0=0", "x1=0", "x2=1")
    assert "3 wait to be asked" in said.out
    asked = [t["params"] for t in alebo("ask", "s.toml", "-n", "4", "--json").json]
    assert [p["temperature"] for p in asked[:3]] == [40.0, 45.0, 50.0]
    assert [asked[1][f"x{i}"] for i in range(3)] == [0.1, 0.2, 0.3]
    refused(alebo("enqueue", "s.toml", "temperature=50"), "missing", "amount")
    refused(alebo("enqueue", "s.toml"), "one of the two")
    (here / "b.csv").write_text("temperature,amount,solvent,x0,x1,x2\n30,0.5,water,0,0,0\n35,0.5,water,0,0,7\n")
    refused(alebo("enqueue", "s.toml", "--csv", "b.csv"), "b.csv, line 3", "x2")
    text = (here / "s.toml").read_text().replace("x = 0.25\n", "x = [0.25]\n")
    (here / "s.toml").write_text(text)
    refused(alebo("ask", "s.toml"), "s.toml, line", "'x' has 3 values; got 1")


def test_new_by_hand(here: Path, alebo: Any) -> None:
    said = alebo(
        "new", "--by-hand", "--param", "t=20:80:step=5", "--param", "dose=1e-4:1:log:digits=2", "--maximize", "yield"
    )
    assert said.code == 0, said.err
    assert said.err == ""
    assert "alebo ask study.toml" in said.out
    text = (here / "study.toml").read_text()
    assert "step = 5" in text
    assert "\n[evaluator]" not in text
    asked = alebo("ask", "study.toml", "--json").json[0]["params"]
    assert asked["t"] % 5 == 0
    refused(alebo("run", "study.toml"), "[evaluator]")
    refused(alebo("new", "x", "--by-hand", "--command", "echo", "--param", "a=0:1"), "--by-hand")


def test_a_missing_program_matters_to_run_only(study: Path, alebo: Any) -> None:
    (study / "s.toml").write_text((study / "s.toml").read_text() + '[evaluator]\ncommand = "./nothing {params}"\n')
    assert alebo("ask", "s.toml").code == 0
    assert alebo("status", "s.toml").code == 0
    refused(alebo("run", "s.toml"), "nothing", "line")


# -- names are text --------------------------------------------------------------------------------------------------------


def test_names_are_text_and_not_markup(here: Path, alebo: Any) -> None:
    (here / "s.toml").write_text(
        '[parameters]\n"a[/b]"=[0,1]\n"w[layer]"=[0,1]\n"=cmd()"=["=1+1","b"]\n[goals]\nminimize="[red]loss"\n'
        '[method]\nname="sobol"\n'
    )
    shown = alebo("ask", "s.toml").out
    assert "a[/b]" in shown
    assert "w[layer]" in shown
    alebo("ask", "s.toml", "--output", "p.csv")
    fill(here / "p.csv", {1: {"[red]loss": "2"}})
    assert alebo("tell", "s.toml", "--csv", "p.csv").code == 0
    assert alebo("tell", "s.toml", "0", "[red]loss=3").code == 0
    best = alebo("best", "s.toml")
    assert best.code == 0
    assert "w[layer]" in best.out
    exported = alebo("export", "s.toml").out
    assert "'=cmd()" in exported
    assert not [c for line in csv.reader(io.StringIO(exported)) for c in line if c.startswith("=")]
    alebo("best", "s.toml", "--output", "best.csv")
    assert not [
        c for line in csv.reader(io.StringIO((here / "best.csv").read_text())) for c in line if c.startswith("=")
    ]


def test_export(study: Path, alebo: Any) -> None:
    alebo("ask", "s.toml", "-n", "2")
    alebo("tell", "s.toml", "0", "yield=0.7+-0.1")
    lines = alebo("export", "s.toml").out.splitlines()
    assert lines[0] == "trial,state,temperature,amount,solvent,yield,yield_sem,reason"
    assert lines[1].startswith("0,complete,")
    assert "Wrote 2 trials" in alebo("export", "s.toml", "--format", "json", "--output", "t.json").out
    assert json.loads((study / "t.json").read_text())[0]["yield"] == 0.7
    refused(alebo("export", "s.toml", "--format", "xml"), "csv, json or parquet")
    refused(alebo("export", "s.toml", "--format", "parquet"), "--output")


def test_export_to_parquet(study: Path, alebo: Any) -> None:
    require_module("pandas", "frame")
    require_module("pyarrow", "frame")
    import pandas as pd

    alebo("ask", "s.toml", "-n", "2")
    alebo("tell", "s.toml", "0", "yield=0.7")
    assert alebo("export", "s.toml", "--format", "parquet", "--output", "t.parquet").code == 0
    frame = pd.read_parquet(study / "t.parquet")
    assert frame["yield"][0] == 0.7
    assert list(frame["state"]) == ["complete", "pending"]
