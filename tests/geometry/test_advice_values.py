"""Advice in numbers and words, each rule at its edge, with a table of chances made by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

import alebo
from alebo.geometry import advice
from alebo.geometry.advice import _around, _at, _percent, _reason, parameters, probability, supported_dim
from alebo.geometry.containment import Containment, axis_aligned, random_rotation

DIMS = [2, 4, 8, 12]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[tuple[int, int, int], float]]:
    """Chances of D = 100 and 400: dim / 20 with one active variable, half of it with two, a tenth less at 400."""
    known = {
        (D, a, dim): dim / 20.0 / a - (0.05 if D == 400 else 0.0) for D in (100, 400) for a in (1, 2) for dim in DIMS
    }
    monkeypatch.setattr(advice, "_table", lambda: ([100, 400], [1, 2], DIMS, known))
    return known


def test_a_chance_is_interpolated_between_dims_and_in_the_logarithm_of_the_parameters(
    table: dict[tuple[int, int, int], float],
) -> None:
    assert probability(100, 1, 8) == pytest.approx(0.4)
    assert probability(100, 1, 6) == pytest.approx(0.3)
    assert probability(100, 1, 5) == pytest.approx(0.25)
    assert probability(200, 1, 8) == pytest.approx(0.375)  # half of the way, by logarithms
    assert probability(400, 1, 8) == pytest.approx(0.35)
    from_everything = 1.0 - 0.6 * math.log(20 / 8) / math.log(100 / 8)  # 1 at D = dim
    assert probability(20, 1, 8) == pytest.approx(from_everything)
    assert [probability(100, 2, 1), probability(12, 1, 12), probability(8, 1, 12)] == [None, 1.0, 1.0]
    assert probability(100, 3, 3) != probability(100, 2, 3)  # beyond the table: drawn
    assert _at(table, [100, 400], 50, 1, 50) == 1.0


def test_the_tabulated_numbers_next_to_one() -> None:
    assert [_around(DIMS, v) for v in (1, 2, 3, 4, 11, 12)] == [[2], [2], [2, 4], [4], [8, 12], [12]]


def test_the_budget_supports_a_power_of_it() -> None:
    assert [supported_dim(1000, b) for b in (1, 5, 50, 500, 5000)] == [3, 4, 9, 18, 20]
    assert [supported_dim(D, 500) for D in (1, 7, 18, 19)] == [1, 7, 18, 18]
    assert [parameters(d) for d in (1, 2, 5)] == [4, 6, 18]


def test_percentages_for_people() -> None:
    shown = [
        (None, "-"),
        (0.0, "<1 %"),
        (0.0049, "<1 %"),
        (0.005, "0 %"),
        (0.5, "50 %"),
        (0.994, "99 %"),
        (0.995, ">99 %"),
    ]
    assert [_percent(p) for p, _ in shown] == [text for _, text in shown]


LESS = "That is less than even"
GROWS = "dim may also be left out"
CANNOT = "cannot contain the optimum"


@pytest.mark.parametrize(
    ("change", "there", "absent"),
    [
        ({}, ["highest dimension that 50", "60 % with 2 active", GROWS], [LESS, CANNOT, "no embedding"]),
        ({"chance": {2: 0.49}}, [LESS, "49 % with 2 active"], [CANNOT]),
        ({"chance": {2: 0.5}}, ["50 % with 2 active"], [LESS]),
        ({"chance": {2: 0.49}, "given": False}, [GROWS], [LESS]),  # nobody said that two matter
        ({"chance": {2: None}, "numbers": (12,), "over": None}, ["With 12 active", CANNOT], [LESS]),
        ({"chance": {2: 0.6, 12: None}, "numbers": (2, 12)}, ["60 % with 2 active", "With 12 active"], [LESS, "12 %"]),
        ({"choice": 5}, ["chance of 60 % for 2 active", "would support 9", GROWS], ["highest"]),
        ({"D": 9}, ["All 9 parameters fit the budget of 50", "no embedding is needed"], [GROWS, LESS, "highest"]),
        ({"D": 9, "chance": {2: 0.1}}, ["All 9 parameters fit"], [LESS]),
    ],
)
def test_the_reason_says_what_holds_and_nothing_else(change: dict, there: list[str], absent: list[str]) -> None:
    given = {"D": 100, "numbers": (2,), "given": True, "choice": 9, "chance": {2: 0.6}, **change}
    given.pop("over", None)
    chance = {a: given["chance"].get(a) for a in given["numbers"]}
    said = _reason(given["D"], 50, given["numbers"], given["given"], 9, given["choice"], chance)
    assert [word for word in there if word not in said] == []
    assert [word for word in absent if word in said] == []


def test_how_many_matter_is_at_most_how_many_there_are() -> None:
    assert alebo.advise(1, 50).active == (1,)
    assert alebo.advise(1, 50).recommendation == 1
    assert alebo.advise(5, 50, active=5).active == (5,)
    assert alebo.advise(100, 50, active=[6, 2, 2]).active == (2, 6)
    with pytest.raises(alebo.InputError, match="`active` is at most D; got"):
        alebo.advise(5, 50, active=6)
    unknown = alebo.advise(3, 50)
    assert max(unknown.active) <= 3


def test_enough_is_enough_and_every_row_is_there(table: dict[tuple[int, int, int], float]) -> None:
    rows: list[tuple[int, int]] = []
    found = alebo.advise(100, 500, active=2, progress=lambda done, of: rows.append((done, of)))
    assert found.supported == 18
    assert rows == [(k, len(found.rows)) for k in range(1, len(found.rows) + 1)]
    assert [r.dim for r in found.rows] == sorted({r.dim for r in found.rows})
    assert found.recommendation in [r.dim for r in found.rows]
    for row in found.rows:
        assert row.parameters == parameters(row.dim)
        assert row.share == pytest.approx(row.parameters / 500)
        assert row.probability == {2: probability(100, 2, row.dim)}


def test_optima_are_drawn_as_the_priors_say() -> None:
    """One by one with the same generator: which directions are active, and an optimum inside the cube."""
    for seed in range(3):
        T, z = axis_aligned(np.random.default_rng(seed), 7, 3)
        same = np.random.default_rng(seed)
        where = [int(np.flatnonzero(row)[0]) for row in T]
        assert len(set(where)) == 3
        np.testing.assert_array_equal(T, np.eye(7)[where])
        assert (np.abs(z) <= 1.0).all()
        R, t = random_rotation(np.random.default_rng(seed), 7, 3)
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
        same.standard_normal((7, 3))
        np.testing.assert_allclose(t, R @ same.uniform(-1.0, 1.0, 7))
    drawn = np.array([axis_aligned(np.random.default_rng(s), 5, 2)[1] for s in range(400)])
    assert np.abs(drawn.mean()) < 4.0 / np.sqrt(3 * 800)  # uniform in [-1, 1]: four standard errors
    assert drawn.min() < -0.95
    assert drawn.max() > 0.95


def test_an_interval_is_wilsons_by_scipy() -> None:
    from scipy.stats import binomtest

    for hits, samples in ((0, 50), (1, 50), (17, 50), (49, 50), (50, 50), (1, 1)):
        made = Containment("hesbo", 100, 2, 4, "axis", 0, samples, hits)
        want = binomtest(hits, samples).proportion_ci(method="wilson")
        assert (made.low, made.high) == pytest.approx((want.low, want.high), abs=1e-12)
        assert made.standard_error == pytest.approx(math.sqrt(made.value * (1 - made.value) / samples))
    assert (made.exact, Containment("gaussian", 9, 2, 9, "rotation", 0, 5, 5).exact) == (pytest.approx(0.75), 1.0)
    for kind, dim, prior in (("gaussian", 8, "axis"), ("hesbo", 9, "rotation"), ("hypersphere", 9, "own")):
        assert Containment(kind, 9, 2, dim, prior, 0, 5, 5).exact is None
