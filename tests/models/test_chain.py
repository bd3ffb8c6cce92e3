"""The chain: gradients, the distribution it samples, and what it does for the model."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from alebo.bench.calibration import data, scores
from alebo.models import fit_gp, sample_gp
from alebo.models.mahalanobis.chains import CHAINS, WIDTH, ChainState, Target, sample, transition
from alebo.models.mahalanobis.likelihood import LogPosterior, MetricPrior

pytestmark = pytest.mark.full_chains


def problem(n=25, d=3, noise=0.05, seed=0, known=False):
    rng = np.random.default_rng(seed)
    Y = torch.from_numpy(rng.uniform(-1, 1, (n, d)))
    v = torch.sin(3 * Y[:, 0] + Y[:, 1]) + noise * torch.from_numpy(rng.normal(size=n))
    variances = torch.full((n,), 0.01, dtype=torch.double) if known else None
    return LogPosterior(Y, (v - v.mean()) / v.std(), variances, MetricPrior())


@pytest.mark.parametrize("known", [False, True])
def test_the_gradient_is_that_of_finite_differences(known):
    target = Target(problem(known=known))
    x = ChainState.first(3, np.random.default_rng(1)).place
    _, gradient = target(x)
    h = 1e-5
    numeric = [(target(x + h * e)[0] - target(x - h * e)[0]) / (2 * h) for e in np.eye(len(x))]
    assert gradient == pytest.approx(numeric, rel=1e-5, abs=1e-5)


def test_without_data_to_speak_of_the_chain_samples_the_prior():
    """One observation says nothing of the metric: E and z stay standard normal, and t keeps its prior."""
    prior = MetricPrior(noise_at=math.log(1e-3))  # away from the floor, which cuts the distribution off
    target = Target(LogPosterior(torch.zeros(1, 2, dtype=torch.double), torch.zeros(1).double(), None, prior))
    rng = np.random.default_rng(0)
    state, places = ChainState.first(2, rng), []
    for i in range(1200):
        state = transition(target, state, rng)
        if i >= 100:
            places.append(state.place)
    seen = np.array(places)
    assert np.abs(seen[:, :6].mean(0)).max() < 0.2  # E and z
    assert seen[:, :6].std(0) == pytest.approx(1.0, abs=0.15)
    assert seen[:, 6].mean() == pytest.approx(WIDTH[0], abs=0.2)
    assert seen[:, 6].std() == pytest.approx(WIDTH[1], abs=0.2)


def test_a_state_survives_packing_and_grows_with_the_embedding():
    rng = np.random.default_rng(0)
    state = ChainState.first(3, rng)
    assert ChainState.unpack(state.pack()).place == pytest.approx(state.place)
    grown = state.padded(5, rng)
    assert grown.E.shape == (5, 5)
    assert grown.E[:3, :3] == pytest.approx(state.E)
    assert state.padded(3, rng) is state


def test_a_chain_that_goes_on_is_as_good_as_one_that_starts_again():
    posterior = problem(n=60)
    rng = np.random.default_rng(3)
    _, start = sample(problem(n=30), None, 5, rng)
    found, _ = sample(posterior, start, 40, rng)
    fresh, _ = sample(posterior, None, 40, rng)
    levels = [np.mean([float(s.hyperparameters().U.pow(2).sum()) for s in hs]) for hs in (found, fresh)]
    assert 0.5 < levels[0] / levels[1] < 2.0


def test_the_same_seed_gives_the_same_model():
    posterior = problem()
    one, two = (sample_gp(posterior.Y, posterior.v, samples=3, seed=5) for _ in range(2))
    assert torch.equal(one.U, two.U)
    assert one.memory == two.memory


def test_with_as_many_unknowns_as_data_it_predicts_better_and_knows_how_well():
    """Hartmann6 in twelve embedded directions, 100 observations: the mode overfits, the chain does not."""
    Y, values = data(0, 12, 100)
    scored = {}
    for build in (sample_gp, fit_gp):
        mean, variance = build(Y[:100], values[:100], seed=0).moments(Y[100:].unsqueeze(1))
        scored[build] = scores(values[100:], mean, variance.sqrt())
    _, coverage, density = scored[sample_gp]
    assert coverage > 0.85
    assert density > scored[fit_gp][2] + 0.5


def test_it_finds_that_few_directions_matter():
    """Two directions of twelve: most rows of the metric vanish, and the mean is right to a tenth of the spread."""
    rng = np.random.default_rng(2)
    Y = torch.from_numpy(rng.uniform(-1, 1, (260, 12)))
    values = torch.sin(2 * Y[:, 0] + Y[:, 1]) + Y[:, 2] ** 2
    model = sample_gp(Y[:60], values[:60], seed=0)
    mean, _ = model.moments(Y[60:].unsqueeze(1))
    assert float((mean - values[60:]).pow(2).mean().sqrt()) < 0.15 * float(values.std())
    eigenvalues = torch.linalg.eigvalsh(model.gamma).mean(0)
    assert int((eigenvalues > 0.1 * eigenvalues.max()).sum()) <= 4


def test_a_new_chain_finds_noise_that_the_others_took_for_detail():
    rng = np.random.default_rng(0)
    Y = torch.from_numpy(rng.uniform(-1, 1, (60, 6)))
    values = torch.sin(2 * Y[:, 0]) + torch.from_numpy(rng.normal(size=60))
    stuck = [ChainState(5 * rng.normal(size=(6, 6)), np.zeros(6), 0.5, 0.0, math.log(1e-5), math.log(1e-3)).pack()] * 2
    going = sample_gp(Y, values, samples=4, warm=stuck)
    joined = sample_gp(Y, values, samples=4, warm=stuck, afresh=True)
    assert len(joined.memory) == len(stuck)
    assert float(going.noises.max()) < 0.05 < float(joined.noises.max())
    assert joined.loo_log_density() > going.loo_log_density()


def test_a_chain_in_a_wrong_world_goes_on_from_the_best_one():
    """A smooth function without noise: one chain knows it, the other takes everything for noise."""
    Y = torch.from_numpy(np.random.default_rng(1).uniform(-1, 1, (50, 2)))
    values = torch.sin(2 * Y[:, 0]) * torch.cos(Y[:, 1])
    right = sample_gp(Y, values, samples=1, seed=3).memory[0]
    wrong = ChainState(np.eye(2), np.zeros(2), -9.0, 0.0, 0.0, math.log(1e-4)).pack()
    assert float(sample_gp(Y, values, samples=1, warm=[wrong]).noises.min()) > 0.5
    assert float(sample_gp(Y, values, samples=4, warm=[right, wrong]).noises.max()) < 1e-2


def test_chains_share_the_samples_and_none_idles():
    posterior = problem()
    model = sample_gp(posterior.Y, posterior.v, samples=6, seed=1)
    assert len(model.memory) == CHAINS
    assert len(model.U) == 6
    assert len(sample_gp(posterior.Y, posterior.v, samples=1).memory) == 1
    assert len(sample_gp(posterior.Y, posterior.v, samples=6, warm=model.memory).memory) == CHAINS


def test_a_start_that_arithmetic_does_not_allow_is_replaced():
    posterior = problem()
    far = ChainState(np.full((3, 3), 1e6), np.zeros(3), 50.0, 0.0, -5.0)
    found, state = sample(posterior, far, 2, np.random.default_rng(0))
    assert len(found) == 2
    assert abs(state.log_width) < 12
