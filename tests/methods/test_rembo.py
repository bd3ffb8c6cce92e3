"""REMBO: clipping, rotation without shared data, the share of its box that is not clipped, and the laws."""

from __future__ import annotations

import numpy as np
import pytest

from alebo._seeds import derive
from alebo.methods import REMBO
from alebo.methods.rembo import clip_up, interior_share, isotropic, projection

from . import laws

METHOD = REMBO(dim=3)

# The paper's Fig. 2: share of interior points, 1000 draws a cell
FIGURE_2 = {20: (0.497, 0.095, 0.009), 100: (0.392, 0.053, 0.002), 1000: (0.292, 0.025, 0.006)}


@pytest.mark.parametrize("D", FIGURE_2)
def test_interior_share_is_figure_2(D):
    for dim, published in enumerate(FIGURE_2[D], start=1):
        n = 1000
        ours = interior_share(D, dim, n, seed=0)
        se = np.sqrt((ours * (1 - ours) + published * (1 - published)) / n)
        assert abs(ours - published) < 3.0 * se + 1 / n


def test_interior_share_of_one_dimension_in_closed_form():
    """d_e = 1: y is kept where |y| max|a| <= 1, so the share is E[min(1, 1 / max|a|)]."""
    a = np.abs(np.random.default_rng(0).standard_normal((20_000, 20))).max(axis=1)
    exact = float(np.minimum(1.0, 1.0 / a).mean())
    assert interior_share(20, 1, 4000, seed=1) == pytest.approx(exact, abs=0.03)


def test_points_are_clipped_gaussian_images_of_the_box():
    opt = laws.run(METHOD, 14)
    for trial in opt.history:
        A = projection(laws.D, 3, derive(3, "rembo", trial.note["projection"]))
        assert np.abs(trial.y).max() <= np.sqrt(3) + 1e-12
        assert np.array_equal(trial.x, clip_up(A, trial.y))
    assert [t.note["projection"] for t in opt.history] == [k % 4 for k in range(14)]
    assert [t.note["by"] for t in opt.history[:10]] == ["random"] * 8 + ["model"] * 2  # two for each of four


def test_projections_share_no_data():
    """Other projections' outcomes do not change this one's next proposal."""
    opt, other = laws.run(METHOD, 12), laws.run(METHOD, 12)
    for trial in opt.history:
        if trial.note["projection"] != 0:
            trial.outcomes["loss"] = trial.outcomes["loss"]._replace(mean=99.0 - trial.number)
    assert np.array_equal(laws.next_point(opt), laws.next_point(other))


def test_the_matrix_is_standard_normal():
    A = projection(1000, 20, 1)
    assert A.mean() == pytest.approx(0.0, abs=0.03)
    assert A.std() == pytest.approx(1.0, abs=0.02)


def test_the_laws():
    laws.obeys(METHOD, steps=14, model_from=11)
    laws.leaves_failures(REMBO(dim=3, projections=1), steps=6)
    laws.takes_told_points(METHOD, steps=9)
    laws.is_plain_data(METHOD)
    laws.keeps_a_batch_apart(METHOD, steps=9)


def test_an_isotropic_matrix_has_equal_rows_and_orthogonal_columns():
    A = isotropic(100, 6, seed=1)
    assert np.linalg.norm(A, axis=1) == pytest.approx(1.0)
    assert pytest.approx(100 / 6 * np.eye(6), abs=1e-6) == A.T @ A
