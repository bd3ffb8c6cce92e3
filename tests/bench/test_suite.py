"""Suites: their data agree with the problems, the numbers are what they say, failures and gaps are shown."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import alebo
from alebo.bench import PROBLEMS, experiment, problem, store, suite_page
from alebo.bench import suite as suites
from alebo.bench.cli import app
from alebo.bench.labels import labels
from alebo.bench.page import refresh
from alebo.bench.results import Results, Run, load
from alebo.bench.standings import standings
from alebo.bench.suite import Entry, Suite, start_value, suite

from ..conftest import require_module
from .test_tables import made

ENTRY = suite("synthetic").entries[0]
A = replace(ENTRY, name="a", budget=4, start=10.0, best=0.0)
B = replace(ENTRY, name="b", budget=2, start=-10.0, best=None, goal="maximise")
TWO = Suite("two", "two made-up problems", (A, B))


def run(name: str, label: str, seed: int, values: list[float]) -> Run:
    found = made(label, seed, values, problem=name)
    if name == "b":
        found.record["goals"] = [{"type": "Maximize", "outcome": "value", "reference": None}]
        found.record["best"]["value"] = max(values)
    return found


def results(*more: Run) -> Results:
    return Results(
        (
            *(run("a", "good", s, [9.0, 5.0, 1.0, 1.0]) for s in range(3)),
            *(run("a", "bad", s, [12.0, 8.0, 8.0, 4.0]) for s in range(3)),
            *(run("b", "good", s, [-9.0, 10.0]) for s in range(2)),
            *(run("b", "bad", s, [-9.0, 0.0]) for s in range(2)),
            *more,
        )
    )


@pytest.mark.parametrize("name", ["real", "synthetic", "quick", "long"])
def test_the_data_agree_with_the_problems(name: str) -> None:
    for entry in suite(name).entries:
        assert all(n in PROBLEMS for n in entry.names)
        assert f"-{entry.D}" in entry.name
        try:
            p = problem(entry.name)
        except alebo.MissingPartError:
            continue
        assert (p.D, p.sign) == (entry.D, entry.sign)
        if p.optimum is not None:
            assert entry.best == pytest.approx(p.optimum, rel=1e-4)


@pytest.mark.parametrize("name", ["branin-100", "ackley100-100", "rover-60", "hartmann6-100", "rosenbrock100-100"])
def test_the_start_is_the_median_random_point(name: str) -> None:
    (entry,) = [e for e in suite("all").entries if e.name == name]
    assert entry.start == pytest.approx(start_value(name), rel=1e-3)


def test_suites_by_name() -> None:
    everything = suite("all")
    assert everything.entries == suite("real").entries + suite("synthetic").entries
    assert all(e.budget == 50 for e in suite("quick").entries)
    assert all(e.budget == 200 and e.seconds <= 0.1 for e in suite("long").entries)
    assert {name: suite(name).folder for name in ("all", "real", "quick", "long")} == {
        **{"all": "results", "real": "results"},
        **{"quick": "build/suite-quick", "long": "results_200"},  # runs of one table share a budget
    }
    with pytest.raises(alebo.InputError, match="real, synthetic, quick, long, all"):
        suite("reel")
    with pytest.raises(alebo.InputError, match="minimise or maximise"):
        replace(ENTRY, goal="low")
    with pytest.raises(alebo.InputError, match="better than `start`"):
        replace(ENTRY, best=100.0)
    with pytest.raises(alebo.InputError, match="budget >= 1"):
        replace(ENTRY, budget=0)


def test_regret_ranks_and_duels_by_hand() -> None:
    s = standings(results(), TWO)
    assert s.labels == ("bad", "good")
    assert s.best == {"a": 0.0, "b": 10.0}  # b: the best of all runs
    np.testing.assert_allclose(s.cells["a", "bad"].regret[0], [1.0, 0.8, 0.8, 0.4])
    np.testing.assert_allclose(s.cells["b", "bad"].regret[0], [0.95, 0.5])
    first, last = s.lines()
    assert (first.label, first.rank, first.low, first.high) == ("good", 1.0, 1.0, 1.0)
    assert (last.label, last.rank) == ("bad", 2.0)
    assert math.isnan(first.regret[0])  # no problem has 50 evaluations
    assert (first.runs, first.failed, first.problems) == (5, 0, 2)
    (duel,) = s.duels("good")
    assert (duel.label, duel.wins, duel.losses, duel.run_wins, duel.run_losses) == ("bad", 0, 2, 0, 5)
    assert math.isnan(duel.p)
    with pytest.raises(alebo.InputError, match="one of the methods"):
        s.duels("ugly")


def test_a_known_best_gives_way_to_a_better_run() -> None:
    s = standings(results(run("a", "good", 7, [1.0, 1.0, 1.0, -2.0])), TWO)
    assert s.best["a"] == -2.0
    assert s.cells["a", "good"].end.min() == 0.0


def test_profiles_by_hand() -> None:
    s = standings(results(), TWO)
    # a: good reaches 0.5 at 2, then 0.1 at 3 (and 0.3, 0.2 there): 4 of 6 targets; b: 2 evaluations, all 6 targets
    share = s.data_profile("good")
    np.testing.assert_allclose(share, [0.0, 0.5 * (1 / 6 + 1.0), 0.5 * (4 / 6 + 1.0), 0.5 * (4 / 6 + 1.0)])
    np.testing.assert_allclose(s.data_profile("bad")[-1], 0.5 * (1 / 6 + 1 / 6))
    profile = s.performance_profile(np.array([1.0, 2.0]))
    np.testing.assert_allclose(profile["good"], [10 / 12, 10 / 12])
    np.testing.assert_allclose(profile["bad"], [1 / 12, 2 / 12])  # 0.5 on b with the first; on a with 4 instead of 2


def test_the_bootstrap_knows_a_tie_and_the_test_a_difference() -> None:
    rng = np.random.default_rng(0)
    many = Suite("many", "", tuple(replace(A, name=f"p{i}", budget=1) for i in range(12)))
    runs = []
    for i, e in enumerate(many.entries):
        for seed in range(6):
            level = 1.0 + i / 4
            runs += [made("same", seed, [level + rng.normal() / 4], problem=e.name) for _ in (1,)]
            runs += [made("twin", seed, [level + rng.normal() / 4], problem=e.name)]
            runs += [made("worse", seed, [level + 2 + rng.normal() / 4], problem=e.name)]
    s = standings(Results(tuple(runs)), many)
    ranks = {line.label: line for line in s.lines()}
    assert ranks["worse"].rank == 3.0
    assert ranks["same"].low < 1.5 < ranks["twin"].high
    p = {d.label: d.p for d in s.duels("same")}
    assert p["worse"] < 0.001
    assert p["twin"] > 0.05


def test_failed_short_and_infeasible_runs() -> None:
    failed = run("a", "good", 9, [1.0])
    failed.record.update(state="failed", error="it broke")
    nothing = run("b", "bad", 5, [0.0, 0.0])
    nothing.record.update(feasible=[False, False], best=None)
    s = standings(results(failed, nothing, run("a", "good", 8, [0.0])), TWO)
    good = s.cells["a", "good"]
    assert (good.failed, good.short, len(good.seeds)) == (1, 1, 4)
    assert good.end.max() == 1.0
    assert s.cells["b", "bad"].end.max() == 1.0
    line = next(x for x in s.lines() if x.label == "good")
    assert (line.failed, line.runs) == (1, 5)


def test_a_method_whose_runs_are_all_too_short_says_so() -> None:
    s = standings(
        results(*(run("a", "once", seed, [1.0, 1.0]) for seed in range(3)), run("b", "once", 0, [1.0, 2.0])), TWO
    )
    assert s.labels == ("bad", "good")  # `once` has runs on one problem alone
    assert "fewer evaluations" not in " ".join(suite_page.notes(s))
    s = standings(
        results(*(run("a", "once", seed, [1.0, 1.0]) for seed in range(3)), run("b", "once", 0, [1.0, 2.0])),
        TWO,
        ["good", "once"],
    )
    rows = {row[0]: row[1:] for row in suite_page.value_rows(s)}
    assert "too few evaluations (3)" in rows["a (min, 4)"]
    assert "too short" in {row[0]: row[1:] for row in suite_page.value_rows(s, short=True)}["a (min, 4)"]
    assert "3 runs with fewer evaluations than the suite asks for are left out." in suite_page.notes(s)
    data = json.loads(suite_page.json_text(s, None))
    assert data["problems"][0]["methods"]["once"] == {"runs": 0, "failed": 0, "short": 3, "values": [], "regret": None}
    assert data["problems"][0]["methods"]["good"]["short"] == 0
    with pytest.raises(alebo.InputError, match=r"No run of 'brief' .* \(1 with fewer evaluations"):
        standings(results(run("a", "brief", 0, [1.0])), TWO, ["good", "brief"])


def test_one_variant_of_a_problem_counts_for_a_method_and_the_other_is_named() -> None:
    both = Suite("both", "", (replace(A, penalised="a-penalised"), B))
    more = [run("a-penalised", "good", s, [0.5] * 4) for s in range(3)]
    alone = [run("a-penalised", "free", s, [0.5] * 4) for s in range(3)]
    alone += [run("b", "free", s, [1.0] * 2) for s in range(2)]
    failed = run("a", "free", 7, [1.0])
    failed.record.update(state="failed", error="it broke")
    s = standings(results(*more, *alone, failed), both)
    assert len(s.cells["a", "good"].seeds) == 3
    assert s.cells["a", "good"].values.tolist() == [1.0] * 3
    assert s.cells["a", "free"].values.tolist() == [0.5] * 3  # complete runs before failed ones
    assert s.aside == ("a-penalised/good", "a/free")
    assert any(
        "left out, because there are runs of the other: a-penalised/good, a/free." in n for n in suite_page.notes(s)
    )
    assert json.loads(suite_page.json_text(s, None))["left out"] == ["a-penalised/good", "a/free"]
    assert "variant" not in " ".join(suite_page.notes(standings(results(), both)))


def stored(folder: Path) -> Path:
    """The made-up runs in a folder, with a damaged line and a file of something else."""
    for r in results().runs:
        store.append(store.path_of(folder, r.problem, r.label), r.record)
    with store.path_of(folder, "a", "good").open("a") as file:
        file.write('{"kind": "broken\n')
    (folder / "elsewhere.jsonl").write_text("{}\n")
    return folder


def test_damaged_lines_of_a_suite_are_shown_in_every_format_and_on_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_module("matplotlib", "plot")
    monkeypatch.setattr(suites, "suites", lambda: {"two": TWO})
    folder = stored(tmp_path / "results")
    call = ["suite", "table", "two", "--folder", str(folder), "--format"]
    words = "Skipped 1 files or lines that are no runs, or not the ones that count: "
    for format in ("markdown", "terminal"):
        shown = CliRunner().invoke(app, [*call, format], env={"COLUMNS": "400"}).output
        assert words in shown
        assert "good.jsonl (line 4 cannot be read" in shown
    (skipped,) = json.loads(CliRunner().invoke(app, [*call, "json"]).output)["skipped"]
    assert skipped["path"] == str(store.path_of(folder, "a", "good"))
    assert skipped["reason"].startswith("line 4 cannot be read")
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- suite: two -->\n<!-- end -->\n<!-- table: a -->\n<!-- end -->\n<!-- table: b -->\n<!-- end -->\n"
    )
    (tmp_path / "img").mkdir()
    assert refresh(page, folder, tmp_path / "img") == []
    parts = page.read_text().split("<!-- end -->")
    assert [words in part for part in parts] == [True, True, False, False]


def test_wrong_calls_of_a_suite_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "suites", lambda: {"two": replace(TWO, folder="own")})
    monkeypatch.chdir(tmp_path)
    folder = stored(tmp_path / "results")
    (tmp_path / "d").mkdir()
    (tmp_path / "e.png").mkdir()
    (tmp_path / "file").write_text("")
    for more, words in (
        (["--methods", "good,bad,good"], "Each method once; got good more than once"),
        (["--methods", "good"], "compares two methods or more; got good. Name more of bad, good"),
        (["--picture", "pic.xyz"], r"ends in \.png, \.svg, \.pdf; got 'pic\.xyz'"),
        (["--picture", "d"], r"ends in \.png"),
        (["--picture", "e.png"], r"e\.png cannot"),
        (["--picture", "file/x.png"], "file cannot be made: File exists"),
        (["--picture", "file/d/x.png"], "cannot be made: Not a directory"),
    ):
        result = CliRunner().invoke(app, ["suite", "table", "two", "--folder", str(folder), *more])
        assert isinstance(result.exception, alebo.InputError), result.output
        assert re.search(words, str(result.exception)), str(result.exception)
    assert not list(tmp_path.glob("*.png.png")) + list(tmp_path.glob("d.*"))
    for more, words in (([], "alebo bench suite run two"), (["--folder", "no"], "alebo bench suite run two --out no")):
        result = CliRunner().invoke(app, ["suite", "table", "two", *more])
        assert str(result.exception).endswith(f"Make one with: {words}")
    for label in ("bad",):
        for name in ("a", "b"):
            store.path_of(folder, name, label).unlink()
    result = CliRunner().invoke(app, ["suite", "table", "two", "--folder", str(folder)])
    assert "needs runs of two methods or more; here are those of good." in str(result.exception)


def test_the_name_of_a_suite_alone_shows_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "suites", lambda: {"two": TWO})
    folder = stored(tmp_path / "results")
    shown = [
        CliRunner().invoke(app, ["suite", *how, "two", "--folder", str(folder), "--format", "markdown"])
        for how in ([], ["table"])
    ]
    assert shown[0].exit_code == 0
    assert shown[0].output == shown[1].output
    assert "average rank" in shown[0].output
    wrong = CliRunner().invoke(app, ["suite", "three"])
    assert wrong.exit_code == 2
    assert "No such command 'three'" in wrong.output


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture_of_a_suite_is_drawn_into_a_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    require_module("matplotlib", "plot")
    monkeypatch.setattr(suites, "suites", lambda: {"two": TWO})
    path = tmp_path / "new" / "deep" / f"x.{suffix}"
    folder = stored(tmp_path / "results")
    done = CliRunner().invoke(app, ["suite", "table", "two", "--folder", str(folder), "--picture", str(path)])
    assert done.exit_code == 0, done.output
    assert path.stat().st_size > 1000


def test_methods_that_share_most_problems_are_compared() -> None:
    more = [run("a", "once", 0, [1.0] * 4), run("a", "alebo-paper-dim5", 0, [1.0] * 4)]
    s = standings(results(*more), TWO)
    assert s.labels == ("bad", "good")
    chosen = standings(results(*more), TWO, ["once", "good"])
    assert [e.name for e in chosen.common] == ["a"]
    with pytest.raises(alebo.InputError, match="No run of 'best'"):
        standings(results(), TWO, ["best", "good"])
    with pytest.raises(alebo.InputError, match="two methods or more"):
        standings(Results(()), TWO)
    apart = Results((run("a", "good", 0, [1.0] * 4), run("b", "bad", 0, [1.0] * 2)))
    with pytest.raises(alebo.InputError, match="Choose fewer methods"):
        standings(apart, TWO, ["good", "bad"])


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Three problems: one that runs, one with a penalised variant, one whose extra is missing."""

    def missing() -> None:
        raise alebo.MissingPartError('It needs a part. Run: pip install "alebo[part]"')

    monkeypatch.setitem(PROBLEMS, "missing-9", missing)
    entries = (
        replace(ENTRY, budget=3),
        replace(ENTRY, name="gramacy-100", budget=3, penalised="levy20-100", start=2.0, best=0.6),
        replace(ENTRY, name="missing-9", budget=3),
    )
    small = Suite("tiny", "a tiny suite", entries)
    monkeypatch.setattr(suites, "suites", lambda: {"tiny": small})
    return small


