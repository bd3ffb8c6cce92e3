"""`python -m tests.faults`: kill, cut, flip, fill and starve running studies, and see that they go on. One table.

Everything is real: processes ended by signals, a PostgreSQL server that is restarted, file systems that are full, a
clock that jumps, simulators that fork and daemonise. Drivers write down every outcome that was acknowledged, outside of
the study; all must be there with their values afterwards, and proposals must be those of the same run uninterrupted.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from . import kills, storage
from .table import COLUMNS, Row


def random_verbs(examples: int, steps: int) -> Row:
    """The state machine, as a row."""
    from hypothesis import HealthCheck, settings
    from hypothesis.stateful import run_state_machine_as_test

    from .machine import StudyMachine

    row = Row("random verbs of three workers, by a model")
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    row.cases, row.faults = examples, examples
    try:
        run_state_machine_as_test(StudyMachine, settings=chosen)
    except Exception as error:
        row.stop(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return row


def steps(scale: float) -> dict[str, Callable[[Path], Iterator[Row] | Row]]:
    """Every fault, by a short name; `scale` is 1 for the quarter of an hour."""

    def n(count: int) -> int:
        return max(2, round(scale * count))

    return {
        "driver": lambda folder: kills.drivers(folder, n(60)),
        "workers": lambda folder: kills.workers(folder, n(15)),
        "families": lambda folder: kills.families(folder, max(4, n(24))),
        "simulators": lambda folder: kills.simulators(folder, max(1, round(2 * scale)), n(1024)),
        "restarts": lambda folder: kills.restarts(folder, trials=n(160), every=3.0, seconds=0.5),
        "database-disk": storage.database_disk_full,
        "clock": lambda folder: storage.clocks(folder, n(10)),
        "torn": lambda folder: storage.torn(folder, n(20)),
        "damaged": lambda folder: storage.damaged(folder, n(60)),
        "flips": lambda folder: storage.flips(folder, n(1000)),
        "disk": storage.disk_full,
        "breaking": lambda folder: storage.breaking(folder, n(100)),
        "verbs": lambda folder: random_verbs(n(60), 40),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="only the faults whose short name has this word")
    parser.add_argument("--scale", type=float, default=1.0, help="how many of each: 1 takes about a quarter of an hour")
    parser.add_argument(
        "--long-restarts", action="store_true", help="500 trials, a restart every 20 s, and nothing else"
    )
    asked = parser.parse_args()
    import optuna
    import torch

    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.disable(logging.WARNING)
    chosen = {name: step for name, step in steps(asked.scale).items() if asked.only in name}
    if asked.long_restarts:
        chosen = {"long": lambda folder: kills.restarts(folder, trials=500, every=20.0, seconds=1.0)}
    print(Row.head(), flush=True)
    rows: list[Row] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="alebo-faults-", ignore_cleanup_errors=True) as temporary:
        Path(temporary).chmod(0o755)  # the server runs as somebody else
        os.environ["ALEBO_SPOOL"] = temporary + "/spool"
        for step in chosen.values():
            found = step(Path(temporary))
            for row in [found] if isinstance(found, Row) else found:
                rows.append(row)
                print(row.line(), flush=True)
    total = Row("all", **{c: sum(getattr(r, c) for r in rows) for c in (*COLUMNS, "equal", "compared")})
    print(total.line() + f"{time.monotonic() - began:.0f} s")
    return 0 if rows and all(r.good for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
