"""The parts of `minimize` by themselves: the clock, the order of threads, what is withdrawn, the points to start with."""

from __future__ import annotations

import time
from concurrent.futures import ALL_COMPLETED, Future, wait
from typing import Any

import numpy as np
import pytest

import alebo
from alebo import EvaluationError, InputError, Minimize, Optimizer, _minimize
from alebo._failures import FailureLimit
from alebo._minimize import Named, _end, _NotBegun, _optimizer, _Run, _start
from alebo.goals import Outcome

BOX = [(-1.0, 1.0)] * 3


class Clock:
    """Time that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 50.0

    def monotonic(self) -> float:
        return self.now


class Shown:
    """A display that writes down what it is told."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def start(self, history: Any) -> None:
        self.said.append(("start", len(history)))

    def began(self, number: int) -> None:
        self.said.append(("began", number))

    def update(self, history: Any, **seconds: float) -> None:
        (what, value), *more = seconds.items()
        assert not more
        self.said.append((what, len(history), value))


def run_of(f: Any = None, budget: int = 3, **how: Any) -> _Run:
    opt = Optimizer(alebo.Space.from_bounds(BOX), Minimize("value"), method="sobol", budget=budget)
    given: dict[str, Any] = {"limit": FailureLimit(), "callback": None, "view": None, "deadline": None, **how}
    return _Run(opt, f or (lambda x: float(x.sum())), **given)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(_minimize, "time", made)
    return made


def test_when_no_evaluation_is_started_any_more(clock: Clock) -> None:
    assert _end(None) is None
    assert _end(2.5) == 52.5
    for wrong in (0, -1.0, float("inf"), float("nan"), "1"):
        with pytest.raises(InputError, match="`timeout > 0` must hold"):
            _end(wrong)  # type: ignore[arg-type]


def test_one_after_the_other_with_the_seconds_of_each(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(x: np.ndarray) -> float:
        clock.now += 3.0
        return float(x.sum())

    ask = Optimizer.ask

    def asked(self: Optimizer, q: int = 1) -> Any:
        clock.now += 0.5
        return ask(self, q)

    monkeypatch.setattr(Optimizer, "ask", asked)
    shown = Shown()
    run = run_of(slow, budget=2, view=shown)
    assert run.go(1, 0) == ("", None)
    rounds = [[("model_seconds", k + 1, 0.5), ("began", k), ("evaluation_seconds", k + 1, 3.0)] for k in range(2)]
    assert shown.said == [("start", 0), *rounds[0], *rounds[1]]
    assert (run.made, run.failed) == (2, 0)


@pytest.mark.parametrize(("left", "made"), [(0.0, 0), (0.1, 1), (3.0, 1), (3.1, 2)])
def test_the_deadline_is_looked_at_before_each(clock: Clock, left: float, made: int) -> None:
    def slow(x: np.ndarray) -> float:
        clock.now += 3.0
        return 1.0

    run = run_of(slow, deadline=50.0 + left)
    assert run.go(1, 0)[0] == "Stopped by the timeout"
    assert run.made == made


def test_the_callback_ends_it_after_the_evaluation() -> None:
    run = run_of(callback=lambda trial, opt: trial.number == 1)
    assert (run.go(1, 0)[0], run.made) == ("Stopped by the callback", 2)
    run = run_of(callback=lambda trial, opt: 1)  # true, but not True
    assert (run.go(1, 0)[0], run.made) == ("", 3)


def test_failures_are_counted_and_the_last_is_the_cause() -> None:
    def broken(x: np.ndarray) -> float:
        calls.append(1)
        if len(calls) > 4:
            raise ZeroDivisionError(f"number {len(calls)}")
        return float("nan") if len(calls) == 2 else 1.0

    calls: list[int] = []
    run = run_of(broken, budget=40, limit=FailureLimit(0.5, after=6))
    with pytest.raises(EvaluationError, match="of 7 in this run 4 did") as ended:
        run.go(1, 0)
    assert (run.made, run.failed, str(run.last)) == (7, 4, "number 7")
    assert ended.value.__cause__ is run.last
    assert ended.value.optimizer is run.opt
    assert [t.state.value for t in run.opt.history] == ["complete", "failed", "complete", "complete", *["failed"] * 3]
    assert run.opt.history[1].reason is not None
    assert run.opt.history[1].reason.startswith("InputError: ")
    assert run.opt.history[4].reason == "ZeroDivisionError: number 5"


def test_ctrl_c_before_anything_is_known_is_raised() -> None:
    def stopped(x: np.ndarray) -> float:
        if len(run.opt.history.complete) >= known:  # the next may begin before the last is told
            raise KeyboardInterrupt
        return 1.0

    known = 0
    run = run_of(stopped)
    with pytest.raises(KeyboardInterrupt):
        run.go(1, 0)
    known = 1
    run = run_of(stopped)
    assert run.go(1, 0) == ("Stopped by Ctrl-C", None)
    run = run_of(stopped)
    assert run.go(1, 1)[0] == "Stopped by Ctrl-C"


# -- threads ---------------------------------------------------------------------------------------------------------------


def test_what_ends_together_is_told_in_the_order_of_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_minimize, "wait", lambda futures, return_when: wait(futures, return_when=ALL_COMPLETED))
    told: list[int] = []
    run = run_of(
        lambda x: time.sleep(0.05 * (len(run.started) < 2)) or 1.0,
        budget=7,
        callback=lambda trial, opt: told.append(trial.number),
    )
    assert run.go(3, 1) == ("", None)
    assert told == list(range(7))


