"""The Gaussian process of the embedding as a BoTorch model: a mixture over metrics, matched by its first two moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import FantasizeMixin, Model
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultivariateNormal
from torch import Tensor

from ..surrogate import Marginals, unexplained
from .conditioned import Conditioned, factor
from .kernel import gram
from .likelihood import Hyperparameters, LogPosterior, MetricPrior, fit

MANY = 100  # observations beyond which draws are made by Matheron's rule: the same law, in a quarter of the time


class MahalanobisGP(Model, FantasizeMixin):
    """A posterior over one outcome in the embedding, averaged over m samples of the kernel by moment matching (paper, S2).

    Fitted and frozen: build it with `sample_gp` or, by the paper's Laplace approximation, `fit_gp`. It accepts points `... x q x d` like any BoTorch model, and any BoTorch
    acquisition function accepts it. Inside, outcomes are standardised; posteriors come back in the user's units.
    """

    def __init__(
        self,
        Y: Tensor,  # *B x n x d, embedded points
        v: Tensor,  # *B x n, standardised outcomes
        noises: Tensor,  # *B x (1 or m) x n, variances of the standardised outcomes
        U: Tensor,  # m x d x d, samples of the metric's factor
        variance: Tensor,  # m, of the signal
        shift: float = 0.0,
        scale: float = 1.0,
        known_noise: bool = False,
        memory: Sequence[Sequence[float]] = (),
    ) -> None:
        super().__init__()
        self.Y, self.v, self.memory = Y, v, memory  # memory: where the next model may start
        self.shift, self.scale, self.known_noise = shift, scale, known_noise
        self.train_inputs = (Y,)
        self.train_targets = shift + scale * v
        self.data = Conditioned(Y, v.unsqueeze(-2), noises, U, variance, shift, scale)
        self.U, self.variance = self.data.U, self.data.variance
        self.noises = noises if noises.shape[-2] == 1 else noises[..., self.data.keep, :]

    @property
    def num_outputs(self) -> int:
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        return self.Y.shape[:-2]

    @property
    def dim(self) -> int:
        return self.Y.shape[-1]

    @property
    def noise(self) -> Tensor:
        """The variance of every standardised outcome, as the middle one of the samples has it.  -> *B x n"""
        return self.noises.median(-2).values

    @property
    def gamma(self) -> Tensor:
        """The sampled metrics of the paper, Gamma = U'U / 2.  -> m x d x d"""
        return 0.5 * self.U.mT @ self.U

    @property
    def points(self) -> Tensor:
        """The training points.  -> *B x n x d"""
        return self.Y

    def marginals(self, W: Tensor) -> Marginals:
        """Mean and variance of the noiseless outcome at single points, moment-matched.  k x d -> 1 x k, 1 x k"""
        found = self.data.marginals(W)
        mean = found.mean.mean(0)
        off, m = found.mean - mean, self.data.m

        def back(by_mean: Tensor, by_variance: Tensor) -> Tensor:
            return found.back((by_mean + 2.0 * by_variance * off) / m, (by_variance / m).expand_as(off))

        return Marginals(mean[None], (found.variance.mean(0) + (off**2).mean(0))[None], back)

    def subset_output(self, idcs: list[int]) -> MahalanobisGP:
        return self

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance at single points, in the user's units at any scale.  ... x 1 x d -> ..., ..."""
        means, variances = self.data.components(X)
        variance = variances.mean(-2) + means.var(-2, unbiased=False)
        return self.shift + self.scale * means.mean(-2).squeeze(-1), self.scale**2 * variance.squeeze(-1)

    def posterior(  # type: ignore[override]  # BoTorch's own two parents disagree
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
        **kwargs: Any,
    ) -> Any:
        """The moment-matched joint posterior at `... x q x d`."""
        q = X.shape[-2]
        means, cov = self.data.components(X, full=q > 1)
        mean = means.mean(-2)
        off = means - mean.unsqueeze(-2)  # ... x m x q
        if q == 1:
            cov = (cov.mean(-2) + (off**2).mean(-2)).unsqueeze(-1)
        else:
            cov = cov.mean(-3) + off.mT @ off / off.shape[-2]
            cov = cov + 1e-9 * torch.eye(q, dtype=cov.dtype)
        if observation_noise is not False:
            extra = (
                self.noise.mean(-1)[..., None, None]
                if observation_noise is True
                else torch.diag_embed(observation_noise.squeeze(-1) / self.scale**2)
            )
            cov = cov + extra * torch.eye(q, dtype=cov.dtype)
        posterior = GPyTorchPosterior(MultivariateNormal(self.shift + self.scale * mean, self.scale**2 * cov))
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> MahalanobisGP:
        """The model with more observations and the same samples of the metric.  X: ... x k x d, Y: ... x k x 1"""
        v = (Y.squeeze(-1) - self.shift) / self.scale
        batch = torch.broadcast_shapes(X.shape[:-2], v.shape[:-1], self.batch_shape)
        noise = kwargs.get("noise")
        k = X.shape[-2]
        m = self.noises.shape[-2]
        least = self.noises.min(-1, keepdim=True).values
        new = least if noise is None else noise.squeeze(-1).unsqueeze(-2) / self.scale**2
        return MahalanobisGP(
            torch.cat([self.Y.expand(*batch, *self.Y.shape[-2:]), X.expand(*batch, *X.shape[-2:])], -2),
            torch.cat([self.v.expand(*batch, self.v.shape[-1]), v.expand(*batch, k)], -1),
            torch.cat([self.noises.expand(*batch, *self.noises.shape[-2:]), new.expand(*batch, m, k)], -1),
            self.U,
            self.variance,
            self.shift,
            self.scale,
        )

    def conditioned(self, points: Tensor, v: Tensor) -> MahalanobisGP:
        """The same model with noiseless observations `v`, standardised, at more points.  k x d, k"""
        return self.condition_on_observations(points, (self.shift + self.scale * v).unsqueeze(-1))

    def believing(self, points: Tensor) -> MahalanobisGP:
        """The model as if these points had been measured and found at its mean: for pending points.  k x d"""
        return self.conditioned(points, self.marginals(points).mean[0])

    @property
    def likelihood(self) -> Any:
        """What BoTorch's fantasies add to draws: noise as large as that of the least noisy observation."""
        from gpytorch.constraints import GreaterThan
        from gpytorch.likelihoods import GaussianLikelihood

        made = GaussianLikelihood(noise_constraint=GreaterThan(1e-12))
        made.noise = max(float(self.noise.min()) * self.scale**2, 1e-10)
        return made.double()

    def share(self, i: int, of: int) -> MahalanobisGP:
        """The model with one of `of` equal shares of its samples."""
        of = min(of, len(self.U))
        out = self.among(slice(i % of, None, of))
        out.memory = ()
        return out

    def among(self, some: slice | Tensor) -> MahalanobisGP:
        """The model with some of its samples; nothing is factored again."""
        out = copy(self)
        out.data, out.U, out.variance = self.data.part(some), self.U[some], self.variance[some]
        out.noises = self.noises if self.noises.shape[-2] == 1 else self.noises[..., some, :]
        return out

    def draw(self, Y: Tensor, rng: np.random.Generator) -> Conditioned:
        """For each metric one joint draw of the noiseless outcome at Y, and the GP conditioned on it.  Y: k x d"""
        n = self.Y.shape[-2]
        if n > MANY and self.Y.dim() == 2 and torch.equal(Y[:n], self.Y):
            drawn = self._draw_from_prior(Y, rng)
            if drawn is not None:
                return drawn
        mean, cov = self.data.components(Y, full=True)  # m x k, m x k x k
        L, _ = factor(cov, torch.full_like(mean, 1e-7))
        white = torch.from_numpy(rng.standard_normal((*mean.shape, 1)))
        v = mean + (L @ white).squeeze(-1)
        jitter = 1e-6 * (1e-3 * self.variance).clamp_min(1.0)[:, None].expand(-1, len(Y))
        return Conditioned(Y, v, jitter, self.U, self.variance, self.shift, self.scale)

    def _draw_from_prior(self, Y: Tensor, rng: np.random.Generator) -> Conditioned | None:
        """As `draw` at Y (k x d) that begin with the data, by Matheron's rule: the prior's draw, corrected by the data.

        The prior's covariance at Y is factored once, for the draw and for the GP conditioned on it; None where that of some
        metric cannot be factored.
        """
        jitter = 1e-6 * (1e-3 * self.variance).clamp_min(1.0)[:, None].expand(-1, len(Y))
        Z = Y @ self.U.mT
        K = gram(Z, Z, self.variance)
        L, keep = factor(K, jitter)
        if not bool(keep.all()):
            return None
        data, n = self.data, len(self.v)
        across = K if torch.equal(Z, data.Z) else gram(Z, data.Z, self.variance)  # with the data
        prior = (L @ torch.from_numpy(rng.standard_normal((*jitter.shape, 1)))).squeeze(-1)  # m x k
        noise = self.noises.sqrt() * torch.from_numpy(rng.standard_normal((data.m, n)))  # m x n
        off = self.v - data.mean[:, None] - prior[:, :n] - noise
        weights = data.Linv.mT @ (data.Linv @ off.unsqueeze(-1))  # m x n x 1
        v = data.mean[:, None] + prior + (across @ weights).squeeze(-1)
        return Conditioned(Y, v, jitter, self.U, self.variance, self.shift, self.scale, root=L)

    def correlation(self, A: Tensor, B: Tensor) -> Tensor:
        """The posterior correlation of the outcome at pairs of points, moment-matched.  ... x d, ... x d -> ..."""
        means, cov = self.data.components(torch.stack([A, B], dim=-2), full=True)  # ... x m x 2, ... x m x 2 x 2
        off = means - means.mean(-2, keepdim=True)
        cov = cov.mean(-3) + off.mT @ off / off.shape[-2]
        return cov[..., 0, 1] / cov.diagonal(dim1=-2, dim2=-1).clamp_min(1e-12).prod(-1).sqrt()

    def noise_evidence(self) -> float:
        """By how much the data are more likely with noise than without any, each at its best: a log likelihood ratio."""
        bare = MetricPrior(ridge=0.5, noise=0.0)
        start = Hyperparameters(
            torch.linalg.qr(self.U[-1], mode="r")[1],
            math.log(float(self.variance[-1])),
            math.log(float(self.noises[..., -1, :].mean())),
        )
        values = [
            fit(LogPosterior(self.Y, self.v, known, bare), start, iterations=60)[1]
            for known in (None, torch.zeros_like(self.v))
        ]
        return values[0] - values[1]

    def leave_one_out(self, among: slice | Tensor = slice(None)) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation at each training point as predicted from the others, moment-matched.  -> n, n"""
        diagonal = (self.data.Linv[..., among, :, :] ** 2).sum(-2)  # of the inverse covariance, m x n
        means = self.v - self.data.alpha[..., among, :] / diagonal
        variance = (1.0 / diagonal).mean(-2) + means.var(-2, unbiased=False)
        return self.shift + self.scale * means.mean(-2), self.scale * variance.sqrt()

    def loo_log_density(self, among: slice | Tensor = slice(None)) -> float:
        """The summed leave-one-out log density of the standardised outcomes, up to a constant, under some of the samples."""
        mean, sd = self.leave_one_out(among)
        z = (self.train_targets - mean) / sd
        return float((-0.5 * z**2 - torch.log(sd / self.scale)).sum())

    def unexplained(self) -> float:
        """The share of the outcomes' variation that the others do not predict, beyond the noise: 0 for a perfect model."""
        return unexplained(self)
