"""Acquisition functions of models made by hand, against BoTorch's and SciPy's values for the same numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from botorch.acquisition.multi_objective.analytic import ExpectedHypervolumeImprovement
from botorch.utils.multi_objective.box_decompositions import FastNondominatedPartitioning
from botorch.utils.testing import MockModel, MockPosterior
from scipy.stats import norm
from torch import Tensor

from alebo.acquisition import LogEI, NoisyLogEHVI, NoisyLogEI, functions, hypervolume, wrappers
from alebo.acquisition.functions import HOPELESS, WORTHLESS, log_ei, value_and_gradient
from alebo.models.surrogate import Marginals

MEANS = torch.tensor([[0.2, 1.4], [0.8, -0.6], [-0.3, 0.1]]).double()  # of three draws at two points
SPREAD = torch.tensor([[0.5, 0.3], [0.4, 0.9], [1.1, 0.7]]).double()


@dataclass
class Hand:
    """A model whose draws and predictions are these, whatever it is asked."""

    drawn: Tensor  # m x n
    mean: Tensor  # m x k
    sd: Tensor
    shift: float = 0.0
    scale: float = 1.0
    asked: Any = None

    @property
    def v(self) -> Tensor:
        return self.drawn

    @property
    def points(self) -> Tensor:
        return torch.zeros(self.drawn.shape[-1], 2).double()

    def draw(self, points: Tensor, rng: np.random.Generator) -> Hand:
        self.asked = points
        return self

    def marginals(self, W: Tensor) -> Marginals:
        return Marginals(self.mean, self.sd.square(), lambda by_mean, by_variance: torch.zeros_like(W))


def at(count: int = 2) -> Tensor:
    return torch.zeros(count, 1, 2).double()


def ei(mean: float, sd: float, best: float) -> float:
    z = (mean - best) / sd
    return float(sd * (norm.pdf(z) + z * norm.cdf(z)))


def test_expected_improvement_by_scipy_at_every_distance() -> None:
    for z in (-40.0, -30.001, -29.999, -12.0, -1.001, -1.0, -0.999, -0.2, 0.0, 0.7, 9.0):
        if z < -9.0:  # phi(z) (1 - 3 / z^2 + 15 / z^4) / z^2
            want = norm.logpdf(z) - 2.0 * math.log(-z) + math.log1p(-3.0 / z**2 + 15.0 / z**4 - 105.0 / z**6)
        else:
            want = norm.logpdf(z) + math.log1p(z * math.exp(norm.logcdf(z) - norm.logpdf(z)))
        assert float(log_ei(torch.tensor(z).double())) == pytest.approx(want, rel=1e-6, abs=1e-9)


def test_log_ei_of_several_explanations_with_constraints_and_doubt() -> None:
    objective = Hand(torch.tensor([0.1, 0.5, 0.3]).double(), MEANS, SPREAD)
    limit = Hand(torch.zeros(3).double(), 0.5 * MEANS, SPREAD + 0.1, shift=0.6, scale=2.0)
    for best, doubt in ((math.nan, 1.0), (0.9, 0.4)):
        found = LogEI(objective, [limit], best=best, doubt=doubt)(at())  # type: ignore[arg-type, list-item]
        top = 0.5 if math.isnan(best) else best
        for k in range(2):
            parts = [
                ei(float(MEANS[i, k]), doubt * float(SPREAD[i, k]), top)
                * norm.cdf(-(0.3 + 0.5 * float(MEANS[i, k])) / (float(SPREAD[i, k]) + 0.1))
                for i in range(3)
            ]
            assert float(found[k]) == pytest.approx(math.log(sum(parts) / 3.0), rel=1e-9)
    chance = LogEI(objective, [limit], best=None)(at())  # type: ignore[arg-type, list-item]
    want = np.mean([norm.cdf(-(0.3 + 0.5 * float(MEANS[i, 0])) / (float(SPREAD[i, 0]) + 0.1)) for i in range(3)])
    assert float(chance[0]) == pytest.approx(math.log(want))


@pytest.mark.parametrize("feasible", ["all", "some", "none"])
def test_noisy_log_ei_is_the_mean_over_draws(feasible: str) -> None:
    objective = Hand(torch.tensor([[0.0, 0.9], [0.4, -0.2], [1.0, 2.0]]).double(), MEANS, SPREAD)
    g = {"all": [[-1, -1], [0, -1], [-1, 0]], "some": [[-1, 1], [1, 1], [-1, -1]], "none": [[1, 1]] * 3}[feasible]
    limit = Hand(torch.tensor(g).double(), 0.5 * MEANS, SPREAD)
    made = NoisyLogEI(objective, [limit])  # type: ignore[arg-type, list-item]
    best = [
        max((float(v) for v, c in zip(objective.drawn[i], g[i], strict=True) if c <= 0), default=None) for i in range(3)
    ]
    for k in range(2):
        parts = []
        for i in range(3):
            mean, sd = float(MEANS[i, k]), float(SPREAD[i, k])
            gain = 1.0 if best[i] is None else ei(mean, sd, best[i])  # type: ignore[arg-type]
            gain *= math.exp(-HOPELESS) if best[i] is None and feasible == "some" else 1.0
            parts.append(gain * norm.cdf(-0.5 * mean / sd))
        want = math.log(np.mean(parts))
        assert float(made(at())[k]) == pytest.approx(want, rel=1e-9)
        assert float(made.with_gradient(torch.zeros(2, 2).double())[0][k]) == pytest.approx(want, rel=1e-9)


def test_hypervolume_improvement_is_botorchs() -> None:
    fronts = torch.tensor([[[0.2, 1.0], [0.9, 0.1], [0.1, 0.1]], [[1.5, -0.5], [-0.4, 0.6], [0.0, 0.0]]]).double()
    means = torch.tensor([[[0.3, 0.4], [1.2, 0.9]], [[0.1, -0.2], [0.5, 0.7]]]).double()  # draws x points x objectives
    sds = torch.tensor([[[0.5, 0.3], [0.4, 0.9]], [[1.1, 0.7], [0.2, 0.6]]]).double()
    objectives = [Hand(fronts[:, :, j], means[:, :, j], sds[:, :, j], shift=1.0, scale=2.0) for j in (0, 1)]
    reference = torch.tensor([-1.0, -0.8]).double()
    limit = Hand(torch.tensor([[-1.0, -1, -1], [-1, 1, -1]]).double(), means[:, :, 0], sds[:, :, 1])
    for constraints in ([], [limit]):
        made = NoisyLogEHVI(objectives, constraints, reference=1.0 + 2.0 * reference.numpy())  # type: ignore[arg-type]
        for k in range(2):
            parts = []
            for i in range(2):
                front = fronts[i] if not constraints else fronts[i][limit.drawn[i] <= 0]
                mock = MockModel(MockPosterior(mean=means[i, k][None], variance=sds[i, k].square()[None]))
                boxes = FastNondominatedPartitioning(reference, Y=front)
                gain = float(ExpectedHypervolumeImprovement(mock, reference.tolist(), boxes)(at(1)))
                chance = norm.cdf(-float(means[i, k, 0]) / float(sds[i, k, 1])) if constraints else 1.0
                parts.append(gain * chance)
            assert float(made(at())[k]) == pytest.approx(math.log(np.mean(parts)), rel=1e-6)


def test_a_reference_that_is_not_given_is_botorchs_of_the_measured_front() -> None:
    from botorch.utils.multi_objective.hypervolume import infer_reference_point

    v = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.2, 0.2], [0.6, 0.7]]).double()
    objectives = [Hand(v[:, j], MEANS, SPREAD, shift=5.0, scale=2.0) for j in (0, 1)]
    front = v[[0, 1, 3]]
    found = hypervolume.reference_point(objectives, None)  # type: ignore[arg-type]
    torch.testing.assert_close(found, infer_reference_point(front, scale=0.1))
    given = hypervolume.reference_point(objectives, np.array([7.0, 3.0]))  # type: ignore[arg-type]
    assert given.tolist() == [1.0, -1.0]


def test_what_counts_with_a_fidelity_is_the_image_at_the_target() -> None:
    measured = torch.tensor([[1.0, 0.25], [-1.0, 0.75]]).double()
    pending = torch.tensor([[0.0, 0.5]]).double()
    points, counted = functions.incumbents(measured, pending, wrappers.at_target)
    assert points.tolist() == [[1.0, 0.25], [-1.0, 0.75], [0.0, 0.5], [1.0, 0.75], [1.0, 0.5]]
    assert counted.tolist() == [True, False, False, True, True]
    points, counted = functions.incumbents(measured, None, None)
    assert (points.tolist(), counted.tolist()) == (measured.tolist(), [True, True])


def test_where_nothing_beats_the_reference_all_beyond_it_is_one_box() -> None:
    corner = torch.tensor([0.5, 0.5]).double()
    cells = hypervolume.partition(torch.tensor([[0.4, 9.0], [0.5, 0.6]]).double(), corner)
    assert cells.tolist() == [[[0.5, 0.5]], [[math.inf, math.inf]]]
    cells = hypervolume.partition(torch.tensor([[1.0, 2.0]]).double(), corner)
    assert cells.shape[1] == 2


def test_a_value_that_is_not_finite_is_worthless_and_flat() -> None:
    def broken(X: Tensor) -> Tensor:
        return torch.where(X[..., 0, 0] > 0, X[..., 0, 1] ** 2, torch.log(-1.0 - 0.0 * X[..., 0, 0]))

    value, gradient = value_and_gradient(broken, torch.tensor([[1.0, 3.0], [-1.0, 3.0]]).double())
    assert value.tolist() == [9.0, WORTHLESS]
    assert gradient[1].tolist() == [0.0, 0.0]
    assert gradient[0].tolist() == [0.0, 6.0]


def test_what_costs_more_counts_less_and_a_careless_look_by_what_it_tells() -> None:
    cost = Hand(torch.zeros(3).double(), MEANS[:1], SPREAD[:1], shift=0.25, scale=2.0)
    plain = LogEI(Hand(torch.tensor([0.1, 0.5]).double(), MEANS, SPREAD))  # type: ignore[arg-type]
    by_cost = wrappers.PerCost(plain, cost)  # type: ignore[arg-type]
    torch.testing.assert_close(by_cost(at()), plain(at()) - (0.25 + 2.0 * MEANS[0]))

    class Looks:
        def correlation(self, A: Tensor, B: Tensor) -> Tensor:
            assert (A[..., 0] <= 1.0).all()
            assert (B[..., 0] == 1.0).all()
            return torch.tensor([0.5, 0.0]).double().reshape(A.shape[:-1])

    X = torch.tensor([[[0.2, 0.3]], [[-1.0, 0.3]]]).double()
    look = wrappers.PerLook(plain, [Looks()], lambda P: P[..., 0, 0] + 3.0)  # type: ignore[list-item]
    found, base = look(X), plain(X)
    assert float(found[0]) == pytest.approx(float(base[0]) + math.log(0.5) - 3.2)
    assert float(found[1]) == pytest.approx(float(base[1]) + math.log(wrappers.LEAST_CORRELATION) - 2.0)
