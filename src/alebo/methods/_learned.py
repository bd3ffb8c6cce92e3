"""What a study has learned from earlier ones, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..goals import Goals
from ..history import History
from ..models.coregional import CoregionalGP, fit_coregional
from ..models.informed import Data
from ..models.outcomes import Standardisation, reported_variances, tamed
from ..models.priors import NOISE_FLOOR
from ..space import Space
from ._foreseen import FIRST
from ._transfer import process, weights
from ._view import View

LEAST = 4  # completed evaluations before anything is said


@dataclass(frozen=True)
class Learned:
    """What one source has told so far.

    Attributes:
        name: of the source.
        evaluations: that are learned from.
        explained: the share of what was measured here that its predictions explain: their squared correlation, 0 where it is
            negative; None before there are enough evaluations.
        correlation: of the two tasks, as the model of both has it.
        weight: that it has, by what it foresaw.
    """

    name: str
    evaluations: int
    explained: float | None
    correlation: float | None
    weight: float

    def __str__(self) -> str:
        if self.explained is None:
            return f"{self.name}: {self.evaluations} evaluations to learn from; too few here to compare."
        share = f"{self.name} explains {100.0 * self.explained:.0f} % of what was measured so far"
        return f"{share}; its weight is {self.weight:.1f}."


def learned(history: History, space: Space, goals: Goals) -> list[Learned]:
    """What each source has told so far of the first objective; empty without sources."""
    view = View(history, space, goals, 0)
    shares = weights(history, goals)
    out = []
    for task, weight in zip(history.sources, shares, strict=True):
        explained = correlation = None
        source = process(task, goals, FIRST)
        if source is not None and len(view.trials) >= LEAST:
            values = tamed(-view.values[:, 0])
            at = torch.from_numpy(0.5 * (view.X + 1.0))
            expected = source.marginals(at).mean[0].numpy()
            explained = _explained(expected, values)
            units = Standardisation.of(values)
            known = units.variances(
                reported_variances([t.outcomes[goals.objectives[0].outcome].sem for t in view.trials])
            )
            noise = np.full(len(values), NOISE_FLOOR) if known is None else np.maximum(known, NOISE_FLOOR)
            v = torch.from_numpy(units(values))
            data = Data(at, v, torch.from_numpy(noise), known is not None, units.shift, units.scale)
            parts = [m.correlation for m in fit_coregional(source, data).models if isinstance(m, CoregionalGP)]
            correlation = float(np.mean(parts))
        out.append(Learned(task.name, len(task), explained, correlation, weight))
    return out


def _explained(expected: np.ndarray, values: np.ndarray) -> float:
    if np.ptp(expected) == 0.0 or np.ptp(values) == 0.0:
        return 0.0
    return max(float(np.corrcoef(expected, values)[0, 1]), 0.0) ** 2
