"""What is worth evaluating: expected improvement and its relatives, in logarithms, over models that follow one protocol.

Everything is maximised, as in BoTorch: an objective's model is fitted to its negative, a constraint's outcome g is feasible
where g <= 0. An acquisition function is called with `... x 1 x d` points, like BoTorch's. One that offers
`with_gradient(W) -> value, gradient` (k x d -> k, k x d) is climbed by it, any other by automatic differentiation.
Letters: k points, d coordinates, p explanations (see `models.surrogate`), n training points.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._seeds import generator
from ..models.surrogate import Drawn, Marginals, Surrogate

Array: TypeAlias = NDArray[np.float64]
Acquisition: TypeAlias = Callable[[Tensor], Tensor]  # ... x 1 x d -> ...

HOPELESS = 2.0  # a draw without a feasible point counts e^-2 beside those that have one
WORTHLESS = -1e30  # in place of a value that is not finite
SERIES = -30.0  # below this z, log-EI is taken from its asymptotic series


def log_ei(z: Tensor) -> Tensor:
    """log(phi(z) + z Phi(z)), by its asymptotic series where the sum would cancel."""
    far = z < SERIES
    near = torch.where(far, torch.zeros_like(z), z)
    phi = torch.exp(-0.5 * near**2) / math.sqrt(2.0 * math.pi)
    neg = near.clamp_max(-1.0)  # phi + z Phi = phi (1 - |z| erfcx(|z| / sqrt 2) sqrt(pi / 2)) for z < 0
    inner = torch.log1p(neg * torch.special.erfcx(-neg / math.sqrt(2.0)) * math.sqrt(math.pi / 2.0))
    left = -0.5 * neg**2 - 0.5 * math.log(2.0 * math.pi) + inner
    pos = near.clamp_min(-1.0)
    right = torch.log(torch.where(near > -1.0, phi + pos * torch.special.ndtr(pos), torch.ones_like(phi)))
    if not (z.requires_grad or bool(far.any())):
        return torch.where(near > -1.0, right, left)
    tail = torch.where(far, z, torch.full_like(z, SERIES - 1.0))
    series = -0.5 * tail**2 - 0.5 * math.log(2.0 * math.pi) - 2.0 * torch.log(-tail) + torch.log1p(-3.0 / tail**2)
    return torch.where(far, series, torch.where(near > -1.0, right, left))


def log_feasible(mean: Tensor, variance: Tensor, model: Drawn | Surrogate) -> Tensor:
    """The log probability that a constraint holds, from its standardised moments."""
    value: Tensor = torch.special.log_ndtr(-(model.shift / model.scale + mean) / variance.sqrt())
    return value


class OverMarginals(torch.nn.Module):
    """An acquisition function that is a formula of models' means and variances at single points.

    A subclass names its `models` and writes `value`; the gradient by the points comes from the models' own vector-Jacobian
    products, with automatic differentiation of the small formula only.
    """

    models: Sequence[Surrogate | Drawn]

    @abstractmethod
    def value(self, moments: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """From the mean and variance of each model, p x k each.  -> k"""

    def forward(self, X: Tensor) -> Tensor:
        """... x 1 x d -> ..."""
        W = X.reshape(-1, X.shape[-1])
        return self.value([_moments(model, W) for model in self.models]).reshape(X.shape[:-2])

    def with_gradient(self, W: Tensor) -> tuple[Tensor, Tensor]:
        """The value at each point and its gradient.  k x d -> k, k x d"""
        found = [model.marginals(W) for model in self.models]
        with torch.enable_grad():
            leaves = [(m.mean.detach().requires_grad_(True), m.variance.detach().requires_grad_(True)) for m in found]
            value = self.value(leaves)
            flat = [leaf for pair in leaves for leaf in pair]
            slopes = torch.autograd.grad(value.sum(), flat, allow_unused=True)
        gradient = torch.zeros_like(W)
        for i, m in enumerate(found):
            pair = [torch.zeros_like(m.mean) if s is None else s for s in slopes[2 * i : 2 * i + 2]]
            gradient += m.back(*pair)
        return value.detach(), gradient


class LogEI(OverMarginals):
    """Log expected improvement over a known best value, times the probability that every constraint holds.

    In units of the standardised objective, so that thresholds on it mean the same on every scale. Over several explanations
    (a mixture of models) the improvements are averaged. `doubt` scales the objective's standard deviation: below 1 its mean
    is trusted more than the model itself does. Where no point is feasible yet (`best` is None) only the constraints count.
    """

    def __init__(
        self,
        objective: Surrogate,
        constraints: Sequence[Surrogate] = (),
        *,
        best: float | Tensor | None = math.nan,  # standardised, one or p x 1; nan: the best measured outcome
        doubt: float = 1.0,
    ) -> None:
        super().__init__()
        self.models = [objective, *constraints]
        self.best = objective.v.max() if isinstance(best, float) and math.isnan(best) else best
        self.doubt = doubt

    def value(self, moments: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """From the mean and variance of each model, p x k each.  -> k"""
        (mean, variance), *others = moments
        total = torch.zeros_like(mean)
        if self.best is not None:
            sigma = self.doubt * variance.sqrt()
            total = log_ei((mean - self.best) / sigma) + sigma.log()
        for model, (g, spread) in zip(self.models[1:], others, strict=True):
            total = total + log_feasible(g, spread, model)
        return torch.logsumexp(total, 0) - math.log(len(total))

    def with_gradient(self, W: Tensor) -> tuple[Tensor, Tensor]:
        """The value at each point and its gradient; for one model in closed form throughout.  k x d -> k, k x d"""
        if len(self.models) > 1 or self.best is None:
            return super().with_gradient(W)
        mean, variance, back = self.models[0].marginals(W)
        sigma = self.doubt * variance.sqrt()
        z = (mean - self.best) / sigma
        gain = log_ei(z)
        slope = torch.exp(torch.special.log_ndtr(z) - gain)  # of log_ei at z
        by_mean, by_variance = slope / sigma, 0.5 * (self.doubt**2 * (1.0 - slope * z) / sigma**2)
        value = gain + sigma.log()
        if len(value) > 1:
            weight = torch.softmax(value, 0)
            by_mean, by_variance = weight * by_mean, weight * by_variance
        return torch.logsumexp(value, 0) - math.log(len(value)), back(by_mean, by_variance)


class NoisyLogEI(OverMarginals):
    """Log expected improvement over the true values at the measured points, which noise hides (Letham et al. 2019).

    Joint draws of all outcomes at the measured and pending points give noiseless data sets, each with a best feasible value
    and a closed-form constrained EI; their mean is taken in log space. While no draw is feasible it is the probability of
    feasibility, so the search first finds where the constraints hold.
    """

    def __init__(
        self,
        objective: Surrogate,
        constraints: Sequence[Surrogate] = (),
        *,
        pending: Tensor | None = None,  # p x d
        target: Callable[[Tensor], Tensor] | None = None,  # where improvement counts, for a fidelity
        seed: int = 0,
    ) -> None:
        super().__init__()
        rng = generator(seed, "noisy-ei")
        points, counted = incumbents(objective.points, pending, target)
        self.models = [model.draw(points, rng) for model in (objective, *constraints)]
        self.m = min(len(drawn.v) for drawn in self.models)
        values, ok = drawn_values(self.models[:1], self.models[1:], self.m)
        values = torch.where(ok & counted, values[..., 0], torch.full_like(values[..., 0], -math.inf))
        self.best = values.max(dim=1).values  # m, standardised; -inf where the draw has no feasible point
        self.known = torch.isfinite(self.best)

    def share(self, i: int, of: int) -> NoisyLogEI | None:
        """The same with one of `of` equal shares of its draws; None where they cannot be parted."""
        if not all(hasattr(drawn, "part") and len(drawn.v) == self.m for drawn in self.models):
            return None
        out, some = copy(self), slice(i % min(of, self.m), None, min(of, self.m))
        out.models = [drawn.part(some) for drawn in self.models]  # type: ignore[union-attr]
        out.best, out.known, out.m = self.best[some], self.known[some], len(self.best[some])
        return out

    def value(self, moments: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """From the mean and variance of each model, p x k each.  -> k"""
        (mean, variance), *others = [(mean[: self.m], variance[: self.m]) for mean, variance in moments]
        sigma, known = variance.sqrt(), self.known[:, None]
        best = torch.where(self.known, self.best, torch.zeros_like(self.best))[:, None]
        total = torch.where(known, log_ei((mean - best) / sigma) + sigma.log(), torch.zeros_like(mean))
        for model, (g, spread) in zip(self.models[1:], others, strict=True):
            total = total + log_feasible(g, spread, model)
        if bool(known.any()) and not bool(known.all()):
            total = torch.where(known, total, total - HOPELESS)
        return torch.logsumexp(total, 0) - math.log(self.m)

    def with_gradient(self, W: Tensor) -> tuple[Tensor, Tensor]:
        """The value at each point and its gradient, in closed form throughout.  k x d -> k, k x d"""
        mean, variance, back = self.models[0].marginals(W)  # of all draws; those beyond m count for nothing
        m, known = self.m, self.known[:, None]
        sigma = variance[:m].sqrt()
        z = (mean[:m] - torch.where(self.known, self.best, torch.zeros_like(self.best))[:, None]) / sigma
        gain = log_ei(z)
        slope = torch.exp(torch.special.log_ndtr(z) - gain)
        value = torch.where(known, gain + sigma.log(), torch.zeros_like(gain))
        parts = [(back, slope / sigma * known, 0.5 * (1.0 - slope * z) / sigma**2 * known, len(mean))]
        for c in self.models[1:]:
            g, variance, back = c.marginals(W)
            sd = variance[:m].sqrt()
            u = -(c.shift / c.scale + g[:m]) / sd
            log_chance = torch.special.log_ndtr(u)
            value = value + log_chance
            steep = torch.exp(-0.5 * u**2 - log_chance) / math.sqrt(2.0 * math.pi)  # of log_ndtr at u
            parts.append((back, -steep / sd, -0.5 * steep * u / sd**2, len(g)))
        if bool(known.any()) and not bool(known.all()):
            value = torch.where(known, value, value - HOPELESS)
        weight = torch.softmax(value, 0)
        gradient = torch.zeros_like(W)
        for back, by_mean, by_variance, all_draws in parts:
            more = (0, 0, 0, all_draws - m)
            gradient += back(*(torch.nn.functional.pad(weight * by, more) for by in (by_mean, by_variance)))
        return torch.logsumexp(value, 0) - math.log(m), gradient


def value_and_gradient(acquisition: Acquisition, W: Tensor) -> tuple[Tensor, Tensor]:
    """The value at each point and its gradient, by the function's own means where it has them; never nan.

    k x d -> k, k x d; a point without a finite value counts as worthless and flat.
    """
    closed: Callable[[Tensor], tuple[Tensor, Tensor]] | None = getattr(acquisition, "with_gradient", None)
    if closed is not None:
        value, gradient = closed(W)
    else:
        with torch.enable_grad():
            X = W.detach().requires_grad_(True)
            value = acquisition(X.unsqueeze(-2))
            (gradient,) = torch.autograd.grad(value.sum(), X)
    ok = torch.isfinite(value) & torch.isfinite(gradient).all(-1)
    return (
        torch.where(ok, value, torch.full_like(value, WORTHLESS)).detach(),
        torch.where(ok[:, None], gradient, torch.zeros_like(gradient)),
    )


def _moments(model: Surrogate | Drawn, W: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance at single points, differentiable by Torch through the model's own product.  k x d -> p x k, p x k"""
    if not W.requires_grad:
        found = model.marginals(W)
        return found.mean, found.variance
    mean, variance = _Moments.apply(W, model)  # type: ignore[no-untyped-call]
    return mean, variance


