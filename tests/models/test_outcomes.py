"""Scales, outliers and reported noise: laws of the maps between outcomes and what a model sees."""

from __future__ import annotations

import numpy as np
import pytest

from alebo.models.outcomes import FAR, Compression, Standardisation, reported_variances

RNG = np.random.default_rng(0)
BULK = RNG.standard_normal(30)


@pytest.mark.parametrize("extreme", [[1e300], [1.797e308], [-1.797e308, 1.797e308], [1e9, 1e10, -1e200]])
def test_extreme_outcomes_come_near_in_their_order(extreme: list[float]) -> None:
    values = np.concatenate([BULK, extreme])
    squeeze = Compression.of(values)
    near = squeeze(values)
    assert np.array_equal(squeeze.changes(values), np.abs(values) > 1e6)
    assert np.array_equal(near[:30], BULK)
    assert np.array_equal(np.argsort(near), np.argsort(values))
    assert np.abs(near).max() <= 2.01 * FAR * np.subtract(*np.quantile(values / 1e308, (0.75, 0.25))) * 1e308 + 1.0
    v = Standardisation.of(near)(near)
    assert np.isfinite(v).all()
    assert v[:30].std() > 1e-3  # the model still sees the ordinary ones differ


def test_ordinary_outcomes_stay_bit_for_bit() -> None:
    for values in (BULK, np.full(9, 3.0), np.exp(3.0 * BULK), np.array([1.0, 2e5]), np.array([])):
        squeeze = Compression.of(values)
        assert np.array_equal(squeeze(values), values)
        assert not squeeze.changes(values).any()


@pytest.mark.parametrize("count", [1, 2, 3, 6, 9])
def test_many_extreme_outcomes_are_compressed_as_well(count: int) -> None:
    values = np.concatenate([BULK[:10], np.full(count, -1.797e308)])
    near = Compression.of(values)(values)
    assert np.array_equal(near[:10], BULK[:10])
    assert np.abs(near).max() < 1e5


def test_outcomes_that_overflow_are_compressed_in_any_case() -> None:
    for values in (np.array([0.1, 1.797e308]), np.array([0.0, 0.0, 0.0, 1e300, -1e308, 1e300])):
        near = Compression.of(values)(values)
        assert np.array_equal(np.argsort(near, kind="stable"), np.argsort(values, kind="stable"))
        assert np.isfinite(near.std())


def test_the_map_is_continuous_and_increasing() -> None:
    squeeze = Compression(2.0, 10.0)
    grid = np.concatenate([np.linspace(-50, 50, 2001), np.logspace(2, 308, 500)])
    assert (np.diff(squeeze(grid)) >= 0).all()
    assert squeeze(np.array([12.0 + 1e-9]))[0] == pytest.approx(12.0, abs=1e-8)
    assert squeeze(np.array([1.7e308]))[0] < 2.0 + 20.0
    assert squeeze(np.array([-1.7e308]))[0] > 2.0 - 20.0


@pytest.mark.parametrize("unit", [1e-300, 1e-3, 1.0, 1e200, 1e307])
def test_standardised_outcomes_have_mean_zero_and_deviation_one(unit: float) -> None:
    units = Standardisation.of(unit * BULK)
    v = units(unit * BULK)
    assert v.mean() == pytest.approx(0.0, abs=1e-12)
    assert v.std() == pytest.approx(1.0)
    assert np.allclose(units.shift + units.scale * v, unit * BULK, rtol=1e-9)


def test_equal_outcomes_have_a_scale_too() -> None:
    for value in (0.0, 3.0, 1e308, -1e-300):
        units = Standardisation.of(np.full(4, value))
        assert units.scale > 0
        assert np.array_equal(units(np.full(4, value)), np.zeros(4))


def test_a_missing_standard_error_is_the_typical_one() -> None:
    assert reported_variances([None, None]) is None
    assert reported_variances([]) is None
    assert reported_variances([0.1, None, 0.3]) == pytest.approx([0.01, 0.04, 0.09])
    assert reported_variances([0.0, 0.0]) == pytest.approx([0.0, 0.0])
    assert np.isfinite(reported_variances([1e200, 1.0])).all()  # type: ignore[arg-type]
