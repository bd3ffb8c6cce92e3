"""Scales, outliers and reported noise: laws of the maps between outcomes and what a model sees."""

from __future__ import annotations

import numpy as np
import pytest

from alebo.models.outcomes import (
    FAR,
    Compression,
    Standardisation,
    reported_variances,
    thinned,
    without_worst,
)

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


@pytest.mark.parametrize("least", [5e-324, 1e-323, 1e-310])
def test_outcomes_too_small_for_their_differences_have_a_scale(least: float) -> None:
    values = np.array([0.0] * 20 + [least])  # their standard deviation is no double any more
    v = Standardisation.of(values)(values)
    assert np.isfinite(v).all()
    assert np.isfinite(Standardisation.of(values).variances(np.full(21, 1e-300))).all()  # type: ignore[arg-type]


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


def test_the_centre_and_the_reach_of_a_compression() -> None:
    """By hand: the median and the quartiles, or half of the values where they lie within a thousandth of that."""
    few = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 1e9])  # median 4.5, quartiles 2.75 and 6.25
    assert Compression.of(few) == Compression(pytest.approx(4.5), pytest.approx(1.01 * 3.5))  # type: ignore[arg-type]
    many = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 1e9, 2e9, 3e9])  # the shortest interval with five of eight: 1 to 5
    squeeze = Compression.of(many)
    assert squeeze == Compression(pytest.approx(3.0), pytest.approx(2.02))  # type: ignore[arg-type]
    x = np.log((1e9 - 3.0) / 2.02)
    assert squeeze(np.array([1e9, 3.0 - (1e9 - 3.0)])) == pytest.approx(
        [3.0 + s * 2.02 * (1 + x / (1 + x)) for s in (1, -1)]
    )
    equal = np.array([5.0] * 9 + [6.0, 7.0, 8.0, 1e9])  # the median of what differs: 2.5
    assert Compression.of(equal) == Compression(pytest.approx(5.0), pytest.approx(3.03))  # type: ignore[arg-type]
    wide = np.array([-1.0, -0.9991] * 10 + [-0.2, 0.95])  # no more than half of the largest
    assert Compression.of(wide).reach == pytest.approx(0.5)
    assert Compression.of(np.array([1e160, 2e160])) == Compression(0.0, 1e150)
    assert Compression.of(np.array([0.0, 0.0, 0.0])).reach == np.inf
    assert Compression.of(np.array([1.0, 1e9])).reach == np.inf  # of two, which is extreme?


def test_an_outcome_is_extreme_beyond_a_thousand_quartile_ranges() -> None:
    bulk = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]

    def compressed(value: float) -> bool:
        values = np.array([*bulk, value])
        return bool(Compression.of(values).changes(values).any())

    # median 3.5, quartiles 1.75 and 5.25: 3500 above the median
    assert [compressed(v) for v in (3.5 + 3499.9, 3.5 + 3500.1)] == [False, True]


def test_values_at_the_ends_of_arithmetic_are_standardised() -> None:
    assert Standardisation.of(np.array([2.0, 4.0])) == Standardisation(3.0, 1.0)
    assert Standardisation.of(np.array([7.0])) == Standardisation(7.0, 7.0)
    assert Standardisation.of(np.array([0.25, 0.25])) == Standardisation(0.25, 1.0)
    assert Standardisation.of(np.array([])) == Standardisation.of(np.zeros(3)) == Standardisation(0.0, 1.0)
    for unit in (1e-160, 1e160):
        large = Standardisation.of(unit * np.array([2.0, 4.0]))
        assert (large.shift / unit, large.scale / unit) == pytest.approx((3.0, 1.0))
    near = Standardisation.of(np.array([1.0, 1.0 + 1e-13]))
    assert near.scale == pytest.approx(1.0)  # a difference of rounding errors is none


def test_reported_variances_are_divided_by_the_square_of_the_scale_at_any_scale() -> None:
    for scale in (1e-155, 0.5, 3.0):
        found = Standardisation(0.0, scale).variances(np.square(scale * np.array([0.5, 2.0])))
        assert found == pytest.approx([0.25, 4.0])
    assert Standardisation(0.0, 1e155).variances(np.array([1e300])) == pytest.approx([1e-10])
    assert Standardisation(0.0, 1e-3).variances(np.array([1e9])) == pytest.approx([1e12])
    assert Standardisation(0.0, 1e-160).variances(np.array([1e9])) == pytest.approx([1e12])
    assert Standardisation(0.0, 1.0).variances(None) is None
    assert reported_variances([1e151]) == pytest.approx([1e300])


def test_the_worst_are_raised_to_three_times_the_distance_of_the_best_from_the_median() -> None:
    values = np.array([10.0, 8.0, 6.0, 4.0, -20.0])  # median 6, best 10: 12 below the median
    assert without_worst(values) == pytest.approx([10.0, 8.0, 6.0, 4.0, -6.0])
    mild = np.array([10.0, 8.0, 6.0, 4.0, -5.0])
    assert without_worst(mild).tolist() == mild.tolist()
    # the quantile 0.25 is 4: the level lies three times 6 below it
    assert without_worst(values, 0.25) == pytest.approx([10.0, 8.0, 6.0, 4.0, -14.0])
    assert without_worst(values, 0.5).tolist() == without_worst(values).tolist()


def test_of_many_the_best_half_and_the_others_from_all_ranks() -> None:
    order = np.arange(100)[::-1]
    assert thinned(order, 100) is order
    found = thinned(order, 11)
    assert found[:5].tolist() == [99, 98, 97, 96, 95]
    assert found[5:].tolist() == [94, 76, 57, 38, 19, 0]  # 0, 18.8, 37.6, ... of the others, rounded down
