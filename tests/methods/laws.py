"""Laws that every method obeys, as functions: a test file names its method and calls them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import alebo
from alebo.history import State
from alebo.methods import METHODS, Method, build, from_dict, to_dict

D = 12


def bowl(x) -> float:
    """A smooth function of two of twelve coordinates of the cube."""
    return float((x[3] - 0.4) ** 2 + 2.0 * (x[7] + 0.3) ** 2 + 0.3 * x[3] * x[7])


def start(method: Method, *, D: int = D, seed: int = 3, goals=None) -> alebo.Optimizer:
    space = alebo.Space.from_bounds([(-1.0, 1.0)] * D)
    return alebo.Optimizer(space, goals or alebo.Minimize("loss"), method=method, seed=seed)


def run(method: Method, steps: int, *, fail: tuple[int, ...] = (), **how) -> alebo.Optimizer:
    opt = start(method, **how)
    for k in range(steps):
        (trial,) = opt.ask()
        if k in fail:
            opt.fail(trial.number, "crash")
        else:
            opt.tell(trial.number, bowl(trial.x))
    return opt


def next_point(opt: alebo.Optimizer) -> np.ndarray:
    """What the optimizer would ask next, without asking."""
    return alebo.Optimizer.from_dict(json.loads(json.dumps(opt.to_dict()))).ask()[0].x


def obeys(method: Method, *, steps: int, model_from: int) -> None:
    """Inside the cube, nothing twice, failures survived, the same history gives the same point, resume is exact."""
    opt = run(method, steps, fail=(1, model_from))
    X = np.stack([t.x for t in opt.history])
    assert np.abs(X).max() <= 1.0
    assert len(np.unique(X.round(12), axis=0)) == len(X)
    assert [t.number for t in opt.history.failed] == [1, model_from]
    ahead = next_point(opt)
    assert np.array_equal(ahead, next_point(opt))  # pure
    (trial,) = opt.ask()
    assert np.array_equal(ahead, trial.x)  # as if never stopped, through JSON
    assert json.dumps(trial.note)
    again = run(method, steps, fail=(1, model_from))
    assert np.array_equal(X, np.stack([t.x for t in again.history]))
    other = run(method, 2, seed=4)
    assert not np.array_equal(X[:2], np.stack([t.x for t in other.history]))


def leaves_failures(method: Method, *, steps: int) -> None:
    """After a failed proposal the next one is elsewhere."""
    opt = run(method, steps)
    (trial,) = opt.ask()
    opt.fail(trial.number)
    assert np.abs(next_point(opt) - trial.x).max() > 1e-4


def takes_told_points(method: Method, *, steps: int) -> None:
    """A point that was never asked counts for best, and the search goes on."""
    opt = run(method, steps)
    opt.tell(opt.space.decode(np.full(D, 0.25)), -7.0)
    assert opt.best().outcomes["loss"].mean == -7.0
    assert np.abs(next_point(opt)).max() <= 1.0


def refuses(method: Method) -> None:
    """What the authors did not define is refused with a message that names methods which can, before any evaluation."""
    space = alebo.Space.from_bounds([(-1.0, 1.0)] * D)
    loss = alebo.Minimize("loss")
    asked = {
        "constraints": [loss, alebo.AtMost("latency", 1.0)],
        "objectives": [loss, alebo.Minimize("cost")],
        "cost": [loss, alebo.Cost("seconds")],
    }
    for ability, goals in asked.items():
        if not getattr(method.supports, ability):
            _is_refused(method, ability, space, goals, goals[1].outcome)
    for ability, odd, type_ in (
        ("integers", alebo.Int("odd", 1, 9), int),
        ("categories", alebo.Categorical("odd", ["a", "b", "c"]), str),
    ):
        wider = alebo.Space([*space.parameters, odd])
        if getattr(method.supports, ability):
            opt = alebo.Optimizer(wider, loss, method=method, seed=1)
            assert isinstance(opt.ask()[0].params["odd"], type_)
        else:
            _is_refused(method, ability, wider, loss, "odd")
    if not method.supports.batches:
        opt = start(method)
        with pytest.raises(alebo.InputError, match="got a batch of 2: ask for one point"):
            opt.ask(2)
        opt.ask()
        with pytest.raises(alebo.InputError, match="got trial 0, which is pending: tell or fail it first"):
            opt.ask()


def _is_refused(method: Method, ability: str, space: alebo.Space, goals, came: str) -> None:
    able = [n for n, m in METHODS.items() if getattr(m.supports, ability)]
    assert able
    message = rf"{method.title} is not defined for .*; got .*'{came}'\. Methods that are: {', '.join(sorted(able))}"
    with pytest.raises(alebo.InputError, match=message):
        alebo.Optimizer(space, goals, method=method)


def keeps_a_batch_apart(method: Method, *, steps: int) -> None:
    """Points of one batch, and points asked while others are pending, do not coincide."""
    opt = run(method, steps)
    trials = [*opt.ask(3), *opt.ask(2)]
    assert all(t.state is State.PENDING for t in trials)
    X = np.stack([t.x for t in trials])
    gaps = np.abs(X[:, None] - X[None]).max(-1)[np.triu_indices(5, 1)]
    assert gaps.min() > 1e-3
    for t in trials[::-1]:
        opt.tell(t.number, bowl(t.x))
    assert np.abs(next_point(opt)).max() <= 1.0


def is_plain_data(method: Method) -> None:
    """Settings travel through plain data, and the class is listed with its citation."""
    assert from_dict(json.loads(json.dumps(to_dict(method)))) == method
    assert METHODS[method.name] is type(method)
    assert len(method.citation) > 20
    assert all(len(meaning) > 5 for _, meaning, _ in method.settings().values())
    assert type(method)() == build(method.name, **{key: value.default for key, value in method.settings().items()})
    with pytest.raises(alebo.InputError, match="no setting"):
        build(method.name, nonsense=1)
