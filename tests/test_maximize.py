"""Where an acquisition is largest: each step of the search in a polytope and in a box, against known answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from alebo.acquisition import _faces, maximize
from alebo.acquisition._climb import _bfgs, climb
from alebo.acquisition.maximize import (
    _near,
    _pick,
    _pick_by_value,
    _polish,
    _refine,
    _unit_points,
    candidates,
    climb_in_box,
    evaluate,
    maximise_in_box,
    perturbed,
    propose,
    qmc_points,
    scatter,
)
from alebo.geometry import Polytope, hypersphere, polytope

BOX = Polytope(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4))  # [-1, 1]^2
SHIFTED = Polytope(np.vstack([np.eye(2), -np.eye(2)]), np.array([6.0, 6.0, -4.0, -4.0]))  # [4, 6]^2


class Bowl(torch.nn.Module):
    """-|x - top|^2 with curvatures; counts how often it was asked."""

    def __init__(self, top: list[float], steep: tuple[float, ...] = (1.0, 1.0)) -> None:
        super().__init__()
        self.top, self.steep = torch.tensor(top).double(), torch.tensor(steep).double()
        self.calls, self.most, self.rows = 0, 0, 0

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.most = max(self.most, X.numel() // X.shape[-1])
        self.rows += X.numel() // X.shape[-1]
        return -(self.steep * (X.squeeze(-2) - self.top) ** 2).sum(-1)


# -- in a polytope -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "top", "best"),
    [
        (BOX, [0.3, -0.2], [0.3, -0.2]),
        (BOX, [3.0, 0.5], [1.0, 0.5]),
        (BOX, [3.0, -4.0], [1.0, -1.0]),
        (SHIFTED, [0.0, 5.5], [4.0, 5.5]),
    ],
)
def test_the_climb_ends_at_the_top_or_on_the_wall(domain: Polytope, top: list[float], best: list[float]) -> None:
    starts = torch.from_numpy(domain.sample(5, 0))
    ends, values = climb(Bowl(top), domain, starts)
    np.testing.assert_allclose(ends, np.tile(best, (5, 1)), atol=3e-3)
    assert domain.slack(ends).min() >= -1e-12
    np.testing.assert_allclose(values, evaluate(Bowl(top), ends), atol=1e-9)


def test_newton_needs_few_steps_where_curvatures_differ() -> None:
    """Quasi-Newton with the barrier's exact Hessian: a narrow valley is no trouble."""
    ends, _ = climb(Bowl([0.3, -0.2], (500.0, 1.0)), BOX, torch.tensor([[-0.8, 0.9]]).double(), steps=12)
    np.testing.assert_allclose(ends[0], [0.3, -0.2], atol=2e-3)


def test_a_step_that_does_not_gain_is_shortened_and_never_taken() -> None:
    """A narrow peak far from where its slope points: the value never falls below that of the start."""

    class Ridge(torch.nn.Module):
        def forward(self, X: torch.Tensor) -> torch.Tensor:
            x = X.squeeze(-2)
            return torch.sin(9.0 * x[..., 0]) - 0.1 * x[..., 1] ** 2

    starts = torch.from_numpy(np.column_stack([np.linspace(-0.9, 0.9, 13), np.full(13, 0.5)]))
    inside = BOX.centre + 0.995 * (starts.numpy() - BOX.centre)
    _, values = climb(Ridge(), BOX, starts)
    assert (values >= evaluate(Ridge(), inside) - 1e-3).all()
    assert (values > 0.9).sum() >= 10


def test_a_flat_or_worthless_acquisition_leaves_the_points_where_they_are() -> None:
    for value in (0.0, float("nan")):
        ends, values = climb(lambda X, v=value: X.sum((-1, -2)) * 0.0 + v, BOX, torch.tensor([[0.5, 0.2]]).double())
        np.testing.assert_allclose(ends, [[0.5 * 0.995, 0.2 * 0.995]], atol=0.5)
        assert np.isfinite(values).all()


def test_many_faces_are_climbed_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = hypersphere(40, 3, 0).domain
    start = torch.from_numpy(domain.sample(4, 1))
    bowl = Bowl([0.2, -0.1, 0.3], (1.0, 2.0, 3.0))
    few = climb(bowl, domain, start)[0]
    monkeypatch.setattr(_faces, "MANY_FACES", 10)
    np.testing.assert_allclose(climb(bowl, domain, start)[0], few, atol=1e-9)


