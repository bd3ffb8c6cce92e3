"""The recorded proposals that are quick to make: a refactoring that moves a point is seen at once.

All of them: `python -m tests.golden check`. Other processors round the last bit another way, so only the first asks count. Most
of the difference is made by OpenBLAS, which has other kernels for them: those of the record are asked for where they can run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full_chains

KERNELS = "SkylakeX"  # of OpenBLAS, with which the proposals were recorded
NEEDED = "avx512f"
CALL = "import sys; from tests.golden.__main__ import agreeing; print(*agreeing(sys.argv[1], tolerance=1e-4))"


def flags() -> str:
    """What the processor can do; empty where the system does not tell."""
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""


@pytest.mark.parametrize("name", ["branin-100", "batches", "old-data", "paper", "hesbo", "baxus", "ebo", "bo"])
def test_the_first_proposals_are_the_recorded_ones(name: str) -> None:
    able = NEEDED in flags()
    env = {**os.environ, **({"OPENBLAS_CORETYPE": KERNELS} if able else {})}
    done = subprocess.run(
        [sys.executable, "-c", CALL, name], capture_output=True, text=True, env=env, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 0, done.stderr
    same, of = map(int, done.stdout.split()[-2:])
    assert same >= (of // 2 if able else of // 3)  # with other kernels hardly more than the first points agree
