"""The Gaussian process of the peers: one lengthscale per coordinate, fitted in milliseconds; and a maximiser in a box.

The Mahalanobis model of `models` is for linear embeddings; this one is what every other method means by "a GP".
Inputs are coordinates of about [-1, 1] (scale a box to it first); outcomes come in the user's units, standardised here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.stats import qmc
from torch import Tensor

from .._seeds import generator
from ..goals import AtMost, Goals
from ..history import Trial

Array: TypeAlias = NDArray[np.float64]
Kernel: TypeAlias = Literal["matern", "rbf"]
Acquisition: TypeAlias = Callable[[Tensor], Tensor]  # m x d -> m

NOISE_FLOOR = 1e-6  # variance, in standardised units: what keeps a Cholesky factor of noiseless data alive


def kernel_of(r2: Tensor, kernel: Kernel) -> tuple[Tensor, Tensor]:
    """k and dk/dr2 at squared scaled distances."""
    if kernel == "rbf":
        k = torch.exp(-0.5 * r2)
        return k, -0.5 * k
    r = torch.sqrt(5.0 * r2.clamp_min(1e-20))
    e = torch.exp(-r)
    return (1.0 + r + r * r / 3.0) * e, -(5.0 / 6.0) * (1.0 + r) * e


def squared_distances(X: Tensor, Z: Tensor) -> Tensor:
    """... x n x d, m x d -> ... x n x m"""
    cross = X @ Z.T
    return (X.square().sum(-1)[..., :, None] + Z.square().sum(-1) - 2.0 * cross).clamp_min(0.0)


@dataclass(frozen=True, eq=False)
class GP:
    """A fitted process: constant mean, ARD kernel, and the factors that predictions need."""

    X: Tensor  # n x d
    y: Tensor  # n, standardised
    kernel: Kernel
    lengthscales: Tensor  # d
    scale: float  # the kernel's variance, standardised units
    noise: Tensor  # n, variances, standardised units
    mean: float  # standardised units
    shift: float  # y = (told - shift) / spread
    spread: float
    chol: Tensor  # n x n
    alpha: Tensor  # n
    log_likelihood: float  # log posterior density of the data and parameters at the fit

    def posterior(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the noiseless function, in the user's units, with gradients.  m x d -> m, m"""
        k, _ = kernel_of(squared_distances(X / self.lengthscales, self.X / self.lengthscales), self.kernel)
        k = self.scale * k
        v = torch.linalg.solve_triangular(self.chol, k.T, upper=False)
        mean = self.mean + k @ self.alpha
        variance = (self.scale - v.square().sum(0)).clamp_min(1e-12)
        return self.shift + self.spread * mean, self.spread**2 * variance

    def condition(self, X: Tensor, y: Tensor) -> GP:
        """The same process (same parameters) with `y`, in the user's units, also measured at `X`."""
        added = torch.full((len(X),), NOISE_FLOOR, dtype=X.dtype)
        X, z, noise = (
            torch.cat([self.X, X]),
            torch.cat([self.y, (y - self.shift) / self.spread]),
            torch.cat([self.noise, added]),
        )
        chol, alpha = _factor(X / self.lengthscales, z - self.mean, self.kernel, self.scale, noise)
        return replace(self, X=X, y=z, noise=noise, chol=chol, alpha=alpha)

    def believe(self, X: Tensor) -> GP:
        """The same process as if `X` had been measured and found at its mean: how pending points are kept apart."""
        with torch.no_grad():
            return self.condition(X, self.posterior(X)[0])

    def sample(self, X: Tensor, count: int, seed: int) -> Tensor:
        """Joint draws of the noiseless function, in the user's units.  m x d -> count x m"""
        k, _ = kernel_of(squared_distances(X / self.lengthscales, self.X / self.lengthscales), self.kernel)
        prior, _ = kernel_of(squared_distances(X / self.lengthscales, X / self.lengthscales), self.kernel)
        v = torch.linalg.solve_triangular(self.chol, self.scale * k.T, upper=False)
        covariance = self.scale * prior - v.T @ v
        covariance.diagonal().add_(1e-8 * self.scale + 1e-12)
        L = safe_cholesky(covariance)
        z = torch.from_numpy(generator(seed, "sample").standard_normal((len(X), count)))
        return self.shift + self.spread * (self.mean + self.scale * k @ self.alpha + (L @ z).T)


