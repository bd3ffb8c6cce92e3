"""REMBO-gamma k_Psi: the way up against a general quadratic program, the zonotope, and the laws."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from scipy.optimize import linprog, minimize

import alebo
from alebo.methods import REMBOGamma
from alebo.methods.rembo_gamma import Zonotope
from alebo.methods.rembo_phi import psi

from . import laws

METHOD = REMBOGamma(dim=3, initial=5)


@pytest.mark.parametrize(("D", "d"), [(4, 2), (10, 3), (25, 4)])
def test_gamma_is_the_quadratic_programs_solution(D, d):
    """Against SciPy's SLSQP: nearest point to B'y in the cube with B x = y."""
    zonotope = Zonotope.random(D, d, seed=D)
    B = zonotope.B
    Y, _ = zonotope.sample(6, seed=1)
    X = zonotope.gamma(Y)
    assert np.abs(X).max() <= 1.0
    assert np.abs(X @ B.T - Y).max() < 1e-7
    for y, x in zip(Y, X, strict=True):
        found = minimize(
            lambda v, y=y: np.sum((v - y @ B) ** 2),
            np.clip(y @ B, -1, 1),
            jac=lambda v, y=y: 2 * (v - y @ B),
            method="SLSQP",
            bounds=[(-1.0, 1.0)] * D,
            constraints={"type": "eq", "fun": lambda v, y=y: B @ v - y, "jac": lambda v: B},
            options={"maxiter": 500, "ftol": 1e-14},
        )
        assert found.success
        assert np.sum((x - y @ B) ** 2) <= found.fun + 1e-6
        assert np.allclose(x, found.x, atol=1e-4)


def test_inside_the_unclipped_polytope_gamma_is_the_pseudo_inverse():
    zonotope = Zonotope.random(40, 3, seed=0)
    Y = np.random.default_rng(0).uniform(-1, 1, (10, 3))
    X = Y @ zonotope.B
    assert np.abs(X).max() < 1.0
    assert np.allclose(zonotope.gamma(Y), X, atol=1e-9)


@pytest.mark.parametrize("scale", [0.9, 0.999, 1.001, 1.5])
def test_membership_is_a_linear_programs(scale):
    zonotope = Zonotope.random(12, 3, seed=2)
    rng = np.random.default_rng(1)
    for _ in range(5):
        u = rng.standard_normal(3)
        found = linprog(
            np.append(np.zeros(12), -1.0),
            A_eq=np.column_stack([zonotope.B, -u]),
            b_eq=np.zeros(3),
            bounds=[(-1, 1)] * 12 + [(0, None)],
        )
        edge = found.x[-1] * u  # the farthest point of Z along u
        _, inside = zonotope.dual(scale * edge[None])
        assert inside[0] == (scale < 1.0)


def test_outside_there_is_refused_with_a_message():
    with pytest.raises(alebo.InputError, match="zonotope"):
        Zonotope.random(10, 2, seed=0).gamma(np.array([[50.0, 0.0]]))
    with pytest.raises(alebo.InputError, match="orthonormal"):
        Zonotope(np.ones((2, 5)))


def test_draws_are_uniform_in_the_zonotope():
    """Against rejection from the bounding box, by the share of points in a smaller copy of Z: s^d."""
    zonotope = Zonotope.random(15, 2, seed=5)
    Y, L = zonotope.sample(3000, seed=1)
    assert np.allclose(zonotope.of_dual(L) @ zonotope.B.T, Y, atol=1e-7)
    _, inner = zonotope.dual(Y / 0.6)
    assert inner.mean() == pytest.approx(0.6**2, abs=0.03)


def test_the_warp_of_gamma_is_its_definition():
    zonotope = Zonotope.random(20, 3, seed=1)
    B = zonotope.B
    Y, L = zonotope.sample(30, seed=2)
    X = zonotope.of_dual(L)
    Q = torch.from_numpy(B.T.copy())
    ours = psi(torch.from_numpy(X), torch.from_numpy(X @ B.T), Q) @ Q.T
    for y, x, image in zip(Y, X, ours.numpy(), strict=True):
        z = y @ B  # the orthogonal projection of gamma(y) onto the row space is B'y itself
        want = z
        if np.abs(z).max() > 1.0:
            pivot = z / np.abs(z).max()
            want = pivot * (1.0 + np.linalg.norm(x - pivot) / np.linalg.norm(pivot))
        assert np.allclose(image, want, atol=1e-6)


def test_a_thousand_parameters_take_milliseconds():
    """The original did not finish one run at D=1000 in 24 hours."""
    zonotope = Zonotope.random(1000, 12, seed=0)
    Y, _ = zonotope.sample(100, seed=0)
    start = time.process_time()
    X = zonotope.gamma(Y)
    assert time.process_time() - start < 2.0
    assert np.abs(X @ zonotope.B.T - Y).max() < 1e-7


def test_points_map_up_by_gamma():
    opt = laws.run(METHOD, 9)
    zonotope = Zonotope.random(laws.D, 3, alebo._seeds.derive(3, "rembo-gamma"))
    for trial in opt.history:
        assert np.allclose(zonotope.gamma(trial.y * (1 - 1e-9))[0], trial.x, atol=1e-5)
    assert [t.note["by"] for t in opt.history][5:] == ["model"] * 4


def test_the_laws():
    laws.obeys(METHOD, steps=9, model_from=7)
    laws.leaves_failures(METHOD, steps=7)
    laws.takes_told_points(METHOD, steps=6)
    laws.is_plain_data(METHOD)
