"""Expected hypervolume improvement: what a point adds to a Pareto front of several objectives.

Letters: k points, m draws, n training points; objectives are maximised and standardised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._seeds import generator
from ..goals import pareto
from ..models.surrogate import Surrogate
from .functions import OverMarginals, drawn_values, incumbents, log_ei, log_feasible

Array: TypeAlias = NDArray[np.float64]


class NoisyLogEHVI(OverMarginals):
    """Log expected hypervolume improvement of several objectives over the Pareto front of the models' draws.

    As in NoisyLogEI each draw has a front of its own, whose dominated region is cut into boxes, in which the expected
    improvement of independent normals is a product (Emmerich et al. 2006). Constraints enter by their probability.
    """

    def __init__(
        self,
        objectives: Sequence[Surrogate],
        constraints: Sequence[Surrogate] = (),
        *,
        reference: Array | None = None,  # k, maximised, in the users' units; None: inferred from the measured front
        pending: Tensor | None = None,
        target: Callable[[Tensor], Tensor] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        rng = generator(seed, "noisy-ehvi")
        points, counted = incumbents(objectives[0].points, pending, target)
        self.models = [model.draw(points, rng) for model in (*objectives, *constraints)]
        self.count, self.m = len(objectives), min(len(drawn.v) for drawn in self.models)
        self.reference, self._counted = reference_point(objectives, reference), counted

    @cached_property
    def cells(self) -> tuple[Tensor, Tensor, Tensor]:
        """Lower and upper corners of the boxes beyond the front of each draw, m x cells x objectives, and a mask, m x cells.

        Fronts with fewer cells repeat one, which the mask takes out again.
        """
        values, ok = drawn_values(self.models[: self.count], self.models[self.count :], self.m)
        boxes = [partition(values[i][ok[i] & self._counted], self.reference) for i in range(self.m)]
        most = max(b.shape[1] for b in boxes)
        low, high = (
            torch.stack([torch.cat([b[j], b[j][:1].expand(most - b.shape[1], -1)]) for b in boxes]).clamp(-1e3, 1e3)
            for j in (0, 1)
        )
        mask = torch.zeros(self.m, most, dtype=torch.double)
        for i, b in enumerate(boxes):
            mask[i, b.shape[1] :] = -1e30
        return low, high, mask

    def value(self, moments: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """From the mean and variance of each model, p x k each.  -> k"""
        moments = [(mean[: self.m], variance[: self.m]) for mean, variance in moments]
        low, high, mask = self.cells
        total = mask[:, None, :]
        for j, (mean, variance) in enumerate(moments[: self.count]):
            mean, sigma = mean[..., None], variance.sqrt()[..., None]  # m x k x 1
            above = log_ei((mean - low[:, None, :, j]) / sigma)
            beyond = log_ei((mean - high[:, None, :, j]) / sigma)
            total = total + above + sigma.log() + torch.log1p(-torch.exp((beyond - above).clamp(max=-1e-12)))
        value = torch.logsumexp(total, dim=-1)  # m x k
        for model, (g, spread) in zip(self.models[self.count :], moments[self.count :], strict=True):
            value = value + log_feasible(g, spread, model)
        return torch.logsumexp(value, dim=0) - math.log(self.m)


def reference_point(objectives: Sequence[Surrogate], reference: Array | None) -> Tensor:
    """The point below which nothing counts, standardised and maximised.  -> k"""
    from botorch.utils.multi_objective.hypervolume import infer_reference_point

    if reference is not None:
        scaled = [(r - o.shift) / o.scale for r, o in zip(reference, objectives, strict=True)]
        return torch.tensor(scaled, dtype=torch.double)
    measured = torch.stack([o.v for o in objectives], dim=-1)
    at: Tensor = infer_reference_point(measured[torch.from_numpy(pareto(-measured.numpy()))], scale=0.1)
    return torch.where(torch.isfinite(at), at, measured.min(0).values - 0.1)


def partition(values: Tensor, at: Tensor) -> Tensor:
    """The region that improves on these values, cut into boxes: lower and upper corners.  n x k -> 2 x cells x k"""
    from botorch.utils.multi_objective.box_decompositions import FastNondominatedPartitioning

    better = values[(values > at).all(-1)]
    if not len(better):  # nothing beats the reference yet: all beyond it is one box
        return torch.stack([at, torch.full_like(at, math.inf)]).unsqueeze(1)
    front = better[torch.from_numpy(pareto(-better.numpy()))]
    bounds: Tensor = FastNondominatedPartitioning(at, Y=front).hypercell_bounds
    return bounds