def fit_ard_gp(
    X: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    *,
    noise: float | ArrayLike | None = None,
    kernel: Kernel = "matern",
    isotropic: bool = False,
    restarts: int = 1,
    iterations: int = 100,
    seed: int = 0,
) -> GP:
    """The most probable process for `n x d` inputs in about [-1, 1]^d and `n` outcomes in any unit.

    `noise` is the measurements' variance in the user's units (a number or n of them); None infers it. Lengthscales
    have the prior that scales with the dimension (Hvarfner et al. 2024): the same call serves d = 2 and d = 1000.
    """
    Xt = torch.as_tensor(np.asarray(X, dtype=float)).contiguous()
    raw = torch.as_tensor(np.asarray(y, dtype=float)).reshape(-1)
    n, d = Xt.shape
    shift = float(raw.mean())
    spread = float(raw.std(unbiased=False)) if n > 1 else 0.0
    spread = spread if spread > 1e-12 * max(1.0, abs(shift)) else 1.0
    z = (raw - shift) / spread
    fixed: Tensor | None = None
    if noise is not None:
        told = torch.as_tensor(np.asarray(noise, dtype=float)).expand(n)
        fixed = (told / spread**2).clamp_min(NOISE_FLOOR)
    p = 1 if isotropic else d
    centre = math.sqrt(2.0) + 0.5 * math.log(d) + math.log(2.0)  # of log lengthscale, in a cube of side 2
    width2 = 3.0

    def objective(theta: Array) -> tuple[float, Array]:
        log_l, log_s, c = theta[:p], theta[p], theta[p + 1]
        l = torch.from_numpy(np.exp(log_l))
        U = Xt / l
        k, dk = kernel_of(squared_distances(U, U), kernel)
        s = math.exp(log_s)
        sigma = fixed if fixed is not None else torch.full((n,), math.exp(theta[p + 2]), dtype=torch.double)
        K = s * k
        K.diagonal().add_(sigma)
        L, info = torch.linalg.cholesky_ex(K)
        if int(info) > 0:
            return 1e10, np.zeros_like(theta)
        inverse = torch.cholesky_inverse(L)
        residual = z - c
        a = inverse @ residual
        value = 0.5 * float(residual @ a) + float(L.diagonal().log().sum()) + 0.5 * n * math.log(2 * math.pi)
        M = 0.5 * (torch.outer(a, a) - inverse)  # d log likelihood / dK
        grad = np.zeros_like(theta)
        W = s * M * dk
        # sum_ab W_ab (u_a - u_b)^2 without an n x n x d array
        by_coordinate = 2.0 * (W.sum(1) @ U.square() - ((W @ U) * U).sum(0))
        g = (2.0 * by_coordinate).numpy()  # minus the log likelihood, and dr2/dlog l = -2 u^2
        grad[:p] = g.sum() if isotropic else g
        grad[p] = -float((M * k).sum()) * s
        grad[p + 1] = -float(a.sum())
        value += float(np.sum((log_l - centre) ** 2) / (2 * width2) + np.sum(log_l))  # log-normal prior on l
        grad[:p] += (log_l - centre) / width2 + 1.0
        value += 0.5 * log_s**2  # the data are standardised: a variance of about one
        grad[p] += log_s
        if fixed is None:
            noise_term = math.exp(theta[p + 2])
            grad[p + 2] = -float(M.diagonal().sum()) * noise_term + 0.1 * (theta[p + 2] + 9.0)
            value += 0.05 * (theta[p + 2] + 9.0) ** 2  # weak: most functions met here are nearly exact
        return value, grad

    bounds = [(math.log(1e-2), math.log(1e3))] * p + [(-5.0, 5.0), (-5.0, 5.0)]
    bounds += [] if fixed is not None else [(math.log(NOISE_FLOOR), math.log(2.0))]
    mode = centre - width2
    rng = generator(seed, "fit")
    starts = [np.concatenate([np.full(p, mode + 0.5 * math.log(10)), [0.0, 0.0], [] if fixed is not None else [-7.0]])]
    for _ in range(restarts):
        start = starts[0].copy()
        start[:p] = mode + 1.2 * rng.standard_normal(p) + 0.5 * math.log(10)
        start[p + 2 :] = -9.0
        starts.append(start)
    found = [
        minimize(objective, s, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations})
        for s in starts
    ]
    best = min(found, key=lambda r: float(r.fun))
    theta = np.asarray(best.x)
    lengthscales = torch.from_numpy(np.exp(theta[:p])).expand(d).clone()
    sigma = fixed if fixed is not None else torch.full((n,), math.exp(theta[p + 2]), dtype=torch.double)
    scale, c = math.exp(theta[p]), float(theta[p + 1])
    chol, alpha = _factor(Xt / lengthscales, z - c, kernel, scale, sigma)
    return GP(Xt, z, kernel, lengthscales, scale, sigma, c, shift, spread, chol, alpha, -float(best.fun))


