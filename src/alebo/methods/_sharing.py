"""Who proposes next: a rule that shares evaluations among arms by the improvement that each of them really brought.

An arm is one method among several that learn from the same history; each trial's note names the arm that proposed it.
The rule is a pure function of the history, so any process continues a study in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..goals import Goals, pareto
from ..history import Trial
from ._settings import Settings, setting
from ._view import View

NOTHING = 1e-9  # a score below this is no improvement


@dataclass(frozen=True)
class Sharing(Settings):
    """How evaluations are shared among arms."""

    memory: float = setting(0.93, "by this factor an improvement counts less after every further evaluation")
    lead: int = setting(4, "all but one of so many evaluations go to the arm that improved most lately")
    final: float = setting(0.2, "the last share of the budget belongs to that arm alone")
    faint: float = setting(
        -3.5,
        "log-EI below which the leader's latest proposals promise little: then every other evaluation is the others'",
    )
    patience: int = setting(9, "an arm that has not improved in so many of its evaluations in a row is not in the lead")

    def __post_init__(self) -> None:
        self._numbers(memory=(0.0, 1.0), final=(0.0, 1.0), faint=(-math.inf, math.inf))
        self._counts(lead=2, patience=1)

    def scores(self, view: View, arms: Sequence[str]) -> dict[str, float | None]:
        """The discounted mean gain of an arm's evaluations, 0 when it has waited for one too long; None for one without any."""
        gained, used, idle = dict.fromkeys(arms, 0.0), dict.fromkeys(arms, 0.0), dict.fromkeys(arms, 0)
        for trial, gain in zip(view.trials, gains(view.trials, view.goals), strict=True):
            arm = trial.note.get("arm")
            if arm in gained and view.searched(trial):
                for name in arms:
                    gained[name] *= self.memory
                    used[name] *= self.memory
                gained[arm] += gain
                used[arm] += 1.0
                idle[arm] = 0 if gain > 0.0 else idle[arm] + 1
        tired = {name for name in arms if idle[name] >= self.patience}
        return {name: None if not used[name] else 0.0 if name in tired else gained[name] / used[name] for name in arms}

    def next(self, view: View, arms: Sequence[str], ahead: Sequence[str] = ()) -> str:
        """The arm that proposes next.

        Args:
            view: the study.
            arms: those that can propose.
            ahead: the arms of the points of the same batch that were chosen before.
        """
        asked = [t.note.get("arm") for t in view.history] + list(ahead)
        last = {name: max((i for i, arm in enumerate(asked) if arm == name), default=-1) for name in arms}
        waiting = min(arms, key=lambda name: last[name])
        if last[waiting] < 0:  # every arm proposes once
            return waiting
        scores = {name: score or 0.0 for name, score in self.scores(view, arms).items()}
        leader = max(arms, key=lambda name: scores[name])
        others = [name for name in arms if name != leader]
        if not others:
            return leader
        shared = sum(arm in last for arm in asked)
        every = 2 if self._promises_little(view, leader) else self.lead
        refined = view.ends_within(self.final) and not view.search  # the best point of all, by the leader alone
        aside = shared % every == every - 1 and not refined
        if scores[leader] <= NOTHING:  # nothing improves lately: in turn, and mostly those that at least come near
            return waiting if aside else min(self.near(view, arms) or arms, key=lambda name: last[name])
        return min(others, key=lambda name: last[name]) if aside else leader

    def _promises_little(self, view: View, arm: str) -> bool:
        """Whether the arm itself expected little of its last two proposals."""
        promised = [t.note["log_ei"] for t in view.history if t.note.get("arm") == arm and "log_ei" in t.note][-2:]
        return bool(promised) and max(promised) < self.faint

    def near(self, view: View, arms: Sequence[str]) -> list[str]:
        """The arms of whose latest evaluations half or more were better than half of all evaluations."""
        if not view.goals.single:
            return list(arms)
        ok = [view.goals.feasible(t.outcomes) for t in view.trials]
        values = [float(view.goals.objective_values(t.outcomes)[0]) for t in view.trials]
        values = [value if good else math.inf for value, good in zip(values, ok, strict=True)]
        typical = float(np.median(values)) if values else math.inf
        out = []
        for name in arms:
            own = [v for t, v in zip(view.trials, values, strict=True) if t.note.get("arm") == name][-self.patience :]
            if not own or float(np.median(own)) <= typical:
                out.append(name)
        return out


def gains(trials: Sequence[Trial], goals: Goals) -> list[float]:
    """How much each trial improved on those before it, from 0 to 1; the same on every scale of the outcomes.

    One objective: the decrease of the best value as a share of the distance from the median of all values before to the
    new best. While nothing is feasible: 1 for a smaller total violation than any before. Several objectives: 1 for a
    point that no point before dominates.
    """
    return _gains_of_front(trials, goals) if not goals.single else _gains_of_best(trials, goals)


def _gains_of_best(trials: Sequence[Trial], goals: Goals) -> list[float]:
    out: list[float] = []
    seen: list[float] = []
    best = least = math.inf
    for t in trials:
        gain = 0.0
        if goals.feasible(t.outcomes):
            value = float(goals.objective_values(t.outcomes)[0])
            if value < best:
                typical = float(np.median(seen)) if seen else value
                gain = 1.0 if math.isinf(best) else min((best - value) / max(typical - value, best - value), 1.0)
                best = value
            seen.append(value)
        elif math.isinf(best):
            violation = float(np.maximum(goals.violations(t.outcomes), 0.0).sum())
            gain, least = float(violation < least), min(violation, least)
        out.append(gain)
    return out


def _gains_of_front(trials: Sequence[Trial], goals: Goals) -> list[float]:
    out: list[float] = []
    seen: list[NDArray[np.float64]] = []
    for t in trials:
        gain = 0.0
        if goals.feasible(t.outcomes):
            seen.append(goals.objective_values(t.outcomes))
            gain = float(pareto(np.stack(seen))[-1])
        out.append(gain)
    return out
