"""The small parts under a study, each by itself: patience, claims, records, the spool, reasons."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import alebo
from alebo.goals import Goals, Outcome
from alebo.history import State, Trial
from alebo.runner import _claims, _patience, _spool, _trials
from alebo.runner._patience import Away, Patience
from alebo.runner._pools import reason_of
from alebo.runner._records import (
    amended,
    amended_keys,
    check_owner,
    compare,
    constraints_of,
    plain,
    shown,
    span_of,
    trial_of,
)
from alebo.runner._waiting import WAITING, begun_by, waits
from tests.conftest import require_module

SPACE = alebo.Space.from_bounds([(-1, 1)] * 4)
GOALS = Goals([alebo.Maximize("gain"), alebo.AtMost("mass", 2.0), alebo.AtLeast("life", 5.0)])


# -- patience and claims --------------------------------------------------------------------------------------------------


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now, self.naps = 100.0, []  # type: ignore[var-annotated]

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds


def test_waiting_has_growing_pauses_and_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, kept = Clock(), []
    monkeypatch.setattr(_patience.time, "monotonic", clock.monotonic)
    monkeypatch.setattr(_patience.time, "sleep", clock.sleep)
    monkeypatch.setattr(_patience.random, "uniform", lambda low, high: 1.0)
    patience = Patience("here", seconds=30.0, meanwhile=[lambda: kept.append("first"), lambda: kept.append("last")])
    answers = iter([Away("x")] * 4)

    def later() -> str:
        for error in answers:
            raise error
        return "back"

    assert patience.wait_for(later) == "back"
    naps = clock.naps if patience.check is None else [sum(clock.naps)]
    assert sum(naps) == pytest.approx(0.2 + 0.4 + 0.8 + 1.6)
    assert kept == ["last", "first"] * 4  # before every pause, the newest first

    def never() -> str:
        raise Away("no answer")

    began = clock.now
    with pytest.raises(alebo.StudyError, match=r"has been away for 30 seconds \(no answer\)"):
        patience.wait_for(never)
    assert clock.now - began == pytest.approx(30.0, abs=0.05)
    assert max(clock.naps) <= 5.0


def test_a_worker_is_dead_when_its_process_is_gone_or_its_lock_was_long_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = _claims.FileClaims(tmp_path / "s.log")
    me = _claims.new_worker()
    host, number, machine, _ = me.rsplit(":", 3)
    assert (int(number), machine) == (os.getpid(), _claims._machine())
    assert not _claims._gone(me)
    assert _claims._gone(f"{host}:{2**22 + 7}:{machine}:x")  # beyond the largest process number
    for elsewhere in (f"{host}:{2**22 + 7}:another:x", f"{host}:x:{machine}:x", "short"):
        assert not _claims._gone(elsewhere)
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert _claims._gone(f"{host}:{child}:{machine}:x")  # a zombie has ended
    os.waitpid(child, 0)
    clock = Clock()
    monkeypatch.setattr(_claims.time, "monotonic", clock.monotonic)
    other = f"{host}:1:another:x"
    assert claims.alive(other)
    clock.now += _claims.LEASE - 0.1
    assert claims.alive(other)
    clock.now += 0.2
    assert not claims.alive(other)
    claims.interrupted()
    assert claims.alive(other)  # what was seen before counts no more
    monkeypatch.undo()
    claims.live(me)
    assert claims.alive(me)
    claims.close()
    assert not claims._held(me)


def test_the_age_of_a_stamp_is_told_by_the_clock_that_nobody_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = _claims.FileClaims(tmp_path / "s.log")
    stamp = claims.stamp()
    monkeypatch.setattr(_claims.time, "time", lambda: stamp["at"] + 1000.0)
    assert claims.age(stamp) == pytest.approx(0.0, abs=5.0)
    assert claims.age({**stamp, "boot": "another"}) == pytest.approx(1000.0)
    assert claims.age({**stamp, "up": stamp["up"] - 50.0}) == pytest.approx(50.0, abs=5.0)
    numbers = {_claims.number_of(f"w{k}") for k in range(500)}
    assert len(numbers) == 500
    assert max(n.bit_length() for n in numbers) == 60
    assert _claims.number_of("w", bits=8) < 256


# -- the spool -----------------------------------------------------------------------------------------------------------------


def test_the_spool_keeps_each_outcome_once_and_for_its_owner_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALEBO_SPOOL", str(tmp_path))
    spool = _spool.Spool("postgresql://ann:secret@db/s", "one")
    assert spool.folder == _spool.folder_of("postgresql://db/s", "one")  # the user and the password play no part
    assert len({_spool.folder_of(w, n) for w, n in (("a.log", "s"), ("b.log", "s"), ("a.log", "t"))}) == 3
    path = spool.keep(3, {"a": 1})
    assert path is not None
    assert path == spool.keep(3, {"a": 2})
    assert (path.stat().st_mode & 0o777, spool.folder.stat().st_mode & 0o777) == (0o600, 0o700)
    assert (spool.has(3), spool.has(4)) == (True, False)
    (spool.folder / "9-x.json").write_text("torn")
    (spool.folder / "8-x.json").write_text("[1]")
    assert list(_spool.Spool("postgresql://db/s", "one").found()) == [(path, {"a": 1})]
    spool.drop(3)
    assert not path.exists()
    assert not spool.has(3)
    assert spool.folder.exists()  # others are in it
    assert spool.keep(5, {"a": object()}) is None
    assert not list(spool.folder.glob("5-*"))
    assert [_spool.named(k) for k in (4, "point-x")] == ["trial 4", "a point that was not asked"]
    monkeypatch.delenv("ALEBO_SPOOL")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert _spool.folder_of("a.log", "s").parent == tmp_path / "state" / "alebo" / "spool"


# -- records ---------------------------------------------------------------------------------------------------------------------


def trial(y: list[float] | None = None, **outcomes: float) -> Trial:
    x = np.array([0.1, 0.2, 0.3, 0.4])
    told = {k: Outcome(v) for k, v in outcomes.items()}
    return Trial(
        2, SPACE.decode(x), x, None if y is None else np.array(y), told, State.COMPLETE if told else State.PENDING
    )


def test_constraints_are_shown_as_optuna_wants_them() -> None:
    found = constraints_of(trial(gain=1.0, mass=3.0, life=7.5), GOALS)
    assert found == {"mass <= 2": pytest.approx(1.0), "life >= 5": pytest.approx(-2.5)}


def test_what_optuna_shows_of_a_trial() -> None:
    require_module("optuna", "study")
    values, kinds = shown(trial(), SPACE)
    assert values == trial().params
    assert {k: (d.low, d.high) for k, d in kinds.items()} == dict.fromkeys(SPACE.names, (-1.0, 1.0))
    values, kinds = shown(trial([0.5, -1.5]), SPACE, ["x2"])
    assert values == {"x2": pytest.approx(0.3), "y0": 0.5, "y1": -1.5}
    assert (kinds["y1"].low, kinds["y1"].high) == (-2.0, 2.0)  # the root of D
    assert shown(trial([0.5, -5.0]), SPACE)[1]["y0"].high == 8.0  # the next power of two
    many = alebo.Space.from_bounds([(0, 1)] * 33)
    assert shown(Trial(0, many.decode(np.zeros(33)), np.zeros(33)), many) == ({}, {})
    few = alebo.Space.from_bounds([(0, 1)] * 32)
    assert len(shown(Trial(0, few.decode(np.zeros(32)), np.zeros(32)), few)[0]) == 32


def test_a_trial_of_optunas_is_ours_whatever_was_lost() -> None:
    require_module("optuna", "study")
    from optuna.trial import TrialState, create_trial

    goals = Goals(alebo.Minimize("v"))
    record = {k: v for k, v in trial().to_dict().items() if k != "params"}
    attrs: dict[str, Any] = {"params": trial().params, "trial": record}

    def read(state: TrialState, value: float | None = None, **more: Any) -> Trial:
        theirs = create_trial(state=state, value=value, user_attrs={**attrs, **more})
        theirs.number = 2
        return trial_of(theirs, SPACE, goals)

    assert read(TrialState.RUNNING).state is State.PENDING
    done = read(TrialState.COMPLETE, 1.5, outcomes={"v": [1.5, 0.25]})
    assert (done.state, done.outcomes) == (State.COMPLETE, {"v": Outcome(1.5, 0.25)})
    assert read(TrialState.COMPLETE, 1.5, outcomes={"v": [1.5, None]}).outcomes == {"v": Outcome(1.5)}
    assert read(TrialState.COMPLETE, 1.5).outcomes == {"v": Outcome(1.5)}  # the value remains
    assert (read(TrialState.FAIL).state, read(TrialState.FAIL).reason) == (State.FAILED, "given up")
    lost = read(TrialState.RUNNING, reason="lost\x1b[31m")
    assert (lost.state, lost.reason is not None and "\x1b" not in lost.reason) == (State.FAILED, True)
    foreign = create_trial(state=TrialState.COMPLETE, value=1.0)
    foreign.number = 5
    seen = trial_of(foreign, SPACE, goals)
    assert (seen.number, seen.state, seen.asked, seen.reason) == (
        5,
        State.FAILED,
        False,
        "not written by alebo, or damaged",
    )


def test_when_and_by_whom() -> None:
    require_module("optuna", "study")
    from optuna.trial import TrialState, create_trial

    def owned(owner: Any) -> Any:
        return span_of(create_trial(state=TrialState.RUNNING, user_attrs={"owner": owner} if owner else {}), trial())

    assert owned(None) is None
    assert owned({"worker": None, "at": 5.0}) is None
    assert owned({"worker": "w"}) is None
    span = owned({"worker": "w", "at": 5.0})
    assert (span.number, span.worker, span.start.timestamp(), span.end, span.state) == (
        2,
        "w",
        5.0,
        None,
        State.PENDING,
    )
    check_owner({"worker": None, "attempt": 3})
    for wrong in (7, {"worker": 3}, {"worker": "w", "attempt": "2"}):
        with pytest.raises(TypeError, match="of a trial is"):
            check_owner(wrong)


def test_a_stored_study_is_compared_with_what_is_asked() -> None:
    meta = {"space": {"a": 1, "b": 2}, "constraints": [], "goals": ["g"], "method": {"name": "sobol"}, "seed": 3}
    compare("here", meta, dict(meta))
    for key, value, words in (
        ("seed", 4, "keeps its seed; here was begun with 3, and got 4"),
        ("goals", ["h"], "keeps its goals"),
        ("constraints", [1], "keeps its space"),
        ("space", {"a": 1, "b": 5}, "begun with {'b': 2}, and got {'b': 5}"),
        ("method", {"name": "turbo"}, "keeps its method"),
    ):
        with pytest.raises(alebo.StudyError, match=words):
            compare("here", meta, {**meta, key: value})
    with pytest.raises(alebo.StudyError, match="the order of its parameters"):
        compare("here", meta, {**meta, "space": {"b": 2, "a": 1}})
    assert plain({"a": (1, 2)}) == {"a": [1, 2]}
    with pytest.raises(alebo.StudyError, match="plain data"):
        plain({"a": object()})


# -- reasons ---------------------------------------------------------------------------------------------------------------------


def test_why_an_evaluation_failed() -> None:
    class ProcessExpired(RuntimeError):
        def __init__(self, exitcode: int | None) -> None:
            self.exitcode = exitcode

    died = "ProcessExpired: the evaluation's process died"
    assert reason_of(ProcessExpired(-int(signal.SIGSEGV)), None) == f"{died} by SIGSEGV (exit code -11)"
    assert reason_of(ProcessExpired(3), None) == f"{died} (exit code 3)"
    assert reason_of(ProcessExpired(0), None) == f"{died} (exit code 0)"
    assert reason_of(ProcessExpired(-9999), None) == f"{died} (exit code -9999)"
    assert reason_of(TimeoutError(), 2.5) == "TimeoutError: it took longer than 2.5 seconds"
    assert reason_of(TimeoutError("mine"), None) == "TimeoutError: mine"
    assert reason_of(ValueError("x" * 5000), None) == "ValueError: " + "x" * 1988


def test_asking_and_appending_leave_the_lease_of_a_worker_alone(tmp_path: Path) -> None:
    """As another process sees it: POSIX locks of one's own are invisible to oneself."""
    claims, me = _claims.FileClaims(tmp_path / "s.log"), _claims.new_worker()

    def seen_held() -> bool:
        child = os.fork()
        if child == 0:
            os._exit(0 if _claims.FileClaims(tmp_path / "s.log")._held(me) else 1)
        return os.waitpid(child, 0)[1] == 0

    assert not seen_held()
    claims.live(me)
    assert seen_held()
    for lock in (claims.asking, claims.appending):
        with lock():
            assert seen_held()
        assert seen_held()
    claims.close()
    assert not seen_held()


