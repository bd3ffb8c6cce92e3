"""Add-GP-UCB: the sum of processes against one kernel, groups learned by likelihood, bounds minimised, and the laws."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

import alebo
from alebo.methods import AddGPUCB
from alebo.models.additive import (
    _negative_log_posterior,
    _rbf,
    fit_additive,
    gather,
    minimise_bounds,
    random_groups,
    spread_out,
)

from . import laws

METHOD = AddGPUCB(initial=5, cycle=3, decompositions=3)


def pair(X: np.ndarray) -> np.ndarray:
    """Coordinates 0 and 1 act together, 2 on its own."""
    return 4.0 * X[:, 0] * X[:, 1] + 2.0 * X[:, 2]


def test_decompositions_are_partitions():
    for size in (1, 3, 4):
        groups = random_groups(10, size, seed=size)
        assert sorted(j for g in groups for j in g) == list(range(10))
        assert max(map(len, groups)) == size
    X = torch.randn(1, 10, dtype=torch.double)
    groups = random_groups(10, 4, seed=0)
    assert torch.equal(spread_out(gather(X, groups)[:, 0], groups, 10), X[0])


def test_the_posterior_is_that_of_the_summed_kernel():
    rng = np.random.default_rng(0)
    X, Z = rng.uniform(-1, 1, (20, 5)), rng.uniform(-1, 1, (6, 5))
    y = pair(X)
    gp = fit_additive(X, y, [[0, 1], [2, 4], [3]])

    def kernel(A: np.ndarray, B: np.ndarray, which: int | None = None) -> np.ndarray:
        return sum(
            float(s) * np.exp(-((A[:, None, g] - B[None, :, g]) ** 2).sum(-1) / (2 * gp.lengthscale**2))
            for i, (s, g) in enumerate(zip(gp.scales, gp.groups, strict=True))
            if which in (None, i)
        )

    K = kernel(X, X) + gp.noise * np.eye(20)
    z = (y - y.mean()) / y.std()
    k = kernel(Z, X)
    mean, variance = gp.posterior(torch.from_numpy(Z))
    assert np.allclose(mean.numpy(), k @ np.linalg.solve(K, z), atol=1e-8)
    assert np.allclose(variance.numpy(), float(gp.scales.sum()) - (k * np.linalg.solve(K, k.T).T).sum(1), atol=1e-8)
    means, variances = gp.group(gather(torch.from_numpy(Z), gp.groups))
    assert np.allclose(means.sum(0).numpy(), mean.numpy(), atol=1e-8)  # the groups' means add up
    k1 = kernel(Z, X, 1)
    assert np.allclose(variances[1].numpy(), float(gp.scales[1]) - (k1 * np.linalg.solve(K, k1.T).T).sum(1), atol=1e-8)


def test_likelihood_prefers_the_true_groups():
    X = np.random.default_rng(1).uniform(-1, 1, (60, 6))
    y = pair(X)
    right = fit_additive(X, y, [[0, 1], [2, 3], [4, 5]])
    wrong = fit_additive(X, y, [[0, 2], [1, 3], [4, 5]])
    alone = fit_additive(X, y, [[j] for j in range(6)])
    assert right.log_likelihood > max(wrong.log_likelihood, alone.log_likelihood) + 10.0
    assert right.scales[2] < 0.05 * right.scales[0]  # the idle group fades


def test_bounds_are_minimised_group_by_group():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (40, 6))
    gp = fit_additive(X, pair(X), [[0, 1], [2, 3], [4, 5]])
    width = torch.full((3,), 1.0, dtype=torch.double)
    x = minimise_bounds(gp, width, -np.ones(6), np.ones(6), seed=0)

    def bounds(P: np.ndarray) -> np.ndarray:
        mean, variance = gp.group(gather(torch.from_numpy(P), gp.groups))
        return (mean - variance.sqrt()).numpy()

    grid = rng.uniform(-1, 1, (4000, 6))
    assert (bounds(x[None])[:, 0] <= bounds(grid).min(axis=1) + 0.02).all()


def test_it_finds_a_bowl():
    opt = laws.run(AddGPUCB(initial=6, group_size=2), 30)
    assert opt.best().outcomes["loss"].mean < 0.05


def test_the_decomposition_stays_between_comparisons():
    opt = laws.run(METHOD, 12)
    notes = [t.note for t in opt.history[5:]]
    by_age: dict[int, set] = {}
    for note in notes:
        by_age.setdefault(note["age"], set()).add((note["draw"], note["size"], note["lengthscale"]))
    assert len(by_age) >= 3
    assert all(len(kinds) == 1 for kinds in by_age.values())


def test_the_laws():
    laws.obeys(METHOD, steps=9, model_from=7)
    laws.leaves_failures(METHOD, steps=7)
    laws.takes_told_points(METHOD, steps=6)
    laws.is_plain_data(METHOD)


def test_settings_are_checked():
    with pytest.raises(alebo.InputError, match="group_size"):
        AddGPUCB(group_size=0)


@pytest.mark.parametrize("infer_noise", [True, False])
def test_the_gradient_of_the_posterior_density_is_that_of_finite_differences(infer_noise):
    rng = np.random.default_rng(0)
    Z = gather(torch.from_numpy(rng.uniform(-1, 1, (9, 5))), [[0, 1], [2, 4], [3]])
    flat = _rbf(Z, Z, 0.6).reshape(3, 81)
    z = torch.from_numpy(rng.standard_normal(9))
    theta = np.log([0.5, 0.1, 2.0, 0.05])

    def density(t):
        return _negative_log_posterior(t, flat, z, infer_noise)

    value, gradient = density(theta)
    numeric = [(density(theta + h)[0] - density(theta - h)[0]) / 2e-6 for h in 1e-6 * np.eye(4)]
    assert gradient[:3] == pytest.approx(numeric[:3], rel=1e-5)
    assert gradient[3] == pytest.approx(numeric[3] if infer_noise else 0.0, rel=1e-5)
    K = sum(np.exp(s) * k.reshape(9, 9).numpy() for s, k in zip(theta[:3], flat, strict=True)) + 0.05 * np.eye(9)
    likelihood = multivariate_normal(np.zeros(9), K).logpdf(z.numpy()) + 4.5 * np.log(2 * np.pi)
    prior = np.exp(theta[:3]).sum() + (0.05 * (theta[3] + 7.0) ** 2 if infer_noise else 0.0)
    assert value == pytest.approx(prior - likelihood)


def test_weights_are_shares_of_the_groups_variance():
    X = np.random.default_rng(2).uniform(-1, 1, (40, 5))
    gp = fit_additive(X, pair(X), [[0, 1], [2, 4], [3]])
    weights = gp.weights
    assert weights[[0, 1]] == pytest.approx(float(gp.scales[0]) / 2)
    assert weights[3] == pytest.approx(float(gp.scales[2]))
    assert weights[3] < 0.1 * weights[0]  # it does nothing
