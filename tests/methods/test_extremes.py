"""Every finite outcome can be used by every method: the largest doubles, the smallest, and all mixed."""

from __future__ import annotations

import numpy as np
import pytest

import alebo
from alebo.methods import METHODS, build
from tests.conftest import require_module

QUICK = {
    "smac": {"challengers": 20, "searches": 1, "plateau": 1, "trees": 2, "initial": 3},
    "saasbo": {"initial": 6, "warmup": 4, "samples": 4, "thinning": 2},
}
MODULES = {"smac": ("smac", "smac"), "cmaes": ("cma", "cma"), "saasbo": ("numpyro", "saas")}  # and their extras
INITIAL = {
    "alebo",
    "bo",
    "saas-map",
    "turbo",
    "baxus",
    "hesbo",
    "rembo",
    "rembo-phi",
    "rembo-gamma",
    "add-gp-ucb",
    "ebo",
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "saasbo" else n for n in METHODS])
@pytest.mark.parametrize("extreme", [1.797e308, -1.797e308, 1e-310])
def test_a_method_goes_on_after_extreme_outcomes(name: str, extreme: float) -> None:
    if name in MODULES:
        require_module(*MODULES[name])
    settings = {"initial": 4} if name in INITIAL else QUICK.get(name, {})
    space = alebo.Space.from_bounds([(-1.0, 1.0)] * 8)
    opt = alebo.Optimizer(space, alebo.Minimize("loss"), method=build(name, **settings), seed=1, budget=12)
    for i in range(8):
        (trial,) = opt.ask()
        assert np.abs(trial.x).max() <= 1.0
        opt.tell(trial.number, extreme if i % 3 == 2 else float((trial.x[:3] ** 2).sum()))
    assert opt.best().outcomes["loss"].mean == min(t.outcomes["loss"].mean for t in opt.history)
