"""Signs, feasibility, the front; and what a told outcome may be."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alebo import AtLeast, AtMost, Cost, Goals, InputError, Maximize, Minimize, Outcome
from alebo.goals import hypervolume_trace, pareto

VALUE = st.floats(-1e15, 1e15, allow_nan=False)


@given(VALUE, VALUE, VALUE)
def test_inside_everything_is_minimised(a: float, b: float, c: float) -> None:
    goals = Goals([Minimize("a"), Maximize("b"), AtMost("c", 1.0), AtLeast("b", -2.0), AtMost("a", 5.0)])
    told = goals.read({"a": a, "b": (b, 0.5), "c": c})
    assert goals.objective_values(told).tolist() == [a, -b]
    assert goals.violations(told).tolist() == [c - 1.0, -(b + 2.0), a - 5.0]
    assert goals.feasible(told) == (c <= 1.0 and b >= -2.0 and a <= 5.0)
    assert (goals.sign("a"), goals.sign("b"), goals.sign("c")) == (1.0, -1.0, 1.0)
    assert told["b"] == Outcome(b, 0.5)
    assert told["a"].sem is None


def test_outcomes_are_listed_once_in_order() -> None:
    goals = Goals([Minimize("a"), AtMost("b", 1), AtLeast("b", 0), Cost("t")])
    assert goals.outcomes == ("a", "b", "t")
    assert goals.single
    assert goals.cost == Cost("t")
    assert goals == Goals([Minimize("a"), AtMost("b", 1), AtLeast("b", 0), Cost("t")])
    assert goals != Goals(Minimize("a"))
    assert Goals(Minimize("a")).goals == (Minimize("a"),)


def test_a_bound_that_is_met_exactly_is_feasible() -> None:
    goals = Goals([Minimize("a"), AtMost("b", 1.0), AtLeast("b", 1.0)])
    assert goals.feasible(goals.read({"a": 0, "b": 1.0}))
    assert not goals.feasible(goals.read({"a": 0, "b": np.nextafter(1.0, 2.0)}))


@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=25))
def test_front_against_the_definition(rows: list[tuple[int, int, int]]) -> None:
    values = np.array(rows, dtype=float)
    keep = pareto(values)
    kept = {tuple(v) for v in values[keep]}
    assert len(kept) == keep.sum() >= 1  # of equal rows one stays
    for v in values:
        beaten = any(np.all(w <= v) and np.any(w < v) for w in values)
        assert (tuple(v) in kept) == (not beaten)


@pytest.mark.parametrize(
    "value", [3, 3.0, True, np.float32(3), np.int64(3), np.array(3.0), np.array([3.0]), np.array([[3.0]])]
)
def test_numbers_of_many_types(value: Any) -> None:
    read = Goals(Minimize("y")).read(value)["y"]
    assert type(read.mean) is float
    assert read.mean == float(np.asarray(value).item())


def test_a_torch_scalar_is_a_number() -> None:
    import torch

    assert Goals(Minimize("y")).read(torch.tensor(2.5))["y"].mean == 2.5
    with pytest.raises(InputError):
        Goals(Minimize("y")).read(torch.tensor(2.5, requires_grad=True))


@pytest.mark.parametrize("pair", [(0.3, 0.1), Outcome(0.3, 0.1), (0.3, np.float64(0.1))])
def test_a_pair_is_mean_and_standard_error(pair: Any) -> None:
    assert Goals(Minimize("y")).read(pair)["y"] == Outcome(0.3, 0.1)
    assert Goals(Minimize("y")).read({"y": pair})["y"] == Outcome(0.3, 0.1)
    assert Goals(Minimize("y")).read({"y": [0.3, 0.1]})["y"] == Outcome(0.3, 0.1)  # from JSON, where a pair is a list


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (None, ["'y' must be a number", "got None"]),
        (math.nan, ["must be finite", "got nan"]),
        (math.inf, ["must be finite", "got inf"]),
        (-math.inf, ["must be finite", "got -inf"]),
        ("0.3", ["must be a number", "'0.3'"]),
        (1j, ["must be a number", "1j"]),
        (np.complex128(1j), ["must be a number"]),
        (10**400, ["must be a number"]),
        (np.array([1.0, 2.0]), ["one number", "shape (2,)"]),
        (np.array([]), ["one number", "shape (0,)"]),
        ([1.0, 2.0], ["one number", "list of 2"]),
        ((1.0, 2.0, 3.0), ["one number", "shape (3,)"]),
        ((1.0, -0.1), ["standard error", "not negative", "-0.1"]),
        ((1.0, math.nan), ["standard error", "finite"]),
        ((1.0, "x"), ["must be a number"]),
        (object(), ["must be a number"]),
        ({"z": 1.0}, ["exactly ['y']", "missing ['y']", "unknown ['z']"]),
        ({}, ["missing ['y']"]),
        ({"y": None}, ["'y' must be a number"]),
    ],
)
def test_bad_outcomes(told: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        Goals(Minimize("y")).read(told)
    message = str(caught.value)
    for word in words:
        assert word in message
    assert "Return one finite number" in message or "call fail" in message or "Return one finite" in message


@pytest.mark.parametrize("spent", [0.0, -1.0, (-2.0, 0.1)])
def test_a_cost_is_positive(spent: Any) -> None:
    goals = Goals([Minimize("a"), Cost("hours")])
    with pytest.raises(InputError, match=r"cost must be positive; 'hours' has -?\d\.0\. Tell what"):
        goals.read({"a": 1.0, "hours": spent})
    assert goals.read({"a": -1.0, "hours": 1e-9})["hours"].mean == 1e-9


@pytest.mark.parametrize(("bound", "value"), [(-1.7e308, 1.7e308), (1.7e308, -1.7e308), (-1e308, 1e308)])
def test_a_violation_never_overflows(bound: float, value: float) -> None:
    goals = Goals([Minimize("a"), AtMost("c", bound), AtLeast("d", bound)])
    found = goals.violations(goals.read({"a": 0.0, "c": value, "d": value}))
    assert np.isfinite(found).all()
    assert np.isfinite(found.sum())
    assert (found <= 0.0).tolist() == [value <= bound, value >= bound]


def test_several_outcomes_need_a_mapping() -> None:
    with pytest.raises(
        InputError, match=r"mapping of outcomes is needed for \['a', 'b'\]; got 0.3.*Write \{'a': \.\.\.,"
    ):
        Goals([Minimize("a"), AtMost("b", 1)]).read(0.3)


@pytest.mark.parametrize(
    ("goals", "words"),
    [
        ([], ["one objective or more", "Minimize"]),
        ([AtMost("a", 1)], ["one objective or more"]),
        (["loss"], ["Minimize, Maximize", "'loss'"]),
        ([Minimize("a"), Maximize("a")], ["different outcome", "['a', 'a']"]),
        (
            [Minimize("a"), AtMost("b", 1), AtLeast("b", 2)],
            ["leave some values", "'b' is at least 2 and at most 1", "Loosen"],
        ),
        ([Minimize("a"), AtMost("b", math.nan)], ["finite number", "'b'", "nan"]),
        ([Minimize("a"), AtLeast("b", -math.inf)], ["finite number", "Drop the goal"]),
        ([Minimize("a"), Cost("t"), Cost("u")], ["One Cost", "['t', 'u']"]),
    ],
)
def test_bad_goals(goals: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        Goals(goals)
    for word in words:
        assert word in str(caught.value)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_the_sign_of_a_constraint(value: float, bound: float) -> None:
    for c, holds in ((AtMost("a", bound), value <= bound), (AtLeast("a", bound), value >= bound)):
        assert (c.violation(value) <= 0.0) == holds
        assert np.isclose(c.value(c.violation(value)), value, atol=1e-9 * (1 + abs(bound)))


def test_a_masked_value_is_no_number() -> None:
    goals = Goals(Minimize("loss"))
    for value in (np.ma.masked, np.ma.array([1.0], mask=[True])):
        with pytest.raises(InputError, match="must be a number"):
            goals.read(value)
    assert goals.read(np.ma.array(2.0))["loss"].mean == 2.0


@pytest.mark.parametrize("name", ["", None, 3, 0, b"loss"])
def test_an_outcome_without_a_name(name: Any) -> None:
    with pytest.raises(InputError, match="An outcome's name is a text"):
        Goals(Minimize(name))


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 2**16))
def test_the_hypervolume_is_that_of_the_union_of_boxes_whatever_the_references(m: int, n: int, seed: int) -> None:
    """By inclusion and exclusion; whole numbers, so that points share coordinates and some dominate others."""
    rng = np.random.default_rng(seed)
    points, reference = rng.integers(0, 4, (n, m)).astype(float), rng.integers(2, 9, m).astype(float)
    boxes = [p for p in points if (p < reference).all()]
    volume = 0.0
    for k in range(1, len(boxes) + 1):
        for some in itertools.combinations(boxes, k):
            volume -= (-1) ** k * float(np.prod(reference - np.max(some, axis=0)))
    assert hypervolume_trace(points, reference)[-1] == pytest.approx(volume)
