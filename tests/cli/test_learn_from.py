"""A study that learns from another by the command line: study.toml, `--learn-from`, and what is said about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from alebo import InputError, Source
from alebo.studyfile import load

PARTS = '[parameters]\nx = { count = 8, low = 0, high = 1 }\noil = [0.0, 5.0]\n[goals]\nminimize = "loss"\n'


def csv(path: Path, *, oil: bool = True) -> Path:
    names = [f"x{i}" for i in range(8)] + ["oil"] * oil
    lines = [",".join([*names, "loss"])]
    for k in range(12):
        values = [((7 * k + 3 * i) % 12) / 12 for i in range(8)] + [1.0] * oil
        lines.append(",".join(map(repr, [*values, (values[2] - 0.4) ** 2 + values[5]])))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_study_file_names_its_sources(tmp_path: Path) -> None:
    text = '[study]\nlearn_from = ["../march.csv", { path = "old.csv", name = "old", given = { oil = 1.0 } }]\n'
    (tmp_path / "study.toml").write_text(text + PARTS)
    first, second = load(tmp_path / "study.toml").sources
    assert (first.data, second.data) == (
        str(tmp_path.parent.resolve() / "march.csv"),
        str((tmp_path / "old.csv").resolve()),
    )
    assert isinstance(second, Source)
    assert (second.name, second.given) == ("old", {"oil": 1.0})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("learn_from = 3", "is a list of paths"),
        ("learn_from = []", "is a list of paths"),
        ('learn_from = [{ name = "old" }]', "is a list of paths"),
        ('learn_from = [{ path = "a.csv", given = 3 }]', "is a list of paths"),
        ('learn_fromm = ["a.csv"]', "Did you mean 'learn_from'"),
    ],
)
def test_mistakes_in_a_study_file_are_named(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "study.toml").write_text(f"[study]\n{line}\n" + PARTS)
    with pytest.raises(InputError, match=f"line 2: .*{message}"):
        load(tmp_path / "study.toml")


def test_a_method_that_does_not_learn_is_refused_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('[study]\nlearn_from = ["a.csv"]\n[method]\nname = "bo"\n' + PARTS)
    with pytest.raises(InputError, match=r"line 2: .*does not learn from other studies"):
        load(tmp_path / "study.toml")


def test_ask_tell_and_status(here: Path, alebo: Any) -> None:
    csv(here / "march.csv", oil=False)
    (here / "study.toml").write_text(
        '[study]\nbudget = 20\nlearn_from = [{ path = "march.csv", given = { oil = 1 } }]\n' + PARTS
    )
    asked = alebo("ask", "study.toml", "--json")
    assert asked.code == 0, asked.err
    assert "Learning from march: 12 evaluations." in asked.err
    assert "'oil' had the value 1 there." in asked.err
    assert "march" not in alebo("ask", "study.toml", "--json").err  # said once
    alebo("ask", "study.toml", "--count", "3", "--json")
    (here / "march.csv").unlink()  # the study has a copy
    for k in range(5):
        assert alebo("tell", "study.toml", str(k), f"loss={0.1 * k + 1}").code == 0
    said = alebo("status", "study.toml")
    assert "march explains " in said.out
    assert "% of what was measured so far; its weight is 0.5." in said.out
    (told,) = alebo("status", "study.toml", "--json").json["learned"]
    assert told["name"] == "march"
    assert 0.0 <= told["explained"] <= 1.0


def test_learn_from_on_the_command_line(here: Path, alebo: Any) -> None:
    csv(here / "march.csv")
    (here / "study.toml").write_text(PARTS)
    assert "Learning from march" in alebo("ask", "study.toml", "--learn-from", "march.csv").err
    assert alebo("ask", "study.toml", "--learn-from", "march.csv").code == 0  # the same command goes on
    assert alebo("ask", "study.toml").code == 0
    refused = alebo("ask", "study.toml", "--learn-from", "march.csv", "--learn-from", "b.csv")
    assert "A study keeps its sources" in refused.err
    assert "has not begun" in alebo("ask", "study.journal", "--learn-from", "march.csv").err
    (here / "own.toml").write_text('[study]\nlearn_from = ["own.toml"]\n' + PARTS)
    assert "is the study itself" in alebo("ask", "own.toml").err
    (here / "again.toml").write_text(
        '[study]\nstorage = "study.journal"\nname = "study"\nlearn_from = ["again.toml"]\n' + PARTS
    )
    assert "begun with march.csv, and got again.toml" in alebo("ask", "again.toml").err
