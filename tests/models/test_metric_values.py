"""The paper's model by its definition: priors against SciPy's densities, edges of what is possible, thinning, factors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from alebo._errors import AleboError
from alebo.models.mahalanobis.chains import ROWS, WIDTH, ChainState, Target
from alebo.models.mahalanobis.conditioned import factor
from alebo.models.mahalanobis.likelihood import PAPER, Hyperparameters, LogPosterior, MetricPrior, cold_start, fit
from alebo.models.outcomes import Compression, Standardisation, thinned, typical_spread, without_worst

PRIOR = MetricPrior()
EYE = torch.eye(3, dtype=torch.double)


def posterior(n=12, d=2, prior=PRIOR, known=None, seed=0):
    rng = np.random.default_rng(seed)
    Y = torch.from_numpy(rng.uniform(-1, 1, (n, d)))
    v = torch.sin(2.0 * Y[:, 0]) + 0.3 * Y[:, -1]
    return LogPosterior(Y, (v - v.mean()) / v.std(), known, prior)


def place(d=2, *, t=WIDTH[0], z=None, log_scale=0.3, log_noise=-4.0, seed=1):
    E = np.random.default_rng(seed).standard_normal((d, d))
    return ChainState(E, np.zeros(d) if z is None else np.asarray(z, dtype=float), t, log_scale, log_noise).place


# -- the density that chains sample ----------------------------------------------------------------------------------------


def log_prior(x, d=2):
    """Of standard normal E and z, normal t, normal log s^2 and Student's t of the log noise."""
    E, z, (t, log_scale, log_noise) = x[: d * d], x[d * d : -3], x[-3:]
    return float(
        stats.norm.logpdf(E).sum()
        + stats.norm.logpdf(z).sum()
        + stats.norm.logpdf(t, *WIDTH)
        + stats.norm.logpdf(log_scale, 0.0, PRIOR.scale**-0.5)
        + stats.t.logpdf(log_noise, 3, PRIOR.noise_at, PRIOR.noise**-0.5)
    )


def test_a_chains_density_is_the_likelihood_times_the_prior():
    target = Target(posterior())
    offsets = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = place(t=rng.normal(), z=rng.normal(size=2), log_scale=rng.normal(), log_noise=rng.uniform(-9, 1), seed=seed)
        E, z, (t, log_scale, log_noise) = x[:4].reshape(2, 2), x[4:6], x[-3:].tolist()
        W = np.exp(t + math.sqrt(0.5) * z)[:, None] * E
        found = target.posterior.likelihood(W, log_scale, log_noise)
        offsets.append(target(x)[0] - found[0] - log_prior(x))
        h = ChainState.unpack(np.append(x, 0.0)).hyperparameters()
        assert torch.allclose(h.U.mT @ h.U, torch.from_numpy(W.T @ W))  # the same metric, by a triangular factor
    assert np.ptp(offsets) < 1e-9


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ({"log_scale": -7.99}, {"log_scale": -8.0}),
        ({"log_scale": 8.99}, {"log_scale": 9.0}),
        ({"log_noise": math.log(1e-6)}, {"log_noise": math.log(1e-6) - 1e-9}),
        ({"log_noise": 2.99}, {"log_noise": 3.0}),
        ({"t": -11.99}, {"t": -12.0}),
        ({"t": 3.99}, {"t": 4.0}),
        ({"t": 3.0, "z": [0.0, 0.99 / ROWS]}, {"t": 3.0, "z": [0.0, 1.0001 / ROWS]}),
        ({"t": -11.0, "z": [-0.99 / ROWS, 0.0]}, {"t": -11.0, "z": [-1.0001 / ROWS, 0.0]}),
    ],
)
def test_the_edges_of_what_a_chain_may_be(inside, outside):
    target = Target(posterior())
    assert math.isfinite(target(place(**inside))[0])
    value, gradient = target(place(**outside))
    assert value == -math.inf
    assert not gradient.any()


def test_a_chain_begins_at_the_middle_of_the_prior():
    first = [ChainState.first(3, np.random.default_rng(s)) for s in range(60)]
    assert {(s.log_width, s.log_scale, s.log_noise, s.log_step) for s in first} == {
        (-1.5, 0.0, math.log(0.1), math.log(0.05))
    }
    assert all(not s.z.any() for s in first)
    entries = np.stack([s.E for s in first])
    assert np.abs(entries.mean()) < 0.12  # 540 draws: four standard errors
    assert entries.std() == pytest.approx(0.7, abs=0.09)
    grown = [s.padded(5, np.random.default_rng(k)) for k, s in enumerate(first)]
    assert np.stack([g.E[3:] for g in grown]).std() == pytest.approx(1.0, abs=0.12)
    assert all(len(g.z) == 5 and not g.z.any() for g in grown)
    with pytest.raises(AleboError, match="at most 2 dimensions, and one has 3"):
        first[0].padded(2, np.random.default_rng(0))


