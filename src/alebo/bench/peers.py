"""What others would do with the same evaluations, as methods for `alebo bench run`, each with its own default settings.

alebo bench run --problem mopta08-124 --method optuna-tpe,optuna-gp,ax,nevergrad,botorch-tutorial --seeds 0-9
alebo bench run --problem branin-currin-100 --method "alebo,full=alebo.bench.peers:BoTorchDefault" ...
alebo bench run --problem branin-100 --method "batch4=alebo.bench.peers:Batched(q=4)" ...

Optuna's samplers and BoTorch propose from the history alone. Ax and Nevergrad keep a state, so a session is kept for the
run at hand; where there is none for a history, it is replayed from the first proposal.
HEBO is missing: version 0.3.6 needs numpy < 1.25, version 0.3.2 a pymoo that still has `pymoo.factory`.
"""

from __future__ import annotations

import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch

from alebo import (
    ALEBO,
    Categorical,
    Float,
    Goals,
    History,
    InputError,
    Int,
    Maximize,
    MissingPartError,
    Space,
    State,
)
from alebo.methods import Method, Sobol, Suggestion, Supports

from .._seeds import derive, generator, reproducible

INSTALL = 'pip install "alebo[peers]"'


@dataclass(frozen=True)
class OptunaSampler(Method):
    """Optuna's TPESampler or GPSampler with its default settings, given the completed trials."""

    kind: str = "tpe"

    name: ClassVar[str] = "optuna-sampler"
    title: ClassVar[str] = "A sampler of Optuna"
    citation: ClassVar[str] = "Akiba et al. 2019"
    supports: ClassVar[Supports] = Supports(batches=False)

    def __post_init__(self) -> None:
        if self.kind not in ("tpe", "gp"):
            raise InputError(f"`kind` is tpe or gp; got {self.kind!r}.")

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        try:
            import optuna
        except ImportError:
            raise MissingPartError(f"Optuna is not installed. Run: {INSTALL}") from None
        from optuna.trial import create_trial

        from alebo.integrations.spaces import to_optuna

        made = {"tpe": optuna.samplers.TPESampler, "gp": optuna.samplers.GPSampler}[self.kind]
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            study = optuna.create_study(sampler=made(seed=derive(seed, "optuna", len(history)) % 2**32))
            distributions = to_optuna(space)
            for t in history.complete:
                params = {name: t.params[name] for name in distributions}
                value = float(goals.objective_values(t.outcomes)[0])
                study.add_trial(create_trial(params=params, distributions=distributions, value=value))
            asked = study.ask(distributions)
        return [Suggestion(space.encode({**_constants(space), **asked.params}))]


def _constants(space: Space) -> dict[str, Any]:
    return {p.name: p.value for p in space.parameters if hasattr(p, "value")}


@dataclass(frozen=True)
class BoTorchDefault(Method):
    """BoTorch's default process in the full space: qLogNEI for one objective, qLogNEHVI for several."""

    initial: int = 10
    restarts: int = 4
    raw: int = 128
    steps: int = 100  # of L-BFGS-B for each proposal

    name: ClassVar[str] = "full-space"
    title: ClassVar[str] = "BoTorch in the full space"
    citation: ClassVar[str] = "Balandat et al. 2020; Ament et al. 2023"
    supports: ClassVar[Supports] = Supports(objectives=True, batches=False)

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        if len(history.complete) < self.initial:
            return Sobol(centre=True).suggest(history, space, goals, q, seed)
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
        from botorch.optim import optimize_acqf

        X = torch.from_numpy(np.stack([(t.x + 1.0) / 2.0 for t in history.complete]))
        values = -np.stack([goals.objective_values(t.outcomes) for t in history.complete])  # maximised
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = _default_model(X, torch.from_numpy(values))
            acquisition: Any
            if goals.single:
                acquisition = qLogNoisyExpectedImprovement(model, X, prune_baseline=True)
            else:
                signs = [-1.0 if isinstance(g, Maximize) else 1.0 for g in goals.objectives]
                given = [g.reference for g in goals.objectives]
                if any(r is None for r in given):
                    raise InputError("The hypervolume needs a reference of every objective.")
                reference = [-s * float(r) for s, r in zip(signs, given, strict=True) if r is not None]
                acquisition = qLogNoisyExpectedHypervolumeImprovement(model, reference, X, prune_baseline=True)
            bounds = torch.stack([torch.zeros(X.shape[1]), torch.ones(X.shape[1])]).double()
            point, _ = optimize_acqf(
                acquisition,
                bounds,
                1,
                num_restarts=self.restarts,
                raw_samples=self.raw,
                options={"maxiter": self.steps, "seed": derive(seed, "full", len(history)) % 2**31},
            )
        return [Suggestion(2.0 * point[0].numpy() - 1.0, None, {"by": "model"})]