@pytest.mark.parametrize(
    ("domain", "top", "best"),
    [
        (BOX, [0.3, -0.2], [0.3, -0.2]),
        (BOX, [3.0, 0.5], [1.0, 0.5]),
        (BOX, [3.0, -4.0], [1.0, -1.0]),
        (SHIFTED, [0.0, 5.5], [4.0, 5.5]),
    ],
)
@pytest.mark.parametrize("pairs", [0, 2])
def test_the_climb_among_near_faces_ends_there_too(
    domain: Polytope, top: list[float], best: list[float], pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polytope, "MANY", 3)
    same = Polytope(domain.A, domain.b, pairs)
    ends, values = climb(Bowl(top), same, torch.from_numpy(domain.sample(5, 0)))
    np.testing.assert_allclose(ends, np.tile(best, (5, 1)), atol=3e-3)
    assert domain.slack(ends).min() >= -1e-12
    np.testing.assert_allclose(values, evaluate(Bowl(top), ends), atol=1e-9)


def test_the_barrier_of_near_faces_has_the_derivatives_it_says_and_no_step_crosses_a_face() -> None:
    domain = hypersphere(6000, 4, 0).orthonormal().domain
    assert domain.many
    Y = domain.sample(6, 1)
    Y *= 0.97 / np.linalg.norm(Y, axis=1, keepdims=True)  # a unit ball fits inside
    faces = _faces.barrier(domain, torch.from_numpy(Y))
    assert isinstance(faces, _faces.NearFaces)
    assert all(0 < len(near.u) < 1500 for near in faces.near)
    slope, bend = faces.derivatives(0.5)
    h = 1e-6
    for j in range(4):
        ends = [_faces.barrier(domain, torch.from_numpy(Y + s * h * np.eye(4)[j])) for s in (1, -1)]
        change = 0.5 * (ends[0].value() - ends[1].value()) / (2 * h)
        torch.testing.assert_close(slope[:, j], change, rtol=1e-4, atol=1e-6)
        change = (ends[0].derivatives(0.5)[0] - ends[1].derivatives(0.5)[0]) / (2 * h)
        torch.testing.assert_close(bend[:, j], change, rtol=1e-4, atol=1e-5)
    step = torch.from_numpy(5.0 * np.random.default_rng(0).standard_normal((6, 4)))
    reach = faces.reach(step)
    torch.testing.assert_close(reach, torch.from_numpy(domain.ray(Y, step.numpy())[1]))
    trial = torch.from_numpy(Y) + 0.5 * reach[:, None] * step
    torch.testing.assert_close(faces.value_at(trial, 0.5 * reach), _faces.barrier(domain, trial).value())
    faces.move(trial)
    torch.testing.assert_close(faces.derivatives(1.0), _faces.barrier(domain, trial).derivatives(1.0))
    assert torch.isinf(faces.reach(1e-9 * step)).all()  # a tiny step meets no face


def test_of_very_many_faces_proposals_are_inside_and_no_worse() -> None:
    domain = hypersphere(10_000, 6, 0).orthonormal().domain
    bowl = Bowl([3.0, 0.5, 0.0, -1.0, 0.2, 0.0], (1.0, 2.0, 3.0, 1.0, 1.0, 1.0))
    points, values = candidates(bowl, domain, 0, raw=64, starts=4)
    assert domain.slack(points).min() >= -1e-12
    few = Polytope(domain.A[:8000], domain.b[:8000])  # all faces of a part of the cube: the other climb
    assert not few.many
    assert values[0] <= candidates(bowl, few, 0, raw=64, starts=4)[1][0] + 1e-6  # a larger polytope
    random = domain.sample(2000, 1)
    assert values[0] > evaluate(bowl, random).max()
    np.testing.assert_allclose(values, evaluate(bowl, points), atol=1e-9)


@given(st.integers(0, 2**32))
def test_the_update_satisfies_the_secant_equation_and_stays_positive(seed: int) -> None:
    """BFGS: H' s = y where the curvature along the step is large enough; damped (Powell) where it is not."""
    rng = np.random.default_rng(seed)
    L = rng.standard_normal((1, 3, 3))
    H = torch.from_numpy(L @ L.transpose(0, 2, 1) + np.eye(3))
    s, y = (torch.from_numpy(rng.standard_normal((1, 3))) for _ in range(2))
    made = _bfgs(H, s, y)
    assert torch.allclose(made, made.mT, atol=1e-9)
    assert float(torch.linalg.eigvalsh(made)[0, 0]) > 0.0
    sHs, sy = float(s[0] @ H[0] @ s[0]), float(s[0] @ y[0])
    theta = 1.0 if sy >= 0.2 * sHs else 0.8 * sHs / (sHs - sy)
    secant = theta * y[0] + (1.0 - theta) * (H[0] @ s[0])
    assert torch.allclose(made[0] @ s[0], secant, atol=1e-7 * float(made.abs().max()))
    rest = torch.linalg.svd(torch.stack([s[0], secant]))[2][-1]  # orthogonal to both: unchanged there, but for H s
    flat = H[0] - torch.outer(H[0] @ s[0], H[0] @ s[0]) / sHs
    assert float(rest @ made[0] @ rest) == pytest.approx(float(rest @ flat @ rest), rel=1e-6, abs=1e-9)
    assert torch.equal(_bfgs(H, torch.zeros(1, 3).double(), y), H)  # no step, nothing learned