@pytest.mark.parametrize("count", [0, 5, 7, 9, 11, 15])
def test_a_packed_chain_has_as_many_numbers_as_its_dimension_says(count):
    with pytest.raises(AleboError, match=rf"d\^2 \+ d \+ 4 numbers, and one has {count}"):
        ChainState.unpack([0.1] * count)
    for d in (1, 2, 3):
        assert len(ChainState.unpack([0.1] * (d * d + d + 4)).E) == d


# -- the density that a fit climbs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [None, torch.full((12,), 0.02, dtype=torch.double)], ids=["inferred", "known"])
def test_the_prior_of_a_fit_is_normal(known):
    mine, flat = posterior(known=known), posterior(known=known, prior=PAPER)
    offsets = []
    for seed in range(4):
        h = cold_start(2, np.random.default_rng(seed))
        h = Hyperparameters(h.U, 0.4 * seed - 0.5, -3.0 - seed)
        row, column = torch.triu_indices(2, 2)
        expected = stats.norm.logpdf(h.U[row, column], 0.0, PRIOR.ridge**-0.5).sum()
        expected += stats.norm.logpdf(h.log_scale, 0.0, PRIOR.scale**-0.5)
        if known is None:
            expected += stats.norm.logpdf(h.log_noise, PRIOR.noise_at, PRIOR.noise**-0.5)
        offsets.append(mine(h.pack())[0] - flat(h.pack())[0] - expected)
    assert np.ptp(offsets) < 1e-9


def test_the_likelihood_is_that_of_a_normal_around_the_best_constant():
    for known in (None, torch.linspace(0.01, 0.2, 12, dtype=torch.double)):
        target = posterior(known=known)
        U = np.array([[0.8, -0.3], [0.0, 0.5]])
        value, *_ = target.likelihood(U, 0.2, -2.0)
        Z = target.Y.numpy() @ U.T
        K = math.exp(0.2) * np.exp(-0.5 * ((Z[:, None] - Z[None]) ** 2).sum(-1))
        noise = np.full(12, math.exp(-2.0)) if known is None else known.numpy() + 1e-6
        K += np.diag(noise)
        np.testing.assert_allclose(target.noise(-2.0).numpy(), noise)
        ones = np.linalg.solve(K, np.ones(12))
        mean = np.full(12, ones @ target.v.numpy() / ones.sum())
        assert value == pytest.approx(stats.multivariate_normal.logpdf(target.v.numpy(), mean, K), abs=1e-9)
    assert posterior().likelihood(U, 300.1, 0.0) is None


def test_fewer_observations_are_spread_evenly_over_their_order():
    known = torch.arange(20, dtype=torch.double)
    whole = posterior(20, known=known)
    assert whole.thinned(20) is whole
    for most, kept in ((5, [0, 5, 10, 14, 19]), (2, [0, 19]), (19, None)):
        part = whole.thinned(most)
        assert part.n == most
        at = part.known.long().tolist()
        assert (at[0], at[-1], sorted(set(at))) == (0, 19, at)
        assert kept is None or at == kept
        assert torch.equal(part.Y, whole.Y[at])
        assert torch.equal(part.v, whole.v[at])
    assert posterior(20).thinned(5).known is None


def test_a_grown_metric_has_small_new_entries():
    h = cold_start(2, np.random.default_rng(0))
    new = torch.stack([h.padded(4, np.random.default_rng(s)).U for s in range(200)])
    assert torch.equal(new[:, :2, :2], h.U.expand(200, 2, 2))
    entries = torch.cat([new[:, :2, 2:].reshape(-1), new[:, 2, 2:].reshape(-1), new[:, 3, 3]])
    assert float(entries.std()) == pytest.approx(0.1, abs=0.01)
    assert h.padded(2, np.random.default_rng(0)) is h
    with pytest.raises(AleboError, match="at most 1 dimensions"):
        h.padded(1, np.random.default_rng(0))
    for count in (0, 2, 4, 6, 9):
        with pytest.raises(AleboError, match=f"and it has {count}"):
            Hyperparameters.remembered([0.1] * count)
    assert [len(Hyperparameters.remembered([0.1] * k).U) for k in (3, 5, 8)] == [1, 2, 3]


def test_a_random_start_has_a_few_directions_and_a_little_of_all():
    starts = [cold_start(6, np.random.default_rng(s)) for s in range(120)]
    assert {(h.log_scale, h.log_noise) for h in starts} == {(0.0, math.log(1e-3))}
    values = np.array([np.linalg.svd(h.U.numpy(), compute_uv=False) for h in starts])
    ranks = (values > 0.25).sum(1)
    assert ranks.min() <= 1
    assert ranks.max() >= 5  # one to all of them
    assert 0.0 < values.min() < 0.1
    lengths = np.sqrt((values**2).sum(1))
    assert 0.2 < lengths.min() < 0.8
    assert 3.0 < lengths.max() < 6.0


