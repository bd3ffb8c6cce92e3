"""Edges of the models: when fits go by way of fewer data, what a memory may hold, how short chains start, what is factored."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from alebo._errors import AleboError
from alebo.models import ard_fit, coregional
from alebo.models.ard_density import LogDensity
from alebo.models.ard_fit import fit_ard, remembered_lengthscales
from alebo.models.informed import Data
from alebo.models.mahalanobis import chains, laplace
from alebo.models.mahalanobis.chains import ChainState, Target, climbed, settled, started
from alebo.models.mahalanobis.conditioned import factor
from alebo.models.mahalanobis.kernel import MahalanobisKernel, gram
from alebo.models.mahalanobis.likelihood import Hyperparameters, LogPosterior, MetricPrior
from alebo.models.outcomes import Compression
from alebo.models.priors import dense, sparse
from alebo.models.subsets import from_subsets

RNG = np.random.default_rng(0)
X = RNG.random((160, 2))
VALUES = np.sin(3.0 * X[:, 0]) + X[:, 1]


# -- fits of the full space ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "warm", "fewer"), [(150, False, False), (151, False, True), (151, True, False)])
def test_more_than_150_data_are_fitted_by_way_of_fewer_once(
    monkeypatch: pytest.MonkeyPatch, n: int, warm: bool, fewer: bool
) -> None:
    asked: list[int] = []
    memory = [0.0, -3.0, 0.0]
    monkeypatch.setattr(ard_fit, "_of_fewer", lambda X, *others: asked.append(len(X)) or memory)
    climbs: list[int] = []

    def climb(target: LogDensity, theta: np.ndarray, iterations: int) -> tuple[float, np.ndarray]:
        climbs.append(iterations)
        return 0.0, theta

    monkeypatch.setattr(ard_fit, "_climb", climb)
    fit_ard(X[:n], VALUES[:n], dense(2), warm=memory if warm else (), cold=False if warm else None)
    assert asked == ([n] if fewer else [])
    assert climbs == ([20] if warm or fewer else [100, 100])  # from the memory alone, or from the prior's two starts


@pytest.mark.parametrize(
    ("n", "warm", "search"),
    [
        (59, True, (6 - 4, False, 59, 100)),
        (60, True, (6, True, 60, 100)),  # every second time from nothing
        (61, True, None),
        (63, True, (6, True, 63, 100)),  # every ninth
        (66, True, (2, False, 66, 100)),  # every third
        (150, True, (2, False, 150, 100)),
        (153, True, (6, True, 150, 20)),  # every ninth, among fewer
        (154, True, None),
        (156, True, None),
        (61, False, (6, True, 61, 100)),
        (154, False, (6, True, 150, 20)),
    ],
)
def test_how_often_subsets_of_coordinates_are_searched(
    monkeypatch: pytest.MonkeyPatch, n: int, warm: bool, search: tuple[int, bool, int, int] | None
) -> None:
    found: list[Any] = []

    def searched(target: LogDensity, ends: Any, *, rounds: int, fresh: bool) -> list[np.ndarray]:
        found.append((rounds, fresh, target.n))
        assert target.known is None or len(target.known) == target.n
        return [np.zeros(3)]

    monkeypatch.setattr(ard_fit, "from_subsets", searched)
    monkeypatch.setattr(ard_fit, "_climb", lambda target, theta, count: (target.n, count))
    for known in (None, np.full(n, 0.1)):
        found.clear()
        target = LogDensity(X[:n], VALUES[:n], sparse(subsets=True), known)
        out: Any = ard_fit._by_subsets(target, [], warm)
        assert found == ([] if search is None else [search[:3]])
        assert out == ([] if search is None else [(n, search[3])])


def test_what_a_memory_may_hold() -> None:
    assert remembered_lengthscales([0.1, 0.2, 0.3], 2).tolist() == [0.3, 0.3]
    assert remembered_lengthscales([0, 0, 0.3, 0, 0.7, 5, 0.9], 2).tolist() == [0.7, 0.3]
    damaged: list[list[Any]] = [[], [0.1, 0.2], [0.1, 0.2, 0.3, 1], [0.1, 0.2, 0.3, -1, 0.5], [0.1, 0.2, 0.3, 0.5, 0.5]]
    for memory in [*damaged, ["a", 0.2, 0.3], [0.1, 0.2, 0.3, 0, None], [0.1]]:
        with pytest.raises(AleboError, match="three numbers, then pairs"):
            remembered_lengthscales(memory, 2)


def test_one_coordinate_is_no_pair() -> None:
    target = LogDensity(X[:8, :1], VALUES[:8] - VALUES[:8].mean(), sparse(subsets=True))
    (theta,) = from_subsets(target, [], rounds=1, fresh=True) or [None]
    assert theta is None  # nothing was active, and there is no pair to begin with
    (theta,) = from_subsets(target, [target.start(0.0)], rounds=2, fresh=True)
    assert len(theta) == 3


# -- two tasks ---------------------------------------------------------------------------------------------------------------


def test_a_sharp_posterior_of_two_tasks_has_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    source = fit_ard(X[:20], VALUES[:20], dense(2))
    data = Data(torch.from_numpy(X[20:30]), torch.from_numpy(VALUES[20:30]), torch.ones(10).double(), False, 3.0, 2.0)
    rows = np.array([[0.1 * k, 1.0 + k, 0.2, 10.0**-k, 0.2] for k in range(4)])
    for density, chosen in (
        ([0.0, 0.0, 0.0, -999.0], [0, 1, 2]),
        ([0.0, -999.0, -999.0, -999.0], [0]),
        ([-999.0, 0.0, math.log(1.9), -999.0], [1, 2, 2]),
    ):
        monkeypatch.setattr(coregional, "_candidates", lambda *given, d=density: (rows, np.array(d)))
        made = coregional.fit_coregional(source, data)
        assert [m.correlation for m in made.models] == [rows[k, 0] for k in chosen]
        assert [m.amplitude for m in made.models] == [rows[k, 1] for k in chosen]
        assert [(m.mean, m.share, m.shift, m.scale) for m in made.models] == [(0.2, 0.2, 3.0, 2.0)] * len(chosen)
        assert [float(m.noises[0]) for m in made.models] == [10.0**-k for k in chosen]


# -- chains ------------------------------------------------------------------------------------------------------------------


def posterior(n: int) -> LogPosterior:
    v = torch.from_numpy((VALUES[:n] - VALUES[:n].mean()) / VALUES[:n].std())
    return LogPosterior(torch.from_numpy(X[:n]), v, None, MetricPrior())


STATE = ChainState(np.eye(2), np.zeros(2), -1.5, 0.0, -3.0, 0.0)


@pytest.mark.parametrize(("n", "steps"), [(100, [100, 100]), (101, [100, 100, 101])])
def test_a_short_start_sees_a_hundred_data_first(monkeypatch: pytest.MonkeyPatch, n: int, steps: list[int]) -> None:
    did: list[int] = []
    wanted: list[Any] = []

    def climb(target: Target, state: ChainState, rng: Any) -> ChainState:
        did.append(target.posterior.n)
        return state

    def settle(target: Target, state: ChainState, rng: Any, **how: Any) -> ChainState:
        did.append(target.posterior.n)
        wanted.append(how.get("wanted"))
        return state

    monkeypatch.setattr(chains, "climbed", climb)
    monkeypatch.setattr(chains, "settled", settle)
    assert started(posterior(n), Target(posterior(n)), STATE, RNG) is STATE
    assert did == steps
    assert wanted == [None, 1][: len(steps) - 1]


@pytest.mark.parametrize(
    ("n", "wanted", "moves", "count"),
    [
        (150, None, [1] * 99, 6),  # a thousand over the observations
        (160, None, [1] * 99, 6),
        (20, None, [1] * 99, 50),
        (20, 2, [0, 1, 0, 1, 1], 4),  # refused ones do not count
        (20, 2, [0] * 99, 6),  # but three times as many are enough
    ],
)
def test_a_chain_settles_by_accepted_moves(
    monkeypatch: pytest.MonkeyPatch, n: int, wanted: int | None, moves: list[int], count: int
) -> None:
    steered: list[float] = []

    def transition(target: Any, state: ChainState, rng: Any, *, steering: float) -> ChainState:
        steered.append(steering)
        moved = moves[len(steered) - 1]
        return ChainState(state.E + moved, state.z, *state.place[-3:].tolist(), 0.0)

    monkeypatch.setattr(chains, "transition", transition)
    target: Any = SimpleNamespace(posterior=SimpleNamespace(n=n))
    settled(target, STATE, RNG, wanted)
    assert steered == [0.6] * count
    if n == 160:  # never fewer than five
        target.posterior.n, steered[:] = 400, []
        settled(target, STATE, RNG)
        assert len(steered) == 5


def test_a_climb_ends_where_ten_iterations_gained_little(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    seen: list[int] = []
    falls = [1000.0 - 50.0 * k for k in range(15)] + [298.0 - 2.0 * k for k in range(10)]  # to 300, and to 280
    falls += [279.0 - k for k in range(20)]

    def minimize(negative: Any, x: np.ndarray, *, jac: bool, method: str, callback: Any, options: Any) -> Any:
        asked.update(options, jac=jac, method=method)
        for k, value in enumerate(falls):
            seen.append(k)
            try:
                callback(SimpleNamespace(fun=value))
            except StopIteration:
                break
        return SimpleNamespace(x=x)

    monkeypatch.setattr(chains, "minimize", minimize)
    found = climbed(Target(posterior(20)), STATE, np.random.default_rng(0))
    assert asked == {"maxiter": 100, "maxfun": 200, "maxcor": 20, "jac": True, "method": "L-BFGS-B"}
    assert falls[14] - falls[24] == 20.0
    assert seen[-1] == 25  # the first ten that gained less
    np.testing.assert_array_equal(found.place, STATE.place)


# -- factors and kernels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1.0, 25.0])
def test_jitter_is_a_share_of_the_variances(size: float) -> None:
    eye, none = torch.eye(2).double(), torch.zeros(1, 2).double()
    for off, jitter in ((5e-9, 1e-8), (5e-7, 1e-6), (5e-5, 1e-4)):
        K = size * torch.tensor([[1.0, 1.0 + off], [1.0 + off, 1.0]]).double()
        L, keep = factor(K[None], none)
        torch.testing.assert_close(L[0] @ L[0].mT, K + jitter * size * eye, rtol=1e-12, atol=1e-14)
        assert keep.tolist() == [True]


def test_a_kernel_can_be_differentiated_by_any_of_its_arguments() -> None:
    A, B, s = (torch.from_numpy(a) for a in (X[:3], X[3:7], np.array(2.0)))
    plain = gram(A, B, s)
    for k in range(3):
        given = [t.clone().requires_grad_(j == k) for j, t in enumerate((A, B, s))]
        found = gram(*given)
        torch.testing.assert_close(found.detach(), plain)
        (slope,) = torch.autograd.grad(found.sum(), given[k])
        at, h = [A, B, s], 1e-6
        step = torch.zeros_like(at[k])
        step.view(-1)[0] = h
        up, down = ([*at[:k], at[k] + sign * step, *at[k + 1 :]] for sign in (1.0, -1.0))
        assert float(slope.reshape(-1)[0]) == pytest.approx(float((gram(*up) - gram(*down)).sum()) / (2 * h), rel=1e-5)
    assert not MahalanobisKernel(2).has_lengthscale


def test_the_curvature_of_very_many_data_is_that_of_different_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laplace, "MOST_POINTS", 40)
    parts: list[np.ndarray] = []

    def part(Y: torch.Tensor, v: torch.Tensor, known: Any, prior: Any) -> Any:
        parts.append(Y.numpy())
        return SimpleNamespace(curvature=lambda mode: torch.ones(2, 2).double())

    monkeypatch.setattr(laplace, "LogPosterior", part)
    mode = Hyperparameters(torch.eye(2).double(), 0.0, -3.0)
    found = laplace._curvature(posterior(60), mode, np.random.default_rng(0))
    assert found.tolist() == [[1.5, 1.5]] * 2
    rows = [int(np.flatnonzero((row == X).all(1))[0]) for row in parts[0]]
    assert len(set(rows)) == 40
    assert rows == sorted(rows)


# -- outcomes ----------------------------------------------------------------------------------------------------------------


def test_the_smallest_cases_of_a_compression() -> None:
    assert Compression.of(np.array([1e150, 0.0])).reach == math.inf  # just not too large
    three = np.array([0.0, 1.0, 1e9])
    assert Compression.of(three).changes(three).tolist() == [False, False, True]
