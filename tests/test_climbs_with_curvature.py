"""Climbs that begin with a guess of the curvature: the same ends as those that begin with none, in fewer steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from alebo.acquisition import _faces, candidates, evaluate
from alebo.acquisition._climb import ascend
from alebo.geometry import Polytope, hypersphere

from .test_maximize import BOX, SHIFTED, Bowl


@pytest.mark.parametrize(
    ("domain", "top", "best"),
    [
        (BOX, [0.3, -0.2], [0.3, -0.2]),
        (BOX, [3.0, 0.5], [1.0, 0.5]),
        (SHIFTED, [0.0, 5.5], [4.0, 5.5]),
    ],
)
def test_a_known_curvature_leads_to_the_top_or_the_wall(domain: Polytope, top: list[float], best: list[float]) -> None:
    points, values = candidates(Bowl(top), domain, 0, bend=2.0 * torch.eye(2, dtype=torch.double))
    np.testing.assert_allclose(points[0], best, atol=2e-3)
    assert domain.contains(points).all()
    np.testing.assert_allclose(values, evaluate(Bowl(top), points))
    assert values[0] == values.max()


def test_a_good_guess_saves_steps() -> None:
    start = torch.tensor([[0.9, 0.9], [-0.9, 0.5]]).double()
    bend = torch.diag(torch.tensor([2.0, 200.0]).double())
    known, unknown = Bowl([0.3, -0.2], (1.0, 100.0)), Bowl([0.3, -0.2], (1.0, 100.0))
    ends = ascend(known, BOX, start, barriers=(1e-4,), bends=bend.expand(2, 2, 2).clone())
    ascend(unknown, BOX, start, barriers=(1e-4,))
    np.testing.assert_allclose(ends.points, [[0.3, -0.2]] * 2, atol=1e-3)
    assert known.calls < unknown.calls


def test_a_small_promise_is_not_worth_a_step() -> None:
    acquisition = Bowl([0.0, 0.0])
    bends = 2.0 * torch.eye(2, dtype=torch.double).expand(1, 2, 2)
    ascend(acquisition, BOX, torch.tensor([[0.01, 0.0]]).double(), bends=bends.clone(), flat=1.0)
    assert acquisition.calls == 1


def test_the_rough_likeness_is_climbed_and_the_acquisition_decides() -> None:
    whole, rough = Bowl([0.5, 0.5]), Bowl([0.3, 0.6])
    points, _ = candidates(whole, BOX, 0, rough=rough, bend=2.0 * torch.eye(2, dtype=torch.double))
    np.testing.assert_allclose(points[0], [0.5, 0.5], atol=2e-3)
    np.testing.assert_allclose(points[1:], [[0.3, 0.6]] * (len(points) - 1), atol=2e-2)
    assert rough.most > whole.most  # of the acquisition only the ends are asked at once


def test_pairs_of_faces_give_the_same_barrier() -> None:
    domain = hypersphere(30, 6, 0).domain
    assert domain.pairs == 30
    extra = domain.intersect(np.ones((1, 6)), np.array([0.5]))  # a face that is no pair
    for polytope in (domain, extra):
        W = 0.5 * torch.from_numpy(polytope.sample(4, 1))
        paired, plain = _faces.barrier(polytope, W, paired=True), _faces.barrier(polytope, W)
        assert isinstance(paired, _faces.PairedFaces)
        assert not isinstance(plain, _faces.PairedFaces)
        for mine, theirs in zip(paired.derivatives(0.1), plain.derivatives(0.1), strict=True):
            torch.testing.assert_close(mine, theirs)


def test_where_products_would_not_fit_faces_are_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_faces, "PRODUCTS", 10)
    domain = hypersphere(30, 6, 0).domain
    made = _faces.barrier(domain, 0.5 * torch.from_numpy(domain.sample(2, 1)), paired=True)
    assert not isinstance(made, _faces.PairedFaces)
