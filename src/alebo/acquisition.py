"""Choosing the next points: acquisition functions over a polytope, maximised from many starts at once.

Here, as in BoTorch, everything is maximised: an objective's model is fitted to its negative, a constraint's outcome g is
feasible where g <= 0. Any BoTorch acquisition function can be passed to `propose`; the ones made here handle what the
moment-matched log-EI of the paper does not: noise, constraints, pending points and cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from ._seeds import generator
from .geometry import Polytope
from .models import MahalanobisGP

Array: TypeAlias = NDArray[np.float64]
Acquisition: TypeAlias = Callable[[Tensor], Tensor]  # b x 1 x d -> b

CHUNK = 4_000_000  # numbers in the largest intermediate array while raw points are compared


class NoisyLogEI(torch.nn.Module):
    """Log expected improvement over the values that the model believes in, not over the ones measured (Letham et al. 2019).

    For each sample of the metric, one joint draw of all outcomes at the measured and pending points gives a noiseless
    data set, its best feasible value, and a closed-form constrained EI; the mean over samples is taken in log space. Unlike
    LogExpectedImprovement it handles noise, constraints, pending points and a cost at once. While no draw is feasible it is
    the probability of feasibility, so the search first finds where the constraints hold.
    """

    def __init__(
        self,
        objective: MahalanobisGP,
        constraints: Sequence[MahalanobisGP] = (),
        cost: MahalanobisGP | None = None,
        *,
        pending: Tensor | None = None,  # p x d
        seed: int = 0,
    ) -> None:
        super().__init__()
        rng = generator(seed, "noisy-ei")
        Y = objective.Y if pending is None else torch.cat([objective.Y, pending])
        self.objective = objective.draw(Y, rng)
        self.constraints = [model.draw(Y, rng) for model in constraints]
        self.cost = cost
        m = min([c.m for c in (self.objective, *self.constraints)])
        self.m = m
        ok = torch.ones(m, len(self.objective.v[0]), dtype=torch.bool)
        for c in self.constraints:
            ok &= c.shift + c.scale * c.v[:m] <= 0.0
        values = torch.where(ok, self.objective.v[:m], torch.full_like(self.objective.v[:m], -math.inf))
        self.best = values.max(dim=1).values  # m, standardised; -inf where the draw has no feasible point
        self.known = torch.isfinite(self.best)

    def forward(self, X: Tensor) -> Tensor:
        """... x 1 x d -> ...; in units of the standardised objective."""
        mean, variance = self.objective.components(X)
        mean, sigma = mean[..., : self.m, 0], variance[..., : self.m, 0].sqrt()
        best = torch.where(self.known, self.best, torch.zeros_like(self.best))
        value = torch.where(self.known, log_ei((mean - best) / sigma) + sigma.log(), torch.zeros_like(mean))
        for c in self.constraints:
            g, variance = c.components(X)
            z = -(c.shift + c.scale * g[..., : self.m, 0]) / (c.scale * variance[..., : self.m, 0].sqrt())
            value = value + torch.special.log_ndtr(z)
        if bool(self.known.any()) and not bool(self.known.all()):
            value = torch.where(
                self.known, value, value - 2.0
            )  # draws without a feasible point count little beside others
        out = torch.logsumexp(value, dim=-1) - math.log(self.m)
        if self.cost is not None:  # fitted to the logarithm of the cost
            out = out - self.cost.posterior(X).mean[..., 0, 0]
        return out

    def with_gradient(self, W: Tensor) -> tuple[Tensor, Tensor]:
        """The value at each point and its gradient, in closed form; for no cost.  k x d -> k, k x d"""
        mean, variance, back = self.objective.linearised(W)  # of all metrics; those beyond m count for nothing
        m, known = self.m, self.known[:, None]
        sigma = variance[:m].sqrt()
        z = (mean[:m] - torch.where(self.known, self.best, torch.zeros_like(self.best))[:, None]) / sigma
        gain = log_ei(z)
        slope = torch.exp(torch.special.log_ndtr(z) - gain)
        value = torch.where(known, gain + sigma.log(), torch.zeros_like(gain))
        parts = [(back, slope / sigma * known, 0.5 * (1.0 - slope * z) / sigma**2 * known, len(mean))]
        for c in self.constraints:
            g, variance, back = c.linearised(W)
            sd = variance[:m].sqrt()
            u = -(c.shift / c.scale + g[:m]) / sd
            log_chance = torch.special.log_ndtr(u)
            value = value + log_chance
            steep = torch.exp(-0.5 * u**2 - log_chance) / math.sqrt(2.0 * math.pi)  # of log_ndtr at u
            parts.append((back, -steep / sd, -0.5 * steep * u / sd**2, len(g)))
        if bool(known.any()) and not bool(known.all()):
            value = torch.where(known, value, value - 2.0)
        weight = torch.softmax(value, 0)
        gradient = torch.zeros_like(W)
        for back, by_mean, by_variance, all_metrics in parts:
            more = (0, 0, 0, all_metrics - m)
            gradient += back(*(torch.nn.functional.pad(weight * by, more) for by in (by_mean, by_variance)))
        return torch.logsumexp(value, 0) - math.log(m), gradient


class FidelityLogEI(torch.nn.Module):
    """Log expected improvement at the target fidelity, times what a cheaper look tells about it, per unit of cost.

    The augmented EI of Huang et al. 2006 for a continuous fidelity in coordinate 0 of the model: a point is worth its EI
    at the target times the posterior correlation of its own outcome with the target's, divided by its cost.
    """

    def __init__(self, model: MahalanobisGP, log_cost: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.model, self.log_cost = model, log_cost
        with torch.no_grad():
            self.best = model.data.components(at_target(model.Y).unsqueeze(-2))[0].mean(-2).max()

    def forward(self, X: Tensor) -> Tensor:
        """... x 1 x d -> ..."""
        both = torch.cat([at_target(X), X], dim=-2)
        means, cov = self.model.data.components(both, full=True)  # ... x m x 2, ... x m x 2 x 2
        mean = means.mean(-2)
        off = means - mean.unsqueeze(-2)
        cov = cov.mean(-3) + off.mT @ off / off.shape[-2]
        variance = cov.diagonal(dim1=-2, dim2=-1).clamp_min(1e-12)
        sigma = variance[..., 0].sqrt()
        told = (cov[..., 0, 1].abs() / variance.prod(-1).sqrt()).clamp(1e-6, 1.0)
        return log_ei((mean[..., 0] - self.best) / sigma) + sigma.log() + told.log() - self.log_cost(X)


def at_target(X: Tensor) -> Tensor:
    """The same points with coordinate 0, the fidelity, at its target.  ... x d -> ... x d"""
    return torch.cat([torch.ones_like(X[..., :1]), X[..., 1:]], dim=-1)


def log_ei(z: Tensor) -> Tensor:
    """log(phi(z) + z Phi(z)), by its asymptotic series where the sum would cancel."""
    far = z < -30.0
    near = torch.where(far, torch.zeros_like(z), z)
    phi = torch.exp(-0.5 * near**2) / math.sqrt(2.0 * math.pi)
    # phi + z Phi = phi (1 - |z| erfcx(|z| / sqrt 2) sqrt(pi / 2)) for z < 0
    neg = near.clamp_max(-1.0)
    inner = torch.log1p(neg * torch.special.erfcx(-neg / math.sqrt(2.0)) * math.sqrt(math.pi / 2.0))
    left = -0.5 * neg**2 - 0.5 * math.log(2.0 * math.pi) + inner
    pos = near.clamp_min(-1.0)
    right = torch.log(torch.where(near > -1.0, phi + pos * torch.special.ndtr(pos), torch.ones_like(phi)))
    tail = torch.where(far, z, torch.full_like(z, -31.0))
    series = -0.5 * tail**2 - 0.5 * math.log(2.0 * math.pi) - 2.0 * torch.log(-tail) + torch.log1p(-3.0 / tail**2)
    return torch.where(far, series, torch.where(near > -1.0, right, left))


def propose(
    acquisition: Acquisition,
    domain: Polytope,
    seed: int,
    *,
    around: Array | None = None,
    raw: int = 256,
    starts: int = 8,
) -> tuple[Array, float]:
    """The point of the polytope with the largest acquisition, and its value.  -> d, ()"""
    points, values = candidates(acquisition, domain, seed, around=around, raw=raw, starts=starts)
    return points[0], float(values[0])


def candidates(
    acquisition: Acquisition,
    domain: Polytope,
    seed: int,
    *,
    around: Array | None = None,
    raw: int = 256,
    starts: int = 8,
    steps: int = 10,
) -> tuple[Array, Array]:
    """Local maxima of the acquisition inside the polytope, the best first.  -> k x d, k

    `around` are points worth starting near: the best so far, and where the last proposals were.
    """
    rng = generator(seed, "propose")
    Y = scatter(domain, seed, around, raw)
    values = evaluate(acquisition, Y)
    picked = _pick(Y, values, starts, rng)
    ends, reached = climb(acquisition, domain, torch.from_numpy(Y[picked]), steps=steps)
    order = np.argsort(-reached)
    ends, reached = ends[order], reached[order]
    best, value = _polish(acquisition, domain, ends[0], float(reached[0]), steps=3 * steps)
    ends[0], reached[0] = best, value
    return ends, reached


def scatter(domain: Polytope, seed: int, around: Array | None, count: int) -> Array:
    """Points to compare: `count` over the whole polytope, and half as many near given ones.  -> k x d"""
    rng = generator(seed, "scatter")
    Y = domain.sample(count, int(rng.integers(2**62)), steps=2)
    if around is None or not len(around):
        return Y
    around = domain.pull_inside(around)
    return np.vstack([Y, around, _near(domain, around, count // 2, rng)])


def evaluate(acquisition: Acquisition, Y: Array, width: int = 4000) -> Array:
    """The acquisition at many points, in pieces: memory does not grow with their number.  k x d -> k"""
    piece = max(1, CHUNK // width)
    with torch.no_grad():
        parts = [acquisition(part.unsqueeze(-2)) for part in torch.from_numpy(Y).split(piece)]
    return torch.nan_to_num(torch.cat(parts), nan=-1e30, neginf=-1e30).numpy()


def climb(acquisition: Acquisition, domain: Polytope, W: Tensor, *, steps: int = 10) -> tuple[Array, Array]:
    """Maximise from every row of W at once: Newton on a shrinking log-barrier, quasi-Newton on the acquisition.

    The barrier's Hessian is exact (d x d), the acquisition's is updated by BFGS; a step never leaves the polytope.
    """
    A, b = torch.from_numpy(domain.A), torch.from_numpy(domain.b)
    count, d = W.shape
    eye = torch.eye(d, dtype=W.dtype)
    H = eye.expand(count, d, d).clone()  # Hessian of -acquisition, kept positive definite
    W = torch.from_numpy(domain.pull_inside(W.numpy()))
    centre = torch.from_numpy(domain.centre)
    W = centre + 0.995 * (W - centre)
    f, g = _value_and_gradient(acquisition, W)
    for mu in (0.1, 1e-3, 1e-6):
        radius = torch.full((count,), 1.0, dtype=W.dtype)
        stuck = torch.zeros(count, dtype=torch.bool)
        for _ in range(steps):
            slack = b - W @ A.mT
            inverse = 1.0 / slack
            G = -g + mu * inverse @ A  # gradient of what is minimised: -acquisition - mu sum log slack
            curvature = (
                H + mu * torch.einsum("km,mi,mj->kij", inverse**2, A, A)
                if len(b) <= 400
                else H + mu * torch.stack([(A * (row**2)[:, None]).mT @ A for row in inverse])
            )
            step = -torch.linalg.solve(curvature + 1e-10 * eye, G)
            slope = (step * G).sum(-1)
            speed = step @ A.mT
            reach = (
                torch.where(speed > 0, slack / speed.clamp_min(1e-300), torch.full_like(slack, math.inf)).min(-1).values
            )
            t = torch.minimum(radius, 0.99 * reach)
            done = (slope > -1e-9) | stuck
            if bool(done.all()):
                break
            merit = -f - mu * slack.log().sum(-1)
            new, fn, gn = W, f, g
            for _ in range(6):
                trial = W + t[:, None] * step
                ft, gt = _value_and_gradient(acquisition, trial)
                bound = merit + 1e-4 * t * slope
                ok = (-ft - mu * (b - trial @ A.mT).clamp_min(1e-300).log().sum(-1) <= bound) & ~done
                new = torch.where(ok[:, None], trial, new)
                fn, gn = torch.where(ok, ft, fn), torch.where(ok[:, None], gt, gn)
                done = done | ok
                if bool(done.all()):
                    break
                t = torch.where(ok, t, 0.3 * t)
            stuck = ~done | stuck  # a search that found nothing would find nothing again from the same place
            s, y = new - W, g - gn  # y: change of the gradient of -acquisition
            H = _bfgs(H, s, y)
            moved = (s.abs().max() > 1e-7 * (1 + W.abs().max())).item()
            W, f, g = new, fn, gn
            if not moved:
                break
    inside = domain.pull_inside(W.numpy())
    return inside, np.nan_to_num(f.numpy(), nan=-1e30)


def _value_and_gradient(acquisition: Acquisition, W: Tensor) -> tuple[Tensor, Tensor]:
    if isinstance(acquisition, LogEI) or (isinstance(acquisition, NoisyLogEI) and acquisition.cost is None):
        value, gradient = acquisition.with_gradient(W)
    else:
        with torch.enable_grad():
            X = W.detach().requires_grad_(True)
            value = acquisition(X.unsqueeze(-2))
            (gradient,) = torch.autograd.grad(value.sum(), X)
    ok = torch.isfinite(value) & torch.isfinite(gradient).all(-1)
    return (
        torch.where(ok, value, torch.full_like(value, -1e30)).detach(),
        torch.where(ok[:, None], gradient, torch.zeros_like(gradient)),
    )


def _bfgs(H: Tensor, s: Tensor, y: Tensor) -> Tensor:
    """Powell's damped update: the approximation stays positive definite where the acquisition is not concave."""
    Hs = (H @ s.unsqueeze(-1)).squeeze(-1)
    sHs, sy = (s * Hs).sum(-1), (s * y).sum(-1)
    usable = sHs > 1e-16
    theta = torch.where(sy >= 0.2 * sHs, torch.ones_like(sy), 0.8 * sHs / (sHs - sy).clamp_min(1e-300))
    r = theta[:, None] * y + (1 - theta)[:, None] * Hs
    sr = (s * r).sum(-1).clamp_min(1e-300)
    new = H - Hs.unsqueeze(-1) * Hs.unsqueeze(-2) / sHs.clamp_min(1e-300)[:, None, None]
    new = new + r.unsqueeze(-1) * r.unsqueeze(-2) / sr[:, None, None]
    return torch.where(usable[:, None, None] & torch.isfinite(new).all(-1).all(-1)[:, None, None], new, H)