# -- what processes of one study must have in common ---------------------------------------------------------------------------------


def test_the_bytes_and_times_of_leases_are_those_of_every_other_process() -> None:
    """Processes of different releases share a study: they lock the same bytes, and agree on who is dead."""
    assert (_claims.APPEND, _claims.ASK, _claims.FIRST_WORKER) == (0, 1, 16)
    assert (_claims.BEAT, _claims.LEASE) == (2.0, 20.0)
    assert _claims.number_of("alebo") == 698450919314817538  # from SHA-256
    assert _trials.ATTEMPTS == 10
    assert (Patience("here").seconds, Patience("here").first, Patience("here").longest) == (600.0, 0.2, 5.0)


def test_a_lease_is_renewed_until_it_is_given_back_whatever_fails_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_claims, "BEAT", 0.01)
    claims, beats = _claims.FileClaims(tmp_path / "s.log"), []

    def renew() -> None:
        beats.append(threading.current_thread())
        raise OSError("away")

    monkeypatch.setattr(claims, "renew", renew)
    claims.live("one")
    claims.live("two")
    until = time.monotonic() + 20
    while len(beats) < 4 and time.monotonic() < until:
        time.sleep(0.01)
    assert len(beats) >= 4
    assert len(set(beats)) == 1  # one thread for both
    assert beats[0].daemon
    claims.close()
    beats[0].join(10)
    assert not beats[0].is_alive()
    assert claims.places == set()