def test_the_polish_reaches_the_wall_and_never_loses() -> None:
    bowl = Bowl([3.0, 0.5])
    y, value = _polish(bowl, BOX, np.array([0.9, 0.4]), -4.42, steps=30)
    np.testing.assert_allclose(y, [1.0, 0.5], atol=1e-6)
    assert value == pytest.approx(-4.0, abs=1e-5)
    start = np.array([0.9, 0.4])
    assert _polish(bowl, BOX, start, 0.0, steps=30) == (pytest.approx(start), 0.0)  # what is known is better


def test_scattered_points_cover_the_polytope_and_half_as_many_lie_near() -> None:
    around = np.array([[4.5, 5.5], [9.0, 5.0]])  # the second lies outside
    Y = scatter(SHIFTED, 0, around, 100)
    assert Y.shape == (100 + 2 + 50, 2)
    assert SHIFTED.slack(Y).min() >= -1e-12
    np.testing.assert_array_equal(Y[100], around[0])
    assert np.ptp(Y[:100], axis=0).min() > 1.7
    assert scatter(SHIFTED, 0, None, 100).shape == scatter(SHIFTED, 0, np.zeros((0, 2)), 100).shape == (100, 2)
    lengths = np.linalg.norm(
        _near(hypersphere(300, 2, 0).domain, np.zeros((1, 2)), 400, np.random.default_rng(0)), axis=1
    )
    assert 0.01 - 1e-12 <= lengths.min() < 0.012
    assert 0.4 < np.mean(lengths < 10**-0.85) < 0.6  # even in the logarithm, from 0.01 to 2
    assert lengths.max() <= 10**0.3 + 1e-9


def test_starts_are_the_best_and_others_that_differ() -> None:
    values = np.linspace(0.0, 1.0, 200)
    chosen = np.array([_pick(values, 8, np.random.default_rng(s)) for s in range(50)])
    assert (chosen[:, 0] == 199).all()
    assert all(len(set(row)) == 8 for row in chosen.tolist())
    assert (chosen >= 150).all()  # of the best quarter
    rank = 199 - chosen[:, 1:]
    assert 4 < rank.mean() < 13  # and mostly of its top: weights fall by e with a sixth of the quarter
    assert sorted(_pick(np.arange(3.0), 8, np.random.default_rng(0)).tolist()) == [0, 1, 2]


def test_candidates_are_ordered_with_their_values_and_given_starts_are_climbed() -> None:
    class TwoTops(torch.nn.Module):
        def forward(self, X: torch.Tensor) -> torch.Tensor:
            x = X.squeeze(-2)
            left, right = ((x - torch.tensor(c).double()).square().sum(-1) for c in ([-0.7, 0.0], [0.7, 0.0]))
            return torch.logaddexp(-40.0 * left, -40.0 * right - 0.5)

    points, values = candidates(TwoTops(), BOX, 0, raw=32, starts=4, extra=np.array([[0.6, 0.1]]))
    assert len(points) == 5
    assert (np.diff(values) <= 1e-12).all()
    np.testing.assert_allclose(values, evaluate(TwoTops(), points), atol=1e-6)
    np.testing.assert_allclose(points[0], [-0.7, 0.0], atol=1e-3)
    assert np.abs(points - [0.7, 0.0]).max(axis=1).min() < 0.01  # from the given start
    point, value = propose(TwoTops(), BOX, 0, raw=32, starts=4)
    best = candidates(TwoTops(), BOX, 0, raw=32, starts=4)
    assert (point.tolist(), value) == (best[0][0].tolist(), best[1][0])
    bowl = Bowl([0.0, 0.0])
    evaluate(bowl, np.zeros((2500, 2)))
    assert (bowl.calls, bowl.most) == (3, 1000)  # in pieces


def test_values_that_are_not_finite_are_worthless() -> None:
    values = evaluate(lambda X: X[..., 0, 0].log() * torch.tensor(1.0), np.array([[1.0], [0.0], [-1.0]]))
    assert values.tolist() == [0.0, maximize.WORTHLESS, maximize.WORTHLESS]