def test_a_suite_is_run_resumed_and_shown(tiny: Suite, tmp_path: Path) -> None:
    ard = "alebo.bench.ablation:ArdALEBO(initial=3)"
    call = [
        "suite",
        "run",
        "tiny",
        "--methods",
        f"sobol,ard={ard}",
        "--seeds",
        "0-1",
        "--jobs",
        "1",
        "--out",
        str(tmp_path),
    ]
    first = CliRunner().invoke(app, call)
    assert first.exit_code == 1  # the missing part
    assert 'failed: missing-9, sobol: It needs a part. Run: pip install "alebo[part]"' in first.output
    assert "8 runs made, 4 failed, 0 were there already" in first.output
    found = load(tmp_path)
    assert {(r.problem, r.label) for r in found.complete} == {
        ("branin-100", "sobol"),
        ("branin-100", "ard"),
        ("gramacy-100", "sobol"),
        ("levy20-100", "ard"),  # the method without constraints got the penalised variant
    }
    assert [r.error for r in found.failed] == ['MissingPartError: It needs a part. Run: pip install "alebo[part]"'] * 4
    size = sum(p.stat().st_size for p in tmp_path.rglob("*.jsonl"))
    again = CliRunner().invoke(app, call)
    assert again.exit_code == 0  # nothing had to be made; what failed then is named
    assert "0 runs made, 0 failed, 12 were there already" in again.output
    assert "4 of these failed then: --retry-failed makes them again." in again.output
    assert sum(p.stat().st_size for p in tmp_path.rglob("*.jsonl")) == size
    shown = CliRunner().invoke(app, ["suite", "table", "tiny", "--folder", str(tmp_path), "--format", "markdown"])
    assert shown.exit_code == 0, shown.output
    assert "| `missing-9 (min, 3)` | failed (2) | failed (2) |" in shown.output
    assert "over the 2 of 3 problems" in shown.output
    narrow = CliRunner().invoke(app, ["suite", "table", "tiny", "--folder", str(tmp_path)], env={"COLUMNS": "50"})
    assert "--format markdown" in " ".join(narrow.output.split())
    assert "…" not in narrow.output  # what does not fit is left out by column, and named
    data = json.loads(
        CliRunner().invoke(app, ["suite", "table", "tiny", "--folder", str(tmp_path), "--format", "json"]).output,
        parse_constant=lambda word: pytest.fail(f"{word} is not JSON"),
    )
    assert data["common"] == ["branin-100", "gramacy-100"]
    assert CliRunner().invoke(app, ["suite", "table", "tiny", "--folder", str(tmp_path)]).exit_code == 0
    wrong = CliRunner().invoke(app, ["suite", "table", "tiny", "--folder", str(tmp_path), "--format", "html"])
    assert isinstance(wrong.exception, alebo.InputError)


