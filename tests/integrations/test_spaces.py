"""Spaces of Optuna and ConfigSpace to ours and back: the same space again, and what cannot be said is refused."""

# ruff: noqa: E402
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import alebo
from alebo.integrations.spaces import from_configspace, from_optuna, to_configspace, to_optuna
from tests.conftest import require_module

require_module("optuna", "study")
import optuna.distributions as od

MIXED = alebo.Space(
    [
        alebo.Float("gain", 0.0, 1.0),
        alebo.Float("lr", 1e-5, 1.0, log=True),
        alebo.Int("layers", 1, 12),
        alebo.Int("width", 8, 512, log=True),
        alebo.Categorical("act", ["relu", "tanh", "gelu"]),
        alebo.Fixed("kind", "a"),
    ]
)


@st.composite
def spaces(draw: st.DrawFn) -> alebo.Space:
    parameters: list[alebo.space.Parameter] = []
    for i in range(draw(st.integers(1, 6))):
        low = draw(st.integers(1, 1000))
        high = low + draw(st.integers(1, 1000))
        log = draw(st.booleans())
        kind = draw(st.sampled_from(["float", "int", "categorical"]))
        if kind == "float":
            parameters.append(alebo.Float(f"p{i}", low / 8, high / 8, log=log))
        elif kind == "int":
            parameters.append(alebo.Int(f"p{i}", low, high, log=log))
        else:
            parameters.append(alebo.Categorical(f"p{i}", [f"c{j}" for j in range(2 + low % 5)]))
    return alebo.Space(parameters)


def by_name(space: alebo.Space) -> alebo.Space:
    """ConfigSpace keeps its parameters in the order of their names."""
    return alebo.Space(sorted(space.parameters, key=lambda p: p.name))


@given(spaces())
def test_there_and_back(space: alebo.Space) -> None:
    assert from_optuna(to_optuna(space)) == space
    require_module("ConfigSpace", "configspace")
    assert from_configspace(to_configspace(space)) == by_name(space)


def test_a_mixed_space() -> None:
    assert from_optuna(to_optuna(MIXED)) == MIXED
    require_module("ConfigSpace", "configspace")
    there = to_configspace(MIXED, seed=0)
    assert from_configspace(there) == by_name(MIXED)
    for sample in there.sample_configuration(20):
        MIXED.check(dict(sample))


def test_a_single_value_is_fixed() -> None:
    space = from_optuna(
        {"a": od.FloatDistribution(1, 1), "b": od.CategoricalDistribution([3]), "c": od.IntDistribution(0, 2)}
    )
    assert space.decode([0.0]) == {"a": 1.0, "b": 3, "c": 1}


def test_steps_of_real_parameters_there_and_back() -> None:
    theirs = {"a": od.FloatDistribution(0, 1, step=0.1), "b": od.FloatDistribution(0, 1)}
    space = from_optuna(theirs)
    assert space.parameters[0] == alebo.Float("a", 0, 1, step=0.1)
    assert to_optuna(space) == theirs


def test_what_cannot_be_said_is_refused() -> None:
    with pytest.raises(alebo.InputError, match="no steps"):
        from_optuna({"a": od.IntDistribution(0, 9, step=3)})
    bound = alebo.Space.from_bounds([(0, 1)] * 2)
    ruled = alebo.Space(bound.parameters, [alebo.LinearConstraint({"x0": 1, "x1": 1}, 1)])
    with pytest.raises(alebo.InputError, match="LinearConstraint"):
        to_optuna(ruled)
    require_module("ConfigSpace", "configspace")
    import ConfigSpace as cs

    with pytest.raises(alebo.InputError, match="LinearConstraint"):
        to_configspace(ruled)
    theirs = cs.ConfigurationSpace({"a": (0.0, 1.0), "b": ["x", "y"]})
    theirs.add(cs.EqualsCondition(theirs["a"], theirs["b"], "x"))
    with pytest.raises(alebo.InputError, match="conditions"):
        from_configspace(theirs)
    normal = cs.ConfigurationSpace()
    normal.add(cs.NormalFloatHyperparameter("a", mu=0, sigma=1, lower=-1, upper=1))
    with pytest.raises(alebo.InputError, match="NormalFloat"):
        from_configspace(normal)


def test_a_category_or_constant_of_configspace() -> None:
    require_module("ConfigSpace", "configspace")
    import ConfigSpace as cs

    theirs = cs.ConfigurationSpace()
    theirs.add(cs.CategoricalHyperparameter("one", ["only"]), cs.Constant("k", 3))
    theirs.add(cs.CategoricalHyperparameter("two", [1, 2]), cs.UniformIntegerHyperparameter("n", 1, 9, log=True))
    ours = from_configspace(theirs)
    assert set(ours.parameters) == {
        alebo.Fixed("one", "only"),
        alebo.Fixed("k", 3),
        alebo.Categorical("two", [1, 2]),
        alebo.Int("n", 1, 9, log=True),
    }
    assert all(type(c) is int for p in ours.parameters if isinstance(p, alebo.Categorical) for c in p.choices)
