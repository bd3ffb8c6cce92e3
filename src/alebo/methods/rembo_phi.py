"""REMBO-phi k_Psi: REMBO's clipping, with a kernel on warped points that knows what clipping did to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._seeds import derive, generator
from ..goals import Goals
from ..history import History
from ..space import Space
from ._embedded import Box, Embedded, embedding_size, in_embedding, next_embedded
from ._method import Suggestion, Supports
from .rembo import clip_up, isotropic

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class REMBOPhi(Embedded):
    """REMBO in one embedding, whose process compares Psi(y) and not y: two y that clip to one x have the same image.

    Psi lies in the range of A, so the process needs d_e coordinates only, whatever D.
    """

    name: ClassVar[str] = "rembo-phi"
    title: ClassVar[str] = "REMBO-phi-kPsi"
    citation: ClassVar[str] = (
        "Binois, Ginsbourger, Roustant 2015, A Warped Kernel Improving Robustness in Bayesian Optimization via Random "
        "Embeddings, LION"
    )
    supports: ClassVar[Supports] = Supports(batches=False)

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        self.one_at_a_time(history, q)
        d = embedding_size(self.dim, space.dimension)
        side = math.sqrt(d)
        here = derive(seed, "ask", len(history))
        A = isotropic(space.dimension, d, derive(seed, "rembo-phi"))
        warp = Warp.of(A)
        spread = warp.spread(generator(seed, "spread").uniform(-side, side, (512, d)))
        trials = in_embedding(history, d)
        ready = sum(t.complete for t in trials) >= max(self.initial, 2)
        box = Box(d, side, partial(clip_up, A), lambda Y: warp(Y) / spread)
        return [next_embedded(trials, history, goals, box, ready=ready, seed=here)]


@dataclass(frozen=True, eq=False)
class Warp:
    """Psi of Binois et al. 2015, in orthonormal coordinates of range(A)."""

    A: Tensor  # D x d_e
    Q: Tensor  # D x d_e, orthonormal columns, the same range

    @classmethod
    def of(cls, A: Array) -> Warp:
        At = torch.from_numpy(np.ascontiguousarray(A))
        return cls(At, torch.linalg.qr(At).Q)

    def __call__(self, Y: Tensor) -> Tensor:
        """Where A y leaves the cube: clip it, project back onto range(A), pivot to the cube's face along the ray from
        the centre, and stretch by the distance between that pivot and the clipped point. Elsewhere A y itself.

        ... x d_e -> ... x d_e
        """
        up = Y @ self.A.T
        clipped = up.clamp(-1.0, 1.0)
        return psi(clipped, clipped @ self.Q, self.Q)

    def spread(self, Y: Array) -> float:
        """A typical size of the image's coordinates, by which to divide them."""
        with torch.no_grad():
            image = self(torch.from_numpy(Y)).abs()
        return float(torch.quantile(image, 0.9))


def psi(x: Tensor, coordinates: Tensor, Q: Tensor) -> Tensor:
    """Psi from a point x of the cube and the coordinates of its orthogonal projection z = Q c onto range(Q).

    Where x = z nothing happens. Else the pivot is z' = z / |z|_inf and Psi = (1 + |x - z'| / |z'|) z', given in the
    coordinates of Q.  ... x D, ... x d_e -> ... x d_e
    """
    z = coordinates @ Q.T
    off = (x - z).square().sum(-1) > 1e-16 * x.shape[-1]
    reach = z.abs().amax(-1).clamp_min(1e-12)
    pivot = coordinates / reach[..., None]
    gap = ((x - z / reach[..., None]).square().sum(-1) + 1e-30).sqrt()
    length = (pivot.square().sum(-1) + 1e-30).sqrt()
    stretched = pivot * (1.0 + gap / length)[..., None]
    return torch.where(off[..., None], stretched, coordinates)
