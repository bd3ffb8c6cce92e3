"""Tables: the statistics are what they say, foreign files are named, versions are not mixed."""

from __future__ import annotations

import copy
import csv
import io
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import alebo
from alebo.bench import problem, replication, store, tables
from alebo.bench.cli import app
from alebo.bench.page import _table
from alebo.bench.published import ENOUGH, is_study, row
from alebo.bench.results import Results, Run, load
from alebo.bench.statistics import bootstrap_ranks, evaluations_to, lines, pairs, standard_error, standard_errors
from alebo.bench.tables import summary
from alebo.goals import hypervolume_trace


def made(label: str, seed: int, values: list[float], **changes: object) -> Run:
    """A run of Branin with these values."""
    record = copy.deepcopy(TEMPLATE)
    record.update(label=label, seed=seed, budget=len(values), **changes)
    record["outcomes"] = {"value": values}
    record["best"] = {"number": int(np.argmin(values)), "value": min(values), "chosen_by": "measured value"}
    record["seconds"] = {"model": [0.5] * len(values), "evaluation": 0.25 * len(values)}
    return Run(record)


TEMPLATE = replication(problem("branin-100"), "sobol", 0, budget=1)


def test_the_numbers_of_a_line() -> None:
    ends = [0.4, 0.4, 0.4, 0.43, 0.43, 2.0]
    runs = [made("a", s, [9.0, v]) for s, v in enumerate(ends)]
    lucky = made("lucky", 0, [9.0, 0.398])
    line, few = lines(Results((*runs, lucky)), "branin-100")
    assert line.mean == pytest.approx(np.mean(ends))
    assert line.se == pytest.approx(np.std(ends, ddof=1) / np.sqrt(6))
    assert math.isnan(few.se)  # one run has no spread
    assert (line.median, line.worst, line.best) == (pytest.approx(0.415), 2.0, 0.4)
    assert line.within == 0.5  # 0.4 is within 1 % of 0.397887, 0.43 is not
    assert (line.reach, line.reached) == (2.0, 5)  # 0.43 is within 10 %
    assert few.label == "lucky"  # a better mean, but of one run: it stands last, without rank or verdict
    assert math.isnan(few.rank)
    assert few.z is None
    assert (line.model_seconds, line.evaluation_seconds) == (0.5, 0.25)
    assert (line.rank, line.rank_low, line.rank_high) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("change", "mixed"),
    [
        ({}, False),
        ({"method": {"name": "sobol", "older": 1}}, False),  # a setting of another version
        ({"method": {"name": "sobol", "centre": True}}, True),
        ({"budget": 3}, True),
    ],
)
def test_a_page_names_methods_with_runs_of_several_settings(change: dict[str, object], mixed: bool) -> None:
    first, other = made("a", 0, [9.0, 1.0]), made("a", 1, [9.0, 2.0])
    other.record.update(change)
    said = "Runs made with more than one setting or budget: a."
    assert (said in _table(Results((first, other)), "branin-100")) == mixed


def test_standard_errors_leave_out_what_is_missing_and_one_run_has_none() -> None:
    values = np.array([[1.0, 1.0, math.nan], [3.0, math.nan, math.nan], [8.0, 2.0, 5.0]])
    expected = [math.sqrt(13.0 / 3.0), 0.5, math.nan]
    np.testing.assert_allclose(standard_errors(values), expected)
    assert standard_error(values[:, 0]) == pytest.approx(expected[0])


def test_evaluations_to_ten_percent_regret() -> None:
    assert evaluations_to(made("a", 0, [5.0, 3.0, 0.41, 0.4])) == 3
    assert evaluations_to(made("a", 0, [5.0, 3.0])) == math.inf
    assert math.isnan(evaluations_to(made("a", 0, [5.0], optimum=None)))


