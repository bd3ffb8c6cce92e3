"""Plain BO: the same model as BoTorch's default, found by our own fit; proposals in bounds that improve."""

from __future__ import annotations

import numpy as np
import pytest

import alebo
from alebo.methods.bo import BO

GOAL = alebo.Minimize("f")


def wave(x: np.ndarray) -> float:
    return float((x[1] - 0.7) ** 2 + (x[4] - 0.2) ** 2)


def run(opt: alebo.Optimizer, n: int, q: int = 1) -> np.ndarray:
    for _ in range(n):
        for t in opt.ask(q):
            assert np.all(np.abs(t.x) <= 1)
            opt.tell(t.number, wave(np.array(list(t.params.values()))))
    return np.array([t.x for t in opt.history])


def test_it_finds_a_minimum_among_twenty_parameters() -> None:
    opt = alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * 20), GOAL, method=BO(initial=10), seed=0)
    run(opt, 28)
    assert opt.best().outcomes["f"].mean < 0.02  # random search of this size: about 0.05


def test_a_batch_does_not_repeat_itself() -> None:
    opt = alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * 6), GOAL, method=BO(initial=6), seed=0)
    run(opt, 6)
    batch = opt.ask(3) + opt.ask(1)
    P = np.array([t.x for t in batch])
    gaps = np.linalg.norm(P[:, None] - P[None], axis=2) + 9 * np.eye(4)
    assert gaps.min() > 1e-3


def test_it_resumes_as_if_never_stopped(tmp_path) -> None:
    opt = alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * 8), GOAL, method=BO(initial=5), seed=4)
    run(opt, 7)
    opt.fail(opt.ask()[0].number)
    opt.save(tmp_path / "s.json")
    assert np.array_equal(run(alebo.Optimizer.load(tmp_path / "s.json"), 3), run(opt, 3))


def test_the_centre_can_come_first_and_the_rest_stays_as_it_was() -> None:
    space = alebo.Space.from_bounds([(0, 1)] * 6)
    first = run(alebo.Optimizer(space, GOAL, method=BO(initial=6, centre=True), seed=2), 6)
    plain = run(alebo.Optimizer(space, GOAL, method=BO(initial=6), seed=2), 6)
    assert np.array_equal(first[0], np.zeros(6))
    assert np.array_equal(first[1:], plain[:5])


def test_fits_start_where_the_last_ones_ended() -> None:
    opt = alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * 8), GOAL, method=BO(initial=5), seed=4)
    run(opt, 8)
    notes = [t.note for t in opt.history]
    assert all("bo fit" not in note for note in notes[:5])
    (memory,) = notes[7]["bo fit"].values()
    assert len(memory) <= 3 + 2 * 8
    assert all(isinstance(v, float) for v in memory)


@pytest.mark.parametrize("extreme", [1e300, 1.797e308, -1.797e308])
def test_an_extreme_outcome_is_used_and_the_note_says_so(extreme: float) -> None:
    opt = alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * 6), GOAL, method=BO(initial=6), seed=4)
    for i in range(10):
        t = opt.ask()[0]
        opt.tell(t.number, extreme if i == 3 else wave(np.array(list(t.params.values()))))
    assert opt.history[9].note["compressed"] == ["f"]
    X = np.array([t.x for t in opt.history])
    assert np.isfinite(X).all()
    assert len(np.unique(X.round(6), axis=0)) == 10


def test_constraints_are_modelled_and_noise_is_seen_through() -> None:
    space = alebo.Space.from_bounds([(0, 1)] * 3)
    opt = alebo.Optimizer(space, [GOAL, alebo.AtLeast("g", 0.5)], method=BO(initial=8), seed=1)
    for _ in range(20):
        t = opt.ask()[0]
        u = np.array(list(t.params.values()))
        opt.tell(t.number, {"f": (u.sum(), 0.01), "g": (u[0], 0.01)})
    best = opt.best()
    assert best.note["chosen_by"] == "posterior mean"
    assert 0.45 <= best.params["x0"] <= 0.75
    assert best.params["x1"] + best.params["x2"] < 0.3


def test_nothing_feasible_yet_is_searched_for() -> None:
    space = alebo.Space.from_bounds([(0, 1)] * 3)
    opt = alebo.Optimizer(space, [GOAL, alebo.AtMost("g", -0.9)], method=BO(initial=4), seed=1)
    for _ in range(14):
        t = opt.ask()[0]
        opt.tell(t.number, {"f": 0.0, "g": -t.params["x2"]})
    assert opt.best().params["x2"] >= 0.9


def test_refusals_have_messages() -> None:
    with pytest.raises(alebo.InputError, match=r"Plain BO is not defined for several objectives.*alebo"):
        alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * 3), [GOAL, alebo.Minimize("h")], method=BO())
    with pytest.raises(alebo.InputError, match="initial >= 2"):
        BO(initial=0)
