"""HeSBO: a count-sketch embedding, so that the embedded box maps exactly into the cube and nothing is clipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._seeds import derive, generator
from ..geometry import hesbo
from ..goals import Goals
from ..history import History, State, Trial
from ..space import Space
from ._embedded import (
    Embedded,
    coordinates,
    embedded_model,
    embedding_size,
    first_new,
    is_repeated,
    maximise_embedded,
)
from ._fitted import Fitted, by_outcome
from ._gp import fit_outcomes
from ._method import Suggestion, Supports


@dataclass(frozen=True)
class HeSBO(Embedded):
    """Bayesian optimization in [-1, 1]^dim, where every parameter is plus or minus one embedded coordinate.

    Unlike REMBO it never clips, so an ordinary kernel fits; unlike ALEBO its embedding is axis-aligned, so parameters
    that share a coordinate move together, and an optimum where they would have to part is missed for good.
    The paper evaluates dim = d and 2 d.
    """

    name: ClassVar[str] = "hesbo"
    title: ClassVar[str] = "HeSBO"
    citation: ClassVar[str] = (
        "Nayebi, Munteanu, Poloczek 2019, A Framework for Bayesian Optimization in Embedded Subspaces, ICML"
    )
    supports: ClassVar[Supports] = Supports(constraints=True, batches=True)

    def fitted(self, history: History, space: Space, goals: Goals, seed: int, *, fresh: bool = False) -> Fitted | None:
        d = embedding_size(self.dim, space.dimension)
        embedding = hesbo(space.dimension, d, derive(seed, "hesbo"))
        trials = tuple(t for t in history.complete if t.y is not None and len(t.y) == d)
        if len(trials) < 2:
            return None
        P = coordinates(trials).numpy()
        found = fit_outcomes(P, trials, goals, seed=derive(seed, "ask", len(history)))
        models = by_outcome(goals, [[found.objective]], [[gp] for gp in found.constraints], 1.0)
        return Fitted(trials, P, embedding.down, models, embedding, f"HeSBO's model in {d} dimensions")

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        d = embedding_size(self.dim, space.dimension)
        embedding = hesbo(space.dimension, d, derive(seed, "hesbo"))
        trials = [t for t in history if t.y is not None and len(t.y) == d]
        out: list[Suggestion] = []
        for _ in range(q):
            number = len(history) + len(out)
            here = derive(seed, "ask", number)
            started = sum(t.state is not State.FAILED for t in trials)
            model_ready = sum(t.complete for t in trials) >= 2 and started >= self.initial

            def draw(k: int) -> tuple[np.ndarray, np.ndarray]:
                y = generator(k, "initial").uniform(-1.0, 1.0, d)
                return embedding.up(y), y

            x, y = first_new(draw, history, here)
            note: dict[str, object] = {"by": "random"}
            if model_ready:
                model = embedded_model(trials, goals, coordinates(trials), seed=here)
                best, log_ei = maximise_embedded(model, trials, goals, lambda Y: Y, -np.ones(d), np.ones(d), here)
                if not is_repeated(embedding.up(best), trials):
                    x, y, note = embedding.up(best), best, {"by": "model", "log_ei": round(log_ei, 4)}
            out.append(Suggestion(x, y, note))
            trials.append(Trial(number, {}, x, y))  # pending from now on: the next of the batch keeps away
        return out