# -- in a box ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("top", "best"), [([0.3, 0.9], [0.3, 0.9]), ([2.0, -3.0], [1.0, 0.0])])
def test_the_top_of_a_box(top: list[float], best: list[float]) -> None:
    low, high = np.zeros(2), np.ones(2)
    for steep in ((1.0, 1.0), (300.0, 1.0)):
        point, value = maximise_in_box(Bowl(top, steep), low, high, seed=0, raw=16)
        np.testing.assert_allclose(point, best, atol=1e-4)
        assert value == pytest.approx(float(evaluate(Bowl(top, steep), point[None])[0]))
    begin = np.array([[0.5, 0.5], [7.0, 7.0]])
    point, value = climb_in_box(Bowl(top), begin, low, high, iterations=50)
    np.testing.assert_allclose(point, best, atol=1e-4)
    ends = _refine(Bowl(top), np.clip(begin, low, high), low, high, 50)
    np.testing.assert_allclose(ends, [best, best], atol=1e-3)


def test_given_points_are_compared_and_may_win() -> None:
    """A peak so narrow that only the given point sees it; it is given outside and moved to the edge."""

    class Peak(torch.nn.Module):
        def forward(self, X: torch.Tensor) -> torch.Tensor:
            x = X.squeeze(-2)
            return torch.exp(-1e8 * (x - torch.tensor([1.0, 0.25]).double()).square().sum(-1))

    low, high = np.zeros(2), np.ones(2)
    point, value = maximise_in_box(Peak(), low, high, seed=0, raw=16, extra=np.array([[3.0, 0.25]]))
    assert (point.tolist(), value) == ([1.0, 0.25], 1.0)
    assert maximise_in_box(Peak(), low, high, seed=0, raw=16)[1] < 0.5
    point, value = climb_in_box(Peak(), np.array([[0.5, 0.5], [1.0, 0.25]]), low, high, iterations=5)
    assert (point.tolist(), value) == ([1.0, 0.25], 1.0)


def test_half_of_the_starts_are_the_best_points() -> None:
    score = np.array([0.0, 5.0, 4.0, 3.0, 2.0, 1.0, -1.0, maximize.WORTHLESS])
    for seed in range(20):
        chosen = _pick_by_value(score, 6, np.random.default_rng(seed)).tolist()
        assert chosen[:3] == [1, 2, 3]
        assert len(set(chosen)) == 6
    assert _pick_by_value(score, 1, np.random.default_rng(0)).tolist() == [1]
    assert sorted(_pick_by_value(score[:3], 6, np.random.default_rng(0)).tolist()) == [0, 1, 2]
    steep = np.concatenate([[10.0, 9.9], np.zeros(40), [8.0]])
    rng = np.random.default_rng(5)
    drawn = [_pick_by_value(steep, 2, rng)[1] for _ in range(2000)]
    weight = np.exp(steep[1:] / steep.std())  # in proportion to the exponential of the value, in standard deviations
    assert drawn.count(1) / 2000 == pytest.approx(weight[0] / weight.sum(), abs=0.04)  # 3.6 standard errors


def test_perturbed_points_differ_in_about_twenty_coordinates_within_the_box(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    centre = np.full(100, 0.5)
    for quasi in (False, True):
        points = perturbed(centre, np.full(100, 0.2), np.full(100, 0.6), 200, rng, quasi=quasi)
        moved = points != centre
        assert 18 < moved.sum(axis=1).mean() < 22
        assert (points[moved] >= 0.2).all()
        assert (points[moved] <= 0.6).all()
        assert points[moved].mean() == pytest.approx(0.4, abs=0.01)
    few = perturbed(np.zeros(3), np.ones(3), np.full(3, 2.0), 50, rng)
    assert (few != 0.0).all()  # up to twenty coordinates all of them move
    monkeypatch.setattr(maximize, "PERTURBED", 0.0)  # none by chance: then one, each as often as another
    lonely = perturbed(np.zeros(3), np.ones(3), np.full(3, 2.0), 3000, rng) != 0.0
    assert (lonely.sum(axis=1) == 1).all()
    assert lonely.mean(axis=0) == pytest.approx([1 / 3] * 3, abs=0.035)  # 4 standard errors


def test_quasi_random_points_fill_the_cube_evenly() -> None:
    for n in (1, 5, 8, 33):
        assert qmc_points(3, n, 0).shape == (n, 3)
    assert qmc_points(3, 0, 0).shape == (0, 3)
    cells = np.floor(qmc_points(2, 16, 1) * 16).astype(int)
    assert sorted(cells[:, 0]) == sorted(cells[:, 1]) == list(range(16))
    assert qmc_points(21202, 1, 0).shape == (1, 21202)
    rng = np.random.default_rng(0)
    assert (_unit_points(64, 5, rng).shape, _unit_points(65, 5, rng).shape) == ((8, 64), (5, 65))
    assert _unit_points(2, 1, rng).shape == (2, 2)
