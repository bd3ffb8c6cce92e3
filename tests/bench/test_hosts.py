"""The comparison of the integrations with their hosts: the pipeline has its 30 parameters, runs are stored once, the table adds up."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import alebo
from alebo.bench import hosts
from tests.conftest import require_module


def test_the_best_so_far_starts_with_the_first_finished_one() -> None:
    assert hosts._best(np.array([math.nan, 3.0, 4.0, 1.0])) == [math.inf, 3.0, 3.0, 1.0]


def test_a_run_is_stored_as_a_line_and_counted_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = {"last": [math.inf, 2.0], "ignore": [math.inf, 3.0]}
    monkeypatch.setitem(hosts.PARTS, "pruned", (lambda who, seed: [v + seed for v in fake[who]], ("last", "ignore")))
    for seed in (0, 1):
        for who in fake:
            hosts.run("pruned", who, seed, tmp_path)
    lines = hosts.stored("pruned", tmp_path)
    assert [(line["who"], line["seed"], line["best"]) for line in lines[:2]] == [("last", 0, 2.0), ("ignore", 0, 3.0)]
    assert lines[0]["trace"] == [None, 2.0]
    assert lines[0]["default"] == alebo.methods.default_method().name
    rows = hosts.table("pruned", tmp_path).splitlines()
    assert rows[2].startswith("| last | 2 | 2.50000 | 0.50000 | 2.50000 | 3.00000 |")
    assert rows[3].startswith("| ignore | 2 | 3.50000 |")


def test_what_is_stored_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    calls: list[tuple[str, int]] = []
    monkeypatch.setitem(hosts.PARTS, "ax", (lambda who, seed: (calls.append((who, seed)), [1.0])[1], ("alebo", "ax")))
    hosts.main(["ax", "--seeds", "0-1"])
    hosts.main(["ax", "--seeds", "0-2", "--who", "ax"])
    assert calls == [("alebo", 0), ("ax", 0), ("alebo", 1), ("ax", 1), ("ax", 2)]
    hosts.main(["ax", "--table"])
    assert len(calls) == 5
    assert "| ax | 3 |" in capsys.readouterr().out
    assert len([json.loads(line) for line in Path("results/hosts/ax.jsonl").read_text().splitlines()]) == 5


@pytest.mark.filterwarnings("ignore")
def test_the_pipeline_takes_every_point_of_its_space() -> None:
    require_module("sklearn", "sklearn")
    from sklearn.model_selection import cross_val_score

    from alebo.bench.hosts_pipeline import SPACE, data, pipeline

    assert len(SPACE) == 30
    assert set(SPACE.names) <= set(pipeline().get_params())
    X, y = data()
    for seed in range(3):
        params = SPACE.decode(np.random.default_rng(seed).uniform(-1, 1, SPACE.dimension))
        scores = cross_val_score(
            pipeline().set_params(**params), X[::4], y[::4], cv=2, scoring="neg_log_loss", error_score="raise"
        )
        assert -3 < scores.mean() < 0
    assert set(hosts._scipy(SPACE)) == set(SPACE.names)
