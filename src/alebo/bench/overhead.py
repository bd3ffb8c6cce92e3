"""What a stored study costs beside the model and the evaluation: seconds a trial for storage and bookkeeping.

    python -m alebo.bench.overhead                                 a journal file, D = 1000, 200 trials
    python -m alebo.bench.overhead --url postgresql://me@host/db   PostgreSQL

    python -m alebo.bench.overhead --dashboard                     and what optuna-dashboard needs to show the study

Wall-clock seconds of `claim` (without the method) and `tell`, for a method with ten embedded coordinates and a note of a
hundred numbers.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import alebo
from alebo.goals import Goals
from alebo.history import History
from alebo.methods import Sobol, Suggestion
from alebo.space import Space

CLOCK = {"method": 0.0}


@dataclass(frozen=True)
class Cheap(Sobol):
    """Random points with coordinates and a note as ALEBO's; its own time is counted and taken off."""

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        start = time.perf_counter()
        rng = np.random.default_rng(len(history))
        out = [
            Suggestion(
                rng.uniform(-1, 1, space.dimension), rng.uniform(-1, 1, 10), {"warm": rng.normal(size=100).tolist()}
            )
            for _ in range(q)
        ]
        CLOCK["method"] += time.perf_counter() - start
        return out


def measure(where: str | Path, D: int, trials: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of every claim (without the method) and of every tell."""
    space = alebo.Space.from_bounds([(-1, 1)] * D)
    study = alebo.Study.create(where, space, alebo.Minimize("loss"), method=Cheap(), budget=trials, name=name)
    asks, tells = [], []
    for _ in range(trials):
        CLOCK["method"] = 0.0
        start = time.perf_counter()
        trial = study.claim(1)[0]
        asks.append(time.perf_counter() - start - CLOCK["method"])
        start = time.perf_counter()
        study.tell(trial.number, float(trial.x @ trial.x))
        tells.append(time.perf_counter() - start)
    study.close()
    return np.array(asks), np.array(tells)


def dashboard(path: str | Path) -> tuple[float, float]:
    """Seconds and megabytes of the answer with which optuna-dashboard shows a study in this journal file."""
    from wsgiref.util import setup_testing_defaults

    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    from optuna_dashboard import wsgi

    app = wsgi(JournalStorage(JournalFileBackend(str(path))))
    request: dict[str, object] = {"PATH_INFO": "/api/studies/0", "QUERY_STRING": "after=0"}
    setup_testing_defaults(request)
    status: list[str] = []
    start = time.perf_counter()
    answer = b"".join(app(request, lambda code, *_: status.append(code)))
    if not status[0].startswith("200"):
        raise RuntimeError(f"optuna-dashboard answered {status[0]}: {answer[:200]!r}")
    return time.perf_counter() - start, len(answer) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", help="PostgreSQL; without it a journal file in a temporary folder")
    parser.add_argument("--params", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument(
        "--dashboard", action="store_true", help="also ask optuna-dashboard for the study (journal only)"
    )
    asked = parser.parse_args()
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        where = asked.url or Path(folder) / "study.log"
        clock = time.process_time()
        asks, tells = measure(where, asked.params, asked.trials, f"overhead-{time.time_ns()}")
        clock = (time.process_time() - clock) / asked.trials
        size = "" if asked.url else f", {Path(where).stat().st_size / asked.trials / 1e3:.0f} kB a trial"
        if asked.dashboard and not asked.url:
            seconds, megabytes = dashboard(where)
            size += f"; optuna-dashboard shows it in {seconds:.2f} s, {megabytes:.2f} MB"
    both = asks + tells
    print(
        f"{'PostgreSQL' if asked.url else 'journal file'}, D={asked.params}, {asked.trials} trials: "
        f"{both.mean():.4f} s a trial (ask {asks.mean():.4f}, tell {tells.mean():.4f}; "
        f"last ten {both[-10:].mean():.4f}, worst {both.max():.4f}; {clock:.4f} s of our CPU, with the method){size}"
    )


if __name__ == "__main__":
    main()
