"""The proposal: log-EI against BoTorch's, maxima against a multi-start SLSQP, every point inside, noise and constraints."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.acquisition import LogExpectedImprovement, qUpperConfidenceBound
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from alebo.acquisition import LogEI, NoisyLogEI, PerCost, candidates, evaluate, log_ei, propose
from alebo.geometry import hypersphere, identity
from alebo.models import fit_gp


def world(D=60, d=4, n=25, seed=0, noise=0.0, samples=6):
    rng = np.random.default_rng(seed)
    embedding = hypersphere(D, d, seed).orthonormal()
    Y = embedding.domain.sample(n, seed)
    X = embedding.up(Y)
    values = -((X[:, 3] - 0.4) ** 2) - (X[:, 7] + 0.2) ** 2 + noise * rng.normal(size=n)
    model = fit_gp(torch.from_numpy(Y), torch.from_numpy(values), samples=samples, seed=seed, inflation=5.0)
    return embedding, Y, values, model


def test_log_ei_is_botorchs():
    embedding, _, values, model = world()
    X = torch.from_numpy(embedding.domain.sample(50, 9)).unsqueeze(-2)
    theirs = LogExpectedImprovement(model, best_f=float(values.max()))(X) - math.log(model.scale)
    assert torch.allclose(LogEI(model)(X), theirs, atol=1e-6)


@pytest.mark.parametrize("variance", [0.01, None])
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_in_closed_form_is_that_of_automatic_differentiation(seed, variance):
    embedding, Y, values, _ = world(seed=seed)
    W = torch.from_numpy(np.vstack([embedding.domain.sample(40, 9), Y[:3] * 0.999]))
    known = None if variance is None else torch.full((len(Y),), variance, dtype=torch.double)

    def fitted(outcomes, samples):
        told = torch.from_numpy(outcomes)
        return fit_gp(torch.from_numpy(Y), told, samples=samples, seed=seed, inflation=5.0, variances=known)

    slope = embedding.up(Y)[:, 3]
    model = fitted(values, 6)
    limits, nowhere = [fitted(slope + 0.3, 7), fitted(slope, 7)], fitted(slope + 9.0, 6)
    pending = torch.from_numpy(embedding.domain.sample(2, 8))
    for acquisition in (
        LogEI(model),
        LogEI(model, doubt=0.1),
        NoisyLogEI(model, seed=0),
        NoisyLogEI(model, limits, pending=pending, seed=0),
        NoisyLogEI(model, [nowhere], seed=0),
    ):
        value, gradient = acquisition.with_gradient(W)
        at = W.clone().requires_grad_(True)
        theirs = acquisition(at.unsqueeze(-2))
        (automatic,) = torch.autograd.grad(theirs.sum(), at)
        # Without noise, or given noiseless draws, the covariance is nearly singular, and two orders of summation may differ by
        # its condition (up to 4e10 here; 2e3 with the noise above) times the rounding of a double, 2e-16.
        exact = variance is not None and isinstance(acquisition, LogEI)
        assert torch.allclose(value, theirs.detach(), rtol=1e-11 if exact else 1e-5, atol=1e-8)
        assert torch.allclose(gradient, automatic, rtol=1e-5, atol=1e-6 * float(automatic.abs().max()))


def test_log_ei_far_out_where_plain_ei_underflows():
    z = torch.tensor([5.0, 0.0, -1.0, -5.0, -20.0, -29.9, -30.1, -100.0, -1e4], dtype=torch.double)
    value = log_ei(z)
    direct = torch.log(torch.exp(-0.5 * z[:4] ** 2) / math.sqrt(2 * math.pi) + z[:4] * torch.special.ndtr(z[:4]))
    assert torch.allclose(value[:4], direct, atol=1e-9)
    assert (value[1:] < value[:-1]).all()
    assert torch.isfinite(value).all()
    far = -0.5 * z**2 - 0.5 * math.log(2 * math.pi) - 2 * torch.log(-z)
    assert torch.allclose(value[-2:], far[-2:], rtol=1e-4)
    z.requires_grad_(True)
    (gradient,) = torch.autograd.grad(log_ei(z).sum(), z)
    assert torch.isfinite(gradient).all()
    assert (gradient > 0).all()
    h = 1e-6
    numeric = (log_ei(z.detach() + h) - log_ei(z.detach() - h)) / (2 * h)
    assert torch.allclose(gradient[:-1], numeric[:-1], rtol=1e-4)


@given(seed=st.integers(0, 1000), D=st.sampled_from([20, 200, 1000]), d=st.sampled_from([1, 2, 6]))
@settings(max_examples=6)
def test_every_proposal_maps_inside_the_bounds(seed, D, d):
    embedding, Y, _, model = world(D=D, d=d, n=12, seed=seed, samples=3)
    y, _ = propose(LogEI(model), embedding.domain, seed, around=Y[:2])
    assert np.abs(embedding.up(y)).max() <= 1.0 + 1e-9


def test_a_linear_acquisition_is_maximised_at_the_vertex_that_a_linear_program_finds():
    from scipy.optimize import linprog

    embedding = hypersphere(50, 5, 1).orthonormal()
    c = np.random.default_rng(1).normal(size=5)
    y, value = propose(lambda X: (X @ torch.from_numpy(c)).squeeze(-1), embedding.domain, 0)
    exact = linprog(-c, A_ub=embedding.domain.A, b_ub=embedding.domain.b, bounds=[(None, None)] * 5)
    assert value == pytest.approx(-exact.fun, rel=1e-5)
    assert embedding.domain.contains(y)


def test_maxima_are_as_good_as_slsqp_from_many_starts():
    embedding, _Y, _, model = world(n=40)
    acquisition, domain = LogEI(model), embedding.domain
    _, value = propose(acquisition, domain, 3)

    def negative(w):
        W = torch.from_numpy(w).requires_grad_(True)
        v = acquisition(W[None, None])
        (g,) = torch.autograd.grad(v.sum(), W)
        return -float(v.detach()), -g.numpy()

    rule = {"type": "ineq", "fun": domain.slack, "jac": lambda w: -domain.A}
    ends = [minimize(negative, y, jac=True, method="SLSQP", constraints=rule) for y in domain.sample(12, 5)]
    reached = max(-e.fun for e in ends if domain.contains(e.x, 1e-6))
    assert value >= reached - 1e-3


def test_the_identity_embedding_is_plain_bo_in_the_box():
    from botorch.optim import optimize_acqf

    embedding = identity(3)
    Y = embedding.domain.sample(15, 0)
    model = fit_gp(torch.from_numpy(Y), torch.from_numpy(-np.sum((Y - 0.3) ** 2, axis=1)), samples=1)
    y, value = propose(LogEI(model), embedding.domain, 0)
    box = torch.tensor([[-1.0] * 3, [1.0] * 3], dtype=torch.double)
    theirs, _ = optimize_acqf(LogExpectedImprovement(model, best_f=model.train_targets.max()), box, 1, 8, 128)
    assert value >= float(LogEI(model)(theirs[None])[0]) - 1e-3
    assert np.abs(y).max() <= 1.0


def test_another_acquisition_is_maximised_in_the_same_way():
    embedding, _, _, model = world()
    y, _ = propose(qUpperConfidenceBound(model, beta=0.5), embedding.domain, 0)
    assert embedding.domain.contains(y)


def test_raw_points_are_compared_in_pieces(monkeypatch):
    from alebo.acquisition import maximize

    widths = []

    def acquisition(X):
        widths.append(len(X))
        return X.sum((-1, -2))

    monkeypatch.setattr(maximize, "PIECE", 10)
    evaluate(acquisition, np.zeros((101, 3)))
    assert max(widths) == 10
    assert sum(widths) == 101


def test_candidates_come_best_first_and_are_reproducible():
    embedding, Y, _, model = world()
    a, va = candidates(LogEI(model), embedding.domain, 7, around=Y[:3])
    b, _ = candidates(LogEI(model), embedding.domain, 7, around=Y[:3])
    assert np.array_equal(a, b)
    assert (np.diff(va) <= 1e-12).all()


class TestNoisy:
    def test_without_noise_it_agrees_with_the_mixture_of_plain_ei(self):
        embedding, _, values, model = world(n=30)
        X = torch.from_numpy(embedding.domain.sample(30, 4)).unsqueeze(-2)
        mean, variance = model.data.components(X)
        sigma = variance[..., 0].sqrt()
        best = (values.max() - model.shift) / model.scale
        each = log_ei((mean[..., 0] - best) / sigma) + sigma.log()
        expected = torch.logsumexp(each, -1) - math.log(each.shape[-1])
        near = expected > -8
        assert torch.allclose(NoisyLogEI(model, seed=0)(X)[near], expected[near], atol=0.25)

    def test_pending_points_are_avoided(self):
        embedding, Y, _, model = world(n=15)
        first, _ = propose(NoisyLogEI(model, seed=0), embedding.domain, 0, around=Y[:2])
        waiting = torch.from_numpy(first[None])
        there = torch.from_numpy(first[None, None])
        assert float(NoisyLogEI(model, pending=waiting, seed=0)(there)) < float(NoisyLogEI(model, seed=0)(there)) - 1.0

    def test_constraints_move_the_proposal_to_where_they_hold(self):
        embedding, Y, _, model = world(n=40)
        X = embedding.up(Y)
        limit = fit_gp(torch.from_numpy(Y), torch.from_numpy(X[:, 3] + 0.3), samples=6, seed=1, inflation=5.0)
        y, _ = propose(NoisyLogEI(model, [limit], seed=0), embedding.domain, 0, around=Y)
        assert embedding.up(y)[3] < -0.1
        free, _ = propose(NoisyLogEI(model, seed=0), embedding.domain, 0, around=Y)
        assert embedding.up(free)[3] > -0.1

    def test_while_nothing_is_feasible_it_seeks_feasibility(self):
        embedding, Y, _, model = world(n=30)
        g = torch.from_numpy(0.5 - 0.5 * embedding.up(Y)[:, 5])
        g = g - g.min() + 0.2  # nowhere yet
        limit = fit_gp(torch.from_numpy(Y), g, samples=6, seed=1, inflation=5.0)
        y, _ = propose(NoisyLogEI(model, [limit], seed=0), embedding.domain, 0, around=Y)
        assert float(limit.posterior(torch.from_numpy(y[None])).mean) < float(g.min())

    def test_a_cost_prefers_the_cheap_side(self):
        embedding, Y, _, model = world(n=30)
        side = torch.from_numpy(4.0 * embedding.up(Y)[:, 11])
        cost = fit_gp(torch.from_numpy(Y), side, samples=2, seed=1)
        dear, _ = propose(NoisyLogEI(model, seed=0), embedding.domain, 0, around=Y)
        cheap, _ = propose(PerCost(NoisyLogEI(model, seed=0), cost), embedding.domain, 0, around=Y)
        price = [float(cost.posterior(torch.from_numpy(y[None])).mean) for y in (cheap, dear)]
        assert price[0] < price[1]

    def test_replicated_points_are_welcome(self):
        embedding, Y, values, _ = world(n=10)
        twice = np.vstack([Y, Y])
        model = fit_gp(torch.from_numpy(twice), torch.from_numpy(np.concatenate([values, values + 0.1])), samples=4)
        _, value = propose(NoisyLogEI(model, seed=0), embedding.domain, 0)
        assert math.isfinite(value)
