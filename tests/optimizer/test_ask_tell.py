"""Ask and tell: what is promised, the queue, and what beginners write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alebo
from alebo import (
    AtMost,
    Categorical,
    Fixed,
    Float,
    InputError,
    Int,
    Maximize,
    Minimize,
    Optimizer,
    Space,
    State,
    StateError,
)

from .runs import D, Sobol, drive, optimizer, record, refused, small, sphere, value


def test_the_statements_of_the_front_page() -> None:
    space = Space(
        [
            Float("gain", 0.0, 1.0),
            Float("lr", 1e-5, 1.0, log=True),
            Int("layers", 1, 12),
            Categorical("act", ["relu", "tanh"]),
        ]
        + [Float(f"w{i}", -1, 1) for i in range(16)]
    )
    opt = Optimizer(space, [Minimize("loss"), AtMost("latency", 10.0)], method=small(), seed=0)
    for trial in opt.ask(4):
        space.check(trial.params)
        opt.tell(trial.number, {"loss": trial.params["gain"], "latency": (8.2, 0.1)})
    more = opt.ask()
    assert isinstance(more, list)
    opt.fail(more[0].number)
    assert opt.best().outcomes["loss"].mean == min(t.outcomes["loss"].mean for t in opt.history.complete)
    assert [t.state for t in opt.history] == [State.COMPLETE] * 4 + [State.FAILED]


def test_a_trial_is_recorded_before_anybody_sees_it() -> None:
    opt = optimizer(small())
    trials = opt.ask(3)
    assert [t.number for t in trials] == [0, 1, 2]
    assert opt.history.pending == tuple(trials)
    assert all(t.params == opt.space.decode(t.x) for t in trials)
    assert opt.asked == 3


def test_minimize_is_ask_and_tell() -> None:
    result = alebo.minimize(sphere, [(-1, 1)] * D, budget=9, seed=4, method=small())
    opt = drive(optimizer(small(), Minimize("value"), seed=4, budget=9), 9)
    assert record(opt) == record(result.optimizer)
    assert result.fun == min(result.trace) == result.trace[-1] == sphere(result.x)
    assert np.all(np.diff(result.trace) <= 0)
    assert (result.nfev, len(result.history), len(result.x)) == (9, 9, D)


def test_same_seed_same_run_other_seed_another() -> None:
    a, b, c = (record(drive(optimizer(small(), seed=s), 8)) for s in (1, 1, 2))
    assert a == b != c


def test_ask_leaves_global_randomness_alone() -> None:
    import torch

    opt = optimizer(small())
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    before = np.random.get_state()[1].copy(), torch.get_rng_state().clone()  # noqa: NPY002
    drive(opt, 6)
    assert np.array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[1])


def test_suggest_does_not_change_the_history() -> None:
    opt = drive(optimizer(small()), 6)
    before = record(opt)
    for _ in range(2):
        opt.method.suggest(opt.history, opt.space, opt.goals, 1, opt.seed)
    assert record(opt) == before


def test_maximize_is_minimize_of_the_negative() -> None:
    low, high = optimizer(small(), Minimize("y")), optimizer(small(), Maximize("y"))
    for _ in range(8):
        a, b = low.ask()[0], high.ask()[0]
        np.testing.assert_allclose(a.x, b.x, atol=1e-9)
        low.tell(a.number, value(a))
        high.tell(b.number, -value(b))
    assert low.best().number == high.best().number


@pytest.mark.parametrize("method", [Sobol(), small(), small(None)], ids=["sobol", "alebo", "alebo-growing"])
def test_telling_in_any_order_gives_the_same_next_point(method: Any) -> None:
    asked = []
    for order in ([0, 1, 2, 3, 4, 5], [3, 5, 0, 4, 2, 1]):
        opt = optimizer(method)
        trials = opt.ask(6)
        for i in order:
            opt.tell(trials[i].number, value(trials[i]))
        asked.append(opt.ask(2))
    for a, b in zip(*asked, strict=True):
        np.testing.assert_array_equal(a.x, b.x)


def test_pending_points_are_respected() -> None:
    opt = drive(optimizer(small()), 8)
    seen = [t.x for t in opt.ask(3)] + [opt.ask()[0].x]
    for i, a in enumerate(seen):
        for b in seen[:i]:
            assert np.linalg.norm(a - b) > 1e-6


def test_failed_trials_do_not_stop_the_search() -> None:
    opt = optimizer(small())
    for i in range(9):
        trial = opt.ask()[0]
        if i % 3 == 1:
            assert opt.fail(trial, "no licence").reason == "no licence"
        else:
            opt.tell(trial, value(trial))
    assert (len(opt.history.failed), len(opt.history.complete)) == (3, 6)
    assert opt.best().complete
    assert len({t.x.tobytes() for t in opt.history}) == 9


def test_all_failed_still_proposes() -> None:
    opt = optimizer(small())
    for _ in range(7):
        opt.fail(opt.ask()[0].number)
    assert np.abs(opt.ask()[0].x).max() <= 1 + 1e-9
    refused(StateError, opt.best, "one completed trial", "7 failed", "Tell an outcome first")


def test_a_point_never_asked_counts_for_best_and_not_for_the_budget() -> None:
    opt = optimizer(small(), budget=3)
    told = opt.tell({f"x{i}": np.float64(0.25) for i in range(D)}, -5)
    assert (told.number, told.asked, told.y) == (0, False, None)
    drive(opt, 3)
    assert opt.asked == 3
    assert opt.best().number == 0
    refused(InputError, lambda: opt.tell({"x0": 0.5}, 1), "missing", "x1")
    assert len(opt.history) == 4


def test_numpy_numbers_told_can_be_saved(tmp_path: Path) -> None:
    space = Space([Int("n", 0, 9), Float("a", 0, 1), Categorical("c", [1, 2])])
    opt = Optimizer(space, Minimize("y"), method=Sobol())
    opt.tell({"n": np.int64(3), "a": np.float32(0.5), "c": np.int64(2)}, np.float32(1))
    opt.save(tmp_path / "s.json")
    assert Optimizer.load(tmp_path / "s.json").history[0].params == {"n": 3, "a": 0.5, "c": 2}


def test_fixed_parameters_are_part_of_every_proposal() -> None:
    space = Space([Fixed("model", "big"), *(Float(f"x{i}", -1, 1) for i in range(D)), Fixed("n", 3)])
    opt = Optimizer(space, Minimize("y"), method=small(), seed=0)
    for _ in range(7):
        trial = opt.ask()[0]
        assert (trial.params["model"], trial.params["n"], len(trial.x)) == ("big", 3, D)
        opt.tell(trial.number, trial.params["x0"] ** 2)


# -- the queue, and what beginners write ---------------------------------------------------------------------------------


def test_queued_points_are_asked_first_exactly_and_count() -> None:
    opt = optimizer(small(), budget=4)
    points = [{f"x{i}": 0.1 * k for i in range(D)} for k in (1, 3)]
    for p in points:
        opt.enqueue(p)
    assert opt.queued == tuple(points)
    first, second, third = opt.ask(3)
    assert [first.params, second.params] == points
    assert third.params not in points
    assert (opt.queued, opt.asked) == ((), 3)
    opt.enqueue(points[0])
    assert opt.ask()[0].params == points[0]
    refused(InputError, lambda: opt.enqueue({"x0": 1.0}), "missing", "x1")
    refused(InputError, lambda: opt.enqueue({**points[0], "x3": 7.0}), "`-1.0 <= x3 <= 1.0`", "7.0")


def test_a_queue_survives_saving(tmp_path: Path) -> None:
    opt = optimizer(small(), seed=3)
    for v in (0.1, 0.2):
        opt.enqueue({f"x{i}": v for i in range(D)})
    opt.tell(opt.ask()[0], 1.0)
    opt.save(tmp_path / "s.json")
    again = Optimizer.load(tmp_path / "s.json")
    assert again.queued == opt.queued
    for _ in range(3):
        a, b = opt.ask()[0], again.ask()[0]
        assert a.to_dict() == b.to_dict()


def test_the_budget_can_be_set() -> None:
    opt = drive(optimizer(budget=2), 2)
    opt.budget = 3
    drive(opt, 1)
    assert opt.history.budget == 3
    with pytest.raises(InputError, match="`budget >= 1`"):
        opt.budget = 0
    opt.budget = None
    drive(opt, 2)


def test_treating_the_list_of_ask_as_a_trial_is_explained() -> None:
    opt = optimizer()
    asked = opt.ask()
    assert isinstance(asked, list)
    with pytest.raises(AttributeError, match=r"opt\.ask\(\)\[0\]\.params"):
        _ = asked.params  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = asked.nonsense  # type: ignore[attr-defined]
    refused(InputError, lambda: opt.tell(asked, 1.0), "takes one trial", "opt.ask()[0]")  # type: ignore[arg-type]
