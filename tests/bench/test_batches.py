"""The benchmark of batches: every problem of it runs in batches, and says what was reached."""

from __future__ import annotations

import sys

import pytest

from alebo.bench import batches


def test_every_problem_runs_in_batches(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(batches, "BUDGETS", dict.fromkeys(batches.BUDGETS, 18))
    monkeypatch.setattr(sys, "argv", ["batches", "--seeds", "3", "--sizes", "9"])
    batches.main()
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in batches.BUDGETS]
    assert all(" | 18 | 9 | " in row for row in rows)


def test_what_a_run_has_in_the_end_is_its_best_feasible_value_or_its_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BUDGETS", dict.fromkeys(batches.BUDGETS, 12))
    made = batches.two_and_two()
    assert -9.0 < batches.final(made, 4, 1) < 0.0  # of the nine below the reference
    centre = made.evaluate(made.space.encode({p.name: 0.0 for p in made.space.parameters}))
    assert centre["c"] <= 0.6
    assert centre["d"] <= 0.7
    assert batches.final(made, 4, 1) == batches.final(made, 4, 1)
