"""The public names of alebo, once: `__init__.py` reads this file, and so do type checkers and editors."""

from . import bench as bench
from . import diagnostics as diagnostics
from . import geometry as geometry
from . import integrations as integrations
from . import methods as methods
from . import models as models
from . import plots as plots
from . import report as report
from ._errors import AleboError as AleboError
from ._errors import EvaluationError as EvaluationError
from ._errors import InputError as InputError
from ._errors import MissingPartError as MissingPartError
from ._errors import StateError as StateError
from ._errors import StudyError as StudyError
from ._minimize import minimize as minimize
from ._result import Result as Result
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
from .methods.alebo import Growth as Growth
from .methods.alebo import Laplace as Laplace
from .methods.alebo import Sampled as Sampled
from .optimizer import Optimizer as Optimizer
from .parameters import Categorical as Categorical
from .parameters import Fidelity as Fidelity
from .parameters import Fixed as Fixed
from .parameters import Float as Float
from .parameters import Int as Int
from .parameters import LinearConstraint as LinearConstraint
from .runner import Study as Study
from .runner import run as run
from .sources import Source as Source
from .space import Space as Space

__version__: str
__all__: list[str]
