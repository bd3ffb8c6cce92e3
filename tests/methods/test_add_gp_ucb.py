"""Add-GP-UCB: the sum of processes against one kernel, groups learned by likelihood, bounds minimised, and the laws."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import alebo
from alebo.methods import AddGPUCB
from alebo.models.additive import fit_additive, gather, minimise_bounds, random_groups, spread_out

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
