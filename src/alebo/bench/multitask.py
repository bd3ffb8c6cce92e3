"""BoTorch's multi-task process in the full space, for comparison with `sources=` (see `bench.transfer`).

`MultiTaskGP` with its default priors on the data of both tasks, each standardised by itself, and `LogExpectedImprovement` of the
present one over the unit cube. It begins with the best source point, the centre, and one random point.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from .._seeds import derive, generator, reproducible
from .problems import Problem

Array: TypeAlias = NDArray[np.float64]

RAW, STARTS = 256, 4  # points that are compared, and of them those that are climbed from
ITERATIONS = 100  # of a fit, and of a climb


def search(problem: Problem, seed: int, budget: int, points: Array, values: Array) -> tuple[list[float], list[float]]:
    """The best values, minimised, and the CPU seconds of every proposal.

    Args:
        problem: what is minimised (or maximised, by its sign).
        seed: of the random point and of the climbs.
        budget: evaluations.
        points: n0 x D, the points of the source in the unit cube.
        values: n0, its outcomes, minimised.
    """
    rng = generator(seed, "multitask")
    first = [points[int(np.argmin(values))], np.full(points.shape[1], 0.5), rng.random(points.shape[1])]
    X: list[Array] = []
    y: list[float] = []
    seconds = []
    for i in range(budget):
        began = time.process_time()
        with reproducible(derive(seed, "multitask", i)):
            u = first[i] if i < len(first) else _propose(points, values, np.array(X), np.array(y))
        seconds.append(time.process_time() - began)
        params = problem.space.decode(2.0 * u - 1.0)
        X.append(u)
        y.append(problem.sign * float(problem.evaluate(_array(params))))
    return np.minimum.accumulate(y).tolist(), seconds


def _array(params: Mapping[str, Any]) -> Array:
    return np.array(list(params.values()))


def _propose(X0: Array, y0: Array, X: Array, y: Array) -> Array:
    """The next point of the unit cube.  n0 x D, n0, n x D, n -> D"""
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import MultiTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    D = X.shape[1]
    both = np.vstack([np.column_stack([X0, np.zeros(len(X0))]), np.column_stack([X, np.ones(len(X))])])
    targets = np.concatenate([_standardised(-y0), _standardised(-y)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MultiTaskGP(
            torch.from_numpy(both),
            torch.from_numpy(targets)[:, None],
            task_feature=D,
            output_tasks=[1],
            outcome_transform=None,
        )
        mll = ExactMarginalLogLikelihood(model.likelihood, model)
        fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": ITERATIONS}})
        acquisition = LogExpectedImprovement(model, best_f=float(targets[len(X0) :].max()))
        begin = _begin(acquisition, X[int(np.argmin(y))])
        bounds = torch.stack([torch.zeros(D), torch.ones(D)]).double()
        found, _ = optimize_acqf(
            acquisition,
            bounds,
            q=1,
            num_restarts=STARTS,
            batch_initial_conditions=begin,
            options={"maxiter": ITERATIONS},
        )
    u: Array = found[0].detach().numpy()
    return u


def _begin(acquisition: Any, best: Array) -> torch.Tensor:
    """The best of random points, half of them over the whole cube and half near the incumbent.  D -> STARTS x 1 x D

    BoTorch's own `sample_around_best` does not know that a point of a multi-task process has one coordinate more.
    """
    at = torch.from_numpy(best)
    far, near = torch.rand(RAW // 2, len(at)).double(), 0.1 * torch.randn(RAW // 2, len(at)).double()
    points = torch.cat([far, (at + near).clamp(0.0, 1.0)])[:, None, :]
    with torch.no_grad():
        order = acquisition(points).argsort(descending=True)
    return points[order[:STARTS]]


def _standardised(values: Array) -> Array:
    spread = float(values.std())
    out: Array = (values - values.mean()) / (spread if spread > 0.0 else 1.0)
    return out
