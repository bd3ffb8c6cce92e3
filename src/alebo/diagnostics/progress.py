"""Do evaluations succeed, and does the best value still improve?"""

from __future__ import annotations

import math
from collections import Counter

from ..goals import Goals
from ..history import History
from ..space import Space


def reasons(history: History, most: int = 3) -> tuple[tuple[str, int], ...]:
    """Why trials failed, the most common reason first: its first line and how often it came."""
    lines = [next(iter((t.reason or "").splitlines()), "") or "no reason given" for t in history.failed]
    return tuple(Counter(line[:120] for line in lines).most_common(most))


def since_improvement(history: History, goals: Goals, space: Space) -> int | None:
    """Finished trials since the incumbent last changed; None before the first one, or with several objectives."""
    if not goals.single:
        return None
    best, since = math.inf, None
    for t in history:
        good = t.complete and goals.feasible(t.outcomes) and space.at_target(t.params)
        if good and float(goals.objective_values(t.outcomes)[0]) < best:
            best, since = float(goals.objective_values(t.outcomes)[0]), 0
        elif since is not None and t.state.value != "pending":
            since += 1
    return since
