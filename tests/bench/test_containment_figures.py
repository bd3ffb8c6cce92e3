"""The figures about containment: their data in small, their pictures, and captions that can disagree."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import alebo
from alebo.bench import containment, figures
from alebo.bench.figures import fig2_interior, fig4_containment, s4_polytope, s6_containment


def is_png(path):
    return path.read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def kept(tmp_path):
    """A sweep with the published values themselves as ours, so that nothing is drawn."""
    path = tmp_path / "containment" / "check.jsonl"
    path.parent.mkdir()
    cells = {cell: p for _, cell, p in containment.published()}
    path.write_text(
        "".join(
            json.dumps(dataclasses.asdict(alebo.geometry.Containment(*cell, "axis", 0, 1000, round(1000 * p)))) + "\n"
            for cell, p in cells.items()
        )
    )
    return tmp_path


def test_every_published_cell_is_there():
    rows = list(containment.published())
    assert sum(f == "4/S5" for f, _, _ in rows) == 135
    assert sum(f == "S6" for f, _, _ in rows) == 162
    assert ("4/S5", ("hypersphere", 100, 6, 12), 0.445) in rows


def test_comparison_counts_standard_errors():
    ours = alebo.geometry.Containment("hypersphere", 100, 6, 12, "axis", 0, 1000, 500)
    assert containment.Compared("4/S5", 0.5, ours).z == 0.0
    off = containment.Compared("4/S5", 0.4, ours)
    assert off.z == pytest.approx(0.1 / np.sqrt(0.25 / 1000 + 0.24 / 1000))
    assert "beyond 3" in containment.check_report([off, off])
    assert "1 beyond" in containment.check_report([off, containment.Compared("4/S5", 0.5, ours)])


def test_check_computes_and_keeps(monkeypatch, tmp_path):
    monkeypatch.setattr(containment, "published", lambda: [("S6", ("hypersphere", 50, 2, 4), 0.75)] * 2)
    rows = containment.check(samples=200, path=tmp_path / "c.jsonl")
    assert len((tmp_path / "c.jsonl").read_text().splitlines()) == 1
    assert abs(rows[0].z) < 3.5


def test_the_clock_compares_the_same_draws():
    found = containment.speed(40, 3, active=3, dim=6)
    assert found["verdicts that agree"] == found["draws compared"] == 3


def test_fig2(tmp_path):
    found = fig2_interior.data(draws=150)
    assert found["share"]["20,1"] > found["share"]["1000,1"] > found["share"]["1000,3"]
    assert "agrees" in fig2_interior.draw(found, tmp_path / "a.png")
    assert is_png(tmp_path / "a.png")
    found["share"]["20,1"] = 0.9
    assert "differs" in fig2_interior.draw(found, tmp_path / "a.png")


@pytest.mark.parametrize(("name", "cells"), [("fig4", 135), ("s6", 162)])
def test_containment_figures(kept, tmp_path, name, cells):
    path, caption = figures.figure(name, kept, tmp_path / "out")
    assert f"{cells} of {cells} cells" in caption
    assert is_png(path)


def test_a_cell_that_disagrees_is_named(kept):
    rows = fig4_containment.data(kept)["cells"]
    rows[10] = dataclasses.replace(rows[10], published=0.1)
    said = fig4_containment.verdict(rows, "Fig. X")
    assert "134 of 135 cells" in said
    assert "does not" in said


def test_a_missing_sweep_is_refused_with_a_message(tmp_path):
    with pytest.raises(alebo.InputError, match=r"bench\.containment check"):
        s6_containment.data(tmp_path)


def test_s4(tmp_path):
    found = s4_polytope.data(pairs=25)
    area = {k: np.mean(v["area"]) for k, v in found["found"].items()}
    assert area["hypersphere"] > area["normal"]
    assert "typical" in s4_polytope.draw(found, tmp_path / "a.png")
    assert is_png(tmp_path / "a.png")


def test_area_of_a_box():
    box = dataclasses.replace(alebo.geometry.identity(2), A=np.diag([0.5, 0.25]))
    assert s4_polytope._area(box) == pytest.approx(4.0 * 8.0, rel=1e-4)
