"""Trials that are prepared while all workers are busy: begun at once, within the budget, never lost and never made twice."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import alebo
from alebo._checks import prepared_ahead
from alebo.methods import Sobol
from alebo.runner import Step

from . import functions as fn
from .test_run import GOAL, SPACE, create, same, twin


class ByHand:
    """An executor whose evaluations end in the order in which they are told to: always that of one list."""

    def __init__(self, order: list[int]) -> None:
        self.order, self.open = order, {}
        self.began: list[int] = []

    def submit(self, f: Any, params: dict[str, Any]) -> Future[Any]:
        future: Future[Any] = Future()
        number = len(self.began)
        self.began.append(number)
        self.open[number] = (future, f, params)
        return future

    def end_one(self) -> None:
        number = next((n for n in self.order if n in self.open), None)
        if number is not None:
            future, f, params = self.open.pop(number)
            try:
                future.set_result(f(params))
            except Exception as error:
                future.set_exception(error)


def one_end_a_claim(study: alebo.Study, executor: ByHand) -> list[list[str]]:
    """Let one evaluation end after each claim. -> after each of them the states of all trials"""
    claim = study.claim
    seen: list[list[str]] = []

    def then_end(*args: Any, **kwargs: Any) -> list[alebo.Trial]:
        taken = claim(*args, **kwargs)
        waiting = study.prepared()
        seen.append(["waiting" if t.number in waiting else t.state.value for t in study.history])
        threading.Timer(0.05, executor.end_one).start()
        return taken

    study.claim = then_end  # type: ignore[method-assign]
    return seen


def by_hand(path: Path, name: str, order: list[int], **settings: Any) -> tuple[alebo.History, list[list[str]]]:
    """A run of two workers, and after each of its claims the states of all trials."""
    study = alebo.Study.create(path / name, SPACE, GOAL, method=alebo.ALEBO(dim=3, initial=3), seed=1, budget=9)
    executor = ByHand(order)
    seen = one_end_a_claim(study, executor)
    opt = alebo.run(study, fn.sphere, executor=executor, workers=2, **settings)
    return opt.history, seen


def test_while_all_workers_are_busy_the_next_trial_is_prepared_and_begun_by_who_is_free_first(tmp_path: Path) -> None:
    order = [1, 0, 2, 4, 3, 5, 6, 8, 7]
    a, seen = by_hand(tmp_path, "a.log", order)
    b, again = by_hand(tmp_path, "b.log", order)
    assert seen == again
    assert same(a, b)  # the same order of ends, the same proposals
    assert seen[0] == ["pending", "pending", "waiting"]
    assert seen[1] == ["pending", "complete", "pending", "waiting"]
    assert seen[2] == ["complete", "complete", "pending", "pending", "waiting"]
    assert len(a.complete) == len(a) == 9  # the budget is kept
    c, plain = by_hand(tmp_path, "c.log", order, ahead=0)
    assert plain[0] == ["pending", "pending"]
    assert not any("waiting" in states for states in plain)
    assert len(c) == 9


@pytest.mark.parametrize("workers", [2, 3])
def test_processes_of_our_own_begin_what_is_prepared_and_it_is_counted_once(tmp_path: Path, workers: int) -> None:
    begun: list[int] = []
    steps: list[Step] = []
    opt = alebo.run(
        create(tmp_path, budget=10),
        fn.slow,
        workers=workers,
        on_start=lambda trial: begun.append(trial.number),
        on_step=steps.append,
    )
    assert sorted(begun) == list(range(10))
    assert same(opt.history, twin(fn.sphere, 10).history)
    assert all(0.25 < s.evaluation_seconds < 5.0 for s in steps)
    study = alebo.Study.open(tmp_path / "s.log")
    assert study.prepared() == []
    spans = study.spans()
    assert len(spans) == 10
    for span in spans:  # never more at a time than workers
        assert span.end is not None
        assert sum(s.start <= span.start < (s.end or span.start) for s in spans) <= workers + 1  # clocks of two files


def test_one_worker_prepares_nothing_unless_told(tmp_path: Path) -> None:
    study = create(tmp_path)
    seen: list[int] = []
    opt = alebo.run(study, fn.sphere, callback=lambda trial, study: seen.append(len(study.history)))
    assert seen == list(range(1, 9))
    other = alebo.Study.create(tmp_path / "t.log", SPACE, GOAL, method=Sobol(), seed=3, budget=8)
    seen.clear()
    assert same(
        alebo.run(other, fn.slow, ahead=1, callback=lambda t, s: seen.append(len(s.history))).history, opt.history
    )
    assert seen == [2, 3, 4, 5, 6, 7, 8, 8]


def drive(path: str) -> None:
    study = alebo.Study.create(path, SPACE, GOAL, method=Sobol(), seed=3, budget=30)  # no Torch in a forked process
    alebo.run(study, fn.slow, workers=2)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_was_ended_begins_with_what_it_had_prepared(tmp_path: Path, how: signal.Signals) -> None:
    path = tmp_path / "s.log"
    process = multiprocessing.get_context("fork").Process(target=drive, args=(str(path),))
    process.start()
    until = time.monotonic() + 30
    while time.monotonic() < until:
        time.sleep(0.05)
        if path.exists() and len(found := alebo.Study.open(path).prepared()) and found[0] > 2:
            break
    os.kill(process.pid or 0, how)
    process.join()
    study = alebo.Study.open(path)
    before, waiting = study.history, study.prepared()
    assert 2 < len(before) < 30
    assert waiting in ([len(before) - 1], [])  # none, where it was being begun just then
    begun: list[int] = []
    opt = alebo.run(path, fn.sphere, on_start=lambda trial: begun.append(trial.number))
    assert begun[: len(before.pending)] == [t.number for t in before.pending]  # first those, then new ones
    assert same(opt.history, twin(fn.sphere, 30).history)


def test_waiting_is_no_attempt_and_what_another_has_is_not_begun(tmp_path: Path) -> None:
    first = create(tmp_path)
    one, two = first.claim(2, begun=1)
    assert first.prepared() == [two.number]
    assert [s.number for s in first.spans()] == [one.number]  # a trial that nobody began has no time
    first.close()
    for _ in range(12):  # more often than a trial is tried
        with alebo.Study.open(tmp_path / "s.log") as study:
            assert [t.number for t in study.claim(2, begun=0)][-1] == two.number
            if _ == 0:
                owner = study._storage.trials()[two.number].user_attrs["owner"]
                assert owner["attempt"] == 1
    other = alebo.Study.open(tmp_path / "s.log")
    assert two.number in [t.number for t in other.claim(2)]
    assert not first.begin(two)
    assert not other.begin(two)  # it is begun already
    assert other.tell(two.number, 1.0).complete


def test_too_many_failures_leave_what_was_prepared_to_the_next_run(tmp_path: Path) -> None:
    study = create(tmp_path, budget=40)
    executor, claim = ByHand(list(range(40))), study.claim
    one_end_a_claim(study, executor)
    with pytest.raises(alebo.EvaluationError):
        alebo.run(study, fn.raises, executor=executor, workers=2)
    study.claim = claim  # type: ignore[method-assign]
    left = study.history.pending
    assert len(left) == 2  # one under way, one prepared
    opt = alebo.run(study, fn.sphere)
    assert all(opt.history[t.number].complete for t in left)
    assert len(opt.history) == 40


@pytest.mark.parametrize(("workers", "waiting"), [(1, 0), (2, 1), (3, 1), (4, 2), (8, 4)])
def test_one_trial_is_prepared_for_every_two_workers(workers: int, waiting: int) -> None:
    assert prepared_ahead(None, workers) == waiting
    assert prepared_ahead(3, workers) == 3


def test_how_many_ahead_is_checked(tmp_path: Path) -> None:
    with pytest.raises(alebo.InputError, match="`ahead >= 0` must hold"):
        alebo.run(create(tmp_path), fn.sphere, ahead=-1)


def test_status_says_what_waits(tmp_path: Path) -> None:
    from alebo.cli.study import status

    with create(tmp_path) as study:
        study.claim(3, begun=1)
    import contextlib
    import io

    for as_json in (True, False):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status(str(tmp_path / "s.log"), as_json=as_json)
        if as_json:
            assert json.loads(said.getvalue())["waiting_trials"] == [1, 2]
        else:
            assert "waiting for a free worker, not begun: 1, 2" in said.getvalue()
