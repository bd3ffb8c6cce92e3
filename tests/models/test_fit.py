"""The fit: gradient and curvature against finite differences, the likelihood against GPyTorch's."""

from __future__ import annotations

import math

import gpytorch
import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import ScaleKernel
from hypothesis import given, settings
from hypothesis import strategies as st

from alebo.models import MahalanobisKernel
from alebo.models.mahalanobis import laplace, likelihood
from alebo.models.mahalanobis.laplace import draws
from alebo.models.mahalanobis.likelihood import Hyperparameters, LogPosterior, MetricPrior, cold_start, fit

NONE = MetricPrior(0.0, 0.0, 0.0)


def problem(seed, n=15, d=3, known=False):
    rng = np.random.default_rng(seed)
    Y = torch.from_numpy(rng.normal(size=(n, d)))
    v = torch.sin(2 * Y[:, 0]) + 0.3 * torch.from_numpy(rng.normal(size=n))
    v = (v - v.mean()) / v.std()
    noise = torch.from_numpy(rng.uniform(0.01, 0.1, n)) if known else None
    theta = cold_start(d, rng).pack()
    theta[-2:] = rng.uniform(-1, 1), rng.uniform(-4, -1)
    return LogPosterior(Y, v, noise, MetricPrior()), theta


@given(seed=st.integers(0, 10_000), known=st.booleans())
@settings(max_examples=15)
def test_gradient_against_finite_differences(seed, known):
    target, theta = problem(seed, known=known)
    _, gradient = target(theta)
    h = 1e-6
    numeric = [(target(theta + h * e)[0] - target(theta - h * e)[0]) / (2 * h) for e in np.eye(len(theta))]
    assert np.allclose(gradient, numeric, rtol=1e-4, atol=1e-4 * max(1.0, np.abs(gradient).max()))


@given(seed=st.integers(0, 10_000), known=st.booleans())
@settings(max_examples=15)
def test_curvature_against_finite_differences_of_the_gradient(seed, known):
    target, theta = problem(seed, known=known)
    row, column = torch.triu_indices(target.d, target.d)
    curvature = target.curvature(Hyperparameters.unpack(theta))[row, column].numpy()
    h = 1e-5
    axes = np.eye(len(theta))[: len(curvature)]
    numeric = [(target(theta + h * e)[1][i] - target(theta - h * e)[1][i]) / (2 * h) for i, e in enumerate(axes)]
    assert np.allclose(curvature, numeric, rtol=1e-3, atol=1e-3 * max(1.0, np.abs(curvature).max()))


@pytest.mark.parametrize("seed", range(4))
def test_marginal_likelihood_is_gpytorchs(seed):
    target, theta = problem(seed)
    target = LogPosterior(target.Y, target.v, None, NONE)
    h = Hyperparameters.unpack(theta)
    Kinv = torch.linalg.inv(target.signal(h.U, h.log_scale) + torch.diag(target.noise(h.log_noise)))
    mean = float((Kinv @ target.v).sum() / Kinv.sum())
    model = SingleTaskGP(
        target.Y, target.v[:, None], covar_module=ScaleKernel(MahalanobisKernel(3, U=h.U)), outcome_transform=None
    )
    model.covar_module.outputscale = math.exp(h.log_scale)
    model.likelihood.noise = math.exp(h.log_noise)
    model.mean_module.constant = mean
    model.train()
    with torch.no_grad():
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        for _, module, _prior, *_ in list(mll.named_priors()):
            for name in list(module._priors):
                del module._priors[name]
        theirs = float(mll(model(target.Y), target.v)) * target.n
    assert target(theta)[0] == pytest.approx(theirs, rel=1e-6)


def test_packing_is_exact_and_padding_keeps_the_metric():
    rng = np.random.default_rng(0)
    h = cold_start(4, rng)
    again = Hyperparameters.unpack(h.pack())
    assert torch.equal(h.U, again.U)
    grown = h.padded(6, rng)
    assert torch.equal(grown.U[:4, :4], h.U)
    assert torch.equal(grown.U, torch.triu(grown.U))
    old, zeros = torch.randn(5, 4, dtype=torch.double), torch.zeros(5, 2, dtype=torch.double)
    assert torch.allclose(
        torch.cat([old, zeros], 1) @ grown.U.mT @ torch.eye(6, dtype=torch.double)[:, :4], old @ h.U.mT
    )


