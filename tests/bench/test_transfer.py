"""The table of what earlier studies save, from runs made up for it."""

from __future__ import annotations

import numpy as np
import pytest

import alebo
from alebo.bench import multitask
from alebo.bench.problems import Problem
from alebo.bench.transfer import PAIRS, table


def run(variant: str, seed: int, trace: list[float], weight: list[float]) -> dict:
    return {"pair": "lasso", "variant": variant, "seed": seed, "trace": trace, "weight": weight, "ask_seconds": 10.0}


def test_evaluations_are_counted_to_what_the_study_alone_has_at_its_end() -> None:
    alone = [1.0 - 0.005 * i for i in range(100)]
    helped = [max(0.9 - 0.1 * i, 0.4) for i in range(50)]
    text = table([run("none", 0, alone, []), run("sources", 0, helped, [0.75]), run("sources", 9, helped, [0.1])])
    none, sources = text.splitlines()[2:]
    assert "| 100 |" in none
    assert [cell.strip() for cell in sources.split("|")[3:4]] == ["1"]  # seed 9 has nothing to compare with
    assert "| 5 | 5 | 0.75 | 0.20 |" in sources


def test_pairs_have_the_same_parameters() -> None:
    pair = PAIRS["hartmann6"]
    assert pair.earlier(0).space == pair.present(0).space
    x = pair.earlier(0).optimisers[0]
    assert pair.present(0).evaluate(x) != pair.present(1).evaluate(x)


def test_the_multitask_process_begins_at_the_best_source_point_and_goes_on() -> None:
    space = alebo.Space.from_bounds([(0, 1)] * 3)
    problem = Problem("bowl", space, lambda x: float(np.sum((x - 0.4) ** 2)))
    X = np.random.default_rng(0).random((8, 3))
    y = np.sum((X - 0.3) ** 2, axis=1)
    trace, seconds = multitask.search(problem, 0, 5, X, y)
    assert trace[0] == pytest.approx(np.sum((X[np.argmin(y)] - 0.4) ** 2))
    assert len(trace) == len(seconds) == 5
    assert trace == sorted(trace, reverse=True)
    assert trace[-1] < trace[0]
