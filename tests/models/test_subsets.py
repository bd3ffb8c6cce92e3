"""The search over subsets of coordinates: it finds what matters where climbs over all lengthscales do not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from alebo.models.ard_density import LogDensity
from alebo.models.ard_fit import fit_ard
from alebo.models.outcomes import Standardisation
from alebo.models.priors import sparse
from alebo.models.subsets import MOST, SubsetSearch, from_subsets

D, TRUE = 60, (7, 31, 44)


def wavy(X):
    return np.sin(9.0 * X[:, 7]) + np.cos(6.0 * X[:, 31]) + 2.0 * X[:, 44] * X[:, 31]


def data(n, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, D))
    return X, wavy(X) + noise * rng.standard_normal(n)


def density(n, seed=0, known=None, shrinkage=0.1):
    X, y = data(n, seed)
    return LogDensity(X, Standardisation.of(y)(y), sparse(shrinkage), known)


def active(model):
    return {int(j) for j in np.flatnonzero(model.lengthscales < 5.0)}


def shortest(model):
    return {int(j) for j in np.argsort(model.lengthscales)[: len(TRUE)]}


def test_it_finds_the_parameters_that_matter_where_climbs_do_not():
    found, missed = [], []
    for seed in range(4):
        X, y = data(50, seed)
        found.append(fit_ard(X, y, sparse(subsets=True)))
        missed.append(fit_ard(X, y, sparse()))
    assert sum(shortest(m) == set(TRUE) for m in found) >= 3
    assert sum(shortest(m) == set(TRUE) for m in missed) <= 1
    assert all(a.log_density >= b.log_density - 1e-6 for a, b in zip(found, missed, strict=True))
    assert np.median([a.log_density - b.log_density for a, b in zip(found, missed, strict=True)]) > 5.0


def test_pure_noise_has_no_parameter_that_matters():
    rng = np.random.default_rng(3)
    model = fit_ard(rng.random((40, D)), rng.standard_normal(40), sparse(0.01, subsets=True))
    assert len(active(model)) <= 2


def test_a_subset_is_the_whole_density_with_the_rest_left_out():
    target = density(30)
    search = SubsetSearch(target)
    subset = search.fit(TRUE, np.log([0.3, 0.5, 1.0, 1.0, 1e-2]))
    theta = target.start(np.where(np.isin(np.arange(D), TRUE), 0.0, math.log(1e4)))
    theta[list(TRUE)] = subset.theta[:3]
    theta[D:] = subset.theta[3:]
    assert target(theta)[0] == pytest.approx(subset.value, abs=0.05)  # a lengthscale of 1e4 still costs next to nothing


def test_screening_is_the_likelihood_with_each_candidate():
    target = density(25)
    search = SubsetSearch(target)
    subset = search.fit((7,), np.log([0.3, 1.0, 1e-1]))
    screened = search._screen(subset, [31, 44], 0.3)
    by_hand = []
    for j in (31, 44):
        part = LogDensity(target.X[:, [7, j]], target.v, target.prior)
        theta = np.array([subset.theta[0], math.log(0.3), *subset.theta[1:]])
        by_hand.append(-part(theta)[0])
    assert np.diff(screened) == pytest.approx(np.diff(by_hand), rel=1e-9)


def test_slopes_are_the_derivatives_by_the_inverse_squared_lengthscale():
    target = density(25)
    search = SubsetSearch(target)
    subset = search.fit((7, 44), np.log([0.3, 0.5, 1.0, 1e-1]))
    slopes = search._slopes(subset)
    base = LogDensity(target.X[:, [7, 44]], target.v, target.prior)
    prior = base(subset.theta)[0] - base._penalties(subset.theta, np.zeros(4))
    for j in (0, 31):
        part = LogDensity(target.X[:, [7, 44, j]], target.v, target.prior)
        theta = np.array([*subset.theta[:2], math.log(1e3), *subset.theta[2:]])  # inverse square 1e-6
        value = part(theta)[0] - part._penalties(theta, np.zeros(5))
        assert -(value - prior) / 1e-6 == pytest.approx(slopes[j], rel=1e-3)


def test_a_coordinate_that_does_nothing_is_left_out_and_one_that_matters_stays():
    search = SubsetSearch(density(40))
    more = search.fit((7, 20, 31, 44), np.log([0.3, 1.0, 0.5, 1.0, 1.0, 1e-3]))
    assert search.without_one(more).where == TRUE
    right = search.fit(TRUE, np.log([0.3, 0.5, 1.0, 1.0, 1e-3]))
    assert search.without_one(right) is right


def test_many_candidates_are_narrowed_by_the_gradient(monkeypatch):
    monkeypatch.setattr("alebo.models.subsets.WORK", 0)
    search = SubsetSearch(density(40))
    subset = search.fit((7, 31), np.log([0.3, 0.5, 1.0, 1e-2]))
    among = search._candidates(subset)
    assert len(among) == 2 * MOST
    assert 44 in among
    assert not {7, 31} & set(among)


def test_known_noise_is_used():
    known = np.full(40, 0.3)
    (theta,) = from_subsets(density(40, known=known), [], rounds=4, fresh=True)
    assert len(theta) == D + 1  # no noise to infer


def test_one_coordinate_and_few_observations_have_a_fit():
    rng = np.random.default_rng(0)
    for n, k in ((2, 1), (3, 2), (2, 60)):
        X = rng.random((n, k))
        assert np.isfinite(fit_ard(X, X[:, 0], sparse(subsets=True)).log_density)


def test_many_observations_are_fitted_by_way_of_fewer(monkeypatch):
    X, y = data(60, 1)
    plain = fit_ard(X, y, sparse(subsets=True))
    monkeypatch.setattr("alebo.models.ard_fit.MANY", 45)
    short = fit_ard(X, y, sparse(subsets=True))
    assert shortest(short) == set(TRUE)
    assert len(short.v) == 60  # all of them are in the process itself
    assert short.log_density > plain.log_density - 3.0
    again = fit_ard(X, y, sparse(subsets=True), warm=short.memory)
    assert again.log_density >= short.log_density - 1e-3
