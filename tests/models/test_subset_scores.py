"""What the search over subsets compares, against the density itself: screens, pairs, costs, and what it goes on from."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from alebo.models import subsets
from alebo.models.ard_density import LogDensity
from alebo.models.outcomes import Standardisation
from alebo.models.priors import sparse, trust_region
from alebo.models.subsets import ACTIVE, GAIN, LEFT_OUT, MOST, TRIED, Subset, SubsetSearch, from_subsets

D, N = 9, 24
PAIRS = list(itertools.combinations(range(D), 2))


def density(f, n=N, d=D, prior=None, known=None, seed=0):
    X = np.random.default_rng(seed).random((n, d))
    y = f(X)
    return LogDensity(X, Standardisation.of(y)(y), prior or sparse(0.1), known)


def together(X):
    """Neither coordinate explains anything alone."""
    return np.sin(3.0 * math.pi * X[:, 2]) * np.sin(3.0 * math.pi * X[:, 6])


def by_hand(target, where, length, noise):
    """The density of some coordinates with one lengthscale, unit signal variance and this noise, all priors included."""
    part = LogDensity(target.X[:, list(where)], target.v, target.prior, target.known)
    theta = [math.log(length)] * len(where) + [0.0] + ([math.log(noise)] if target.known is None else [])
    return -part(np.array(theta))[0]


@pytest.mark.parametrize("work", [subsets.WORK, 0, 4 * 5 * N * N], ids=["at once", "one by one", "by fives"])
@pytest.mark.parametrize("known", [None, np.full(N, 0.04)], ids=["inferred", "known"])
def test_pairs_are_ranked_by_the_density_at_little_noise(monkeypatch, work, known):
    monkeypatch.setattr(subsets, "WORK", work)
    target = density(together, known=known)
    search = SubsetSearch(target)
    scores = np.array([search._pairs(PAIRS, l) for l in (0.3, 1.0)])
    wanted = np.array([[by_hand(target, pair, l, 2e-2) for pair in PAIRS] for l in (0.3, 1.0)])
    offset = scores - wanted  # one constant for all pairs and both lengthscales
    assert scores.shape == (2, len(PAIRS))
    assert np.ptp(offset) < 1e-8


@pytest.mark.parametrize("work", [subsets.WORK, 0], ids=["at once", "one by one"])
def test_candidates_are_ranked_by_the_density_with_each(monkeypatch, work):
    monkeypatch.setattr(subsets, "WORK", work)
    target = density(together)
    search = SubsetSearch(target)
    base = Subset(0.0, (2,), np.array([math.log(0.4), 0.0, math.log(0.1)]))
    among, scores, wanted = [0, 1, 3, 5, 6], [], []
    for length in (0.3, 1.0):
        scores.append(search._screen(base, among, length))
        for j in among:
            part = LogDensity(target.X[:, [2, j]], target.v, target.prior)
            wanted.append(-part(np.array([math.log(0.4), math.log(length), 0.0, math.log(0.1)]))[0])
    assert np.ptp(np.concatenate(scores) - wanted) < 1e-8
    empty = search.empty()
    assert empty.theta.tolist() == pytest.approx([0.0, math.log(0.3)])
    alone = search._screen(empty, among, 0.3)
    assert np.ptp(alone - [by_hand(target, (j,), 0.3, 0.3) for j in among]) < 1e-8
    flat = search._likelihoods(
        torch.zeros(1, N, N, dtype=torch.float64), empty
    )  # no coordinate: independent noise around a common level
    shared = np.full((N, N), 1.0) + 0.3 * np.eye(N)
    ones = np.linalg.solve(shared, np.ones(N))
    off = target.v - (ones @ target.v) / ones.sum()
    sign, log_det = np.linalg.slogdet(shared)
    assert sign == 1
    assert flat[0] == pytest.approx(-0.5 * off @ np.linalg.solve(shared, off) - 0.5 * log_det)


def test_a_covariance_without_a_factor_is_worth_nothing():
    search = SubsetSearch(density(together))
    broken = torch.full((2, N, N), math.nan, dtype=torch.float64)
    broken[1] = 1e6 * (1.0 - torch.eye(N))
    values = search._likelihoods(broken, search.empty())
    assert values[0] == -math.inf
    assert math.isfinite(values[1])


def test_a_coordinate_costs_what_the_prior_takes_beside_one_left_out():
    search = SubsetSearch(density(together))
    inverse = [length**-2.0 / 0.1 for length in (0.3, LEFT_OUT)]
    assert search._cost(0.3) == pytest.approx(math.log1p(inverse[0] ** 2) - math.log1p(inverse[1] ** 2))
    assert search._cost(LEFT_OUT) == 0.0
    assert SubsetSearch(density(together, prior=trust_region()))._cost(0.3) == 0.0


def test_two_that_explain_only_together_are_found_as_a_pair():
    target = density(together, n=50)
    search = SubsetSearch(target)
    found = search.best_pair()
    assert found.where == (2, 6)
    again = SubsetSearch(target)
    best = min((again.fit(p, np.log([0.3, 0.3, 1.0, 1e-2])) for p in PAIRS), key=lambda s: s.value)
    assert best.where == (2, 6)
    assert found.value == pytest.approx(best.value, abs=0.5)
    assert len(search._fitted) == TRIED + 1
    assert found.theta[-1] < math.log(0.1)


def test_only_the_most_promising_are_paired(monkeypatch):
    monkeypatch.setattr(subsets, "IN_PAIRS", 3)
    search = SubsetSearch(density(lambda X: X[:, 1] + X[:, 4] + X[:, 8], n=30))
    asked = []
    monkeypatch.setattr(search, "_pairs", lambda pairs, l: asked.append((pairs, l)) or [0.0] * len(pairs))
    search.best_pair()
    assert asked == [([(1, 4), (1, 8), (4, 8)], l) for l in (0.3, 1.0)]


def test_what_a_whole_fit_sees_as_active():
    search = SubsetSearch(density(together, d=30))
    theta = np.log(np.full(32, 50.0))
    assert search.active(theta) is None
    theta[[4, 9]] = math.log(ACTIVE) - 1e-6
    theta[11] = math.log(ACTIVE)
    assert search.active(theta).where == (4, 9)
    theta[:20] = np.linspace(-1.0, 1.0, 20)
    assert search.active(theta).where == tuple(range(MOST))  # the shortest of them


def test_a_fit_is_a_maximum_whatever_the_order_and_is_made_once():
    target = density(lambda X: np.sin(6.0 * X[:, 1]) + X[:, 5], n=30)
    search = SubsetSearch(target)
    start = np.array([0.0, math.log(0.3), 0.0, math.log(1e-2)])
    found = search.fit((5, 1), start)
    assert found.where == (1, 5)
    assert found.theta[0] < found.theta[1]  # the sine varies faster than the line
    assert search.fit((1, 5), start + 1.0) is found
    part = LogDensity(target.X[:, [1, 5]], target.v, target.prior)
    value, gradient = part(found.theta)
    assert found.value == pytest.approx(value)
    low, high = np.array(part.bounds).T
    free = (found.theta > low + 1e-9) & (found.theta < high - 1e-9)
    assert np.abs(gradient[free]).max() < 0.2
    whole = search.whole(found)
    assert whole[[1, 5]].tolist() == found.theta[:2].tolist()
    assert whole[D:].tolist() == found.theta[2:].tolist()
    assert np.allclose(np.delete(whole[:D], [1, 5]), math.log(LEFT_OUT))


class Scripted(SubsetSearch):
    """A search whose fits are given: what it takes in and leaves out is seen without any."""

    def __init__(self, values, d=D):
        super().__init__(density(lambda X: X[:, 0], d=d))
        self.values, self.calls = values, []

    def at(self, *where):
        return Subset(self.values[where], where, np.zeros(len(where) + 2))

    def without_one(self, subset):
        self.calls.append(("out", subset.where))
        fewer = [w for w in itertools.combinations(subset.where, len(subset.where) - 1) if w in self.values]
        best = min((self.at(*w) for w in fewer if w), key=lambda s: s.value, default=subset)
        return best if best.value < subset.value else subset

    def with_one_more(self, subset):
        self.calls.append(("in", subset.where))
        more = [w for w in self.values if set(w) > set(subset.where) and len(w) == len(subset.where) + 1]
        return min((self.at(*w) for w in more), key=lambda s: s.value)


def test_of_two_one_may_be_left_out_and_of_one_none():
    search = SubsetSearch(density(lambda X: np.sin(6.0 * X[:, 1]), n=40))
    both = search.fit((1, 5), np.log([0.3, 1.0, 1.0, 1e-2]))
    alone = search.without_one(both)
    assert alone.where == (1,)
    assert alone.value < both.value
    assert search.without_one(alone) is alone
    other = SubsetSearch(density(lambda X: X[:, 0] + X[:, 1], n=40))
    needed = other.fit((0, 1), np.log([1.0, 1.0, 1.0, 1e-2]))
    assert other.without_one(needed) is needed


def test_rounds_go_on_while_they_gain():
    chain = {(0,): 9.0, (0, 1): 5.0, (0, 1, 2): 5.0 - 2 * GAIN, (0, 1, 2, 3): 5.0 - 2.5 * GAIN, (0, 1, 2, 3, 4): 0.0}
    assert Scripted(chain).improved(Scripted(chain).at(0), 1).where == (0, 1)
    assert Scripted(chain).improved(Scripted(chain).at(0), 2).where == (0, 1, 2)
    search = Scripted(chain)
    assert search.improved(search.at(0), 9).where == (0, 1, 2)  # half of GAIN is none, and ends it
    assert [verb for verb, _ in search.calls].count("in") == 3


def test_all_that_does_not_help_is_left_out_before_one_is_taken_in():
    values = {(0, 1, 2, 3): 9.0, (0, 1, 2): 8.99, (0, 1): 8.98, (0,): 20.0, (0, 1, 7): 2.0, (0, 1, 7, 8): 2.0}
    search = Scripted(values)
    assert search.improved(search.at(0, 1, 2, 3), 1).where == (0, 1, 7)
    assert search.calls[:3] == [("out", (0, 1, 2, 3)), ("out", (0, 1, 2)), ("out", (0, 1))]
    least = Scripted({(0,): 1.0, (0, 1): 0.0}, d=1)  # nothing to take in
    assert least.improved(least.at(0), 3).where == (0,)
    full = tuple(range(MOST))
    most = Scripted({full: 1.0, tuple(range(MOST + 1)): 0.0}, d=MOST + 3)
    assert most.improved(most.at(*full), 3).where == full


@pytest.mark.parametrize(("n", "length"), [(40, 1.0), (90, 0.3)])
def test_one_more_is_fitted_from_where_the_subset_is_with_less_noise(monkeypatch, n, length):
    search = SubsetSearch(density(lambda X: 0.3 * X[:, 3] + np.sin(7.0 * X[:, 4]), n=n))
    subset = search.fit((3,), np.log([1.0, 1.0, 0.1]))
    starts = {}
    fit = search.fit
    monkeypatch.setattr(search, "fit", lambda where, theta: (starts.setdefault(where, theta), fit(where, theta))[1])
    more = search.with_one_more(subset)
    assert more.where == (3, 4)
    assert len(starts) == TRIED
    start = starts[(3, 4)]
    assert start[0] == subset.theta[0]
    assert start[1] == pytest.approx(math.log(length))
    assert search._screen(subset, [4], length) > search._screen(subset, [4], 1.3 - length)  # the other of LENGTHS
    assert start[2] == subset.theta[1]
    assert start[3] == subset.theta[2] - 1.0


def test_without_fresh_starts_only_what_climbs_saw_is_improved():
    target = density(lambda X: np.sin(6.0 * X[:, 1]) + X[:, 5], n=30)
    assert from_subsets(target, [np.log(np.full(D + 2, 50.0))], rounds=2, fresh=False) == []
    seen = np.log(np.full(D + 2, 50.0))
    seen[[1, 5, 7]], seen[D:] = 0.0, (0.0, math.log(1e-2))
    (whole,) = from_subsets(target, [seen], rounds=3, fresh=False)
    assert set(np.flatnonzero(whole[:D] < math.log(LEFT_OUT))) == {1, 5}
    (fresh,) = from_subsets(target, [], rounds=3, fresh=True)
    assert set(np.flatnonzero(fresh[:D] < math.log(LEFT_OUT))) == {1, 5}
