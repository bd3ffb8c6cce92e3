"""Plain BO: the same model as BoTorch's default, found by our own fit; proposals in bounds that improve."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import check_grad

import alebo
from alebo.methods._ard import fit, leave_one_out, objective, process
from alebo.methods.bo import BO, dimension_scaled

GOAL = alebo.Minimize("f")
RNG = np.random.default_rng(0)
X = RNG.random((14, 5))
Y = np.sin(4 * X[:, 0]) + X[:, 3] ** 2


def test_the_gradient_of_the_fit_is_the_derivative_of_its_value() -> None:
    z = torch.as_tensor((Y - Y.mean()) / Y.std())
    args = (torch.as_tensor(X), z, dimension_scaled(5), None)
    theta = RNG.normal(size=7) * 0.3
    error = check_grad(lambda t: objective(t, *args)[0], lambda t: objective(t, *args)[1], theta)
    assert error < 1e-4


def test_it_is_botorchs_default_model() -> None:
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    z = (Y - Y.mean()) / Y.std(ddof=1)
    theirs = SingleTaskGP(torch.as_tensor(X), torch.as_tensor(z)[:, None], outcome_transform=None)
    mll = ExactMarginalLogLikelihood(theirs.likelihood, theirs)
    fit_gpytorch_mll(mll)
    ls = theirs.covar_module.lengthscale.detach().numpy().ravel()
    noise = float(theirs.likelihood.noise.detach())
    twin = process(
        torch.as_tensor(X),
        torch.as_tensor(z),
        "rbf",
        ls,
        1.0,
        torch.full((14,), noise, dtype=torch.double),
        0.0,
        1.0,
        mean=float(theirs.mean_module.constant.detach()),
    )
    new = torch.as_tensor(RNG.random((6, 5)))
    with torch.no_grad():
        posterior = theirs.posterior(new)
        mean, variance = twin.posterior(new)
    assert torch.allclose(mean, posterior.mean[:, 0], atol=1e-6)
    assert torch.allclose(variance, posterior.variance[:, 0], atol=1e-6)
    # the same density, so the better optimum is ours or equal
    theta = np.concatenate([np.log(ls), [0.0, math.log(noise)]])
    at_theirs = objective(theta, torch.as_tensor(X), torch.as_tensor(z), dimension_scaled(5), None)[0]
    ours = fit(X, Y, dimension_scaled(5))
    assert -ours.log_likelihood <= at_theirs + 1e-3
    assert np.allclose(np.log(ours.lengthscales.numpy()), np.log(ls), atol=0.2)


def test_leave_one_out_is_what_it_says() -> None:
    gp = fit(X, Y, dimension_scaled(5))
    total = 0.0
    for i in range(14):
        keep = np.arange(14) != i
        part = process(
            gp.X[keep],
            gp.y[keep],
            gp.kernel,
            gp.lengthscales.numpy(),
            gp.scale,
            gp.noise[keep],
            0.0,
            1.0,
            mean=gp.mean,
        )
        m, v = part.posterior(gp.X[i : i + 1])
        v = v + gp.noise[i]
        total += float(-0.5 * ((gp.y[i] - m) ** 2 / v + v.log() + math.log(2 * math.pi)))
    assert leave_one_out(gp) == pytest.approx(total, rel=1e-5)


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


def test_refusals_are_sentences() -> None:
    with pytest.raises(alebo.InputError, match=r"Plain BO is not defined for several objectives.*alebo"):
        alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * 3), [GOAL, alebo.Minimize("h")], method=BO())
    with pytest.raises(alebo.InputError, match="initial >= 2"):
        BO(initial=0)
