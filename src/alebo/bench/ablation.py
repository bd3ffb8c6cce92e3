"""Methods without one of their parts, to measure what the part is worth.

`ArdALEBO` is ALEBO without its kernel (Fig. S10): the same embedding and polytope, but an ARD Matern process.
`InTurn` is the adaptive method without its rule of sharing, `Apart` without sharing data.

`coordinates="raw"` is the paper's set-up (y = B x with unit columns, which reaches +-19 at D=100, while lengthscales start
below one); `"scaled"` gives the kernel coordinates in [-1, 1], as any user of an ARD process would.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch

from alebo import Goals, History, InputError, Space
from alebo.geometry import Embedding, from_matrix, gaussian, hypersphere
from alebo.methods import Adaptive, Method, Suggestion, Supports

from .._seeds import derive


@dataclass(frozen=True)
class ArdALEBO(Method):
    """ALEBO with an ARD Matern 5/2 kernel in place of the Mahalanobis one; everything else as in the paper's settings."""

    dim: int = 4
    coordinates: str = "raw"
    kind: str = "hypersphere"
    initial: int = 10

    name: ClassVar[str] = "ard-alebo"
    title: ClassVar[str] = "ALEBO with an ARD kernel"
    citation: ClassVar[str] = "Letham et al. 2020, Fig. S10"
    supports: ClassVar[Supports] = Supports(batches=False)

    def __post_init__(self) -> None:
        if self.coordinates not in ("raw", "scaled"):
            raise InputError(f"`coordinates` is raw or scaled; got {self.coordinates!r}.")

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        embedding = self._embedding(space.dimension, seed)
        number = len(history)
        if number < self.initial:
            y = embedding.domain.sample(self.initial, derive(seed, "initial"))[number]
        else:
            y = self._model_point(history, embedding, goals, derive(seed, "ask", number))
        return [Suggestion(embedding.up(y), y, {"dim": self.dim})]

    def _embedding(self, D: int, seed: int) -> Embedding:
        # the same draw as ALEBO makes for this seed, so that the comparison is paired
        drawn = {"hypersphere": hypersphere, "gaussian": gaussian}[self.kind](D, self.dim, derive(seed, "embedding"))
        if self.coordinates == "raw":
            return drawn
        low, high = drawn.domain.bounds
        return from_matrix(drawn.B / (0.5 * (high - low))[:, None])  # the polytope is symmetric: now within [-1, 1]

    def _model_point(self, history: History, embedding: Embedding, goals: Goals, seed: int) -> Any:
        from botorch.acquisition.analytic import LogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Standardize
        from gpytorch.kernels import MaternKernel, ScaleKernel
        from gpytorch.mlls import ExactMarginalLogLikelihood
        from gpytorch.priors import GammaPrior

        from alebo.acquisition import propose

        Y = torch.tensor(np.stack([t.y for t in history.complete if t.y is not None]))
        values = -np.array([goals.objective_values(t.outcomes)[0] for t in history.complete])
        y = torch.tensor(values).unsqueeze(1)
        matern = MaternKernel(nu=2.5, ard_num_dims=self.dim, lengthscale_prior=GammaPrior(3.0, 6.0))
        kernel = ScaleKernel(matern, outputscale_prior=GammaPrior(2.0, 0.15))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fit's remarks on its start are not the user's business here
            model = SingleTaskGP(Y, y, torch.full_like(y, 1e-6), covar_module=kernel, outcome_transform=Standardize(1))
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            best = Y[int(np.argmax(values))].unsqueeze(0).numpy()
            found, _ = propose(LogExpectedImprovement(model, best_f=y.max()), embedding.domain, seed, around=best)
        return found


@dataclass(frozen=True)
class InTurn(Adaptive):
    """The adaptive method whose arms propose in turn, whatever came of it."""

    name: ClassVar[str] = "adaptive-in-turn"
    title: ClassVar[str] = "Adaptive, arms in turn"

    def _turn(self, view: Any, arms: Sequence[str], ahead: Sequence[str]) -> str:
        asked = [t.note.get("arm") for t in view.history] + list(ahead)
        return min(arms, key=lambda name: max((i for i, arm in enumerate(asked) if arm == name), default=-1))


@dataclass(frozen=True)
class Apart(Adaptive):
    """The adaptive method whose arms learn from the first points and from their own evaluations only."""

    name: ClassVar[str] = "adaptive-apart"
    title: ClassVar[str] = "Adaptive, data not shared"

    def _seen(self, view: Any, name: str) -> Any:
        first = sum(self._counts_of_first(view, "embedding" in self.arms))
        kept = [t for t in view.history if t.number < first or t.note.get("arm") == name]
        trials = tuple(replace(t, number=i) for i, t in enumerate(kept))
        return replace(view, arm=name, history=History(trials, view.history.budget))
