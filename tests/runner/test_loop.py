"""The loop of a run by itself: its limits at their edges, its waits, its steps, with a study and a pool made by hand."""

from __future__ import annotations

import math
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import alebo
from alebo._checks import prepared_ahead
from alebo._failures import FailureLimit, full_stop
from alebo.history import State, Trial
from alebo.methods import Sobol
from alebo.runner import evaluate
from alebo.runner._pools import GivenExecutor, Running, _for_trial, seed_of
from alebo.runner._postgres import PostgresClaims
from alebo.runner.evaluate import _check, _Loop, _set_budget

from . import functions as fn

SPACE = alebo.Space.from_bounds([(-1, 1)] * 3)
GOAL = alebo.Minimize("loss")


# -- limits ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"budget": 0}, r"`budget >= 1` must hold, a whole number; got 0\. Say how many evaluations you can afford"),
        ({"budget": 2.5}, r"`budget >= 1` must hold"),
        ({"timeout": 0}, r"`timeout > 0` must hold, a number; got 0"),
        ({"timeout": math.nan}, r"`timeout > 0`"),
        ({"memory": 0.0}, r"`memory > 0` must hold"),
        ({"memory": "1"}, r"`memory > 0` must hold"),
        ({"max_failed": 0.0}, r"`0 < max_failed <= 1` must hold"),
        ({"max_failed": 1.01}, r"`0 < max_failed <= 1` must hold"),
        ({"max_failed": True}, r"`0 < max_failed <= 1` must hold"),
        ({"callback": "x"}, r"`callback` must be callable; got 'x'"),
    ],
)
def test_limits_are_refused_beyond_their_edges(wrong: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"budget": None, "ahead": None, "timeout": None, "memory": None, "max_failed": 0.5, **wrong}
    with pytest.raises(alebo.InputError, match=words):
        _check(fn.sphere, **given)


def test_limits_are_taken_at_their_edges(tmp_path: Path) -> None:
    _check(fn.sphere, 1, None, 1e-9, 1e-9, 1.0)
    _check(fn.sphere, None, None, None, None, 1e-9)
    study = alebo.Study.create(tmp_path / "s.log", SPACE, GOAL, method=Sobol(), budget=3)
    _set_budget(study, None)
    _set_budget(study, 1)
    assert study.budget == 1
    assert alebo.run(study, fn.sphere, budget=1).asked == 1
    for name in ("callback", "on_step", "on_start"):
        with pytest.raises(alebo.InputError, match=f"`{name}` must be callable"):
            alebo.run(study, fn.sphere, budget=2, **{name: "x"})


@pytest.mark.parametrize(("made", "failed", "ends"), [(9, 9, False), (10, 5, False), (10, 6, True), (40, 21, True)])
def test_a_run_ends_when_more_than_its_share_has_failed_from_the_tenth_on(made: int, failed: int, ends: bool) -> None:
    limit = FailureLimit(0.5)
    if not ends:
        assert limit.check(made, failed, "why", "here") is None  # type: ignore[func-returns-value]
        return
    with pytest.raises(alebo.EvaluationError, match=rf"At most 50% .* of {made} in this run {failed} did.*why\. "):
        limit.check(made, failed, "why", "here")


def test_a_share_of_one_never_ends_a_run() -> None:
    FailureLimit(1.0).check(1000, 1000, "why", "here")
    assert [full_stop(t) for t in ("a", "a.", "a! ", "a?")] == ["a.", "a.", "a!", "a?"]


# -- the loop --------------------------------------------------------------------------------------------------------------


class Clock:
    """Time that only moves when somebody waits."""

    def __init__(self) -> None:
        self.now, self.naps = 50.0, []  # type: ignore[var-annotated]

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds


def pending(number: int) -> Trial:
    return Trial(number, {"x0": 0.0, "x1": 0.0, "x2": 0.0}, np.zeros(3))


class HandStudy:
    """A study that hands out so many trials and writes down what it is told."""

    where = "by hand"

    def __init__(self, trials: int = 3, *, elsewhere: int = 0, ask: float = 0.0, clock: Clock | None = None) -> None:
        self.left, self.elsewhere, self.ask, self.clock = trials, elsewhere, ask, clock
        self.claimed: list[tuple[int, Any]] = []
        self.told: list[tuple[int, Any]] = []
        self.while_away: list[Any] = []
        self.held: list[tuple[int, Any]] = []

    def claim(self, count: int, *, stale_after: float | None, begun: int) -> list[Trial]:
        assert begun == count  # nothing is prepared ahead
        self.claimed.append((count, stale_after))
        if self.clock is not None:
            self.clock.now += self.ask
        first = sum(1 for _ in self.numbers)
        out = [pending(first + k) for k in range(min(count, self.left))]
        self.numbers += [t.number for t in out]
        self.left -= len(out)
        return out

    numbers: list[int] = []

    def waiting(self) -> bool:
        self.elsewhere -= 1
        return self.elsewhere >= 0

    def tell(self, number: int, outcomes: Any) -> Any:
        if isinstance(outcomes, BaseException):
            raise outcomes
        self.told.append((number, outcomes))
        return SimpleNamespace(number=number, state=State.COMPLETE, reason=None)

    def fail(self, number: int, reason: str) -> Any:
        self.told.append((number, reason))
        return SimpleNamespace(number=number, state=State.FAILED, reason=reason)

    def hold(self, number: int, outcomes: Any) -> None:
        self.held.append((number, outcomes))


