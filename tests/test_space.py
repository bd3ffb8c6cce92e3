"""Laws of the way between named values and the cube."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alebo import Categorical, Fidelity, Fixed, Float, InputError, Int, LinearConstraint, Space
from alebo.space import Parameter

NUMBER = st.floats(-1e9, 1e9, allow_nan=False)
CHOICES = st.lists(st.text("abcde", max_size=3) | st.integers(-3, 3) | st.booleans(), min_size=2, max_size=5)


@st.composite
def parameters(draw: st.DrawFn, name: str) -> Parameter:
    kind = draw(st.sampled_from(["float", "log", "int", "logint", "categorical", "fixed"]))
    if kind == "float":
        low, high = sorted(draw(st.tuples(NUMBER, NUMBER).filter(lambda p: abs(p[0] - p[1]) > 1e-6)))
        return Float(name, low, high)
    if kind == "log":
        low, high = sorted(
            draw(st.tuples(st.floats(-12, 12), st.floats(-12, 12)).filter(lambda p: abs(p[0] - p[1]) > 0.01))
        )
        return Float(name, 10**low, 10**high, log=True)
    if kind == "int":
        low = draw(st.integers(-(10**9), 10**9))
        return Int(name, low, low + draw(st.integers(1, 10**6)))
    if kind == "logint":
        low = draw(st.integers(1, 10**6))
        return Int(name, low, low + draw(st.integers(1, 10**6)), log=True)
    if kind == "categorical":
        chosen = draw(CHOICES.filter(lambda c: len({(type(v), v) for v in c}) == len(c)))
        return Categorical(name, chosen)
    return Fixed(name, draw(st.integers() | st.text(max_size=3) | st.none()))


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    listed = [draw(parameters(f"p{i}")) for i in range(draw(st.integers(1, 6)))]
    return Space([*listed, Float("last", 0.0, 1.0)])


def value_of(p: Parameter, u: float) -> Any:
    if isinstance(p, Fixed):
        return p.value
    if isinstance(p, Categorical):
        return p.choices[min(int(u * len(p.choices)), len(p.choices) - 1)]
    if isinstance(p, Int):
        return min(p.low + int(u * (p.high - p.low + 1)), p.high)
    return p.low + u * (p.high - p.low) if u < 1 else p.high


@given(spaces(), st.data())
def test_decode_undoes_encode(space: Space, data: st.DataObject) -> None:
    params = {p.name: value_of(p, data.draw(st.floats(0, 1))) for p in space.parameters}
    x = space.encode(params)
    assert x.shape == (space.dimension,)
    assert np.all(np.abs(x) <= 1.0)
    back = space.decode(x)
    assert list(back) == list(space.names)
    for p in space.parameters:
        a, b = params[p.name], back[p.name]
        if isinstance(p, Float):
            assert isinstance(b, float)
            scale = abs(a) if p.log else max(abs(p.low), abs(p.high))
            assert abs(a - b) <= 1e-13 * scale * (
                1 + (abs(math.log(p.high / p.low)) + abs(math.log(p.high)) if p.log else 0)
            )
        else:
            assert a == b
            assert type(a) is type(b)


@given(spaces(), st.integers(0, 2**32))
def test_any_point_of_the_cube_decodes_inside_and_snap_is_idempotent(space: Space, seed: int) -> None:
    x = np.random.default_rng(seed).uniform(-1, 1, (3, space.dimension))
    x[0] = np.sign(x[0])
    for row in x:
        space.check(space.decode(row))
    once = space.snap(x)
    assert once.shape == x.shape
    assert np.all(np.abs(once) <= 1)
    np.testing.assert_allclose(space.snap(once), once, atol=1e-12)
    for a, b in zip(x, once, strict=True):
        for name, value in space.decode(a).items():
            other = space.decode(b)[name]
            assert value == other or abs(value - other) <= 1e-9 * max(abs(value), abs(other))


@given(spaces())
def test_plain_data_builds_the_same_space(space: Space) -> None:
    again = Space.from_dict(json.loads(json.dumps(space.to_dict())))
    assert again == space
    assert hash(again) == hash(space)
    assert len(space.columns()) == space.dimension
    assert len(set(space.columns())) == space.dimension or any(isinstance(p, Categorical) for p in space.parameters)


@given(st.integers(2, 5), st.integers(1, 4), st.integers(0, 2**32))
def test_constraint_rows_agree_with_the_parameters(D: int, k: int, seed: int) -> None:
    """A x <= b at the cube point exactly where the rule holds for the named values."""
    rng = np.random.default_rng(seed)
    listed: list[Parameter] = [Fixed("f", 2.5)]
    for i in range(D):
        low = rng.uniform(-5, 5)
        listed.append(
            Float(f"p{i}", low, low + rng.uniform(0.1, 9))
            if rng.random() < 0.6
            else Int(f"p{i}", int(low), int(low) + 7)
        )
    middle = {p.name: p.value if isinstance(p, Fixed) else (p.low + p.high) / 2 for p in listed}  # type: ignore[union-attr]
    rules = []
    for _ in range(k):
        c = {p.name: float(rng.normal()) for p in listed if rng.random() < 0.7 or p.name == "p0"}
        rules.append(LinearConstraint(c, sum(v * middle[n] for n, v in c.items()) + rng.uniform(0, 3)))
    space = Space(listed, rules)
    A, b = space.rows()
    assert A.shape == (k, space.dimension)
    for _ in range(20):
        params = space.decode(rng.uniform(-1, 1, space.dimension))
        left = np.array([r.value(params) - r.upper for r in rules])
        np.testing.assert_allclose(A @ space.encode(params) - b, left, atol=1e-9)
        assert space.feasible(params) == bool(np.all(left <= 0)) or np.min(np.abs(left)) < 1e-6


def test_int_bins_are_equally_wide() -> None:
    space = Space([Int("n", 1, 4)])
    x = np.linspace(-1, 1, 4001)[:-1] + 1 / 4000
    counts = np.bincount([space.decode([v])["n"] for v in x])[1:]
    assert counts.tolist() == [1000] * 4


def test_log_scale_is_even_in_the_exponent() -> None:
    space = Space([Float("lr", 1e-4, 1.0, log=True)])
    assert space.decode([0.0])["lr"] == pytest.approx(1e-2)
    assert space.encode({"lr": 1e-3})[0] == pytest.approx(-0.5)


def test_short_forms() -> None:
    space = Space.from_dict(
        {"a": [0, 1], "b": ["x", "y"], "c": 3, "d": {"type": "int", "low": 1, "high": 5}, "e": {"value": "k"}}
    )
    assert space == Space(
        [Float("a", 0, 1), Categorical("b", ["x", "y"]), Fixed("c", 3), Int("d", 1, 5), Fixed("e", "k")]
    )
    assert space.columns() == ["a", "b=x", "b=y", "d"]


def test_canonical_types() -> None:
    space = Space([Int("n", 0, 9), Float("a", 0, 1), Categorical("c", [1, "x"]), Fixed("f", None)])
    told = {"f": None, "c": np.int64(1), "a": np.float32(0.5), "n": np.int16(3)}
    plain = space.canonical(told)
    assert plain == {"n": 3, "a": 0.5, "c": 1, "f": None}
    assert [type(v) for v in plain.values()] == [int, float, int, type(None)]
    assert list(plain) == list(space.names)


def test_one_and_true_and_one_point_zero_are_three_choices() -> None:
    space = Space([Categorical("c", [1, 1.0, True, "1"])])
    for choice in (1, 1.0, True, "1"):
        back = space.decode(space.encode({"c": choice}))["c"]
        assert type(back) is type(choice)


def test_a_thousand_parameters_are_quick() -> None:
    import time

    space = Space.from_bounds([(-1.0, 3.0)] * 1000)
    x = np.random.default_rng(0).uniform(-1, 1, 1000)
    start = time.process_time()
    for _ in range(20):
        x = space.encode(space.decode(x))
    assert time.process_time() - start < 2.0


# -- bad input: the rule, what came, the way out ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Space.from_bounds([]), ["one (low, high) pair or more", "got none", "[(0, 1)] * 100"]),
        (lambda: Space.from_bounds([(1, 0)]), ["`low < high`", "'x0'", "low=1.0, high=0.0", "Swap"]),
        (lambda: Space.from_bounds([(1, 1)]), ["`low < high`", "Fixed"]),
        (lambda: Space.from_bounds([(0, 1), (0, math.nan)]), ["finite", "'x1'", "nan"]),
        (lambda: Space.from_bounds([(0, math.inf)]), ["finite", "inf", "Give the range"]),
        (lambda: Space.from_bounds([(-1e308, 1e308)]), ["finite", "1e+308", "Narrow"]),
        (lambda: Space.from_bounds([(0, 1, 2)]), ["(low, high) pairs", "(0, 1, 2)"]),  # type: ignore[list-item]
        (lambda: Space.from_bounds(5), ["(low, high) pairs", "got 5"]),  # type: ignore[arg-type]
        (lambda: Space.from_bounds([("a", 1)]), ["pairs", "'a'"]),  # type: ignore[list-item]
        (lambda: Float("lr", 0.0, 1.0, log=True), ["`low > 0`", "'lr'", "log=True", "linear scale"]),
        (lambda: Int("n", 0, 5, log=True), ["`low > 0`", "'n'"]),
        (lambda: Int("n", 0.5, 5), ["whole numbers", "0.5", "Float"]),  # type: ignore[arg-type]
        (lambda: Int("n", 0, 10**15), ["exact", "'n'", "Float"]),
        (lambda: Int("n", 3, math.inf), ["finite numbers", "inf"]),  # type: ignore[arg-type]
        (lambda: Categorical("c", ["a"]), ["two choices", "['a']", "Fixed"]),
        (lambda: Categorical("c", ["a", "a"]), ["differ", "'c'", "Remove"]),
        (lambda: Space([]), ["one free parameter", "got none"]),
        (lambda: Space([Fixed("a", 1)]), ["one free parameter"]),
        (lambda: Space([(0, 1)]), ["Float, Int, Categorical and Fixed", "(0, 1)", "from_bounds"]),  # type: ignore[list-item]
        (lambda: Space([Float("a", 0, 1), Float("a", 0, 2)]), ["differ", "'a'", "Rename"]),
        (lambda: Space([Float("", 0, 1)]), ["name is a text", "''"]),
        (lambda: Space([Float(3, 0, 1)]), ["name is a text", "got 3"]),  # type: ignore[arg-type]
        (lambda: Space.from_dict({"a": {"type": "real", "low": 0, "high": 1}}), ["`type`", "'real'", "float"]),
        (lambda: Space.from_dict({"a": {"low": 0, "hgih": 1}}), ["'a'", "hgih"]),
        (lambda: LinearConstraint({}, 1.0), ["one non-zero coefficient", "Name the parameters"]),
        (lambda: LinearConstraint({"a": math.nan}, 1.0), ["finite", "nan"]),
        (lambda: Space([Float("a", 0, 1)], [LinearConstraint({"b": 1}, 1)]), ["'b'", "Known: a"]),
        (
            lambda: Space([Float("a", 1, 2, log=True)], [LinearConstraint({"a": 1}, 1)]),
            ["linear scale", "'a'", "log=False"],
        ),
        (lambda: Space([Float("a", 0, 1)], [LinearConstraint({"a": -1}, -2)]), ["none does", "Loosen"]),
        (lambda: Space([Float("a", 0, 1), Fixed("f", 3)], [LinearConstraint({"f": 1}, 2)]), ["none does", "Loosen"]),
    ],
)
def test_bad_spaces(make: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        make()
    for word in words:
        assert word in str(caught.value)


def test_a_constraint_on_a_fixed_value_that_holds_is_fine() -> None:
    space = Space([Float("a", 0, 1), Fixed("f", 1)], [LinearConstraint({"f": 1}, 1)])
    assert space.feasible({"a": 1.0, "f": 1})
    assert space.decode(np.ones(1)) == {"a": 1.0, "f": 1}


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"a": 0.5}, ["missing ['n', 'c', 'f']"]),
        ({"a": 0.5, "n": 1, "c": "x", "f": 7, "z": 0}, ["unknown ['z']"]),
        ({"a": 1.5, "n": 1, "c": "x", "f": 7}, ["`0.0 <= a <= 1.0`", "1.5", "Widen"]),
        ({"a": math.nan, "n": 1, "c": "x", "f": 7}, ["`0.0 <= a <= 1.0`", "nan"]),
        ({"a": "big", "n": 1, "c": "x", "f": 7}, ["'a' is a number", "'big'"]),
        ({"a": 0.5, "n": 1.5, "c": "x", "f": 7}, ["whole number", "1.5", "Round"]),
        ({"a": 0.5, "n": 1, "c": "q", "f": 7}, ["'c' is one of ['x', 'y']", "'q'"]),
        ({"a": 0.5, "n": 1, "c": "x", "f": 8}, ["fixed at 7", "8"]),
    ],
)
def test_bad_points(params: dict[str, Any], words: list[str]) -> None:
    space = Space([Float("a", 0, 1), Int("n", 1, 3), Categorical("c", ["x", "y"]), Fixed("f", 7)])
    with pytest.raises(InputError) as caught:
        space.encode(params)
    for word in words:
        assert word in str(caught.value)


def test_a_cube_point_of_the_wrong_length() -> None:
    with pytest.raises(InputError, match=r"shape \(2,\); got \(3,\)"):
        Space.from_bounds([(0, 1)] * 2).decode([0.0, 0.0, 0.0])


# -- steps and digits: what a laboratory can set ---------------------------------------------------------------------------


def test_a_step_is_what_is_proposed() -> None:
    space = Space([Float("t", 20, 80, step=5), Float("dose", 0.1, 0.7, step=0.1), Float("free", 0, 1)])
    assert not space.continuous
    rng = np.random.default_rng(0)
    seen = [space.decode(rng.uniform(-1, 1, 3)) for _ in range(2000)]
    assert {p["t"] for p in seen} == set(range(20, 81, 5))
    assert {p["dose"] for p in seen} == {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}  # short, not 0.30000000000000004
    ends = sum(p["t"] in (20, 80) for p in seen) / 2000
    assert ends == pytest.approx(2 / 13, abs=0.04)  # the ends are as likely as the others
    for p in seen[:50]:
        assert space.decode(space.encode(p)) == p


def test_digits_are_significant_ones_and_stay_in_range() -> None:
    space = Space([Float("dose", 1.23e-4, 1.0, log=True, digits=2), Float("b", 0, 1)])
    rng = np.random.default_rng(0)
    for _ in range(300):
        value = space.decode(rng.uniform(-1, 1, 2))["dose"]
        assert 1.23e-4 <= value <= 1.0
        assert value == 1.23e-4 or float(f"{value:.1e}") == value
    assert space.decode([-1, 0])["dose"] == 1.23e-4


def test_what_was_really_run_need_not_lie_on_the_grid() -> None:
    space = Space([Float("t", 20, 80, step=5), Float("b", 0, 1)])
    assert space.canonical({"t": 42, "b": 0.5}) == {"t": 42.0, "b": 0.5}
    low, high = (space.encode({"t": t, "b": 0})[0] for t in (40, 45))
    assert low < space.encode({"t": 42, "b": 0})[0] < high


def test_a_step_survives_plain_data_and_old_data_stay_as_they_were() -> None:
    space = Space([Float("t", 20, 80, step=5), Float("d", 1, 2, digits=3), Float("b", 0, 1)])
    assert Space.from_dict(space.to_dict()) == space
    assert space.to_dict()["b"] == {"type": "float", "low": 0.0, "high": 1.0, "log": False}


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Float("t", 20, 82, step=5), ["whole number of steps", "high=80"]),
        (lambda: Float("t", 20, 80, step=0), ["whole number of steps"]),
        (lambda: Float("t", 20, 80, step=-5), ["whole number of steps"]),
        (lambda: Float("t", 20, 80, step=100), ["whole number of steps"]),
        (lambda: Float("t", 20, 80, step=float("nan")), ["finite", "step=nan"]),
        (lambda: Float("t", 1, 80, log=True, step=1), ["linear scale", "digits=2"]),
        (lambda: Float("t", 20, 80, digits=0), ["`1 <= digits <= 17`"]),
        (lambda: Float("t", 20, 80, digits=2.5), ["`1 <= digits <= 17`"]),
        (lambda: Float("t", 20, 80, step=5, digits=2), ["without a step"]),
        (lambda: Int("n", 0, 10**400), ["finite numbers for 'n'", "range you would accept"]),
        (lambda: Float("n", 0, 10**400), ["finite numbers for 'n'"]),
        (lambda: Float("n", "0", 1), ["finite numbers for 'n'", "low=0"]),
    ],
)
def test_bad_steps_and_ranges(build: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        build()
    for word in words:
        assert word in str(caught.value)


def test_linear_constraints_hold_after_rounding_to_a_step() -> None:
    space = Space([Float("a", 0, 1, step=0.25), Float("b", 0, 1)], [LinearConstraint({"a": 1, "b": 1}, 1.0)])
    A, b = space.rows(rounded=True)
    rng = np.random.default_rng(1)
    for x in rng.uniform(-1, 1, (300, 2)):
        if np.all(A @ x <= b):
            assert space.feasible(space.decode(x))


@given(st.integers(0, 2**32))
def test_rounded_rows_hold_after_rounding_whatever_the_sign_of_a_coefficient(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parameters = [Int("n", 0, 10), Int("m", -3, 3), Float("x", -1, 2)]
    c = {"n": -float(rng.uniform(0.5, 3)), "m": float(rng.uniform(-2, 2)), "x": float(rng.normal())}
    rule = LinearConstraint(c, 5.0 * c["n"] + 0.5 * c["x"] + rng.uniform(2, 4))
    space = Space(parameters, [rule])
    A, b = space.rows(rounded=True)
    points = rng.uniform(-1, 1, (400, 3))
    allowed = points[(b[:, None] >= A @ points.T).all(axis=0)]
    assert all(space.feasible(space.decode(x)) for x in allowed)
    loose = space.rows()[1]
    np.testing.assert_allclose(loose - b, 0.5 * (abs(c["n"]) + abs(c["m"])))  # half a bin of each whole number


def test_the_ends_of_what_digits_and_ranges_allow() -> None:
    assert [Float("a", 0, 1, digits=k).digits for k in (1, 17)] == [1, 17]
    for wrong in (0, 18, True, 2.0):
        with pytest.raises(InputError, match="digits"):
            Float("a", 0, 1, digits=wrong)  # type: ignore[arg-type]
    space = Space([Float("a", -8.0, 4.0), Int("n", 1, 9)])
    slack = 1e-9 * 8.0  # of the larger end
    for a in (-8.0 - slack, 4.0 + slack):
        space.check({"a": a, "n": 5})
        with pytest.raises(InputError, match="a <= 4"):
            space.check({"a": a * (1 + 1e-8), "n": 5})
    assert space.encode({"a": 4.0 + slack, "n": 9})[0] == 1.0


def test_a_space_knows_its_fidelity_and_where_its_coordinate_is() -> None:
    level = Fidelity("level", 0.1, 1.0)
    space = Space([Float("a", 0, 1), Categorical("c", ["u", "v"]), level, Int("n", 0, 3)])
    assert space.fidelity == (3, level)
    assert space.one_hot.tolist() == [False, True, True, False, False]
    assert Space([Float("a", 0, 1)]).fidelity is None
    with pytest.raises(InputError, match=r"One Fidelity at most; got \['level', 'other'\]"):
        Space([level, Fidelity("other", 1, 3)])


def test_whole_numbers_and_steps_have_bins_of_one_width_and_real_numbers_none() -> None:
    """The ends of a grid get a whole bin, like its other values; those of a Float are the ends of the cube."""
    fine = np.linspace(-1.0, 1.0, 4001)[1:-1, None]
    for parameter, values in (
        (Int("n", 2, 6), [2, 3, 4, 5, 6]),
        (Float("s", 0.0, 1.0, step=0.25), [0.0, 0.25, 0.5, 0.75, 1.0]),
    ):
        space = Space([parameter])
        decoded = [space.decode(x)[parameter.name] for x in fine]
        assert [decoded.count(v) / len(decoded) for v in values] == pytest.approx([0.2] * 5, abs=1e-3)
        assert not space.continuous
    real = Space([Float("a", 3.0, 5.0)])
    assert real.continuous
    assert [real.decode(np.array([u]))["a"] for u in (-1.0, 0.0, 0.5, 1.0)] == [3.0, 4.0, 4.5, 5.0]
    log = Space([Float("a", 1e-4, 1.0, log=True)])
    assert log.decode(np.zeros(1))["a"] == pytest.approx(1e-2)
    whole = Space([Int("n", 1, 100, log=True)])
    edges = [whole.decode(np.array([u]))["n"] for u in (-1.0, 1.0)]
    assert edges == [1, 100]
    middle = math.sqrt(0.5 * 100.5)
    assert whole.decode(np.zeros(1))["n"] == round(middle)


def test_where_values_lie_in_the_cube() -> None:
    space = Space(
        [Categorical("c", ["u", "v", "w"]), Float("a", 2.0, 6.0), Int("n", 1, 4), Float("l", 1e-2, 1e2, log=True)]
    )
    x = space.encode({"c": "v", "a": 3.0, "n": 4, "l": 10.0})
    assert x.tolist() == pytest.approx(
        [-1.0, 1.0, -1.0, -0.5, 0.75, 0.5]
    )  # a whole number lies in the middle of its bin
    assert space.snap(x) == pytest.approx(x)
    assert space.snap(np.array([0.1, 0.2, 0.15, 7.0, 0.6, -9.0])) == pytest.approx([-1.0, 1.0, -1.0, 1.0, 0.75, -1.0])


def test_constraints_that_no_point_satisfies_are_named() -> None:
    a, b = Float("a", 0.0, 1.0), Float("b", 0.0, 1.0)
    tight = [LinearConstraint({"a": 1.0, "b": 1.0}, 0.1)]  # the middle breaks it, a corner does not
    assert Space([a, b], tight).feasible({"a": 0.0, "b": 0.05})
    high = Space([a, b], [LinearConstraint({"a": -1.0, "b": -1.0}, -1.9)])  # the other corner
    assert high.feasible({"a": 1.0, "b": 0.95})
    with pytest.raises(InputError, match=r"must differ; got \['a'\] more than once"):
        Space([a, b, Float("a", 0.0, 2.0)])
    rules = [
        *tight,
        LinearConstraint({"a": -1.0}, -0.5),
        LinearConstraint({"b": 1.0}, 2.0),
        LinearConstraint({"b": 1.0}, 3.0),
    ]
    with pytest.raises(InputError, match=r"none does: .*0\.1; .*-0\.5; .* 2\.0; .* 3\.0\. Loosen"):
        Space([a, b], rules)


# -- the edges of what a parameter may be --------------------------------------------------------------------------------------


def test_parameters_and_rules_cannot_be_changed_and_can_be_keys() -> None:
    for made, field in (
        (Float("a", 0, 1), "low"),
        (Fidelity("a", 0, 1), "low"),
        (Int("a", 0, 1), "low"),
        (Categorical("a", ["u", "v"]), "choices"),
        (Fixed("a", 1), "value"),
        (LinearConstraint({"a": 1.0}, 1.0), "upper"),
    ):
        with pytest.raises(AttributeError):
            setattr(made, field, 5)
    assert len({Float("a", 0, 1), Float("a", 0, 1), Fidelity("b", 0, 1), Int("a", 0, 1), Fixed("a", 1)}) == 4
    assert (Fidelity("b", 0.5, 3).target, Float("a", 0, 1).log, Int("n", 0, 1).log) == (3.0, False, False)


def test_the_largest_whole_numbers() -> None:
    for low, high in ((0, 10**12), (-(10**12), 0)):
        space = Space([Int("n", low, high)])
        for n in (low, low + 1, high - 1, high):
            assert space.decode(space.encode({"n": n})) == {"n": n}
    for low, high in ((0, 10**12 + 1), (-(10**12) - 1, 0)):
        with pytest.raises(InputError, match="at most 1000000000000 in size"):
            Int("n", low, high)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Float("a", 1, 2, log="yes"), r"`log` of 'a' is True or False; got 'yes'"),  # type: ignore[arg-type]
        (lambda: Float("a", 1e300, math.nextafter(1e300, 2e300), log=True), "until its ends differ"),
        (lambda: Float("a", True, 2), "finite numbers for 'a'"),
        (lambda: Float("a", 1e9, 1e9 + 0.5, step=2), "whole number of steps"),  # no step at all fits
        (lambda: LinearConstraint({"a": 0.0}, 1.0), "one non-zero coefficient"),
        (lambda: LinearConstraint({"a": 1.0}, math.inf), "finite"),
        (lambda: Space([Float("a", 0, 1), Fixed("f", "w")], [LinearConstraint({"f": 1}, 1)]), "on a linear scale; 'f'"),
        (
            lambda: Space([Float("a", 0, 1), Categorical("c", [1, 2])], [LinearConstraint({"c": 1}, 1)]),
            "on a linear scale; 'c'",
        ),
        (
            lambda: Space([Float("a", 0, 1), Int("n", 1, 9, log=True)], [LinearConstraint({"n": 1}, 1)]),
            "on a linear scale; 'n'",
        ),
    ],
)
def test_what_a_parameter_or_rule_cannot_be(build: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        build()


def test_what_a_parameter_or_rule_just_can_be() -> None:
    assert Float("a", 1e300, math.nextafter(1e300, 2e300)).high > 1e300  # on a linear scale its ends differ
    assert Float("a", 1, 2, log=np.bool_(True)).log  # type: ignore[arg-type]
    assert Float("a", 0, 1, step=1).rounded(0.6) == 1.0
    assert Int("n", 1, 2, log=True).low == 1
    assert LinearConstraint({"a": 1.0, "b": 0.0}, 0.0).value({"a": 3, "b": 9}) == 3.0
    assert Float("a", 0, 10, step=0.25).rounded(3.3) == 3.25
    assert Float("a", 0, 10, step=0.25).rounded(99.0) == 10.0
    assert Float("a", 0.001, 10, digits=3).rounded(0.0123456) == 0.0123
    assert Float("a", 0.001, 10, digits=1).rounded(3.4) == 3.0
    assert [Float("a", 0, 1).gridded, Float("a", 0, 1, step=0.5).gridded, Float("a", 0, 1, digits=2).gridded] == [
        False,
        True,
        True,
    ]


def test_choices_are_found_by_value_and_kind() -> None:
    nan = math.nan
    space = Space([Categorical("c", ["u", 0, 1, nan, None])])
    for value, place in (("u", 0), (np.int64(0), 1), (1.0, 2), (nan, 3), (None, 4)):
        assert int(np.argmax(space.encode({"c": value}))) == place
    for wrong in (True, np.bool_(False), 2, "v"):
        with pytest.raises(InputError, match="'c' is one of"):
            space.encode({"c": wrong})
    logical = Space([Categorical("c", [False, True])])
    assert logical.canonical({"c": np.bool_(True)}) == {"c": True}
    with pytest.raises(InputError, match="'c' is one of"):
        logical.canonical({"c": 1})
    assert Space([Float("a", 0, 1), Fixed("f", nan)]).canonical({"a": 1, "f": nan})["a"] == 1.0


def test_more_short_forms() -> None:
    space = Space.from_dict(
        {
            "a": [1, 2, 3],
            "b": [True, False],
            "c": "xy",
            "d": {"choices": [1, 2]},
            "e": {"low": 0, "high": 2},
            "f": {"type": "fidelity", "low": 1, "high": 2},
        }
    )
    assert space.parameters == (
        Categorical("a", [1, 2, 3]),
        Categorical("b", [True, False]),
        Fixed("c", "xy"),
        Categorical("d", [1, 2]),
        Float("e", 0, 2),
        Fidelity("f", 1, 2),
    )
    assert space.coordinates() == {
        "a": slice(0, 3),
        "b": slice(3, 5),
        "d": slice(5, 7),
        "e": slice(7, 8),
        "f": slice(8, 9),
    }


def test_which_spaces_are_equal_continuous_and_without_names() -> None:
    a, b = Float("x0", 0, 1), Float("x1", 0, 1)
    rule = LinearConstraint({"x0": 1}, 0.5)
    assert Space([a, b], [rule]) == Space([a, b], [LinearConstraint({"x0": 1}, 0.5)])
    assert Space([a, b], [rule]) != Space([a, b])
    assert Space([a, b]) != Space([a])
    assert Space([a]) != "a"
    assert Space([a, b]).positional
    for other in ([b, a], [a, Int("x1", 0, 1)], [a, Float("y", 0, 1)]):
        assert not Space(other).positional
    for rough in (Int("n", 0, 1), Categorical("c", ["u", "v"]), Float("s", 0, 1, step=0.5), Float("s", 0, 1, digits=2)):
        assert not Space([a, rough]).continuous
    real = Space([a, Fixed("f", 1), Float("l", 1, 2, log=True)])
    assert real.continuous
    x = np.array([[0.1234567, -2.0]])
    assert real.snap(x) is x


def test_a_whole_number_on_a_log_scale_lies_in_the_middle_of_its_bin() -> None:
    space = Space([Int("n", 1, 100, log=True)])
    low, high = math.log(0.5), math.log(100.5)
    for n in (1, 10, 100):
        middle = 0.5 * (math.log(n - 0.5) + math.log(n + 0.5))
        assert space.encode({"n": n})[0] == pytest.approx(2 * (middle - low) / (high - low) - 1, abs=1e-14)
    assert Space([Float("a", -8.0, 4.0)]).encode({"a": -8.0 - 4e-9}).tolist() == [-1.0]


def test_rounding_errors_are_forgiven_to_a_billionth_of_the_size() -> None:
    for c, upper, size in ((0.1, 0.0, 1.0), (0.1, 5.0, 5.0), (-7.0, 5.0, 7.0)):
        space = Space([Float("a", -100, 100)], [LinearConstraint({"a": c}, upper)])
        for share, holds in ((0.8, True), (1.2, False)):
            assert space.feasible({"a": (upper + share * 1e-9 * size) / c}) is holds
    for low, high in ((-8.0, 1.0), (1.0, 8.0)):
        space = Space([Float("a", 0, 1), Fidelity("level", low, high)])
        for off, at in ((0.0, True), (0.8, True), (1.2, False)):
            assert space.at_target({"a": 0.5, "level": high - off * 8e-9}) is at
            assert space.at_target({"a": 0.5, "level": high + off * 8e-9}) is at
    assert Space([Float("a", 0, 1)]).at_target({"a": 0.5})


def test_values_that_no_number_can_be_are_refused() -> None:
    space = Space([Float("a", 0, 1), Int("n", -4, 9)])
    for wrong in ({"a": 10**400, "n": 1}, {"a": None, "n": 1}, {"a": 0.5, "n": 10}, {"a": 0.5, "n": -5}):
        with pytest.raises(InputError):
            space.check(wrong)
    space.check({"a": 0, "n": -4.0})
    space.check({"a": 1, "n": 9.0})


def test_of_many_rules_that_no_point_satisfies_four_are_named() -> None:
    rules = [LinearConstraint({"a": -1.0}, -2.0 - k) for k in range(6)]
    with pytest.raises(InputError, match=r"<= -2\.0; .* <= -5\.0\. Loosen"):
        Space([Float("a", 0.0, 1.0)], rules)
