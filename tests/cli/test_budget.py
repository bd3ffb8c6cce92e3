"""The budget of a study on the command line: given, kept, raised, and used up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.by_hand import refused
from tests.cli.conftest import new
from tests.conftest import require_module


@pytest.fixture
def five(here: Path, alebo: Any) -> Path:
    """A folder with study.toml of budget 5, run to its end."""
    require_module("optuna", "study")
    new(alebo, budget=5)
    assert alebo("run").code == 0
    return here


def budget(alebo: Any) -> Any:
    return alebo("status", "--json").json["budget"]


def test_a_budget_below_what_was_asked_is_refused(five: Path, alebo: Any) -> None:
    said = alebo("run", "--budget", "3")
    refused(said, "5 were asked for already", "got 3", "--budget 10")
    assert said.code == 2
    assert budget(alebo) == 5
    assert "5 of 5 evaluations" in alebo("status").out
    assert "--budget 10" in alebo("run").out  # twice as many, and nothing is made


def test_a_larger_budget_of_the_command_line_is_kept(five: Path, alebo: Any) -> None:
    assert alebo("run", "--budget", "7").code == 0
    said = alebo("run")
    assert said.code == 0, said.err
    assert said.err.count("study.toml says 5") == 1
    assert "7 evaluations are allowed" in said.err
    assert budget(alebo) == 7
    assert "7 of 7 evaluations" in alebo("status").out
    assert "--budget 14" in said.out
    assert alebo("run", "--budget", "8", "--json").json["made_now"] == 1
    assert alebo("run", "--budget", "8").err == ""  # it was given: nothing to say


def test_the_budget_of_the_file_is_raised_and_may_be_lowered_by_hand(five: Path, alebo: Any) -> None:
    text = (five / "study.toml").read_text()
    (five / "study.toml").write_text(text.replace("budget = 5 ", "budget = 9 "))
    assert len(alebo("ask", "--json").json) == 1
    assert budget(alebo) == 9
    assert alebo("run", "--budget", "6", "--json").json["evaluations"] == 5  # the sixth is asked by hand, and pending
    assert budget(alebo) == 6
    (five / "study.toml").write_text(text.replace("budget = 5 ", "#"))
    assert alebo("run").err == ""
    assert budget(alebo) == 6


def test_asking_beyond_the_budget_says_where_it_stands(five: Path, alebo: Any) -> None:
    said = alebo("ask", "-n", "2")
    refused(said, "5 evaluations", "2 more", "`budget` of 7 or more in study.toml", "alebo run study.toml --budget 7")
    assert "opt." not in said.err
    refused(alebo("ask", "study.journal#study"), "5 evaluations", "`budget`", "study.toml")
    by_hand = (five / "study.toml").read_text().split("[evaluator]")[0].replace("study.journal", "hand.journal")
    (five / "hand.toml").write_text(by_hand.replace("budget = 5 ", "budget = 1 ") + '[method]\nname = "sobol"\n')
    assert alebo("ask", "hand.toml").code == 0
    said = alebo("ask", "hand.toml")
    refused(said, "`budget` of 2 or more in hand.toml")
    assert "alebo run" not in said.err
    assert alebo("ask", "hand.toml", "--pending", "--json").json[0]["number"] == 0


@pytest.mark.parametrize("count", ["0", "-2"])
def test_asking_for_no_point(five: Path, alebo: Any, count: str) -> None:
    refused(alebo("ask", "--count", count), "`--count` is a whole number of 1 or more", f"got {count}")


def test_a_run_without_a_budget(five: Path, alebo: Any) -> None:
    text = (five / "study.toml").read_text()
    (five / "none.toml").write_text(text.replace("budget = 5 ", "#").replace("study.journal", "none.journal"))
    said = alebo("run", "none.toml")
    refused(said, "`budget` in none.toml", "alebo run none.toml --budget 100")
    assert "budget=" not in said.err
    assert alebo("run", "none.toml", "--budget", "2", "--json").json["evaluations"] == 2
    assert alebo("run", "none.toml", "--json").json["evaluations"] == 2


def test_the_help_says_what_the_budget_counts(alebo: Any) -> None:
    text = " ".join(alebo("run", "--help").out.replace("│", " ").split())
    assert "more than before" not in text
    assert "those already asked for included" in text


def test_a_study_by_hand_follows_its_file_and_never_goes_below_what_was_asked(study: Path, alebo: Any) -> None:
    text = (study / "s.toml").read_text()
    for says, allowed, code in ((4, 4, 0), (3, 3, 0), (1, 2, 1), (5, 5, 0)):
        (study / "s.toml").write_text(f"{text}[study]\nbudget = {says}\n")
        said = alebo("ask", "s.toml")
        assert said.code == code, said.err
        assert "alebo run" not in said.err
        assert alebo("status", "s.toml", "--json").json["budget"] == allowed
