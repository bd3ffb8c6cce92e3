"""Many observations: short starts, kernels that serve again, and what they agree with."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from alebo.models import sample_gp
from alebo.models.mahalanobis import build
from alebo.models.mahalanobis.build import CHEAP, LEAST_MOVES, moves
from alebo.models.mahalanobis.chains import CHAINS, ChainState

pytestmark = pytest.mark.full_chains


def data(n=240, d=4, noise=0.1):
    """A smooth function of two directions, with noise: n + 200 points and values."""
    rng = np.random.default_rng(0)
    Y = torch.from_numpy(rng.uniform(-1, 1, (n + 200, d)))
    values = torch.sin(2 * Y[:, 0] + Y[:, 1]) + Y[:, 2] ** 2
    return Y, values + noise * torch.from_numpy(rng.normal(size=n + 200))


def test_up_to_a_hundred_observations_all_kernels_are_new_and_then_ever_fewer():
    assert [moves(n, 12) for n in (1, CHEAP)] == [12, 12]
    counts = [moves(n, 12) for n in range(CHEAP, 600)]
    assert counts == sorted(counts, reverse=True)
    assert max(a - b for a, b in itertools.pairwise(counts)) == 1  # no step
    assert counts[-1] == LEAST_MOVES
    assert moves(600, 1) == 1


def test_with_many_observations_most_kernels_are_those_of_the_asks_before():
    Y, values = data(n=200)
    first = sample_gp(Y[:200], values[:200], seed=0)
    then = sample_gp(Y[:201], values[:201], seed=1, warm=first.memory)
    again = sample_gp(Y[:202], values[:202], seed=2, warm=[*then.memory, *first.memory])
    new = moves(202, 12)
    distinct = dict.fromkeys(tuple(m) for m in [*then.memory, *first.memory])
    remembered = [ChainState.unpack(m).hyperparameters().U for m in distinct]
    assert len(again.U) == 12
    assert torch.equal(again.U[new:], torch.stack(remembered[: 12 - new]))  # the newest
    drawn = torch.stack([ChainState.unpack(m).hyperparameters().U for m in again.memory[CHAINS - new :]])
    assert torch.equal(again.U[:new], drawn)  # one move of each chain whose turn it is
    moved = [not any(torch.equal(U, known) for known in remembered) for U in drawn]
    stayed = [torch.equal(U, known) for U, known in zip(drawn, remembered[:new], strict=True)]
    assert any(moved)
    assert [a != b for a, b in zip(moved, stayed, strict=True)] == [True] * new  # new, or refused and so its own last
    steered = zip(again.memory[CHAINS - new :], then.memory[:new], strict=True)
    assert all(m[-1] != b[-1] for m, b in steered)  # the steps of every chain that moved


def test_all_kernels_of_a_first_model_are_remembered():
    Y, values = data(n=200)
    first = sample_gp(Y[:200], values[:200], seed=0)
    states = [ChainState.unpack(m).hyperparameters().U for m in first.memory]
    assert len(states) == 12
    assert all(any(torch.equal(U, state) for state in states) for U in first.U)  # so that the next ask draws few again
    assert (
        len(sample_gp(Y[:CHEAP], values[:CHEAP], seed=0).memory) == CHAINS
    )  # where all are drawn again, chains suffice
    assert len(sample_gp(Y[:201], values[:201], seed=1, warm=first.memory).memory) == CHAINS


def test_the_chains_that_did_not_move_are_the_next_to_move():
    Y, values = data(n=240)
    first = sample_gp(Y[:240], values[:240], seed=0)
    many = [list(np.array(m) + 1e-4 * i) for i in range(4) for m in first.memory]
    then = sample_gp(Y[:240], values[:240], seed=1, warm=many)
    assert moves(240, 12) == 2
    assert list(then.memory[:2]) == many[2:4]
    assert [m[-1] != many[i][-1] for i, m in enumerate(then.memory[2:])] == [True, True]  # their steps were steered


def test_kernels_that_the_newest_outcomes_contradict_are_drawn_again():
    Y, values = data(n=240)
    good = list(sample_gp(Y[:240], values[:240], seed=0).memory)
    wide = [replace(ChainState.unpack(m), log_noise=0.0, log_width=-9.0).pack() for m in good]  # all is noise
    model = sample_gp(Y[:240], values[:240], seed=1, warm=[*good, *wide])
    assert len(model.U) == 12
    assert float(model.noises.max()) < 0.1


def test_few_contradicted_kernels_are_left_out_and_none_is_drawn_for_them(monkeypatch):
    Y, values = data(n=240)
    good = list(sample_gp(Y[:240], values[:240], seed=0).memory)
    wide = replace(ChainState.unpack(good[5]), log_noise=0.0, log_width=-9.0).pack()
    whole = sample_gp(Y[:240], values[:240], seed=1, warm=good)
    less = sample_gp(Y[:240], values[:240], seed=1, warm=[*good[:9], wide])
    assert len(whole.U) == 12
    assert len(less.U) == 11
    assert torch.equal(less.U, whole.U[:11])
    assert less.memory == whole.memory
    new = Y[240:].unsqueeze(1)
    for mine, theirs in zip(less.moments(new), whole.among(torch.arange(11)).moments(new), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize(("sound", "count"), [(4, 6), (3, 12)])
def test_where_less_than_half_would_be_left_as_many_are_drawn_again(sound, count):
    """Two kernels are new and ten are kept: of four sound ones six are left, which is half; of three sound ones five."""
    Y, values = data(n=240)
    good = list(sample_gp(Y[:240], values[:240], seed=0).memory)
    wide = [replace(ChainState.unpack(m), log_noise=0.0, log_width=-9.0).pack() for m in good]
    model = sample_gp(Y[:240], values[:240], seed=1, warm=[*good[:sound], *wide])
    assert len(model.U) == count
    unsound = [ChainState.unpack(m).hyperparameters().U for m in wide]
    assert not any(torch.equal(U, other) for U in model.U for other in unsound)


@pytest.mark.parametrize("damage", [[1.0, 2.0], [math.nan] * 24, ["x"] * 24, []])
def test_damaged_kernels_of_older_asks_are_left_out(damage):
    Y, values = data(n=150)
    good = list(sample_gp(Y[:150], values[:150], seed=0).memory)
    whole = sample_gp(Y[:150], values[:150], seed=1, warm=good)
    assert torch.equal(sample_gp(Y[:150], values[:150], seed=1, warm=[*good, damage]).U, whole.U)


def test_kernels_of_a_smaller_embedding_are_not_used():
    Y, values = data(n=150)
    less = sample_gp(Y[:150, :3], values[:150], seed=0).memory
    model = sample_gp(Y[:150], values[:150], seed=1, warm=[*less, *less])
    assert model.U.shape == (12, 4, 4)


@pytest.mark.parametrize("noise", [0.03, 0.3])
def test_a_short_start_agrees_with_long_chains(noise, monkeypatch):
    """At points that no model has seen: means to a tenth of the outcomes' spread, standard deviations to a factor 1.5."""
    Y, values = data(n=160, noise=noise)
    short = sample_gp(Y[:160], values[:160], seed=0)
    monkeypatch.setattr(build, "FEW", 1000)
    long = sample_gp(Y[:160], values[:160], seed=1)
    (mean, variance), (truth, spread) = (m.moments(Y[160:].unsqueeze(1)) for m in (short, long))
    assert float((mean - truth).pow(2).mean().sqrt()) < 0.1 * float(values.std())
    assert abs(0.5 * float((variance / spread).log().mean())) < math.log(1.5)
    assert abs(short.loo_log_density() - long.loo_log_density()) < 0.25 * 160


