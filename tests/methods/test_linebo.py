"""LineBO: lines through the incumbent that stay in the cube, gradients of the process, and the laws."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import alebo
from alebo._seeds import derive
from alebo.methods import CoordinateLineBO, DescentLineBO, RandomLineBO
from alebo.models import fit_ard
from alebo.models.priors import embedded

from . import laws

ALL = [CoordinateLineBO(per_line=3), RandomLineBO(per_line=3), DescentLineBO(per_line=3)]


def lines(opt: alebo.Optimizer) -> dict[int, list]:
    out: dict[int, list] = {}
    for trial in opt.history:
        if trial.y is not None:
            out.setdefault(trial.note["line"], []).append(trial)
    return out


@pytest.mark.parametrize("method", ALL, ids=lambda m: m.name)
def test_points_lie_on_lines_through_the_incumbent(method):
    opt = laws.run(method, 14)
    assert np.array_equal(opt.history[0].x, np.zeros(laws.D))  # the centre first
    found = lines(opt)
    assert [len(on) for on in found.values()][:-1] == [3] * (len(found) - 1)
    for on in found.values():
        anchor = opt.history[on[0].note["anchor"]]
        before = [t for t in opt.history if t.number < on[0].number]
        assert anchor.outcomes["loss"].mean == min(t.outcomes["loss"].mean for t in before)
        steps = np.stack([(t.x - anchor.x) / t.y[0] for t in on])
        assert np.allclose(steps, steps[0], atol=1e-7)
        assert np.linalg.norm(steps[0]) == pytest.approx(1.0, abs=1e-6)
        if isinstance(method, CoordinateLineBO):
            assert np.count_nonzero(np.abs(steps[0]) > 1e-9) == 1


def test_random_lines_find_a_bowl():
    assert laws.run(RandomLineBO(), 40).best().outcomes["loss"].mean < 0.1  # 0.34 at the centre


def test_the_gradients_mean_is_the_means_gradient():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (30, 5))
    gp = fit_ard(X, 3.0 + 2.0 * np.sin(2 * X[:, 0]) + X[:, 1], embedded(X.shape[1], "rbf"))
    x = rng.uniform(-1, 1, 5)
    at = torch.from_numpy(x[None]).requires_grad_(True)
    (want,) = torch.autograd.grad(gp.posterior(at)[0].sum(), at)
    mean, covariance = gp.gradient(x)
    assert np.allclose(gp.scale * mean, want[0].numpy(), atol=1e-6)
    # the variance of a short difference quotient is the gradient's
    h = 1e-2
    draws = gp.draws(torch.from_numpy(np.stack([x + h * np.eye(5)[1], x - h * np.eye(5)[1]])), 4000, seed=1)
    quotient = ((draws[:, 0] - draws[:, 1]) / (2 * h)).var()
    assert float(quotient) == pytest.approx(gp.scale**2 * covariance[1, 1], rel=0.3, abs=0.05)
    assert np.linalg.eigvalsh(covariance).min() > -1e-6


def test_descent_goes_down_where_the_slope_is_known():
    """With the slope well measured, drawn directions point against it."""
    rng = np.random.default_rng(0)
    X = 0.3 * rng.uniform(-1, 1, (60, 6))
    gp = fit_ard(X, 5.0 * X[:, 2], embedded(X.shape[1], "rbf"))
    for seed in range(5):
        assert DescentLineBO().direction(gp, np.zeros(6), derive(seed, "d"))[2] < -0.9


@pytest.mark.parametrize("method", ALL, ids=lambda m: m.name)
def test_from_a_corner_lines_lead_inside(method):
    X = np.random.default_rng(1).uniform(-1, 1, (5, 4))
    gp = fit_ard(X, X[:, 0], embedded(X.shape[1], "rbf"))
    corner = np.array([1.0, -1.0, 1.0, -1.0])
    for seed in range(10):
        u = method.direction(gp, corner, seed)
        low, high = method_line(corner, u)
        assert high - low > 0.1


def method_line(x: np.ndarray, u: np.ndarray) -> tuple[float, float]:
    from alebo.history import Trial
    from alebo.methods.linebo import Line

    return Line(0, Trial(0, {}, x), u).ends()


@pytest.mark.parametrize("method", ALL, ids=lambda m: m.name)
def test_the_laws(method):
    opt = laws.run(method, 12, fail=(0, 5))
    assert np.abs(np.stack([t.x for t in opt.history])).max() <= 1.0
    laws.obeys(method, steps=9, model_from=5)
    laws.leaves_failures(method, steps=5)
    laws.takes_told_points(method, steps=5)
    laws.is_plain_data(method)


def test_settings_are_checked():
    with pytest.raises(alebo.InputError, match="per_line"):
        RandomLineBO(per_line=0)
