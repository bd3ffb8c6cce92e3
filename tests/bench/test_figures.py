"""Every figure is drawn from stored data without running anything, with a caption that says whether it agrees."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import alebo
from alebo.bench import figures, store
from alebo.bench.cli import app
from alebo.bench.figures import fig1_distortion, fig3_model
from alebo.bench.page import refresh
from alebo.bench.published import verdict

from ..conftest import require_module
from .test_tables import made

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six made-up runs for every label that a figure looks for."""
    rng = np.random.default_rng(0)
    labels = ["alebo", "alebo-paper", "alebo-paper-dim5", "sobol", "ablation-normal", "ablation-matern-raw"]
    for problem, label in [*(("branin-100", x) for x in labels), ("branin-200", "alebo-paper")]:
        for seed in range(6):
            run = made(label, seed, list(0.4 + rng.exponential(size=50)), problem=problem)
            store.append(store.path_of(tmp_path, problem, label), run.record)
    return tmp_path


@pytest.mark.parametrize("name", ["fig1", "fig5", "s8", "s10", "table_s1"])
def test_figures_are_drawn_from_runs(name: str, folder: Path, tmp_path: Path) -> None:
    require_module("matplotlib", "plot")
    path, caption = figures.figure(name, folder, tmp_path / "out")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 5000
    assert len(caption) > 80
    again, _ = figures.figure(name, folder, tmp_path / "again")
    assert again.read_bytes() == path.read_bytes()  # the same data, the same file


def test_hesbos_three_embeddings_have_the_papers_values(tmp_path: Path) -> None:
    values = fig1_distortion.data(tmp_path, size=5)["hesbo"]
    assert [round(v, 3) for v in values.values()] == [0.398, 0.925, 17.178]


def test_the_model_figure_is_made_stored_and_drawn(tmp_path: Path) -> None:
    require_module("matplotlib", "plot")
    numbers = fig3_model.data(sizes=(40,), embeddings=1, sets=1)
    sampled = fig3_model.mean_scores(numbers)["Mahalanobis sampled"]
    raw = fig3_model.mean_scores(numbers)["ARD RBF, raw coordinates"]
    assert sampled["r2"] > 0.5 > raw["r2"]  # the paper's Fig. 3 in one embedding
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "fig3_model.json").write_text(json.dumps(numbers))
    path, caption = figures.figure("fig3", tmp_path, tmp_path)
    assert path.exists()
    assert "published" in caption


def test_a_score_is_what_it_says() -> None:
    truth = np.array([0.0, 1.0, 2.0, 3.0])
    good = fig3_model.scores(truth, np.ones(4), truth)
    assert (good["rmse"], good["r2"], good["coverage"]) == (0.0, 1.0, 1.0)
    assert good["log_likelihood"] == pytest.approx(-0.5 * np.log(2 * np.pi))
    bad = fig3_model.scores(truth + 3.0, np.ones(4), truth)
    assert bad["coverage"] == 0.0


def test_verdicts() -> None:
    known = {"mean": 1.0, "se": 0.1}
    assert "agrees" in verdict(1.1, 0.1, 20, known)
    assert "worse" in verdict(2.0, 0.1, 20, known)
    assert "better" in verdict(0.1, 0.1, 20, known)
    assert "better" in verdict(2.0, 0.1, 20, known, sign=-1.0)
    assert "too few" in verdict(0.1, 0.0, 1, known)
    assert verdict(0.1, 0.1, 20, None) == "not published"


def test_what_is_missing_is_said(folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for name in ("fig5", "s8", "s10", "table_s1"):
        with pytest.raises(alebo.InputError, match="has none"):
            figures.figure(name, empty, tmp_path)
    with pytest.raises(alebo.InputError, match="--compute"):
        figures.figure("fig3", empty, tmp_path)
    (empty / "figures").mkdir()
    (empty / "figures" / "fig3_model.json").write_text("{")
    with pytest.raises(alebo.InputError, match="cannot be read"):
        figures.figure("fig3", empty, tmp_path)
    with pytest.raises(alebo.InputError, match="Leave out --compute"):
        figures.compute("fig5", empty)
    with pytest.raises(alebo.InputError, match="Did you mean 'fig5"):
        figures.find("fig55")
    assert "fig5_traces" in CliRunner().invoke(app, ["figure", "list"]).output


def test_a_page_is_refreshed_between_its_markers_only(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    part = "<!-- {} -->\nold\n<!-- end -->\n"
    page.write_text("# Title\n" + part.format("table: branin-100") + "kept\n" + part.format("table: gramacy-100"))
    missing = refresh(page, folder, tmp_path / "img")
    text = page.read_text()
    assert len(missing) == 1
    assert "gramacy-100" in missing[0]
    assert text.startswith("# Title\n<!-- table: branin-100 -->\n| method |")
    assert "kept" in text
    assert "old" not in text
    assert "Not run yet." in text
    assert refresh(page, folder, tmp_path / "img") == missing
    assert page.read_text() == text
    with pytest.raises(alebo.InputError, match="must exist"):
        refresh(tmp_path / "no.md", folder, tmp_path)


def test_the_committed_results_are_all_readable() -> None:
    from alebo.bench.results import load

    if not (ROOT / "results").is_dir():
        pytest.skip("an installed package carries no results")
    results = load(ROOT / "results")
    assert {path.relative_to(ROOT / "results").parts[0] for path, _ in results.foreign} <= {
        "containment",
        "figures",
        "hosts",
        "importance",
        "transfer",
        "workers",
    }
    assert len(results.complete) > 100
    size = sum(path.stat().st_size for path in (ROOT / "results").rglob("*") if path.is_file())
    assert size < min(3_500 * len(results.complete), 20_000_000)  # values of a run, never its points