def _factor(U: Tensor, residual: Tensor, kernel: Kernel, scale: float, noise: Tensor) -> tuple[Tensor, Tensor]:
    k, _ = kernel_of(squared_distances(U, U), kernel)
    K = scale * k
    K.diagonal().add_(noise)
    L = safe_cholesky(K)
    return L, torch.cholesky_solve(residual[:, None], L)[:, 0]


def safe_cholesky(K: Tensor) -> Tensor:
    """The lower factor, with as little added to the diagonal as makes it exist."""
    jitter = 0.0
    for _ in range(8):
        L: Tensor
        L, info = torch.linalg.cholesky_ex(K + jitter * torch.eye(len(K), dtype=K.dtype))
        if int(info) == 0:
            return L
        jitter = max(10.0 * jitter, 1e-9 * float(K.diagonal().mean()))
    raise AssertionError("a kernel matrix has no Cholesky factor even with a large jitter")


def log_expected_improvement(mean: Tensor, variance: Tensor, best: float) -> Tensor:
    """log E[max(best - f, 0)] that neither underflows nor loses its gradient far below the best."""
    sd = variance.sqrt()
    return sd.log() + log_h((best - mean) / sd)


def log_h(z: Tensor) -> Tensor:
    """log(phi(z) + z Phi(z)), stable for every z."""
    half_log_2pi = 0.5 * math.log(2.0 * math.pi)
    top = z.clamp_min(-1.0)
    direct = torch.log(torch.exp(-0.5 * top.square() - half_log_2pi) + top * torch.special.ndtr(top))
    low = z.clamp(-1e3, -1.0)
    # phi (1 - |z| Phi/phi), and Phi/phi is a scaled erfc
    mills = math.sqrt(math.pi / 2.0) * torch.special.erfcx(-low / math.sqrt(2.0))
    middle = -0.5 * low.square() - half_log_2pi + torch.log1p(low * mills)
    far = z.clamp_max(-1e3)
    tail = -0.5 * far.square() - half_log_2pi - 2.0 * torch.log(-far)
    return torch.where(z > -1.0, direct, torch.where(z > -1e3, middle, tail))


