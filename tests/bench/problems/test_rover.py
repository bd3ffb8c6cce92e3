"""The rover: its reward by hand, its free border."""

from __future__ import annotations

import numpy as np
import pytest

import alebo
from alebo.bench.problems import problem, rover


def test_the_border_is_free_and_near_the_ceiling() -> None:
    p = problem("rover-60")
    assert p.D == 60
    x = rover.border()
    assert np.all((x >= 0) & (x <= 1))
    assert 4.9 < p.evaluate(x) < 4.936  # two sides of 0.9, corner rounded


def test_a_straight_path_pays_for_its_boxes() -> None:
    t = np.linspace(0, 1, 30)[:, None]
    x = (rover.START + t * (rover.GOAL - rover.START)).ravel()
    way = rover.path(x)
    np.testing.assert_allclose(way[[0, -1]], [rover.START, rover.GOAL], atol=1e-12)
    # by a finer walk of our own along the diagonal
    s = rover.START + np.linspace(0, 1, 200_001)[:, None] * (rover.GOAL - rover.START)
    inside = np.zeros(len(s), dtype=bool)
    for box in rover.boxes():
        inside |= np.all(np.abs(s - box) < rover.HALF, axis=1)
    length = float(np.linalg.norm(rover.GOAL - rover.START))
    assert inside.mean() > 0.05  # the map bites
    assert rover.reward(x) == pytest.approx(5 - 20 * length * inside.mean() - 0.05 * length, abs=0.06)


def test_missing_start_and_goal_costs_ten_a_unit() -> None:
    still = np.tile([0.02, 0.02], 30)
    assert rover.reward(still) == pytest.approx(5 - 10 * (0.06 + 1.86))


def test_boxes_leave_the_border_free() -> None:
    assert np.all(rover.boxes() - rover.HALF >= 0.1 - 1e-12)
    assert np.all(rover.boxes() + rover.HALF <= 0.9 + 1e-12)


def test_fifty_points_on_the_same_map() -> None:
    p = problem("rover-100")
    assert p.D == 100
    assert 4.9 < p.evaluate(rover.border(50)) < 4.936
    still = np.tile([0.02, 0.02], 50)
    assert p.evaluate(still) == pytest.approx(5 - 10 * (0.06 + 1.86))


def test_wrong_shape() -> None:
    with pytest.raises(alebo.InputError, match="60 numbers"):
        rover.reward(np.zeros(30))