def test_kept_kernels_predict_as_well_as_new_ones(monkeypatch):
    """Forty observations come one at a time: with two to five new kernels for each, and with twelve."""
    Y, values = data(n=190, d=5)

    def run():
        notes = [sample_gp(Y[:150], values[:150], seed=0).memory]
        for n in range(151, 191, 4):
            model = sample_gp(Y[:n], values[:n], seed=n, warm=[m for note in notes[:6] for m in note])
            notes.insert(0, model.memory)
        return model

    kept = run()
    monkeypatch.setattr(build, "moves", lambda n, samples: samples)
    fresh = run()
    (mean, variance), (truth, spread) = (m.moments(Y[190:].unsqueeze(1)) for m in (kept, fresh))
    errors = [float((m - values[190:]).pow(2).mean().sqrt()) for m in (mean, truth)]
    assert errors[0] < 1.3 * errors[1] + 0.01
    assert abs(0.5 * float((variance / spread).log().mean())) < math.log(1.5)


def test_a_share_is_the_model_built_with_these_kernels_alone():
    Y, values = data(n=40)
    model = sample_gp(Y[:40], values[:40], samples=6, seed=0)
    part = model.share(1, 3)
    alone = build.MahalanobisGP(
        model.Y, model.v, model.noises[1::3], model.U[1::3], model.variance[1::3], model.shift, model.scale
    )
    for one, two in zip(part.marginals(Y[40:])[:2], alone.marginals(Y[40:])[:2], strict=True):
        assert torch.allclose(one, two, rtol=1e-9, atol=1e-12)
    assert part.loo_log_density() == pytest.approx(alone.loo_log_density())
    assert len(model.U) == 6
