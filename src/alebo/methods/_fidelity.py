"""A Fidelity parameter: how carefully the next evaluation is made, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ..space import Space
from ._outcomes import OutcomeModels
from ._view import View

EVERY, LAST = 5, 0.9  # every fifth evaluation, and all after this share of the budget, are made at the target


def at_target_next(view: View) -> bool:
    """Whether the next evaluation is made at the target fidelity: every fifth, and the last tenth of the budget."""
    asked, budget = view.history.asked + len(view.extra), view.history.budget  # extra: earlier points of this batch
    return asked % EVERY == EVERY - 1 or (budget is not None and asked >= LAST * budget - 1)


def log_cost(model: OutcomeModels, space: Space) -> Callable[[Tensor], Tensor] | None:
    """The logarithm of an evaluation's cost, for a space with a Fidelity; None without one.

    As modelled where the cost is measured, else in proportion to the fidelity.
    """
    if space.fidelity is None:
        return None
    level = space.fidelity[1]
    if model.cost is not None:
        cost = model.cost
        return lambda X: cost.moments(X)[0]

    def proportional(X: Tensor) -> Tensor:  # ... x 1 x d_e -> ...
        share = 0.5 * (X[..., 0, 0] + 1.0)
        if level.log:
            return math.log(level.low) + share * math.log(level.high / level.low)
        return torch.log((level.low + share * (level.high - level.low)).clamp_min(1e-3 * level.high))

    return proportional