def _polish(acquisition: Acquisition, domain: Polytope, y: Array, value: float, *, steps: int) -> tuple[Array, float]:
    """One SLSQP run with the constraints near the point: the barrier can stop a little short of a face."""
    slack = domain.slack(y)
    near = np.argsort(slack)[: 6 * domain.dim]
    A, b = domain.A[near], domain.b[near]

    def negative(w: Array) -> tuple[float, Array]:
        f, g = _value_and_gradient(acquisition, torch.from_numpy(np.asarray(w, dtype=float))[None])
        return -float(f[0]), -g[0].numpy()

    found = minimize(
        negative,
        y,
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda w: b - A @ w, "jac": lambda w: -A},
        options={"maxiter": steps, "ftol": 1e-9},
    )
    if not np.isfinite(found.x).all():
        return y, value
    inside = domain.pull_inside(found.x)
    after = float(evaluate(acquisition, inside[None])[0])
    return (inside, after) if after > value else (y, value)


def _near(domain: Polytope, around: Array, count: int, rng: np.random.Generator) -> Array:
    """Points a random distance from given ones, in random directions, inside.  -> count x d"""
    base = around[rng.integers(len(around), size=count)]
    theta = rng.standard_normal(base.shape)
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    _, ahead = domain.ray(base, theta)
    length = np.minimum(10.0 ** rng.uniform(-2.0, 0.3, count), 0.99 * ahead)
    near: Array = base + theta * length[:, None]
    return near


