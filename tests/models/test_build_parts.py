"""How a sampled model is put together: with chains made by hand, at the edges of its rules; and edges of the model itself."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from alebo.models.mahalanobis import build, model
from alebo.models.mahalanobis.build import _contradicted, _draw_more, _memory, _others, fit_gp, sample_gp
from alebo.models.mahalanobis.chains import ChainState
from alebo.models.mahalanobis.likelihood import Hyperparameters
from alebo.models.mahalanobis.model import MahalanobisGP
from alebo.models.surrogate import Mixture

RNG = np.random.default_rng(0)
Y = torch.from_numpy(RNG.uniform(-1, 1, (110, 2)))
VALUES = torch.sin(2 * Y[:, 0]) + 0.1 * Y[:, 1]


def state(mark: float) -> ChainState:
    """A usual kernel; the mark is the size of its steps."""
    return ChainState(np.eye(2) + 0.01 * mark, np.zeros(2), 0.0, 0.0, -3.0, mark)


class Chains:
    """In place of `sample`: every kernel is another, and who asked is kept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, scores: list[float] | None = None) -> None:
        self.asked: list[tuple[float | None, int, bool]] = []  # where from, how many, short
        self.made = 0.0
        monkeypatch.setattr(build, "sample", self)
        if scores is not None:
            monkeypatch.setattr(build, "_densities", lambda made, runs: scores)

    def __call__(
        self, target: Any, start: ChainState | None, m: int, rng: Any, *, short: bool = False
    ) -> tuple[list[ChainState], ChainState]:
        self.asked.append((None if start is None else start.log_step, m, short))
        out = []
        for _ in range(m):
            self.made += 1.0
            out.append(state(self.made))
        return out, out[-1] if out else start or state(0.0)


def sampled(n: int, **how: Any) -> MahalanobisGP:
    return sample_gp(Y[:n], VALUES[:n], **how)


@pytest.mark.parametrize(("n", "short"), [(30, False), (31, True)])
def test_chains_share_the_kernels_and_start_short_with_more_than_few_data(
    monkeypatch: pytest.MonkeyPatch, n: int, short: bool
) -> None:
    chains = Chains(monkeypatch)
    made = sampled(n, samples=6)
    assert chains.asked == [(None, 2, short), (None, 2, short), (None, 1, short), (None, 1, short)]
    assert len(made.U) == 6
    assert [m[-1] for m in made.memory] == [2.0, 4.0, 5.0, 6.0]
    chains.asked.clear()
    assert len(sampled(n, samples=2).memory) == 2
    assert chains.asked == [(None, 1, short)] * 2


@pytest.mark.parametrize(("n", "kept"), [(100, 4), (101, 6)])
def test_beyond_a_hundred_data_the_memory_has_all_kernels(monkeypatch: pytest.MonkeyPatch, n: int, kept: int) -> None:
    Chains(monkeypatch)
    assert [m[-1] for m in sampled(n, samples=6).memory] == [2.0, 4.0, 5.0, 6.0, 1.0, 3.0][:kept]


def test_one_more_chain_starts_from_nothing_and_the_worst_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    warm = [state(10.0 * k).pack() for k in (1, 2, 3, 4)]
    for worst in range(5):
        scores = [0.0] * 5
        scores[worst] = -20.0  # not so much worse that it would go on from another
        chains = Chains(monkeypatch, scores)
        made = sampled(20, samples=6, warm=warm, afresh=True)
        assert chains.asked == [
            (10.0, 2, False),
            (20.0, 2, False),
            (30.0, 1, False),
            (40.0, 1, False),
            (None, 2, False),
        ]
        ends = [2.0, 4.0, 5.0, 6.0, 8.0]
        assert [m[-1] for m in made.memory] == ends[:worst] + ends[worst + 1 :]
    Chains(monkeypatch, [0.0] * 4)
    assert len(sampled(20, samples=6, afresh=True).memory) == 4  # without a memory all start from nothing anyway


