"""`make bench`: what one ask costs in all the cases that users outgrow, as ratios, and whether it became slower.

    python -m alebo.bench.speed_table                 the table, a line for bench/history.jsonl, the picture of the docs
    python -m alebo.bench.speed_table --no-history    the table alone

CPU seconds of one thread. A ratio is to a fixed calculation (Cholesky factors of 400 x 400) that is timed beside each row in the same
process, so that figures of different machines and of a busy one can be compared. Peak memory is that of processes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

import alebo
from alebo.bench import instructions, speed

HISTORY = Path("bench/history.jsonl")
REPEATS = 5  # of each row: its figure is their median
SLOWER = 1.2  # times the last line's figure: a warning
SHORTEST = 0.02  # seconds below which a figure is not compared
BEFORE = {  # CPU seconds before issue 26, commit 6048e11
    "n=200, D=1000": 0.48,
    "first ask, 200 old": 8.5,
    "first ask, 1500 old": 15.0,
    "n=1000, D=1000": 5.1,
    "n=2000, D=1000": 15.0,
    "D=10000, n=50": 0.73,
    "D=100000, n=50": 7.9,
}
GOALS = {
    "n=200, D=1000": 0.15,
    "first ask, 200 old": 1.0,
    "first ask, 1500 old": 3.0,
    "n=1000, D=1000": 1.0,
    "n=2000, D=1000": 2.0,
    "n=5000, D=1000": 5.0,
    "D=10000, n=50": 0.2,
    "D=100000, n=50": 1.5,
    "first ask, D=100000": 5.0,
}


IN_ASKS = {  # goals in plain asks, n=200, D=1000
    "q=16, n=200": 4,
    "two constraints, q=4, n=200": 3,
    "two objectives, two constraints, q=4, n=200": 3,
}


def reference() -> float:
    """CPU seconds of the fixed calculation: the least of three."""
    M = np.random.default_rng(0).standard_normal((400, 400))
    S = M @ M.T + 400.0 * np.eye(400)
    times = []
    for _ in range(3):
        start = time.process_time()
        for _ in range(20):
            np.linalg.cholesky(S)
            M @ S
        times.append(time.process_time() - start)
    return min(times)


def rows() -> dict[str, Callable[[], float]]:
    """What is measured, by name; each gives CPU seconds."""

    def ask(D: int, n: int, **how: Any) -> Callable[[], float]:
        return lambda: speed.ask_seconds(speed.prepared(D, n, 12, **how), repeats=REPEATS)

    def batch(q: int, **how: Any) -> Callable[[], float]:
        return lambda: speed.ask_seconds(speed.prepared(1000, 200, 12, **how), q=q, repeats=REPEATS)

    def first(D: int, n: int) -> Callable[[], float]:
        return lambda: float(np.median([speed.first_seconds(speed.told(D, n, 12, seed=s)) for s in range(REPEATS)]))

    return {
        "n=50, D=100": ask(100, 50),
        "n=50, D=1000": ask(1000, 50),
        "n=200, D=1000": ask(1000, 200),
        "n=500, D=1000": ask(1000, 500),
        "n=1000, D=1000": ask(1000, 1000),
        "n=2000, D=1000": ask(1000, 2000),
        "n=5000, D=1000": ask(1000, 5000),
        "first ask, 200 old": first(1000, 200),
        "first ask, 1500 old": first(1000, 1500),
        "D=10000, n=50": ask(10_000, 50),
        "D=100000, n=50": ask(100_000, 50),
        "first ask, D=100000": first(100_000, 50),
        "q=16, n=200": batch(16),
        "two constraints, q=4, n=200": batch(4, wanted=speed.CONSTRAINED),
        "two objectives, two constraints, q=4, n=200": batch(4, wanted=speed.TWO_OBJECTIVES),
    }


def peak(D: int, n: int) -> float:
    """Peak memory in MB of a process that prepares a history and asks once."""
    command = [sys.executable, "-m", "alebo.bench.speed_table", "--peak", str(D), str(n)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def own_peak() -> float:
    """Peak memory of this process in MB. Linux counts that of the parent, too, in what `resource` says of a child."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.exists() else None
    return (int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024.0


def measure() -> dict[str, Any]:
    """All rows, printed as they come."""
    print("\n| one ask of ALEBO, d_e = 12 | CPU s | times the reference | before | goal |\n|---|---|---|---|---|")
    figures: dict[str, Any] = {}
    for name, seconds in rows().items():
        took, beside = seconds(), reference()
        figures[name] = {"seconds": round(took, 4), "ratio": round(took / beside, 2)}
        goal, before = GOALS.get(name, ""), BEFORE.get(name, "")
        print(f"| {name} | {took:.2f} | {took / beside:.1f} | {before} | {goal} |", flush=True)
    one = figures["n=200, D=1000"]["seconds"]
    for name, most in IN_ASKS.items():
        print(f"| {name}, in plain asks | {figures[name]['seconds'] / one:.1f} | | | {most} |")
    for D, n in ((100_000, 50), (1000, 5000)):
        figures[f"peak MB, D={D}, n={n}"] = {"mb": round(peak(D, n))}
        print(
            f"| peak MB, D={D}, n={n} | {figures[f'peak MB, D={D}, n={n}']['mb']} | | 1600 to 2000 | 1000 |", flush=True
        )
    return figures


def line_of(figures: dict[str, Any], counted: int | None) -> dict[str, Any]:
    """One line of the history."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "when": when,
        "commit": commit.strip(),
        "alebo": alebo.__version__,
        "instructions": counted,
        "rows": figures,
    }


def slower(now: dict[str, Any], last: dict[str, Any]) -> list[str]:
    """What became slower than the last line says: instructions, ratios and memory that are a fifth larger."""
    out = []
    counts = now.get("instructions"), last.get("instructions")
    if counts[0] and counts[1] and counts[0] > SLOWER * counts[1]:
        out.append(f"instructions: {counts[0] / counts[1]:.2f} times those of {last['commit']}")
    for name, had in last["rows"].items():
        got = now["rows"].get(name, {})
        if had.get("seconds", 1.0) < SHORTEST:
            continue
        for key in ("ratio", "mb"):
            if key in had and key in got and got[key] > SLOWER * had[key]:
                out.append(f"{name}: {got[key] / had[key]:.2f} times that of {last['commit']}")
    return out


def keep(line: dict[str, Any], path: Path) -> list[str]:
    """Add a line to the history, and say what became slower than in the one before."""
    known = path.read_text().splitlines() if path.exists() else []
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
    return slower(line, json.loads(known[-1])) if known else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-history", action="store_true", help="print the table and write nothing")
    parser.add_argument("--peak", nargs=2, type=int, metavar=("D", "N"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.peak:
        speed.prepared(given.peak[0], given.peak[1], 12)
        print(own_peak())
        return
    if os.environ.get("OMP_NUM_THREADS") != "1":
        print("Set OMP_NUM_THREADS=1: figures are of one thread.")
    figures = measure()
    if given.no_history:
        return
    line = line_of(figures, instructions.count())
    print(
        f"\ninstructions of the fixed calculation: {line['instructions'] or 'not counted, valgrind is not installed'}"
    )
    for warning in keep(line, HISTORY):
        print(f"SLOWER  {warning}")
    from alebo.bench.speed_picture import draw

    draw(HISTORY, Path("docs/img/speed.png"))


if __name__ == "__main__":
    main()
