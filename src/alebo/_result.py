"""What `minimize` returns: the best point, its value and every trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _show
from ._errors import EvaluationError, StateError
from ._failures import full_stop
from .goals import Goals
from .history import History, incumbents
from .optimizer import Optimizer
from .space import Space

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Result:
    """What `minimize` found. `history` has every trial; `trace[i]` is the best value after evaluation i.

    Attributes:
        x: The best point, in the order of the parameters.  D
        fun: Its value, in your sign.
        history: Every trial.
        trace: The best value after each finished trial; NaN before the first feasible one.  n
        optimizer: The optimizer, with which one can go on.
        message: How the run ended.
    """

    x: Array  # D values in the order of the parameters
    fun: float
    history: History
    trace: Array  # n
    optimizer: Optimizer
    message: str = ""

    @property
    def nfev(self) -> int:
        """How many trials there are."""
        return len(self.history)

    @property
    def params(self) -> dict[str, Any]:
        """The best point by names."""
        return dict(zip(self.optimizer.space.names, self.x.tolist(), strict=True))

    def to_dataframe(self) -> Any:
        """Every trial as a row of a pandas DataFrame."""
        return self.optimizer.to_dataframe()

    def __repr__(self) -> str:
        return _show.text("Result", self._rows())

    def _repr_html_(self) -> str:
        return _show.html("Result", self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("fun", _show.number(self.fun)),
            ("x", _show.point(self.params)),
            ("nfev", str(self.nfev)),
            ("message", self.message),
        ]


def trace(history: History, goals: Goals, space: Space) -> Array:
    """The best feasible measured value after each finished trial, in the user's sign; NaN before the first.  -> n

    Evaluations below the target fidelity do not count.
    """
    name = goals.objectives[0].outcome
    return np.array([np.nan if t is None else t.outcomes[name].mean for _, t in incumbents(history, goals, space)])


def result_of(opt: Optimizer, ended: str, last: BaseException | None) -> Result:
    """The result of a run that ended so; an EvaluationError where no trial can be the best.

    Args:
        opt: The optimizer with all trials.
        ended: Why the run ended early; "" where it did not.
        last: What the last failed evaluation raised.
    """
    try:
        best = opt.best()
    except StateError as nothing:
        said = (
            f"{nothing} The last evaluation gave {type(last).__name__}: {full_stop(str(last))}"
            if last
            else str(nothing)
        )
        failure = EvaluationError(said)
        failure.optimizer = opt
        raise failure from last
    value = opt.goals.sign(opt.goals.objectives[0].outcome) * float(opt.goals.objective_values(best.outcomes)[0])
    message = (
        f"{ended + '. ' if ended else ''}{len(opt.history.complete)} evaluations, {len(opt.history.failed)} failed; "
        f"best is trial {best.number}, by {best.note['chosen_by']}."
    )
    found = trace(opt.history, opt.goals, opt.space)
    return Result(values_of(opt.space, best.params), value, opt.history, found, opt, message)


def values_of(space: Space, params: Mapping[str, Any]) -> Array:
    """The values in the order of the parameters, as objects where some are no numbers.  -> D"""
    values = [params[n] for n in space.names]
    try:
        return np.array(values, dtype=float)
    except ValueError:
        return np.array(values, dtype=object)
