"""Climbing an acquisition function inside a polytope, from many starts at once: a barrier method with quasi-Newton steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..geometry import Polytope
from ._faces import Barrier, barrier
from .functions import WORTHLESS, Acquisition, value_and_gradient

Array: TypeAlias = NDArray[np.float64]

BARRIERS = (0.1, 1e-3, 1e-6)  # weights of the log-barrier, one after the other
INSIDE = 0.995  # starts are drawn towards the centre by this factor: the barrier is infinite on a face
REACH = 0.99  # of the way to the nearest face is the longest step
FLAT = 1e-9  # a slope that is no longer worth a step
ARMIJO = 1e-4  # share of the promised gain that a step must bring
SHORTER = 0.3  # by this factor, where it does not
HALVINGS = 6  # times at most
STILL = 1e-7  # relative movement below which a stage ends


class Ends(NamedTuple):
    """Where climbs ended."""

    points: Array  # k x d, inside
    values: Array  # k
    bends: Tensor  # k x d x d, the Hessians of -acquisition as the steps found them


def climb(acquisition: Acquisition, domain: Polytope, W: Tensor, *, steps: int = 10) -> tuple[Array, Array]:
    """Maximise from every row of W at once, and nothing known of the acquisition's curvature.  k x d -> k x d, k"""
    points, values, _ = ascend(acquisition, domain, W, steps=steps)
    return points, values


def ascend(
    acquisition: Acquisition,
    domain: Polytope,
    W: Tensor,
    *,
    steps: int = 10,
    barriers: Sequence[float] = BARRIERS,
    bends: Tensor | None = None,
    inside: float = INSIDE,
    flat: float = FLAT,
) -> Ends:
    """Maximise from every row of W at once: Newton on a shrinking log-barrier, quasi-Newton on the acquisition.

    The barrier's Hessian is exact (d x d), the acquisition's is updated by BFGS; a step never leaves the polytope.

    Args:
        acquisition: what to maximise.
        domain: the polytope.
        W: k x d starts.
        steps: for each weight of the barrier, at most.
        barriers: weights of the barrier, one after the other.
        bends: k x d x d positive definite guesses of the Hessians of -acquisition; None: identities.
        inside: the factor by which starts are drawn towards the centre.
        flat: a promised gain that is no longer worth a step.
    """
    count, d = W.shape
    eye = torch.eye(d, dtype=W.dtype)
    H = eye.expand(count, d, d).clone() if bends is None else bends  # of -acquisition, kept positive definite
    W = torch.from_numpy(domain.pull_inside(W.numpy()))
    centre = torch.from_numpy(domain.centre)
    W = centre + inside * (W - centre)
    f, g = value_and_gradient(acquisition, W)
    faces = barrier(domain, W, paired=bends is not None)
    for mu in barriers:
        stuck = torch.zeros(count, dtype=torch.bool)
        for _ in range(steps):
            slope_of_faces, bend_of_faces = faces.derivatives(mu)
            G = -g + slope_of_faces  # gradient of what is minimised: -acquisition + mu barrier
            step = -torch.linalg.solve(H + bend_of_faces + 1e-10 * eye, G)
            slope = (step * G).sum(-1)
            t = (REACH * faces.reach(step)).clamp_max(1.0)
            done = (slope > -flat) | stuck
            if bool(done.all()):
                break
            new, fn, gn, done = _search(acquisition, faces, mu, Here(W, f, g), step, t, slope, done)
            stuck = ~done | stuck  # a search that found nothing would find nothing again from the same place
            s, y = new - W, g - gn  # y: change of the gradient of -acquisition
            H = _bfgs(H, s, y)
            moved = (s.abs().max() > STILL * (1 + W.abs().max())).item()
            W, f, g = new, fn, gn
            faces.move(W)
            if not moved:
                break
    return Ends(domain.pull_inside(W.numpy()), np.nan_to_num(f.numpy(), nan=WORTHLESS), H)


class Here(NamedTuple):
    """Points, the acquisition there, and its gradients."""

    W: Tensor  # k x d
    f: Tensor  # k
    g: Tensor  # k x d


def _search(
    acquisition: Acquisition,
    faces: Barrier,
    mu: float,
    here: Here,
    step: Tensor,
    t: Tensor,
    slope: Tensor,
    done: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The first of ever shorter steps that brings a share of what it promises, for each point that is not done.

    Returns:
        The points after it, their values and gradients, and which points are done then; the others stayed.
    """
    merit = -here.f + mu * faces.value()
    new, fn, gn = here
    for _ in range(HALVINGS):
        trial = here.W + t[:, None] * step
        ft, gt = value_and_gradient(acquisition, trial)
        bound = merit + ARMIJO * t * slope
        ok = (-ft + mu * faces.value_at(trial, t) <= bound) & ~done
        new = torch.where(ok[:, None], trial, new)
        fn, gn = torch.where(ok, ft, fn), torch.where(ok[:, None], gt, gn)
        done = done | ok
        if bool(done.all()):
            break
        t = torch.where(ok, t, SHORTER * t)
    return new, fn, gn, done


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
