"""The model: what BoTorch expects of it, moment matching, noise, and what it predicts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    PosteriorMean,
    UpperConfidenceBound,
    qKnowledgeGradient,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
)
from botorch.models.model import ModelList

from alebo.models import MahalanobisGP, fit_gp
from alebo.models.mahalanobis.likelihood import Hyperparameters

pytestmark = pytest.mark.full_chains


def data(n=40, d=3, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    Y = torch.from_numpy(rng.uniform(-1, 1, (n, d)))
    return Y, torch.sin(3 * Y[:, 0] + Y[:, 1]) * 5 + 100 + noise * torch.from_numpy(rng.normal(size=n))


@pytest.fixture(scope="module")
def model():
    return fit_gp(*data(), samples=6, seed=1, inflation=5.0)


def test_it_interpolates_in_the_users_units(model):
    Y, values = data()
    posterior = model.posterior(Y.unsqueeze(-2))
    assert torch.allclose(posterior.mean.flatten(), values, atol=0.05)
    assert (posterior.variance > 0).all()


def test_the_posterior_is_the_moment_matched_mixture(model):
    X = torch.rand(5, 3, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0)) - 0.5
    joint = model.posterior(X)
    means, covariances = [], []
    for U in model.U:
        one = MahalanobisGP(
            model.Y, model.v, model.noises, U[None], model.variance[:1], model.shift, model.scale
        ).posterior(X)
        means.append(one.mean.squeeze(-1))
        covariances.append(one.distribution.covariance_matrix)
    means, covariances = torch.stack(means), torch.stack(covariances)
    off = means - means.mean(0)
    expected = covariances.mean(0) + torch.einsum("mbi,mbj->bij", off, off) / len(means)
    assert torch.allclose(joint.mean.squeeze(-1), means.mean(0), atol=1e-9)
    assert torch.allclose(joint.distribution.covariance_matrix, expected, atol=1e-6)
    single = model.posterior(X[:, :1])
    assert torch.allclose(single.variance.flatten(), expected[:, 0, 0], atol=1e-6)


def test_one_sample_is_a_plain_gp():
    Y, values = data(noise=0.5)
    one = fit_gp(Y, values, samples=1, seed=0)
    h = Hyperparameters.unpack(one.memory[0])
    K = torch.exp(h.log_scale - 0.5 * torch.cdist(Y @ h.U.mT, Y @ h.U.mT) ** 2) + torch.diag(one.noise)
    X = torch.tensor([[0.2, -0.1, 0.4]], dtype=torch.double)
    k = torch.exp(h.log_scale - 0.5 * torch.cdist(X @ h.U.mT, Y @ h.U.mT) ** 2)
    Kinv = torch.linalg.inv(K)
    c = (Kinv @ one.v).sum() / Kinv.sum()
    mean = one.shift + one.scale * (c + k @ Kinv @ (one.v - c))
    variance = one.scale**2 * (math.exp(h.log_scale) - k @ Kinv @ k.mT)
    posterior = one.posterior(X)
    assert float(posterior.mean) == pytest.approx(float(mean), abs=1e-6)
    assert float(posterior.variance) == pytest.approx(float(variance), rel=1e-3, abs=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda m: LogExpectedImprovement(m, best_f=104.0),
        lambda m: UpperConfidenceBound(m, beta=2.0),
        lambda m: PosteriorMean(m),
        lambda m: qLogExpectedImprovement(m, best_f=104.0),
        lambda m: qLogNoisyExpectedImprovement(m, X_baseline=m.Y[:10], cache_root=False, prune_baseline=False),
        lambda m: qKnowledgeGradient(m, num_fantasies=2),
        lambda m: qLogExpectedImprovement(m, best_f=104.0, X_pending=m.Y[:2]),
    ],
)
def test_any_botorch_acquisition_accepts_it(model, make):
    acquisition = make(model)
    X = torch.zeros(4, 3 if isinstance(acquisition, qKnowledgeGradient) else 1, 3, dtype=torch.double)
    X = X + torch.linspace(-0.5, 0.5, 4, dtype=torch.double)[:, None, None]
    X.requires_grad_(True)
    value = acquisition(X)
    assert value.shape == (4,)
    assert torch.isfinite(value).all()
    assert torch.isfinite(torch.autograd.grad(value.sum(), X)[0]).all()


def test_a_model_list_shares_the_embedding(model):
    both = ModelList(model, model)
    assert both.posterior(torch.zeros(2, 1, 3, dtype=torch.double)).mean.shape == (2, 1, 2)


def test_conditioning_is_refitting_with_the_same_metric(model):
    X, value = torch.tensor([[8.0, 9.0, 9.0]], dtype=torch.double), torch.tensor([[99.0]], dtype=torch.double)
    conditioned = model.condition_on_observations(X, value)
    assert float(conditioned.posterior(X).mean) == pytest.approx(99.0, abs=0.1)
    fantasies = model.condition_on_observations(X.expand(4, 1, 3), value + torch.arange(4)[:, None, None])
    assert fantasies.posterior(X).mean.flatten().tolist() == pytest.approx([99.0, 100.0, 101.0, 102.0], abs=0.2)


@pytest.mark.parametrize("of", [3, 6, 7])
def test_shares_of_the_samples_are_all_of_them(model, of):
    X = torch.rand(9, 1, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0)) - 0.5
    shares = [model.share(i, of) for i in range(min(of, 6))]
    assert sum(len(s.U) for s in shares) == len(model.U)
    mean = torch.stack([s.moments(X)[0] for s in shares]).mean(0)
    assert torch.allclose(mean, model.moments(X)[0], rtol=1e-9)


def test_noise_is_inferred_and_known_noise_is_used():
    Y, values = data(n=80, noise=1.0, seed=2)
    inferred = fit_gp(Y, values, samples=4)
    sd = float(inferred.noise.median().sqrt()) * inferred.scale
    assert 0.6 < sd < 1.6
    assert inferred.noise_evidence() > 5.0
    quiet = fit_gp(*data(n=80, seed=2), samples=4)
    assert float(quiet.noise.median()) < 1e-3
    assert quiet.noise_evidence() < 5.0
    told = fit_gp(Y, values, variances=torch.full((80,), 4.0), samples=4)
    assert told.known_noise
    assert float(told.noise[0]) * told.scale**2 == pytest.approx(4.0, rel=1e-3)
    noisy, clean = (told.posterior(Y[:1], observation_noise=flag).variance for flag in (True, False))
    assert float(noisy - clean) == pytest.approx(4.0, rel=1e-2)


def test_leave_one_out_is_leaving_one_out():
    Y, values = data(n=12)
    model = fit_gp(Y, values, samples=1, seed=0)
    means, sds = model.leave_one_out()
    rest = torch.arange(12) != 5
    h = Hyperparameters.unpack(model.memory[0])
    K = torch.exp(h.log_scale - 0.5 * torch.cdist(Y @ h.U.mT, Y @ h.U.mT) ** 2) + torch.diag(model.noise)
    c = float(model.data.mean)
    weights = K[5, rest] @ torch.linalg.inv(K[rest][:, rest])
    assert float(means[5]) == pytest.approx(
        float(model.shift + model.scale * (c + weights @ (model.v[rest] - c))), abs=1e-5
    )
    assert float(sds[5]) == pytest.approx(float(model.scale * (K[5, 5] - weights @ K[rest, 5]).sqrt()), rel=1e-2)


def test_what_a_model_leaves_unexplained():
    Y, values = data(n=60)
    assert fit_gp(Y, values, samples=2, seed=0).unexplained() < 0.05
    rough = torch.from_numpy(np.random.default_rng(0).normal(size=60))  # no function of Y, and said to be without noise
    assert fit_gp(Y, rough, variances=torch.zeros(60), samples=2, seed=0).unexplained() > 0.5
    assert fit_gp(Y[:3], torch.ones(3), samples=2, seed=0).unexplained() == 0.0


@pytest.mark.parametrize(
    "values", [[5.0], [3.0, 3.0, 3.0], [1e12, 2e12, 1.5e12], [1e-12, 2e-12, 1.5e-12], [0.0, 0.0, 1.0]]
)
def test_few_equal_huge_and_tiny_values(values):
    Y = torch.linspace(-1, 1, len(values), dtype=torch.double)[:, None].expand(-1, 4).contiguous()
    mean, variance = fit_gp(Y, torch.tensor(values, dtype=torch.double), samples=5).moments(
        torch.zeros(1, 1, 4).double()
    )
    assert min(values) - 1.0 <= float(mean) <= max(values) + 1.0
    assert 0 <= float(variance) < 10 * max(values) ** 2 + 10


def test_duplicated_points():
    Y = torch.zeros(6, 3, dtype=torch.double)
    posterior = fit_gp(Y, torch.tensor([1.0, 1.1, 0.9, 1.0, 1.0, 1.2], dtype=torch.double)).posterior(Y[:1])
    assert float(posterior.mean) == pytest.approx(1.03, abs=0.1)


def test_a_warm_start_from_a_smaller_embedding():
    Y, values = data(d=3)
    small = fit_gp(Y, values, samples=2)
    grown = fit_gp(torch.cat([Y, torch.zeros(40, 2)], 1), values, samples=2, warm=small.memory, cold=0)
    assert grown.dim == 5
    X = torch.rand(30, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0)) - 0.5
    wide = torch.cat([X, torch.zeros(30, 2, dtype=torch.double)], 1)
    assert torch.allclose(grown.moments(wide[:, None])[0], small.moments(X[:, None])[0], atol=0.1)
    assert Hyperparameters.unpack(grown.memory[0]).U.shape == (5, 5)


def test_a_new_observation_with_known_noise_counts_by_its_variance_over_the_square_of_the_scale(model):
    """The posterior by hand: a kernel matrix with the noises, in standardised units, on its diagonal."""
    one = MahalanobisGP(model.Y, model.v, model.noises, model.U[:1], model.variance[:1], model.shift, model.scale)
    X, value, sd = (
        torch.full((1, 3), 4.0, dtype=torch.double),
        torch.tensor([[90.0]]).double(),
        4.0,
    )  # far from the data
    assert one.scale > 2.0
    more = one.condition_on_observations(X, value, noise=torch.full((1, 1), sd**2).double())
    Y, v = torch.cat([one.Y, X]), torch.cat([one.v, (value[0] - one.shift) / one.scale])
    noise = torch.cat([one.noises[0], torch.tensor([(sd / one.scale) ** 2])])
    Z = Y @ one.U[0].mT
    signal = one.variance[0] * torch.exp(-0.5 * torch.cdist(Z, Z) ** 2)
    inverse = torch.linalg.inv(signal + torch.diag(noise))
    mean = (inverse @ v).sum() / inverse.sum()
    expected = mean + signal @ inverse @ (v - mean)
    found = more.posterior(Y.unsqueeze(-2)).mean.flatten()
    assert torch.allclose(found, one.shift + one.scale * expected, atol=1e-5)


def test_a_batch_of_models_is_conditioned_again_as_each_alone(model):
    """Two hypothetical outcomes at once, then one more point for both: as BoTorch's fantasies do it."""
    X, Z = (torch.full((1, 3), v, dtype=torch.double) for v in (2.0, -2.0))
    outcomes = torch.tensor([[[99.0]], [[103.0]]]).double()  # 2 x 1 x 1
    both = model.condition_on_observations(X.expand(2, 1, 3), outcomes)
    both = both.condition_on_observations(Z.expand(2, 1, 3), outcomes + 1.0)
    assert both.batch_shape == (2,)
    at = torch.tensor([[1.5, 1.5, 1.5], [-1.0, -2.0, -1.0]]).double()
    found = both.posterior(at.expand(2, 2, 3))
    for i in range(2):
        one = model.condition_on_observations(X, outcomes[i]).condition_on_observations(Z, outcomes[i] + 1.0)
        alone = one.posterior(at)
        assert torch.allclose(found.mean[i], alone.mean, atol=1e-7)
        assert torch.allclose(found.variance[i], alone.variance, atol=1e-7)
    assert both.noises.shape[-1] == model.noises.shape[-1] + 2
    assert torch.equal(both.noises[0, ..., -1], model.noises.min(-1).values)  # as small as that of the least noisy


