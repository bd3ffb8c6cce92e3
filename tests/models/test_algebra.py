"""The linear algebra that models share, against NumPy's and SciPy's: distances, kernels, inverses, factors with jitter."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, Matern

from alebo.models._algebra import LOG_2PI, invert, kernel_of, safe_cholesky, squared_distances
from alebo.models._memory import _fields, require_memory
from alebo.models.mahalanobis.conditioned import factor

RNG = np.random.default_rng(0)


def test_distances_and_kernels_are_scipys_and_scikit_learns() -> None:
    U, V = RNG.standard_normal((7, 3)), RNG.standard_normal((5, 3))
    np.testing.assert_allclose(squared_distances(U, V), cdist(U, V) ** 2, atol=1e-12)
    np.testing.assert_allclose(squared_distances(U), cdist(U, U) ** 2, atol=1e-12)
    assert squared_distances(1e8 + np.zeros((3, 2)) + 1e-9 * RNG.random((3, 2))).min() >= 0.0
    r2 = squared_distances(U, V)
    for kind, theirs in (("rbf", RBF(1.0)), ("matern", Matern(1.0, nu=2.5))):
        k, slope = kernel_of(r2, kind)  # type: ignore[arg-type]
        np.testing.assert_allclose(k, theirs(U, V))
        h = 1e-6
        steep = (kernel_of(r2 + h, kind)[0] - kernel_of(r2 - h, kind)[0]) / (2.0 * h)  # type: ignore[arg-type]
        np.testing.assert_allclose(slope, steep, rtol=1e-5, atol=1e-9)
    assert math.log(2.0 * math.pi) == LOG_2PI


@pytest.mark.parametrize("n", [1, 2, 119, 120, 121, 150])
def test_an_inverse_and_its_determinant_are_numpys(n: int) -> None:
    A = RNG.standard_normal((n, n))
    K = A @ A.T + n * np.eye(n)
    found = invert(K.copy())
    assert found is not None
    assert found[0] == pytest.approx(0.5 * np.linalg.slogdet(K)[1])
    np.testing.assert_allclose(found[1], np.linalg.inv(K), rtol=1e-8, atol=1e-12)
    K[-1, -1] = -1.0
    assert invert(K.copy()) is None
    K[-1, -1] = math.nan
    assert invert(K.copy()) is None
    assert invert(np.full((n, n), math.nan)) is None


def test_a_factor_is_made_with_as_little_jitter_as_it_takes() -> None:
    good = torch.tensor([[4.0, 2.0], [2.0, 3.0]]).double()
    torch.testing.assert_close(safe_cholesky(good), torch.linalg.cholesky(good))
    singular = torch.full((3, 3), 4.0).double()
    want = torch.linalg.cholesky(singular + 4e-9 * torch.eye(3).double())
    torch.testing.assert_close(safe_cholesky(singular), want, rtol=1e-9, atol=1e-12)
    worse = torch.diag(torch.tensor([1.0, 1.0, -1e-7]).double())
    want = torch.linalg.cholesky(
        worse + 2e-7 / 3.0 * 10.0 * torch.eye(3).double()
    )  # the third of 2/3 e-9, times ten each
    torch.testing.assert_close(safe_cholesky(worse), want, rtol=1e-6, atol=1e-12)
    with pytest.raises(AssertionError, match="no Cholesky factor"):
        safe_cholesky(torch.diag(torch.tensor([1.0, -9.0]).double()))


def test_of_several_metrics_those_without_a_factor_are_left_out() -> None:
    eye = torch.eye(2).double()
    good, bad = 2.0 * eye, torch.tensor([[1.0, 2.0], [2.0, 1.0]]).double()
    noise = torch.full((1, 2), 0.5).double()
    L, keep = factor(torch.stack([good, good]), noise)
    torch.testing.assert_close(L, torch.linalg.cholesky(torch.stack([good, good]) + 0.5 * eye))
    assert keep.tolist() == [True, True]
    assert factor(torch.stack([good, bad]), noise)[1].tolist() == [True, False]
    slightly = torch.tensor([[1.0, 1.0 + 5e-9], [1.0 + 5e-9, 1.0]]).double()
    for off, jitter in ((5e-9, 1e-8), (5e-7, 1e-6)):
        K = slightly.clone()
        K[0, 1] = K[1, 0] = 1.0 + off
        L, keep = factor(K[None], torch.zeros(1, 2).double())
        torch.testing.assert_close(L[0], torch.linalg.cholesky(K + jitter * eye), rtol=1e-6, atol=1e-9)
        assert keep.tolist() == [True]
    K[0, 1] = K[1, 0] = 1.0 + 5e-5  # the first must have one
    L, keep = factor(torch.stack([K, good]), torch.zeros(1, 2).double())
    torch.testing.assert_close(L[0], torch.linalg.cholesky(K + 1e-4 * eye), rtol=1e-6, atol=1e-9)
    assert keep.tolist() == [True, True]


def test_the_memory_that_a_fit_needs(tmp_path: Path) -> None:
    require_memory(10, 3, 8 * 8 * 3 * 100)
    with pytest.raises(Exception, match=r"got n=10 observations and 3 kernels"):
        require_memory(10, 3, 8 * 8 * 3 * 100 - 1)
    path = tmp_path / "meminfo"
    path.write_text("MemTotal:  12 kB\nMemAvailable: 7 kB\nodd\n")
    assert _fields(path) == {"MemTotal:": 12, "MemAvailable:": 7}
