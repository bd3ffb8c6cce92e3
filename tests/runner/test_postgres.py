"""Many workers on one study in a real PostgreSQL server: one record, no duplicates, nothing lost, no password shown."""

from __future__ import annotations

import logging
import multiprocessing
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import alebo
from alebo.methods import Sobol

from . import functions as fn
from .postgres import PASSWORD

SPACE = alebo.Space.from_bounds([(-1, 1)] * 30)
GOAL = alebo.Minimize("loss")


def create(url: str, name: str, **kwargs: Any) -> alebo.Study:
    settings: dict[str, Any] = {"method": Sobol(), "seed": 3, "budget": 12, **kwargs}
    return alebo.Study.create(url, SPACE, GOAL, name=name, **settings)


def points(history: alebo.History) -> list[list[float]]:
    return [t.x.tolist() for t in history]


def test_a_study_in_the_database_is_the_study_in_a_file(postgres: str, tmp_path: Any) -> None:
    goals = [GOAL, alebo.AtMost("latency", 0.0)]
    settings: dict[str, Any] = {"method": alebo.ALEBO(dim=4), "seed": 1, "budget": 5}
    theirs = alebo.Study.create(postgres, SPACE, goals, name="same", **settings)
    ours = alebo.Study.create(tmp_path / "s.log", SPACE, goals, **settings)
    a, b = alebo.run(theirs, fn.two), alebo.run(ours, fn.two)
    assert [t.to_dict() for t in a.history] == [t.to_dict() for t in b.history]
    again = alebo.Study.open(postgres, name="same")
    assert [t.to_dict() for t in again.history] == [t.to_dict() for t in a.history]
    with pytest.raises(alebo.StudyError, match="seed"):
        alebo.Study.create(postgres, SPACE, goals, name="same", method=alebo.ALEBO(dim=4), seed=2)


def _work(url: str, name: str, f: Any = fn.sphere) -> None:
    with ThreadPoolExecutor(1) as executor:
        alebo.run(alebo.Study.open(url, name=name), f, executor=executor)


def start(url: str, name: str, f: Any = fn.sphere) -> Any:
    process = multiprocessing.get_context("fork").Process(target=_work, args=(url, name, f))
    process.start()
    return process


def test_workers_share_one_study_and_lose_nothing_when_killed(postgres: str) -> None:
    study = create(postgres, "shared", budget=16)
    workers = [start(postgres, "shared", fn.slow) for _ in range(4)]
    time.sleep(1.5)
    workers[0].kill()
    workers[1].kill()
    for worker in workers:
        worker.join(timeout=60)
    assert [w.exitcode for w in workers[2:]] == [0, 0]
    history = study.history
    assert [t.number for t in history] == list(range(16))
    assert all(t.complete for t in history)
    twin = alebo.Optimizer(SPACE, GOAL, method=Sobol(), seed=3)
    assert points(history) == [t.x.tolist() for t in twin.ask(16)]  # each proposal once, none skipped


def test_a_dead_worker_is_known_at_once_and_a_living_one_respected(postgres: str) -> None:
    study = create(postgres, "life")
    living = create(postgres, "life")
    assert [t.number for t in living.claim(1)] == [0]
    assert [t.number for t in study.claim(1)] == [1]
    living.close()
    assert [t.number for t in study.claim(1)] == [0]


def test_a_lost_connection_is_opened_again(postgres: str) -> None:
    import sqlalchemy

    study = create(postgres, "lost")
    trial = study.claim(1)[0]
    engine = sqlalchemy.create_engine(postgres.replace("://", "+psycopg2://"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(
            sqlalchemy.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        )
    engine.dispose()
    study.tell(trial.number, 1.0)
    other = create(postgres, "lost")
    assert [t.number for t in study.claim(1)] == [1]
    assert [t.number for t in other.claim(1)] == [2]


def test_the_password_is_never_shown(
    postgres: str, caplog: pytest.LogCaptureFixture, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("alebo.runner._postgres.STARTING", 0.1)
    with caplog.at_level(logging.DEBUG):
        study = create(postgres, "secret", budget=2)
        alebo.run(study, fn.sphere)
        shown = [repr(study), study.where, repr(study.optimizer())]
        wrong = postgres.replace(PASSWORD, "falsch-" + PASSWORD)
        away = postgres.rsplit(":", 1)[0] + ":1/postgres"
        for url in (wrong, away, "postgresql://me:" + PASSWORD + "@", "mysql://me:" + PASSWORD + "@host/db"):
            with pytest.raises(alebo.StudyError) as caught:
                alebo.Study.open(url)
            shown.append(str(caught.value))
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None or caught.value.__suppress_context__
    out, err = capfd.readouterr()
    assert PASSWORD not in " ".join([*shown, caplog.text, out, err])


def test_an_unreachable_database_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alebo.runner._postgres.STARTING", 0.5)
    start = time.monotonic()
    with pytest.raises(alebo.StudyError, match="must be reachable"):
        alebo.Study.open("postgresql://me@127.0.0.1:1/db")
    assert time.monotonic() - start < 10


def test_many_workers_may_begin_at_once(postgres: str) -> None:
    """Tables and study are made by the first; the others find them."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(postgres.replace("://", "+psycopg2://"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("CREATE DATABASE fresh"))
    engine.dispose()
    url = postgres.rsplit("/", 1)[0] + "/fresh"

    def begin() -> None:
        create(url, "new", budget=4).close()
        os._exit(0)

    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=begin) for _ in range(4)]
    for p in processes:
        p.start()
    for p in processes:
        p.join(timeout=60)
    assert [p.exitcode for p in processes] == [0] * 4
    assert len(alebo.Study.open(url, name="new").history) == 0


def test_corrections_and_queued_points_are_shared(postgres: str) -> None:
    space = alebo.Space.from_bounds([(0, 1)] * 3)
    study = alebo.Study.create(postgres, space, alebo.Minimize("y"), method=Sobol(), name="corrected")
    study.enqueue({"x0": 0.1, "x1": 0.2, "x2": 0.3})
    first, second = study.ask(2)
    assert first.params == {"x0": 0.1, "x1": 0.2, "x2": 0.3}
    study.tell(first.number, 7.0)
    study.tell(second.number, 1.0, params={"x1": 0.625})
    study.amend(first.number, 0.7, reason="typing mistake")
    other = alebo.Study.open(postgres, name="corrected")
    assert other.history[0].outcomes["y"].mean == 0.7
    assert other.history[0].earlier[0].outcomes["y"].mean == 7.0
    assert other.history[1].params["x1"] == 0.625
    assert other.history[1].earlier[0].params == second.params
    assert other.best().number == 0
    other.forget(0)
    assert study.best().number == 1
