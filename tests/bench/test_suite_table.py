"""What a suite's table says of itself: who is left out, over which problems its columns are, and where its numbers come from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import alebo
from alebo.bench import store, suite_page
from alebo.bench import suite as suites
from alebo.bench.cli import app
from alebo.bench.page import refresh
from alebo.bench.results import Results, Run, load
from alebo.bench.standings import standings
from alebo.bench.statistics import standard_error
from alebo.bench.suite import Suite, suite

from ..conftest import require_module
from .test_tables import made

ENTRY = replace(suite("synthetic").entries[0], start=10.0, best=0.0)
SHORT, LONG = replace(ENTRY, name="short", budget=50), replace(ENTRY, name="long", budget=100)
TWO = Suite("two", "two made-up problems", (SHORT, LONG))


def run(name: str, label: str, seed: int, value: float) -> Run:
    return made(label, seed, [9.0] * (name == "long") * 50 + [value] * 50, problem=name)


def runs(label: str, value: float, seeds: range = range(5), problems: tuple[str, ...] = ("short", "long")) -> list[Run]:
    """Runs that differ a little from seed to seed."""
    return [run(name, label, s, value + 0.3 * s) for name in problems for s in seeds]


FOUR = [*runs("a", 1.0), *runs("b", 1.5), *runs("c", 1.8), *runs("d", 2.2)]


def text(results: list[Run], methods: tuple[str, ...] = (), against: str | None = None, **more: object) -> str:
    return " ".join(suite_page.notes(standings(Results(tuple(results), **more), TWO, methods), against))  # type: ignore[arg-type]


def test_intervals_do_not_depend_on_the_order_of_methods_nor_on_who_is_drawn_first() -> None:
    many = Suite("many", "", tuple(replace(LONG, name=f"p{i}", budget=1) for i in range(6)))
    rng = np.random.default_rng(3)
    found = Results(
        tuple(
            made(label, seed, [level + rng.normal()], problem=e.name)
            for e in many.entries
            for label, level in (("a", 4.0), ("b", 4.3), ("c", 4.6), ("last", 9.5))
            for seed in range(4)
        )
    )

    def intervals(*labels: str) -> dict[str, tuple[float, float]]:
        return {line.label: (line.low, line.high) for line in standings(found, many, labels).lines()}

    first = intervals("a", "b", "c")
    assert first == intervals("c", "a", "b") == intervals("b", "c", "a")
    assert len(set(first.values())) > 1
    assert all(low < high for low, high in first.values())
    with_last = intervals("last", "a", "b", "c")  # always the worst: it changes no rank of the others
    assert {k: v for k, v in with_last.items() if k != "last"} == first


def test_methods_that_are_left_out_are_named_with_the_reason() -> None:
    more = [*runs("one", 1.0, problems=("short",)), *runs("alebo-paper-dim5", 1.0, problems=("long",))]
    brief = [made("brief", s, [1.0], problem="short") for s in range(2)]
    chosen = text([*FOUR, *more, *brief], ("a", "b"))
    words = (
        "Not in this table (not asked for; --methods adds them), with the number of the 2 problems that each has: "
        "alebo-paper-dim5 (1), c (2), d (2), one (1)."
    )
    assert words in chosen
    assert "(all their runs have fewer evaluations than the suite asks for)" in chosen
    assert "brief (1)." in chosen
    block = text([*FOUR, *more])
    assert "(they have runs on too few of the problems that the others share; --methods adds them)" in block
    assert "one (1)." in block
    assert "(studies of ALEBO's settings; --methods adds them)" in block
    assert "Not in this table" not in text(FOUR)
    data = json.loads(suite_page.json_text(standings(Results(tuple(FOUR)), TWO, ("a", "b", "c")), None))
    assert data["methods left out"] == [{"label": "d", "problems": 2, "why": "not asked for; --methods adds them"}]


def damage(folder: Path, name: str, label: str) -> None:
    path = store.path_of(folder, name, label)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"kind": "broken\n{"kind": "broken\n')


def test_a_method_whose_lines_are_all_damaged_does_not_vanish(tmp_path: Path) -> None:
    for r in [*FOUR, *runs("part", 1.0, problems=("long",))]:
        store.append(store.path_of(tmp_path, r.problem, r.label), r.record)
    for name, label in (("short", "lost"), ("long", "lost"), ("short", "part")):
        damage(tmp_path, name, label)
    shown = standings(load(tmp_path), TWO, ("a", "b"))
    assert any(
        "(no line of theirs is a run that can be read)" in note and note.endswith(": lost (2).")
        for note in suite_page.notes(shown)
    )
    with pytest.raises(alebo.InputError, match=r"No run of 'lost' .* \(no line of its files on 2 problems is a run"):
        standings(load(tmp_path), TWO, ("a", "lost"))
    rows = {row[0]: row[1:] for row in suite_page.value_rows(standings(load(tmp_path), TWO, ("a", "part")))}
    assert rows["short (min, 50)"].count("damaged") == 1
    assert "damaged" not in rows["long (min, 100)"]


def test_every_column_says_over_how_many_problems_it_is() -> None:
    shown = standings(Results(tuple(FOUR)), TWO)
    assert suite_page.head(shown, None)[2:-2] == [
        "regret at 50 (2 problems)",
        "regret at 100 (1 problem)",
        "regret at 200 (0 problems)",
    ]
    assert {len(row) for row in suite_page.rows(shown, None)} == {len(suite_page.head(shown, None))}
    note = next(n for n in suite_page.notes(shown) if n.startswith("A mean regret"))
    assert "(at 100 only long)" in note
    assert "nothing follows from a difference between two columns" in note
    alike = Suite("alike", "", (replace(LONG, name="short", budget=50),))
    assert "regret at 50 (1 problem)" in suite_page.head(standings(Results(tuple(FOUR)), alike), None)
    assert json.loads(suite_page.json_text(shown, None))["problems at checkpoints"] == [2, 1, 0]


def test_runs_and_seconds_are_over_the_problems_of_the_ranks() -> None:
    found = [*FOUR, *(run("other", "a", s, 1.0) for s in range(7))]
    for r in found:
        r.record["seconds"]["model"] = [30.0 if r.problem == "other" else 1.0] * len(r.values)
    three = Suite("three", "", (*TWO.entries, replace(LONG, name="other", budget=50)))
    line = next(x for x in standings(Results(tuple(found)), three, ("a", "b")).lines() if x.label == "a")
    assert (line.runs, line.failed, line.problems) == (10, 0, 3)
    assert line.seconds == pytest.approx(1.0)
    notes = suite_page.notes(standings(Results(tuple(found)), three, ("a", "b")))
    assert notes[0].startswith("Ranks, regrets, wins and losses, runs and model s are over the 2 of 3 problems")


def test_runs_won_are_of_shared_seeds_and_problems_without_one_are_named() -> None:
    apart = [*FOUR, *runs("apart", 0.5, problems=("long",)), *runs("apart", 0.5, range(10, 15), ("short",))]
    shown = standings(Results(tuple(apart)), TWO, ("a", "apart"))
    (duel,) = shown.duels("a")
    assert (duel.wins, duel.run_wins, duel.run_losses, duel.unpaired) == (1, 5, 0, ("short",))
    said = " ".join(suite_page.notes(shown, "a"))
    assert "pairs of runs with the same seed that a method and a both have" in said
    assert "No seed in common: apart on short." in said
    assert "No seed in common" not in text(FOUR, ("a", "b"), "a")
    assert "same seed" not in text(FOUR, ("a", "b"))


def test_the_note_says_what_the_ranks_are_of() -> None:
    worst = [run(name, "wild", s, 500.0 if s == 0 else 1.0) for name in ("short", "long") for s in range(5)]
    shown = standings(Results((*FOUR, *worst)), TWO, ("wild", "d"))
    assert np.mean(shown.cells["short", "wild"].values) > np.mean(shown.cells["short", "d"].values)
    assert [line.label for line in shown.lines()] == ["wild", "d"]  # by regrets, each cut at 1
    said = " ".join(suite_page.notes(shown))
    assert "a run's regret is cut to the range from 0 to 1" in said
    assert "ranked by the mean regret of their runs at the end" in said
    assert "the average rank cannot be recomputed from them" in said


def test_a_standard_error_that_is_rounding_is_zero() -> None:
    equal = np.array([321.1, 321.1 * (1 + 2e-16), 321.1, 321.1 * (1 - 2e-16)])
    assert equal.std() > 0
    assert standard_error(equal) == 0.0
    assert standard_error(np.array([1.0, 1.0 + 1e-9])) == pytest.approx(5e-10, rel=1e-3)
    assert standard_error(np.array([0.0, 1e-30])) == pytest.approx(5e-31)
    assert np.isnan(standard_error(np.array([1.0])))
    nan = np.array([1e-3, np.nan, 1e-3 * (1 + 4e-16)])
    assert standard_error(nan) == 0.0


def stored(folder: Path) -> Path:
    for r in FOUR:
        store.append(store.path_of(folder, r.problem, r.label), r.record)
    return folder


def test_a_part_of_another_folder_that_is_not_there_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_module("matplotlib", "plot")
    monkeypatch.setattr(suites, "suites", lambda: {"two": TWO, "own": replace(TWO, name="own", folder="of_its_own")})
    folder, page = stored(tmp_path / "results"), tmp_path / "page.md"
    page.write_text(
        "<!-- suite: two -->\n<!-- end -->\n<!-- suite: own of a,b -->\nthe old table\n\nits notes\n<!-- end -->\n"
        "<!-- suite: own -->\n<!-- end -->\n"
    )
    missing = refresh(page, folder, tmp_path / "img")
    hint = f"Make one with: alebo bench suite run own --out {tmp_path / 'of_its_own'}"
    assert len(missing) == 2
    assert missing[0].startswith("suite own: its part of the page stays as it is. ")
    assert all(m.endswith(hint) for m in missing)
    first, kept, empty = page.read_text().split("<!-- suite: ")[1:]
    assert "average rank" in first
    assert kept == "own of a,b -->\nthe old table\n\nits notes\n<!-- end -->\n"
    assert empty == "own -->\nNot run yet.\n<!-- end -->\n"
    assert refresh(page, folder, tmp_path / "img") == missing  # and again the same


def test_a_page_without_markers_says_which_there_are(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# Title\n<!-- suite: real -->\nwithout an end\n")
    for call in (["suite", "page"], ["page"]):
        done = CliRunner().invoke(app, [*call, str(page), "--folder", str(stored(tmp_path / "results"))])
        assert isinstance(done.exception, alebo.InputError)
        assert "README.md has none. They are: <!-- table: PROBLEM -->, " in str(done.exception)
        assert str(done.exception).endswith("each up to <!-- end -->.")
    assert "without an end" in page.read_text()


def test_the_hint_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "suites", lambda: {"two": TWO})
    folder = tmp_path / "results"
    for r in runs("a", 1.0):
        store.append(store.path_of(folder, r.problem, r.label), r.record)
    call = ["suite", "two", "--folder", str(folder)]
    shown = str(CliRunner().invoke(app, call).exception)
    assert shown.endswith(f"Make them with: alebo bench suite run two --out {folder}")
    store.append(store.path_of(folder, "long", "brief"), made("brief", 0, [1.0], problem="long").record)
    shown = str(CliRunner().invoke(app, call).exception)
    assert f"Make them with: alebo bench suite run two --out {folder} (which leaves out those in whose" in shown