def test_shorter_runs_in_the_place_of_a_suites_are_left_out_and_named(tiny: Suite, tmp_path: Path) -> None:
    one = ["run", "--method", "sobol", "--seeds", "0-1", "--out", str(tmp_path), "--problem", "branin-100"]
    CliRunner().invoke(app, [*one, "--budget", "2"])
    call = ["suite", "run", "tiny", "--methods", "sobol", "--seeds", "0-1", "--jobs", "1", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, call)
    assert (
        "left out: branin-100, sobol: 2 evaluations are stored, 3 are wanted (seeds 0, 1). Another --out" in done.output
    )
    assert "2 runs made, 2 failed, 0 were there already" in done.output
    assert {(r.problem, r.budget) for r in load(tmp_path).complete} == {("branin-100", 2), ("gramacy-100", 3)}
    call[call.index("sobol")] = "sobol=sobol(centre=True)"
    refused = CliRunner().invoke(app, call)
    assert isinstance(refused.exception, alebo.InputError)
    assert "gramacy-100/sobol seed 0 and 1 more: centre False is stored, True is wanted" in str(refused.exception)
    plan = suites.plan(tiny, labels("sobol"), [0], tmp_path)
    short = [t for t in plan.tasks if t.problem == "branin-100"]
    assert experiment.without_short(short) == (
        [],
        ["branin-100, sobol: 2 evaluations are stored, 3 are wanted (seed 0). Another --out makes them."],
    )
    with pytest.raises(alebo.InputError, match="2 evaluations are stored, 3 are wanted"):
        experiment.run(short)


