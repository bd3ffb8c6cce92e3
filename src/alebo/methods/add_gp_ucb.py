"""Add-GP-UCB: the function is taken for a sum over small groups of parameters, each with its own confidence bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from .._seeds import derive, generator
from ..goals import Goals
from ..history import History
from ..models.additive import LENGTHSCALES, Groups, fit_additive, minimise_bounds, random_groups
from ..space import Space
from ._embedded import is_repeated
from ._method import Method, Suggestion, Supports, setting
from ._penalised import measured

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class AddGPUCB(Method):
    """Groups of at most `group_size` parameters, chosen among random decompositions by their marginal likelihood.

    EBO samples its groups by Gibbs moves in parts of the space; this one compares whole decompositions every `cycle`
    evaluations, as Kandasamy et al. do. Ours also learns a variance for each group.
    """

    group_size: int = setting(4, "parameters in a group, at most")
    decompositions: int = setting(8, "drawn at each comparison, beside the one in use")
    cycle: int = setting(10, "evaluations between comparisons")
    initial: int = setting(10, "random points first")

    name: ClassVar[str] = "add-gp-ucb"
    title: ClassVar[str] = "Add-GP-UCB"
    citation: ClassVar[str] = (
        "Kandasamy, Schneider, Poczos 2015, High Dimensional Bayesian Optimisation and Bandits via Additive Models, ICML"
    )
    supports: ClassVar[Supports] = Supports(batches=False)

    def __post_init__(self) -> None:
        self._counts(group_size=1, decompositions=1, cycle=1, initial=1)

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        self.one_at_a_time(history, q)
        here = derive(seed, "ask", len(history))
        D, t = space.dimension, len(history.complete)
        if t < max(self.initial, 2):
            return [Suggestion(generator(here, "initial").uniform(-1.0, 1.0, D), note={"by": "random"})]
        X, y = measured(history, space, goals)
        age = t // self.cycle
        last = next((tr.note for tr in reversed(history.complete) if "draw" in tr.note), None)
        if last is not None and last["age"] == age:
            note = {k: last[k] for k in ("draw", "size", "lengthscale")}
        else:
            note = self._compare(X, y, last, seed, age)
        groups = random_groups(D, note["size"], derive(seed, "decomposition", note["draw"]))
        gp = fit_additive(X, y, groups, lengthscales=(note["lengthscale"],))
        # beta_t = 0.2 d_g log(2 t), their Sec. 5; the square root because it multiplies a standard deviation
        width = torch.tensor([math.sqrt(0.2 * len(g) * math.log(2.0 * t)) for g in groups], dtype=torch.double)
        top = X[np.argsort(y)[:3]]
        x = minimise_bounds(gp, width, -np.ones(D), np.ones(D), here, extra=top)
        by = "model"
        if is_repeated(x, history):
            x, by = generator(here, "repeated").uniform(-1.0, 1.0, D), "random"
        return [Suggestion(x, note={"by": by, "age": age, **note})]

    def _compare(self, X: Array, y: Array, last: dict[str, Any] | None, seed: int, age: int) -> dict[str, Any]:
        """The decomposition of largest marginal likelihood: the one in use, and fresh draws of every size."""
        D = X.shape[1]
        candidates: list[tuple[str, int]] = [] if last is None else [(last["draw"], last["size"])]
        sizes = [min(D, 1 + k % self.group_size) for k in range(self.decompositions)]
        candidates += [(f"{age}-{k}", size) for k, size in enumerate(reversed(sizes))]
        found: list[tuple[float, str, int, Groups]] = []
        tried: tuple[float, ...] = LENGTHSCALES
        for draw, size in candidates:
            groups = random_groups(D, size, derive(seed, "decomposition", draw))
            gp = fit_additive(X, y, groups, lengthscales=tried, iterations=8)
            found.append((gp.log_likelihood, draw, size, groups))
            tried = (gp.lengthscale,)  # the first decomposition chooses for the comparison, the winner for itself
        _, draw, size, groups = max(found, key=lambda f: f[0])
        gp = fit_additive(X, y, groups, lengthscales=LENGTHSCALES, iterations=8)
        return {"draw": draw, "size": size, "lengthscale": gp.lengthscale}
