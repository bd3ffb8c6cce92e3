"""The process of two related tasks: what it learns of their correlation, and that it equals the joint process."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from alebo.models import fit_ard
from alebo.models._algebra import kernel_of, squared_distances
from alebo.models.ard import ARDGP
from alebo.models.coregional import CoregionalGP, Related, fit_coregional
from alebo.models.informed import Data
from alebo.models.priors import NOISE_FLOOR, sparse
from alebo.models.surrogate import Mixture

RNG = np.random.default_rng(0)
U0 = RNG.random((60, 8))
X = RNG.random((12, 8))


def f(u: np.ndarray) -> np.ndarray:
    return np.sin(5.0 * u[:, 1]) + 2.0 * (u[:, 4] - 0.3) ** 2


@pytest.fixture(scope="module")
def earlier() -> ARDGP:
    return fit_ard(U0, f(U0), sparse(0.1))


def learned(earlier: ARDGP, values: np.ndarray, at: np.ndarray = X) -> list[CoregionalGP]:
    v = (values - values.mean()) / values.std()
    noise = torch.full((len(v),), 1e-6, dtype=torch.double)
    found = fit_coregional(earlier, Data(torch.from_numpy(at), torch.from_numpy(v), noise, False, 0.0, 1.0))
    return [m for m in found.models if isinstance(m, CoregionalGP)]


def test_a_shifted_and_scaled_task_is_correlated(earlier) -> None:
    assert np.mean([m.correlation for m in learned(earlier, 100.0 + 7.0 * f(X))]) > 0.95


def test_the_negative_is_not(earlier) -> None:
    assert np.mean([m.correlation for m in learned(earlier, -f(X))]) < 0.2


def test_twelve_points_predict_what_they_do_not_predict_alone(earlier) -> None:
    values = 3.0 - 2.0 * f(X)
    v = torch.from_numpy(-(values - values.mean()) / values.std())
    noise = torch.full((12,), 1e-6, dtype=torch.double)
    data = Data(torch.from_numpy(X), v, noise, False, 0.0, 1.0)
    new = RNG.random((200, 8))
    truth = -((3.0 - 2.0 * f(new)) - values.mean()) / values.std()
    mean = fit_coregional(earlier, data).marginals(torch.from_numpy(new)).matched()[0].numpy()
    assert np.mean((mean - truth) ** 2) < 0.05 * truth.var()
    alone = fit_ard(X, v.numpy(), sparse(0.1)).posterior(torch.from_numpy(new))[0].numpy()
    assert np.mean((alone - truth) ** 2) > 0.2 * truth.var()


def test_it_is_the_joint_process_of_both_tasks(earlier) -> None:
    """The same numbers as from one covariance matrix of the data of both tasks."""
    r, A, c, w = 0.8, 1.7, 0.3, 0.4
    v, noises = np.random.default_rng(1).normal(size=12), np.full(12, 1e-3)
    model = CoregionalGP(earlier, X, v, noises, r, A, c, w)
    new = RNG.random((5, 8))
    mean, variance, _ = model.marginals(torch.from_numpy(new))

    def k(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return kernel_of(squared_distances(a / earlier.lengthscales, b / earlier.lengthscales), earlier.kernel)[0]

    def own(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        smooth = kernel_of(squared_distances(a, b) / 8.0, "rbf")[0]
        return r**2 * k(a, b) + (1 - r**2) * ((1 - w) * k(a, b) + w * smooth)

    s = np.sqrt(earlier.variance)
    both = np.block([[s**2 * k(U0, U0), s * A * r * k(U0, X)], [s * A * r * k(X, U0), A**2 * own(X, X)]])
    both += np.diag(np.concatenate([earlier.noises, noises]))
    cross = np.hstack([s * A * r * k(new, U0), A**2 * own(new, X)])
    off = np.concatenate([earlier.targets - earlier.mean, v - c])
    assert np.allclose(mean[0], c + cross @ np.linalg.solve(both, off), atol=1e-6)
    left = A**2 - np.einsum("ij,ji->i", cross, np.linalg.solve(both, cross.T))
    assert np.allclose(variance[0], left, atol=1e-6)


def test_noiseless_outcomes_of_a_related_task_are_told_apart_finely(earlier) -> None:
    near = 0.5 + 0.1 * np.random.default_rng(3).random((60, 8))
    for m in learned(earlier, 100.0 + 7.0 * f(near), near):
        assert float(m.noises.max()) < 0.1 * NOISE_FLOOR * m.amplitude**2


def test_processes_asked_together_say_what_each_says_with_its_gradient(earlier) -> None:
    rng = np.random.default_rng(2)
    v, noises = rng.normal(size=12), np.full(12, 1e-3)
    models = tuple(
        CoregionalGP(earlier, X, v, noises, r, 1.3, 0.1, w) for r, w in ((0.0, 0.6), (0.8, 0.2), (0.995, 0.0))
    )
    at = torch.from_numpy(rng.random((4, 8)))
    together, apart = Related(models).marginals(at), Mixture(models).marginals(at)
    assert torch.allclose(together.mean, apart.mean)
    assert torch.allclose(together.variance, apart.variance)
    by = [torch.from_numpy(rng.normal(size=(3, 4))) for _ in range(2)]
    pull = together.back(*by)
    assert torch.allclose(pull, apart.back(*by))
    step = torch.zeros_like(at)
    step[1, 4] = 1e-5
    sides = [Related(models).marginals(at + sign * step) for sign in (1.0, -1.0)]
    change = sum((b * (s1 - s0)).sum() for b, s1, s0 in zip(by, *(s[:2] for s in sides), strict=True)) / 2e-5
    assert float(pull[1, 4]) == pytest.approx(float(change), rel=1e-4)
