"""SMAC: Bayesian optimization with a random forest, at home in mixed spaces; the `smac` library through its ask and tell."""

from __future__ import annotations

import logging
import math
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._errors import MissingPartError
from .._seeds import derive
from ..goals import Goals
from ..history import History, State
from ..space import Categorical, Float, Int, Space
from ._design import initial_points
from ._method import Suggestion, Supports, setting
from ._penalised import INFEASIBLE, Infeasible, Penalised, penalised_values

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class SMAC(Penalised):
    """A random forest trained on all outcomes; its expected improvement is sought by local and random search.

    The settings are the library's own: searching less is faster and finds less. A failed evaluation is reported to it as crashed.
    """

    trees: int = setting(10, "of the forest")
    challengers: int = setting(10000, "random points that compete with the local searches")
    searches: int = setting(10, "local searches from random points, and as many from the best points")
    plateau: int = setting(10, "rounds after which a local search leaves a plateau")
    initial: int | None = setting(
        None, "quasi-random points first; None: ten a parameter, at most a quarter of the budget, as in the library"
    )
    infeasible: Infeasible = setting("refuse", INFEASIBLE)

    name: ClassVar[str] = "smac"
    title: ClassVar[str] = "SMAC"
    citation: ClassVar[str] = "Lindauer et al. 2022, SMAC3: a versatile Bayesian optimization package"
    supports: ClassVar[Supports] = Supports()

    def __post_init__(self) -> None:
        self._counts(trees=2, challengers=10, searches=1, plateau=1, initial=1)
        self._check_infeasible()

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        start, budget = len(history), history.budget or 200
        size = max(1, min(10 * len(space), budget // 4)) if self.initial is None else self.initial
        used = start - len(history.failed)
        take = min(max(size - used, 0), q)
        first = initial_points(space.dimension, start + take, derive(seed, "smac"))[start:]
        out = [Suggestion(2.0 * u - 1.0) for u in first]
        if len(out) < q:
            values = penalised_values(history, goals)
            out += [
                Suggestion(x) for x in self._ask(history, values, out, space, q - len(out), derive(seed, "smac", start))
            ]
        return out

    def _ask(
        self, history: History, values: dict[int, float], young: list[Suggestion], space: Space, q: int, seed: int
    ) -> list[Array]:
        """A fresh instance of the library that gets the whole history and is then asked."""
        smac, facade = _library()
        from smac.acquisition.function import EI
        from smac.acquisition.maximizer import LocalAndSortedRandomSearch
        from smac.model.random_forest.random_forest import RandomForest

        configspace = _configspace(space, seed % 2**31)
        with tempfile.TemporaryDirectory() as folder, _quiet():
            scenario = smac.Scenario(
                configspace,
                deterministic=True,
                n_trials=10**6,
                seed=seed % 2**31,
                output_directory=folder,  # the library insists on one
            )
            forest = RandomForest(
                configspace,
                n_trees=self.trees,
                log_y=True,  # as the facade's: its encoder takes the logarithm of the height above a level below all
                ratio_features=1.0,
                min_samples_split=2,
                min_samples_leaf=1,
                n_jobs=1,  # threads only wait for one another on trees this small
                seed=scenario.seed,
            )
            search = LocalAndSortedRandomSearch(
                configspace,
                challengers=self.challengers,
                local_search_iterations=self.searches,
                n_steps_plateau_walk=self.plateau,
                seed=scenario.seed,
            )
            _in_order(search._local_search)
            library = facade(
                scenario,
                model=forest,
                acquisition_function=EI(log=True),
                acquisition_maximizer=search,
                initial_design=facade.get_initial_design(scenario, n_configs=0),
                intensifier=facade.get_intensifier(scenario, max_config_calls=1),
                config_selector=facade.get_config_selector(scenario, retrain_after=q),
                logging_level=False,
                overwrite=True,
            )
            _replay(library, history, values, young, space)
            return [_point(space, dict(library.ask().config)) for _ in range(q)]


def _replay(library: Any, history: History, values: dict[int, float], young: list[Suggestion], space: Space) -> None:
    """Report every trial to the library; pending ones and those proposed just now are running."""
    from smac.runhistory import TrialInfo, TrialValue
    from smac.runhistory.enumerations import StatusType

    configspace = library.scenario.configspace
    worst = max(values.values(), default=0.0)
    for t in history:
        if t.withdrawn:
            continue
        info = TrialInfo(_configuration(configspace, space, t.x, t.params), seed=0)
        if t.state is State.PENDING:
            library.runhistory.add_running_trial(info)
            continue
        status = StatusType.SUCCESS if t.state is State.COMPLETE else StatusType.CRASHED
        library.tell(info, TrialValue(cost=values.get(t.number, worst), status=status), save=False)
    for s in young:
        config = _configuration(configspace, space, s.x, space.decode(s.x))
        library.runhistory.add_running_trial(TrialInfo(config, seed=0))


def _in_order(local: Any) -> None:
    """Let the library's local search start from its points in an order of their values.

    It takes them from a set of configurations, whose order depends on the hash seed of the process: the same history would
    give other points in another process.
    """
    starts = local._get_init_points_from_previous_configs

    def ordered(*args: Any, **kwargs: Any) -> list[Any]:
        return sorted(starts(*args, **kwargs), key=lambda config: config.get_array().tobytes())

    local._get_init_points_from_previous_configs = ordered


def _library() -> tuple[Any, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import smac
            from smac import HyperparameterOptimizationFacade as Facade
    except ImportError:
        raise MissingPartError(
            'SMAC needs the library `smac`, which is not installed. Run: pip install "alebo[smac]"'
        ) from None
    return smac, Facade


@contextmanager
def _quiet() -> Iterator[None]:
    """The library's log lines and warnings are about a run of its own, which this is not."""
    log = logging.getLogger("smac")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)


def _configspace(space: Space, seed: int) -> Any:
    """The library's space: real parameters by their coordinate of the cube, whole numbers and categories as they are."""
    import ConfigSpace as cs

    made: list[Any] = []
    for p in space.parameters:
        if isinstance(p, Float):
            made.append(cs.UniformFloatHyperparameter(p.name, -1.0, 1.0))
        elif isinstance(p, Int):
            made.append(cs.UniformIntegerHyperparameter(p.name, p.low, p.high, log=p.log))
        elif isinstance(p, Categorical):
            made.append(cs.CategoricalHyperparameter(p.name, list(range(len(p.choices)))))
    configspace = cs.ConfigurationSpace(seed=seed)
    configspace.add(*made)  # all at once: every call checks the whole space again
    return configspace


def _configuration(configspace: Any, space: Space, x: Array, params: dict[str, Any]) -> Any:
    values: dict[str, Any] = {}
    at = 0
    for p in space.parameters:
        if isinstance(p, Float):
            values[p.name], at = float(np.clip(x[at], -1.0, 1.0)), at + 1
        elif isinstance(p, Int):
            values[p.name], at = int(params[p.name]), at + 1
        elif isinstance(p, Categorical):
            encoded = space.encode(params)[at : at + len(p.choices)]
            values[p.name], at = int(np.argmax(encoded)), at + len(p.choices)
    return _told_configuration()(configspace, values=values)


@cache
def _told_configuration() -> Any:
    """The library's configuration with a faster comparison.

    The library looks for every reported point among all others, and compares two by listing all their parameters.
    """
    import ConfigSpace as cs

    class Told(cs.Configuration):
        def __eq__(self, other: object) -> Any:
            if isinstance(other, Told):
                return self.config_space is other.config_space and np.array_equal(self.get_array(), other.get_array())
            return super().__eq__(other)

        def __hash__(self) -> int:
            return self._hash

        @cached_property
        def _hash(self) -> int:
            return super().__hash__()

    return Told


def _point(space: Space, values: dict[str, Any]) -> Array:
    """The cube point of a configuration."""
    x = np.empty(space.dimension)
    at = 0
    for p in space.parameters:
        if isinstance(p, Float):
            x[at], at = float(values[p.name]), at + 1
        elif isinstance(p, Int):
            low, high = (p.low - 0.5, p.high + 0.5)
            v = int(values[p.name])
            if p.log:
                low, high = math.log(low), math.log(high)
                centre = 0.5 * (math.log(v - 0.5) + math.log(v + 0.5))
            else:
                centre = float(v)
            x[at], at = 2.0 * (centre - low) / (high - low) - 1.0, at + 1
        elif isinstance(p, Categorical):
            x[at : at + len(p.choices)] = -1.0
            x[at + int(values[p.name])] = 1.0
            at += len(p.choices)
    return x
