"""The Gaussian process of the embedding as a BoTorch model: a mixture over metrics, matched by its first two moments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import FantasizeMixin, Model
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultivariateNormal
from torch import Tensor

from .._seeds import generator
from .chain import CHAINS, State, sample
from .fit import Hyperparameters, LogPosterior, Prior, cold_start, fit
from .kernel import distances
from .laplace import default_inflation, draws


class Conditioned:
    """Each sampled metric's GP, conditioned on data of its own: the algebra that the posterior and the draws share."""

    def __init__(
        self,
        Y: Tensor,  # *B x n x d
        v: Tensor,  # *B x (1 or m) x n, standardised outcomes
        noise: Tensor,  # *B x (1 or m) x n
        U: Tensor,  # m x d x d
        variance: Tensor,  # m
        shift: float,
        scale: float,
    ) -> None:
        self.shift, self.scale = shift, scale
        Z = Y.unsqueeze(-3) @ U.mT  # *B x m x n x d
        L, keep = _factor(variance[:, None, None] * torch.exp(-0.5 * distances(Z, Z)), noise)
        if not bool(keep.all()):  # a draw whose covariance cannot be factored is left out
            U, variance, Z, L = U[keep], variance[keep], Z[..., keep, :, :], L[..., keep, :, :]
            v = v if v.shape[-2] == 1 else v[..., keep, :]
        self.keep, self.U, self.Z, self.m, self.variance = keep, U, Z, len(U), variance
        self.v = v.expand(*v.shape[:-2], self.m, v.shape[-1])
        self.Linv = torch.linalg.solve_triangular(L, torch.eye(Y.shape[-2], dtype=Y.dtype).expand_as(L), upper=False)
        ones = self.Linv.sum(-1)  # L^-1 1
        target = (self.Linv @ self.v.unsqueeze(-1)).squeeze(-1)  # L^-1 v
        self.mean = (ones * target).sum(-1) / (ones * ones).sum(-1)  # *B x m, the best constant mean
        self.alpha = (self.Linv.mT @ (target - self.mean.unsqueeze(-1) * ones).unsqueeze(-1)).squeeze(-1)  # *B x m x n

    def components(self, X: Tensor, full: bool = False) -> tuple[Tensor, Tensor]:
        """Mean and (co)variance under each metric, standardised.  ... x q x d -> ... x m x q, ... x m x q (x q)"""
        if self.Z.dim() == 3 and X.dim() > 2:  # all batches against the same data: one matrix product for each metric
            flat = X.reshape(-1, X.shape[-1])
            Z, mean, V, _ = self._project(flat)  # m x N x d, m x N, m x N x n
            batch, q = X.shape[:-2], X.shape[-2]
            Z, V = (T.reshape(self.m, *batch, q, T.shape[-1]).movedim(0, -3) for T in (Z, V))
            mean = mean.reshape(self.m, *batch, q).movedim(0, -2)
        else:
            Z, mean, V, _ = self._project(X)
        if not full:
            return mean, (self.variance[:, None] - (V * V).sum(-1)).clamp_min(1e-12)
        return mean, self.variance[:, None, None] * torch.exp(-0.5 * distances(Z, Z)) - V @ V.mT

    def _project(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Scaled points, posterior means, L^-1 k and k.  ... x q x d -> ... x m x q x d, ... x m x q, ... x m x q x n twice"""
        Z = X.unsqueeze(-3) @ self.U.mT
        k = self.variance[:, None, None] * torch.exp(-0.5 * distances(Z, self.Z))
        return Z, self.mean.unsqueeze(-1) + (k @ self.alpha.unsqueeze(-1)).squeeze(-1), k @ self.Linv.mT, k

    def linearised(self, W: Tensor) -> tuple[Tensor, Tensor, Callable[[Tensor, Tensor], Tensor]]:
        """Mean and variance at single points, and how a change of them pulls at the points.

        `back` takes the derivatives of a number with respect to both and returns those with respect to the points: half
        the time of automatic differentiation.  k x d -> m x k, m x k, (m x k, m x k -> k x d)
        """
        Z, mean, V, near = self._project(W)
        left = self.variance[:, None] - (V * V).sum(-1)

        def back(by_mean: Tensor, by_variance: Tensor) -> Tensor:
            by_variance = torch.where(left > 1e-12, by_variance, torch.zeros_like(left)).unsqueeze(-1)
            pull = by_mean.unsqueeze(-1) * self.alpha.unsqueeze(-2) - (2.0 * by_variance * V) @ self.Linv
            pull *= near
            moved: Tensor = (pull @ self.Z - pull.sum(-1, keepdim=True) * Z) @ self.U
            return moved.sum(0)

        return mean, left.clamp_min(1e-12), back


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
        some = slice(i % of, None, of)
        noises = self.noises if self.noises.shape[-2] == 1 else self.noises[..., some, :]
        return MahalanobisGP(
            self.Y, self.v, noises, self.U[some], self.variance[some], self.shift, self.scale, self.known_noise
        )

    def draw(self, Y: Tensor, rng: np.random.Generator) -> Conditioned:
        """For each metric one joint draw of the noiseless outcome at Y, and the GP conditioned on it.  Y: k x d"""
        mean, cov = self.data.components(Y, full=True)  # m x k, m x k x k
        L, _ = _factor(cov, torch.full_like(mean, 1e-7))
        white = torch.from_numpy(rng.standard_normal((*mean.shape, 1)))
        v = mean + (L @ white).squeeze(-1)
        jitter = 1e-6 * (1e-3 * self.variance).clamp_min(1.0)[:, None].expand(-1, len(Y))
        return Conditioned(Y, v, jitter, self.U, self.variance, self.shift, self.scale)

    def noise_evidence(self) -> float:
        """By how much the data are more likely with noise than without any, each at its best: a log likelihood ratio."""
        bare = Prior(ridge=0.5, noise=0.0)
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

    def foresight(self, among: slice | Tensor = slice(None)) -> float:
        """The log density of every outcome as the others predict it, summed: how well some samples would have done."""
        mean, sd = self.leave_one_out(among)
        z = (self.train_targets - mean) / sd
        return float((-0.5 * z**2 - torch.log(sd / self.scale)).sum())

    def unexplained(self) -> float:
        """The share of the outcomes' variation that the others do not predict, beyond the noise: 0 for a perfect model."""
        mean, _ = self.leave_one_out()
        off = (mean - self.train_targets) / self.scale
        total = float(self.v.var(unbiased=False))
        return max(float((off**2).mean() - self.noise.mean()) / total, 0.0) if total > 0 else 0.0


def sample_gp(
    Y: Tensor,
    values: Tensor,
    *,
    variances: Tensor | None = None,
    samples: int = 12,
    seed: int = 0,
    prior: Prior | None = None,
    warm: Sequence[Sequence[float]] = (),
    afresh: bool = False,
) -> MahalanobisGP:
    """Sample the kernel's posterior given outcomes at embedded points: metric, scale and noise together.

    `variances` are known noise variances (None: the noise is inferred); `warm` is the `memory` of a model of fewer data. With
    `afresh` one more chain starts from nothing, and the one that foresees the data worst ends. Noise and detail explain the
    same data in two ways, and no chain walks from one to the other: one that foresees outcomes worse than the best chain
    does, by a factor e each, goes on from where that one stands. (Not sooner: of two that differ by less, the one with the
    better foresight is often just the surer one.)
    """
    target, shift, scale = _standardised(Y, values, variances, Prior() if prior is None else prior)
    rng = generator(seed, "chain")

    def model(runs: Sequence[tuple[list[Hyperparameters], State]]) -> MahalanobisGP:
        found = [h for kernels, _ in runs for h in kernels]
        return MahalanobisGP(
            target.Y,
            target.v,
            torch.stack([target.noise(h.log_noise) for h in found]),
            torch.stack([h.U for h in found]),
            torch.tensor([math.exp(h.log_scale) for h in found], dtype=torch.double),
            shift,
            scale,
            variances is not None,
            [end.pack() for _, end in runs],
        )

    def foresights(made: MahalanobisGP) -> list[float]:
        owner = torch.repeat_interleave(torch.arange(len(runs)), torch.tensor([len(kernels) for kernels, _ in runs]))
        parts = [torch.nonzero(owner[made.data.keep] == i).flatten() for i in range(len(runs))]
        return [made.foresight(part) if len(part) else -math.inf for part in parts]

    starts: list[State | None] = [State.unpack(packed) for packed in warm] or [None] * min(CHAINS, samples)
    shares = [len(part) for part in np.array_split(np.arange(samples), len(starts))]
    runs = [sample(target, start, m, rng) for start, m in zip(starts, shares, strict=True)]
    if warm and afresh:
        runs.append(sample(target, None, shares[0], rng))
    made = model(runs)
    score = foresights(made)
    best = runs[int(np.argmax(score))][1]
    lost = [i for i, s in enumerate(score) if s < max(score) - target.n]
    for i in lost:
        runs[i] = sample(target, best, len(runs[i][0]), rng)
    if len(runs) > len(starts):
        del runs[int(np.argmin(score))]
    return model(runs) if lost or len(runs) < len(score) else made


def fit_gp(
    Y: Tensor,
    values: Tensor,
    *,
    variances: Tensor | None = None,
    samples: int = 10,
    seed: int = 0,
    prior: Prior | None = None,
    warm: Sequence[Sequence[float]] = (),
    cold: int = 3,
    iterations: int = 100,
    inflation: float | None = None,
) -> MahalanobisGP:
    """The paper's way (S2): the best metric, scale and noise, and draws from a Laplace approximation of the metric.

    `cold` random starts are tried beside `warm`; `inflation` scales the Laplace covariance (None: `default_inflation`).
    The mode is the first sample.
    """
    target, shift, scale = _standardised(Y, values, variances, Prior() if prior is None else prior)
    rng = generator(seed, "fit")
    d = target.d
    start = Hyperparameters.unpack(warm[0]).padded(d, rng) if warm else None
    others = [cold_start(d, rng) for _ in range(cold if start is not None else max(cold, 1))]
    mode, _ = fit(target, start, others, iterations=iterations)
    U = draws(target, mode, samples, rng, inflation=default_inflation(target.n) if inflation is None else inflation)
    variance = torch.full((len(U),), math.exp(mode.log_scale), dtype=torch.double)
    noise = target.noise(mode.log_noise).unsqueeze(0)
    return MahalanobisGP(
        target.Y, target.v, noise, U, variance, shift, scale, variances is not None, [mode.pack().tolist()]
    )


def _standardised(
    Y: Tensor, values: Tensor, variances: Tensor | None, prior: Prior
) -> tuple[LogPosterior, float, float]:
    """The posterior of the kernel given the outcomes, centred and scaled, with the shift and the scale."""
    Y, values = Y.double(), values.double()
    shift = float(values.mean())
    spread = float(values.std(unbiased=False)) if len(Y) > 1 else 0.0
    scale = spread if spread > 1e-12 * max(abs(shift), 1e-300) else max(abs(shift), 1.0)
    known = None if variances is None else variances.double() / scale**2
    return LogPosterior(Y, (values - shift) / scale, known, prior), shift, scale


def _factor(K: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Cholesky factors with as little jitter as it takes, and which samples have one.  -> ... x m x n x n, m"""
    info = torch.ones(())
    for jitter in (0.0, 1e-8, 1e-6):
        L, info = torch.linalg.cholesky_ex(K + torch.diag_embed(noise + jitter * K.diagonal(dim1=-2, dim2=-1)))
        bad = info != 0
        if not bool(bad.any()):
            break
    m = K.shape[-3]
    good = (info.reshape(-1, m) == 0).all(0)
    if not bool(good[0]):
        L = torch.linalg.cholesky(K + torch.diag_embed(noise + 1e-4 * K.diagonal(dim1=-2, dim2=-1)))
        good = torch.ones(m, dtype=torch.bool)
    return L, good
