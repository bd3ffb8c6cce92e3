"""The full-space GP: gradients, twins in BoTorch and GPyTorch, warm starts, extreme outcomes."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from scipy.optimize import check_grad

from alebo._errors import InputError
from alebo.diagnostics.sparse import SHRINKAGES
from alebo.diagnostics.sparse import _fit as diagnosed
from alebo.models.ard import ARDGP, KEPT
from alebo.models.ard_density import LogDensity
from alebo.models.ard_fit import fit_ard, fit_best, refreshes
from alebo.models.priors import NOISE_FLOOR, ARDPrior, dense, embedded, scaled_region, sparse, trust_region

RNG = np.random.default_rng(0)
X = RNG.random((14, 5))
Y = np.sin(4 * X[:, 0]) + X[:, 3] ** 2
PRIORS = [dense(5), sparse(0.1), trust_region(), scaled_region(5, 0.4), embedded(5), embedded(5, "rbf")]


def standardised(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / values.std()


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: f"{p.name} {p.kernel}")
@pytest.mark.parametrize("known", [None, np.linspace(0.01, 0.2, 14)], ids=["inferred", "known"])
def test_the_gradient_is_the_derivative_of_the_density(prior: ARDPrior, known: np.ndarray | None) -> None:
    target = LogDensity(X, standardised(Y), prior, known)
    theta = target.start(np.log(RNG.uniform(0.3, 1.5, 5)), 0.1, -3.0)
    assert check_grad(lambda t: target(t)[0], lambda t: target(t)[1], theta) < 1e-4 * max(1.0, abs(target(theta)[0]))


@pytest.mark.parametrize("kernel", ["matern", "rbf"])
def test_the_posterior_has_the_gradient_of_finite_differences(kernel: str) -> None:
    gp = fit_ard(X, Y, embedded(5, kernel))
    W = torch.from_numpy(RNG.random((4, 5)))
    by_mean, by_variance = torch.from_numpy(RNG.standard_normal((2, 1, 4)))
    found = gp.marginals(W)
    gradient = found.back(by_mean, by_variance)

    def number(points: torch.Tensor) -> float:
        at = gp.marginals(points)
        return float((by_mean * at.mean + by_variance * at.variance).sum())

    for i, j in [(0, 0), (1, 3), (3, 4)]:
        step = torch.zeros_like(W)
        step[i, j] = 1e-5
        numeric = (number(W + step) - number(W - step)) / 2e-5
        assert float(gradient[i, j]) == pytest.approx(numeric, rel=1e-4, abs=1e-7)


def test_torch_differentiates_the_posterior_by_the_closed_form() -> None:
    gp = fit_ard(X, 3.0 + 10.0 * Y, dense(5))
    W = torch.from_numpy(RNG.random((3, 5))).requires_grad_(True)
    mean, variance = gp.posterior(W)
    (by_torch,) = torch.autograd.grad(mean.sum() - variance.sum(), W)
    ours = gp.marginals(W)
    one = torch.ones_like(ours.mean)
    assert torch.allclose(by_torch, ours.back(gp.scale * one, -(gp.scale**2) * one))


@pytest.mark.filterwarnings("ignore:Data \\(outcome:botorch.exceptions.InputDataWarning")
def test_it_is_botorchs_default_model() -> None:
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    z = standardised(Y)
    theirs = SingleTaskGP(torch.as_tensor(X), torch.as_tensor(z)[:, None], outcome_transform=None)
    mll = ExactMarginalLogLikelihood(theirs.likelihood, theirs)
    fit_gpytorch_mll(mll)
    ls = theirs.covar_module.lengthscale.detach().numpy().ravel()
    noise = float(theirs.likelihood.noise.detach())
    twin = ARDGP.of(X, z, "rbf", ls, 1.0, np.full(14, noise), mean=float(theirs.mean_module.constant.detach()))
    new = torch.as_tensor(RNG.random((6, 5)))
    with torch.no_grad():
        posterior = theirs.posterior(new)
    mean, variance = twin.posterior(new)
    assert torch.allclose(mean, posterior.mean[:, 0], atol=1e-6)
    assert torch.allclose(variance, posterior.variance[:, 0], atol=1e-6)
    # the same density up to a constant, so the better optimum is ours or equal
    target = LogDensity(X, z, dense(5))
    ours = fit_ard(X, Y, dense(5))
    assert -ours.log_density <= target(np.concatenate([np.log(ls), [0.0, math.log(noise)]]))[0] + 1e-3
    assert np.allclose(np.log(ours.lengthscales), np.log(ls), atol=0.2)


def test_the_likelihood_is_gpytorchs() -> None:
    import gpytorch

    flat = ARDPrior("flat", "matern", (1e-2, 1e2), (1e-2, 1e2), (1e-6, 1.0))
    theta = np.concatenate([np.log([0.4, 0.7, 1.0, 2.0, 3.0]), [0.3, -3.0]])
    z = standardised(Y)
    kernel = gpytorch.kernels.MaternKernel(2.5, ard_num_dims=5).double()
    kernel.lengthscale = torch.as_tensor(np.exp(theta[:5]))[None]
    K = math.exp(0.3) * kernel(torch.as_tensor(X)).to_dense() + math.exp(-3.0) * torch.eye(14)
    ones = torch.linalg.solve(K, torch.ones(14, dtype=torch.double))
    mean = (ones @ torch.as_tensor(z) / ones.sum()).expand(14)
    want = torch.distributions.MultivariateNormal(mean, K).log_prob(torch.as_tensor(z))
    assert -LogDensity(X, z, flat)(theta)[0] == pytest.approx(float(want.detach()), abs=1e-6)


def test_leave_one_out_is_what_it_says() -> None:
    gp = fit_ard(X, Y, dense(5))
    total = 0.0
    means, sds = gp.leave_one_out()
    for i in range(14):
        keep = np.arange(14) != i
        part = ARDGP.of(
            gp.X[keep], gp.targets[keep], gp.kernel, gp.lengthscales, gp.variance, gp.noises[keep], mean=gp.mean
        )
        m, v = (float(t[0]) for t in part.posterior(gp.points[i : i + 1]))
        v += gp.noises[i]
        total += -0.5 * ((gp.targets[i] - m) ** 2 / v + math.log(v) + math.log(2 * math.pi))
        assert float(means[i]) == pytest.approx(gp.shift + gp.scale * m, rel=1e-5)
        assert float(sds[i]) == pytest.approx(gp.scale * math.sqrt(v), rel=1e-4)
    assert gp.loo_log_density() == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("prior", [dense(40), sparse(0.1), trust_region()], ids=lambda p: p.name)
def test_a_warm_fit_reaches_what_a_cold_one_reaches(prior: ARDPrior) -> None:
    points = np.random.default_rng(3).random((41, 40))
    values = np.sin(4 * points[:, 0]) + points[:, 3] ** 2
    before = fit_ard(points[:40], values[:40], prior)
    memory = json.loads(json.dumps(before.memory))  # a note is plain data
    warm = fit_ard(points, values, prior, warm=memory, cold=False)
    cold = fit_ard(points, values, prior)
    assert warm.log_density > cold.log_density - 0.5
    again = fit_ard(points, values, prior, warm=memory, cold=False)
    assert np.array_equal(again.lengthscales, warm.lengthscales)


def test_a_memory_is_short_at_any_dimension() -> None:
    lengthscales = np.exp(RNG.standard_normal(1000))
    gp = ARDGP.of(RNG.random((6, 1000)), RNG.random(6), "rbf", lengthscales, 1.0, np.full(6, 1e-4))
    assert len(gp.memory) == 3 + 2 * KEPT
    same = ARDGP.of(RNG.random((6, 1000)), RNG.random(6), "rbf", np.ones(1000), 1.0, np.full(6, 1e-4))
    assert len(same.memory) == 3


def test_cold_starts_come_back_as_data_grow() -> None:
    assert [n for n in range(20, 101) if refreshes(n, 100, dense(100))] == [21, 26, 34, 43, 55, 71, 91]


def test_a_rugged_density_restarts_always_where_that_is_cheap_and_every_fourth_time_elsewhere() -> None:
    assert all(refreshes(n, 100, sparse(0.1)) for n in range(5, 200))
    assert sum(refreshes(n, 1000, sparse(0.1)) for n in range(100, 200)) < 35
    assert not any(prior.rugged for prior in PRIORS if "sparse" not in prior.name)


def test_reported_variances_scale_with_the_square_of_the_unit() -> None:
    sems = np.linspace(0.01, 0.2, 14)
    one = fit_ard(X, Y, dense(5), variances=sems**2)
    thousand = fit_ard(X, 5.0 + 1000.0 * Y, dense(5), variances=(1000.0 * sems) ** 2)
    assert np.allclose(one.noises, thousand.noises)
    assert np.allclose(one.noises, (sems / Y.std()) ** 2)
    assert np.allclose(one.lengthscales, thousand.lengthscales, rtol=1e-3)


def test_believing_removes_the_variance_and_keeps_the_mean() -> None:
    gp = fit_ard(X, Y, embedded(5))
    new = torch.from_numpy(RNG.random((3, 5)))
    believing = gp.believing(new)
    assert torch.allclose(gp.posterior(new)[0], believing.posterior(new)[0], atol=1e-3)
    assert (believing.posterior(new)[1] < 1e-2 * gp.posterior(new)[1]).all()


def test_joint_draws_have_the_posteriors_moments() -> None:
    gp = fit_ard(X, 5.0 + 3.0 * Y, embedded(5))
    Z = torch.from_numpy(RNG.uniform(-1, 1, (4, 5)))
    draws = gp.draws(Z, 20_000, seed=1)
    mean, variance = gp.posterior(Z)
    assert torch.allclose(draws.mean(0), mean, atol=float(4 * variance.max().sqrt() / math.sqrt(20_000)))
    assert torch.allclose(draws.var(0), variance, rtol=0.06)
    one = gp.draw(Z, np.random.default_rng(0))
    assert torch.allclose(one.marginals(Z).mean, one.v, atol=1e-3)


@pytest.mark.parametrize("values", [np.full(14, 3.0), 1e300 * Y, 1e-300 * Y, 1.7e308 * np.sign(Y - np.median(Y))])
def test_constant_and_extreme_outcomes_can_be_fitted(values: np.ndarray) -> None:
    gp = fit_ard(X, values, dense(5))
    found = gp.marginals(gp.points)
    assert torch.isfinite(found.mean).all()
    assert torch.isfinite(found.variance).all()
    one = fit_ard(X[:1], values[:1], dense(5))
    assert torch.isfinite(one.marginals(gp.points).mean).all()


def test_priors_refuse_what_makes_no_sense() -> None:
    with pytest.raises(InputError, match="0 < low <= high"):
        ARDPrior("p", "rbf", (2.0, 1.0), (1.0, 1.0), (1e-6, 1.0))
    with pytest.raises(InputError, match="kernel"):
        ARDPrior("p", "cubic", (1.0, 2.0), (1.0, 1.0), (1e-6, 1.0))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="starting lengthscale"):
        ARDPrior("p", "rbf", (1.0, 2.0), (1.0, 1.0), (1e-6, 1.0), starts=())
    with pytest.raises(InputError, match="side > 0"):
        scaled_region(10, 0.0)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4, 1e160])
def test_known_noise_is_scaled_by_the_square_of_the_outcomes_scale(unit: float) -> None:
    variances = np.linspace(0.01, 0.09, 14)
    one = fit_ard(X, Y, dense(5), variances=variances)
    other = fit_ard(X, unit * Y, dense(5), variances=(unit * np.sqrt(variances)) ** 2 if unit < 1e150 else variances)
    assert one.noises == pytest.approx(variances / np.var(Y))
    if unit < 1e150:  # else the square overflows: such noise is none
        assert other.noises == pytest.approx(one.noises)
        assert np.allclose(other.lengthscales, one.lengthscales, rtol=1e-3)
    else:
        assert (other.noises == NOISE_FLOOR).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_shrinkage_chosen_is_the_grids_best_by_leave_one_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    P = rng.random((12, 6))
    values = np.sin(5 * P[:, 0]) + (P[:, 1:3].sum(1) if seed % 2 else 0.0) + 0.05 * rng.standard_normal(12)
    priors = [sparse(t) for t in SHRINKAGES[False]]
    fits = [fit_ard(P, values, prior) for prior in priors]
    scores = [gp.loo_log_density() for gp in fits]
    chosen = fit_best(P, values, priors)
    assert chosen.loo_log_density() == max(scores)
    assert np.array_equal(chosen.lengthscales, fits[int(np.argmax(scores))].lengthscales)
    assert min(scores) < max(scores)
    _, shrinkage = diagnosed(P, values, None)
    assert shrinkage == SHRINKAGES[False][int(np.argmax(scores))]