def test_a_fit_finds_the_direction_that_matters_and_a_warm_start_keeps_it():
    rng = np.random.default_rng(3)
    Y = torch.from_numpy(rng.normal(size=(60, 4)))
    direction = torch.tensor([0.6, 0.8, 0.0, 0.0], dtype=torch.double)
    v = torch.sin(1.5 * Y @ direction)
    v = (v - v.mean()) / v.std()
    target = LogPosterior(Y, v, None, MetricPrior())
    mode, value = fit(target, None, [cold_start(4, rng) for _ in range(4)])
    gamma = mode.U.mT @ mode.U
    leading = torch.linalg.eigh(gamma).eigenvectors[:, -1]
    assert abs(float(leading @ direction)) > 0.99
    _, again = fit(target, mode, iterations=20)
    assert again >= value - 1e-6


def test_draws_are_upper_triangular_start_at_the_mode_and_spread_with_inflation():
    target, theta = problem(1, n=30)
    mode, _ = fit(target, Hyperparameters.unpack(theta))
    narrow = draws(target, mode, 200, np.random.default_rng(0), inflation=1.0)
    wide = draws(target, mode, 200, np.random.default_rng(0), inflation=25.0)
    assert torch.equal(narrow[0], mode.U)
    assert torch.equal(narrow, torch.triu(narrow))
    assert (wide[1:] - mode.U).abs().mean() > (narrow[1:] - mode.U).abs().mean()
    assert len(draws(target, mode, 1, np.random.default_rng(0), inflation=1.0)) == 1


def test_impossible_parameters_are_refused_not_raised():
    target, theta = problem(0)
    theta[-2], theta[-1] = 800.0, -700.0
    value, gradient = target(theta)
    assert value == -1e25
    assert not gradient.any()


def test_the_curvature_of_many_points_is_close_to_the_full_one(monkeypatch):
    """From half of the points, scaled: the sum over a sample estimates the sum over all."""
    target, theta = problem(2, n=240)
    mode, _ = fit(target, Hyperparameters.unpack(theta), iterations=30)
    full = laplace._curvature(target, mode, np.random.default_rng(0))
    monkeypatch.setattr(laplace, "MOST_POINTS", 120)
    part = torch.stack([laplace._curvature(target, mode, np.random.default_rng(s)) for s in range(8)]).mean(0)
    large = full.abs() > 0.1 * full.abs().max()
    assert torch.allclose(part[large], full[large], rtol=0.3)


@pytest.mark.parametrize(("below", "followed"), [(0.04, True), (0.06, False)])
def test_a_cold_start_slightly_below_the_warm_end_is_followed(monkeypatch, below, followed):
    target, theta = problem(0, n=20)
    warm, cold = Hyperparameters.unpack(theta), Hyperparameters.unpack(0.5 * theta)
    calls = []

    def climb(posterior, start, iterations):
        """The warm start ends at 0; the cold one comes near it within the screening, and would end at 7."""
        calls.append(iterations)
        from_warm = np.array_equal(start, warm.pack())
        return (0.0 if from_warm else -below * 20 if iterations == 3 else 7.0), start

    monkeypatch.setattr(likelihood, "_climb", climb)
    found, value = fit(target, warm, [cold], iterations=50, screening=3)
    assert calls == ([50, 3, 50] if followed else [50, 3])
    assert value == (7.0 if followed else 0.0)
    assert np.array_equal(found.pack(), (cold if followed else warm).pack())


def test_up_to_400_points_the_curvature_is_exact():
    target, theta = problem(3, n=401, d=2)
    mode = Hyperparameters.unpack(theta)
    most = LogPosterior(target.Y[:400], target.v[:400], None, target.prior)
    assert torch.equal(laplace._curvature(most, mode, np.random.default_rng(0)), most.curvature(mode))
    assert not torch.equal(laplace._curvature(target, mode, np.random.default_rng(0)), target.curvature(mode))