class HandPool:
    """Evaluations that give what is listed for them, at once; an error is raised, None never ends."""

    timeout: float | None = 7.0
    queues = False

    def __init__(self, *results: Any, workers: int = 2, clock: Clock | None = None, took: float = 0.0) -> None:
        self.results, self.workers, self.clock, self.took = list(results), workers, clock, took

    def start(self, trial: Trial) -> Running:
        future: Future[Any] = Future()
        given, began = self.results[trial.number], 50.0 if self.clock is None else self.clock.now
        if isinstance(given, BaseException) and not isinstance(given, alebo.InputError | alebo.StateError):
            future.set_exception(given)
        elif given is not None:
            future.set_result(given)
        if self.clock is not None:
            self.clock.now += self.took
        return Running(trial, future, began + 7.0 if given is None else None, began)


def loop(study: HandStudy, pool: HandPool, limit: FailureLimit | None = None, **more: Any) -> _Loop:
    study.numbers = []
    given: dict[str, Any] = {"stale_after": None, "callback": None, "on_step": None, **more}
    return _Loop(study, pool, limit or FailureLimit(1.0), **given)  # type: ignore[arg-type]


def test_the_pool_is_kept_full_and_every_outcome_is_told_once() -> None:
    study, seen, started = HandStudy(5), [], []
    made = loop(
        study,
        HandPool(0.0, 1.0, 2.0, 3.0, 4.0),
        stale_after=9.0,
        callback=lambda trial, of: seen.append((trial.number, of is study)),
        on_start=lambda trial: started.append(trial.number),
    )
    made.go()
    assert sorted(study.told) == [(k, float(k)) for k in range(5)]
    assert study.claimed == [(2, 9.0)] * 4  # two, two, one, and none left
    assert sorted(seen) == [(k, True) for k in range(5)]
    assert started == [0, 1, 2, 3, 4]
    assert (made.finished, made.failed, made.running) == (5, 0, [])
    assert study.while_away == [made.hold_finished]
    made.end()
    assert study.while_away == []


def test_what_fails_is_told_with_its_reason_and_counted() -> None:
    study = HandStudy(4)
    wrong = alebo.InputError("no such outcome")
    taken = alebo.StateError("another worker finished it")
    made = loop(study, HandPool(ValueError("bad"), wrong, taken, TimeoutError()))
    made.go()
    assert sorted(study.told) == [
        (0, "ValueError: bad"),
        (1, "InputError: no such outcome"),
        (3, "TimeoutError: it took longer than 7.0 seconds"),
    ]
    assert (made.finished, made.failed, made.running) == (3, 3, [])
    strict = loop(HandStudy(12), HandPool(*[ValueError("bad")] * 12, workers=1), FailureLimit(0.5))
    with pytest.raises(alebo.EvaluationError, match="of 10 in this run 10 did"):
        strict.go()


