"""Noise that nobody reported: one repeated evaluation distinguishes it from a rough function."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..goals import Outcome
from ..history import History, Trial
from ..models.outcomes import typical_spread
from ._outcomes import OutcomeModels
from ._view import View

ENOUGH = 5  # trials inside the embedding, below which no model is asked for the best point
SAME = 1e-6  # standard deviations of an outcome up to which two measurements are equal


def to_repeat(seen: View, model: OutcomeModels) -> Trial | None:
    """The best point measured, once, when the data first indicate noise; None where there is nothing to repeat."""
    if any(m.known_noise for m in model.models.values()) or any("again" in t.note for t in seen.history):
        return None
    if len(model.objectives) > 1 or seen.space.fidelity is not None or not model.feasible.any():
        return None
    if not model.noise_is_evident():
        return None
    return seen.trials[int(np.argmin(np.where(model.feasible, model.values[:, 0], np.inf)))]


def repeatable(history: History) -> bool:
    """Whether points were evaluated more than once, and every outcome was the same each time."""
    first: dict[bytes, Trial] = {}
    pairs = [(first.setdefault(t.x.tobytes(), t), t) for t in history.complete]
    repeats = [(one, two) for one, two in pairs if one is not two]
    return bool(repeats) and all(
        abs(two.outcomes[name].mean - one.outcomes[name].mean)
        <= SAME * typical_spread(np.array([t.outcomes[name].mean for t in history.complete]))
        for one, two in repeats
        for name in one.outcomes
    )


def estimates(seen: View, fit: Callable[[], OutcomeModels]) -> Mapping[int, Mapping[str, Outcome]] | None:
    """The outcomes of every completed trial, as the model has them where the noise is evident.

    None where measurements can be trusted, or where there are too few data for a model.
    """
    if len(seen.trials) < ENOUGH:
        return None
    if repeatable(seen.history):
        return None  # what looks like noise is a rough function
    model = fit()
    if not model.noise_is_evident():
        return None
    out: dict[int, Mapping[str, Outcome]] = {t.number: t.outcomes for t in seen.history.complete}
    for t, posterior in zip(seen.trials, model.estimates(), strict=True):
        out[t.number] = {**t.outcomes, **posterior}
    return out