def test_a_chain_goes_on_from_the_best_where_it_is_worse_by_more_than_a_nat_for_each_datum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warm = [state(10.0 * k).pack() for k in (1, 2, 3, 4)]
    for below, lost in ((20.0, False), (20.5, True)):
        chains = Chains(monkeypatch, [-3.0, 2.0, 2.0 - below, -1.0])
        made = sampled(20, samples=7, warm=warm)
        assert chains.asked[4:] == ([(4.0, 2, False)] if lost else [])  # from the end of the second
        assert [m[-1] for m in made.memory] == [2.0, 4.0, 9.0 if lost else 6.0, 7.0]
        assert len(made.U) == 7
    chains = Chains(monkeypatch, [0.0, 1.0, -math.inf, -math.inf])  # two have no kernels at all
    made = sampled(20, samples=2, warm=warm)
    assert chains.asked == [(10.0, 1, False), (20.0, 1, False)]
    assert [m[-1] for m in made.memory] == [30.0, 40.0, 1.0, 2.0]  # whose turn is next comes first
    chains = Chains(monkeypatch, [0.0, 1.0, -math.inf, -math.inf, -5.0])
    assert [m[-1] for m in sampled(20, samples=2, warm=warm, afresh=True).memory] == [30.0, 40.0, 1.0, 2.0]


@pytest.mark.parametrize(("stale", "drawn"), [(0, 0), (3, 0), (4, 4)])
def test_kernels_are_drawn_again_where_less_than_half_would_be_left(
    monkeypatch: pytest.MonkeyPatch, stale: int, drawn: int
) -> None:
    warm = [state(10.0 * k).pack() for k in range(1, 9)]
    monkeypatch.setattr(build, "moves", lambda n, samples: 2)
    monkeypatch.setattr(build, "_contradicted", lambda made, kept: set(range(stale)))
    chains = Chains(monkeypatch, [0.0, 0.0, -math.inf, -math.inf])
    made = sampled(104, samples=6, warm=warm)
    short = [(10.0, 1, True), (20.0, 1, True)]
    assert chains.asked[:2] == short
    assert [(m, s) for _, m, s in chains.asked[2:]] == [(1, False)] * drawn
    assert len(made.U) == 6 - stale + drawn
    old = [ChainState.unpack(packed).hyperparameters().U for packed in warm[stale:4]]
    for k, U in enumerate(old[::-1], 1):
        torch.testing.assert_close(made.U[-k], U)


def test_more_kernels_are_drawn_by_each_chain_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    chains = Chains(monkeypatch)
    runs: list[Any] = [([state(20.0)], state(20.0)), ([], state(30.0))]
    _draw_more(runs, 3, None, None)  # type: ignore[arg-type]
    assert chains.asked == [(20.0, 1, False), (30.0, 1, False), (1.0, 1, False)]
    assert [([k.log_step for k in kernels], end.log_step) for kernels, end in runs] == [
        ([20.0, 1.0, 3.0], 3.0),
        ([2.0], 2.0),
    ]
    ends = _memory(runs, all_kernels=False)
    assert [m[-1] for m in ends] == [3.0, 2.0]
    assert [m[-1] for m in _memory(runs, all_kernels=True)] == [3.0, 2.0, 20.0, 1.0]


