"""Ask and tell: what is promised, the messages for bad input, and that no reported outcome is ever lost."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alebo
from alebo import (
    ALEBO,
    AtLeast,
    AtMost,
    Categorical,
    EvaluationError,
    Fixed,
    Float,
    InputError,
    Int,
    LinearConstraint,
    Maximize,
    Minimize,
    Optimizer,
    Space,
    State,
    StateError,
    StudyError,
    Trial,
)
from alebo.goals import Outcome
from alebo.methods import METHODS

Sobol = METHODS["sobol"]
D = 20


def sphere(x: np.ndarray) -> float:
    return float((x[1] - 0.3) ** 2 + 0.5 * (x[7] + 0.1) ** 2)


def small(dim: int | None = 3, **settings: Any) -> ALEBO:
    """The method with few initial points, so that short runs reach the model."""
    return ALEBO(dim=dim, **{"initial": 5, **settings})


def optimizer(method: Any = None, goals: Any = None, *, D: int = D, **settings: Any) -> Optimizer:
    space = Space.from_bounds([(-1, 1)] * D)
    return Optimizer(space, goals or Minimize("loss"), method=method or Sobol(), **settings)


def value(trial: Trial) -> float:
    return sphere(np.array(list(trial.params.values())))


def drive(opt: Optimizer, n: int) -> Optimizer:
    for _ in range(n):
        trial = opt.ask()[0]
        opt.tell(trial.number, value(trial))
    return opt


def record(opt: Optimizer) -> str:
    """Everything in the history, to the last bit."""
    return json.dumps([t.to_dict() for t in opt.history])


def refused(error: type[Exception], call: Callable[[], Any], *words: str) -> str:
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in: {caught.value}"
    assert isinstance(caught.value, alebo.AleboError)
    return str(caught.value)


# -- the promises ------------------------------------------------------------------------------------------------------


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


def test_best_obeys_the_constraints() -> None:
    opt = optimizer(Sobol(), [Maximize("score"), AtLeast("speed", 1.0)])
    for score, speed in ((9, 0.5), (3, 1.0), (2, 5.0)):
        opt.tell(opt.ask()[0].number, {"score": score, "speed": speed})
    assert opt.best().outcomes["score"].mean == 3
    worst = optimizer(Sobol(), [Maximize("score"), AtLeast("speed", 1.0)])
    worst.tell(worst.ask()[0].number, {"score": 1, "speed": 0})
    refused(StateError, worst.best, "satisfy the constraints", "trial 0", "loosen a bound")


def test_several_objectives_have_a_front_and_no_best() -> None:
    opt = optimizer(Sobol(), [Minimize("a"), Maximize("b")])
    for a, b in ((1, 1), (2, 2), (2, 1), (0, 0), (0, 0)):
        opt.tell(opt.ask()[0].number, {"a": a, "b": b})
    assert [t.number for t in opt.front()] == [0, 1, 3]
    refused(StateError, opt.best, "one objective", "there are 2", "front()")
    refused(StateError, optimizer().front, "several objectives", "best()")
    refused(
        InputError,
        lambda: alebo.minimize(sphere, [(0, 1)] * D, goals=[Minimize("a"), Minimize("b")]),
        "one objective",
        "front()",
    )


def test_the_hypervolume_grows_with_every_trade_off() -> None:
    goals = [Minimize("a", reference=3.0), Maximize("b", reference=0.0), AtMost("c", 0.0)]
    opt = optimizer(Sobol(), goals)
    for a, b, c in ((1, 1, 0), (2, 2, 0), (0, 9, 1), (2, 1, 0)):
        opt.tell(opt.ask()[0].number, {"a": a, "b": b, "c": c})
    opt.fail(opt.ask()[0].number)
    opt.ask()  # pending: not yet counted
    assert opt.hypervolumes().tolist() == [2.0, 3.0, 3.0, 3.0, 3.0]
    assert opt.hypervolumes([4.0, 0.0]).tolist() == [3.0, 5.0, 5.0, 5.0, 5.0]
    refused(InputError, lambda: opt.hypervolumes([1.0]), "one finite number for each", "'a'")
    refused(StateError, optimizer().hypervolumes, "several objectives", "best()")
    free = optimizer(Sobol(), [Minimize("a"), Maximize("b")])
    assert free.hypervolumes().tolist() == []
    for a, b in ((1, 1), (2, 2)):
        free.tell(free.ask()[0].number, {"a": a, "b": b})
    inferred = free.hypervolumes()  # reference (2.1, 0.9)
    assert inferred.tolist() == pytest.approx([1.1 * 0.1, 1.1 * 0.1 + 0.1 * 1.0])


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


# -- saving and loading ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [Sobol(), small(4), small(None)], ids=["sobol", "alebo", "alebo-growing"])
def test_load_and_ask_equals_never_stopped(method: Any, tmp_path: Path) -> None:
    """Stopped and loaded before every single ask, and pending, failed and foreign points among them."""
    straight, stopped = optimizer(method, seed=3), optimizer(method, seed=3)
    path = tmp_path / "study.json"
    for k in range(11):
        stopped.save(path)
        stopped = Optimizer.load(path)
        assert stopped.method == method
        for opt in (straight, stopped):
            if k == 4:
                opt.tell({f"x{i}": 0.1 for i in range(D)}, 0.7)
            trials = opt.ask(2 if k == 6 else 1)
            if k == 5:
                opt.fail(trials[0].number, "broke")
            elif k != 7:  # 7 stays pending
                for t in trials:
                    opt.tell(t.number, (value(t), 0.01) if k == 8 else value(t))
        assert record(straight) == record(stopped), f"differs at ask {k}"


def test_a_saved_study_holds_everything(tmp_path: Path) -> None:
    space = Space(
        [
            Float("a", 1e-3, 1, log=True),
            Int("n", 1, 9),
            Categorical("c", ["x", 2, True]),
            Fixed("f", None),
            Float("b", 0, 1),
        ],
        [LinearConstraint({"b": 1.0, "n": 0.1}, 1.5)],
    )
    goals = [Minimize("y", reference=3.0), Maximize("z"), AtMost("w", 1.5), alebo.Cost("t")]
    opt = Optimizer(space, goals, method=METHODS["alebo"](), seed=2**61 + 1, budget=30)  # type: ignore[arg-type]
    for t in opt.ask(3):
        opt.tell(t.number, {"y": 1e-12, "z": (1e12, 0.5), "w": 0, "t": 4})
    path = tmp_path / "s.json"
    opt.save(path)
    again = Optimizer.load(str(path))
    assert (again.space, again.goals, again.seed, again.budget) == (opt.space, opt.goals, opt.seed, 30)
    assert again.space.constraints == opt.space.constraints
    assert record(again) == record(opt)
    assert repr(again) == repr(opt)
    again.save(path)  # over the old one
    assert record(Optimizer.load(path)) == record(opt)
    assert os.listdir(tmp_path) == ["s.json"]  # no half-written neighbour stays


def saved(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    path = tmp_path / "study.json"
    drive(optimizer(Sobol()), 4).save(path)
    return path, json.loads(path.read_text())


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_file(share: float, tmp_path: Path) -> None:
    path, _ = saved(tmp_path)
    text = path.read_text()
    path.write_text(text[: int(share * len(text))])
    refused(StudyError, lambda: Optimizer.load(path), "one JSON file", str(path), "backup")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00binary", b"hello", b"[1, 2]", b'{"a": 1}', b"null", b"3"])
def test_a_foreign_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(content)
    refused(StudyError, lambda: Optimizer.load(path), "A saved study is", str(path))


def test_no_file_or_a_folder(tmp_path: Path) -> None:
    refused(StudyError, lambda: Optimizer.load(tmp_path / "no.json"), "must exist", "no.json", "Check the path")
    refused(StudyError, lambda: Optimizer.load(tmp_path), "cannot be read")
    opt = drive(optimizer(), 2)
    refused(StudyError, lambda: opt.save(tmp_path / "no" / "s.json"), "folder that exists", "No outcome is lost")
    refused(StudyError, lambda: opt.save(tmp_path), "cannot be written")
    assert len(opt.history) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_a_later_format(tmp_path: Path) -> None:
    path, data = saved(tmp_path)
    path.write_text(json.dumps({**data, "format": 99, "alebo": "7.0"}))
    refused(StudyError, lambda: Optimizer.load(path), "format 99", "alebo 7.0", "Install that version")


def damage_cases() -> list[Any]:
    def trial(i: int, **change: Any) -> Callable[[dict[str, Any]], None]:
        return lambda d: d["trials"][i].update(change)

    return [
        pytest.param(lambda d: d.pop("space"), id="no space"),
        pytest.param(lambda d: d.pop("trials"), id="no trials"),
        pytest.param(lambda d: d.update(trials=7), id="trials are a number"),
        pytest.param(lambda d: d.update(trials=[{}]), id="an empty trial"),
        pytest.param(lambda d: d.update(goals=[{"type": "Smallest", "outcome": "y"}]), id="unknown goal"),
        pytest.param(lambda d: d.update(goals=[]), id="no goals"),
        pytest.param(lambda d: d.update(method={"name": "alebbo"}), id="unknown method"),
        pytest.param(lambda d: d.update(method=None), id="method null"),
        pytest.param(lambda d: d.update(seed=None), id="seed null"),
        pytest.param(lambda d: d.update(budget=-3), id="budget negative"),
        pytest.param(lambda d: d["space"]["x0"].update(low=5), id="bounds reversed"),
        pytest.param(trial(1, x=[0.0, 1.0]), id="a short point"),
        pytest.param(trial(1, x="abc"), id="a point of text"),
        pytest.param(trial(1, x=[math.nan] * D), id="a point of NaN"),
        pytest.param(trial(1, y=[[1.0]]), id="embedded coordinates of a wrong shape"),
        pytest.param(trial(1, number=3), id="a number twice"),
        pytest.param(trial(1, state="done"), id="unknown state"),
        pytest.param(trial(1, outcomes={}), id="complete without outcomes"),
        pytest.param(trial(1, outcomes={"loss": [math.nan, None]}), id="a NaN outcome"),
        pytest.param(trial(1, params={"x0": 3}), id="other parameters"),
        pytest.param(trial(1, outcomes={"loss": [1.0, math.nan]}), id="a NaN standard error"),
        pytest.param(trial(1, outcomes={"loss": [1.0, -0.5]}), id="a negative standard error"),
        pytest.param(trial(1, x=[7.0] * D), id="a point outside the cube"),
        pytest.param(trial(1, earlier=[{"number": 1}]), id="half a correction"),
        pytest.param(lambda d: d.update(queue=[{"x0": 9}]), id="a queue of nonsense"),
        pytest.param(lambda d: d.update(queue=3), id="a queue that is a number"),
        pytest.param(lambda d: d["trials"].pop(1), id="a missing trial"),
        pytest.param(lambda d: d["trials"][1].pop("state"), id="no state"),
        pytest.param(lambda d: d.update(seed="1"), id="a seed of text"),
        pytest.param(lambda d: d.update(seed=1.5), id="a seed with a fraction"),
        pytest.param(lambda d: d.update(budget=True), id="a budget of true"),
        pytest.param(lambda d: d.update(constraints=""), id="constraints are a text"),
        pytest.param(lambda d: d.update(queue={}), id="a queue that is an object"),
        pytest.param(lambda d: d["goals"][0].update(reference="a"), id="a reference of text"),
        pytest.param(lambda d: d["goals"][0].update(outcome=3), id="an outcome that is a number"),
        pytest.param(lambda d: d["space"]["x0"].update(log="no"), id="a scale of text"),
        pytest.param(trial(1, number="1"), id="a number of text"),
        pytest.param(trial(1, asked="no"), id="asked is a text"),
        pytest.param(trial(1, reason=7), id="a reason that is a number"),
        pytest.param(trial(1, outcomes={"loss": ["1.0", None]}), id="an outcome of text"),
        pytest.param(trial(1, outcomes={"loss": [1.0, None, 2.0]}), id="an outcome of three numbers"),
        pytest.param(trial(1, x=["0.0"] * D), id="a point of texts"),
        pytest.param(trial(1, x=[10**400] * D), id="a point beyond floats"),
        pytest.param(trial(1, note={"enqueued": []}), id="a note of a wrong kind"),
        pytest.param(trial(1, earlier={}), id="corrections that are an object"),
    ]


@pytest.mark.parametrize("damage", damage_cases())
def test_a_damaged_file(damage: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    path, data = saved(tmp_path)
    damage(data)
    path.write_text(json.dumps(data))
    said = refused(StudyError, lambda: Optimizer.load(path), str(path))
    assert "backup" in said


def test_what_is_not_plain_data_is_not_saved_and_nothing_is_lost(tmp_path: Path) -> None:
    space = Space([Categorical("c", [object(), object()]), Float("a", 0, 1)])
    opt = Optimizer(space, Minimize("y"), method=Sobol())
    opt.tell(opt.ask()[0].number, 1.0)
    path = tmp_path / "s.json"
    path.write_text("the old file")
    refused(StudyError, lambda: opt.save(path), "plain data", "Use plain values")
    assert path.read_text() == "the old file"
    assert opt.best().number == 0


# -- bad input: every line of it -----------------------------------------------------------------------------------------

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


# -- starting points -----------------------------------------------------------------------------------------------------


def test_x0_is_evaluated_first_and_known_values_are_not() -> None:
    seen: list[np.ndarray] = []

    def f(x: np.ndarray) -> float:
        seen.append(x.copy())
        return sphere(x)

    start = np.full((2, D), 0.25)
    start[1] = -0.5
    result = alebo.minimize(f, [(-1, 1)] * D, budget=5, x0=start, method=Sobol())
    np.testing.assert_allclose(seen[:2], start, atol=1e-12)
    assert len(seen) == result.nfev == 5
    seen.clear()
    result = alebo.minimize(f, [(-1, 1)] * D, budget=5, x0=start, y0=[1.0, (-2.0, 0.1)], method=Sobol())
    assert len(seen) == 5
    assert len(result.history) == 7
    assert result.fun == -2.0
    one = alebo.minimize(f, [(-1, 1)] * D, budget=2, x0=start[0], y0=[-9], method=Sobol())
    assert one.fun == -9.0
    assert alebo.minimize(f, [(-1, 1)] * D, budget=2, x0=start[0], y0=-9.0, method=Sobol()).fun == -9.0  # type: ignore[arg-type]


def test_x0_of_a_mixed_space_keeps_its_types() -> None:
    space = Space([Float("a", 0, 1), Categorical("c", [True, "x"]), Int("n", 0, 5)])
    got: list[Any] = []

    def f(p: dict[str, Any]) -> float:
        got.append(dict(p))
        return 1.0

    alebo.minimize(f, space, budget=2, x0=[0.5, True, 3], method=Sobol())
    assert got[0] == {"a": 0.5, "c": True, "n": 3}
    alebo.minimize(f, space, budget=1, x0={"n": 4, "a": 0.5, "c": "x"}, method=Sobol())
    assert got[-1] == {"a": 0.5, "c": "x", "n": 4}


@pytest.mark.parametrize(
    ("x0", "y0", "words"),
    [
        (None, [1.0], ["`y0` belongs to points `x0`"]),
        ([0.1] * (D - 1), None, ["20 values", "(1, 19)"]),
        ([[0.1] * D, [0.2] * 3], None, ["20 values"]),
        ([0.1] * D, [1.0, 2.0], ["belong together", "1 points and 2 outcomes"]),
        ([7.0] * D, None, ["`-1.0 <= x0 <= 1.0`", "7.0"]),
        ([0.1] * D, [math.nan], ["finite", "nan"]),
    ],
)
def test_bad_starting_points(x0: Any, y0: Any, words: list[str]) -> None:
    calls: list[Any] = []
    refused(
        InputError, lambda: alebo.minimize(calls.append, [(-1, 1)] * D, budget=3, x0=x0, y0=y0, method=Sobol()), *words
    )
    assert not calls


def test_callback_sees_every_trial() -> None:
    seen = []
    alebo.minimize(
        sphere,
        [(-1, 1)] * D,
        budget=4,
        method=Sobol(),
        callback=lambda t, opt: seen.append((t.number, len(opt.history))),
    )
    assert seen == [(0, 1), (1, 2), (2, 3), (3, 4)]


# -- values that break careless models: every proposal stays valid ---------------------------------------------------------


def valid(opt: Optimizer, trial: Trial) -> None:
    assert np.isfinite(trial.x).all()
    assert np.abs(trial.x).max() <= 1.0 + 1e-9
    opt.space.check(trial.params)


ODD_VALUES: dict[str, Callable[[Trial], float]] = {
    "constant": lambda t: 3.0,
    "zero": lambda t: 0.0,
    "huge": lambda t: 1e12 * (1 + value(t)),
    "huge and constant": lambda t: 1e12,
    "tiny": lambda t: 1e-12 * value(t),
    "huge offset": lambda t: 1e12 + value(t),
    "from tiny to huge": lambda t: 10.0 ** (12 - 3 * (t.number % 9)),
    "one outlier": lambda t: 1e12 if t.number == 2 else value(t),
    "two values": lambda t: float(t.number % 2),
}


@pytest.mark.parametrize(
    ("name", "dim"),
    [*((name, 6) for name in ODD_VALUES), *((n, d) for n in ("constant", "huge", "tiny") for d in (3, None))],
)
def test_odd_values_keep_proposing_valid_points(name: str, dim: int | None) -> None:
    opt = optimizer(small(dim), seed=5, D=25)
    for _ in range(9):
        trial = opt.ask()[0]
        valid(opt, trial)
        opt.tell(trial.number, ODD_VALUES[name](trial))
    for trial in opt.ask(2):
        valid(opt, trial)
    best = min(ODD_VALUES[name](t) for t in opt.history.complete)
    assert opt.best().outcomes["loss"].mean == best


def test_duplicated_points() -> None:
    opt = optimizer(small(), seed=1)
    drive(opt, 6)
    point = dict(opt.history[2].params)
    for i in range(6):
        opt.tell(point, 0.5 + 1e-3 * i)
    for _ in range(4):
        trial = opt.ask()[0]
        valid(opt, trial)
        opt.tell(trial.number, value(trial))


def test_the_same_embedded_point_told_again_and_again() -> None:
    """A method that proposed one point six times, with contradicting values: the history is built by hand."""
    opt = drive(optimizer(small(), seed=1), 7)
    twin = opt.history[3]
    for i in range(6):
        again = Trial(len(opt.history), twin.params, twin.x, twin.y, twin.outcomes, State.COMPLETE, twin.note)
        again = Trial.from_dict({**again.to_dict(), "outcomes": {"loss": [float(i), None]}})
        opt.history = opt.history.with_trial(again)
    for trial in opt.ask(3):
        valid(opt, trial)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("dim", [3, 6, None])
def test_fewer_observations_than_dimensions(n: int, dim: int | None) -> None:
    """One single observation, and none: whatever the method's initial design is, points come one by one and in batches."""
    opt = optimizer(small(dim), seed=2, D=30)
    drive(opt, n)
    for trial in opt.ask(2):
        valid(opt, trial)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_a_model_of_few_observations(n: int) -> None:
    """The initial design asked for, but only n of it told and the rest failed: n smaller than d_e."""
    opt = optimizer(small(6), seed=2, D=30)
    trials = opt.ask(7)
    for t in trials[:n]:
        opt.tell(t.number, value(t))
    for t in trials[n:]:
        opt.fail(t.number)
    for _ in range(2):
        trial = opt.ask()[0]
        valid(opt, trial)
        opt.tell(trial.number, value(trial))