def test_a_fit_stays_in_its_box_and_is_a_maximum():
    target = posterior(30)
    mode, value = fit(target, None, [cold_start(2, np.random.default_rng(s)) for s in range(2)])
    theta = mode.pack()
    at, gradient = target(theta)
    assert at == pytest.approx(value)
    low = abs(mode.log_noise - math.log(1e-6)) < 1e-9
    assert np.abs(gradient[:-1] if low else gradient).max() < 0.1
    loud = LogPosterior(target.Y, 1e4 * target.v, None, PAPER)
    assert -7.0 <= fit(loud, mode, iterations=40)[0].log_scale <= 9.0
    quiet = LogPosterior(target.Y, 1e-4 * target.v, None, PAPER)
    h = fit(quiet, mode, iterations=40)[0]
    assert h.log_scale >= -7.0
    assert h.log_noise == pytest.approx(math.log(1e-6))


# -- factors ----------------------------------------------------------------------------------------------------------------


def test_a_factor_takes_as_little_jitter_as_it_needs():
    good = EYE + 0.5
    L, kept = factor(good[None], torch.full((1, 3), 0.1, dtype=torch.double))
    assert kept.tolist() == [True]
    assert torch.allclose(L[0] @ L[0].mT, good + 0.1 * EYE, atol=1e-14, rtol=0.0)
    flat = torch.ones(2, 3, 3, dtype=torch.double)
    flat[1] = good
    L, kept = factor(flat - 5e-9 * EYE, torch.zeros(2, 3, dtype=torch.double))
    assert kept.tolist() == [True, True]
    assert float((L[0] @ L[0].mT - flat[0]).abs().max()) < 2e-8
    broken = torch.stack([good, good - 3.0 * EYE])
    _, kept = factor(broken, torch.zeros(2, 3, dtype=torch.double))
    assert kept.tolist() == [True, False]  # left out
    first = torch.stack([flat[0] - 2e-5 * EYE, good])
    L, kept = factor(first, torch.zeros(2, 3, dtype=torch.double))
    assert kept.tolist() == [True, True]  # the first, the mode, must have one
    assert float((L[0] @ L[0].mT - first[0]).abs().max()) < 2e-4


# -- outcomes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "most", "kept"),
    [
        (5, 5, [0, 1, 2, 3, 4]),
        (10, 4, [0, 1, 2, 9]),
        (11, 5, [0, 1, 2, 6, 10]),
        (9, 3, [0, 1, 8]),
        (100, 6, [0, 1, 2, 3, 51, 99]),
    ],
)
def test_the_best_half_is_kept_and_the_rest_at_even_ranks(n, most, kept):
    order = np.arange(n)[::-1]
    assert (n - 1 - thinned(order, most)).tolist() == kept


def test_how_a_bad_value_is_raised():
    values = np.array([4.0, 1.0, 0.0, -1.0, -50.0])  # median 0, best 4: the level is -12
    assert without_worst(values).tolist() == [4.0, 1.0, 0.0, -1.0, -12.0]
    shifted = without_worst(values + 7.0)
    assert shifted == pytest.approx([11.0, 8.0, 7.0, 6.0, -5.0])
    assert without_worst(np.array([4.0, 0.0, -11.9])).tolist() == [4.0, 0.0, -11.9]


def test_the_compression_of_an_outlier_in_numbers():
    squeeze = Compression(2.0, 10.0)
    off = 10.0 * math.e  # its logarithm beyond the reach is one
    assert squeeze(np.array([2.0 + off, 2.0 - off, 12.0])) == pytest.approx([2.0 + 15.0, 2.0 - 15.0, 12.0])
    assert squeeze.changes(np.array([12.0, 12.1, -8.0, -8.1])).tolist() == [False, True, False, True]
    ordinary = np.linspace(-1.0, 1.0, 21)
    found = Compression.of(np.append(ordinary, 1e9))
    assert found.centre == pytest.approx(0.05, abs=1e-9)  # the median of all 22
    assert found.reach == pytest.approx(1.01 * 1.05, rel=1e-6)  # a little beyond the farthest ordinary one
    assert math.isinf(Compression.of(np.append(ordinary, 900.0)).reach)  # less than a thousand quartile ranges
    assert not math.isinf(Compression.of(np.append(ordinary, 1.2e3)).reach)
    constant = Compression.of(np.array([3.0, 3.0, 3.0, 3.0, 3.0, 4.0, 1e9]))
    assert constant(np.array([3.0, 4.0])) == pytest.approx([3.0, 4.0])
    assert typical_spread(ordinary) == pytest.approx(ordinary.std())
    assert typical_spread(np.full(4, -6.0)) == 6.0


def test_standardisation_in_numbers():
    units = Standardisation.of(np.array([1.0, 3.0, 5.0, 7.0]))
    assert (units.shift, units.scale) == pytest.approx((4.0, math.sqrt(5.0)))
    assert units.variances(np.array([5.0, 10.0])) == pytest.approx([1.0, 2.0])
    assert units.variances(np.array([1e20])) == pytest.approx([1e12])  # says nothing
    assert Standardisation(0.0, 1e-160).variances(np.array([4e-320])) == pytest.approx([4.0], rel=1e-3)
    assert Standardisation.of(np.array([5.0])) == Standardisation(5.0, 5.0)
    assert Standardisation.of(np.array([0.25, 0.25])) == Standardisation(0.25, 1.0)
    assert Standardisation.of(np.array([2.0, 2.0 + 1e-13])).scale == pytest.approx(2.0)  # rounding is no spread
