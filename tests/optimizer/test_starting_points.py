"""Starting points and the callback of `minimize`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import alebo
from alebo import (
    Categorical,
    Float,
    InputError,
    Int,
    Space,
)

from .runs import D, Sobol, refused, sphere


def test_x0_is_evaluated_first_and_known_values_are_not() -> None:
    seen: list[np.ndarray] = []

    def f(x: np.ndarray) -> float:
        seen.append(x.copy())
        return sphere(x)

    start = np.full((2, D), 0.25)
    start[1] = -0.5
    result = alebo.minimize(f, [(-1, 1)] * D, budget=5, x0=start, method=Sobol())
    np.testing.assert_allclose(seen[:2], start, atol=1e-12)
    assert len(seen) == result.nfev == 5
    seen.clear()
    result = alebo.minimize(f, [(-1, 1)] * D, budget=5, x0=start, y0=[1.0, (-2.0, 0.1)], method=Sobol())
    assert len(seen) == 5
    assert len(result.history) == 7
    assert result.fun == -2.0
    one = alebo.minimize(f, [(-1, 1)] * D, budget=2, x0=start[0], y0=[-9], method=Sobol())
    assert one.fun == -9.0
    assert alebo.minimize(f, [(-1, 1)] * D, budget=2, x0=start[0], y0=-9.0, method=Sobol()).fun == -9.0  # type: ignore[arg-type]
    for single in (np.array(-9.0), np.float64(-9.0), np.array([-9.0])):  # what NumPy makes of one number
        assert alebo.minimize(f, [(-1, 1)] * D, budget=2, x0=start[0], y0=single, method=Sobol()).fun == -9.0  # type: ignore[arg-type]


def test_x0_of_a_mixed_space_keeps_its_types() -> None:
    space = Space([Float("a", 0, 1), Categorical("c", [True, "x"]), Int("n", 0, 5)])
    got: list[Any] = []

    def f(p: dict[str, Any]) -> float:
        got.append(dict(p))
        return 1.0

    alebo.minimize(f, space, budget=2, x0=[0.5, True, 3], method=Sobol())
    assert got[0] == {"a": 0.5, "c": True, "n": 3}
    alebo.minimize(f, space, budget=1, x0={"n": 4, "a": 0.5, "c": "x"}, method=Sobol())
    assert got[-1] == {"a": 0.5, "c": "x", "n": 4}


@pytest.mark.parametrize(
    ("x0", "y0", "words"),
    [
        (None, [1.0], ["`y0` belongs to points `x0`"]),
        ([0.1] * (D - 1), None, ["20 values", "(1, 19)"]),
        ([[0.1] * D, [0.2] * 3], None, ["20 values"]),
        ([0.1] * D, [1.0, 2.0], ["belong together", "1 points and 2 outcomes"]),
        ([7.0] * D, None, ["`-1.0 <= x0 <= 1.0`", "7.0"]),
        ([0.1] * D, [math.nan], ["finite", "nan"]),
    ],
)
def test_bad_starting_points(x0: Any, y0: Any, words: list[str]) -> None:
    calls: list[Any] = []
    refused(
        InputError, lambda: alebo.minimize(calls.append, [(-1, 1)] * D, budget=3, x0=x0, y0=y0, method=Sobol()), *words
    )
    assert not calls


def test_callback_sees_every_trial() -> None:
    seen = []
    alebo.minimize(
        sphere,
        [(-1, 1)] * D,
        budget=4,
        method=Sobol(),
        callback=lambda t, opt: seen.append((t.number, len(opt.history))),
    )
    assert seen == [(0, 1), (1, 2), (2, 3), (3, 4)]