@pytest.mark.parametrize("shape", [(), (4,), (2, 4)])
def test_moments_and_marginals_are_those_of_the_posterior(model, shape):
    X = torch.rand(*shape, 1, 3, dtype=torch.double, generator=torch.Generator().manual_seed(2)) * 1.6 - 0.8
    posterior = model.posterior(X)
    mean, variance = model.moments(X)
    assert mean.shape == variance.shape == shape
    assert torch.allclose(mean, posterior.mean[..., 0, 0])
    assert torch.allclose(variance, posterior.variance[..., 0, 0], rtol=1e-5)
    found = model.marginals(X.reshape(-1, 3))
    assert found.mean.shape == found.variance.shape == (1, mean.numel())
    assert torch.allclose(model.shift + model.scale * found.mean[0], mean.flatten())
    assert torch.allclose(model.scale**2 * found.variance[0], variance.flatten(), rtol=1e-5)


@pytest.mark.parametrize("q", [1, 3])
def test_the_noise_of_observations_is_added_to_the_variances_only(model, q):
    X = torch.rand(2, q, 3, dtype=torch.double, generator=torch.Generator().manual_seed(3)) - 0.5
    plain = model.posterior(X).distribution.covariance_matrix
    for noise, added in (
        (True, torch.full((2, q), float(model.noise.mean()) * model.scale**2, dtype=torch.double)),
        (torch.tensor([[[0.5]] * q, [[2.0]] * q], dtype=torch.double), torch.tensor([[0.5] * q, [2.0] * q]).double()),
    ):
        found = model.posterior(X, observation_noise=noise)
        assert torch.allclose(found.mean, model.posterior(X).mean)
        assert torch.allclose(found.distribution.covariance_matrix, plain + torch.diag_embed(added), rtol=1e-8)


