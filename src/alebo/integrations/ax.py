"""For Ax: a generation node that proposes by any of our methods, behind Ax's `Client`. The experiment holds the state.

What a proposal was (its point of the cube, its embedded coordinates, the method's note) is stored in the metadata of the
trial's generator run, so a client that is saved and loaded again goes on as if it had never stopped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from .._checks import whole
from .._errors import InputError
from .._propose import as_method, propose
from .._seeds import derive
from ..goals import AtLeast, AtMost, Goal, Goals, Maximize, Minimize, Outcome
from ..history import History, State, Trial
from ..methods import Method
from ..methods import from_dict as method_from_dict
from ..methods import to_dict as method_to_dict
from ..space import Categorical, Fixed, Float, Int, LinearConstraint, Parameter, Space
from ._hosts import check_host

check_host("The node for Ax", "ax-platform", "1.3", "2", "ax")

from ax.core.parameter import ChoiceParameter, DerivedParameter, FixedParameter, RangeParameter  # noqa: E402
from ax.core.trial_status import TrialStatus  # noqa: E402
from ax.core.types import ComparisonOp  # noqa: E402
from ax.generation_strategy.external_generation_node import ExternalGenerationNode  # noqa: E402
from ax.generation_strategy.generation_strategy import GenerationStrategy  # noqa: E402
from ax.storage.json_store.registry import CORE_DECODER_REGISTRY  # noqa: E402

POINTS = "alebo:points"  # in the metadata of a generator run: what was proposed, one entry for each arm
BROKEN = (TrialStatus.FAILED, TrialStatus.ABANDONED, TrialStatus.STALE, TrialStatus.EARLY_STOPPED)
Weights: TypeAlias = tuple[tuple[str, float], ...]  # an outcome of ours as a weighted sum of Ax's metrics


def strategy(
    *, method: Method | str | None = None, seed: int = 0, budget: int | None = None, name: str = "alebo"
) -> GenerationStrategy:
    """The generation strategy with our node alone: `client.set_generation_strategy(strategy(seed=0))`.

    Args:
        method: A method such as `alebo.ALEBO(dim=8)`, or the name of one ("turbo"). None: the best default we know.
        seed: Any whole number; another seed gives another run.
        budget: How many trials there will be, where known; some methods plan by it.
        name: The name of the strategy.

    Returns:
        A GenerationStrategy of Ax.
    """
    return GenerationStrategy(name=name, nodes=[AleboNode(method=method, seed=seed, budget=budget)])


@dataclass(init=False, eq=False, repr=False)
class AleboNode(ExternalGenerationNode):
    """A node of an Ax generation strategy that proposes by ALEBO or any other of our methods.

    It can stand alone (`strategy`), or last in a strategy, after a node of Ax for the first points. Its fields are plain
    data, which Ax stores with the strategy; import this module before loading a stored client.

    Args:
        method: A method such as `alebo.ALEBO(dim=8)`, or the name of one ("turbo"). None: the best default we know.
        seed: Any whole number; another seed gives another run.
        budget: How many trials there will be, where known; some methods plan by it.
        node_name: The name of the node.
    """

    method: dict[str, Any]
    seed: int
    budget: int | None
    node_name: str

    def __init__(
        self,
        *,
        method: Method | str | Mapping[str, Any] | None = None,
        seed: int = 0,
        budget: int | None = None,
        node_name: str = "alebo",
    ) -> None:
        self._method = method_from_dict(method) if isinstance(method, Mapping) else as_method(method)
        self.method = json.loads(json.dumps(method_to_dict(self._method), default=repr))
        self.seed = whole("seed", seed, None, "Any whole number will do; the same one gives the same run.")
        self.budget = None if budget is None else whole("budget", budget, 1, "Leave it out if you do not know it.")
        self.node_name = node_name
        # A method may repeat a point on purpose (noise); Ax would ask again for another one and get the same.
        super().__init__(name=node_name, should_deduplicate=False)
        self._columns: _Columns | None = None
        self._goals: _AxGoals | None = None
        self._known = History()
        self._arms: list[dict[str, Any]] = []  # of the experiment's trials
        self._fixed: dict[str, Any] = {}
        self._made: list[tuple[dict[str, Any], Trial]] = []  # proposed here, not yet trials of the experiment

    def update_generator_state(self, experiment: Any, data: Any) -> None:
        """Read the experiment: its search space, its objective and constraints, its trials and their data."""
        if experiment.optimization_config is None:
            raise InputError("An experiment needs an objective. Call client.configure_optimization(...) first.")
        self._columns = _Columns(experiment.search_space)
        self._goals = _AxGoals(experiment.optimization_config)
        self._method.check(self._columns.space, self._goals.goals)
        self._known = _history(experiment, data, self._columns, self._goals, self.budget)
        arms = [dict(arm.parameters) for trial in experiment.trials.values() for arm in trial.arms]
        if len(arms) != len(self._arms):
            self._made = []
        self._arms = arms

    def get_next_candidate(self, pending_parameters: list[Any]) -> dict[str, Any]:
        """The next point, from what the experiment holds and what is proposed already."""
        assert self._columns is not None, "Ax calls update_generator_state first"
        assert self._goals is not None
        columns = self._columns
        self._made = [(p, t) for p, t in self._made if p in pending_parameters]
        history = self._known
        for _, made in self._made:
            history = history.with_trial(replace(made, number=len(history)))
        known = [*self._arms, *(p for p, _ in self._made)]
        for params in pending_parameters:  # what another node proposed in the same call
            if params not in known and (x := columns.point(params)) is not None:
                history = history.with_trial(Trial(len(history), columns.space.decode(x), x))
        trial = propose(self._method, history, columns.space, self._goals.goals, 1, self.seed)[0]
        params = columns.to_ax(trial.params)
        if self._fixed:
            params, trial = columns.moved(params, trial, self._fixed)
        self._made.append((params, trial))
        return params

    def _gen(self, *args: Any, **more: Any) -> Any:
        """Ax's own, with the values that the caller fixed; what was proposed is kept in the run's metadata."""
        fixed = more.get("fixed_features")
        self._fixed = {} if fixed is None else dict(fixed.parameters)
        run = super()._gen(*args, **more)
        assert self._columns is not None
        points = [_stored(t) for _, t in self._made[-len(run.arms) :]]
        run._gen_metadata = {**(run.gen_metadata or {}), POINTS: {"key": self._columns.key, "points": points}}
        return run


CORE_DECODER_REGISTRY["AleboNode"] = AleboNode  # Client.load_from_json_file finds the node by this name


def _stored(trial: Trial) -> dict[str, Any]:
    plain = {k: v for k, v in trial.to_dict().items() if k in ("x", "y", "note")}
    return dict(json.loads(json.dumps(plain)))


class _Columns:
    """Ax's search space as a Space of ours, and values both ways."""

    def __init__(self, search_space: Any) -> None:
        self._grids: dict[str, list[Any]] = {}  # an ordered choice: its values
        self._uneven: set[str] = set()  # ordered choices that are counted by their place
        self.theirs = {name: p for name, p in search_space.parameters.items() if not isinstance(p, DerivedParameter)}
        self._derived = [p for p in search_space.parameters.values() if isinstance(p, DerivedParameter)]
        rules = [_rule(c) for c in search_space.parameter_constraints]
        self.space = Space([self._parameter(p) for p in self.theirs.values()], rules)
        self.key = derive(0, *self.space.columns())
        if counted := sorted({n for r in rules for n in r.coefficients} & self._uneven):
            raise InputError(f"A parameter constraint speaks of evenly spaced values; {counted} are not. Use a range.")

    def _parameter(self, p: Any) -> Parameter:
        if getattr(p, "is_hierarchical", False):
            raise InputError(
                f"A conditional (hierarchical) search space is not possible here; {p.name!r} decides which parameters exist. "
                "Make them all parameters of every trial, or run one experiment for each value."
            )
        if getattr(p, "is_fidelity", False) or getattr(p, "is_task", False):
            raise InputError(f"Fidelity and task parameters are not possible here; {p.name!r} is one. Fix its value.")
        if isinstance(p, FixedParameter):
            return Fixed(p.name, p.value)
        if isinstance(p, RangeParameter):
            if p.logit_scale:
                raise InputError(f"A range is linear or logarithmic here; {p.name!r} is logit. Search its logit.")
            if p.parameter_type.name == "INT":
                return Int(p.name, int(p.lower), int(p.upper), log=bool(p.log_scale))
            return Float(p.name, float(p.lower), float(p.upper), log=bool(p.log_scale))
        if not isinstance(p, ChoiceParameter):
            raise InputError(f"A parameter of Ax is a range, a choice or fixed here; {p.name!r} is {type(p).__name__}.")
        values: list[Any] = list(p.values)
        numbers = p.is_ordered and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        if not p.is_ordered or len(values) < 2:
            return Categorical(p.name, values) if len(values) > 1 else Fixed(p.name, values[0])
        self._grids[p.name] = values
        gaps = np.diff(np.asarray(values, dtype=float)) if numbers else np.zeros(1)
        if numbers and gaps[0] > 0 and np.allclose(gaps, gaps[0], rtol=1e-6):
            count = len(values) - 1
            return Float(p.name, values[0], values[0] + count * float(gaps.mean()), step=float(gaps.mean()))
        self._uneven.add(p.name)
        return Int(p.name, 0, len(values) - 1)

    def to_ax(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ax's values, derived parameters included."""
        out: dict[str, Any] = {}
        for name, p in self.theirs.items():
            value = params[name]
            if name in self._uneven:
                value = self._grids[name][value]
            elif name in self._grids:
                grid = self._grids[name]
                value = grid[int(np.argmin([abs(float(v) - value) for v in grid]))]
            out[name] = p.cast(value)
        return self._whole(out)

    def _whole(self, out: dict[str, Any]) -> dict[str, Any]:
        return out | {p.name: p.compute(parameters=out) for p in self._derived}

    def point(self, params: Mapping[str, Any]) -> Any:
        """The point of the cube for Ax's values; None where the space does not hold them.  -> D"""
        try:
            ours = {
                name: self._grids[name].index(params[name]) if name in self._uneven else params[name]
                for name in self.theirs
            }
            return self.space.encode(ours)
        except (InputError, KeyError, ValueError):
            return None

    def moved(self, params: dict[str, Any], trial: Trial, fixed: Mapping[str, Any]) -> tuple[dict[str, Any], Trial]:
        """The proposal with the values that the caller fixed: a point of its own, off the embedding."""
        base = {name: p.cast((fixed if name in fixed else params)[name]) for name, p in self.theirs.items()}
        x = self.point(base)
        if x is None or not self.space.feasible(self.space.decode(x)):
            raise InputError(
                f"`fixed_parameters` must lie in the search space and obey its constraints; got {dict(fixed)}. Correct the "
                "values, or leave them out."
            )
        return self._whole(base), replace(trial, params=self.space.decode(x), x=x, y=None)


def _rule(constraint: Any) -> LinearConstraint:
    if constraint.is_equality:
        raise InputError(
            f"A parameter constraint is an inequality here; got {constraint!r}. Leave out one parameter and compute it from "
            "the others (DerivedParameterConfig)."
        )
    return LinearConstraint(constraint.constraint_dict, constraint.bound)


class _AxGoals:
    """Ax's objective and outcome constraints as Goals; an outcome of ours is a weighted sum of Ax's metrics."""

    def __init__(self, config: Any) -> None:
        if config.is_bope_problem:
            raise InputError("Preference optimization is not possible here. State an objective of metrics.")
        objective = config.objective
        self.sums: dict[str, Weights] = {}
        parts = list(zip(objective.metric_names, (w for _, w in objective.metric_weights), strict=True))
        if objective.is_multi_objective and len(objective.expression.split(",")) != len(parts):
            raise InputError(
                f"Each of several objectives is one metric here; got {objective.expression!r}. Report the sum as a metric."
            )
        limits = {c.metric_names[0]: _absolute(c) for c in config.objective_thresholds if len(c.metric_names) == 1}
        goals: list[Goal] = []
        if objective.is_scalarized_objective:
            goals.append(Maximize(self._named(objective.expression, parts)))
        else:
            for name, weight in parts:
                kind = Minimize if weight < 0 else Maximize
                goals.append(kind(self._named(name, [(name, 1.0)]), limits.get(name)))
        for c in config.outcome_constraints:
            bound = _absolute(c)
            weights = list(zip(c.metric_names, (w for _, w in c.metric_weights), strict=True))
            plain = len(weights) == 1 and weights[0][1] == 1.0
            outcome = self._named(weights[0][0] if plain else c.expression, weights)
            goals.append((AtMost if c.op is ComparisonOp.LEQ else AtLeast)(outcome, bound))
        self.goals = Goals(goals)

    def _named(self, name: str, weights: Sequence[tuple[str, float]]) -> str:
        self.sums[name] = tuple(weights)
        return name

    def read(self, measured: Mapping[str, tuple[float, float | None]]) -> dict[str, Outcome] | None:
        """Our outcomes of Ax's means and standard errors; None where one is missing."""
        out: dict[str, Outcome] = {}
        for name in self.goals.outcomes:
            parts = [(measured.get(metric), w) for metric, w in self.sums[name]]
            means = [m[0] * w for m, w in parts if m is not None]
            errors = [m[1] for m, _ in parts if m is not None]
            if len(means) < len(parts) or not all(map(math.isfinite, means)):
                return None
            known = all(e is not None for e in errors)
            sem = math.sqrt(sum((e or 0.0) ** 2 * w**2 for e, (_, w) in zip(errors, parts, strict=True)))
            out[name] = Outcome(sum(means), sem if known else None)
        return out


def _absolute(constraint: Any) -> float:
    if constraint.relative:
        raise InputError(
            f"A bound is a number here, not relative to a baseline; got {constraint.expression!r}. Multiply it out."
        )
    return float(constraint.bound)


def _history(experiment: Any, data: Any, columns: _Columns, goals: _AxGoals, budget: int | None) -> History:
    """Every arm of every trial, in their order. One that says nothing of this space keeps its place as a failed one."""
    measured: dict[tuple[int, str], dict[str, tuple[float, float | None]]] = {}
    for row in data.df.itertuples() if not data.empty else ():
        sem = None if row.sem is None or math.isnan(row.sem) else _as_stored(row.sem)
        measured.setdefault((int(row.trial_index), row.arm_name), {})[row.metric_name] = (_as_stored(row.mean), sem)
    trials: list[Trial] = []
    for index in sorted(experiment.trials):
        theirs = experiment.trials[index]
        runs = getattr(theirs, "generator_runs", None) or [theirs.generator_run]
        for run in [r for r in runs if r is not None]:
            meta = (run.gen_metadata or {}).get(POINTS) or {"key": None, "points": []}
            points = meta["points"] if meta["key"] == columns.key else []
            for place, arm in enumerate(run.arms):
                stored = points[place] if place < len(points) else None
                known = measured.get((index, _name_of(theirs, arm)), {})
                trials.append(_trial(len(trials), theirs.status, arm.parameters, stored, goals.read(known), columns))
    return History(tuple(trials), budget)


def _as_stored(value: float) -> float:
    """Ten decimals, as Ax's JSON files keep them, so that a loaded client goes on exactly; very small values as they are."""
    return round(float(value), 10) if abs(value) >= 1e-3 else float(value)


def _name_of(trial: Any, arm: Any) -> str:
    return str(arm.name if arm.has_name else next(a.name for a in trial.arms if a.signature == arm.signature))


def _trial(
    number: int, status: Any, params: Mapping[str, Any], stored: Any, outcomes: dict[str, Outcome] | None, columns: _Columns
) -> Trial:  # fmt: skip
    x = columns.point(params)
    if x is None:  # outside the space that holds now
        return Trial(number, {}, np.zeros(columns.space.dimension), state=State.FAILED, asked=False)
    y, note, ours = None, {}, columns.space.decode(x)
    if stored is not None:
        note, proposed = dict(stored["note"]), np.asarray(stored["x"], dtype=float)
        if columns.to_ax(columns.space.decode(proposed)) == dict(params):
            x, ours = proposed, columns.space.decode(proposed)
            y = None if stored["y"] is None else np.asarray(stored["y"], dtype=float)
    made = Trial(number, ours, x, y, note=note, asked=stored is not None)
    if status in BROKEN or (status is TrialStatus.COMPLETED and outcomes is None):
        return replace(made, state=State.FAILED, reason=f"{status.name.lower()} in Ax")
    if status is TrialStatus.COMPLETED and outcomes is not None:
        return replace(made, outcomes=outcomes, state=State.COMPLETE)
    return made
