"""HeSBO: the paper's three embeddings of Branin, constraints as on Gramacy, and the laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import differential_evolution

import alebo
from alebo.geometry import hesbo
from alebo.methods import HeSBO

from . import laws

METHOD = HeSBO(dim=3, initial=5)


def branin(u: np.ndarray) -> float:
    """On the cube [-1, 1]^2."""
    a, b = -5.0 + 7.5 * (u[0] + 1.0), 7.5 * (u[1] + 1.0)
    bowl = b - 5.1 / (4 * math.pi**2) * a**2 + 5 / math.pi * a - 6
    return bowl**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10


def kind(seed: int) -> str:
    """Which of the three ways this embedding maps parameters 10 and 70."""
    A = hesbo(100, 4, seed).A[[10, 70]]
    if not np.array_equal(np.abs(A[0]), np.abs(A[1])):
        return "apart"
    return "equal" if np.array_equal(A[0], A[1]) else "opposite"


@pytest.mark.parametrize(("wanted", "best"), [("apart", 0.398), ("opposite", 0.925), ("equal", 17.18)])
def test_the_three_embeddings_of_branin(wanted, best):
    """Supplement, "HeSBO Embeddings": the best value that each of the three can reach."""
    seed = next(s for s in range(200) if kind(s) == wanted)
    embedding = hesbo(100, 4, seed)
    found = differential_evolution(
        lambda y: branin(embedding.up(y)[[10, 70]]), [(-1.0, 1.0)] * 4, seed=1, tol=1e-10, popsize=20
    )
    assert found.fun == pytest.approx(best, abs=0.006 if best > 1 else 0.0006)


def test_how_often_parameters_stay_apart():
    """With d=2 and d_e=4 the two fall together with chance 1/4, half of it with opposite signs (P_opt 0.75)."""
    kinds = [kind(s) for s in range(400)]
    assert kinds.count("apart") / 400 == pytest.approx(0.75, abs=0.07)
    assert kinds.count("opposite") / 400 == pytest.approx(0.125, abs=0.05)


def test_every_parameter_is_plus_or_minus_one_coordinate():
    opt = laws.run(METHOD, 12)
    for trial in opt.history:
        assert np.isin(np.abs(trial.x).round(12), np.abs(trial.y).round(12)).all()


def test_it_finds_a_bowl_in_its_embedding():
    opt = laws.run(HeSBO(dim=4, initial=5), 25, seed=1)
    A = hesbo(laws.D, 4, alebo._seeds.derive(1, "hesbo")).A
    assert not np.array_equal(np.abs(A[3]), np.abs(A[7]))  # this seed keeps the two active parameters apart
    assert opt.best().outcomes["loss"].mean < -0.03  # the minimum is -0.037


def test_constraints_are_learned():
    """A line through a disc: the best feasible value is at the constraint, which must be found and kept."""
    goals = [alebo.Minimize("loss"), alebo.AtLeast("margin", 0.0)]
    opt = laws.start(HeSBO(dim=4, initial=5), goals=goals, seed=1)
    for _ in range(25):
        (trial,) = opt.ask()
        x = trial.x
        opt.tell(trial.number, {"loss": x[3] + x[7], "margin": x[3] + 2 * x[7] + 1.0})
    best = opt.best()
    assert best.outcomes["margin"].mean >= 0.0
    assert best.outcomes["loss"].mean < -0.93  # (-1, 0) gives -1
    late = [t.outcomes["margin"].mean > -0.2 for t in opt.history[10:]]
    assert np.mean(late) > 0.8


def test_nothing_feasible_yet_draws_the_search_to_where_it_nearly_is():
    goals = [alebo.Minimize("loss"), alebo.AtMost("g", 0.0)]
    opt = laws.start(HeSBO(dim=2, initial=3), goals=goals)
    for _ in range(10):
        (trial,) = opt.ask()
        opt.tell(trial.number, {"loss": 1.0, "g": 0.1 + float(np.square(trial.y).sum())})
    assert min(np.abs(t.y).max() for t in opt.history) < 0.2


def test_the_laws():
    laws.obeys(METHOD, steps=10, model_from=7)
    laws.leaves_failures(METHOD, steps=8)
    laws.takes_told_points(METHOD, steps=7)
    laws.is_plain_data(METHOD)
    laws.keeps_a_batch_apart(METHOD, steps=7)


def test_sizes_are_checked():
    with pytest.raises(alebo.InputError, match="dim"):
        laws.start(HeSBO(dim=13))
    with pytest.raises(alebo.InputError, match="initial"):
        HeSBO(initial=0)
    with pytest.raises(alebo.InputError, match="whole"):
        HeSBO(dim=2.5)  # type: ignore[arg-type]
