"""Bayesian optimization of expensive functions of 20 to 1000 and more parameters, inside linear embeddings.

>>> import alebo
>>> space = alebo.Space.from_bounds([(0, 1)] * 30)
>>> opt = alebo.Optimizer(space, alebo.Minimize("loss"), seed=0)
>>> trial = opt.ask()[0]
>>> opt.tell(trial.number, 0.5).state
<State.COMPLETE: 'complete'>
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import geometry as geometry
    from . import integrations as integrations
    from . import methods as methods
    from ._errors import AleboError as AleboError
    from ._errors import EvaluationError as EvaluationError
    from ._errors import InputError as InputError
    from ._errors import MissingPartError as MissingPartError
    from ._errors import StateError as StateError
    from ._errors import StudyError as StudyError
    from .geometry.advice import advise as advise
    from .geometry.containment import containment_probability as containment_probability
    from .geometry.containment import containment_sweep as containment_sweep
    from .geometry.containment import contains_optimum as contains_optimum
    from .goals import AtLeast as AtLeast
    from .goals import AtMost as AtMost
    from .goals import Cost as Cost
    from .goals import Goals as Goals
    from .goals import Maximize as Maximize
    from .goals import Minimize as Minimize
    from .goals import Outcome as Outcome
    from .history import History as History
    from .history import State as State
    from .history import Trial as Trial
    from .methods.alebo import ALEBO as ALEBO
    from .optimizer import Optimizer as Optimizer
    from .optimizer import Result as Result
    from .optimizer import minimize as minimize
    from .runner import Study as Study
    from .runner import run as run
    from .space import Categorical as Categorical
    from .space import Fidelity as Fidelity
    from .space import Fixed as Fixed
    from .space import Float as Float
    from .space import Int as Int
    from .space import LinearConstraint as LinearConstraint
    from .space import Space as Space

# The door: a public name and the room it comes from. A room is entered when its first name is used, so that
# `import alebo` and `alebo --help` do not wait for Torch.
_DOOR = {
    "_errors": ("AleboError", "EvaluationError", "InputError", "MissingPartError", "StateError", "StudyError"),
    "geometry.advice": ("advise",),
    "geometry.containment": ("containment_probability", "containment_sweep", "contains_optimum"),
    "goals": ("AtLeast", "AtMost", "Cost", "Goals", "Maximize", "Minimize", "Outcome"),
    "history": ("History", "State", "Trial"),
    "methods.alebo": ("ALEBO",),
    "optimizer": ("Optimizer", "Result", "minimize"),
    "runner": ("Study", "run"),
    "space": ("Categorical", "Fidelity", "Fixed", "Float", "Int", "LinearConstraint", "Space"),
}
_ROOMS = ("bench", "diagnostics", "geometry", "integrations", "methods", "models", "plots", "report")
_WHERE = {name: room for room, names in _DOOR.items() for name in names}

__all__ = ["__version__", *sorted(_WHERE), *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    if name in _ROOMS:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module 'alebo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
