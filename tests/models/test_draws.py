"""Joint draws at measured and further points, with many data by Matheron's rule: the law of the direct draws."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from alebo.acquisition import NoisyLogEI
from alebo.models.mahalanobis import MahalanobisGP
from alebo.models.mahalanobis import model as module


def process(n: int, m: int, noise: float = 0.05) -> MahalanobisGP:
    """A model of n points with m times the same kernel."""
    rng = np.random.default_rng(0)
    Y = torch.from_numpy(rng.uniform(-1, 1, (n, 2)))
    v = torch.sin(3.0 * Y[:, 0]) + 0.3 * Y[:, 1]
    U = 1.5 * torch.eye(2, dtype=torch.double).expand(m, 2, 2)
    return MahalanobisGP(Y, v, torch.full((1, n), noise).double(), U, torch.ones(m, dtype=torch.double))


def test_the_law_is_that_of_the_posterior() -> None:
    model = process(module.MANY + 5, 2000)
    points = torch.cat([model.Y, torch.tensor([[0.2, 1.5], [2.0, 0.0]]).double()])  # two that were not measured
    drawn = model.draw(points, np.random.default_rng(1)).v  # 2000 x k
    mean, covariance = (t[0] for t in model.data.components(points, full=True))
    spread = covariance.diagonal().sqrt()
    assert float(((drawn.mean(0) - mean) / spread).abs().max()) < 4.5 / 2000**0.5
    found = torch.cov(drawn.T)
    assert float(((found - covariance) / torch.outer(spread, spread)).abs().max()) < 0.15


def test_the_process_after_a_draw_goes_through_it() -> None:
    model = process(module.MANY + 5, 3)
    drawn = model.draw(model.Y, np.random.default_rng(1))
    found = drawn.marginals(model.Y)
    torch.testing.assert_close(found.mean, drawn.v, atol=5e-3, rtol=0.0)
    assert float(found.variance.max()) < 1e-3


@pytest.mark.parametrize("elsewhere", [False, True])
def test_few_data_and_other_points_are_drawn_directly(elsewhere: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = process(module.MANY + 5 if elsewhere else module.MANY, 3)
    monkeypatch.setattr(MahalanobisGP, "_draw_from_prior", lambda *_: pytest.fail("by Matheron's rule"))
    points = model.Y + 0.1 if elsewhere else model.Y
    assert model.draw(points, np.random.default_rng(1)).v.shape == (3, len(points))


def test_shares_of_the_draws_together_are_the_whole() -> None:
    model = process(module.MANY + 5, 6)
    whole = NoisyLogEI(model, pending=torch.zeros(1, 2, dtype=torch.double), seed=1)
    X = torch.tensor([[[0.4, 0.1]], [[0.9, 0.9]]]).double()
    shares = [whole.share(i, 3) for i in range(3)]
    parts = torch.stack([share(X) for share in shares if share is not None])
    assert parts.shape == (3, 2)
    torch.testing.assert_close(torch.logsumexp(parts, 0) - np.log(3.0), whole(X))
    W = X.squeeze(1)
    for share in shares:
        assert share is not None
        assert len(share.best) == share.m == 2
        torch.testing.assert_close(share.with_gradient(W)[0], share(X))
