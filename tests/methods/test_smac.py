"""SMAC: the library's ask and tell behind ours, in a mixed space."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import alebo
from alebo.methods.smac import SMAC, _configspace, _configuration, _in_order, _point
from tests.conftest import require_module

GOAL = alebo.Minimize("loss")
SPACE = alebo.Space(
    [
        alebo.Float("rate", 1e-4, 1.0, log=True),
        alebo.Int("layers", 1, 9),
        alebo.Int("width", 1, 512, log=True),
        alebo.Fixed("task", "digits"),
        alebo.Categorical("kind", ["tree", "net", None]),
    ]
)
SMALL = SMAC(trees=4, challengers=20, searches=1, plateau=1, initial=4)


@pytest.fixture(autouse=True)
def _library() -> None:
    require_module("smac", "smac")


def loss(p: dict[str, Any]) -> float:
    return (np.log10(p["rate"]) + 2) ** 2 + abs(p["layers"] - 4) + {"tree": 2.0, "net": 0.0, None: 4.0}[p["kind"]]


def run(opt: alebo.Optimizer, n: int) -> None:
    for _ in range(n):
        t = opt.ask()[0]
        opt.tell(t.number, loss(t.params))


def test_a_point_survives_the_way_to_the_library_and_back() -> None:
    configspace = _configspace(SPACE, 0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = SPACE.snap(rng.uniform(-1, 1, SPACE.dimension))
        config = _configuration(configspace, SPACE, x, SPACE.decode(x))
        back = _point(SPACE, dict(config))
        assert np.allclose(back, x, atol=1e-6)  # the library rounds real values a little
        assert {k: v for k, v in SPACE.decode(back).items() if k != "rate"} == {
            k: v for k, v in SPACE.decode(x).items() if k != "rate"
        }


def test_a_told_configuration_is_the_library_s_own() -> None:
    import ConfigSpace

    configspace, rng = _configspace(SPACE, 0), np.random.default_rng(1)
    a, b = rng.uniform(-1, 1, (2, SPACE.dimension))
    told = _configuration(configspace, SPACE, a, SPACE.decode(a))
    again = _configuration(configspace, SPACE, a, SPACE.decode(a))
    other = _configuration(configspace, SPACE, b, SPACE.decode(b))
    own = ConfigSpace.Configuration(configspace, values=dict(told))
    assert told == again == own
    assert own == told
    assert len({told, again, own}) == 1
    assert told != other
    assert own != other
    assert other not in [told, own]
    assert other not in {told, own}


def test_it_searches_a_mixed_space_and_resumes(tmp_path) -> None:
    opt = alebo.Optimizer(SPACE, GOAL, method=SMALL, seed=1, budget=20)
    run(opt, 5)
    opt.fail(opt.ask()[0].number)
    pending = opt.ask(2)
    opt.save(tmp_path / "s.json")
    again = alebo.Optimizer.load(tmp_path / "s.json")
    a, b = opt.ask(2), again.ask(2)
    assert [t.params for t in a] == [t.params for t in b]
    assert len({t.x.tobytes() for t in [*pending, *a]}) == 4
    for t in [*pending, *a]:
        SPACE.check(t.params)
        opt.tell(t.number, loss(t.params))
    run(opt, 2)
    assert loss(opt.best().params) < loss(opt.history[0].params)


@pytest.mark.parametrize("value", [-5.0, 0.0, 1e12])
def test_a_constant_objective_is_no_trouble_for_the_library_s_logarithm(value: float) -> None:
    opt = alebo.Optimizer(SPACE, GOAL, method=SMALL, seed=0)
    for _ in range(6):
        opt.tell(opt.ask()[0].number, value)
    assert len({repr(t.params) for t in opt.history}) == 6


def test_nothing_is_left_behind(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    opt = alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * 3), GOAL, method=SMALL, seed=1)
    for _ in range(5):
        t = opt.ask()[0]
        opt.tell(t.number, -1.0 - t.x.sum())  # negative objectives are fine
    opt.ask()
    assert list(tmp_path.iterdir()) == []


def test_without_the_library_the_message_says_how_to_get_it(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "smac", None)
    opt = alebo.Optimizer(SPACE, GOAL, method=SMAC(initial=1), seed=0)
    run(opt, 1)
    with pytest.raises(alebo.MissingPartError, match=r'pip install "alebo\[smac\]"'):
        opt.ask()


def test_refusals_have_messages() -> None:
    with pytest.raises(alebo.InputError, match=r"SMAC is not defined for outcome constraints.*Methods that are"):
        alebo.Optimizer(SPACE, [GOAL, alebo.AtMost("t", 1.0)], method=SMAC())
    with pytest.raises(alebo.InputError, match="trees >= 2"):
        SMAC(trees=1)


def test_the_order_of_the_librarys_starting_points_is_that_of_their_values() -> None:
    """The library has them in a set, whose order is another one in every process."""

    class Local:
        def _get_init_points_from_previous_configs(self, points: list[Any]) -> list[Any]:
            return list(reversed(points))

    configspace = _configspace(SPACE, 0)
    configs = [
        _configuration(configspace, SPACE, x, SPACE.decode(x)) for x in np.random.default_rng(0).uniform(-1, 1, (5, 6))
    ]
    local = Local()
    _in_order(local)
    found = local._get_init_points_from_previous_configs(configs)
    assert [c.get_array().tobytes() for c in found] == sorted(c.get_array().tobytes() for c in configs)