def test_kernels_that_foresaw_the_newest_worse_by_ten_nats_are_stale() -> None:
    keep = torch.tensor([True, True, False, True, True])  # the third had no factor
    foresaw = torch.tensor([1.0, 0.0, -9.0, -9.1]).double()
    made: Any = SimpleNamespace(data=SimpleNamespace(keep=keep, foresaw=lambda newest: foresaw[: newest - 6]))
    assert _contradicted(made, 0) == set()
    assert _contradicted(made, 3) == {0, 2}  # of the last three: without a factor, and more than ten below the best
    assert _contradicted(made, 2) == {1}
    assert _others(made, 3, {0, 2}).tolist() == [0, 1, 2]
    assert _others(made, 3, {1}).tolist() == [0, 1, 3]
    assert _others(made, 5, {0}).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("cold", "warm", "count"), [(0, False, 1), (1, False, 1), (3, False, 3), (0, True, 0), (2, True, 2)]
)
def test_a_fit_has_a_start(monkeypatch: pytest.MonkeyPatch, cold: int, warm: bool, count: int) -> None:
    given: list[Any] = []

    def fit(target: Any, start: Any, others: Any, *, iterations: int) -> tuple[Hyperparameters, float]:
        given.append((start, len(others), iterations))
        return Hyperparameters(torch.eye(2).double(), 0.0, -3.0), 0.0

    monkeypatch.setattr(build, "fit", fit)
    memory = [[1.0, 0.5, 2.0, 0.1, -2.0], [9.0, 9.0, 9.0, 9.0, 9.0]] if warm else []
    made = fit_gp(Y[:9], VALUES[:9], samples=1, cold=cold, warm=memory, iterations=17)
    ((start, others, iterations),) = given
    assert (others, iterations) == (count, 17)
    assert (start.pack().tolist() if warm else start) == (memory[0] if warm else None)
    assert made.memory == [[1.0, 0.0, 1.0, 0.0, -3.0]]


# -- the model ---------------------------------------------------------------------------------------------------------------


def process(n: int, variance: float = 1.0) -> MahalanobisGP:
    U = torch.stack([torch.eye(2), 2.0 * torch.eye(2)]).double()
    return MahalanobisGP(
        Y[:n], VALUES[:n], torch.full((2, n), 0.01).double(), U, torch.tensor([1.0, variance]).double()
    )


@pytest.mark.parametrize(("n", "moved", "by_rule"), [(100, 0.0, False), (101, 0.0, True), (101, 0.1, False)])
def test_beyond_a_hundred_data_draws_at_them_are_made_by_matherons_rule(
    monkeypatch: pytest.MonkeyPatch, n: int, moved: float, by_rule: bool
) -> None:
    asked: list[int] = []
    made = process(n)
    monkeypatch.setattr(MahalanobisGP, "_draw_from_prior", lambda self, Y, rng: asked.append(len(Y)))
    drawn = made.draw(torch.cat([Y[:n] + moved, Y[:3] + 0.5]), np.random.default_rng(0))
    assert asked == ([n + 3] if by_rule else [])
    assert drawn.v.shape == (2, n + 3)  # where the rule cannot be used, the other way