def test_a_lock_file_that_was_deleted_is_made_again_with_its_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims, me = _claims.FileClaims(tmp_path / "s.log"), _claims.new_worker()
    claims.live(me)
    os.unlink(claims.path)
    claims.renew()
    assert os.path.exists(claims.path)
    child = os.fork()
    if child == 0:
        other = _claims.FileClaims(tmp_path / "s.log")
        held, place = [], other._place(me)
        for near in (place - 1, place, place + 1, place + 1000):  # one byte is ours, and no more
            monkeypatch.setattr(other, "_place", lambda worker, near=near: near)
            held.append(other._held("somebody"))
        os._exit(0 if held == [False, True, False, False] else 1)
    assert os.waitpid(child, 0)[1] == 0
    claims.close()
    assert not claims._held(me)


@pytest.mark.parametrize("now", [100.0, 3.0])  # of a machine that has just started
def test_a_wait_is_told_at_once_and_every_ten_seconds_and_looks_for_a_signal(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, now: float
) -> None:
    clock, looks, ranges = Clock(), [], []
    clock.now = now
    monkeypatch.setattr(_patience.time, "monotonic", clock.monotonic)
    monkeypatch.setattr(_patience.time, "sleep", clock.sleep)
    monkeypatch.setattr(_patience.random, "uniform", lambda *ends: ranges.append(ends) or 1.0)
    patience = Patience("here", seconds=60.0, check=lambda: looks.append(clock.now))
    began = clock.now

    def access() -> str:
        if clock.now < began + 27.0:
            raise Away("x")
        return "back"

    with caplog.at_level("WARNING", "alebo.runner.storage"):
        assert patience.wait_for(access) == "back"
    said = [r.getMessage() for r in caplog.records]
    # pauses of 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, ...: 11.2 is the first look more than ten seconds later, then 21.2 not, then 26.2
    assert [m.split("up to ")[1] for m in said[:-1]] == ["60 seconds.", "49 seconds.", "34 seconds."]
    assert said[-1] == "The database of here answers again."
    assert set(ranges) == {(0.5, 1.5)}
    assert max(clock.naps) == pytest.approx(0.2)
    assert np.diff(looks).max() <= 0.2 + 1e-9
    caplog.clear()
    assert patience.wait_for(lambda: "there") == "there"
    assert not caplog.records