def test_a_prepared_trial_is_shown_when_it_begins_and_timed_from_then() -> None:
    shown, seconds = Shown(), [0.25, 0.02, 0.02]

    def slow(x: np.ndarray) -> float:
        time.sleep(seconds[len(run.started) - 1])
        return 1.0

    run = run_of(slow, view=shown)
    assert run.go(1, 1) == ("", None)
    began = [s for s in shown.said if s[0] != "model_seconds"]
    assert [s[:2] for s in began if s[0] == "began"] == [("began", 0), ("began", 1), ("began", 2)]
    took = [s[2] for s in began if s[0] == "evaluation_seconds"]
    assert took[0] >= 0.25
    assert max(took[1:]) < 0.2  # not from when it was prepared
    asks = [s[1] for s in shown.said if s[0] == "model_seconds"]
    assert asks[:2] == [1, 2]  # the second is prepared before the first has ended
    assert shown.said.index(("began", 1)) > shown.said.index(
        next(s for s in shown.said if s[0] == "evaluation_seconds")
    )


def test_a_trial_that_waited_is_not_begun_after_the_end(clock: Clock) -> None:
    run = run_of(deadline=60.0)
    (trial,) = run.opt.ask()
    assert isinstance(run._evaluate(trial, True), float)
    assert run.started == {0: 50.0}
    clock.now = 60.0
    with pytest.raises(_NotBegun):
        run._evaluate(trial, True)
    assert isinstance(run._evaluate(trial, False), float)  # its thread was free before
    run.deadline = None
    assert isinstance(run._evaluate(trial, True), float)
    run.ended = "Stopped by the callback"
    with pytest.raises(_NotBegun):
        run._evaluate(trial, True)


def test_trials_that_nobody_began_are_taken_back_from_the_end() -> None:
    def future(how: str) -> Future[Any]:
        made: Future[Any] = Future()
        if how == "cancelled":
            made.cancel()
        elif how == "not begun":
            made.set_exception(_NotBegun())
        elif how == "failed":
            made.set_exception(ValueError())
        elif how == "done":
            made.set_result(1.0)
        return made

    for kinds, kept in (
        (["done", "cancelled", "not begun"], 1),
        (["cancelled", "done", "cancelled"], 2),  # only the last ones: numbers have no gaps
        (["cancelled", "cancelled", "running"], 3),
        (["done", "not begun", "failed"], 3),
        (["cancelled"] * 3, 0),
    ):
        run = run_of()
        trials = run.opt.ask(3)
        run._withdraw({future(kind): t for kind, t in zip(kinds, trials, strict=True)})
        assert len(run.opt.history) == kept
        assert run.opt.budget == 3


# -- what it starts with -----------------------------------------------------------------------------------------------------


def test_a_named_point_is_a_dictionary_and_an_array() -> None:
    point = Named({"gain": 0.5, "layers": 3}, np.array([0.5, 3.0]))
    assert (point["gain"], point[0], point[-1], point[np.int64(1)]) == (0.5, 0.5, 3, 3)
    with pytest.raises(KeyError):
        point["none"]
    values = np.asarray(point)
    values[0] = 9.0
    assert np.asarray(point).tolist() == [0.5, 3.0]  # a copy
    assert np.asarray(point, dtype=int).tolist() == [0, 3]


def test_the_points_to_start_with() -> None:
    def started(x0: Any, y0: Any = None) -> Optimizer:
        opt = _optimizer(BOX, None, method="sobol", budget=9)
        _start(opt, x0, y0)
        return opt

    assert [list(p.values()) for p in started([0.1, 0.2, 0.3]).queue] == [[0.1, 0.2, 0.3]]
    assert len(started([[0.1] * 3, [0.2] * 3]).queue) == 2
    assert list(started({"x0": 0.1, "x1": 0.2, "x2": 0.3}).queue[0].values()) == [0.1, 0.2, 0.3]
    assert started(None).queue == ()
    for y0, mean, sem in ((5.0, 5.0, None), ([5.0], 5.0, None), (np.array([5.0]), 5.0, None), ([(5.0, 0.5)], 5.0, 0.5), (Outcome(5.0, 0.5), 5.0, 0.5), ({"value": 5.0}, 5.0, None)):  # fmt: skip
        (known,) = started([0.1, 0.2, 0.3], y0).history
        assert (known.outcomes["value"], known.asked) == (Outcome(mean, sem), False)
    assert [t.outcomes["value"].mean for t in started([[0.1] * 3, [0.2] * 3], [1.0, 2.0]).history] == [1.0, 2.0]
    wrong: list[tuple[Any, Any, str]] = [
        (None, [1.0], "got no x0"),
        ([0.1, 0.2], None, r"got shape \(1, 2\)"),
        ([[[0.1] * 3]], None, r"got shape \(1, 1, 3\)"),
        ([[0.1] * 3, [0.1]], None, r"got shape \(1, 2\)"),
        ([[0.1] * 3] * 2, [1.0], "got 2 points and 1 outcomes"),
        ([0.1] * 3, [], "got 1 points and 0 outcomes"),
    ]
    for x0, y0, words in wrong:
        with pytest.raises(InputError, match=words):
            started(x0, y0)
    with pytest.raises(InputError, match=r"one objective; got \['a', 'b'\]"):
        _optimizer(BOX, [Minimize("a"), Minimize("b")])
