"""Studies at their edges: the budget when it is opened again, claims within it, the queue, what is written and what is not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import alebo
from alebo.history import State
from alebo.methods import Sobol
from alebo.runner import _claims

SPACE = alebo.Space.from_bounds([(-1, 1)] * 3)
GOAL = alebo.Minimize("loss")
POINT = {"x0": 0.25, "x1": 0.0, "x2": -0.5}


def create(folder: Path, **more: Any) -> alebo.Study:
    return alebo.Study.create(folder / "s.log", SPACE, GOAL, method=Sobol(), seed=3, **more)


def test_the_budget_stays_unless_another_is_given(tmp_path: Path) -> None:
    create(tmp_path, budget=8)
    written = (tmp_path / "s.log").read_bytes()
    assert create(tmp_path).budget == 8
    assert create(tmp_path, budget=8).budget == 8
    assert (tmp_path / "s.log").read_bytes() == written  # nothing to write
    assert create(tmp_path, budget=9).budget == 9
    assert alebo.Study.open(tmp_path / "s.log").budget == 9
    assert create(tmp_path).budget == 9
    with pytest.raises(alebo.InputError, match="`budget >= 1` must hold"):
        create(tmp_path).set_budget(0)


def test_claims_end_with_the_budget_and_asking_does_not_exceed_it(tmp_path: Path) -> None:
    study = create(tmp_path, budget=3)
    assert [t.number for t in study.claim(2)] == [0, 1]
    assert [t.number for t in study.claim(2)] == [2]
    assert study.claim(1) == []
    assert study.waiting()  # our own: until they are told
    for k in range(3):
        study.tell(k, float(k))
    assert not study.waiting()
    assert (study.known, study.best().number) == (3, 0)
    study.set_budget(4)
    assert [t.number for t in study.claim(5)] == [3]
    endless = alebo.Study.create(tmp_path / "t.log", SPACE, GOAL, method=Sobol(), seed=3)
    assert len(endless.claim(5)) == 5


def test_what_was_claimed_is_free_again_after_closing_and_keeps_its_number(tmp_path: Path) -> None:
    first, second = create(tmp_path, budget=4), create(tmp_path)
    claimed = first.claim(2)
    assert [t.number for t in second.claim(1)] == [2]  # the first lives: its trials are its own
    before = first.worker
    first.close()
    assert first.worker != before
    again = second.claim(4)
    assert [t.number for t in again] == [0, 1, 3]
    assert [t.params for t in again[:2]] == [t.params for t in claimed]
    second.close()


def test_a_study_that_claims_again_after_closing_lives_again(tmp_path: Path) -> None:
    study = create(tmp_path, budget=4)
    for _ in range(2):
        study.claim(1)
        assert study._storage.claims._held(study.worker)
        study.close()
        assert not study._storage.claims._held(study.worker)


def test_a_lease_is_of_one_worker_and_not_of_those_beside_it(tmp_path: Path) -> None:
    """As another process sees it: POSIX locks of one's own are invisible to oneself."""
    claims = _claims.FileClaims(tmp_path / "s.log")
    names = sorted((_claims.new_worker() for _ in range(3)), key=claims._place)
    claims.live(names[1])
    child = os.fork()
    if child == 0:
        seen = [_claims.FileClaims(tmp_path / "s.log")._held(name) for name in names]
        os._exit(0 if seen == [False, True, False] else 1)
    assert os.waitpid(child, 0)[1] == 0
    claims.close()


def test_a_trial_asked_by_hand_is_taken_over_when_it_is_stale(tmp_path: Path) -> None:
    study = create(tmp_path, budget=2)
    study.ask()
    assert not study.waiting()  # a person has it, and no worker
    assert [t.number for t in study.claim(2, stale_after=3600.0)] == [1]
    assert [t.number for t in study.claim(2, stale_after=0.0)] == [0]


def test_a_queued_point_comes_first_and_one_never_asked_is_beside_the_budget(tmp_path: Path) -> None:
    study = create(tmp_path, budget=2)
    study.enqueue(POINT)
    told = study.tell({**POINT, "x0": 0.75}, 2.0)
    assert (told.number, told.asked, told.state) == (0, False, State.COMPLETE)
    with pytest.raises(alebo.InputError, match="`params` corrects the settings of an asked trial"):
        study.tell(POINT, 1.0, params=POINT)
    assert [t.params for t in study.claim(1)] == [POINT]
    assert len(study.claim(5)) == 1  # two asked in all
    assert study.optimizer().asked == 2


def test_names_to_show_are_parameters_and_written_once(tmp_path: Path) -> None:
    study = create(tmp_path)
    with pytest.raises(alebo.InputError, match=r"parameters of the space; got \['y'\]"):
        study.show_by_name(["x0", "y"])
    study.show_by_name(["x1"])
    written = (tmp_path / "s.log").read_bytes()
    study.show_by_name(["x1"])
    assert (tmp_path / "s.log").read_bytes() == written
    trial = study.ask()[0]
    assert "x1" in study._storage.trials()[trial.number].params


def test_a_study_closes_with_its_block_and_spans_name_the_worker(tmp_path: Path) -> None:
    with create(tmp_path, budget=3) as study:
        worker = study.worker
        study.claim(1)
        study.tell(0, 1.0)
        study.ask()
        (span,) = study.spans()
        assert (span.number, span.worker, span.state) == (0, worker, State.COMPLETE)
        assert span.end is not None
        assert span.end >= span.start
    assert study.worker != worker
    assert repr(study).endswith("1 complete, 1 pending, 0 failed)")


def test_a_withdrawn_outcome_is_asked_for_again_and_a_corrected_one_keeps_both(tmp_path: Path) -> None:
    study = create(tmp_path, budget=3)
    for k in range(2):
        study.ask()
        study.tell(k, 5.0 + k)
    assert study.amend(0, 9.0, reason="misread").earlier[0].outcomes["loss"].mean == 5.0
    assert study.best().number == 1
    study.forget(1, "wrong sample\x1b[31m")
    seen = alebo.Study.open(tmp_path / "s.log").history
    assert seen[0].outcomes["loss"].mean == 9.0
    assert seen[1].state is not State.COMPLETE
    assert "\x1b" not in str(seen[1].to_dict())
    with pytest.raises(alebo.StateError):
        study.tell(0, 1.0)  # the first outcome stands


def test_several_objectives_have_a_front_and_a_volume(tmp_path: Path) -> None:
    goals = [alebo.Minimize("a", reference=3.0), alebo.Maximize("b", reference=0.0)]
    study = alebo.Study.create(tmp_path / "s.log", SPACE, goals, method=Sobol(), seed=3)
    for k, (a, b) in enumerate([(1.0, 1.0), (2.0, 2.0), (2.0, 1.0)]):
        study.ask()
        study.tell(k, {"a": a, "b": b})
    assert [t.number for t in study.front()] == [0, 1]
    assert study.hypervolumes().tolist() == [2.0, 3.0, 3.0]
    assert study.hypervolumes([4.0, 0.0]).tolist() == [3.0, 5.0, 5.0]