def test_who_prepares_a_trial_and_who_begins_it() -> None:
    owner = {"worker": "w", "attempt": 2, "at": 5.0, WAITING: True}
    assert waits(SimpleNamespace(user_attrs={"owner": owner}))  # type: ignore[arg-type]
    begun = begun_by(owner)
    assert not waits(SimpleNamespace(user_attrs={"owner": begun}))  # type: ignore[arg-type]
    assert {k: v for k, v in begun.items() if k != "at"} == {"worker": "w", "attempt": 2}
    assert begun["at"] == pytest.approx(time.time(), abs=60.0)
    for bare in ({}, {"owner": None}):
        assert not waits(SimpleNamespace(user_attrs=bare))  # type: ignore[arg-type]


def test_a_corrected_trial_is_the_copy_with_more_corrections() -> None:
    short, long = {"earlier": [1], "v": "short"}, {"earlier": [1, 2], "v": "long"}
    for first, second in ((short, long), (long, short)):
        found = amended({"amended:3": first, "amended-copy:3": second, "amended:x": {}, "other:4": {}, "budget": 5})
        assert found == {3: long}
    assert amended({"amended:0": {"v": 1}, "amended-copy:0": {"v": 2}}) == {0: {"v": 1}}  # the first of equals
    assert amended_keys(4, twice=True) == ["amended:4", "amended-copy:4"]
    assert amended_keys(4, twice=False) == ["amended:4"]
