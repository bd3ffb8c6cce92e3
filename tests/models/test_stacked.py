"""Draws of several outcomes in one array: the algebra of each outcome alone, and points that come under way."""

from __future__ import annotations

import numpy as np
import torch

from alebo.models.mahalanobis import sample_gp
from alebo.models.mahalanobis.conditioned import Conditioned
from alebo.models.mahalanobis.stacked import JITTER, Stack, _root

RNG = np.random.default_rng(0)
Y = torch.from_numpy(RNG.uniform(-1, 1, (14, 2)))
MODELS = [sample_gp(Y, v, samples=4, seed=1) for v in (torch.sin(2 * Y[:, 0]), 100.0 + 7.0 * Y[:, 1] ** 2)]
AT = np.random.default_rng(2).uniform(-1, 1, (5, 2))


def stack() -> tuple[list[Conditioned], Stack]:
    drawn = [model.draw(Y, np.random.default_rng(3)) for model in MODELS]
    made = drawn[0].stacked(drawn[1:])
    assert made is not None
    return drawn, made


def test_marginals_are_those_of_each_outcome() -> None:
    drawn, made = stack()
    mean, variance, back = made.marginals(AT)
    by = np.random.default_rng(4).standard_normal((2, 8, 5))
    pulls = back(*by)
    want = np.zeros_like(pulls)
    for i, one in enumerate(drawn):
        found, rows = one.marginals(torch.from_numpy(AT)), slice(4 * i, 4 * i + 4)
        np.testing.assert_allclose(mean[rows], found.mean.numpy(), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(variance[rows], found.variance.numpy(), rtol=1e-6, atol=1e-9)
        want += found.back(*(torch.from_numpy(b[rows]) for b in by)).numpy()
    np.testing.assert_allclose(pulls, want, rtol=1e-7, atol=1e-7)
    assert made.by_outcome(made.v).shape == (2, 4, 14)
    np.testing.assert_array_equal(made.shifts, [m.shift for m in MODELS])
    np.testing.assert_array_equal(made.scales, [m.scale for m in MODELS])


def test_outcomes_share_the_number_of_metrics_that_all_have() -> None:
    drawn, _ = stack()
    made = drawn[0].stacked([drawn[1].part(slice(0, 3))])
    assert made is not None
    assert made.m == 3
    np.testing.assert_array_equal(made.U[3:], drawn[1].U[:3].numpy())


def test_a_part_has_those_metrics_of_each_outcome() -> None:
    _, made = stack()
    part = made.part(slice(1, None, 3))
    assert part.m == 1
    np.testing.assert_array_equal(part.Linv, made.Linv[[1, 5]])
    whole, some = made.marginals(AT)[0], part.marginals(AT)[0]
    np.testing.assert_allclose(some, whole[[1, 5]])


def test_more_points_are_as_if_they_had_been_there_from_the_start() -> None:
    _, made = stack()
    more = made.plus(AT[:2], np.random.default_rng(5)).plus(AT[2:3], np.random.default_rng(6))
    variance = torch.from_numpy(made.variance)
    jitter = JITTER * (1e-3 * variance).clamp_min(1.0)[:, None].expand(-1, 17)
    whole = torch.cat([Y, torch.from_numpy(AT[:3])])
    want = Conditioned(whole, torch.from_numpy(more.v), jitter, torch.from_numpy(made.U), variance, 0.0, 1.0)
    found, (mean, spread, _) = want.marginals(torch.from_numpy(AT)), more.marginals(AT)
    np.testing.assert_allclose(mean, found.mean.numpy(), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(spread, found.variance.numpy(), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(more.Linv, want.Linv.numpy(), rtol=1e-5, atol=1e-3)
    np.testing.assert_array_equal(more.v[:, :14], made.v)


def test_outcomes_at_more_points_follow_the_law_given_the_draws() -> None:
    _, made = stack()
    mean, _, _ = made.marginals(AT[:2])
    draws = np.stack([made.plus(AT[:2], np.random.default_rng(i)).v[:, 14:] for i in range(1500)])
    Z = AT[:2] @ made.U.transpose(0, 2, 1)
    near = made.variance[:, None, None] * np.exp(
        -0.5 * np.square(Z[:, :, None] - np.concatenate([made.Z, Z], axis=1)[:, None]).sum(-1)
    )
    V = near[:, :, :14] @ made.Linv.transpose(0, 2, 1)
    covariance = near[:, :, 14:] - V @ V.transpose(0, 2, 1) + JITTER * np.eye(2)
    for p in range(8):
        sd = np.sqrt(covariance[p].diagonal())
        assert np.abs((draws[:, p].mean(0) - mean[p]) / sd).max() < 4.5 / np.sqrt(1500)
        assert np.abs((np.cov(draws[:, p].T) - covariance[p]) / np.outer(sd, sd)).max() < 0.2


def test_the_same_point_twice_is_no_trouble() -> None:
    _, made = stack()
    more = made.plus(np.vstack([AT[:1], AT[:1], Y.numpy()[:1]]), np.random.default_rng(0))
    assert np.isfinite(more.alpha).all()
    np.testing.assert_allclose(more.v[:, 14], more.v[:, 15], atol=0.02)
    np.testing.assert_allclose(more.v[:, 16], more.v[:, 0], atol=0.02)


def test_a_covariance_without_a_factor_gets_more_jitter() -> None:
    root = _root(np.array([[[1.0, 1.0], [1.0, 1.0 - 1e-5]]]), np.array([1e-6]))
    assert np.isfinite(root).all()
    np.testing.assert_allclose(root @ root.transpose(0, 2, 1), 1.0, atol=1e-3)
