"""The measure of charts of importance: its functions, its noise and its table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from alebo.bench.importance import ACTIVE, FRESH, D, noise_of, sparse_function, table


def test_only_the_active_parameters_matter() -> None:
    f, active = sparse_function(3)
    assert len(active) == ACTIVE
    x = np.random.default_rng(0).uniform(-1, 1, D)
    for j in range(D):
        moved = x.copy()
        moved[j] = -x[j]
        assert (f(moved) != f(x)) == (j in active)


def test_noise_is_a_share_of_the_functions_deviation() -> None:
    f, _ = sparse_function(3)
    rng = np.random.default_rng(1)
    spread = np.std([f(x) for x in rng.uniform(-1, 1, (2000, D))])
    draw = noise_of(3, 0.1)
    assert 0.9 < np.std([draw() for _ in range(2000)]) / (0.1 * spread) < 1.1


def test_fresh_functions_have_rows_of_their_own(tmp_path: Path) -> None:
    line = {"active": ["a", "b"], "report": ["a"], "slope": ["c"], "fanova": ["a", "c"]}
    lines = [json.dumps({**line, "function": k}) for k in (0, 1, FRESH, FRESH + 1, FRESH + 2)]
    (tmp_path / "sobol.jsonl").write_text("\n".join(lines) + "\n")
    rows = table(tmp_path).splitlines()[2:]
    assert rows[0] == "| sobol | 2 (0 to 1) | report | 2 | 100% | 50% |"
    assert rows[1] == "| sobol | 2 (0 to 1) | slope (0.1) | 2 | 0% | 0% |"
    assert rows[3] == "| sobol | 3 (100 to 102) | report | 3 | 100% | 50% |"
    assert len(rows) == 6
