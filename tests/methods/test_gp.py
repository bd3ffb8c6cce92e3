"""The peers' process and maximiser: gradients, a twin in BoTorch's language, far tails, boxes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from alebo.methods._gp import fit_ard_gp, kernel_of, log_expected_improvement, log_h, maximise_in_box

rng = np.random.default_rng(0)


def data(n: int = 30, d: int = 4):
    X = np.random.default_rng(1).uniform(-1, 1, (n, d))
    return X, 5.0 + 10.0 * (np.sin(3 * X[:, 0]) + X[:, 1] ** 2)


@pytest.mark.parametrize("kernel", ["matern", "rbf"])
def test_it_interpolates_and_finds_the_idle_coordinates(kernel):
    X, y = data(60)
    gp = fit_ard_gp(X, y, kernel=kernel)
    mean, variance = gp.posterior(torch.from_numpy(X))
    assert np.abs(mean.numpy() - y).max() < 0.2
    assert variance.max() < 1.0
    fresh = np.random.default_rng(2).uniform(-1, 1, (500, 4))
    truth = 5.0 + 10.0 * (np.sin(3 * fresh[:, 0]) + fresh[:, 1] ** 2)
    mean, _ = gp.posterior(torch.from_numpy(fresh))
    assert 1 - np.var(mean.numpy() - truth) / np.var(truth) > 0.98
    assert gp.lengthscales[2:].min() > 3 * gp.lengthscales[:2].max()


@pytest.mark.parametrize("kernel", ["matern", "rbf"])
def test_predictions_are_gpytorchs(kernel):
    """Twin: the same parameters in GPyTorch give the same posterior."""
    import gpytorch

    X, y = data()
    gp = fit_ard_gp(X, y, kernel=kernel, noise=0.5)
    base = gpytorch.kernels.MaternKernel(2.5, ard_num_dims=4) if kernel == "matern" else gpytorch.kernels.RBFKernel(4)
    base.lengthscale = gp.lengthscales[None]
    base = base.double()
    Xt, Zt = torch.from_numpy(X), torch.from_numpy(rng.uniform(-1, 1, (7, 4)))
    K = gp.scale * base(Xt).to_dense() + torch.diag(gp.noise)
    k = gp.scale * base(Zt, Xt).to_dense()
    want = gp.shift + gp.spread * (gp.mean + k @ torch.linalg.solve(K, gp.y - gp.mean))
    spread = gp.spread**2 * (gp.scale - (k * torch.linalg.solve(K, k.T).T).sum(1))
    mean, variance = gp.posterior(Zt)
    assert torch.allclose(mean, want.detach(), rtol=1e-5)
    assert torch.allclose(variance, spread.detach(), rtol=1e-4, atol=1e-6)


def test_the_fit_is_a_stationary_point():
    """Moving any lengthscale by 10 % does not raise the log posterior: the analytic gradient led to a true optimum."""
    X, y = data(40)
    gp = fit_ard_gp(X, y, kernel="rbf", restarts=0, iterations=500)
    z = gp.y.numpy()

    def log_posterior(lengthscales: np.ndarray) -> float:
        U = torch.from_numpy(X / lengthscales)
        r2 = torch.cdist(U, U).square()
        K = gp.scale * kernel_of(r2, "rbf")[0].numpy() + np.diag(gp.noise.numpy())
        _, logdet = np.linalg.slogdet(K)
        fit = -0.5 * (z - gp.mean) @ np.linalg.solve(K, z - gp.mean) - 0.5 * logdet
        centre = math.sqrt(2) + 0.5 * math.log(4) + math.log(2)
        return float(fit - np.sum((np.log(lengthscales) - centre) ** 2) / 6 - np.log(lengthscales).sum())

    here = gp.lengthscales.numpy()
    for j in range(2):
        for factor in (0.9, 1.1):
            moved = here.copy()
            moved[j] *= factor
            assert log_posterior(moved) < log_posterior(here)


def test_log_ei_reaches_far_below():
    z = torch.tensor([-1e4, -2000.0, -50.0, -3.0, -1.0, 0.0, 5.0], dtype=torch.double, requires_grad=True)
    value = log_h(z)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert (z.grad > 0).all()
    from scipy.stats import norm

    for zi in (-3.0, -1.0, 0.0, 2.0):
        assert float(log_h(torch.tensor([zi], dtype=torch.double))[0]) == pytest.approx(
            math.log(norm.pdf(zi) + zi * norm.cdf(zi)), rel=1e-9
        )
    seam = torch.tensor([-1.0 - 1e-9, -1.0 + 1e-9, -1e3 - 1e-6, -1e3 + 1e-6], dtype=torch.double)
    low, high, far, near = log_h(seam).tolist()
    assert low == pytest.approx(high, abs=1e-7)
    assert far == pytest.approx(near, abs=1e-2)


def test_told_noise_is_used():
    X, y = data()
    exact, rough = fit_ard_gp(X, y, noise=1e-6), fit_ard_gp(X, y, noise=100.0)
    at = torch.from_numpy(X)
    assert rough.posterior(at)[1].mean() > 10 * exact.posterior(at)[1].mean()


def test_believing_removes_the_variance_and_keeps_the_mean():
    X, y = data()
    gp = fit_ard_gp(X, y)
    new = torch.from_numpy(rng.uniform(-1, 1, (3, 4)))
    believed = gp.believe(new)
    assert torch.allclose(gp.posterior(new)[0], believed.posterior(new)[0], atol=1e-3)
    assert (believed.posterior(new)[1] < 1e-2 * gp.posterior(new)[1]).all()


def test_joint_draws_have_the_posteriors_moments():
    X, y = data(15)
    gp = fit_ard_gp(X, y)
    Z = torch.from_numpy(rng.uniform(-1, 1, (4, 4)))
    draws = gp.sample(Z, 20_000, seed=1)
    mean, variance = gp.posterior(Z)
    assert torch.allclose(draws.mean(0), mean, atol=float(4 * variance.max().sqrt() / math.sqrt(20_000)))
    assert torch.allclose(draws.var(0), variance, rtol=0.06)


def test_constant_outcomes_and_a_single_point_are_no_trouble():
    X = rng.uniform(-1, 1, (5, 3))
    gp = fit_ard_gp(X, np.full(5, 3.0))
    assert float(gp.posterior(torch.from_numpy(X))[0][0]) == pytest.approx(3.0, abs=0.1)
    one = fit_ard_gp(X[:1], [2.0])
    assert float(one.posterior(torch.from_numpy(X))[0][0]) == pytest.approx(2.0, abs=0.1)


def test_the_maximiser_finds_the_top_and_the_edge():
    point, value = maximise_in_box(
        lambda Z: -((Z - torch.tensor([0.3, 2.0])) ** 2).sum(-1), [-1.0, -1.0], [1.0, 1.0], seed=0
    )
    assert point == pytest.approx([0.3, 1.0], abs=1e-5)
    assert value == pytest.approx(-1.0, abs=1e-6)
    X = rng.uniform(-1, 1, (8, 1))
    gp = fit_ard_gp(X, np.sin(4 * X[:, 0]))

    def ei(t: float) -> float:
        with torch.no_grad():
            return -float(log_expected_improvement(*gp.posterior(torch.tensor([[t]], dtype=torch.double)), -0.5)[0])

    _, best = maximise_in_box(lambda Z: log_expected_improvement(*gp.posterior(Z), -0.5), [-1.0], [1.0], seed=0)
    grid = [minimize_scalar(ei, bounds=(a, a + 0.05), method="bounded").fun for a in np.arange(-1, 1, 0.05)]
    assert best == pytest.approx(-min(grid), abs=1e-4)
