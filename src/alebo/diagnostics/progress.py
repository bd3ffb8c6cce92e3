"""Do evaluations succeed, and does the best value still improve?"""

from __future__ import annotations

from collections import Counter

from ..goals import Goals
from ..history import History, incumbents
from ..space import Space


def reasons(history: History, most: int = 3) -> tuple[tuple[str, int], ...]:
    """Why trials failed, the most common reason first: its first line and how often it came."""
    lines = [next(iter((t.reason or "").splitlines()), "") or "no reason given" for t in history.failed]
    return tuple(Counter(line[:120] for line in lines).most_common(most))


def since_improvement(history: History, goals: Goals, space: Space) -> int | None:
    """Finished trials since the incumbent last changed; None before the first one, or with several objectives."""
    if not goals.single:
        return None
    after = [best for _, best in incumbents(history, goals, space)]
    return None if not after or after[-1] is None else sum(best is after[-1] for best in after) - 1
