"""The sampler for Optuna: any of our methods behind `study.optimize`. The study holds the state, the sampler none.

What workers share is in the study: the seed and the method as one attribute of the study, and what was proposed (its
point of the cube, its embedded coordinates, the method's note) as one attribute of each trial. Never a matrix.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from .._checks import whole
from .._errors import InputError, StudyError
from .._propose import as_method, propose
from .._seeds import derive
from ..goals import AtMost, Goal, Goals, Maximize, Minimize, Outcome
from ..history import History, State, Trial
from ..methods import Method
from ..methods import from_dict as method_from_dict
from ..methods import to_dict as method_to_dict
from ..parameters import check_value
from ..sources import as_list
from ..space import Int, Parameter, Space
from ._hosts import check_host
from .spaces import from_distribution, to_optuna

check_host("The EmbeddingSampler", "optuna", "5.0", "6", "study")

from optuna.distributions import FloatDistribution, IntDistribution  # noqa: E402
from optuna.samplers import BaseSampler, RandomSampler  # noqa: E402
from optuna.search_space import IntersectionSearchSpace  # noqa: E402
from optuna.study import StudyDirection  # noqa: E402
from optuna.trial import TrialState  # noqa: E402

from ._optuna_sources import Sources  # noqa: E402

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import FrozenTrial

log = logging.getLogger(__name__)

FACTS = "alebo:sampler"  # the study's attribute: seed, method, version
POINT = "alebo:point"  # a trial's attribute: x, y, note and the names and ranges they belong to


class EmbeddingSampler(BaseSampler):
    """Proposes all parameters of a trial together, by ALEBO or any other of our methods.

    `search_space` (Optuna's distributions, or an alebo.Space) binds names to the embedding's columns and is used from
    the first trial on; every trial suggests all of it. Without it the sampler learns the space from completed trials, as Optuna's own samplers do, and
    the first trial is random. Trials that run elsewhere are respected as pending; constraints come from
    `trial.set_constraint`, goals from the study's directions. `budget`, where known, helps a method to plan.
    `pruned` is "last" (a pruned trial counts with its last value, no better than the median of the completed trials and
    no worse than the worst of them) or "ignore" (it trains nothing). `sources` are earlier studies to learn from: studies
    of Optuna, or what `alebo.Source` takes, whose objective is called "value 0" here; every worker is given the same.

    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> space = {f"x{i}": optuna.distributions.FloatDistribution(-1, 1) for i in range(20)}
    >>> study = optuna.create_study(sampler=EmbeddingSampler(space, seed=0))
    >>> study.optimize(lambda t: sum(t.suggest_float(n, -1, 1) ** 2 for n in space), n_trials=3)
    >>> len(study.trials)
    3
    """

    def __init__(
        self,
        search_space: Mapping[str, BaseDistribution] | Space | None = None,
        *,
        method: Method | str | None = None,
        seed: int | None = None,
        budget: int | None = None,
        independent_sampler: BaseSampler | None = None,
        pruned: str = "last",
        sources: Any = (),
    ) -> None:
        if pruned not in ("last", "ignore"):
            raise InputError(f'`pruned` is "last" or "ignore"; got {pruned!r:.60}.')
        self._pruned = pruned
        self._rules = search_space.constraints if isinstance(search_space, Space) else ()
        if isinstance(search_space, Space):
            search_space = to_optuna(Space(search_space.parameters))
        if search_space is not None and not isinstance(search_space, Mapping):
            raise InputError(
                f"`search_space` maps names to Optuna's distributions, or is an alebo.Space; got {search_space!r:.60}."
            )
        self._search_space = None if search_space is None else dict(search_space)
        self._method = as_method(method)
        self._sources: Sources | None = None
        if self._search_space is not None:
            columns = _Columns(self._search_space, self._rules)  # a space that cannot be is refused now
            if as_list(sources):
                self._sources = Sources(sources, columns.space, columns.stepped, self._method)
        elif as_list(sources):
            raise InputError(
                "Sources are matched by the names of a search space; got sources without one. Give `search_space`, too."
            )
        self._chosen = method is not None  # else a study that is there keeps its own
        self._seed = None if seed is None else whole("seed", seed, None, "Any whole number will do.")
        self._budget = None if budget is None else whole("budget", budget, 1, "Leave it out if you do not know it.")
        self._independent = independent_sampler or RandomSampler(seed=None if seed is None else seed % 2**32)
        self._seen = IntersectionSearchSpace()
        self._compared: int | None = None  # the study whose sources are known to be the same
        self._said: set[str] = (
            set()
        )  # names of which it was said that trials do not suggest them as they should; "": trials left out

    def reseed_rng(self) -> None:
        """New randomness for what is sampled independently; the embedding is the study's and stays."""
        self._independent.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The space given; else what all completed trials have in common, by name."""
        return dict(self._seen.calculate(study)) if self._search_space is None else dict(self._search_space)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """A point of the whole space, by the method, from what the study holds."""
        if all(d.single() for d in search_space.values()):
            return {}
        columns = _Columns(search_space, self._rules if set(search_space) == set(self._search_space or ()) else ())
        earlier = [t for t in study.get_trials(deepcopy=False) if t.number < trial.number]
        goals = _goals(study, earlier)
        seed = self._shared_seed(study, goals)
        self._method.check(columns.space, goals)
        limits = _limits(earlier, goals) if self._pruned == "last" else None
        tasks = () if self._sources is None else self._sources.tasks(goals)
        trials = tuple(_trial(t, columns, goals, limits) for t in earlier)
        self._warn(earlier, trials, columns)
        history = History(trials, self._budget, sources=tasks)
        proposed = propose(self._method, history, columns.space, goals, 1, seed)[0]
        stored = {k: v for k, v in proposed.to_dict().items() if k in ("x", "y", "note")}
        study._storage.set_trial_system_attr(trial._trial_id, POINT, {**columns.keys, **stored})
        return columns.decode(proposed.x)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """One parameter alone, at random: for names outside the search space."""
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Passed on to the independent sampler."""
        self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Passed on to the independent sampler."""
        self._independent.after_trial(study, trial, state, values)

    def _shared_seed(self, study: Study, goals: Goals) -> int:
        """The study's seed, which the first sampler on it decides; all workers derive their embedding from it."""
        facts = study._storage.get_study_system_attrs(study._study_id).get(FACTS)
        method = json.loads(json.dumps(method_to_dict(self._method), default=repr))
        if facts is not None and not self._chosen and facts["method"] != method:
            self._method, method = method_from_dict(facts["method"]), facts["method"]
        if facts is not None:
            for word, had, got in (("seed", facts["seed"], self._seed), ("method", facts["method"], method)):
                if had != got and got is not None:
                    raise StudyError(
                        f"A study keeps its {word}; {study.study_name!r} was begun with {had}, and this sampler has "
                        f"{got}. "
                        f"Give the sampler the study's {word}, or begin a new study."
                    )
            self._same_sources(study, facts.get("sources", []), goals)
            return int(facts["seed"])
        seed = self._seed
        if seed is None:  # the same for all workers that begin together, another for every study
            first = study.get_trials(deepcopy=False)[0].datetime_start
            seed = derive(0, study.study_name, "" if first is None else first.isoformat()) % 2**31
        facts = {"seed": seed, "method": method, "alebo": __version__}
        if self._sources is not None:
            facts["sources"] = self._sources.digests(goals)
        study._storage.set_study_system_attr(study._study_id, FACTS, facts)
        return seed

    def _warn(self, trials: Sequence[FrozenTrial], ours: Sequence[Trial], columns: _Columns) -> None:
        """Say, once for each name, what completed trials did not suggest, or not from the range of the search space."""
        absent: dict[str, int] = {}
        beyond: dict[str, int] = {}
        nowhere: list[int] = []
        for t, seen in [(t, s) for t, s in zip(trials, ours, strict=True) if t.state is TrialState.COMPLETE]:
            if not seen.asked and not seen.complete:
                nowhere.append(t.number)
            elif not columns.distributions.keys() <= t.params.keys():
                absent |= {n: t.number for n in columns.distributions if n not in {*t.params, *absent, *self._said}}
            elif not seen.complete:
                beyond |= {n: t.number for n in columns.beyond(t.params) if n not in {*beyond, *self._said}}
        if nowhere and "" not in self._said:
            log.warning(
                "A trial counts where it has a value in the range of every name of `search_space`; %d of %d completed trials, "
                "trial %d the first, do not, and are left out. Change `search_space`, or leave them where they are.",
                len(nowhere),
                sum(t.state is TrialState.COMPLETE for t in trials),
                nowhere[0],
            )
            self._said.add("")
        self._said |= {*absent, *beyond}
        if absent:
            log.warning(
                "Every trial suggests all names of `search_space`; trial %d did not suggest %s. What was proposed for them "
                "counts instead. Leave them out of `search_space`: `independent_sampler` then samples them.",
                min(absent.values()),
                ", ".join(map(repr, absent)),
            )
        if beyond:
            log.warning(
                "Every trial suggests names from the ranges of `search_space`; trial %d had another value of %s, and counts as "
                "failed. Give `search_space` the ranges of the objective, or leave these names out of it.",
                min(beyond.values()),
                ", ".join(map(repr, beyond)),
            )

    def _same_sources(self, study: Study, had: Sequence[str], goals: Goals) -> None:
        """Refuse other sources than those that the study was begun with; looked at once for every study."""
        if study._study_id == self._compared:
            return
        got = [] if self._sources is None else self._sources.digests(goals)
        if list(had) != got:
            raise StudyError(
                f"A study keeps its sources; {study.study_name!r} was begun with {len(had)}, and this sampler has "
                f"{len(got)}, or others. Give the sampler the study's sources, or begin a new study."
            )
        self._compared = study._study_id


class _Columns:
    """Names bound to columns: a Space over Optuna's distributions, in which steps are counted by whole numbers."""

    def __init__(self, distributions: Mapping[str, BaseDistribution], rules: Sequence[Any] = ()) -> None:
        self.distributions = dict(distributions)
        self.stepped: dict[str, FloatDistribution | IntDistribution] = {}
        self.space = Space([self._parameter(name, d) for name, d in self.distributions.items()], rules)
        self.key = derive(0, *self.space.columns())
        self.keys = {"names": self.key, "ranges": derive(0, *map(repr, self.distributions.items()))}

    def _parameter(self, name: str, d: BaseDistribution) -> Parameter:
        if isinstance(d, FloatDistribution | IntDistribution) and not d.single():
            steps = d.step is not None if isinstance(d, FloatDistribution) else d.step > 1
            if steps:
                self.stepped[name] = d
                return Int(name, 0, round((d.high - d.low) / (d.step or 1)))
        return from_distribution(name, d)

    def decode(self, x: NDArray[np.float64]) -> dict[str, Any]:
        """Optuna's values at a point of the cube."""
        params = self.space.decode(x)
        for name, d in self.stepped.items():
            value = d.low + params[name] * (d.step or 1)
            params[name] = int(value) if isinstance(d, IntDistribution) else float(min(value, d.high))
        return params

    def encode(self, params: Mapping[str, Any]) -> NDArray[np.float64]:
        """The point of the cube for Optuna's values."""
        ours = {name: params[name] for name in self.distributions}
        for name, d in self.stepped.items():
            ours[name] = round((ours[name] - d.low) / (d.step or 1))
        return self.space.encode(ours)

    def beyond(self, params: Mapping[str, Any]) -> list[str]:
        """The names whose values here are none of this space."""
        out: list[str] = []
        for p in [p for p in self.space.parameters if p.name in params]:
            value, d = params[p.name], self.stepped.get(p.name)
            try:
                check_value(p, value if d is None else round((value - d.low) / (d.step or 1)))
            except (InputError, TypeError):
                out.append(p.name)
        return out


def _goals(study: Study, trials: Sequence[FrozenTrial]) -> Goals:
    """One objective a direction, and a constraint for every name that a completed trial has set."""
    goals: list[Goal] = [
        Maximize(f"value {i}") if direction is StudyDirection.MAXIMIZE else Minimize(f"value {i}")
        for i, direction in enumerate(study.directions)
    ]
    names = dict.fromkeys(k for t in trials if t.state is TrialState.COMPLETE for k in t.constraints)
    return Goals([*goals, *(AtMost(f"constraint {name}", 0.0) for name in names)])


def _limits(trials: Sequence[FrozenTrial], goals: Goals) -> tuple[float, float] | None:
    """Between which values a pruned trial counts: the median of the completed trials and the worst of them.

    Its last value belongs to an earlier step, so it is no measurement of the objective. That it was pruned says that it is
    no better than most. None where that is not enough: several objectives, constraints, nothing completed.
    """
    read = [_outcomes(t, goals) for t in trials]
    values = [o["value 0"].mean for o in read if o is not None]
    if not goals.single or goals.constraints or not values:
        return None
    worst = max(values) if goals.objectives[0].sign > 0 else min(values)
    low, high = sorted((float(np.median(values)), worst))
    return low, high


def _trial(frozen: FrozenTrial, columns: _Columns, goals: Goals, limits: tuple[float, float] | None) -> Trial:
    """Our view of Optuna's trial. One that says nothing of this space keeps its place as a failed one."""
    nowhere = Trial(frozen.number, {}, np.zeros(columns.space.dimension), state=State.FAILED, asked=False)
    stored = frozen.system_attrs.get(POINT)
    x: NDArray[np.float64] | None = None
    y: NDArray[np.float64] | None = None
    note: dict[str, Any] = {}
    if stored is not None and stored["names"] == columns.key:
        x = np.asarray(stored["x"], dtype=float)
        y = None if stored["y"] is None else np.asarray(stored["y"], dtype=float)
        note = dict(stored["note"])
    if frozen.state.is_finished() or x is None:  # what was evaluated counts, also where somebody fixed a value
        proposed = {} if x is None else columns.decode(x)  # counts also where it was not suggested
        params = {**proposed, **{n: frozen.params[n] for n in columns.distributions if n in frozen.params}}
        if len(params) < len(columns.distributions):
            return nowhere
        if x is None or proposed != params:
            try:
                x, y = columns.encode(params), None
            except (InputError, TypeError):  # the space had other ranges then; or the objective has others
                if stored is None or x is None or stored.get("ranges") != columns.keys["ranges"]:
                    return nowhere
                return Trial(frozen.number, columns.space.decode(x), x, y, state=State.FAILED, note=note)
    trial = Trial(frozen.number, columns.space.decode(x), x, y, note=note, asked=stored is not None)
    if frozen.state in (TrialState.RUNNING, TrialState.WAITING):
        return trial
    outcomes = _outcomes(frozen, goals)
    if frozen.state is TrialState.PRUNED and limits is not None:
        last = frozen.intermediate_values.get(-1 if frozen.last_step is None else frozen.last_step, math.nan)
        outcomes = None if math.isnan(last) else {"value 0": Outcome(min(max(last, limits[0]), limits[1]))}
    if outcomes is None:
        return Trial(trial.number, trial.params, x, y, state=State.FAILED, note=note)
    return Trial(trial.number, trial.params, x, y, outcomes, State.COMPLETE, note, asked=trial.asked)


def _outcomes(frozen: FrozenTrial, goals: Goals) -> dict[str, Outcome] | None:
    if frozen.state is not TrialState.COMPLETE or frozen.values is None:
        return None
    values = {f"value {i}": float(v) for i, v in enumerate(frozen.values)}
    values |= {f"constraint {k}": float(v) for k, v in frozen.constraints.items()}
    if set(goals.outcomes) - set(values) or not all(map(math.isfinite, values.values())):
        return None
    return {name: Outcome(values[name]) for name in goals.outcomes}
