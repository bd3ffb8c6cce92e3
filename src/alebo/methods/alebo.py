"""ALEBO: stand-in while the model is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .._seeds import derive
from ..geometry import hypersphere
from ..goals import Goals
from ..history import History
from ..space import Space
from ._method import Method, Suggestion, Supports


@dataclass(frozen=True)
class ALEBO(Method):
    dim: int | None = None

    name: ClassVar[str] = "alebo"
    title: ClassVar[str] = "ALEBO"
    citation: ClassVar[str] = "Letham et al. 2020"
    supports: ClassVar[Supports] = Supports(True, True, True, True, True, True)

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        e = hypersphere(space.dimension, self.dim or 4, derive(seed, "embedding")).orthonormal()
        Y = e.domain.sample(q, derive(seed, "ask", len(history)))
        return [Suggestion(e.up(y), y, {"dim": e.dim}) for y in Y]
