"""Climbs with few evaluations: the ends of the other climbs, inside, and no evaluation that is not needed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from alebo.acquisition import evaluate, swiftly
from alebo.acquisition._climb import _bfgs, climb
from alebo.acquisition._faces import AllFaces
from alebo.acquisition._swift import Walls, polish, rise
from alebo.acquisition._swift import _bfgs as in_numpy
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
def test_the_search_ends_at_the_top_or_on_the_wall(domain: Polytope, top: list[float], best: list[float]) -> None:
    points, values = swiftly(Bowl(top), domain, 0, domain.sample(30, 1))
    np.testing.assert_allclose(points[0], best, atol=1e-6)
    assert domain.contains(points, tolerance=1e-12).all()
    np.testing.assert_allclose(values, evaluate(Bowl(top), points), atol=1e-9)
    assert values[0] == values.max()
    assert len(points) == 4


def test_all_climbs_reach_what_the_other_climb_reaches() -> None:
    domain, bowl = hypersphere(30, 4, 0).domain, Bowl([0.4, -0.2, 0.1, 2.0], (3.0, 40.0, 1.0, 2.0))
    starts = domain.sample(5, 3)
    ends = rise(bowl, domain, starts, steps=10)
    _, values = climb(bowl, domain, torch.from_numpy(starts), steps=10)
    np.testing.assert_allclose(ends.values, values.max(), atol=2e-3)
    assert (np.diff(ends.values) <= 0).all()
    np.testing.assert_allclose(ends.bends[0], ends.bends[0].T, atol=1e-9)


def test_climbs_that_are_behind_end() -> None:
    all_on, few = Bowl([0.3, -0.2], (1.0, 50.0)), Bowl([0.3, -0.2], (1.0, 50.0))
    starts = BOX.sample(8, 0)
    rise(all_on, BOX, starts, steps=2)
    ends = rise(few, BOX, starts, steps=2, keep=(1.0, 0.5, 0.125))
    assert few.rows < all_on.rows
    assert ends.points.shape == (8, 2)
    rest = rise(Bowl([0.3, -0.2]), BOX, starts, steps=0)
    np.testing.assert_allclose(np.sort(rest.values), np.sort(evaluate(Bowl([0.3, -0.2]), 0.995 * starts)))


def test_a_steep_function_begins_with_a_short_step() -> None:
    seen: list[float] = []
    start = np.array([[0.5, 0.5]])

    class Slope(torch.nn.Module):
        def forward(self, X: torch.Tensor) -> torch.Tensor:
            seen.append(float((X.detach().squeeze(-2) - 0.995 * torch.from_numpy(start)).norm()))
            return -1000.0 * X.squeeze(-2).sum(-1)

    rise(Slope(), BOX, start, steps=1, steep=0.25)
    assert 0.2 < seen[1] < 0.26
    seen.clear()
    rise(Slope(), BOX, start, steps=1)
    assert seen[1] > 1.0


def test_only_points_that_need_it_are_evaluated_again() -> None:
    sizes: list[int] = []

    class Kink(torch.nn.Module):
        """Steep on the right: a first step from there is too long."""

        def forward(self, X: torch.Tensor) -> torch.Tensor:
            sizes.append(len(X))
            x = X.squeeze(-2)
            return -torch.where(x[:, 0] > 0, 100.0 * x[:, 0] ** 2, x[:, 0] ** 2) - x[:, 1] ** 2

    rise(Kink(), BOX, np.array([[0.5, 0.0], [-0.5, 0.5]]), steps=1)
    assert sizes[:2] == [2, 2]
    assert 1 in sizes


def test_walls_are_the_barrier_of_all_faces() -> None:
    paired = hypersphere(30, 6, 0).domain
    for domain in (paired, paired.intersect(np.ones((1, 6)), np.array([0.5]))):  # a face that is no pair
        W, step = 0.5 * domain.sample(3, 1), np.random.default_rng(1).standard_normal((3, 6))
        faces, walls = AllFaces(domain, torch.from_numpy(W)), Walls(domain)
        slack = walls.slack(W)
        np.testing.assert_allclose(walls.value(slack), faces.value().numpy())
        np.testing.assert_allclose(walls.reach(slack, step), faces.reach(torch.from_numpy(step)).numpy())
        for mine, other in zip(walls.derivatives(slack, 0.3), faces.derivatives(0.3), strict=True):
            np.testing.assert_allclose(mine, other.numpy(), atol=1e-9)


def test_the_update_is_that_of_the_other_climb() -> None:
    H = np.stack([np.eye(3), np.diag([1.0, 2.0, 3.0]), 1e-9 * np.eye(3)])
    s, g = (np.random.default_rng(k).standard_normal((3, 3)) for k in (1, 2))
    for y in (g, 0.1 * s):
        want = _bfgs(*(torch.from_numpy(a) for a in (H, s, y))).numpy()
        np.testing.assert_allclose(in_numpy(H, s, y), want)


def test_the_polish_uses_the_curvature() -> None:
    steep, bend = (300.0, 1.0), 2.0 * np.diag([300.0, 1.0])
    known, unknown = Bowl([0.3, 4.0], steep), Bowl([0.3, 4.0], steep)
    start = np.array([-0.5, 0.5])
    end = polish(known, BOX, start, bend, steps=20)
    np.testing.assert_allclose(end, [0.3, 1.0], atol=1e-6)
    np.testing.assert_allclose(polish(unknown, BOX, start, np.eye(2), steps=50), [0.3, 1.0], atol=1e-5)
    assert known.calls < unknown.calls
    np.testing.assert_allclose(polish(known, BOX, start, -bend, steps=50), [0.3, 1.0], atol=1e-5)  # no curvature at all


def test_the_rough_likeness_is_climbed_and_the_acquisition_decides() -> None:
    whole, rough = Bowl([0.5, 0.5]), Bowl([0.3, 0.6])
    points, values = swiftly(whole, BOX, 0, BOX.sample(20, 0), rough=rough)
    np.testing.assert_allclose(points[0], [0.5, 0.5], atol=1e-6)
    np.testing.assert_allclose(points[1:], [[0.3, 0.6]] * 3, atol=2e-2)
    np.testing.assert_allclose(values, evaluate(whole, points), atol=1e-9)
