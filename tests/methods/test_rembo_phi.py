"""REMBO-phi k_Psi: the warp against its definition, step by step, and the laws."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from alebo.methods import REMBOPhi
from alebo.methods.rembo_phi import Warp

from . import laws

METHOD = REMBOPhi(dim=3, initial=5)


def defined(A: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Psi as Binois et al. 2015 write it, in the ambient space."""
    up = A @ y
    if np.abs(up).max() <= 1.0:
        return up
    x = np.clip(up, -1.0, 1.0)  # convex projection onto the cube
    z = A @ np.linalg.solve(A.T @ A, A.T @ x)  # orthogonal projection onto range(A)
    pivot = z / np.abs(z).max()  # where the ray from the centre meets the cube's face
    return pivot + np.linalg.norm(x - pivot) * pivot / np.linalg.norm(pivot)  # and farther by the distance to x


@pytest.mark.parametrize(("D", "d"), [(3, 2), (20, 4), (200, 6)])
def test_the_warp_is_its_definition(D, d):
    rng = np.random.default_rng(D)
    A = rng.standard_normal((D, d))
    warp = Warp.of(A)
    Y = rng.uniform(-1, 1, (50, d)) * rng.uniform(0.01, 3.0, (50, 1))
    ours = warp(torch.from_numpy(Y)) @ warp.Q.T
    want = np.stack([defined(A, y) for y in Y])
    inside = np.abs(Y @ A.T).max(axis=1) <= 1.0
    assert inside.any()
    assert not inside.all()
    assert np.allclose(ours.numpy(), want, atol=1e-9)


def test_inside_the_cube_it_changes_no_distance():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((50, 3))
    Y = rng.uniform(-1, 1, (20, 3)) * 0.05
    images = Warp.of(A)(torch.from_numpy(Y)).numpy()
    X = Y @ A.T
    assert np.abs(X).max() < 1.0
    assert np.allclose(
        np.linalg.norm(images[:, None] - images, axis=-1), np.linalg.norm(X[:, None] - X, axis=-1), atol=1e-9
    )


def test_points_that_clip_to_one_corner_are_one_point():
    """What k_Psi is for: REMBO's kernel sees two points where the function sees one."""
    A = np.array([[1.0, 0.2], [0.3, 1.0], [0.8, -0.1]])
    Y = torch.tensor([[6.0, 5.0], [7.0, 5.5]], dtype=torch.double)
    assert np.abs(np.clip(Y.numpy() @ A.T, -1, 1)).min() == 1.0
    first, second = Warp.of(A)(Y)
    assert torch.allclose(first, second)


def test_the_warp_has_gradients():
    A = np.random.default_rng(2).standard_normal((30, 3))
    warp = Warp.of(A)
    Y = torch.from_numpy(np.random.default_rng(3).uniform(-1, 1, (5, 3))).requires_grad_(True)
    assert torch.autograd.gradcheck(lambda Z: warp(Z), Y, atol=1e-5)


def test_the_laws():
    laws.obeys(METHOD, steps=9, model_from=7)
    laws.leaves_failures(METHOD, steps=7)
    laws.takes_told_points(METHOD, steps=6)
    laws.is_plain_data(METHOD)