def test_wrong_methods_are_refused_before_anything_runs(tiny: Suite, tmp_path: Path) -> None:
    with pytest.raises(alebo.InputError, match="has no setting"):
        suites.plan(tiny, labels("sobol(center=True)"), [0], tmp_path)
    assert not list(tmp_path.rglob("*.jsonl"))


def test_a_page_shows_a_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_module("matplotlib", "plot")
    monkeypatch.setattr(suites, "suites", lambda: {"two": TWO, "own": replace(TWO, name="own", folder="of_its_own")})
    for r in results().runs:
        store.append(store.path_of(tmp_path / "results", r.problem, r.label), r.record)
        if r.seed == 0:
            store.append(store.path_of(tmp_path / "of_its_own", r.problem, r.label), r.record)
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n<!-- suite: two -->\nold\n<!-- end -->\n<!-- suite: three -->\nold\n<!-- end -->\n<!-- suite: own -->\n<!-- end -->\n"
    )
    (tmp_path / "img").mkdir()
    missing = refresh(page, tmp_path / "results", tmp_path / "img")
    assert [m.split(":")[0] for m in missing] == ["suite three"]
    text = page.read_text()
    assert "![profiles](img/suite_two.png)" in text
    assert "| good | 1.00 (1.0 to 1.0) |" in text
    assert "| `b (max, 2)` | **10** ± 0 (2) | 0 ± 0 (2) |" in text
    assert "| `b (max, 2)` | **10** (1) | 0 (1) |" in text
    assert (tmp_path / "img" / "suite_two.png").read_bytes().startswith(b"\x89PNG")


def test_the_list_says_source_and_licence() -> None:
    text = CliRunner().invoke(app, ["suite", "list"]).output
    assert "mopta08-124: D=124, minimise, 100 evaluations of 0.1 s; Jones 2008" in text
    assert isinstance(suite("real").entries[0], Entry)