def test_told_points_only() -> None:
    """Nothing was ever asked: all points came from elsewhere and lie off every embedding."""
    opt = optimizer(small(), seed=2)
    rng = np.random.default_rng(0)
    for _ in range(15):
        params = opt.space.decode(rng.uniform(-1, 1, D))
        opt.tell(params, sphere(np.array(list(params.values()))))
    for trial in opt.ask(2):
        valid(opt, trial)


@pytest.mark.parametrize("bounds", [(1e-12, 2e-12), (-1e12, 1e12), (1e6, 1e6 + 1e-3)])
def test_bounds_of_any_size(bounds: tuple[float, float]) -> None:
    low, high = bounds
    result = alebo.minimize(lambda x: float(((x - low) / (high - low))[3]), [bounds] * D, budget=8, method=small())
    for trial in result.history:
        assert all(low <= v <= high for v in trial.params.values())


@pytest.mark.parametrize("D", [1, 2, 3, 5])
def test_spaces_smaller_than_the_default_embedding(D: int) -> None:
    result = alebo.minimize(lambda x: float((x**2).sum()), [(-1, 2)] * D, budget=9, seed=1)
    assert len(result.x) == D
    assert result.nfev == 9


def test_best_under_noise_is_feasible_as_measured_and_as_estimated() -> None:
    """The model may take a point that was measured beyond the bound for a feasible one; it is not handed out."""

    class Estimates(Sobol):
        def estimate(self, history: Any, space: Any, goals: Any, seed: int) -> Any:
            return {t.number: {**t.outcomes, "g": Outcome(-1.0)} for t in history.complete}

    opt = Optimizer(Space.from_bounds([(0, 1)] * 2), [Minimize("f"), AtMost("g", 0.0)], method=Estimates(), seed=0)
    for f, g in ((1.0, 0.5), (2.0, -0.5), (3.0, -0.5)):
        opt.tell(opt.ask()[0].number, {"f": f, "g": g})
    assert (opt.best().number, opt.best().note["chosen_by"]) == (1, "posterior mean")
