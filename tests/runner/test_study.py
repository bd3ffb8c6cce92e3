"""Laws of a study on a file: written as it goes, read by anybody, the same next ask; and what is refused."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import alebo
from alebo.methods import Sobol

SPACE = alebo.Space.from_bounds([(-1, 1)] * 30)
GOAL = alebo.Minimize("loss")


def create(path: Path, **kwargs: object) -> alebo.Study:
    return alebo.Study.create(path, SPACE, GOAL, method=Sobol(), seed=3, budget=20, **kwargs)  # type: ignore[arg-type]


def points(history: alebo.History) -> list[list[float]]:
    return [t.x.tolist() for t in history]


def test_a_study_is_an_optimizer_whose_history_is_stored(tmp_path: Path) -> None:
    study, twin = create(tmp_path / "s.log"), alebo.Optimizer(SPACE, GOAL, method=Sobol(), seed=3, budget=20)
    for k in range(5):
        a, b = study.ask()[0], twin.ask()[0]
        assert a.params == b.params
        if k == 2:
            study.fail(a.number, "broken")
            twin.fail(b.number, "broken")
            continue
        study.tell(a.number, float(k))
        twin.tell(b.number, float(k))
    study.tell(twin.space.decode(np.zeros(30)), (0.5, 0.1))
    twin.tell(twin.space.decode(np.zeros(30)), (0.5, 0.1))
    again = alebo.Study.open(tmp_path / "s.log").optimizer()
    assert [t.to_dict() for t in again.history] == [t.to_dict() for t in twin.history]
    assert again.best().number == twin.best().number
    assert again.ask()[0].x.tolist() == twin.ask()[0].x.tolist()
    assert again.budget == 20


def test_create_again_opens_the_same(tmp_path: Path) -> None:
    first = create(tmp_path / "s.log")
    trial = first.ask()[0]
    second = create(tmp_path / "s.log")
    second.tell(trial.number, 1.0)
    assert first.history[0].complete


def test_several_goals_constraints_and_standard_errors_survive(tmp_path: Path) -> None:
    goals = [alebo.Minimize("loss"), alebo.Maximize("speed"), alebo.AtMost("latency", 2.0), alebo.Cost("seconds")]
    study = alebo.Study.create(tmp_path / "s.log", SPACE, goals, method=Sobol(), budget=9)
    for k in range(3):
        number = study.ask()[0].number
        study.tell(number, {"loss": (k, 0.1), "speed": -k, "latency": k, "seconds": 3.5})
    again = alebo.Study.open(tmp_path / "s.log")
    assert again.goals == alebo.Goals(goals)
    assert again.history[1].outcomes["loss"] == alebo.Outcome(1.0, 0.1)
    assert [t.number for t in again.front()] == [0]


def test_optuna_reads_it_with_the_embedded_coordinates_as_parameters(tmp_path: Path) -> None:
    import optuna

    space = alebo.Space.from_bounds([(-1, 1)] * 200)
    goals = [GOAL, alebo.AtLeast("speed", 1.0)]
    study = alebo.Study.create(tmp_path / "s.log", space, goals, method=alebo.ALEBO(dim=4), budget=9)
    trial = study.ask()[0]
    study.tell(trial.number, {"loss": 0.5, "speed": 0.25})
    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "s.log"))
    theirs = optuna.load_study(study_name="alebo", storage=optuna.storages.JournalStorage(backend)).trials[0]
    assert trial.y is not None
    assert theirs.params == {f"y{i}": v for i, v in enumerate(trial.y.tolist())}
    assert theirs.user_attrs["params"] == trial.params
    assert theirs.value == 0.5
    assert list(theirs.constraints.values()) == [0.75]


def test_a_mixed_space_survives(tmp_path: Path) -> None:
    space = alebo.Space(
        [
            alebo.Float("lr", 1e-5, 1, log=True),
            alebo.Int("layers", 1, 9),
            alebo.Categorical("act", ["relu", None, True, 3]),
            alebo.Fixed("kind", "a"),
        ]
    )
    study = alebo.Study.create(tmp_path / "s.log", space, GOAL, method=Sobol(), budget=9)
    asked = study.ask(4)
    again = alebo.Study.open(tmp_path / "s.log")
    assert again.space == space
    assert [t.params for t in again.history] == [t.params for t in asked]


def test_pending_trials_of_a_person_are_left_alone_and_those_of_a_dead_worker_taken_over(tmp_path: Path) -> None:
    by_hand = create(tmp_path / "s.log").ask()[0]
    dead = create(tmp_path / "s.log")
    lost = dead.claim(2)
    other = create(tmp_path / "s.log")
    assert [t.number for t in other.claim(1)] == [3]  # the owner lives: a new one
    dead.close()
    taken = other.claim(3)
    assert [t.number for t in taken] == [1, 2, 4]
    assert [t.params for t in taken[:2]] == [t.params for t in lost]
    time.sleep(0.02)
    assert by_hand.number in [t.number for t in other.claim(1, stale_after=0.01)]


def test_told_by_another_is_a_message(tmp_path: Path) -> None:
    a, b = create(tmp_path / "s.log"), create(tmp_path / "s.log")
    number = a.ask()[0].number
    b.tell(number, 1.0)
    with pytest.raises(alebo.StateError, match="reported once"):
        a.tell(number, 2.0)
    assert a.history[number].outcomes["loss"].mean == 1.0


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"space": alebo.Space.from_bounds([(-1, 1)] * 29)}, "space"),
        ({"space": alebo.Space.from_bounds([(-1, 1)] * 29 + [(0, 1)])}, "x29"),
        ({"space": alebo.Space(list(reversed(SPACE.parameters)))}, "order"),
        (
            {"space": alebo.Space(SPACE.parameters, [alebo.LinearConstraint({"x0": 1}, 0.5)]), "method": alebo.ALEBO()},
            "space",
        ),
        ({"goals": alebo.Maximize("loss")}, "goals"),
        ({"method": Sobol(centre=True)}, "method"),
        ({"seed": 4}, "seed"),
    ],
)
def test_another_study_is_refused(tmp_path: Path, change: dict[str, object], word: str) -> None:
    create(tmp_path / "s.log")
    settings = {"space": SPACE, "goals": GOAL, "method": Sobol(), "seed": 3, **change}
    with pytest.raises(alebo.StudyError, match=word):
        alebo.Study.create(tmp_path / "s.log", settings.pop("space"), settings.pop("goals"), **settings)  # type: ignore[arg-type]


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(tmp_path / "s.log")
    monkeypatch.setattr(alebo, "__version__", "9.3.1")
    with pytest.raises(alebo.StudyError, match=r"pip install alebo==0"):
        alebo.Study.open(tmp_path / "s.log")


def test_what_is_no_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(alebo.StudyError, match="no file"):
        alebo.Study.open(tmp_path / "missing.log")
    with pytest.raises(alebo.StudyError, match="folder"):
        alebo.Study.open(tmp_path)
    (tmp_path / "text").write_text("hello\n")
    with pytest.raises(alebo.StudyError, match="something else"):
        alebo.Study.open(tmp_path / "text")
    (tmp_path / "empty").touch()
    with pytest.raises(alebo.StudyError, match="no study 'alebo'"):
        alebo.Study.open(tmp_path / "empty")
    create(tmp_path / "s.log")
    with pytest.raises(alebo.StudyError, match="It has: 'alebo'"):
        alebo.Study.open(tmp_path / "s.log", name="other")
    with pytest.raises(alebo.StudyError, match="PostgreSQL"):
        alebo.Study.open("mysql://me:geheim@host/db")


def test_a_study_of_another_program_is_refused(tmp_path: Path) -> None:
    import optuna

    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "s.log"))
    theirs = optuna.create_study(study_name="alebo", storage=optuna.storages.JournalStorage(backend))
    theirs.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=2)
    with pytest.raises(alebo.StudyError, match="another program"):
        alebo.Study.open(tmp_path / "s.log")
    with pytest.raises(alebo.StudyError, match="another program"):
        create(tmp_path / "s.log")


def test_loading_executes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pickle

    create(tmp_path / "s.log").ask(3)

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a study file is data")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    assert len(alebo.Study.open(tmp_path / "s.log").history) == 3


# -- damage ---------------------------------------------------------------------------------------------------------------


def filled(path: Path, n: int = 6) -> list[dict[str, object]]:
    study = create(path)
    for k in range(n):
        trial = study.ask()[0]
        if k == 1:
            study.fail(trial.number, "broken")
        else:
            study.tell(trial.number, (float(k), 0.25))
    return [t.to_dict() for t in study.history]


def test_a_torn_end_is_moved_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "s.log"
    before = filled(path)
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines()[-5][:70])
    with caplog.at_level(logging.WARNING):
        study = alebo.Study.open(path)
    assert "torn" in caplog.text
    assert [t.to_dict() for t in study.history] == before
    assert (tmp_path / "s.log.torn").read_bytes().startswith(b'{"op_code"')
    study.tell(study.ask()[0].number, 1.0)
    assert len(alebo.Study.open(path).history.complete) == 6


def test_a_torn_end_left_while_open_is_moved_aside_by_the_next_append(tmp_path: Path) -> None:
    study = create(tmp_path / "s.log")
    study.tell(study.ask()[0].number, 1.0)
    with open(tmp_path / "s.log", "ab") as file:
        file.write(b'{"op_code":4,"worker')
    study.tell(study.ask()[0].number, 2.0)
    assert len(alebo.Study.open(tmp_path / "s.log").history.complete) == 2


def test_any_one_damaged_line_loses_no_completed_trial(tmp_path: Path) -> None:
    path = tmp_path / "s.log"
    filled(path, 3)
    study = create(path)
    study.tell(SPACE.decode(np.full(30, 0.1)), 9.0)  # a point never asked, too
    before = [t.to_dict() for t in study.history]
    lines = path.read_bytes().splitlines(keepends=True)
    for k, damage in enumerate(("middle", "start", "zeros", "short")):
        for i in range(k % 2, len(lines), 2):  # every line in two of the four ways
            line = lines[i]
            if damage == "middle":
                bad = line[: len(line) // 2] + b"\xff\x00}{" + line[len(line) // 2 + 4 :]
            elif damage == "start":
                bad = b"#" * 40 + line[40:]
            elif damage == "zeros":
                bad = b"\x00" * (len(line) - 1) + b"\n"
            else:
                bad = line[:25] + b"\n"
            hurt = tmp_path / f"{damage}{i}.log"
            hurt.write_bytes(b"".join([*lines[:i], bad, *lines[i + 1 :]]))
            study = alebo.Study.create(hurt, SPACE, GOAL, method=Sobol(), seed=3, budget=20)
            done = [t.to_dict() for t in study.history if t.complete]
            assert done == [t for t in before if t["state"] == "complete"], (damage, i)
            study.tell(study.ask()[0].number, 1.0)
            assert len(alebo.Study.open(hurt).history.complete) == len(done) + 1


def test_a_torn_line_that_another_program_wrote_behind_is_parted(tmp_path: Path) -> None:
    path = tmp_path / "s.log"
    before = filled(path, 3)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:8], lines[8][:33] + lines[8], *lines[9:]]))
    assert [t.to_dict() for t in alebo.Study.open(path).history] == before


def test_a_half_told_trial_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "s.log"
    before = filled(path, 3)
    lines = path.read_bytes().splitlines(keepends=True)
    assert json.loads(lines[-1])["op_code"] == 6  # the state, written last
    path.write_bytes(b"".join(lines[:-1]))
    assert [t.to_dict() for t in alebo.Study.open(path).history] == before
    assert len(path.read_bytes().splitlines()) >= len(lines)


def test_a_lock_of_a_dead_process_is_cleared_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    study = create(tmp_path / "s.log")
    os.symlink("alebo-99999999", tmp_path / "s.log.lock")
    start = time.monotonic()
    study.ask()
    assert time.monotonic() - start < 5
    assert "cleared" in caplog.text


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_FSIZE")
def test_a_full_disk_is_a_message_and_loses_nothing(tmp_path: Path) -> None:
    import resource

    path = tmp_path / "s.log"
    before = filled(path)
    study = alebo.Study.open(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, hard))
    try:
        with pytest.raises(alebo.StudyError, match=r"free some space.*again"):
            study.ask()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [t.to_dict() for t in alebo.Study.open(path).history] == before
    assert study.ask()[0].number == len(before)


def test_a_queued_point_is_asked_once_by_whoever_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "s.log"
    space = alebo.Space([alebo.Float("a", 0.0, 1.0), alebo.Float("b", 1e-5, 1.0, log=True)])
    study = alebo.Study.create(path, space, alebo.Minimize("y"), method=alebo.methods.Sobol(), budget=4)
    baseline = {"a": 0.1234567, "b": 0.0012345}
    study.enqueue(baseline)
    study.close()
    with alebo.Study.open(path) as other:
        trial = other.ask()[0]
        assert trial.params == baseline
        assert other.ask()[0].params != baseline
        other.tell(trial.number, 1.0)
    with alebo.Study.open(path) as again:
        assert again.history[0].params == baseline  # to the last digit, also after it was told
        assert again.optimizer().queued == ()


def test_an_outcome_in_hand_keeps_the_settings_really_run(tmp_path: Path) -> None:
    path = tmp_path / "s.log"
    space = alebo.Space.from_bounds([(0, 1)] * 3)
    study = alebo.Study.create(path, space, alebo.Minimize("y"), method=Sobol())
    trial = study.ask()[0]
    study.hold(trial, 0.5, {"x0": 0.125})
    study.rescue()  # as if the worker had been killed while it waited
    with alebo.Study.open(path) as again:
        assert again.history[0].complete
        assert again.history[0].params == {**trial.params, "x0": 0.125}
        with pytest.raises(alebo.InputError, match="its own params"):
            again.tell(trial.params, 1.0, params={"x0": 0.5})


def test_a_study_begun_with_another_default_keeps_its_method(tmp_path):
    space = alebo.Space.from_bounds([(0.0, 1.0)] * 3)
    begun = alebo.Study.create(tmp_path / "s.journal", space, alebo.Minimize("loss"), method=alebo.methods.Sobol())
    begun.tell(begun.ask()[0].number, 1.0)
    again = alebo.Study.create(tmp_path / "s.journal", space, alebo.Minimize("loss"))
    assert again.method == alebo.methods.Sobol()
    assert len(again.history) == 1
    with pytest.raises(alebo.StudyError, match="keeps its method"):
        alebo.Study.create(tmp_path / "s.journal", space, alebo.Minimize("loss"), method=alebo.methods.CMAES())


def test_a_claim_is_of_one_trial_unless_told(tmp_path: Path) -> None:
    study = create(tmp_path / "s.log")
    assert [len(study.claim()), len(study.claim(q=2))] == [1, 2]
    with pytest.raises(TypeError):
        study.claim(1, 60.0)  # type: ignore[misc]
    study.close()
