"""`minimize` as people use it: stopping it, running several at a time, names, failures."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import alebo
from alebo import EvaluationError, Fidelity, Float, InputError, Optimizer, Space
from alebo.methods import METHODS, TuRBO

Sobol = METHODS["sobol"]
BOX = [(-1.0, 1.0)] * 5


def sphere(x: Any) -> float:
    return float((np.asarray(x, dtype=float) ** 2).sum())


def test_ctrl_c_returns_what_was_found_so_far() -> None:
    calls = 0

    def f(x: np.ndarray) -> float:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return sphere(x)

    result = alebo.minimize(f, BOX, budget=50, method="sobol")
    assert (len(result.history.complete), len(result.history.pending)) == (3, 1)
    assert result.fun == min(t.outcomes["value"].mean for t in result.history.complete)
    assert result.message.startswith("Stopped by Ctrl-C. 3 evaluations")
    assert calls == 4


@pytest.mark.parametrize("how", ["returns True", "raises StopIteration"])
def test_the_callback_can_stop_it(how: str) -> None:
    def callback(trial: alebo.Trial, opt: Optimizer) -> bool:
        if trial.number == 2 and how == "raises StopIteration":
            raise StopIteration
        return trial.number == 2

    result = alebo.minimize(sphere, BOX, budget=50, method="sobol", callback=callback)
    assert result.nfev == 3
    assert "Stopped by the callback" in result.message


def test_a_callback_that_returns_something_else_does_not_stop_it() -> None:
    assert alebo.minimize(sphere, BOX, budget=4, method="sobol", callback=lambda t, o: t.number + 1).nfev == 4


def test_timeout_starts_no_more_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def f(x: np.ndarray) -> float:
        now[0] += 10.0
        return sphere(x)

    result = alebo.minimize(f, BOX, budget=50, method="sobol", timeout=25.0)
    assert result.nfev == 3
    assert "Stopped by the timeout" in result.message


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "10"])
def test_bad_timeout(timeout: Any) -> None:
    with pytest.raises(InputError, match="`timeout > 0` must hold"):
        alebo.minimize(sphere, BOX, timeout=timeout)


def test_a_timeout_of_a_fraction_of_a_second() -> None:
    result = alebo.minimize(lambda x: time.sleep(0.15) or float(x[0]), BOX, budget=50, method="sobol", timeout=0.5)
    assert 1 <= len(result.history) <= 6
    assert alebo.minimize(lambda x: float(x[0]), BOX, budget=2, method="sobol", timeout=60).nfev == 2


def test_several_at_a_time() -> None:
    together = threading.Barrier(3, timeout=20)

    def f(x: np.ndarray) -> float:
        together.wait()
        return sphere(x)

    result = alebo.minimize(f, BOX, budget=6, method="sobol", n_jobs=3)
    assert len(result.history.complete) == 6
    with pytest.raises(InputError, match="`n_jobs >= 1` must hold"):
        alebo.minimize(f, BOX, n_jobs=0)


def test_while_all_jobs_are_busy_one_more_point_is_prepared() -> None:
    for ahead, first in ((None, 3), (0, 2), (2, 4)):
        asked: list[int] = []
        result = alebo.minimize(
            lambda x: time.sleep(0.1) or sphere(x),
            BOX,
            budget=7,
            method="sobol",
            n_jobs=2,
            ahead=ahead,
            callback=lambda trial, opt, asked=asked: asked.append(len(opt.history)),
        )
        assert asked[0] == first
        assert len(result.history.complete) == len(result.history) == 7  # the budget is kept


def test_a_prepared_point_that_nobody_began_is_withdrawn() -> None:
    ways: list[dict[str, Any]] = [{"callback": lambda trial, opt: True}, {"timeout": 0.2}]
    for how in ways:
        result = alebo.minimize(lambda x: time.sleep(0.3) or 1.0, BOX, 20, method="sobol", n_jobs=2, **how)
        history = result.history
        assert 2 <= len(history) <= 4
        assert not history.pending
        assert result.optimizer.ask()[0].number == len(history)
    with pytest.raises(EvaluationError) as stopped:
        alebo.minimize(lambda x: time.sleep(0.1), BOX, 40, method="sobol", n_jobs=2, ahead=3)
    assert len(stopped.value.optimizer.history.pending) <= 2
    queued = alebo.minimize(
        lambda x: time.sleep(0.2) or 1.0, BOX, 20, method="sobol", n_jobs=2, timeout=0.1, x0=[[0.1] * len(BOX)] * 5
    )
    assert len(queued.optimizer.queued) == 5 - len(queued.history)  # given points go back to their queue


def test_with_one_job_nothing_is_prepared_unless_told() -> None:
    seen: list[int] = []
    first = alebo.minimize(
        lambda x: float(x.sum()), BOX, 6, method="sobol", callback=lambda t, o: seen.append(len(o.history))
    )
    assert seen == [1, 2, 3, 4, 5, 6]
    ahead = alebo.minimize(lambda x: float(x.sum()), BOX, 6, method="sobol", ahead=1)
    assert [t.x.tolist() for t in ahead.history] == [t.x.tolist() for t in first.history]
    with pytest.raises(InputError, match="`ahead >= 0` must hold"):
        alebo.minimize(lambda x: 1.0, BOX, ahead=-1)


def test_several_at_a_time_with_failures() -> None:
    def f(x: np.ndarray) -> float:
        if x[0] > 0:
            raise OSError("licence")
        return sphere(x)

    result = alebo.minimize(f, BOX, budget=8, method="sobol", n_jobs=2, max_failed=1)
    assert {t.reason for t in result.history.failed} == {"OSError: licence"}
    assert len(result.history.pending) == 0


def test_a_method_by_name_is_that_method() -> None:
    assert alebo.minimize(sphere, BOX, budget=2, method="turbo").optimizer.method == TuRBO()
    with pytest.raises(InputError, match="Did you mean 'turbo'"):
        alebo.minimize(sphere, BOX, budget=2, method="tubo")


def test_names_for_a_named_space_and_an_array_for_plain_bounds() -> None:
    seen: list[Any] = []

    def f(p: Any) -> float:
        seen.append(p)
        return 1.0

    space = Space([Float("gain", 0, 1), alebo.Int("layers", 1, 4), alebo.Categorical("act", ["relu", "tanh"])])
    result = alebo.minimize(f, space, budget=1, method="sobol")
    assert isinstance(seen[0], Mapping)
    assert set(seen[0]) == {"gain", "layers", "act"}
    assert isinstance(seen[0]["layers"], int)
    assert result.params == seen[0]
    for plain in (BOX, Space.from_bounds(BOX)):
        alebo.minimize(f, plain, budget=1, method="sobol")
        assert isinstance(seen[-1], np.ndarray)
    numbers = Space([Float("gain", 0, 1), Float("rate", 0, 1)])
    alebo.minimize(f, numbers, budget=1, method="sobol")
    assert np.asarray(seen[-1]).tolist() == list(seen[-1].values())
    assert seen[-1][1] == seen[-1]["rate"]
    with pytest.raises(KeyError):
        _ = seen[-1]["gian"]


def test_three_failures_at_the_start_do_not_end_it() -> None:
    calls = 0

    def f(x: np.ndarray) -> float:
        nonlocal calls
        calls += 1
        if calls <= 3:
            raise OSError("no licence yet")
        return sphere(x)

    result = alebo.minimize(f, BOX, budget=8, method="sobol")
    assert (len(result.history.failed), len(result.history.complete)) == (3, 5)


def test_the_share_of_failures_is_settable_and_judged_from_the_tenth_on() -> None:
    def f(x: np.ndarray) -> float:
        return 1 / 0 if x[0] > -0.9 else 1.0

    with pytest.raises(EvaluationError, match="At most 50% of the evaluations may fail") as caught:
        alebo.minimize(f, BOX, budget=40, method="sobol")
    kept = caught.value.optimizer
    assert isinstance(kept, Optimizer)
    assert 10 <= len(kept.history) < 40
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert len(alebo.minimize(f, BOX, budget=40, method="sobol", max_failed=1).history) == 40
    for bad in (0, -1, 1.5, "half", True):
        with pytest.raises(InputError, match="`0 < max_failed <= 1` must hold"):
            alebo.minimize(f, BOX, max_failed=bad)  # type: ignore[arg-type]


def test_a_reason_ends_with_a_full_stop(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="alebo"):
        alebo.minimize(lambda x: 1 / 0 if x[0] > 0.5 else 1.0, BOX, budget=8, method="sobol")
    assert "ZeroDivisionError: division by zero. It is recorded as failed" in caplog.text


def test_cheap_evaluations_are_not_in_the_trace() -> None:
    space = Space([Float("a", 0, 1), Float("b", 0, 1), Fidelity("epochs", 1, 10)])

    def f(p: Mapping[str, Any]) -> float:
        return 0.09 if p["epochs"] == 10 else -5.0

    x0 = [[0.1, 0.1, 10.0], [0.2, 0.2, 1.0]]
    result = alebo.minimize(f, space, budget=2, x0=x0)
    assert result.fun == 0.09
    assert result.trace.tolist() == [0.09, 0.09]


def test_nothing_is_shown_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[int] = []

    class Screen:
        def __init__(self, *args: Any, **how: Any) -> None:
            shown.append(1)
            raise RuntimeError("a screen")

    monkeypatch.setattr("alebo._minimize.Progress", Screen)
    assert alebo.minimize(lambda x: float(x[0]), BOX, budget=2, method="sobol").nfev == 2
    assert not shown
    with pytest.raises(RuntimeError, match="a screen"):
        alebo.minimize(lambda x: float(x[0]), BOX, budget=2, method="sobol", progress=True)