def maximise_in_box(
    acquisition: Acquisition,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    seed: int,
    starts: int = 6,
    raw: int = 1024,
    extra: ArrayLike | None = None,
    iterations: int = 100,
    chunk: int = 512,
) -> tuple[Array, float]:
    """The best point found in the box and its value: quasi-random and `extra` points, the best refined by L-BFGS-B.

    `acquisition` maps m x d to m and must be differentiable by Torch. -> d, value
    """
    lower, upper = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    d = len(lower)
    rng = generator(seed, "maximise")
    if d <= 64:
        unit = qmc.Sobol(d, scramble=True, rng=rng).random_base2(max(1, math.ceil(math.log2(raw))))
    else:
        unit = rng.random((raw, d))
    points = lower + unit * (upper - lower)
    if extra is not None:
        points = np.concatenate([np.clip(np.asarray(extra, dtype=float).reshape(-1, d), lower, upper), points])
    with torch.no_grad():
        values = torch.cat([acquisition(torch.from_numpy(c)) for c in np.array_split(points, -(-len(points) // chunk))])
    score = np.nan_to_num(values.numpy(), nan=-np.inf, posinf=-np.inf)
    order = np.argsort(-score, kind="stable")
    chosen = list(order[: max(1, starts // 2)])
    rest = order[max(1, starts // 2) :]
    if len(chosen) < starts and len(rest):
        spread = max(float(np.std(score[np.isfinite(score)])), 1e-12)
        weight = np.exp((np.maximum(score[rest], -1e300) - score[order[0]]) / spread) + 1e-12
        picked = rng.choice(rest, size=min(starts - len(chosen), len(rest)), replace=False, p=weight / weight.sum())
        chosen.extend(picked)
    X0 = points[chosen]
    m = len(X0)

    def objective(flat: Array) -> tuple[float, Array]:
        X = torch.from_numpy(flat.reshape(m, d)).requires_grad_(True)
        total = acquisition(X).sum()
        value = float(total.detach())
        if not math.isfinite(value):
            return 1e10, np.zeros_like(flat)
        (g,) = torch.autograd.grad(total, X)
        return -value, -np.nan_to_num(g.numpy().ravel())

    box = list(zip(np.tile(lower, m), np.tile(upper, m), strict=True))
    refined = minimize(objective, X0.ravel(), jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": iterations})
    ends = np.clip(np.concatenate([refined.x.reshape(m, d), points[order[:1]]]), lower, upper)
    with torch.no_grad():
        at_end = np.nan_to_num(acquisition(torch.from_numpy(ends)).numpy(), nan=-np.inf)
    i = int(np.argmax(at_end))
    return ends[i], float(at_end[i])


@dataclass(frozen=True, eq=False)
class OutcomeModel:
    """A process for the one objective and one for every constraint, and log (constrained) EI from them."""

    objective: GP
    constraints: tuple[GP, ...]  # of the violation g, feasible where g <= 0
    best: float | None  # smallest feasible objective; None while nothing is feasible

    def __call__(self, X: Tensor) -> Tensor:
        value = torch.zeros(len(X), dtype=X.dtype)
        if self.best is not None:
            value = value + log_expected_improvement(*self.objective.posterior(X), self.best)
        for gp in self.constraints:  # weighted by the chance of being feasible (Gardner et al. 2014), all in logs
            mean, variance = gp.posterior(X)
            value = value + torch.special.log_ndtr(-mean / variance.sqrt())
        return value

    def believe(self, X: Tensor) -> OutcomeModel:
        """As if `X` had been measured and found at the mean (Kriging believer): for points that are still pending."""
        with torch.no_grad():
            mean = float(self.objective.posterior(X)[0].min())
            likely = all(float(gp.posterior(X)[0].max()) <= 0.0 for gp in self.constraints)
        return replace(
            self,
            objective=self.objective.believe(X),
            constraints=tuple(gp.believe(X) for gp in self.constraints),
            best=self.best if self.best is None or not likely else min(self.best, mean),
        )

    def avoid(self, X: Tensor) -> OutcomeModel:
        """As if `X` had been as bad as the worst: for evaluations that failed, which would else be proposed again."""
        gp = self.objective
        worst = (gp.shift + gp.spread * gp.y.max()).expand(len(X))
        return replace(self, objective=gp.condition(X, worst))


def fit_outcomes(
    X: ArrayLike,
    trials: Sequence[Trial],
    goals: Goals,
    *,
    kernel: Kernel = "matern",
    isotropic: bool = False,
    seed: int = 0,
) -> OutcomeModel:
    """Processes for completed trials at inputs `X`; told standard errors are used, else noise is inferred.

    With noise, the best value is that of the posterior mean at the measured points.
    """
    measured = [t.outcomes for t in trials]
    first = goals.objectives[0].outcome
    objective = fit_ard_gp(
        X,
        [goals.objective_values(o)[0] for o in measured],
        noise=_told_noise(measured, first),
        kernel=kernel,
        isotropic=isotropic,
        seed=seed,
    )
    constraints = tuple(
        fit_ard_gp(
            X,
            [(o[c.outcome].mean - c.bound) * (1.0 if isinstance(c, AtMost) else -1.0) for o in measured],
            noise=_told_noise(measured, c.outcome),
            kernel=kernel,
            isotropic=isotropic,
            seed=seed,
        )
        for c in goals.constraints
    )
    feasible = np.array([goals.feasible(o) for o in measured])
    best: float | None = None
    if feasible.any():
        with torch.no_grad():
            means = objective.posterior(objective.X)[0].numpy()
        best = float(means[feasible].min())
    return OutcomeModel(objective, constraints, best)


def _told_noise(measured: Sequence[Mapping[str, tuple[float, float | None]]], name: str) -> Array | None:
    """Variances where every trial was told with a standard error; else None: infer it."""
    sems = [o[name][1] for o in measured]
    if not sems or any(s is None for s in sems):
        return None
    return np.array([float(s) ** 2 for s in sems if s is not None])
