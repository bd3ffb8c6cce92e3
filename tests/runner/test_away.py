"""A database that goes away: every call waits, outcomes in hand are kept, and a living worker keeps its trials."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import alebo
from alebo.methods import Sobol
from alebo.runner import _claims

from . import functions as fn
from .postgres import Server

SPACE = alebo.Space.from_bounds([(-1, 1)] * 5)
GOAL = alebo.Minimize("loss")


def create(url: str, name: str, budget: int = 20) -> alebo.Study:
    return alebo.Study.create(url, SPACE, GOAL, name=name, method=Sobol(), seed=3, budget=budget)


VERBS: dict[str, Callable[[alebo.Study], Any]] = {
    "tell": lambda s: s.tell(0, 0.5),
    "fail": lambda s: s.fail(1, "broken"),
    "claim": lambda s: s.claim(1),
    "ask": lambda s: s.ask(1),
    "point": lambda s: s.tell({f"x{i}": 0.1 for i in range(5)}, 2.0),
    "history": lambda s: s.history,
    "budget": lambda s: s.set_budget(30),
    "waiting": lambda s: s.waiting(),
}


def test_every_call_waits_for_a_server_that_restarts(
    postgres_server: Server, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    studies = {}
    for name in VERBS:
        studies[name] = create(postgres_server.url, "restart-" + name)
        studies[name].claim(3)
    with postgres_server.away(1.0), ThreadPoolExecutor(len(VERBS)) as threads:
        calls = {name: threads.submit(verb, studies[name]) for name, verb in VERBS.items()}
        for call in calls.values():
            call.result(timeout=60)
    assert "does not answer" in caplog.text
    assert "answers again" in caplog.text
    assert studies["tell"].history[0].outcomes["loss"].mean == 0.5
    assert studies["fail"].history[1].reason == "broken"
    assert [len(studies[n].history) for n in ("claim", "ask", "point")] == [4, 4, 4]
    assert studies["budget"].budget == 30
    assert not list((tmp_path / "spool").rglob("*.json"))  # what was kept has been written
    for study in studies.values():
        study.close()


def test_no_worker_dies_of_a_restart(postgres_server: Server) -> None:
    study = create(postgres_server.url, "workers", budget=16)
    seen: list[int] = []
    errors: list[BaseException] = []
    opened = threading.Barrier(5)  # a study that is being opened when the server goes is refused, and rightly

    def work() -> None:
        try:
            mine = alebo.Study.open(postgres_server.url, name="workers")
            opened.wait(60)
            with ThreadPoolExecutor(1) as executor:
                alebo.run(
                    mine,
                    lambda params: (time.sleep(0.2), fn.sphere(params))[1],
                    executor=executor,
                    callback=lambda trial, _: seen.append(trial.number),
                )
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    opened.wait(60)
    time.sleep(0.3)
    for mode in ("fast", "immediate"):
        postgres_server.restart(mode, away=0.3)
        time.sleep(0.3)
    postgres_server.cut()
    for t in threads:
        t.join(timeout=60)
    assert not errors
    assert sorted(seen) == list(range(16))  # each finished once, none evaluated twice
    assert len(study.history.complete) == 16


def test_an_outcome_that_cannot_be_written_is_kept_and_written_at_the_next_start(
    postgres_server: Server, tmp_path: Path
) -> None:
    study = create(postgres_server.url, "kept")
    first, second = study.claim(2)
    study.patience = 0.3
    postgres_server.stop()
    try:
        with pytest.raises(alebo.StudyError, match=r"away for.*outcome of trial 0 is kept in"):
            study.tell(first.number, (0.25, 0.5))
        study.close()
    finally:
        postgres_server.start()
    (kept,) = (tmp_path / "spool").rglob("*.json")
    assert kept.stat().st_mode & 0o077 == 0  # for us only
    assert kept.parent.stat().st_mode & 0o077 == 0
    again = alebo.Study.open(postgres_server.url, name="kept")
    assert again.history[0].outcomes["loss"] == alebo.Outcome(0.25, 0.5)
    assert not list((tmp_path / "spool").rglob("*.json"))
    assert again.history[second.number].state is alebo.State.PENDING


POINT = {f"x{i}": 0.1 for i in range(5)}


def test_a_point_that_was_not_asked_is_kept_and_written_once(postgres_server: Server, tmp_path: Path) -> None:
    study = create(postgres_server.url, "point-kept")
    study.patience = 0.3
    postgres_server.stop()
    try:
        with pytest.raises(alebo.StudyError, match=r"away for.*outcome of a point that was not asked is kept in"):
            study.tell(POINT, (0.25, 0.5))
        study.close()
    finally:
        postgres_server.start()
    (kept,) = (tmp_path / "spool").rglob("*.json")
    copy = kept.read_bytes()
    again = alebo.Study.open(postgres_server.url, name="point-kept")
    (trial,) = again.history
    assert (trial.params, trial.outcomes["loss"], trial.asked) == (POINT, alebo.Outcome(0.25, 0.5), False)
    assert not list((tmp_path / "spool").rglob("*.json"))
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(copy)  # another process had found the same file
    assert len(alebo.Study.open(postgres_server.url, name="point-kept").history) == 1
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(copy.replace(b'"x0"', b'"y0"'))  # of another study
    assert len(alebo.Study.open(postgres_server.url, name="point-kept").history) == 1
    assert kept.exists()


def test_a_point_half_written_when_the_server_went_is_finished_not_repeated(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = create(postgres_server.url, "point-half")
    study.patience = 0.3
    monkeypatch.setattr(study._storage, "finish", lambda *_: (_ for _ in ()).throw(alebo.StudyError("It is away.")))
    with pytest.raises(alebo.StudyError, match="is kept in"):
        study.tell(POINT, 0.25)
    again = alebo.Study.open(postgres_server.url, name="point-half")
    assert [t.state for t in again.history] == [alebo.State.COMPLETE]
    assert again.history[0].outcomes["loss"].mean == 0.25


def test_what_was_corrected_while_telling_is_kept_with_the_outcome(postgres_server: Server) -> None:
    study = create(postgres_server.url, "corrected-kept")
    study.ask()
    study.patience = 0.3
    postgres_server.stop()
    try:
        with pytest.raises(alebo.StudyError, match="outcome of trial 0 is kept in"):
            study.tell(0, 0.5, params={"x0": 0.9})
    finally:
        postgres_server.start()
    trial = alebo.Study.open(postgres_server.url, name="corrected-kept").history[0]
    assert (trial.outcomes["loss"].mean, trial.params["x0"]) == (0.5, 0.9)


def test_an_outcome_that_cannot_be_kept_is_said_to_be_not_stored(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, other = create(postgres_server.url, "not-kept"), create(postgres_server.url, "not-kept")
    other.ask(2)
    study.patience = 0.3
    postgres_server.stop()
    try:
        with pytest.raises(alebo.StudyError, match=r"trial 1 is not stored: report it again"):
            study.tell(1, 0.5)  # this object does not know the trial yet
        monkeypatch.setattr(study._spool, "keep", lambda *_: None)  # a full disk
        with pytest.raises(alebo.StudyError, match=r"a point that was not asked is not stored: report it again"):
            study.tell(POINT, 0.5)
    finally:
        postgres_server.start()


def test_what_was_kept_does_not_replace_an_outcome_and_never_reaches_another_study(
    postgres_server: Server, tmp_path: Path
) -> None:
    study = create(postgres_server.url, "first-stands")
    trial = study.claim(1)[0]
    study.hold(trial, 0.5)
    study.rescue()  # as if the worker had been killed while it waited
    create(postgres_server.url, "other").ask()
    other = alebo.Study.open(postgres_server.url, name="other")
    assert not other.history[0].complete
    study.fail(trial.number, "another worker was first")
    again = alebo.Study.open(postgres_server.url, name="first-stands")
    assert again.history[0].reason == "another worker was first"
    assert not list((tmp_path / "spool").rglob("*.json"))


def test_an_outcome_that_another_process_wrote_for_us_is_acknowledged(tmp_path: Path) -> None:
    study = create(str(tmp_path / "s.log"), "alebo")
    trial = study.claim(1)[0]
    study.hold(trial, 0.5)
    study.rescue()  # the storage was away for a moment
    assert create(str(tmp_path / "s.log"), "alebo").history[0].complete  # somebody started, and found it
    assert study.tell(trial.number, 0.5).complete
    with pytest.raises(alebo.StateError):
        study.tell(trial.number, 0.5)


def test_a_worker_that_asks_too_late_takes_what_the_budget_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = create(str(tmp_path / "s.log"), "alebo", 3), create(str(tmp_path / "s.log"), "alebo", 3)
    first.claim(1)
    add, quicker = second._storage.add, []

    def late(trial: Any) -> bool:
        if not quicker:
            quicker.extend(first.claim(1))  # the lock on asking was lost, and another worker was quicker
        return add(trial)

    monkeypatch.setattr(second._storage, "add", late)
    assert [t.number for t in second.claim(2)] == [2]
    assert [t.number for t in second.claim(2)] == []


# -- leases -----------------------------------------------------------------------------------------------------------


def test_a_worker_that_lost_its_connection_is_not_taken_for_dead(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_claims, "BEAT", 0.05)
    living, other = create(postgres_server.url, "lease"), create(postgres_server.url, "lease")
    assert [t.number for t in living.claim(1)] == [0]
    postgres_server.cut()  # with the connection went the lock
    assert [t.number for t in other.claim(1)] == [1]
    until = time.monotonic() + 20
    while not other._storage.claims._held(living.worker):  # renewed by itself, without a call of ours
        assert time.monotonic() < until, "the lease was not renewed"
        time.sleep(0.05)
    living.close()
    assert [t.number for t in other.claim(1)] == [0]  # released: at once


def test_a_dead_worker_of_another_machine_is_known_after_its_lease(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, other = create(postgres_server.url, "far"), create(postgres_server.url, "far")
    dead.worker = "far-away:1:no-such-machine:abc"
    dead.claim(1)
    dead._storage.claims.close()  # its machine lost power
    monkeypatch.setattr(_claims, "LEASE", 0.4)
    assert [t.number for t in other.claim(1)] == [1]
    time.sleep(0.5)
    assert [t.number for t in other.claim(1)] == [0]


@pytest.mark.parametrize("where", ["file", "postgres"])
def test_a_late_outcome_is_accepted_if_nobody_was_first(
    where: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_claims, "LEASE", -1.0)
    url = str(tmp_path / "s.log") if where == "file" else request.getfixturevalue("postgres")
    late, other = create(url, "late"), create(url, "late")
    late.claim(1)
    late._storage.claims.close()  # cut off for longer than its lease
    assert [t.number for t in other.claim(1)] == [0]
    late.tell(0, 0.25)
    with pytest.raises(alebo.StateError, match="reported once"):
        other.tell(0, 0.75)
    assert other.history[0].outcomes["loss"].mean == 0.25


def test_a_driver_never_takes_over_its_own_living_trial(tmp_path: Path) -> None:
    study = create(str(tmp_path / "s.log"), "alebo", budget=3)
    started: list[float] = []

    def slow(params: dict[str, Any]) -> float:
        started.append(params["x0"])
        time.sleep(0.4)
        return fn.sphere(params)

    with ThreadPoolExecutor(4) as executor:
        opt = alebo.run(study, slow, executor=executor, workers=4, stale_after=0.01)
    assert len(opt.history.complete) == 3
    assert len(started) == 3


@pytest.mark.parametrize("where", ["file", "postgres"])
def test_a_clock_that_jumps_takes_nothing(
    where: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = str(tmp_path / "s.log") if where == "file" else request.getfixturevalue("postgres")
    living, other = create(url, "clock"), create(url, "clock")
    living.claim(1)
    living.ask()
    real = time.time
    for jump in (1e7, -1e7):
        monkeypatch.setattr(time, "time", lambda jump=jump: real() + jump)
        before = len(other.history)
        assert [t.number for t in other.claim(1, stale_after=3600.0)] == [before]


# -- two tellers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["file", "postgres"])
def test_of_two_tellers_the_first_stands(where: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = str(tmp_path / "s.log") if where == "file" else request.getfixturevalue("postgres")
    tellers = [create(url, "two"), create(url, "two")]
    trials = tellers[0].ask(12)
    gate = threading.Barrier(2)
    accepted: dict[int, list[float]] = {t.number: [] for t in trials}

    def tell(k: int) -> None:
        for t in trials:
            gate.wait()
            with suppress(alebo.StateError):
                tellers[k].tell(t.number, float(k))
                accepted[t.number].append(float(k))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(tell, range(2)))
    stored = {t.number: [t.outcomes["loss"].mean] for t in alebo.Study.open(url, name="two").history}
    assert stored == accepted  # one acknowledged for each, and that one is what is read


def test_a_refused_outcome_writes_nothing_of_itself(tmp_path: Path) -> None:
    a, b = create(str(tmp_path / "s.log"), "alebo"), create(str(tmp_path / "s.log"), "alebo")
    number = a.ask()[0].number
    late = b._refreshed().tell(number, 2.0)  # b has checked, and is about to write
    a.tell(number, 1.0)
    size = (tmp_path / "s.log").stat().st_size
    with pytest.raises(alebo.StateError, match="reported once"):
        b._finish(late)
    assert (tmp_path / "s.log").stat().st_size == size
    assert b.history[number].outcomes["loss"].mean == 1.0


def test_waiting_is_a_line_on_the_screen(postgres_server: Server, caplog: pytest.LogCaptureFixture) -> None:
    study = create(postgres_server.url, "line")
    with caplog.at_level(logging.WARNING, "alebo.runner.storage"), postgres_server.away(0.5):
        study.ask()
    lines = [r.getMessage() for r in caplog.records if "does not answer" in r.getMessage()]
    assert lines
    assert "***" in lines[0]
