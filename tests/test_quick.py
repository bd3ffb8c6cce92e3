"""Acquisition functions over joint draws in NumPy: the values of their Torch twins, and gradients by finite differences."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from botorch.utils.multi_objective.box_decompositions import FastNondominatedPartitioning

from alebo.acquisition import NoisyLogEHVI, NoisyLogEI, Quick, functions, quick, value_and_gradient
from alebo.acquisition._quick import boxes, log_ei
from alebo.models import fit_ard, sample_gp
from alebo.models.priors import dense

RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.uniform(-1, 1, (15, 3)))
A, B, C, G = (
    sample_gp(X, v, samples=6, seed=i)
    for i, v in enumerate(
        (torch.sin(3 * X[:, 0]) + X[:, 1], X[:, 2] - X[:, 0], X[:, 1] ** 2, torch.cos(2 * X[:, 1]) - 0.4)
    )
)
NEVER = sample_gp(
    X, 1.2 + torch.sin(7 * X[:, 0]) * torch.cos(9 * X[:, 2]), samples=6, seed=9
)  # a constraint that never holds
PENDING = torch.tensor([[0.1, 0.2, -0.3], [0.5, -0.5, 0.0]]).double()
NEW = torch.from_numpy(np.random.default_rng(1).uniform(-1, 1, (6, 3)))
NEAR = torch.cat([NEW, PENDING[:1] + 0.01])

CASES: dict[str, Callable[[], NoisyLogEI | NoisyLogEHVI]] = {
    "one": lambda: NoisyLogEI(A, pending=PENDING, seed=3),
    "constraint": lambda: NoisyLogEI(A, [G], pending=PENDING, seed=3),
    "infeasible": lambda: NoisyLogEI(A, [NEVER], seed=3),
    "two": lambda: NoisyLogEHVI([A, B], pending=PENDING, seed=3),
    "two, constraint": lambda: NoisyLogEHVI([A, B], [G], seed=3),
    "two, far reference": lambda: NoisyLogEHVI([A, B], reference=np.array([0.0, 2.5]), seed=3),
    "three": lambda: NoisyLogEHVI([A, B, C], seed=3),
}


def made(name: str) -> tuple[NoisyLogEI | NoisyLogEHVI, Quick]:
    slow = CASES[name]()
    fast = quick(slow)
    assert fast is not None
    return slow, fast


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_the_torch_twin(name: str) -> None:
    slow, fast = made(name)
    (f, g), (value, gradient) = (value_and_gradient(a, NEAR) for a in (slow, fast))
    torch.testing.assert_close(value, f, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(gradient, g, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(fast(NEAR.unsqueeze(-2)), value)
    assert fast(NEAR.reshape(1, 7, 1, 3)).shape == (1, 7)


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_is_that_of_finite_differences(name: str) -> None:
    _, fast = made(name)
    _, gradient = fast.with_gradient(NEW)
    h = 1e-4 if "far" in name else 1e-5  # far below the reference a value is some -1e7, and so are its rounding errors
    scale = gradient.abs().amax(-1).clamp_min(1.0)
    for j in range(3):
        step = h * torch.eye(3, dtype=torch.double)[j]
        slope = (fast((NEW + step).unsqueeze(-2)) - fast((NEW - step).unsqueeze(-2))) / (2 * h)
        torch.testing.assert_close(gradient[:, j] / scale, slope / scale, rtol=2e-3, atol=1e-3)


def test_some_draws_without_a_feasible_point_count_less() -> None:
    slow, fast = made("constraint")
    assert isinstance(slow, NoisyLogEI)
    v = fast.draws.v.copy()
    v[6:8] = 10.0  # the constraint's first two draws: nowhere
    object.__setattr__(fast.draws, "v", v)
    slow.best[:2], slow.known[:2] = -math.inf, False
    fast._compare()
    torch.testing.assert_close(fast(NEW.unsqueeze(-2)), slow(NEW.unsqueeze(-2)))
    torch.testing.assert_close(fast.with_gradient(NEW)[1], slow.with_gradient(NEW)[1])


def test_log_ei_and_its_slope_are_exact_near_and_far() -> None:
    z = torch.tensor([-1e4, -2000.0, -31.0, -29.0, -3.0, -1.01, -0.99, 0.0, 5.0]).double().requires_grad_(True)
    want = functions.log_ei(z)
    want.sum().backward()
    value, slope = log_ei(z.detach().numpy())
    np.testing.assert_allclose(value, want.detach().numpy(), rtol=1e-9)
    assert z.grad is not None
    np.testing.assert_allclose(slope, z.grad.numpy(), rtol=2e-3)


def test_the_boxes_of_two_objectives_hold_the_volume_of_botorchs() -> None:
    rng = np.random.default_rng(4)
    at = np.array([-1.0, -0.8])
    for values in (rng.standard_normal((30, 2)), np.array([[0.2, 0.3], [0.2, 0.3], [0.2, 0.1]]), at[None] - 1.0):
        low, high = boxes(values, at)
        better = values[(values > at).all(1)]
        if len(better):
            theirs = FastNondominatedPartitioning(torch.from_numpy(at), Y=torch.from_numpy(better)).hypercell_bounds
            want = (theirs[1].clamp_max(9.0) - theirs[0]).prod(-1).sum()
            assert np.minimum(high, 9.0).__sub__(low).prod(1).sum() == pytest.approx(float(want))
            points = rng.uniform(-1, 3, (500, 2))  # each is beaten, or in one box
            beaten = (points[:, None] <= better).all(-1).any(-1) | (points <= at).any(-1)
            inside = ((points[:, None] > low) & (points[:, None] <= high)).all(-1).sum(-1)
            np.testing.assert_array_equal(inside, ~beaten)
        else:
            np.testing.assert_array_equal(low, at[None])
            assert np.isinf(high).all()


@pytest.mark.parametrize("name", ["constraint", "two, constraint"])
def test_shares_of_the_draws_together_are_the_whole(name: str) -> None:
    _, whole = made(name)
    parts = torch.stack([whole.share(i, 3)(NEW.unsqueeze(-2)) for i in range(3)])
    torch.testing.assert_close(torch.logsumexp(parts, 0) - math.log(3.0), whole(NEW.unsqueeze(-2)))


@pytest.mark.parametrize("name", ["one", "constraint", "two"])
def test_a_point_under_way_is_worth_less(name: str) -> None:
    _, fast = made(name)
    there = NEW[:1]
    more = fast.plus(there.numpy(), np.random.default_rng(0))
    before, after = (float(a(there.unsqueeze(-2))) for a in (fast, more))
    assert after < before - 1.0
    assert fast.draws.v.shape[1] == 17  # the function itself stays as it was
    assert fast.plus(np.zeros((0, 3)), np.random.default_rng(0)) is fast


def test_draws_of_other_models_are_not_stacked() -> None:
    other = fit_ard(X, X[:, 0], dense(3))
    assert quick(NoisyLogEI(other, seed=0)) is None
    assert quick(NoisyLogEI(A, [other], seed=0)) is None
