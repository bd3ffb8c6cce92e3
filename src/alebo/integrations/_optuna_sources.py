"""Earlier studies for the Optuna sampler: matched with its distributions by name, read once and remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from .._tasks import Task
from ..goals import Goals, Outcome
from ..history import History, State, Trial
from ..methods import Method
from ..sources import Source, as_list, check_method, learned_from
from ..space import Float, Space


class Sources:
    """What a sampler was given to learn from, as tasks of a study's space and goals."""

    def __init__(self, given: Any, space: Space, stepped: dict[str, Any], method: Method) -> None:
        self._given = [_source(s) for s in as_list(given)]
        self._method = method
        check_method(method, space)
        steps = {name: Float(name, d.low, d.high, step=d.step) for name, d in stepped.items()}  # in the user's units
        self._space = Space([steps.get(p.name, p) for p in space.parameters])
        self._known: dict[tuple[str, ...], tuple[Task, ...]] = {}

    def tasks(self, goals: Goals) -> tuple[Task, ...]:
        """The sources with their fitted processes; made again where a constraint has become known."""
        key = tuple(map(repr, (*goals.objectives, *goals.constraints)))
        if key not in self._known:
            given = [_named(s, goals) for s in self._given]
            self._known[key] = learned_from(given, self._space, goals, self._method)
        return self._known[key]

    def digests(self, goals: Goals) -> list[str]:
        """Short names of their data, by which workers of one study see that they have the same ones."""
        objectives = Goals(goals.objectives)
        return [_named(s, objectives).task(self._space, objectives).digest for s in self._given]


def _source(given: Any) -> Source:
    source = given if isinstance(given, Source) else Source(given)
    if not isinstance(source.data, optuna.Study):
        return source
    study, trials = source.data, source.data.get_trials(deepcopy=False)
    names = tuple(dict.fromkeys(name for t in trials for name in t.params))
    read = History(tuple(_trial(t) for t in trials))
    outcomes = tuple(dict.fromkeys(name for t in read for name in t.outcomes))
    as_ours = SimpleNamespace(
        space=SimpleNamespace(names=names),
        goals=SimpleNamespace(outcomes=outcomes),
        history=read,
        name=study.study_name,
    )
    return replace(source, data=as_ours)


def _trial(frozen: FrozenTrial) -> Trial:
    """A trial of an earlier Optuna study, with the names that the sampler gives to values and constraints."""
    if frozen.state is not TrialState.COMPLETE:
        return Trial(frozen.number, dict(frozen.params), np.zeros(0), state=State.FAILED)
    values: Sequence[float] = frozen.values
    outcomes = {f"value {i}": Outcome(float(v)) for i, v in enumerate(values)}
    outcomes |= {f"constraint {k}": Outcome(float(v)) for k, v in frozen.constraints.items()}
    return Trial(frozen.number, dict(frozen.params), np.zeros(0), outcomes=outcomes, state=State.COMPLETE)


def _named(source: Source, goals: Goals) -> Source:
    """Where both have one objective, that of the source is this one: Optuna's values have no name."""
    data = getattr(source.data, "optimizer", source.data)  # a Result
    theirs: Sequence[Any] = getattr(getattr(data, "goals", None), "objectives", ())
    ours = goals.objectives[0].outcome
    if len(theirs) != 1 or len(goals.objectives) != 1 or ours in source.columns:
        return source
    return replace(source, columns={**source.columns, ours: theirs[0].outcome})
