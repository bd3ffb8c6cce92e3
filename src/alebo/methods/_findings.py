"""What the adaptive method found, in words: who proposes, which parameters matter, where the search goes on."""

from __future__ import annotations

from ..history import History
from ._basins import EXPLAINED, FILLED, LATEST
from ._full_space import full_space_arms
from ._view import ELSEWHERE

RECENT = 20  # evaluations that a finding speaks of
BETS = {
    "embedding": "few directions matter",
    "initial": "points before the first model",
    "source": "the best points of earlier studies",
}


def shares(history: History, last: int | None = None) -> dict[str, int]:
    """How many of the (last) evaluations each arm proposed, initial points included."""
    asked = [t.note["arm"] for t in history if "arm" in t.note]
    counted = asked if last is None else asked[-last:]
    return {name: counted.count(name) for name in dict.fromkeys(counted)}


def finding(history: History) -> str | None:
    """What the arms have found, in one or two lines, read from the notes; None where it is too early to say."""
    recent = [t for t in history.complete if t.note.get("arm") not in (None, "initial")][-RECENT:]
    if len(recent) < RECENT:
        return None
    counts = shares(history, RECENT)
    ahead = max(counts, key=lambda name: counts[name])
    said = f"{counts[ahead]} of the last {RECENT} evaluations were proposed by the arm {ahead!r} ({_bet(ahead)})."
    measured = [t.note for t in history if "sparse" in t.note and ELSEWHERE not in t.note]  # not of filled basins
    sparse = measured[-1]["sparse"] if measured else {}
    if sparse.get("explained", 0.0) >= EXPLAINED and sparse["count"] <= len(sparse["parameters"]):
        names = ", ".join(sparse["parameters"])
        total = len(history[0].params)
        said = f"{sparse['count']} of {total} parameters explain {100 * sparse['explained']:.0f} %: {names}. {said}"
    filled = history.last_note(FILLED).get(FILLED)
    if filled is not None and any(ELSEWHERE in t.note for t in recent[-LATEST:]):
        said += (
            f" Nothing more is expected around trial {filled[0]}: since trial {filled[1]} the search goes on elsewhere."
        )
    return said


def _bet(name: str) -> str:
    return next((arm.bet for arm in full_space_arms() if arm.name == name), BETS.get(name, "another method"))