def test_ranks_and_pairs_know_a_clear_winner_and_a_tie() -> None:
    rng = np.random.default_rng(0)
    good, bad = rng.normal(1, 0.1, 20), rng.normal(3, 0.1, 20)
    ranks = bootstrap_ranks([bad, good, good], draws=500)
    assert ranks[0].min() == 3
    assert ranks[1].mean() == pytest.approx(1.5, abs=0.15)
    runs = [made(n, s, [v]) for n, vs in (("good", good), ("bad", bad)) for s, v in enumerate(vs)]
    (pair,) = pairs(Results(tuple(runs)), "branin-100", "good")
    assert (pair.label, pair.wins, pair.losses, pair.seeds) == ("bad", 0, 20, 20)
    assert pair.difference == pytest.approx(float(np.mean(bad - good)))
    assert pair.p < 1e-4
    half = Results(tuple(r for r in runs if r.label == "good" or r.seed < 3))
    assert pairs(half, "branin-100", "good")[0].seeds == 3
    with pytest.raises(alebo.InputError, match="needs complete runs of 'best'"):
        pairs(half, "branin-100", "best")


def test_a_run_without_a_feasible_point_is_infinitely_bad_and_counted() -> None:
    nothing = made("a", 1, [0.5])
    nothing.record["feasible"], nothing.record["best"] = [False], None
    (line,) = lines(Results((made("a", 0, [0.5]), nothing)), "branin-100")
    assert (line.nothing, line.mean, line.worst, line.median) == (1, 0.5, math.inf, math.inf)


def test_the_published_row_of_a_label() -> None:
    assert row("branin-100", "alebo-paper")["mean"] == 0.7493  # type: ignore[index]
    assert row("branin-100", "alebo-paper-dim5")["mean"] == 0.4105  # type: ignore[index]
    assert row("hartmann6-100", "hesbo-2d")["mean"] == -2.7078  # type: ignore[index]
    assert row("hartmann6-100", "hesbo-d")["mean"] == -2.2979  # type: ignore[index]
    assert row("branin-100", "mine") is None
    assert row("hartmann6-random-1000", "turbo") is None  # published in half of every range, so it stands there
    assert row("hartmann6-random-1000-narrow", "turbo")["mean"] == -2.4995  # type: ignore[index]
    assert row("branin-100", "rembo-dim4") is None
    assert row("branin-100", "rembo-d")["mean"] == 1.4329  # type: ignore[index]
    assert row("hartmann6-100", "cmaes")["mean"] == row("hartmann6-100", "cma_es")["mean"] == -2.7466  # type: ignore[index]
    assert [is_study(x) for x in ("alebo-paper-dim5", "ablation-normal", "alebo", "rembo-dim4")] == [
        True,
        True,
        False,
        False,
    ]
    assert row("levy20-100", "alebo") is None


def test_hypervolume_in_two_and_three_objectives() -> None:
    two = np.array([[1.0, 2.0], [2.0, 1.0], [2.5, 2.5], [4.0, 0.0], [0.0, 0.0]])
    assert hypervolume_trace(two, np.array([3.0, 3.0])).tolist() == [2.0, 3.0, 3.0, 3.0, 9.0]
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("botorch.utils.multi_objective.hypervolume")
    points = np.random.default_rng(0).uniform(size=(12, 3))
    reference = theirs.Hypervolume(ref_point=-torch.ones(3, dtype=torch.double))
    from botorch.utils.multi_objective.pareto import is_non_dominated

    values = -torch.tensor(points)
    assert hypervolume_trace(points, np.ones(3))[-1] == pytest.approx(
        reference.compute(values[is_non_dominated(values)])
    )