def _default_model(X: torch.Tensor, values: torch.Tensor) -> Any:
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from gpytorch.mlls import ExactMarginalLogLikelihood

    models = []
    for column in values.T:
        models.append(SingleTaskGP(X, column[:, None], outcome_transform=Standardize(1)))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(models[-1].likelihood, models[-1]))
    return models[0] if len(models) == 1 else ModelListGP(*models)


@dataclass(frozen=True)
class BoTorchTutorial(Method):
    """The loop of BoTorch's tutorials: random first points, SingleTaskGP, log-EI, `optimize_acqf`."""

    initial: int = 10
    restarts: int = 10
    raw: int = 512

    name: ClassVar[str] = "botorch-tutorial"
    title: ClassVar[str] = "BoTorch, tutorial code"
    citation: ClassVar[str] = "Balandat et al. 2020; Ament et al. 2023"
    supports: ClassVar[Supports] = Supports(batches=False)

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        if len(history.complete) < self.initial:
            return [Suggestion(generator(seed, "botorch", len(history)).uniform(-1.0, 1.0, space.dimension))]
        from botorch.acquisition import LogExpectedImprovement
        from botorch.optim import optimize_acqf

        X = torch.from_numpy(np.stack([(t.x + 1.0) / 2.0 for t in history.complete]))
        values = torch.from_numpy(-np.stack([goals.objective_values(t.outcomes) for t in history.complete]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            acquisition = LogExpectedImprovement(_default_model(X, values), best_f=values.max())
            bounds = torch.stack([torch.zeros(X.shape[1]), torch.ones(X.shape[1])]).double()
            point, _ = optimize_acqf(acquisition, bounds, 1, num_restarts=self.restarts, raw_samples=self.raw)
        return [Suggestion(2.0 * point[0].numpy() - 1.0, None, {"by": "model"})]


class _Session(ABC):
    """An optimiser with a state: `ask` and `tell` in turn."""

    def __init__(self, space: Space, seed: int) -> None:
        self.space, self.seed = space, seed
        self.asked = self.reported = 0

    def follows(self, space: Space, seed: int, history: History) -> bool:
        """Whether this session can go on from the history: one proposal is out, all before it are known to it."""
        return self.space is space and self.seed == seed and self.asked == len(history) == self.reported + 1

    def next(self, history: History, goals: Goals) -> Suggestion:
        """Tell what the session does not know yet, then ask."""
        for trial in history.trials[self.reported :]:
            if self.asked == self.reported:
                self._ask()  # a replay: the proposal is made again
            self.tell(float(goals.objective_values(trial.outcomes)[0]) if trial.complete else None)
            self.reported += 1
        return Suggestion(self._ask())

    def _ask(self) -> np.ndarray:
        with reproducible(derive(self.seed, "session", self.asked)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = self.ask()
        self.asked += 1
        return x

    @abstractmethod
    def ask(self) -> np.ndarray:
        """The next point of the cube.  -> D"""

    @abstractmethod
    def tell(self, value: float | None) -> None:
        """What came of the last point, to be minimised; None where it failed."""


class _NevergradSession(_Session):
    def __init__(self, space: Space, seed: int, budget: int, kind: str) -> None:
        super().__init__(space, seed)
        try:
            import nevergrad
        except ImportError:
            raise MissingPartError(f"Nevergrad is not installed. Run: {INSTALL}") from None
        box = nevergrad.p.Array(shape=(space.dimension,), lower=-1.0, upper=1.0)
        box.random_state.seed(derive(seed, "nevergrad") % 2**32)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.optimizer = nevergrad.optimizers.registry[kind](parametrization=box, budget=budget, num_workers=1)
        self.candidate: Any = None
        self.worst = 0.0

    def ask(self) -> np.ndarray:
        # Some of its algorithms run in a thread that never ends; started from a daemon it cannot keep the process alive.
        def work() -> None:
            try:
                self.candidate = self.optimizer.ask()
            except Exception as error:
                self.candidate = error

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join()
        if isinstance(self.candidate, Exception):
            raise self.candidate
        return np.asarray(self.candidate.value, dtype=float).clip(-1.0, 1.0)

    def tell(self, value: float | None) -> None:
        self.worst = self.worst if value is None else max(value, self.worst if self.reported else value)
        self.optimizer.tell(self.candidate, self.worst if value is None else value)


class _AxSession(_Session):
    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(space, seed)
        try:
            from ax.api.client import Client
        except ImportError:
            raise MissingPartError(f"Ax is not installed. Run: {INSTALL}") from None
        import logging

        for name in [n for n in logging.root.manager.loggerDict if n.split(".")[0] == "ax"]:
            logging.getLogger(name).setLevel(logging.ERROR)  # it prints every proposal
        self.client = Client(random_seed=derive(seed, "ax") % 2**31)
        self.client.configure_experiment(_ax_parameters(space))
        self.client.configure_optimization("-value")  # minimised
        self.index = 0

    def ask(self) -> np.ndarray:
        ((self.index, params),) = self.client.get_next_trials(1).items()
        return np.asarray(self.space.encode({**_constants(self.space), **params}))

    def tell(self, value: float | None) -> None:
        if value is None:
            self.client.mark_trial_failed(self.index)
        else:
            self.client.complete_trial(self.index, {"value": value})


def _ax_parameters(space: Space) -> list[Any]:
    from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

    out: list[Any] = []
    for p in space.parameters:
        if isinstance(p, Float | Int):
            kind: Any = "float" if isinstance(p, Float) else "int"
            scale: Any = "log" if getattr(p, "log", False) else "linear"
            out.append(RangeParameterConfig(p.name, (p.low, p.high), kind, scaling=scale))
        elif isinstance(p, Categorical):
            if not all(isinstance(c, str) for c in p.choices):
                raise InputError(f"Ax takes categories that are text; {p.name!r} has {list(p.choices)}.")
            out.append(ChoiceParameterConfig(p.name, [str(c) for c in p.choices], "str", is_ordered=False))
    return out


_SESSIONS: dict[Method, _Session] = {}  # the run at hand of every method


def _session(method: Method, space: Space, seed: int, history: History, make: Any) -> _Session:
    found = _SESSIONS.get(method)
    if found is None or not found.follows(space, seed, history):
        found = make()
        _SESSIONS[method] = found
    return found


@dataclass(frozen=True)
class Nevergrad(Method):
    """An optimiser of Nevergrad, NGOpt by default, which chooses an algorithm by dimension and budget."""

    kind: str = "NGOpt"

    name: ClassVar[str] = "nevergrad"
    title: ClassVar[str] = "Nevergrad"
    citation: ClassVar[str] = "Rapin and Teytaud 2018"
    supports: ClassVar[Supports] = Supports(batches=False)

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        budget = history.budget or 100
        make = lambda: _NevergradSession(space, seed, budget, self.kind)  # noqa: E731
        return [_session(self, space, seed, history, make).next(history, goals)]


@dataclass(frozen=True)
class Ax(Method):
    """Ax's `Client` as it comes: the centre, Sobol points to five in all, then its default model."""

    name: ClassVar[str] = "ax"
    title: ClassVar[str] = "Ax"
    citation: ClassVar[str] = "Olson et al. 2025"
    supports: ClassVar[Supports] = Supports(batches=False)

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        return [_session(self, space, seed, history, lambda: _AxSession(space, seed)).next(history, goals)]


@dataclass(frozen=True)
class Batched(Method):
    """ALEBO as it would propose in batches of q: the outcomes of a batch become known only when all of it is proposed."""

    q: int = 4
    dim: int | None = None

    name: ClassVar[str] = "batched"
    title: ClassVar[str] = "ALEBO in batches"
    citation: ClassVar[str] = ALEBO.citation
    supports: ClassVar[Supports] = ALEBO.supports

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        known = len(history) - len(history) % self.q
        waiting = tuple(replace(t, state=State.PENDING, outcomes={}) for t in history.trials[known:])
        seen = replace(history, trials=(*history.trials[:known], *waiting))
        return ALEBO(dim=self.dim).suggest(seen, space, goals, q, seed)
