"""CMA-ES: replayed from the history it is the library's own run, point for point."""

from __future__ import annotations

import time

import numpy as np
import pytest

import alebo
from alebo._seeds import derive
from alebo.methods.cmaes import CMAES
from tests.conftest import require_module

GOAL = alebo.Minimize("f")


@pytest.fixture(autouse=True)
def _library() -> None:
    require_module("cma", "cma")


def bowl(x: np.ndarray) -> float:
    return float(np.sum((x - 0.6) ** 2 * np.arange(1, len(x) + 1)))


def run(opt: alebo.Optimizer, n: int) -> np.ndarray:
    for _ in range(n):
        t = opt.ask()[0]
        opt.tell(t.number, bowl(t.x))
    return np.array([t.x for t in opt.history])


def test_replayed_it_equals_a_plain_run_of_the_library() -> None:
    import cma

    D, seed = 6, 11
    X = run(alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * D), GOAL, method=CMAES(), seed=seed), 75)
    options = {"bounds": [-1, 1], "seed": derive(seed, "cmaes") % 2**32, "verbose": -9}
    state = np.random.get_state()  # noqa: NPY002  (the plain run seeds the global stream)
    try:
        es = cma.CMAEvolutionStrategy(np.zeros(D), 0.5, options)
        plain: list[np.ndarray] = []
        while len(plain) < 75:
            generation = es.ask()
            es.tell(generation, [bowl(np.asarray(x)) for x in generation])
            plain += [np.asarray(x) for x in generation]
    finally:
        np.random.set_state(state)  # noqa: NPY002
    assert np.array_equal(X, np.array(plain[:75]))


def test_a_generation_in_batches_is_the_same_generation() -> None:
    space = alebo.Space.from_bounds([(0, 1)] * 4)
    one = run(alebo.Optimizer(space, GOAL, method=CMAES(population=6), seed=5), 24)
    opt = alebo.Optimizer(space, GOAL, method=CMAES(population=6), seed=5)
    for _ in range(8):
        for t in reversed(opt.ask(3)):  # told in another order
            opt.tell(t.number, bowl(t.x))
    assert np.array_equal(one, np.array([t.x for t in opt.history]))


def test_points_beyond_a_pending_generation_do_not_disturb_it() -> None:
    space = alebo.Space.from_bounds([(0, 1)] * 4)
    calm, busy = (alebo.Optimizer(space, GOAL, method=CMAES(population=4), seed=5) for _ in range(2))
    asked = busy.ask(6)
    assert [t.note.get("member") for t in asked] == [0, 1, 2, 3, None, None]
    assert all(np.all(np.abs(t.x) <= 1) for t in asked)
    for t in asked:
        busy.tell(t.number, bowl(t.x))
    run(calm, 4)
    assert np.array_equal(calm.ask()[0].x, busy.ask()[0].x)


def test_a_failed_member_ranks_last() -> None:
    space = alebo.Space.from_bounds([(0, 1)] * 4)
    failed, bad = (alebo.Optimizer(space, GOAL, method=CMAES(population=4), seed=5) for _ in range(2))
    for i in range(4):
        a, b = failed.ask()[0], bad.ask()[0]
        if i == 2:
            failed.fail(a.number)
            bad.tell(b.number, 1e6)
        else:
            failed.tell(a.number, bowl(a.x))
            bad.tell(b.number, bowl(b.x))
    assert np.array_equal(failed.ask()[0].x, bad.ask()[0].x)


def test_it_resumes_as_if_never_stopped(tmp_path) -> None:
    opt = alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * 8), GOAL, method=CMAES(), seed=1)
    run(opt, 17)
    opt.save(tmp_path / "s.json")
    assert np.array_equal(run(alebo.Optimizer.load(tmp_path / "s.json"), 12), run(opt, 12))


def test_replay_is_quick_at_a_thousand_dimensions() -> None:
    opt = alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * 1000), GOAL, method=CMAES(), seed=1)
    for _ in range(4):
        for t in opt.ask(24):
            opt.tell(t.number, bowl(t.x))
    clock = time.process_time()
    opt.ask()
    assert time.process_time() - clock < 3.0  # about 0.2 s on one thread


def test_refusals_have_messages() -> None:
    space = alebo.Space.from_bounds([(0, 1)] * 3)
    with pytest.raises(
        alebo.InputError, match=r"CMA-ES is not defined for outcome constraints.*Methods that are: .*alebo"
    ):
        alebo.Optimizer(space, [GOAL, alebo.AtMost("g", 0)], method=CMAES())
    alebo.Optimizer(space, [GOAL, alebo.AtMost("g", 0)], method=CMAES(infeasible="worst")).ask()
    with pytest.raises(alebo.InputError, match="two coordinates or more"):
        alebo.Optimizer(alebo.Space.from_bounds([(0, 1)]), GOAL, method=CMAES())
    with pytest.raises(alebo.InputError, match="sigma > 0"):
        CMAES(sigma=0.0)
