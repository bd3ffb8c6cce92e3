"""Advice: the paper's two points, chances that behave, messages, and a table that answers offline and at once."""

from __future__ import annotations

import json
import time
from importlib.resources import files

import numpy as np
import pytest

import alebo
from alebo.geometry import advice as module


@pytest.mark.parametrize(("budget", "lowest", "highest"), [(50, 8, 10), (500, 15, 20)])
def test_the_papers_two_points(budget, lowest, highest):
    """Supplement, "Selecting the Embedding Dimension": 8 or 10 for 50 evaluations, 15 to 20 for 500."""
    for D in (100, 1000):
        assert lowest <= alebo.advise(D=D, budget=budget).recommendation <= highest


def test_more_budget_never_recommends_less():
    chosen = [alebo.advise(D=1000, budget=budget).recommendation for budget in (5, 20, 50, 100, 200, 500, 1000, 10**5)]
    assert chosen == sorted(chosen)
    assert chosen[0] >= 1
    assert chosen[-1] == 20


def test_rows_say_chance_and_cost():
    told = alebo.advise(D=100, budget=200)
    assert told.active == (2, 4, 6, 8, 10)
    dims = [row.dim for row in told.rows]
    assert dims == sorted(set(dims))
    assert told.recommendation in dims
    for row in told.rows:
        assert row.parameters == row.dim * (row.dim + 1) // 2 + 3
        assert row.share == row.parameters / 200
        for a, p in row.probability.items():
            assert (p is None) == (a > row.dim)
            assert p is None or 0.0 <= p <= 1.0
    by_dim = {row.dim: row for row in told.rows}
    assert by_dim[2].cost == "learns in the first quarter"
    assert by_dim[20].cost == "more unknowns than evaluations"


def test_chances_are_those_of_the_paper():
    """D=100 as published, within 3 combined standard errors; D=150 between its neighbours."""
    told = alebo.advise(D=100, budget=500, active=6)
    published = {8: 0.112, 12: 0.456, 16: 0.851, 20: 0.956}
    for row in told.rows:
        if row.dim in published:
            p, q = row.probability[6], published[row.dim]
            assert abs(p - q) <= 3 * np.sqrt((p * (1 - p) + q * (1 - q)) / 1000)
    assert module.probability(200, 6, 12) < module.probability(150, 6, 12) < module.probability(100, 6, 12)


@pytest.mark.parametrize("cell", [(75, 4, 9), (300, 6, 13), (35, 5, 22), (15, 3, 6), (30, 8, 12)])
def test_interpolation_is_close_to_a_computation(cell):
    D, active, dim = cell
    p = alebo.containment_probability("hypersphere", D=D, active=active, dim=dim, samples=600, seed=3)
    assert module.probability(D, active, dim) == pytest.approx(p.value, abs=0.03 + 3 * p.standard_error)


def test_known_active_variables_need_no_more_than_enough():
    few = alebo.advise(D=100, budget=500, active=2)
    assert few.recommendation < few.supported
    chance = {row.dim: row.probability[2] for row in few.rows}
    assert chance[few.recommendation] >= 0.95
    assert "only slow the learning" in few.reason
    several = alebo.advise(D=100, budget=500, active=[2, 6])
    assert several.active == (2, 6)
    assert several.recommendation > few.recommendation


def test_reasons_in_words():
    assert "highest dimension that 50 evaluations support" in alebo.advise(D=100, budget=50).reason
    assert "may also be left out" in alebo.advise(D=100, budget=50).reason
    small = alebo.advise(D=6, budget=500, active=6)
    assert small.recommendation == 6
    assert "no embedding is needed" in small.reason
    many = alebo.advise(D=100, budget=50, active=12)
    assert "cannot contain the optimum" in many.reason
    assert "less than even" in alebo.advise(D=1000, budget=50, active=6).reason


def test_prints_a_table():
    text = str(alebo.advise(D=100, budget=200))
    marked = [line for line in text.splitlines() if line.startswith("> ")]
    assert len(marked) == 1
    assert marked[0].split()[1] == "14"
    assert "Recommended: dim=14." in text
    assert max(map(len, text.splitlines())) <= 110
    widths = {line.index("learn") for line in text.splitlines() if line[2:5].strip().isdigit() and "learns" in line}
    assert len(widths) == 1  # columns stand under each other


def test_plot(tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    told = alebo.advise(D=100, budget=200)
    file = tmp_path / "advice.png"
    told.plot(file)
    assert file.read_bytes().startswith(b"\x89PNG")
    axes = Figure().subplots()
    assert told.plot(axes) is axes
    assert len(axes.lines) == len(told.active) + 1
    assert axes.get_xlabel() == "dimension of the embedding"


def test_a_missing_matplotlib_is_refused_with_a_message(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(alebo.MissingPartError, match=r"alebo\[plot\]"):
        alebo.advise(D=100, budget=200).plot("x.png")


def test_outside_the_table_it_computes(monkeypatch):
    monkeypatch.setattr(module, "_LIVE_DRAWS", 5)
    seen = []
    told = alebo.advise(D=5500, budget=50, active=2, progress=lambda *a: seen.append(a))
    assert "made now" in told.source
    assert seen[-1][0] == seen[-1][1] == len(told.rows)
    assert module.probability(60, 14, 20) is not None


def test_the_table_ships_small_and_answers_at_once():
    text = (files("alebo") / "data" / "containment.json").read_text()
    assert len(text) < 200_000
    shipped = json.loads(text)
    draws = {int(D): n for D, n in shipped["samples"].items()}
    assert min(draws.values()) >= 500
    chance = {(D, a, dim): hits / draws[D] for D, a, dim, hits in shipped["hits"]}
    for (D, a, dim), p in chance.items():
        better = chance.get((D, a, dim + 1))
        if better is not None:  # never falls by more than noise when the embedding grows by one
            assert better - p > -4.5 * np.sqrt((p * (1 - p) + better * (1 - better)) / draws[D]) - 1e-9
    alebo.advise(D=300, budget=100)
    started = time.perf_counter()
    alebo.advise(D=700, budget=150)
    assert time.perf_counter() - started < 0.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"D": 0, "budget": 10}, "`D` is a whole number of at least 1; got 0"),
        ({"D": 10, "budget": 0}, "`budget` is a whole number of at least 1; got 0"),
        ({"D": 10, "budget": 2.5}, "whole number"),
        ({"D": 10, "budget": 20, "active": 11}, "`active` is at most D"),
        ({"D": 10, "budget": 20, "active": 0}, "`active` is a whole number"),
        ({"D": 10, "budget": 20, "active": []}, "`active` is at most D"),
    ],
)
def test_bad_input_is_refused_with_a_message(given, message):
    with pytest.raises(alebo.InputError, match=message):
        alebo.advise(**given)
