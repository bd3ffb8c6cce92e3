"""Bad input, functions that break, calls at the wrong time: each with its message, and nothing is lost."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest

import alebo
from alebo import (
    ALEBO,
    EvaluationError,
    Float,
    InputError,
    LinearConstraint,
    Minimize,
    Optimizer,
    Space,
    State,
    StateError,
)

from .runs import D, Sobol, drive, optimizer, record, refused, small, sphere

BAD_BOUNDS: list[tuple[Any, list[str]]] = [
    ([], ["one (low, high) pair or more"]),
    ([(1, 0)] * 5, ["`low < high`", "low=1.0, high=0.0", "Swap"]),
    ([(0, math.nan)] * 5, ["finite", "nan"]),
    ([(-math.inf, 0)] * 5, ["finite", "-inf"]),
    (None, ["(low, high) pairs"]),
]


@pytest.mark.parametrize(("bounds", "words"), BAD_BOUNDS)
def test_bad_bounds(bounds: Any, words: list[str]) -> None:
    calls: list[Any] = []
    refused(InputError, lambda: alebo.minimize(calls.append, bounds, budget=5), *words)
    assert not calls  # nothing was evaluated


@pytest.mark.parametrize("dim", [D + 1, 0, -2, 2.5, "four"])
def test_bad_dim(dim: Any) -> None:
    calls: list[Any] = []
    said = refused(
        InputError, lambda: alebo.minimize(calls.append, [(0, 1)] * D, budget=5, method=ALEBO(dim=dim)), "dim", str(dim)
    )
    assert len(said.split(". ")) >= 2  # a rule with what came, and a way out
    assert not calls


@pytest.mark.parametrize("budget", [0, -1, 2.5, math.nan, math.inf, "ten", None])
def test_bad_budget(budget: Any) -> None:
    calls: list[Any] = []
    refused(
        InputError,
        lambda: alebo.minimize(calls.append, [(0, 1)] * D, budget=budget),
        "`budget >= 1`",
        f"got {budget!r}",
        "afford",
    )
    huge = "`budget <= 1000000000` must hold"
    refused(InputError, lambda: alebo.minimize(calls.append, [(0, 1)] * D, budget=10**400), huge, "about 400 digits")
    refused(InputError, lambda: optimizer(budget=10**5000), huge)
    if budget is not None:
        refused(InputError, lambda: optimizer(budget=budget), "`budget >= 1`", f"got {budget!r}", "Leave it out")
    assert not calls


@pytest.mark.parametrize("seed", [None, 1.5, "x", math.nan])
def test_bad_seed(seed: Any) -> None:
    refused(InputError, lambda: optimizer(seed=seed), "`seed` must be a whole number", repr(seed))


def test_odd_but_good_numbers() -> None:
    assert optimizer(budget=np.int64(4)).budget == 4
    assert optimizer(budget=4.0).budget == 4
    assert optimizer(seed=-3).seed == -3
    assert len(optimizer(seed=np.uint32(7)).ask(np.int64(2))) == 2


@pytest.mark.parametrize("q", [0, -1, 1.5, "2", None])
def test_bad_q(q: Any) -> None:
    opt = optimizer()
    refused(InputError, lambda: opt.ask(q), "`q >= 1`", repr(q), "Ask for one trial or more")
    assert len(opt.history) == 0


def test_bad_constructor_arguments() -> None:
    space = Space.from_bounds([(0, 1)] * D)
    refused(InputError, lambda: Optimizer([(0, 1)], Minimize("y")), "alebo.Space", "list", "from_bounds")  # type: ignore[arg-type]
    refused(InputError, lambda: Optimizer(space, Minimize("y"), method="alebbo"), "METHODS", "Did you mean 'alebo'")
    refused(InputError, lambda: Optimizer(space, Minimize("y"), method=3), "ALEBO(dim=8)", "'turbo'", "got 3")  # type: ignore[arg-type]
    refused(InputError, lambda: Optimizer(space, Minimize("y"), method=ALEBO), "method")  # type: ignore[arg-type]
    refused(InputError, lambda: alebo.minimize(3, [(0, 1)] * D), "callable", "got 3")  # type: ignore[arg-type]


def raising(x: np.ndarray) -> float:
    raise ZeroDivisionError("the simulator is off")


BROKEN: list[Any] = [
    pytest.param(raising, ["ZeroDivisionError", "the simulator is off"], id="raises"),
    pytest.param(lambda x: math.nan, ["finite", "nan"], id="NaN"),
    pytest.param(lambda x: math.inf, ["finite", "inf"], id="infinity"),
    pytest.param(lambda x: -math.inf, ["finite", "-inf"], id="minus infinity"),
    pytest.param(lambda x: None, ["number", "None"], id="None"),
    pytest.param(lambda x: x, ["one number", "shape (20,)"], id="a vector"),
    pytest.param(lambda x: [1.0, 2.0], ["one number", "list of 2"], id="a list"),
    pytest.param(lambda x: {"valeu": 1.0}, ["exactly ['value']", "valeu"], id="another name"),
    pytest.param(lambda x: "0.3", ["number", "'0.3'"], id="text"),
]


@pytest.mark.parametrize(("f", "words"), BROKEN)
def test_a_function_that_never_works_is_stopped_with_a_message(f: Any, words: list[str]) -> None:
    with pytest.raises(EvaluationError) as caught:
        alebo.minimize(f, [(-1, 1)] * D, budget=50, method=Sobol())
    for word in [*words, "At most 50% of the evaluations may fail", "of 10 in this run 10 did", "or raise max_failed"]:
        assert word in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, RuntimeError)
    kept = caught.value.optimizer
    assert isinstance(kept, Optimizer)
    assert [t.state for t in kept.history] == [State.FAILED] * 10
    assert all(t.reason and any(w in t.reason for w in words) for t in kept.history)


@pytest.mark.parametrize(("f", "words"), BROKEN)
def test_a_function_that_breaks_later_costs_one_trial(
    f: Any, words: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    calls = 0

    def g(x: np.ndarray) -> Any:
        nonlocal calls
        calls += 1
        return f(x) if calls in (2, 5) else sphere(x)

    with caplog.at_level(logging.WARNING, logger="alebo"):
        result = alebo.minimize(g, [(-1, 1)] * D, budget=8, method=small(), seed=1)
    assert (len(result.history.complete), len(result.history.failed)) == (6, 2)
    assert [t.number for t in result.history.failed] == [1, 4]
    assert "recorded as failed" in caplog.text
    assert all(w in caplog.text for w in words)
    assert result.fun == min(t.outcomes["value"].mean for t in result.history.complete)
    assert len(result.trace) == 8
    assert "2 failed" in result.message


def test_a_budget_of_one_that_fails() -> None:
    with pytest.raises(EvaluationError, match="one completed trial") as caught:
        alebo.minimize(raising, [(-1, 1)] * D, budget=1)
    assert isinstance(caught.value.optimizer, Optimizer)
    assert len(caught.value.optimizer.history) == 1


def test_interrupting_is_not_an_evaluation_that_failed() -> None:
    def g(x: np.ndarray) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        alebo.minimize(g, [(-1, 1)] * D, budget=5, method=Sobol())


def test_tell_and_fail_at_the_wrong_time() -> None:
    opt = drive(optimizer(), 2)
    pending = opt.ask()[0]
    before = record(opt)
    for number in (3, -1, 99, "0", None, 1.0, True):
        for call in (lambda n=number: opt.tell(n, 1.0), lambda n=number: opt.fail(n)):
            refused(
                InputError,
                call,
                "number of a trial that was asked for",
                repr(number),
                "3 trials",
                "tell its parameters",
            )
    refused(StateError, lambda: opt.tell(0, 2.0), "reported once", "trial 0 is already complete", "Ask for a new one")
    refused(StateError, lambda: opt.fail(1), "reported once", "already complete")
    refused(InputError, lambda: opt.tell(pending.number, math.nan), "finite", "nan", "fail")
    refused(InputError, lambda: opt.tell(pending.number, {"loss": 1, "extra": 2}), "unknown ['extra']")
    assert record(opt) == before  # nothing was lost, nothing was half told
    opt.tell(pending.number, 1.0)
    opt.fail(opt.ask()[0].number)
    refused(StateError, lambda: opt.tell(3, 1.0), "already failed")
    with pytest.raises(StateError):
        opt.fail(3)


def test_ask_beyond_the_budget() -> None:
    opt = drive(optimizer(small(), budget=5), 4)
    before = record(opt)
    refused(
        StateError,
        lambda: opt.ask(2),
        "At most 5 evaluations",
        "4 have been asked for",
        "request for 2",
        "larger budget: opt.budget = 6",
    )
    assert record(opt) == before
    drive(opt, 1)
    refused(StateError, opt.ask, "At most 5", "5 have been asked for")
    assert opt.best().complete


def test_a_method_that_cannot_do_it_says_so_before_the_first_evaluation() -> None:
    space = Space([Float("a", 0, 1), Float("b", 0, 1)], [LinearConstraint({"a": 1, "b": 1}, 1)])
    refused(
        InputError,
        lambda: Optimizer(space, Minimize("y"), method=Sobol()),
        "linear constraints",
        "Methods that are",
        "alebo",
    )


def test_one_object_or_a_text_where_a_list_belongs() -> None:
    gain = Float("gain", 0, 1)
    refused(InputError, lambda: Space(gain), "list of parameters", "Float(name='gain'", "brackets")  # type: ignore[arg-type]
    refused(InputError, lambda: Space(None), "list of parameters", "None")  # type: ignore[arg-type]
    rule = LinearConstraint({"gain": 1}, 1)
    refused(InputError, lambda: Space([gain], rule), "`constraints`", "is a list", "brackets")  # type: ignore[arg-type]
    space = Space([gain])
    refused(InputError, lambda: Optimizer(space, None), "Goals are Minimize", "None", "Minimize('loss')")  # type: ignore[arg-type]
    refused(InputError, lambda: Optimizer(space, "loss"), "Goals are", "'loss'. Write Minimize('loss')")  # type: ignore[arg-type]
    refused(InputError, lambda: alebo.minimize(sphere, space, goals="gain"), "Write Minimize('gain')")  # type: ignore[arg-type]
    for choices in ("abc", b"abc", 3, None):
        refused(InputError, lambda c=choices: alebo.Categorical("k", c), "choices of 'k' are a list", repr(choices))
    assert alebo.Categorical("k", (c for c in "ab")).choices == ("a", "b")


def test_plain_data_of_a_parameter_with_a_wrong_key() -> None:
    for spec, words in (
        (
            {"type": "int", "low": 1, "hihg": 9},
            ["'k' is an int, which has no `hihg`; it has low, high, log.", "Did you mean 'high'"],
        ),
        ({"low": 1, "high": 9, "zzz": 3}, ["no `zzz`; it has low, high, log, step, digits", "Leave `zzz` out"]),
        ({"low": 1}, ["'k' is a float, which needs `high`; got low", "Add it"]),
        ({"choices": "abc"}, ["choices of 'k' are a list", "'abc'"]),
        ({"value": 3, "low": 1}, ["'k' is a fixed, which has no `low`", "it has value"]),
    ):
        refused(InputError, lambda s=spec: Space.from_dict({"k": s}), *words)
    assert Space.from_dict({"k": {"type": "int", "low": 1, "high": 9}}).names == ("k",)


def test_points_in_the_order_of_the_space() -> None:
    space = Space([Float("a", 0, 1), alebo.Int("n", 1, 9), alebo.Categorical("k", ["x", "y"])])
    opt = Optimizer(space, Minimize("loss"), method="sobol")
    for given in ([0.1, 2, "x"], (0.1, 2, "x"), np.array([0.1, 2, "x"], dtype=object), {"k": "x", "n": 2, "a": 0.1}):
        opt.enqueue(given)
    assert [t.params for t in opt.ask(4)] == [{"a": 0.1, "n": 2, "k": "x"}] * 4
    for wrong in ([0.1, 2], "abc", 3, None, [[0.1, 2, "x"]]):
        refused(InputError, lambda w=wrong: opt.enqueue(w), "list of 3 values", repr(wrong), "a, n, k")
    refused(InputError, lambda: opt.enqueue([0.1, 2, "z"]), "'k' is one of")
    assert opt.queued == ()


def test_what_could_not_be_called_is_refused_before_the_first_evaluation() -> None:
    calls: list[Any] = []
    refused(
        InputError,
        lambda: alebo.minimize(calls.append, [(-1, 1)] * D, budget=5, callback="x"),  # type: ignore[arg-type]
        "`callback` must be callable",
        "'x'",
    )
    assert calls == []


def test_more_first_points_than_the_budget_are_refused_before_the_first_evaluation() -> None:
    calls: list[Any] = []
    x0 = [[0.1 * k] * D for k in range(5)]
    words = ["counts against `budget`", "5 points", "a budget of 3", "Raise the budget to 5"]
    refused(InputError, lambda: alebo.minimize(calls.append, [(-1, 1)] * D, budget=3, x0=x0), *words)
    assert calls == []
    known = alebo.minimize(sphere, [(-1, 1)] * D, budget=3, method="sobol", x0=x0, y0=[1.0] * 5)  # told, not evaluated
    assert len(known.trace) == 8
    assert alebo.minimize(sphere, [(-1, 1)] * D, budget=5, method="sobol", x0=x0).nfev == 5