def _pick(Y: Array, values: Array, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The best point, and others drawn in proportion to a power of their rank, so that the starts differ."""
    order = np.argsort(-values)
    top = order[: max(count, len(order) // 4)]
    weight = np.exp(-np.arange(len(top)) / (len(top) / 6.0))
    rest = rng.choice(top[1:], size=min(count - 1, len(top) - 1), replace=False, p=weight[1:] / weight[1:].sum())
    return np.concatenate([top[:1], rest])


class LogEI(torch.nn.Module):
    """The paper's acquisition, log expected improvement under the moment-matched posterior, of an objective maximised.

    The same number as BoTorch's LogExpectedImprovement but in units of the standardised objective, so that thresholds on
    it mean the same on every scale, and without the cost of building a posterior object. `doubt` scales the standard
    deviation: below 1 the model's mean is trusted more than the model itself does, near 0 entirely.
    """

    def __init__(self, model: MahalanobisGP, doubt: float = 1.0) -> None:
        super().__init__()
        self.data, self.best, self.doubt = model.data, model.v.max(), doubt

    def forward(self, X: Tensor) -> Tensor:
        """... x 1 x d -> ..."""
        means, variances = self.data.components(X)
        mean = means[..., 0].mean(-1)
        sigma = self.doubt * (variances[..., 0].mean(-1) + means[..., 0].var(-1, unbiased=False)).sqrt()
        return log_ei((mean - self.best) / sigma) + sigma.log()

    def with_gradient(self, W: Tensor) -> tuple[Tensor, Tensor]:
        """The value at each point and its gradient, in closed form.  k x d -> k, k x d"""
        means, variances, back = self.data.linearised(W)
        mean = means.mean(0)
        off = means - mean
        sigma = self.doubt * (variances.mean(0) + (off**2).mean(0)).sqrt()
        z = (mean - self.best) / sigma
        value = log_ei(z)
        slope = torch.exp(torch.special.log_ndtr(z) - value)  # of log_ei at z
        spread = self.doubt**2 * (1.0 - slope * z) / sigma**2
        by_mean = (slope / sigma + spread * off) / self.data.m
        gradient = back(by_mean, (0.5 * spread / self.data.m).expand_as(by_mean))
        return value + sigma.log(), gradient


class NoisyLogEHVI(torch.nn.Module):
    """Log expected hypervolume improvement of several objectives over the front that the model believes in.

    Like NoisyLogEI it draws all outcomes at the measured and pending points once for each metric; each draw has a front of its
    own, whose dominated region is cut into boxes, in which the expected improvement of independent normals is a product
    (Emmerich et al. 2006). Constraints enter by their probability.
    """

    def __init__(
        self,
        objectives: Sequence[MahalanobisGP],
        constraints: Sequence[MahalanobisGP] = (),
        *,
        reference: Array | None = None,  # k, maximised, in the users' units; None: inferred from the measured front
        pending: Tensor | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        from botorch.utils.multi_objective.box_decompositions import FastNondominatedPartitioning
        from botorch.utils.multi_objective.hypervolume import infer_reference_point

        rng = generator(seed, "noisy-ehvi")
        Y = objectives[0].Y if pending is None else torch.cat([objectives[0].Y, pending])
        self.objectives = [model.draw(Y, rng) for model in objectives]
        self.constraints = [model.draw(Y, rng) for model in constraints]
        self.m = m = min(c.m for c in (*self.objectives, *self.constraints))
        values = torch.stack([o.v[:m] for o in self.objectives], dim=-1)  # m x n x k, standardised
        ok = torch.ones(values.shape[:2], dtype=torch.bool)
        for c in self.constraints:
            ok &= c.shift + c.scale * c.v[:m] <= 0.0
        if reference is None:
            measured = torch.stack([o.v for o in objectives], dim=-1)
            at = infer_reference_point(measured[torch.from_numpy(_front(measured.numpy()))], scale=0.1)
            at = torch.where(torch.isfinite(at), at, measured.min(0).values - 0.1)
        else:
            at = torch.tensor(
                [(r - o.shift) / o.scale for r, o in zip(reference, objectives, strict=True)], dtype=torch.double
            )
        boxes = []
        for i in range(m):
            good = values[i][ok[i]]
            better = good[(good > at).all(-1)]
            front = better[torch.from_numpy(_front(better.numpy()))] if len(better) else better
            if len(front):
                boxes.append(FastNondominatedPartitioning(at, Y=front).hypercell_bounds)
            else:  # nothing beats the reference yet: all beyond it is one box
                boxes.append(torch.stack([at, torch.full_like(at, math.inf)]).unsqueeze(1))
        most = max(b.shape[1] for b in boxes)
        self.low, self.high = (
            torch.stack([torch.cat([b[j], b[j][:1].expand(most - b.shape[1], -1)]) for b in boxes]).clamp(-1e3, 1e3)
            for j in (0, 1)
        )  # m x cells x k; fronts with fewer cells repeat one, which the mask takes out again
        self.mask = torch.zeros(m, most, dtype=torch.double)
        for i, b in enumerate(boxes):
            self.mask[i, b.shape[1] :] = -1e30

    def forward(self, X: Tensor) -> Tensor:
        """... x 1 x d -> ..."""
        total: Tensor | float = self.mask
        for j, objective in enumerate(self.objectives):
            mean, variance = objective.components(X)
            mean, sigma = mean[..., : self.m, :], variance[..., : self.m, :].sqrt()  # ... x m x 1
            above = log_ei((mean - self.low[..., j]) / sigma)
            beyond = log_ei((mean - self.high[..., j]) / sigma)
            inside = torch.log1p(-torch.exp((beyond - above).clamp(max=-1e-12)))
            total = total + above + sigma.log() + inside
        assert isinstance(total, Tensor)
        value = torch.logsumexp(total, dim=-1)  # ... x m
        for c in self.constraints:
            g, variance = c.components(X)
            z = -(c.shift + c.scale * g[..., : self.m, 0]) / (c.scale * variance[..., : self.m, 0].sqrt())
            value = value + torch.special.log_ndtr(z)
        return torch.logsumexp(value, dim=-1) - math.log(self.m)


def _front(values: Array) -> NDArray[np.bool_]:
    """Which rows no other beats, all maximised."""
    better = np.all(values[None] >= values[:, None], axis=-1) & np.any(values[None] > values[:, None], axis=-1)
    alone: NDArray[np.bool_] = ~better.any(axis=1)
    return alone
