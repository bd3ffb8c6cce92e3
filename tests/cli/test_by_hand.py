"""A study by hand: numbers, settings, corrections, old data, and everything that people write into cells."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from alebo.cli.sheet import guarded, number, short, unguarded
from alebo.parameters import Float
from tests.cli.by_hand import STUDY, fill, refused, rows, trials
from tests.conftest import require_module

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
    refused(alebo("tell", "s.toml", "0", "yield=0.7"), "already complete", "--replace")
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
