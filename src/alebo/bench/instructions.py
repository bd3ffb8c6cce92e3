"""Processor instructions of a small fixed calculation, counted by valgrind: the same on an idle and on a busy machine.

    python -m alebo.bench.instructions            counts them (half a minute); None where valgrind is not installed
    python -m alebo.bench.instructions work       the calculation itself

It is what asks do besides their models: an embedding and its polytope, random points, membership, parameters in and out. Torch is
not loaded, because loading it takes longer than all of this.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import numpy as np

import alebo
from alebo import geometry


def work() -> None:
    """Ordinary sizes and very many parameters."""
    for D, dim in ((1000, 12), (10_000, 8)):
        embedding = geometry.hypersphere(D, dim, 0).orthonormal()
        domain = embedding.domain
        Y = domain.sample(64, 0, steps=4)
        domain.ray(Y, np.roll(Y, 1, axis=0))
        domain.contains(domain.pull_inside(1.01 * Y))
        space = alebo.Space.from_bounds([(0.0, 1.0)] * D)
        for x in embedding.up(Y[:8]):
            space.encode(space.decode(np.clip(x, -1.0, 1.0)))
        embedding.grow(2, 0)


def count() -> int | None:
    """Instructions of `work`, with the start of Python; None where they cannot be counted."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return None
    words = [valgrind, "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    calm = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [*words, sys.executable, "-m", "alebo.bench.instructions", "work"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=calm)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    return None if found is None or done.returncode else int(found[1].replace(",", ""))


if __name__ == "__main__":
    if sys.argv[1:] == ["work"]:
        work()
    else:
        print(count())
