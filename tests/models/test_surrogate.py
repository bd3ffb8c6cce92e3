"""What every model promises to acquisition functions and diagnostics: add a model to MODELS and it is checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from alebo._errors import InputError
from alebo.models import Mixture, fit_ard, fit_best, fit_gp, fit_mixture, sample_gp
from alebo.models.coregional import fit_coregional
from alebo.models.informed import Data, Informed, Inside
from alebo.models.priors import dense, embedded, sparse
from alebo.models.surrogate import in_units, unexplained

pytestmark = pytest.mark.full_chains

RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.random((25, 4)))
VALUES = 100.0 + 5.0 * torch.sin(4 * X[:, 0]) + 3.0 * X[:, 2] ** 2
NEW = torch.from_numpy(np.random.default_rng(1).random((6, 4)))


def with_earlier(X: torch.Tensor, values: torch.Tensor, **how: Any) -> Mixture:
    U = np.random.default_rng(3).random((40, 4))
    earlier = fit_ard(U, 7.0 + 2.0 * np.sin(4.2 * U[:, 0]) + U[:, 2] ** 2, dense(4))
    alone = fit_mixture(X, values, [dense(4)], **how)
    return Informed((*alone.models, fit_coregional(earlier, Data.of(alone))), alone)


def from_a_subspace(X: torch.Tensor, values: torch.Tensor, **how: Any) -> Mixture:
    alone = fit_ard(X, values, embedded(4), **how)
    A, x0 = np.linalg.qr(np.random.default_rng(4).normal(size=(6, 4)))[0], np.full(6, 0.3)
    lifted = torch.from_numpy(x0 + X.numpy() @ A.T)
    U = x0 + np.random.default_rng(3).random((40, 4)) @ A.T
    Y = (U - x0) @ A
    earlier = fit_ard(U, 7.0 + 2.0 * np.sin(4.2 * Y[:, 0]) + Y[:, 2] ** 2, dense(6))
    return Informed((alone, Inside(fit_coregional(earlier, Data.of(alone, lifted)), A, x0, X)), alone)


MODELS: dict[str, Callable[..., Any]] = {
    "sampled Mahalanobis": lambda X, values, **how: sample_gp(X, values, samples=4, **how),
    "Laplace Mahalanobis": lambda X, values, **how: fit_gp(X, values, samples=4, **how),
    "full space, dense": lambda X, values, **how: fit_ard(X, values, dense(4), **how),
    "full space, best of": lambda X, values, **how: fit_best(X, values, [sparse(0.1), sparse(1.0)], **how),
    "embedded": lambda X, values, **how: fit_ard(X, values, embedded(4), **how),
    "with an earlier task": lambda X, values, **how: with_earlier(X, values, **how),
    "with an earlier task, from a subspace": lambda X, values, **how: from_a_subspace(X, values, **how),
    "mixture": lambda X, values, **how: fit_mixture(X, values, [dense(4), sparse(1.0)], **how),
}


@pytest.fixture(scope="module", params=MODELS)
def build(request) -> Callable[..., Any]:
    return MODELS[request.param]


@pytest.fixture(scope="module")
def model(build):
    return build(X, VALUES)


def test_it_knows_its_data(model) -> None:
    assert torch.equal(model.points, X)
    assert torch.allclose(model.shift + model.scale * model.v, VALUES)
    assert model.noise.shape == (25,)
    assert (model.noise > 0).all()
    assert not model.known_noise


def test_it_predicts_in_the_users_units(model) -> None:
    mean, sd = in_units(model, X)
    assert torch.allclose(mean, VALUES, atol=1.0)
    assert (sd > 0).all()
    assert unexplained(model) < 0.2


def test_the_vector_jacobian_product_is_that_of_finite_differences(model) -> None:
    found = model.marginals(NEW)
    assert found.mean.shape == found.variance.shape
    weights = [torch.from_numpy(np.random.default_rng(i).standard_normal(found.mean.shape)) for i in (2, 3)]
    gradient = found.back(*weights)
    assert gradient.shape == NEW.shape

    def number(W: torch.Tensor) -> float:
        at = model.marginals(W)
        return float((weights[0] * at.mean + weights[1] * at.variance).sum())

    for i, j in [(0, 0), (2, 3), (5, 1)]:
        step = torch.zeros_like(NEW)
        step[i, j] = 1e-5
        assert float(gradient[i, j]) == pytest.approx(
            (number(NEW + step) - number(NEW - step)) / 2e-5, rel=1e-3, abs=1e-6
        )


def test_draws_pass_through_themselves(model) -> None:
    drawn = model.draw(NEW, np.random.default_rng(0))
    found = drawn.marginals(NEW)
    assert found.mean.shape == drawn.v.shape
    assert torch.allclose(found.mean, drawn.v, atol=0.02)
    assert (found.variance < 1e-3).all()
    assert (drawn.shift, drawn.scale) == (model.shift, model.scale)
    again = model.draw(NEW, np.random.default_rng(0))
    assert torch.equal(again.v, drawn.v)


def test_conditioning_keeps_pending_points_apart(model) -> None:
    believing = model.believing(NEW[:2])
    before, after = model.marginals(NEW[:2]), believing.marginals(NEW[:2])
    assert torch.allclose(before.matched()[0], after.matched()[0], atol=0.02)
    assert (after.variance < 0.05 * before.variance + 1e-3).all()
    up = before.matched()[0] + 0.02
    assert torch.allclose(model.conditioned(NEW[:2], up).marginals(NEW[:2]).matched()[0], up, atol=0.01)


def test_left_out_outcomes_are_predicted_from_the_others(model) -> None:
    mean, sd = model.leave_one_out()
    z = (mean - VALUES) / sd
    assert z.abs().max() < 6.0
    assert float((mean - VALUES).square().mean()) < 0.2 * float(VALUES.var())


def test_reported_noise_is_in_squared_units(build) -> None:
    sems = torch.linspace(0.1, 2.0, 25, dtype=torch.double)
    one, big = build(X, VALUES, variances=sems**2), build(X, 1e3 * VALUES, variances=(1e3 * sems) ** 2)
    assert one.known_noise
    assert torch.allclose(one.noise, (sems / one.scale) ** 2, rtol=1e-3, atol=2e-6)
    assert torch.allclose(one.noise, big.noise, rtol=1e-6)


def test_its_memory_is_plain_data_and_starts_the_next_fit(build, model) -> None:
    memory = json.loads(json.dumps(list(model.memory)))
    more = build(torch.cat([X, NEW[:1]]), torch.cat([VALUES, VALUES[:1]]), warm=memory)
    assert len(more.points) == 26
    assert len(json.dumps(memory)) < 5000


def test_a_mixture_is_the_average_of_its_models() -> None:
    parts = [fit_ard(X, VALUES, prior) for prior in (dense(4), sparse(0.1))]
    both = Mixture(tuple(parts))
    found, each = both.marginals(NEW), [m.marginals(NEW) for m in parts]
    assert torch.equal(found.mean, torch.cat([m.mean for m in each]))
    mean, variance = found.matched()
    assert torch.allclose(mean, sum(m.mean[0] for m in each) / 2)
    second = sum(m.variance[0] + m.mean[0] ** 2 for m in each) / 2
    assert torch.allclose(variance, second - mean**2)
    assert both.memory == [list(m.memory) for m in parts]


def test_a_mixture_of_different_data_is_refused() -> None:
    one, other = fit_ard(X, VALUES, dense(4)), fit_ard(X, VALUES + X[:, 0], dense(4))
    with pytest.raises(InputError, match="same data"):
        Mixture((one, other))
    with pytest.raises(InputError, match="one model or more"):
        Mixture(())


@pytest.mark.parametrize(
    ("size", "noise", "share"), [(1.0, 0.0, 0.225), (1.0, 0.3, 0.105), (1.0, 0.6, 0.0), (0.5, 0.0, 0.9)]
)
def test_the_unexplained_share_by_its_definition(size: float, noise: float, share: float) -> None:
    """Mean square of what the others predict wrongly, less the noise, over the variance; never below 0."""
    v = size * torch.tensor([-1.0, 0.0, 2.0, 3.0])  # variance 2.5 for size 1
    off = torch.tensor([1.0, -1.0, 0.5, 0.0])  # mean square 0.5625
    made: Any = SimpleNamespace(v=v, shift=10.0, scale=2.0, noise=torch.full_like(v, noise))
    made.leave_one_out = lambda: (10.0 + 2.0 * (v + off), torch.ones(4))
    assert unexplained(made) == pytest.approx(share, abs=1e-7)


def test_of_outcomes_that_are_all_equal_nothing_is_unexplained() -> None:
    v = torch.zeros(3)
    made: Any = SimpleNamespace(v=v, shift=10.0, scale=2.0, noise=v, leave_one_out=lambda: (v + 11.0, v))
    assert unexplained(made) == 0.0
