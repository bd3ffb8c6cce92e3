"""Methods whose authors define no constraints: they refuse them, or rank infeasible points last where the user says so."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._errors import InputError
from ..goals import Goals
from ..history import History
from ..models.outcomes import tamed
from ..space import Space
from ._method import Method

Array: TypeAlias = NDArray[np.float64]
Infeasible: TypeAlias = Literal["refuse", "worst"]
INFEASIBLE = "'refuse' problems with outcome constraints, or count an infeasible point as the 'worst' objective seen"


class Penalised(Method):
    """A method with the setting `infeasible`: "worst" counts an infeasible point as the worst objective seen."""

    infeasible: Infeasible

    def check(self, space: Space, goals: Goals) -> None:
        if self.infeasible == "worst":
            goals = Goals([g for g in goals.goals if g not in goals.constraints])
        super().check(space, goals)

    def way_out(self, ability: str) -> str:
        return ' Or rank infeasible points last: infeasible="worst".' if ability == "constraints" else ""

    def _check_infeasible(self) -> None:
        if self.infeasible not in ("refuse", "worst"):
            raise InputError(
                f"`infeasible` is 'refuse' or 'worst'; got {self.infeasible!r}. Use 'worst' to rank such points last."
            )


def penalised_values(history: History, goals: Goals) -> dict[int, float]:
    """What each completed trial counts for, by number: the objective, or the worst one seen where it is infeasible.

    Extreme values are compressed, which keeps their order: 1e308 would overflow in the sums of a model.
    """
    complete = history.complete
    values = tamed(np.array([goals.objective_values(t.outcomes)[0] for t in complete]))
    objective = dict(zip((t.number for t in complete), values.tolist(), strict=True))
    worst = max(objective.values(), default=0.0)
    return {t.number: objective[t.number] if goals.feasible(t.outcomes) else worst for t in complete}


def measured(history: History, space: Space, goals: Goals) -> tuple[Array, Array]:
    """All evaluated points and values to minimise, extreme ones compressed; a failed evaluation counts as the worst.

    (Else it would be proposed again.)  -> n x D, n
    """
    complete, failed = history.complete, history.avoided
    y = tamed(np.array([goals.objective_values(t.outcomes)[0] for t in complete])).tolist()
    X = space.snap(np.stack([t.x for t in (*complete, *failed)]))
    return X, np.array(y + [max(y)] * len(failed))
