"""SAASBO: the sparse prior finds the parameters that matter; the sampled variant agrees with the fast one."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

import alebo
from alebo.methods.saasbo import SAASBO, SAASMAP
from tests.conftest import require_module

GOAL = alebo.Minimize("f")


def additive(X: np.ndarray) -> np.ndarray:
    return np.sin(5 * X[..., 2]) + 2 * X[..., 7] ** 2 - X[..., 11]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_active_parameters_have_the_short_lengthscales(seed: int) -> None:
    X = np.random.default_rng(seed).random((40, 30))
    ls = SAASMAP().builder(30)(X, additive(X)).lengthscales
    active = np.isin(np.arange(30), [2, 7, 11])
    assert ls[active].max() * 10 < ls[~active].min()


def run(opt: alebo.Optimizer, n: int) -> np.ndarray:
    for _ in range(n):
        t = opt.ask()[0]
        opt.tell(t.number, float(additive(np.array(list(t.params.values())))))
    return np.array([t.x for t in opt.history])


def test_it_finds_the_minimum_of_three_parameters_among_thirty(tmp_path) -> None:
    opt = alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * 30), GOAL, method=SAASMAP(initial=14), seed=0)
    run(opt, 24)
    assert opt.best().outcomes["f"].mean < -1.75  # the minimum is sin(5 * 0.942) - 1 = -2
    opt.save(tmp_path / "s.json")
    again = alebo.Optimizer.load(tmp_path / "s.json")
    assert np.array_equal(again.ask()[0].x, opt.ask()[0].x)


def test_without_the_sampler_the_message_says_how_to_get_it(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "numpyro", None)
    opt = alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * 12), GOAL, method=SAASBO(initial=2), seed=0)
    run(opt, 2)
    with pytest.raises(alebo.MissingPartError, match=r'pip install "alebo\[saas\]".*saas-map'):
        opt.ask()


@pytest.mark.slow
def test_nuts_agrees_with_map_on_what_matters_and_is_reproducible() -> None:
    require_module("numpyro", "saas")
    X = np.random.default_rng(0).random((30, 12))
    method = SAASBO(warmup=64, samples=32, thinning=8)
    data = torch.from_numpy(X), torch.from_numpy(additive(X))
    drawn, again = (method.builder(12)(*data, seed=5).models for _ in range(2))
    assert len(drawn) == 4
    median = np.median([g.lengthscales for g in drawn], axis=0)
    assert np.array_equal(median, np.median([g.lengthscales for g in again], axis=0))
    assert set(np.argsort(median)[:3]) == {2, 7, 11}
    opt = alebo.Optimizer(
        alebo.Space.from_bounds([(0, 1)] * 12), GOAL, method=SAASBO(initial=5, warmup=16, samples=8, thinning=4)
    )
    assert run(opt, 6).shape == (6, 12)


def test_settings_are_checked() -> None:
    with pytest.raises(alebo.InputError, match="samples >= 1"):
        SAASBO(samples=0)