class _Moments(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, W: Tensor, model: Surrogate) -> tuple[Tensor, Tensor]:
        found: Marginals = model.marginals(W.detach())
        ctx.back = found.back  # type: ignore[attr-defined]
        return found.mean, found.variance

    @staticmethod
    def backward(ctx: object, by_mean: Tensor, by_variance: Tensor) -> tuple[Tensor, None]:
        return ctx.back(by_mean, by_variance), None  # type: ignore[attr-defined]


def incumbents(
    measured: Tensor, pending: Tensor | None, target: Callable[[Tensor], Tensor] | None
) -> tuple[Tensor, Tensor]:
    """Where outcomes are drawn, and at which of these points a value counts as reached.  -> n x d, n

    With a target fidelity: at all points as measured, and at their images at the target, which alone count.
    """
    points = measured if pending is None else torch.cat([measured, pending])
    if target is None:
        return points, torch.ones(len(points), dtype=torch.bool)
    away = points[(target(points) != points).any(-1)]
    counted = torch.cat([(target(points) == points).all(-1), torch.ones(len(away), dtype=torch.bool)])
    return torch.cat([points, target(away)]), counted


def drawn_values(objectives: Sequence[Drawn], constraints: Sequence[Drawn], m: int) -> tuple[Tensor, Tensor]:
    """The drawn objectives and whether every drawn constraint holds.  -> m x n x k, m x n"""
    values = torch.stack([o.v[:m] for o in objectives], dim=-1)
    ok = torch.ones(values.shape[:2], dtype=torch.bool)
    for c in constraints:
        ok &= c.shift + c.scale * c.v[:m] <= 0.0
    return values, ok