def test_a_step_tells_the_seconds_of_asking_and_of_evaluating(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(evaluate.time, "monotonic", clock.monotonic)
    monkeypatch.setattr(evaluate.time, "sleep", clock.sleep)
    steps: list[Any] = []
    study = HandStudy(3, ask=2.0, clock=clock)
    pool = HandPool(0.0, 1.0, 2.0, workers=2, clock=clock, took=0.5)
    loop(study, pool, on_step=steps.append).go()
    assert [s.trial.number for s in steps] == [0, 1, 2]
    assert [s.ask_seconds for s in steps] == [2.0, 0.0, 2.0]  # what was asked for two counts once
    assert [s.evaluation_seconds for s in steps] == [1.0, 0.5, 0.5]
    assert all(s.study is study for s in steps)


def test_it_waits_for_others_and_ends_when_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(evaluate.time, "sleep", clock.sleep)
    study = HandStudy(0, elsewhere=3)
    loop(study, HandPool()).go()
    assert clock.naps == [evaluate.IDLE] * 3
    assert len(study.claimed) == 4  # after every wait one more look


def test_an_evaluation_beyond_its_deadline_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, waits = Clock(), []

    def waited(futures: Any, seconds: float, when: Any) -> Any:
        waits.append(seconds)
        clock.now += max(seconds, 1e-3)
        return SimpleNamespace(done={f for f in futures if f.done()})

    monkeypatch.setattr(evaluate.time, "monotonic", clock.monotonic)
    monkeypatch.setattr(evaluate, "wait", waited)
    study = HandStudy(1)
    loop(study, HandPool(None, workers=1)).go()
    assert study.told == [(0, "TimeoutError: it took longer than 7.0 seconds")]
    assert 7.0 <= clock.now - 50.0 < 7.0 + 2 * evaluate.LOOK
    assert max(waits) <= evaluate.LOOK


def test_with_a_worker_free_it_looks_for_more_work_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    study = HandStudy(1)
    made = loop(study, HandPool(None, workers=2))

    def wait(futures: list[Any], seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            futures[0].set_result(1.0)

    monkeypatch.setattr(made, "_wait", wait)
    monkeypatch.setattr(evaluate.time, "monotonic", lambda: 50.0)
    made.go()
    assert waited == [5.0, 5.0, 5.0]  # the shorter of ten idle looks and of what the deadline leaves
    assert study.claimed == [(2, None), (1, None), (1, None), (2, None)]
    waited.clear()
    full = loop(HandStudy(1), HandPool(None, workers=1))
    monkeypatch.setattr(full, "_wait", wait)
    full.go()
    assert waited == [7.0, 7.0, 7.0]


def test_what_is_done_and_not_written_is_held_when_a_run_stops() -> None:
    study = HandStudy(3)
    made = loop(study, HandPool(1.5, ValueError("bad"), None, workers=3))
    made.running = [made.pool.start(pending(k)) for k in range(3)]
    made.hold_finished()
    assert study.held == [(0, 1.5)]


def test_futures_that_cannot_be_waited_for_are_polled(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, looks = Clock(), iter([False] * 5 + [True])
    monkeypatch.setattr(evaluate.time, "sleep", clock.sleep)
    study = HandStudy(1)
    pool = HandPool(workers=1)

    class Foreign:
        ready = False

        def done(self) -> bool:
            self.ready = self.ready or next(looks)
            return self.ready

        def result(self) -> float:
            return 4.0

    monkeypatch.setattr(pool, "start", lambda trial: Running(trial, Foreign(), None))
    loop(study, pool).go()
    assert study.told == [(0, 4.0)]
    assert clock.naps == [evaluate.POLL] * 3  # once a look at it, while it is not done


# -- an executor of the user's -----------------------------------------------------------------------------------------------


def test_how_many_evaluations_an_executor_gets_and_until_when() -> None:
    class Executor:
        def submit(self, f: Any, params: Any) -> Any:
            return (f, params)

    wide = Executor()
    wide._max_workers = 6  # type: ignore[attr-defined]
    assert [GivenExecutor(e, fn.sphere, n, None).workers for e, n in ((wide, None), (wide, 2), (Executor(), None))] == [
        6,
        2,
        1,
    ]
    limited = GivenExecutor(wide, fn.sphere, None, 5.0).start(pending(0))
    assert limited.deadline is not None
    assert limited.deadline - limited.began == pytest.approx(5.0, abs=0.5)
    assert GivenExecutor(wide, fn.sphere, None, None).start(pending(0)).deadline is None
    assert limited.future == (fn.sphere, pending(0).params)


def test_an_evaluator_that_wants_the_trial_is_told_its_number_and_seed() -> None:
    told = SimpleNamespace(for_trial=lambda number, seed: (number, seed))
    assert _for_trial(told, 4, 11) == (4, 11)  # type: ignore[arg-type, comparison-overlap]
    assert _for_trial(fn.sphere, 4, 11) is fn.sphere
    seeds = [seed_of(1, k) for k in range(200)]
    assert len(set(seeds)) == 200
    assert 2**30 < max(seeds) < 2**31
    assert seed_of(1, 0) == seeds[0] != seed_of(2, 0)


# -- claims in a database, without one ------------------------------------------------------------------------------------------


class Connection:
    def __init__(self, said: list[str]) -> None:
        self.said = said

    def execution_options(self, **options: Any) -> Connection:
        assert options == {"isolation_level": "AUTOCOMMIT"}
        return self

    def execute(self, statement: Any, values: Any) -> Any:
        self.said.append(str(statement).split("(")[0].replace("SELECT ", "").strip())
        return SimpleNamespace(scalar=lambda: True)

    def invalidate(self) -> None:
        self.said.append("invalidated")

    def close(self) -> None:
        self.said.append("closed")


@pytest.mark.parametrize("lost", [False, True])
def test_the_lock_of_asking_goes_with_its_connection_and_is_not_given_back_by_another(lost: bool) -> None:
    pytest.importorskip("sqlalchemy")
    said: list[str] = []
    engine = SimpleNamespace(connect=lambda: Connection(said))
    claims = PostgresClaims(engine, "s", SimpleNamespace(_asked=lambda call: call()))  # type: ignore[arg-type]
    claims.workers.add("me")
    with claims.asking():
        if lost:
            claims._drop()
            claims._run("SELECT 1")  # another connection, which takes the leases of the workers again
    end = ["invalidated", "closed", "pg_try_advisory_lock", "1"] if lost else ["pg_advisory_unlock"]
    assert said == ["pg_try_advisory_lock", "pg_advisory_lock", *end]


# -- trials prepared ahead -----------------------------------------------------------------------------------------------------


class PreparingStudy(HandStudy):
    """One whose trials can be prepared; those in `lost` are another worker's when they are to begin."""

    lost: tuple[int, ...] = ()

    def claim(self, count: int, *, stale_after: float | None, begun: int) -> list[Trial]:
        out = super().claim(count, stale_after=stale_after, begun=count)
        self.claimed[-1] = (count, begun)
        return out

    def begin(self, trial: Trial) -> bool:
        self.held.append((trial.number, "begun"))
        return trial.number not in self.lost


@pytest.mark.parametrize("queues", [False, True])
def test_a_prepared_trial_is_begun_by_the_worker_that_is_free_first(
    queues: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(evaluate.time, "monotonic", clock.monotonic)
    started: list[int] = []
    announced: list[int] = []
    steps: list[Any] = []
    pool, study = HandPool(*[None] * 4, workers=1), PreparingStudy(4)
    futures: list[Future[Any]] = []

    def start(trial: Trial) -> Running:
        started.append(trial.number)
        futures.append(Future())
        return Running(trial, futures[-1], None, clock.now)

    monkeypatch.setattr(pool, "queues", queues)
    monkeypatch.setattr(pool, "start", start)
    made = loop(study, pool, on_start=lambda trial: announced.append(trial.number), on_step=steps.append)
    made.ahead = 2
    seen: list[Any] = []

    def wait(waited: list[Any], seconds: float) -> None:
        seen.append((list(started), list(announced), [r.trial.number for r in made.running if r.waiting], seconds))
        clock.now += 3.0
        futures[len(steps)].set_result(float(len(steps)))

    monkeypatch.setattr(made, "_wait", wait)
    made.go()
    assert study.claimed == [(3, 1), (1, 0), (1, 0), (2, 0), (3, 1)]  # one begins, two wait; then as many as began
    assert study.held == [(1, "begun"), (2, "begun"), (3, "begun")]
    assert study.told == [(k, float(k)) for k in range(4)]
    assert announced == [0, 1, 2, 3]  # when they begin, and once
    assert [waiting for _, _, waiting, _ in seen] == [[1, 2], [2, 3], [3], []]
    first = [started for started, *_ in seen]
    assert first == (
        [[0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]] if queues else [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    )
    assert {seconds for *_, seconds in seen} == {math.inf}  # no worker is free: nothing to look for meanwhile
    assert [s.evaluation_seconds for s in steps] == [3.0] * 4  # from when the worker was free


def test_a_prepared_trial_that_another_worker_took_is_left_to_it() -> None:
    study = PreparingStudy(4)
    study.lost = (2,)
    made = loop(study, HandPool(0.0, 1.0, 2.0, 3.0, workers=2))
    made.ahead = 1
    made.go()
    assert sorted(study.told) == [(0, 0.0), (1, 1.0), (3, 3.0)]
    assert (made.finished, made.running) == (3, [])


def test_a_queued_trial_that_ended_before_anybody_looked_is_begun_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    study, started = PreparingStudy(3), []
    pool = HandPool(0.0, 1.0, 2.0, workers=1)
    monkeypatch.setattr(pool, "queues", True)
    made = loop(study, pool, on_start=lambda trial: started.append(trial.number))
    made.ahead = 2
    made.go()
    assert study.told == [(0, 0.0), (1, 1.0), (2, 2.0)]
    assert study.held == [(1, "begun"), (2, "begun")]
    assert started == [0, 1, 2]


def test_how_often_it_looks() -> None:
    assert (evaluate.POLL, evaluate.IDLE, evaluate.LOOK) == (0.05, 0.5, 0.2)
    assert [prepared_ahead(None, n) for n in (1, 2, 7)] == [0, 1, 3]
    assert [prepared_ahead(n, 1) for n in (0, 1, 5)] == [0, 1, 5]
    assert loop(HandStudy(0), HandPool()).ahead == 0
