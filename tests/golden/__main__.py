"""`python -m tests.golden check [NAME ...]` compares today's proposals with the recorded ones; `record` replaces them.

A run diverges for good after a change in the last bit, so the report says how many of its asks agree, from the first on.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from .cases import CASES

FILE = Path(__file__).with_name("traces.json")
KEPT = 12  # coordinates of each point that are stored, beside one number that depends on all of them


def digest(X: np.ndarray) -> list[list[float]]:
    """A few coordinates of every point, and a sum over all.  n x D -> n x (KEPT + 1)"""
    D = X.shape[1]
    some = X[:, np.unique(np.linspace(0, D - 1, min(D, KEPT)).astype(int))]
    total = X @ np.cos(np.arange(D))
    return [[float(f"{v:.8g}") for v in row] for row in np.column_stack([some, total])]


def agreeing(name: str, tolerance: float = 1e-6) -> tuple[int, int]:
    """How many asks, from the first, agree with the record, and how many there are."""
    now, then = np.array(digest(CASES[name]())), np.array(json.loads(FILE.read_text())[name])
    if now.shape != then.shape:
        return 0, len(then)
    same = np.all(np.abs(now - then) <= tolerance * (1.0 + np.abs(then)), axis=1)
    return int(np.argmin(same)) if not same.all() else len(same), len(same)


def main(verb: str, *names: str) -> int:
    """Record or check these cases, all where none is named."""
    stored = json.loads(FILE.read_text()) if FILE.exists() else {}
    bad = 0
    for name in names or CASES:
        before = time.perf_counter()
        if verb == "record":
            stored[name] = digest(CASES[name]())
            said = f"{len(stored[name])} points recorded"
            FILE.write_text("{\n" + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in stored.items()) + "\n}\n")
        else:
            same, of = agreeing(name)
            bad += same < of
            said = f"{same:3d} of {of:3d} asks agree" + ("" if same == of else "   <-- differs")
        print(f"{name:18s} {said}  ({time.perf_counter() - before:.1f} s)", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ("check", "record"):
        sys.exit("usage: python -m tests.golden check|record [NAME ...]")
    sys.exit(main(*sys.argv[1:]))
