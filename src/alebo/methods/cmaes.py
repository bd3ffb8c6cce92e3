"""CMA-ES: an evolution strategy that adapts the covariance of its mutations; the `cma` library, replayed from history."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._errors import InputError, MissingPartError, damaged_note
from .._seeds import derive, generator
from ..goals import Goals
from ..history import History, State
from ..space import Space
from ._method import Suggestion, Supports, setting
from ._penalised import INFEASIBLE, Infeasible, Penalised, penalised_values

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class CMAES(Penalised):
    """The `cma` library's evolution strategy, from the centre of the cube.

    A trial's note says which generation and member it is, so the library's state is rebuilt by telling it the same
    generations again. Points asked for beyond a generation that is still being evaluated are drawn from the same
    distribution and do not take part in its ranking: with batches, set `population` to a multiple of the batch.
    A failed member ranks last.
    """

    sigma: float = setting(0.5, "first step size; half a side of the cube is 1")
    population: int | None = setting(None, "of a generation; None: by the dimension, as the library has it")
    infeasible: Infeasible = setting("refuse", INFEASIBLE)

    name: ClassVar[str] = "cmaes"
    title: ClassVar[str] = "CMA-ES"
    citation: ClassVar[str] = "Hansen et al. 2003, Reducing the time complexity of the derandomized evolution strategy"
    supports: ClassVar[Supports] = Supports()

    def __post_init__(self) -> None:
        self._numbers(sigma=(0.0, math.inf))
        if self.sigma == 0:
            raise InputError(f"`sigma > 0` must hold; got {self.sigma}. The cube's half side is 1; try 0.5.")
        self._counts(population=4)
        self._check_infeasible()

    def check(self, space: Space, goals: Goals) -> None:
        super().check(space, goals)
        if space.dimension < 2:
            raise InputError(
                "CMA-ES adapts a covariance, so two coordinates or more are needed; got one. Use alebo.methods.BO, say."
            )

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        values = penalised_values(history, goals)
        members: dict[int, dict[int, tuple[State, float]]] = {}
        for t in history:
            if "generation" in t.note and "member" in t.note:
                told_as = (t.state, values.get(t.number, math.inf))
                members.setdefault(int(t.note["generation"]), {})[int(t.note["member"])] = told_as
        es = self.strategy(space.dimension, seed)
        number = 0
        X = es.ask()
        if any(i >= len(X) for found in members.values() for i in found):
            raise damaged_note(f"the number of a member below {len(X)}")
        while len(members.get(number, {})) == len(X) and all(
            s is not State.PENDING for s, _ in members[number].values()
        ):
            ranks = [members[number][i][1] for i in range(len(X))]
            finite = [v for v in ranks if math.isfinite(v)]
            last = max(finite, default=0.0)
            es.tell(X, [v if math.isfinite(v) else last + abs(last) + 1.0 for v in ranks])
            X = es.ask()
            number += 1
        present = members.get(number, {})
        out = [
            Suggestion(np.asarray(x), note={"generation": number, "member": i})
            for i, x in enumerate(X)
            if i not in present
        ][:q]
        rng = generator(seed, "cmaes", "extra", len(history))
        while len(out) < q:
            step = np.asarray(es.sm.transform(rng.standard_normal(space.dimension)))
            x = np.clip(np.asarray(es.mean) + es.sigma * step, -1.0, 1.0)
            out.append(Suggestion(x, note={"generation": number, "extra": True}))
        return out

    def strategy(self, D: int, seed: int) -> Any:
        """The library's object before its first generation, with randomness of its own."""
        try:
            import cma
        except ImportError:
            raise MissingPartError(
                'CMA-ES needs the library `cma`, which is not installed. Run: pip install "alebo[cma]"'
            ) from None
        stream = np.random.RandomState(derive(seed, "cmaes") % 2**32)  # the library's own kind
        options: dict[str, Any] = {"bounds": [-1.0, 1.0], "verbose": -9, "seed": float("nan"), "randn": stream.randn}
        if self.population is not None:
            options["popsize"] = self.population
        return cma.CMAEvolutionStrategy(np.zeros(D), self.sigma, options)
