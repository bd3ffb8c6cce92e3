"""Laws of the kernel: Propositions 1 and S1 of the paper."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel
from hypothesis import given
from hypothesis import strategies as st

from alebo.geometry import gaussian, hesbo, hypersphere
from alebo.models import MahalanobisKernel
from alebo.models.mahalanobis.kernel import distances


@given(seed=st.integers(0, 10_000), kind=st.sampled_from([hypersphere, gaussian, hesbo]))
def test_proposition_1_an_ard_kernel_on_a_true_subspace_is_ours_in_the_embedding(seed, kind):
    rng = np.random.default_rng(seed)
    D, d, d_e = 20, 3, 5
    embedding = kind(D, d_e, seed)
    T = rng.normal(size=(d, D))
    lengthscales = rng.uniform(0.3, 2.0, d)
    ard = RBFKernel(ard_num_dims=d).double()
    ard.lengthscale = torch.from_numpy(lengthscales)
    Y = rng.normal(size=(6, d_e))
    through_the_truth = ard(torch.from_numpy(embedding.up(Y) @ T.T)).to_dense().detach()

    TB = T @ np.linalg.pinv(embedding.B)
    gamma = TB.T @ np.diag(0.5 / lengthscales**2) @ TB
    root = np.linalg.qr(
        np.vstack([np.sqrt(2.0) * np.diag(1 / (np.sqrt(2) * lengthscales)) @ TB, np.zeros((d_e, d_e))]), mode="r"
    )
    ours = MahalanobisKernel(d_e, U=torch.from_numpy(np.triu(root)))
    assert torch.allclose(ours.gamma, torch.from_numpy(gamma), atol=1e-10)
    seen = ours(torch.from_numpy(Y)).to_dense().detach()
    assert torch.allclose(seen, through_the_truth, atol=1e-9)


@given(seed=st.integers(0, 10_000))
def test_proposition_s1_the_kernel_is_stationary(seed):
    rng = np.random.default_rng(seed)
    kernel = MahalanobisKernel(4, U=torch.triu(torch.from_numpy(rng.normal(size=(4, 4)))))
    Y, move = torch.from_numpy(rng.normal(size=(5, 4))), torch.from_numpy(rng.normal(size=4))
    assert torch.allclose(kernel(Y).to_dense(), kernel(Y + move).to_dense(), atol=1e-9)


def test_clipping_to_the_box_breaks_stationarity():
    # the paper's reason for the polytope (S3): with REMBO's clipping the same shift changes the covariance
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 2))

    def covariance(y, z):
        return np.exp(-np.sum((np.clip(A @ y, -1, 1)[:2] - np.clip(A @ z, -1, 1)[:2]) ** 2))

    y, z, move = np.array([0.5, 0.0]), np.array([0.0, 0.5]), np.array([4.0, 2.0])
    assert abs(covariance(y, z) - covariance(y + move, z + move)) > 1e-3


def test_diagonal_and_distances():
    Y = torch.randn(4, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    kernel = MahalanobisKernel(3)
    assert torch.allclose(kernel(Y, diag=True), torch.ones(4, dtype=torch.double))
    assert (distances(Y, Y) >= 0).all()
    assert distances(Y, Y).diagonal().max() < 1e-12
    assert kernel.U.shape == (3, 3)
    assert kernel.raw_U.numel() == 6


@pytest.mark.parametrize("d", [1, 2, 7])
def test_factor_is_upper_triangular(d):
    U = MahalanobisKernel(d).U
    assert torch.equal(U, torch.triu(U))
