"""EBO: Mondrian partitions, Gibbs moves that find the groups, the expected minimum, the batch, and the laws."""

from __future__ import annotations

import numpy as np
import pytest

import alebo
from alebo.methods import EBO
from alebo.methods.ebo import Proposal, choose_batch, expected_minimum, gibbs, mondrian, read_groups, write_groups
from alebo.models.additive import fit_additive, random_groups

from . import laws

METHOD = EBO(initial=5, min_leaf=4, moves=6)


@pytest.mark.parametrize("seed", range(4))
def test_a_partition_covers_the_cube_once(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (100, 5))
    leaves = mondrian(X, 4, 10, seed)
    assert len(leaves) == 4
    assert sorted(i for _, _, rows in leaves for i in rows) == list(range(100))
    assert min(len(rows) for _, _, rows in leaves) >= 10
    for lower, upper, rows in leaves:
        assert ((X[rows] >= lower) & (X[rows] <= upper)).all()
    assert sum(np.prod(upper - lower) for lower, upper, _ in leaves) == pytest.approx(2.0**5)
    assert len(mondrian(X[:15], 4, 10, seed)) == 1  # too few to cut


def test_partitions_differ_by_seed():
    X = np.random.default_rng(0).uniform(-1, 1, (100, 5))
    first = [mondrian(X, 2, 10, s)[0][1].tolist() for s in range(4)]
    assert len({str(f) for f in first}) > 1


def test_gibbs_moves_find_the_pair():
    """x0 x1 cannot be a sum of functions of one: the moves must bring the two together, and keep a partition."""
    X = np.random.default_rng(1).uniform(-1, 1, (70, 6))
    y = 4.0 * X[:, 0] * X[:, 1] + X[:, 2]
    groups = [[0, 2], [1, 3], [4, 5]]
    for k in range(12):
        groups = gibbs(fit_additive(X, y, groups), y, 3, 6, seed=k)
        assert sorted(j for g in groups for j in g) == list(range(6))
        assert max(map(len, groups)) <= 3
    assert any({0, 1} <= set(g) for g in groups)


def test_the_expected_minimum_is_the_simulated_one():
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(0.5, 1.0, 30), rng.uniform(0.2, 1.0, 30)
    best = -0.5
    simulated = np.minimum(rng.normal(mean, sd, (200_000, 30)).min(axis=1), best).mean()
    assert expected_minimum(mean, sd, best) == pytest.approx(simulated, abs=0.02)
    assert expected_minimum(np.array([9.0]), np.array([0.1]), best) == pytest.approx(best, abs=1e-3)


def test_groups_survive_their_text():
    for D, size in ((12, 3), (1000, 1), (5000, 1)):
        groups = random_groups(D, size, seed=D)
        back = read_groups(write_groups(groups, D), D)
        assert sorted(map(tuple, back)) == sorted(map(tuple, groups))


def test_a_batch_is_good_and_apart():
    near = [Proposal(np.full(4, 0.5 + 1e-4 * k), -2.0 - 1e-3 * k, [[0]]) for k in range(5)]
    far = Proposal(np.full(4, -0.8), -1.9, [[0]])
    poor = Proposal(np.full(4, 0.0), 9.0, [[0]])
    chosen = choose_batch([*near, far, poor], [], 2)
    assert chosen[0].value == min(p.value for p in near)
    assert chosen[1] is far
    assert choose_batch([*near, far], [near[0].x], 1)[0] is far  # a pending point counts as chosen


def test_proposals_respect_their_leaf():
    X = np.random.default_rng(0).uniform(-1, 1, (60, 5))
    y = (X**2).sum(1)
    from alebo.methods.ebo import Leaf

    lower, upper, rows = mondrian(X, 3, 15, seed=1)[0]
    found = METHOD._search(Leaf(lower, upper, rows, 7), X, y, [[0, 1], [2, 3, 4]], 3)
    assert len(found) == 3
    for p in found:
        assert ((p.x >= lower) & (p.x <= upper)).all()


def test_it_finds_a_bowl_without_being_told_the_optimum():
    opt = laws.run(EBO(initial=6), 30)
    assert opt.best().outcomes["loss"].mean < 0.05


def test_the_laws():
    laws.obeys(METHOD, steps=10, model_from=7)
    laws.leaves_failures(METHOD, steps=7)
    laws.takes_told_points(METHOD, steps=6)
    laws.is_plain_data(METHOD)
    laws.keeps_a_batch_apart(METHOD, steps=8)


def test_settings_are_checked():
    with pytest.raises(alebo.InputError, match="leaves"):
        EBO(leaves=0)
