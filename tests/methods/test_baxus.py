"""BAxUS: nested bins, observations that keep their place, stages paced by the budget."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import alebo
from alebo.history import Trial
from alebo.methods.baxus import BAxUS, Bins

GOAL = alebo.Minimize("f")


@given(st.integers(1, 60), st.integers(1, 12), st.integers(2, 5), st.integers(0, 99))
def test_splitting_keeps_every_point(D: int, dim: int, parts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    old = Bins.draw(D, min(dim, D), rng)
    new = old.split(parts, rng)
    y = rng.uniform(-1, 1, (4, old.dim))
    x = old.up(y)
    assert np.abs(x).max() <= 1.0
    assert np.allclose(old.down(x), y)
    assert np.allclose(new.up(new.down(x)), x)  # every old point lies in the larger space
    parent = [old.bin[new.bin == j] for j in range(new.dim)]
    assert all(len(set(p)) == 1 for p in parent)  # nested: a new bin has one parent
    assert new.dim == sum(min(parts, int(n)) for n in np.bincount(old.bin, minlength=old.dim))


@given(st.integers(1, 500), st.integers(1, 30))
def test_bins_are_even(D: int, dim: int) -> None:
    sizes = np.bincount(Bins.draw(D, min(dim, D), np.random.default_rng(0)).bin)
    assert sizes.max() - sizes.min() <= 1


@given(st.integers(1, 2000), st.integers(1, 5))
def test_sizes_rise_to_the_full_space(D: int, splits: int) -> None:
    sizes = BAxUS(splits=splits).sizes(D)
    assert sizes[-1] == D
    assert 1 <= sizes[0] <= max(splits, 1)
    assert all(a < b <= a * (splits + 1) or b == D for a, b in pairwise(sizes))
    assert BAxUS(splits=splits).bins(D, 0, len(sizes) - 1, 7).dim == D


def test_each_stage_has_the_size_that_was_planned() -> None:
    method = BAxUS()
    for D in (100, 1000):
        assert [method.bins(D, 0, i, 3).dim for i in range(len(method.sizes(D)))] == method.sizes(D)


def test_patience_grows_with_the_stage_and_the_budget() -> None:
    method = BAxUS()
    assert method.sizes(100) == [2, 8, 32, 100]
    short = [method.patience(i, 100, 100) for i in range(4)]
    long = [method.patience(i, 100, 2000) for i in range(4)]
    assert short == sorted(short)
    assert all(1 <= a <= b for a, b in zip(short, long, strict=True))
    assert [*long[:3], long[3]] == [2, 8, 32, 100]  # never more than one failure a coordinate


def told(opt: alebo.Optimizer, value) -> Trial:
    t = opt.ask()[0]
    return opt.tell(t.number, value(t))


def test_a_collapse_splits_and_every_observation_stays() -> None:
    D = 30
    method = BAxUS(initial=3, candidates=32)
    opt = alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * D), GOAL, method=method, seed=1, budget=60)
    for _ in range(60):
        told(opt, lambda t: 1.0 + t.number)  # never an improvement: the region can only shrink
    stages = [t.note["stage"] for t in opt.history]
    assert stages == sorted(stages)
    assert max(stages) >= 1
    last = opt.history[-1].note
    bins = method.bins(D, last["life"], last["stage"], 1)
    X = np.array([t.x for t in opt.history if t.note["life"] == last["life"]])
    assert len(X) == 60
    assert np.allclose(bins.up(bins.down(X)), X)
    assert all(len(t.y) == t.note["dim"] for t in opt.history)
    # a stage ends after the planned number of halvings, each after `patience` failures
    first = sum(t.note["stage"] == 0 and not t.note["initial"] for t in opt.history)
    assert first == 7 * method.patience(0, D, 60)


def test_it_resumes_as_if_never_stopped(tmp_path) -> None:
    def value(t: Trial) -> float:
        return float(np.sum((t.x[:3] - 0.4) ** 2))

    space = alebo.Space.from_bounds([(0, 1)] * 25)
    opt = alebo.Optimizer(space, GOAL, method=BAxUS(initial=4, candidates=64), seed=2, budget=40)
    for _ in range(20):
        told(opt, value)
    opt.save(tmp_path / "s.json")
    again = alebo.Optimizer.load(tmp_path / "s.json")
    for _ in range(5):
        assert np.array_equal(told(opt, value).x, told(again, value).x)
    assert float(value(opt.best())) < value(opt.history[0])


def test_batches_failures_and_refusals() -> None:
    space = alebo.Space.from_bounds([(0, 1)] * 12)
    opt = alebo.Optimizer(space, GOAL, method=BAxUS(initial=3, candidates=32), seed=0)
    asked = opt.ask(5)
    for t in asked[:3]:
        opt.tell(t.number, float(t.number))
    opt.fail(asked[3].number)
    asked += opt.ask(4)
    assert len({t.x.tobytes() for t in asked}) == 9
    categories = alebo.Space([alebo.Categorical("c", ["a", "b"]), alebo.Float("u", 0, 1)])
    with pytest.raises(alebo.InputError, match=r"BAxUS is not defined for categories.*Methods that are"):
        alebo.Optimizer(categories, GOAL, method=BAxUS())
    with pytest.raises(alebo.InputError, match=r"splits >= 1"):
        BAxUS(splits=0)
