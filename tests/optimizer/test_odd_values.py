"""Values and sizes that break careless models: every proposal stays valid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import alebo
from alebo import (
    Optimizer,
    State,
    Trial,
)

from .runs import D, drive, optimizer, small, sphere, value


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
