"""What ALEBO keeps in the note of a trial, and whether its assumption holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..history import History
from ._maximise import Proposal
from ._outcomes import OutcomeModels
from ._view import EmbeddedView

UNEXPLAINED = 0.15  # share of the variation, beyond noise, that a model of a few directions may leave open
LEAST, RECENT = 60, 20  # evaluations before a verdict; models that it is the median of
ASSUMPTION_FAILS = "a few directions of a linear embedding do not explain this function"


def assumption_fails(history: History, unexplained: float) -> bool:
    """Whether, with sixty evaluations and more, the typical model of the last twenty leaves too much unexplained."""
    past = [t.note["unexplained"] for t in history.trials if "unexplained" in t.note]
    typical = float(np.median([*past[-(RECENT - 1) :], unexplained]))
    return len(history.complete) >= LEAST and typical > UNEXPLAINED


def note(seen: EmbeddedView, found: Proposal | None = None) -> dict[str, Any]:
    """What every trial keeps: the size of the embedding, how it changed, and the acquisition at the point."""
    out: dict[str, Any] = {"dim": seen.embedding.dim, "events": [e.to_plain(seen.number) for e in seen.events]}
    return out if found is None else {**out, "log_ei": round(found.value, 6)}


def memory(seen: EmbeddedView, model: OutcomeModels, key: str) -> dict[str, Any]:
    """What the first of a batch keeps: where the next fit starts, and how much the models leave unexplained."""
    unexplained = round(max(m.unexplained() for m in model.objectives), 3)
    out: dict[str, Any] = {key: model.packed(), "unexplained": unexplained}
    if model.compressed:
        out["compressed"] = model.compressed  # outcomes with values so extreme that the models see them compressed
    return {**out, "assumption": ASSUMPTION_FAILS} if assumption_fails(seen.history, unexplained) else out


def approximation(history: History) -> str | None:
    """Where the last models learned from a part of the trials only: so in words."""
    part = history.last_note("learned from").get("learned from")
    return None if part is None else f"The models learn from {part}: the best, and some of all others."


def remembered(seen: EmbeddedView, key: str, notes: int) -> dict[str, list[Any]]:
    """What the last notes hold for the model of each outcome, the newest first; only the newest has to be whole."""
    newest, *others = seen.last_notes(key, notes) or [{}]
    older = [found for found in others if isinstance(found, Mapping)]
    return {
        name: [*states, *(state for found in older for state in _lists(found.get(name)))]
        for name, states in (newest or {}).items()
    }


def _lists(states: Any) -> list[Any]:
    return [state for state in states if isinstance(state, list | tuple)] if isinstance(states, list | tuple) else []
