"""HeSBO: a count-sketch embedding, so that the embedded box maps exactly into the cube and nothing is clipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .._seeds import derive
from ..geometry import hesbo
from ..goals import Goals
from ..history import History, State, Trial
from ..space import Space
from ._embedded import Box, Embedded, coordinates, embedded_models, embedding_size, in_embedding, next_embedded
from ._fitted import Fitted, by_outcome
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
        trials = tuple(in_embedding(history.complete, d))
        if len(trials) < 2:
            return None
        P = coordinates(trials)
        found = embedded_models(trials, goals, P, seed=derive(seed, "ask", len(history)))
        models = by_outcome(goals, found.objectives, found.constraints, -1.0)
        return Fitted(trials, P.numpy(), embedding.down, models, embedding, f"HeSBO's model in {d} dimensions")

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        d = embedding_size(self.dim, space.dimension)
        embedding = hesbo(space.dimension, d, derive(seed, "hesbo"))
        trials = in_embedding(history, d)
        box = Box(d, 1.0, embedding.up, lambda Y: Y)
        out: list[Suggestion] = []
        for _ in range(q):
            number = len(history) + len(out)
            here = derive(seed, "ask", number)
            started = sum(t.state is not State.FAILED for t in trials)
            ready = sum(t.complete for t in trials) >= 2 and started >= self.initial
            out.append(next_embedded(trials, trials, goals, box, ready=ready, seed=here))
            trials.append(
                Trial(number, {}, out[-1].x, out[-1].y)
            )  # pending from now on: the next of the batch keeps away
        return out
