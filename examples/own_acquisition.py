"""An acquisition function of your own, maximised inside the embedding's polytope: here BoTorch's upper confidence bound.

    python examples/own_acquisition.py

A method is a frozen dataclass with one verb, `suggest`, a pure function of the history and the seed; the optimizer, the
study on disk and the benchmark take it like any of ours.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from botorch.acquisition import UpperConfidenceBound

import alebo
from alebo.acquisition import propose
from alebo.methods import Method, Suggestion, Supports

BUDGET = int(os.environ.get("ALEBO_BUDGET", "30"))


@dataclass(frozen=True)
class Confident(Method):
    """ALEBO's embedding and model with an upper confidence bound instead of expected improvement."""

    dim: int = 4
    beta: float = 2.0

    name: ClassVar[str] = "confident"
    title: ClassVar[str] = "Confident"
    citation: ClassVar[str] = "this file"
    supports: ClassVar[Supports] = Supports(batches=False)

    def suggest(
        self, history: alebo.History, space: alebo.Space, goals: alebo.Goals, q: int, seed: int
    ) -> Sequence[Suggestion]:
        ours = alebo.ALEBO(dim=self.dim)
        if len(history.complete) < 10:
            return ours.suggest(history, space, goals, q, seed)
        embedding = ours.embedding(history, space, seed)
        model = ours.surrogate(history, embedding, space, goals, seed).objectives[0]  # of minus the objective
        y, value = propose(
            UpperConfidenceBound(model, beta=self.beta), ours.domain(embedding, space), seed + len(history)
        )
        return [Suggestion(embedding.up(y), y, {"dim": embedding.dim, "bound": round(value, 6)})]


def f(x):
    return (x[3] - 0.2) ** 2 + (x[40] + 0.5) ** 2


result = alebo.minimize(f, [(-1, 1)] * 60, budget=BUDGET, seed=0, method=Confident())
print(result.message)
print(f"best value {result.fun:.5f}, x[3] = {result.x[3]:.3f}, x[40] = {result.x[40]:.3f}")