@pytest.mark.parametrize("n", [20, 105])
def test_the_jitter_of_draws_is_that_of_large_variances(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    given: list[torch.Tensor] = []
    made = process(n, variance=5000.0)
    kept = model.Conditioned

    def conditioned(Y: Any, v: Any, noise: torch.Tensor, *others: Any, **how: Any) -> Any:
        given.append(noise)
        return kept(Y, v, noise, *others, **how)

    monkeypatch.setattr(model, "Conditioned", conditioned)
    made.draw(made.Y, np.random.default_rng(0))
    (noise,) = given
    assert noise.shape == (2, n)
    assert noise[:, 0].tolist() == pytest.approx([1e-6, 5e-6])


def test_the_evidence_for_noise_compares_two_fits_from_the_newest_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    made = process(12, variance=3.0)
    made.noises = torch.tensor([[0.1] * 12, [0.2] * 6 + [0.4] * 6]).double()
    given: list[Any] = []

    def fit(target: Any, start: Hyperparameters, *, iterations: int) -> tuple[None, float]:
        given.append((target.known, target.prior, start, iterations))
        return None, 7.0 if target.known is None else 2.5

    monkeypatch.setattr(model, "fit", fit)
    assert made.noise_evidence() == 4.5
    (free, prior, start, iterations), (known, other, again, _) = given
    assert free is None
    assert known.tolist() == [0.0] * 12
    assert (prior.ridge, prior.scale, prior.noise, prior == other, iterations) == (0.5, 0.25, 0.0, True, 60)
    torch.testing.assert_close(start.U.mT @ start.U, made.U[-1].mT @ made.U[-1])
    assert (start.log_scale, start.log_noise) == pytest.approx((math.log(3.0), math.log(0.3)))
    assert again is start


def test_the_correlation_of_two_points_is_that_of_the_joint_posterior() -> None:
    made = process(12)
    A, B = Y[20:25], Y[30:35]
    found = made.correlation(A, B)
    for k in range(5):
        cov = made.posterior(torch.stack([A[k], B[k]])).distribution.covariance_matrix
        want = float(cov[0, 1] / (cov[0, 0] * cov[1, 1]).sqrt())
        assert float(found[k]) == pytest.approx(want, abs=1e-6)
    assert made.correlation(A[0], A[0]).item() == pytest.approx(1.0)


def test_a_batch_of_models_says_what_each_says() -> None:
    noises = torch.from_numpy(RNG.uniform(0.01, 0.1, (3, 2, 12)))
    U = torch.stack([torch.eye(2), 2.0 * torch.eye(2)]).double()
    points = torch.stack([Y[12 * k : 12 * k + 12] for k in range(3)])
    values = torch.stack([VALUES[12 * k : 12 * k + 12] for k in range(3)])
    variance = torch.tensor([1.0, 2.0]).double()
    whole = MahalanobisGP(points, values, noises, U, variance, 5.0, 3.0)
    assert (whole.batch_shape, whole.dim, whole.num_outputs) == (torch.Size([3]), 2, 1)
    for q in (1, 2):
        X = Y[60 : 60 + q]
        for noise in (False, True):
            joint = whole.posterior(X.expand(3, q, 2), observation_noise=noise).distribution
            for k in range(3):
                one = MahalanobisGP(points[k], values[k], noises[k], U, variance, 5.0, 3.0)
                alone = one.posterior(X, observation_noise=noise).distribution
                torch.testing.assert_close(joint.mean[k], alone.mean)
                torch.testing.assert_close(joint.covariance_matrix[k], alone.covariance_matrix)
                torch.testing.assert_close(whole.noise[k], one.noise)


def test_a_share_of_the_kernels_has_their_noises() -> None:
    U, v = torch.eye(2).double().expand(5, 2, 2), VALUES[:6]
    noises = torch.arange(1.0, 31.0).double().reshape(5, 6) / 100.0
    each = MahalanobisGP(Y[:6], v, noises, U, torch.ones(5).double())
    common = MahalanobisGP(Y[:6], v, noises[:1], U, torch.ones(5).double())
    for i, rows in ((0, [0, 3]), (1, [1, 4]), (2, [2]), (4, [1, 4])):
        assert torch.equal(each.share(i, 3).noises, noises[rows])
        assert torch.equal(common.share(i, 3).noises, noises[:1])
        for made in (each, common):
            more = made.share(i, 3).conditioned(Y[6:8], v[:2])  # as many noises as kernels
            assert (len(more.U), more.v.shape) == (len(rows), (8,))
    assert torch.equal(each.among(torch.tensor([4, 0])).noises, noises[[4, 0]])


def test_of_a_mixture_no_model_may_differ_in_its_data() -> None:
    def fitted(**other: Any) -> Any:
        return SimpleNamespace(**{"points": Y[:3], "shift": 1.0, "scale": 2.0, **other})

    usual = fitted()
    assert Mixture((usual, fitted(), fitted())).points is usual.points
    for wrong in ({"points": Y[1:4]}, {"shift": 1.5}, {"scale": 2.5}):
        for place in range(3):
            parts = [fitted(), fitted(), fitted()]
            parts[place] = fitted(**wrong)
            with pytest.raises(Exception, match="fitted to the same data"):
                Mixture(tuple(parts))
    with pytest.raises(Exception, match="one model or more"):
        Mixture(())
