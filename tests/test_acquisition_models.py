"""Acquisition functions over every kind of model: twins in BoTorch, gradients, mixtures, wrappers; the search of a box."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from alebo.acquisition import (
    LogEI,
    NoisyLogEHVI,
    NoisyLogEI,
    PerCost,
    PerLook,
    Through,
    at_target,
    evaluate,
    log_ei,
    maximise_in_box,
    perturbed,
    value_and_gradient,
)
from alebo.models import Mixture, fit_ard, sample_gp
from alebo.models.priors import dense, embedded, sparse

RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.random((20, 3)))
F = torch.sin(9 * X[:, 0]) * torch.cos(7 * X[:, 1]) - X[:, 2]
G = torch.sin(8 * X[:, 0]) + X[:, 2] - 0.2
NEW = torch.from_numpy(np.random.default_rng(1).random((7, 3)))
DENSE, SPARSE = fit_ard(X, F, dense(3)), fit_ard(X, F, sparse(1.0))
LIMIT, TWO = fit_ard(X, G, dense(3)), fit_ard(X, X[:, 2], dense(3))
MIXED = Mixture((DENSE, SPARSE))
SAMPLED, SAMPLED_LIMIT = (sample_gp(X, v, samples=4, seed=0) for v in (F, G))


def test_log_ei_is_exact_near_and_far() -> None:
    z = torch.tensor([-1e4, -2000.0, -50.0, -31.0, -29.0, -3.0, -1.0, 0.0, 5.0]).double().requires_grad_(True)
    value = log_ei(z)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert (z.grad > 0).all()
    for zi in (-3.0, -1.0, 0.0, 2.0):
        want = math.log(norm.pdf(zi) + zi * norm.cdf(zi))
        assert float(log_ei(torch.tensor([zi]).double())[0]) == pytest.approx(want, rel=1e-9)
    low, high = log_ei(torch.tensor([-30.0 - 1e-9, -30.0 + 1e-9]).double()).tolist()
    assert low == pytest.approx(high, abs=1e-4)


def test_log_ei_of_the_full_space_model_is_botorchs() -> None:
    from botorch.acquisition import LogExpectedImprovement
    from botorch.models import SingleTaskGP
    from gpytorch.kernels import RBFKernel

    kernel = RBFKernel(ard_num_dims=3).double()
    theirs = SingleTaskGP(X, DENSE.v[:, None], DENSE.noise[:, None], covar_module=kernel, outcome_transform=None)
    theirs.covar_module.lengthscale = torch.from_numpy(DENSE.lengthscales)
    theirs.mean_module.constant.data.fill_(DENSE.mean)
    theirs.eval()
    want = LogExpectedImprovement(theirs, best_f=DENSE.v.max())(NEW.unsqueeze(-2)).detach()
    assert torch.allclose(LogEI(DENSE)(NEW.unsqueeze(-2)), want, atol=1e-4)


ACQUISITIONS = {
    "log-EI": lambda: LogEI(DENSE),
    "log-EI of a mixture": lambda: LogEI(MIXED, doubt=0.5),
    "constrained log-EI": lambda: LogEI(DENSE, [LIMIT], best=0.1),
    "feasibility": lambda: LogEI(DENSE, [LIMIT], best=None),
    "noisy": lambda: NoisyLogEI(MIXED, [LIMIT], pending=NEW[:2]),
    "noisy, sampled metrics": lambda: NoisyLogEI(SAMPLED, [SAMPLED_LIMIT]),
    "hypervolume": lambda: NoisyLogEHVI([DENSE, TWO], [LIMIT]),
    "per cost": lambda: PerCost(NoisyLogEI(DENSE, [LIMIT]), TWO),
    "of features": lambda: Through(LogEI(DENSE), lambda Y: torch.sin(Y) ** 2),
    "fidelity": lambda: PerLook(
        NoisyLogEI(SAMPLED, [SAMPLED_LIMIT], target=at_target), [SAMPLED], lambda X: 2.0 * X[..., 0, 0]
    ),
}


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_the_gradient_is_that_of_finite_differences(name: str) -> None:
    acquisition = ACQUISITIONS[name]()
    value, gradient = value_and_gradient(acquisition, NEW)
    assert np.allclose(value.numpy(), evaluate(acquisition, NEW.numpy()), atol=1e-8)
    for i, j in [(2, 0), (3, 1), (6, 2)]:
        step = np.zeros(NEW.shape)
        step[i, j] = 1e-5
        ends = [evaluate(acquisition, NEW.numpy() + sign * step)[i] for sign in (1, -1)]
        assert float(gradient[i, j]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=2e-3, abs=1e-4)


def test_a_mixtures_improvement_is_the_average() -> None:
    best = float(DENSE.v.max())
    each = torch.stack([LogEI(m, best=best)(NEW.unsqueeze(-2)) for m in (DENSE, SPARSE)])
    assert torch.allclose(LogEI(MIXED, best=best)(NEW.unsqueeze(-2)), torch.logsumexp(each, 0) - math.log(2))


def test_torch_can_differentiate_an_acquisition_too() -> None:
    at = NEW.clone().requires_grad_(True)
    (by_torch,) = torch.autograd.grad(LogEI(MIXED)(at.unsqueeze(-2)).sum(), at)
    assert torch.allclose(by_torch, LogEI(MIXED).with_gradient(NEW)[1], atol=1e-9)


def test_a_fidelity_keeps_constraints_and_pending_points() -> None:
    """Cheap looks: the wrapped function decides where, the wrapper only how carefully."""
    level = torch.from_numpy(np.random.default_rng(5).uniform(-1, 1, (24, 3)))
    model = sample_gp(level, -(level[:, 1] ** 2) + 0.1 * level[:, 0], samples=4, seed=0)
    limit = sample_gp(level, level[:, 2], samples=4, seed=1)  # feasible where the last coordinate is negative
    inner = NoisyLogEI(model, [limit], pending=level[:1] * 0.5, target=at_target, seed=0)
    wrapped = PerLook(inner, [model], lambda X: 0.5 * X[..., 0, 0])
    good, bad = torch.tensor([[-0.5, 0.1, -0.6]]).double(), torch.tensor([[-0.5, 0.1, 0.6]]).double()
    assert float(wrapped(good.unsqueeze(-2))) > float(wrapped(bad.unsqueeze(-2))) + 2.0
    at = at_target(good).unsqueeze(-2)
    assert float(wrapped(at)) == pytest.approx(float(inner(at)) - 0.5, abs=1e-4)  # at the target the look is perfect


def test_the_box_search_finds_the_top_and_the_edge() -> None:
    def hill(Z: torch.Tensor) -> torch.Tensor:
        return -((Z - torch.tensor([0.3, 2.0])) ** 2).sum((-1, -2))

    point, value = maximise_in_box(hill, -np.ones(2), np.ones(2), seed=0)
    assert point == pytest.approx([0.3, 1.0], abs=1e-5)
    assert value == pytest.approx(-1.0, abs=1e-6)
    one = np.random.default_rng(0).uniform(-1, 1, (8, 1))
    acquisition = LogEI(fit_ard(one, -np.sin(4 * one[:, 0]), embedded(1)))
    _, best = maximise_in_box(acquisition, -np.ones(1), np.ones(1), seed=0)

    def loss(t: float) -> float:
        return -float(evaluate(acquisition, np.array([[t]]))[0])

    grid = [minimize_scalar(loss, bounds=(a, a + 0.05), method="bounded").fun for a in np.arange(-1, 1, 0.05)]
    assert best == pytest.approx(-min(grid), abs=1e-4)


def test_the_box_search_takes_extra_points_and_is_reproducible() -> None:
    def needle(Z: torch.Tensor) -> torch.Tensor:
        return -((Z - 0.123).abs().sum((-1, -2)) * 1e3).clamp_max(1.0)

    extra = np.full((1, 80), 0.123)
    found = [maximise_in_box(needle, np.zeros(80), np.ones(80), seed=3, extra=extra) for _ in range(2)]
    assert found[0][1] == 0.0
    assert np.array_equal(found[0][0], found[1][0])


def test_perturbed_points_keep_most_coordinates() -> None:
    centre = np.full(200, 0.5)
    P = perturbed(centre, np.zeros(200), np.ones(200), 64, np.random.default_rng(0))
    moved = (centre != P).sum(1)
    assert moved.min() >= 1
    assert 12 < moved.mean() < 28
    assert P.min() >= 0.0
    assert P.max() <= 1.0


def test_expected_hypervolume_is_lower_near_a_pending_point() -> None:
    pending = NEW[:1]
    without, with_one = (NoisyLogEHVI([DENSE, TWO], pending=p, seed=0) for p in (None, pending))
    at, away = pending.unsqueeze(-2), NEW[3:4].unsqueeze(-2)
    assert float(with_one(at)) < float(without(at)) - 2.0  # what it would bring is on the way
    assert float(with_one(away)) == pytest.approx(float(without(away)), abs=1.0)


@pytest.mark.parametrize("known", [[True] * 8, [True, False] * 4, [False] * 8], ids=["all", "some", "none"])
def test_draws_without_a_feasible_point_count_by_their_chance_alone(known: list[bool]) -> None:
    """The mean over draws of EI (1 where a draw has no best, e^-2 of that where others have one) times the chance."""
    found = NoisyLogEI(DENSE, [LIMIT], seed=0)
    found.known = torch.tensor(known)
    found.best = torch.where(found.known, torch.linspace(-1.0, 1.0, 8).double(), -math.inf)
    (mean, variance, _), (g, spread, _) = (m.marginals(NEW) for m in found.models)
    total = torch.zeros(7).double()
    for i, ok in enumerate(known):
        sd = variance[i].sqrt().numpy()
        z = (mean[i].numpy() - float(found.best[i])) / sd if ok else np.zeros(7)
        gain = sd * (norm.pdf(z) + z * norm.cdf(z)) if ok else np.full(7, math.exp(-2.0) if any(known) else 1.0)
        level = LIMIT.shift / LIMIT.scale + g[i].numpy()
        total += torch.from_numpy(gain * norm.cdf(-level / spread[i].sqrt().numpy())) / 8
    assert torch.allclose(found(NEW.unsqueeze(-2)).exp(), total, rtol=1e-6, atol=1e-12)
    assert torch.allclose(found.with_gradient(NEW)[0].exp(), total, rtol=1e-6, atol=1e-12)
