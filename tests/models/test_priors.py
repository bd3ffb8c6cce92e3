"""Priors of the full-space GP against their definitions, and where its fits start."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from alebo import InputError
from alebo.models import Mixture
from alebo.models.ard import ARDGP, typical_lengthscales
from alebo.models.ard_density import LogDensity
from alebo.models.ard_fit import (
    COLD_ITERATIONS,
    WARM_ITERATIONS,
    _cold_starts,
    _remembered,
    fit_ard,
    fit_each,
    refreshes,
)
from alebo.models.outcomes import without_worst
from alebo.models.priors import (
    ARDPrior,
    LogNormal,
    LogScale,
    SparseLengthscales,
    dense,
    embedded,
    scaled_region,
    sparse,
    trust_region,
)

LOGS = st.lists(st.floats(-4, 4), min_size=2, max_size=5).map(np.array)


@given(LOGS, st.floats(-2, 2), st.floats(0.2, 3))
def test_densities_are_scipys_up_to_a_constant(log: np.ndarray, mean: float, sd: float) -> None:
    l = np.exp(log)
    for density, by_scipy in (
        (LogNormal(mean, sd), lambda v: stats.lognorm(sd, scale=math.exp(mean)).logpdf(v)),
        (LogScale(mean, sd), lambda v: stats.norm(mean, sd).logpdf(np.log(v))),
        (SparseLengthscales(sd), lambda v: stats.halfcauchy(scale=sd).logpdf(v**-2.0)),
    ):
        at, one = density.penalty(log)[0], density.penalty(np.zeros(len(log)))[0]
        assert at - one == pytest.approx(float((by_scipy(np.ones(len(l))) - by_scipy(l)).sum()), abs=1e-8)
        slopes = [(density.penalty(log + h)[0] - density.penalty(log - h)[0]) / 2e-6 for h in 1e-6 * np.eye(len(log))]
        assert density.penalty(log)[1] == pytest.approx(slopes, abs=1e-5)
    assert np.isfinite(SparseLengthscales(0.1).penalty(np.array([-200.0]))[0])  # a lengthscale of e^-200


def test_the_numbers_of_the_papers() -> None:
    root2, root3 = math.sqrt(2.0), math.sqrt(3.0)
    mode = math.exp(root2 + 0.5 * math.log(9) - root3**2)
    assert dense(9) == ARDPrior(
        "dense", "rbf", (0.025, 1e4), (1.0, 1.0), (1e-4, 2.0),
        LogNormal(root2 + 0.5 * math.log(9), root3), None, LogNormal(-4.0, 1.0), (mode, 4.0 * mode), math.exp(-5.0),
    )  # fmt: skip  # Hvarfner et al. 2024
    assert trust_region() == ARDPrior(
        "trust region", "matern", (0.005, 2.0), (0.05, 20.0), (5e-4, 0.2), starts=(0.5, 2.0), start_noise=5e-3
    )  # Eriksson et al. 2019
    assert sparse(0.2) == ARDPrior(
        "sparse 0.2", "matern", (1e-2, 1e4), (0.05, 20.0), (1e-6, 1.0), SparseLengthscales(0.2),
        starts=(1.0, 10.0), start_noise=1e-3, rugged=True,
    )  # fmt: skip  # Eriksson and Jankowiak 2021
    region = scaled_region(9, 0.5)
    assert region.lengthscale_density == LogNormal(root2 + 0.5 * math.log(9) + math.log(0.5), root3)
    assert (region.lengthscale, region.variance, region.noise) == ((5e-4, 5e3), (0.05, 20.0), (1e-6, 1.0))
    assert region.starts == pytest.approx((0.5 * mode, 2.0 * mode))
    assert region.noise_density == LogNormal(-4.0, 2.0)
    inside = embedded(9, restarts=2)
    assert inside.lengthscale_density == LogNormal(root2 + 0.5 * math.log(9) + math.log(2.0), root3)
    assert inside.variance == pytest.approx((math.exp(-5.0), math.exp(5.0)))
    assert (inside.variance_density, inside.noise_density) == (LogScale(0.0, 1.0), LogScale(-9.0, math.sqrt(10.0)))
    assert inside.starts == pytest.approx((2.0 * mode * math.sqrt(10.0),))
    assert (inside.restarts, embedded(9).restarts, inside.lengthscale, inside.noise) == (2, 1, (1e-2, 1e3), (1e-6, 2.0))


@pytest.mark.parametrize("field", ["lengthscale", "variance", "noise"])
def test_bounds_are_positive_finite_and_in_order(field: str) -> None:
    fine = {"lengthscale": (0.1, 1.0), "variance": (0.1, 1.0), "noise": (0.1, 1.0)}
    for bounds in ((0.5, 0.5), (1e-9, 1e9)):
        assert getattr(ARDPrior("mine", "rbf", **{**fine, field: bounds}), field) == bounds
    for bounds in ((0.0, 1.0), (-1.0, 1.0), (1.0, 0.5), (0.5, math.inf), (math.nan, 1.0)):
        with pytest.raises(InputError, match=f"must hold for the bounds of `{field}`"):
            ARDPrior("mine", "rbf", **{**fine, field: bounds})


def test_a_prior_needs_a_start() -> None:
    fine: Any = ("mine", "rbf", (0.1, 1.0), (0.1, 1.0), (0.1, 1.0))
    assert ARDPrior(*fine, starts=(1.0,), start_noise=1e-9, restarts=0).restarts == 0
    for wrong in ({"starts": ()}, {"start_noise": 0.0}, {"start_noise": -1.0}, {"restarts": -1}):
        with pytest.raises(InputError, match="needs one starting lengthscale"):
            ARDPrior(*fine, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'matern' or 'rbf'; got 'linear'"):
        ARDPrior("mine", "linear", *fine[2:])
    for side in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="`side > 0` must hold"):
            scaled_region(3, side)
    assert scaled_region(3, 1e-3).lengthscale == pytest.approx((1e-6, 10.0))


def test_where_fits_start() -> None:
    prior = embedded(3, restarts=2)
    target = LogDensity(np.random.default_rng(0).random((6, 3)), np.arange(6.0), prior)
    first, *others = _cold_starts(target, 0)
    assert first[:3] == pytest.approx([math.log(prior.starts[0])] * 3)
    assert first[3:] == pytest.approx([0.0, math.log(prior.start_noise)])
    assert len(others) == 2
    for theta in others:
        assert theta[3:] == pytest.approx([0.0, math.log(prior.start_noise) - 2.0])
    many = LogDensity(np.zeros((2, 400)), np.arange(2.0), embedded(400))
    off = _cold_starts(many, 0)[1][:400] - math.log(embedded(400).starts[0])
    assert (off.mean(), off.std()) == (pytest.approx(0.0, abs=0.2), pytest.approx(1.2, abs=0.15))
    assert (COLD_ITERATIONS, WARM_ITERATIONS) == (100, 20)
    known = LogDensity(np.zeros((2, 3)), np.arange(2.0), prior, np.ones(2))
    assert len(known.start(0.0)) == 4  # no noise to be fitted
    assert target.start(100.0, -100.0, 9.0) == pytest.approx([math.log(1e3)] * 3 + [-5.0, math.log(2.0)])  # clipped


def test_a_memory_brings_the_parameters_back() -> None:
    lengthscales = np.exp([0.0, 0.01, 3.0, -2.0, 0.0, 0.0])
    gp = ARDGP.of(np.random.default_rng(0).random((4, 6)), np.arange(4.0), "rbf", lengthscales, 2.0, np.full(4, 0.01))
    memory = gp.memory
    assert memory == pytest.approx([math.log(2.0), math.log(0.01), 0.0, 2, 3.0, 3, -2.0], abs=1e-3)
    target = LogDensity(gp.X, gp.targets, embedded(6))
    assert _remembered(target, memory) == pytest.approx(
        [0, 0, 3.0, -2.0, 0, 0, math.log(2.0), math.log(0.01)], abs=1e-3
    )
    smaller = LogDensity(gp.X[:, :3], gp.targets, embedded(3))
    assert _remembered(smaller, memory)[:3] == pytest.approx(
        [0, 0, 3.0], abs=1e-3
    )  # what is not there any more is left out
    assert [n for n in range(1, 12) if not refreshes(n, 5, dense(5))] == [7, 9, 11]
    assert [refreshes(n, 1000, sparse()) for n in (30, 31, 32, 33, 35, 36)] == [True, False, True, False, False, True]


def test_one_memory_for_each_prior_or_none() -> None:
    rng = np.random.default_rng(1)
    X, values = rng.random((12, 3)), rng.random(12)
    priors = [dense(3), sparse(1.0)]
    cold = fit_each(X, values, priors)
    warm = fit_each(X, values, priors, warm=[gp.memory for gp in cold])
    for a, b in zip(cold, warm, strict=True):
        assert b.log_density >= a.log_density - 0.2
    ignored = fit_each(X, values, priors, warm=[cold[0].memory])  # of another number of priors
    assert [g.log_density for g in ignored] == [g.log_density for g in cold]


def test_typical_lengthscales_are_geometric_means() -> None:
    X, v = np.random.default_rng(0).random((4, 2)), np.arange(4.0)
    one, two = (ARDGP.of(X, v, "rbf", np.array(l), 1.0, np.full(4, 0.1)) for l in ([1.0, 2.0], [4.0, 8.0]))
    assert typical_lengthscales(Mixture((one, two))) == pytest.approx([2.0, 4.0])
    assert typical_lengthscales(two) == pytest.approx([4.0, 8.0])
    none: Any = SimpleNamespace(points=torch.zeros(4, 2))
    assert typical_lengthscales(none).tolist() == [1.0, 1.0]


def test_noise_is_evident_where_it_is_and_only_there() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    smooth = np.sin(3 * X[:, 0]) + X[:, 1]
    noisy = fit_ard(X, smooth + 0.3 * rng.standard_normal(40), embedded(2))
    quiet = fit_ard(X, smooth, embedded(2))
    assert noisy.noise_evidence() > 5.0 > quiet.noise_evidence()
    assert noisy.log_likelihood() == pytest.approx(
        stats.multivariate_normal(np.full(40, noisy.mean), np.linalg.inv(noisy._root_inverse.T @ noisy._root_inverse)).logpdf(noisy.targets)
    )  # fmt: skip


def test_the_distribution_of_a_gradient() -> None:
    """Against finite differences of the mean, and of joint covariances."""
    rng = np.random.default_rng(2)
    X = rng.random((15, 3))
    gp = fit_ard(X, np.sin(4 * X[:, 0]) + X[:, 1], dense(3))
    x, h = np.array([0.4, 0.5, 0.6]), 1e-3
    mean, covariance = gp.gradient(x)
    points = np.concatenate([x + h * np.eye(3), x - h * np.eye(3)])
    joint_mean, joint = (t.numpy() for t in gp.covariance(torch.from_numpy(points)))
    difference = np.hstack([np.eye(3), -np.eye(3)]) / (2 * h)
    assert mean == pytest.approx(difference @ joint_mean, abs=1e-4)
    np.testing.assert_allclose(covariance, difference @ joint @ difference.T, atol=2e-3 * covariance.max())


def test_the_worst_values_are_raised_to_a_common_level() -> None:
    values = np.array([0.0, 1.0, 2.0, -1.0, -100.0, 0.5, -5.0])
    raised = without_worst(values)  # three times as far below the median as the best is above it
    assert raised == pytest.approx(np.maximum(values, -3.0 * 2.0))
    kept = np.array([0.0, 1.0, -2.5, 0.1, 0.2])
    assert np.array_equal(without_worst(kept), kept)
    assert without_worst(1e308 * np.array([1.0, 0.0, -1.0, 0.1])).min() == -1e308
