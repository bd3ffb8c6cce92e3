"""The parts of the search for the largest acquisition by their definition: picks, near points, boxes, costs of mixtures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from alebo.acquisition import LogEI, PerCost, climb_in_box, evaluate, maximise_in_box, maximize, value_and_gradient
from alebo.acquisition._faces import barrier
from alebo.acquisition.maximize import _near, _pick, _pick_by_value, _polish, _refine, perturbed, qmc_points
from alebo.acquisition.wrappers import PerLook, at_target
from alebo.geometry import Polytope
from alebo.models import Mixture, fit_ard
from alebo.models.priors import dense, sparse

RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.random((14, 2)))
MODEL = fit_ard(X, torch.sin(5.0 * X[:, 0]) - X[:, 1], dense(2))
COST = Mixture(tuple(fit_ard(X, 3.0 + 2.0 * X[:, 1], prior) for prior in (dense(2), sparse(1.0))))
SQUARE = Polytope(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4))


def hill(at: list[float], sharp: float = 1.0) -> Any:
    def value(Z: torch.Tensor) -> torch.Tensor:
        return -sharp * ((Z - torch.tensor(at)) ** 2).sum((-1, -2))

    return value


# -- picks -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e6])
def test_picks_by_value_do_not_depend_on_the_unit_or_the_zero_of_the_values(unit: float) -> None:
    score = RNG.standard_normal(60)
    for seed in range(5):
        plain = _pick_by_value(score, 8, np.random.default_rng(seed))
        scaled = _pick_by_value(unit * score, 8, np.random.default_rng(seed))
        moved = _pick_by_value(score + 1000.0, 8, np.random.default_rng(seed))
        assert plain.tolist() == scaled.tolist() == moved.tolist()
    worst = np.append(score, [maximize.WORTHLESS] * 5)
    for seed in range(5):
        assert not set(_pick_by_value(worst, 8, np.random.default_rng(seed)).tolist()) & set(range(60, 65))


def test_equal_values_are_all_as_good_to_begin_from() -> None:
    seen = {int(i) for s in range(60) for i in _pick_by_value(np.zeros(12), 4, np.random.default_rng(s))[2:]}
    assert seen == set(range(2, 12))


def test_picks_by_rank_are_of_the_best_quarter_and_prefer_the_better() -> None:
    values = np.arange(80.0)[::-1].copy()  # the first is the best
    rng = np.random.default_rng(0)
    drawn = np.array([_pick(values, 5, rng) for _ in range(400)])
    assert (drawn[:, 0] == 0).all()
    assert drawn.max() == 19
    assert all(len(set(row)) == 5 for row in drawn.tolist())
    first = drawn[:, 1:].ravel()
    assert (first <= 6).sum() > 1.5 * (first > 6).sum()  # a weight of exp(-6 rank / 20)
    assert _pick(values[:3], 5, rng).shape == (3,)
    assert sorted(_pick(values[:8], 6, rng).tolist()) == [0, 1, 2, 3, 4, 5]  # no fewer than asked for


# -- near points -----------------------------------------------------------------------------------------------------------


def test_near_points_are_at_distances_of_every_size_and_inside() -> None:
    wide = Polytope(SQUARE.A, 100.0 * np.ones(4))
    near = _near(wide, np.zeros((1, 2)), 800, np.random.default_rng(0))
    away = np.log10(np.linalg.norm(near, axis=1))
    assert -2.0 <= away.min() < -1.95
    assert 0.25 < away.max() <= 0.3
    assert away.mean() == pytest.approx(-0.85, abs=0.1)  # uniform: four standard errors of 800
    angles = np.arctan2(near[:, 1], near[:, 0])
    assert np.histogram(angles, bins=8, range=(-np.pi, np.pi))[0].min() > 60
    edge = np.array([[0.999, 0.0]])
    inside = _near(SQUARE, edge, 400, np.random.default_rng(1))
    assert SQUARE.contains(inside).all()
    assert (inside[:, 0] < 1.0).all()


def test_the_polish_sees_the_nearest_six_faces_of_each_dimension(monkeypatch: pytest.MonkeyPatch) -> None:
    angles = np.linspace(0.0, 2.0 * np.pi, 40, endpoint=False)
    domain = Polytope(np.column_stack([np.cos(angles), np.sin(angles)]), np.ones(40))
    seen: dict[str, Any] = {}
    minimise = maximize.minimize

    def spied(f: Any, y: np.ndarray, **how: Any) -> Any:
        seen.update(how, slack=how["constraints"]["fun"](y), slope=how["constraints"]["jac"](y))
        return minimise(f, y, **how)

    monkeypatch.setattr(maximize, "minimize", spied)
    start = np.array([0.7, 0.2])
    _polish(hill([2.0, 0.5]), domain, start, -10.0, steps=7)
    np.testing.assert_allclose(np.sort(seen["slack"]), np.sort(domain.slack(start))[:12])
    assert seen["slope"].shape == (12, 2)
    assert (seen["method"], seen["options"]["maxiter"]) == ("SLSQP", 7)


def test_perturbed_copies_differ_somewhere_and_only_inside_the_box() -> None:
    centre, low, high = np.full(200, 5.0), np.zeros(200), np.ones(200)
    for quasi in (False, True):
        made = perturbed(centre, low, high, 300, np.random.default_rng(2), quasi=quasi)
        changed = made != 5.0
        assert changed.any(axis=1).all()
        assert changed.sum(1).mean() == pytest.approx(20.0, abs=1.0)  # four standard errors
        assert ((made[changed] >= 0.0) & (made[changed] <= 1.0)).all()
        assert made[changed].mean() == pytest.approx(0.5, abs=0.02)
    few = perturbed(centre[:3], low[:3], high[:3], 50, np.random.default_rng(2))
    assert (few != 5.0).all()  # no more than twenty: all of them
    assert qmc_points(3, 0, 1).shape == (0, 3)
    assert [qmc_points(3, n, 1).shape for n in (1, 5, 8)] == [(1, 3), (5, 3), (8, 3)]
    assert qmc_points(22000, 2, 1).shape == (2, 22000)  # beyond the sequence


# -- a box -----------------------------------------------------------------------------------------------------------------


def test_a_box_is_searched_with_so_many_points_starts_and_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, Any]] = []
    refine, look = maximize._refine, maximize.evaluate

    def refined(acquisition: Any, begin: np.ndarray, low: Any, high: Any, iterations: int) -> np.ndarray:
        calls.append(("refined", (len(begin), iterations)))
        return refine(acquisition, begin, low, high, iterations)

    def evaluated(acquisition: Any, points: np.ndarray) -> np.ndarray:
        calls.append(("evaluated", len(points)))
        return look(acquisition, points)

    monkeypatch.setattr(maximize, "_refine", refined)
    monkeypatch.setattr(maximize, "evaluate", evaluated)
    extra = np.full((3, 2), 9.0)  # clipped
    point, value = maximise_in_box(hill([0.3, 2.0]), -np.ones(2), np.ones(2), seed=0, extra=extra)
    assert calls == [
        ("evaluated", 1024 + 3),
        ("refined", (6, 100)),
        ("evaluated", 7),
        ("refined", (1, 50)),
        ("evaluated", 1),
    ]
    np.testing.assert_allclose(point, [0.3, 1.0], atol=1e-5)
    assert value == pytest.approx(-1.0, abs=1e-6)


def test_a_climb_never_ends_below_its_start_and_stays_in_the_box() -> None:
    begin = np.array([[0.9, 0.9], [-3.0, 0.2]])
    point, value = climb_in_box(hill([-0.5, 0.25]), begin, -np.ones(2), np.ones(2), iterations=30)
    np.testing.assert_allclose(point, [-0.5, 0.25], atol=1e-5)
    assert value == pytest.approx(0.0, abs=1e-9)

    def broken(Z: torch.Tensor) -> torch.Tensor:  # its gradient points the wrong way
        good = hill([0.0, 0.0])(Z)
        return 2.0 * good.detach() - good

    point, value = climb_in_box(broken, begin, -np.ones(2), np.ones(2), iterations=30)
    start = np.clip(begin, -1.0, 1.0)
    assert value >= max(evaluate(broken, start)) - 1e-12
    ends = _refine(hill([5.0, -5.0]), np.zeros((2, 2)), -np.ones(2), np.ones(2), 20)
    np.testing.assert_allclose(ends, [[1.0, -1.0]] * 2)


# -- cost and looks --------------------------------------------------------------------------------------------------------


def test_a_cost_by_several_models_is_their_average() -> None:
    new = torch.from_numpy(RNG.random((5, 2)))
    wrapped = PerCost(LogEI(MODEL), COST)
    plain, _ = value_and_gradient(LogEI(MODEL), new)
    value, gradient = value_and_gradient(wrapped, new)
    each = torch.stack([m.shift + m.scale * m.marginals(new).mean[0] for m in COST.models])
    torch.testing.assert_close(value, plain - each.mean(0))
    torch.testing.assert_close(wrapped(new.unsqueeze(-2)), value)
    for i, j in ((0, 0), (2, 1), (4, 1)):
        step = np.zeros((5, 2))
        step[i, j] = 1e-5
        ends = [evaluate(wrapped, new.numpy() + sign * step)[i] for sign in (1, -1)]
        assert float(gradient[i, j]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-3, abs=1e-5)


def test_a_look_is_worth_its_correlation_for_its_cost() -> None:
    class Half:
        def correlation(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
            return -0.5 * torch.ones_like(A[..., 0]) + 0.0 * B[..., 0]  # its sign plays no part

    class None_(Half):
        def correlation(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
            return 0.0 * A[..., 0]

    new = torch.from_numpy(RNG.random((4, 2)))
    inner = hill([0.2, 0.4])
    look = PerLook(inner, [Half(), Half()], lambda Z: 0.25 * Z[..., 0, 0])
    want = inner(at_target(new.unsqueeze(-2))) + np.log(0.5) - 0.25 * new[:, 0]
    torch.testing.assert_close(look(new.unsqueeze(-2)), want)
    value, gradient = look.with_gradient(new)
    torch.testing.assert_close(value, want)
    torch.testing.assert_close(gradient[:, 0], torch.full((4,), -0.25, dtype=torch.double))
    torch.testing.assert_close(gradient[:, 1], -2.0 * (new[:, 1] - 0.4))
    mixed = PerLook(inner, [Half(), None_()], lambda Z: 0.0 * Z[..., 0, 0])  # the geometric mean, with a floor
    torch.testing.assert_close(
        mixed(new.unsqueeze(-2)) - inner(at_target(new.unsqueeze(-2))),
        torch.full((4,), 0.5 * (np.log(0.5) + np.log(1e-6)), dtype=torch.double),
    )


@pytest.mark.parametrize("paired", [True, False])
def test_the_reach_of_a_step_is_where_it_first_meets_a_face(paired: bool) -> None:
    """Also of short steps, of steps along a face, and of none; by the plainest computation."""
    T = np.array([[0.6, 0.2], [-0.3, 0.5], [0.4, -0.7]])
    domain = Polytope(np.vstack([T, -T]), np.linspace(0.5, 1.5, 6), pairs=3)
    rng = np.random.default_rng(0)
    W = domain.pull_inside(rng.normal(size=(12, 2))) * 0.9
    step = rng.normal(size=(12, 2)) * np.logspace(-3, 1, 12)[:, None]
    step[3], step[4] = 0.0, 0.01 * np.array([domain.A[0][1], -domain.A[0][0]])
    found = barrier(domain, torch.from_numpy(W), paired=paired).reach(torch.from_numpy(step))
    for w, s, t in zip(W, step, found.tolist(), strict=True):
        hits = [(b - a @ w) / (a @ s) for a, b in zip(domain.A, domain.b, strict=True) if a @ s > 1e-15]
        assert t == pytest.approx(min(hits, default=math.inf))