def test_a_variance_that_was_raised_to_the_least_one_has_no_slope(model):
    W = model.Y[:4] + 0.05
    weight = torch.ones(1, 4, dtype=torch.double)

    def slopes(variance):
        parts = (model.Y, model.v, torch.full_like(model.noises[:1], 0.1 * variance), model.U[:1])
        made = MahalanobisGP(*parts, torch.tensor([variance], dtype=torch.double), model.shift, model.scale)
        found = made.marginals(W)
        return found.variance, found.back(0.0 * weight, weight)

    variance, slope = slopes(1.0)
    assert float(variance.min()) > 1e-12
    assert float(slope.abs().max()) > 1e-6
    variance, slope = slopes(1e-13)
    assert variance.tolist() == [[1e-12] * 4]
    assert slope.abs().max() == 0.0


def test_explanations_that_differ_are_matched_in_their_moments_and_slopes():
    """Metrics so different, and data so few, that most of the variance is between the means; by a sum over explanations."""
    Y, values = data(n=6)
    v, few = (values - 100.0) / 5.0, torch.full((4, 6), 1e-4, dtype=torch.double)
    U = torch.stack([s * torch.eye(3, dtype=torch.double) for s in (0.3, 1.0, 3.0, 9.0)])
    scales = torch.tensor([1.0, 0.5, 2.0, 1.5], dtype=torch.double)
    made = MahalanobisGP(Y, v, few, U, scales, 100.0, 5.0)
    each = [MahalanobisGP(Y, v, few[:1], U[i : i + 1], scales[i : i + 1], 100.0, 5.0) for i in range(4)]
    X = torch.rand(5, 3, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0)) - 0.5
    for Q in (X, X[:, :1]):
        means = torch.stack([one.posterior(Q).mean.squeeze(-1) for one in each])
        off = means - means.mean(0)
        between = sum(torch.einsum("bi,bj->bij", o, o) for o in off) / 4
        expected = sum(one.posterior(Q).distribution.covariance_matrix for one in each) / 4 + between
        found = made.posterior(Q)
        assert float(between.diagonal(dim1=-2, dim2=-1).mean()) > 0.05 * float(expected.mean())
        assert torch.allclose(found.mean.squeeze(-1), means.mean(0))
        assert torch.allclose(found.distribution.covariance_matrix, expected, rtol=1e-5)
    W, weights = X[:, 0].clone().requires_grad_(), torch.linspace(-1.0, 2.0, 10, dtype=torch.double).reshape(2, 1, 5)
    posterior = made.posterior(W.unsqueeze(1))
    mean, variance = (posterior.mean.flatten() - 100.0) / 5.0, posterior.variance.flatten() / 25.0
    ((weights[0, 0] * mean).sum() + (weights[1, 0] * variance).sum()).backward()
    marginals = made.marginals(W.detach())
    torch.testing.assert_close(marginals.variance[0], variance.detach(), rtol=1e-5, atol=1e-8)
    torch.testing.assert_close(marginals.back(weights[0], weights[1]), W.grad, rtol=1e-5, atol=1e-8)