def test_the_summary_says_where_we_are_not_first() -> None:
    other = [made("x", s, [v]) for s, v in enumerate([0.4, 0.4, 0.4, 0.4, 9.0])]
    lucky = made("lucky", 0, [0.398])  # a single run is no method's standing
    runs = [*(made("alebo", s, [0.5]) for s in range(5)), *other, lucky]
    text = summary(Results(tuple(runs)), ["branin-100", "gramacy-100"])
    assert "median worse by 0.1 than x" in text
    assert "mean worse" not in text
    assert "lucky" not in text
    assert "| gramacy-100 | 0 |  |  |  |  | not run |" in text
    assert "first in both" in summary(Results((*runs[:5], *[made("x", s, [2.0]) for s in range(5)])), ["branin-100"])
    assert "too few runs" in summary(Results((*runs[:2], *other)), ["branin-100"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for label in ("sobol", "other"):
        for seed in range(3):
            run = made(label, seed, [3.0, 1.0 + seed])
            store.append(store.path_of(tmp_path, "branin-100", label), run.record)
    return tmp_path


def invoke(*call: str) -> str:
    result = CliRunner().invoke(app, ["table", *call], env={"COLUMNS": "300"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0
    return result.output


def test_three_formats(folder: Path) -> None:
    text = invoke(str(folder), "--format", "markdown", "--against", "sobol")
    assert "| sobol | 3 | 2.0000 ± 0.5774 | 2.0000 | 3.0000 | 1.0000 |" in text
    assert "5.1790 ± 0.6157" in text
    assert "| other | sobol | 3 | +0.0000" in text
    assert "Published, not run here: ALEBO 0.7493" in text
    rows = list(csv.DictReader(io.StringIO(invoke(str(folder), "--format", "csv"))))
    assert [float(r["mean"]) for r in rows] == [2.0, 2.0]
    assert "sobol" in invoke(str(folder))


def test_foreign_files_are_named_skipped_and_counted(folder: Path) -> None:
    (folder / "notes.txt").write_text("hello")
    (folder / "branin-100" / "broken.jsonl").write_text("{broken\n")
    (folder / "branin-100" / "other-kind.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    (folder / "branin-100" / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    short = {k: v for k, v in TEMPLATE.items() if k != "outcomes"}
    with (folder / "branin-100" / "sobol.jsonl").open("a") as file:
        file.write(json.dumps(dict(TEMPLATE, format=0)) + "\n" + json.dumps(short) + "\n")
    results = load(folder)
    assert len(results.runs) == 6
    assert len(results.foreign) == 6
    assert [reason for path, reason in results.foreign if path.stem == "sobol"] == [
        "line 4 format 0, and this alebo reads 1",
        "line 5 damaged: outcomes missing",
    ]
    text = invoke(str(folder), "--format", "markdown")
    assert "Skipped 6 files or lines that are no runs, or not the ones that count: " in text
    assert "| sobol | 3 |" in text


def test_a_run_in_two_files_counts_once_and_is_reported(folder: Path) -> None:
    own = folder / "branin-100" / "sobol.jsonl"
    other = folder / "branin-100" / "other.jsonl"
    other.write_text(other.read_text() + own.read_text().splitlines()[0] + "\n")
    copy = folder / "z-copy" / "branin-100" / "sobol.jsonl"
    copy.parent.mkdir(parents=True)
    copy.write_text(own.read_text())
    results = load(folder)
    assert [(r.label, r.seed) for r in results.runs] == [(x, s) for x in ("other", "sobol") for s in range(3)]
    assert results.foreign[0] == (other, "line 4 is a run of branin-100/sobol, which has a file of its own")
    assert results.foreign[1:] == tuple(
        (copy, f"seed {s} is another complete run: that of {own} counts") for s in range(3)
    )


def test_failures_are_shown(folder: Path) -> None:
    failed = dict(TEMPLATE, state="failed", error="it broke", label="sobol", seed=5)
    store.append(folder / "branin-100" / "sobol.jsonl", failed)
    lost = dict(TEMPLATE, state="failed", error="never ran", label="lost", seed=5)
    store.append(folder / "branin-100" / "lost.jsonl", lost)
    text = invoke(str(folder), "--format", "markdown")
    assert "3 (1 failed)" in text
    assert "| lost | 0 (1 failed) |" in text
    assert "Failed: sobol, seed 5: it broke" in text


def test_mixing_is_refused_unless_asked_for(folder: Path) -> None:
    path = folder / "branin-100" / "sobol.jsonl"
    first, *others = path.read_text().splitlines()
    record = json.loads(first)
    record["environment"]["versions"]["alebo"] = "0.0.1"
    path.write_text("\n".join([json.dumps(record), *others, ""]))
    with pytest.raises(alebo.InputError, match=r"made by 0\.0\.1"):
        invoke(str(folder))
    assert "| sobol | 3 |" in invoke(str(folder), "--mixed", "--format", "markdown")
    record["environment"]["versions"]["alebo"] = alebo.__version__
    record["method"] = {"name": "sobol", "centre": True}
    path.write_text("\n".join([json.dumps(record), *others, ""]))
    with pytest.raises(alebo.InputError, match="share settings and budget"):
        invoke(str(folder))


def test_wrong_calls(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(alebo.InputError, match="there is no folder"):
        invoke(str(folder / "nowhere"))
    with pytest.raises(alebo.InputError, match="Did you mean 'branin-100'"):
        invoke(str(folder), "--problem", "branin-10")
    with pytest.raises(alebo.InputError, match="Did you mean 'sobol'"):
        invoke(str(folder), "--method", "sobl")
    with pytest.raises(alebo.InputError, match="terminal, markdown, csv or json"):
        invoke(str(folder), "--format", "html")
    for call in (["--format", "json"], ["--format", "csv"], ["--json"]):
        with pytest.raises(alebo.InputError, match="Leave out --against"):
            invoke(str(folder), *call, "--against", "nope")
    with pytest.raises(alebo.InputError, match="One format a table"):
        invoke(str(folder), "--json", "--format", "csv")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(alebo.InputError, match="holds none"):
        invoke(str(empty))


def test_the_same_rows_as_json() -> None:

    from alebo.bench.results import load
    from alebo.bench.tables import csv_text, json_text

    results = load(Path(__file__).parents[2] / "results").only(["branin-100"], ["sobol"])
    (row,) = json.loads(json_text(results), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert row["problem"] == "branin-100"
    assert isinstance(row["mean"], float)
    assert list(row) == csv_text(results).splitlines()[0].split(",")


@pytest.mark.parametrize("format", ["json", "csv"])
def test_rows_for_programs_are_rows_and_skipped_lines_are_said_beside_them(folder: Path, format: str) -> None:
    (folder / "branin-100" / "broken.jsonl").write_text("{broken\n")
    done = CliRunner().invoke(app, ["table", str(folder), "--format", format])
    assert done.exit_code == 0
    assert "Skipped 1 files or lines" in done.stderr
    rows = json.loads(done.stdout) if format == "json" else list(csv.DictReader(io.StringIO(done.stdout)))
    assert [r["label"] for r in rows] == ["other", "sobol"]


@pytest.mark.parametrize("width", [40, 80, 400])
def test_a_narrow_terminal_gets_whole_columns(width):
    rows = [["alebo-fixed", "50", "-3.2747 ± 0.0150", *["-3.3142"] * (len(tables.HEAD) - 3)]]
    shown = tables.fitting(tables.HEAD, rows, width)
    assert tables.HEAD[shown[0]] == "method"
    assert "mean ± SE" in [tables.HEAD[i] for i in shown]
    assert (len(shown) == len(tables.HEAD)) is (width == 400)
    needed = [max(len(t) for t in [*tables.HEAD[i].split(), rows[0][i]]) + 3 for i in shown]
    assert len(shown) == 2 or sum(needed) < width


def test_no_z_score_with_too_few_runs() -> None:
    runs = [made("alebo-paper", s, [9.0, 0.4 + 0.1 * s]) for s in range(ENOUGH)]
    (few,) = lines(Results(tuple(runs[:-1])), "branin-100")
    (enough,) = lines(Results(tuple(runs)), "branin-100")
    assert few.published_mean == enough.published_mean == 0.7493
    assert few.z is None
    assert enough.published_se is not None
    assert enough.z == pytest.approx((enough.mean - 0.7493) / math.hypot(enough.se, enough.published_se))


def test_the_tables_that_the_documents_name_can_be_printed():
    root = Path(__file__).parents[2]
    if not (root / "results").is_dir():
        pytest.skip("an installed package carries no results")
    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    calls = {c for page in pages for c in re.findall(r"alebo bench (table results[^`(\n]*)", page.read_text())}
    assert len(calls) >= 3
    for call in calls:
        words = call.replace("results", str(root / "results")).split()
        some = [] if "--problem" in words else ["--problem", "gramacy-100,hexapod-72"]  # all of them take long
        done = CliRunner().invoke(app, [*words, *some])
        assert done.exit_code == 0, f"{call}: {done.exception}"
