"""The parameters of a space: real, whole, categorical, fixed; and linear rules on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from ._checks import misfit
from ._errors import InputError

_LARGEST_INT = 10**12  # a bin of the cube is then still thousands of times wider than a rounding error


def _number(name: str, word: str, value: Any) -> float:
    """`value` as a float; a text, NaN, or a number beyond a float is refused."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, str | bytes | bool) or not math.isfinite(number):
        raise InputError(
            f"Bounds must be finite numbers for {name!r}; got {word}={str(value)[:60]}. Give the range you would accept."
        )
    return number


def _check_range(kind: str, name: str, low: float, high: float, log: bool) -> None:
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError(
            f"Bounds must be finite for {name!r}; got low={low}, high={high}. Give the range you would accept."
        )
    if not low < high:
        raise InputError(
            f"`low < high` must hold for {name!r}; got low={low}, high={high}. Swap them, or use Fixed for a constant."
        )
    if not isinstance(log, bool | np.bool_):
        raise InputError(f"`log` of {name!r} is True or False; got {log!r:.60}.")
    if log and low <= (0.0 if kind == "Float" else 0.5):
        raise InputError(
            f"`low > 0` must hold for {name!r} with log=True; got low={low}. Raise low, or use a linear scale."
        )
    if not math.isfinite(high - low) or (log and kind == "Float" and not math.log(low) < math.log(high)):
        raise InputError(
            f"`high - low` must be a positive finite number for {name!r}; got low={low}, high={high}. "
            "Narrow the range to what you would accept, or widen it until its ends differ."
        )


@dataclass(frozen=True)
class Float:
    """A real parameter between `low` and `high`: one coordinate of the cube.

    Args:
        name: Its name.
        low: The smallest value.
        high: The largest value.
        log: Whether to search on a logarithmic scale.
        step: Propose only low, low + step, ..., high: what an instrument can set.
        digits: Propose only values of so many significant digits.

    Values that were really run, in `tell`, need not lie on the grid of `step` or `digits`.

    >>> temperature = Float("temperature", 20, 80, step=5)
    >>> temperature.rounded(43.1)
    45.0
    >>> Float("dose", 1e-4, 1.0, log=True, digits=2).rounded(0.0123)
    0.012
    """

    name: str
    low: float
    high: float
    log: bool = False
    step: float | None = None
    digits: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", _number(self.name, "low", self.low))
        object.__setattr__(self, "high", _number(self.name, "high", self.high))
        _check_range("Float", self.name, self.low, self.high, self.log)
        if self.step is not None:
            object.__setattr__(self, "step", self._checked_step())
        if self.digits is not None:
            whole = isinstance(self.digits, int) and not isinstance(self.digits, bool)
            if not whole or not 1 <= self.digits <= 17 or self.step is not None:
                raise InputError(
                    f"`1 <= digits <= 17` must hold for {self.name!r}, without a step; got digits={self.digits!r}, "
                    f"step={self.step}. Give the significant digits that can be set, or a step."
                )

    def _checked_step(self) -> float:
        step = _number(self.name, "step", self.step)
        if self.log:
            raise InputError(
                f"A step belongs to a linear scale; {self.name!r} has log=True. Leave one out, or use digits=2 with log=True."
            )
        count = round((self.high - self.low) / step) if step > 0 else 0
        if count < 1 or abs(self.low + count * step - self.high) > 1e-9 * max(abs(self.low), abs(self.high), step):
            near = f" For instance high={self.low + count * step:g}." if count else ""
            raise InputError(
                f"`high = low + a whole number of steps` must hold for {self.name!r}; got low={self.low}, "
                f"high={self.high}, step={self.step}. Change one of the three.{near}"
            )
        return step

    def described(self) -> str:
        """Its range in a few words."""
        scale = ", log" if self.log else ""
        grid = f", step {self.step:g}" if self.step else f", {self.digits} digits" if self.digits else ""
        return f"{self.low:g} to {self.high:g}{scale}{grid}"

    @property
    def gridded(self) -> bool:
        """Whether proposals are rounded to a step or to significant digits."""
        return self.step is not None or self.digits is not None

    def rounded(self, value: float) -> float:
        """The nearest value that can be proposed.

        Args:
            value: Any number.

        Returns:
            The value of the grid.
        """
        if self.step is not None:
            value = round(self.low + round((value - self.low) / self.step) * self.step, _decimals(self.low, self.step))
        elif self.digits is not None:
            value = float(f"{value:.{self.digits - 1}e}")
        return min(max(value, self.low), self.high)


def _decimals(*values: float) -> int:
    """The decimal places that write these numbers exactly, as they were typed."""
    return max(max(0, -int(Decimal(repr(v)).normalize().as_tuple().exponent)) for v in values)


@dataclass(frozen=True)
class Fidelity(Float):
    """How carefully an evaluation is made (epochs, mesh size, share of the data); `high` is the one that counts.

    Unlike a Float it is not embedded but keeps a coordinate of its own: the method may evaluate cheaply first.

    Args:
        name: Its name.
        low: The cheapest level.
        high: The level that counts.
        log: Whether to search on a logarithmic scale.
        step: Propose only low, low + step, ..., high.
        digits: Propose only values of so many significant digits.
    """

    @property
    def target(self) -> float:
        return self.high


@dataclass(frozen=True)
class Int:
    """A whole number from `low` to `high`, both included: one coordinate, cut into bins with a value in the middle.

    Args:
        name: Its name.
        low: The smallest value.
        high: The largest value.
        log: Whether to search on a logarithmic scale.
    """

    name: str
    low: int
    high: int
    log: bool = False

    def __post_init__(self) -> None:
        for word, end in (("low", self.low), ("high", self.high)):
            if _number(self.name, word, end) != int(end):
                raise InputError(
                    f"Int bounds must be whole numbers for {self.name!r}; got {end}. Round it, or use Float."
                )
        object.__setattr__(self, "low", int(self.low))
        object.__setattr__(self, "high", int(self.high))
        _check_range("Int", self.name, self.low, self.high, self.log)
        if max(abs(self.low), abs(self.high)) > _LARGEST_INT:
            raise InputError(
                f"Int bounds reach at most {_LARGEST_INT} in size for {self.name!r}, so that every value is exact in "
                f"the cube; got low={self.low}, high={self.high}. Use Float and round, or a smaller range."
            )

    def described(self) -> str:
        """Its range in a few words."""
        return f"{self.low} to {self.high}, whole{', log' if self.log else ''}"


@dataclass(frozen=True)
class Categorical:
    """One of several unordered choices: a coordinate for each, decoded by the largest.

    Args:
        name: Its name.
        choices: Two or more different values.
    """

    name: str
    choices: tuple[Any, ...]

    def __init__(self, name: str, choices: Iterable[Any]) -> None:
        object.__setattr__(self, "name", name)
        if isinstance(choices, str | bytes) or not isinstance(choices, Iterable):
            raise InputError(f"The choices of {name!r} are a list; got {choices!r:.60}. Write ['a', 'b'], say.")
        object.__setattr__(self, "choices", tuple(choices))
        if len(self.choices) < 2:
            raise InputError(
                f"A Categorical needs two choices or more; {name!r} has {list(self.choices)}. Use Fixed for a constant."
            )
        if any(a == b and type(a) is type(b) for i, a in enumerate(self.choices) for b in self.choices[:i]):
            raise InputError(f"Choices must differ; {name!r} has {list(self.choices)}. Remove the repeated one.")

    def described(self) -> str:
        """Its choices in a few words."""
        return f"one of {', '.join(str(c) for c in self.choices)}"[:120]


@dataclass(frozen=True)
class Fixed:
    """A parameter that keeps one value: no coordinate at all, but part of every proposal.

    Args:
        name: Its name.
        value: Its value.
    """

    name: str
    value: Any

    def described(self) -> str:
        """Its value in a few words."""
        return f"fixed at {self.value}"[:120]


Parameter: TypeAlias = Float | Int | Categorical | Fixed


@dataclass(frozen=True)
class LinearConstraint:
    """A known rule on the parameters, `sum(coefficient * parameter) <= upper`, that every proposal obeys.

    Unlike the goals AtMost and AtLeast it is known beforehand and needs no evaluation.

    Args:
        coefficients: The coefficient of each parameter, by name.
        upper: The largest value of the sum.
    """

    coefficients: Mapping[str, float]
    upper: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", {k: float(v) for k, v in self.coefficients.items()})
        object.__setattr__(self, "upper", float(self.upper))
        values = [self.upper, *self.coefficients.values()]
        if not self.coefficients or not all(map(math.isfinite, values)) or not any(values[1:]):
            raise InputError(
                f"A LinearConstraint needs finite numbers and one non-zero coefficient; got {dict(self.coefficients)} "
                f"<= {self.upper}. Name the parameters it speaks of."
            )

    def value(self, params: Mapping[str, Any]) -> float:
        """The left side at `params`.

        Args:
            params: The values by name.

        Returns:
            The sum.
        """
        return sum(c * float(params[name]) for name, c in self.coefficients.items())


def index(p: Categorical, value: Any) -> int:
    for same_type in (True, False):  # 1 and 1.0 may both be choices; a NumPy number still finds its own
        for i, choice in enumerate(p.choices):
            alike = type(choice) is type(value) or not same_type
            logical = isinstance(choice, bool) == isinstance(value, bool | np.bool_)  # True is not the choice 1
            if choice is value or (alike and logical and choice == value):
                return i
    raise InputError(
        f"{p.name!r} is one of {list(p.choices)}; got {value!r}. Add the choice to the space, or correct it."
    )


def parameter_from(name: str, spec: Any) -> Parameter:
    if isinstance(spec, Mapping):
        spec = dict(spec)
        kind = spec.pop("type", "categorical" if "choices" in spec else "fixed" if "value" in spec else "float")
        makers = {"float": Float, "fidelity": Fidelity, "int": Int, "categorical": Categorical, "fixed": Fixed}
        if kind not in makers:
            raise InputError(f"`type` of {name!r} is one of {sorted(makers)}; got {kind!r}.")
        try:
            made: Parameter = makers[kind](name, **spec)
        except TypeError as error:
            wrong = misfit(name, kind, spec, makers) or f"{name!r} cannot be built as {kind}: {error}. Correct it."
            raise InputError(wrong) from None
        return made
    if isinstance(spec, Sequence) and not isinstance(spec, str):
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in spec)
        return Float(name, *spec) if numbers and len(spec) == 2 else Categorical(name, spec)
    return Fixed(name, spec)


def check_value(p: Parameter, value: Any) -> None:
    """Refuse a value that this parameter cannot have."""
    if isinstance(p, Categorical):
        index(p, value)
    elif isinstance(p, Fixed):
        if value is not p.value and value != p.value:
            raise InputError(f"{p.name!r} is fixed at {p.value!r}; got {value!r}. Leave it at its value.")
    else:
        _check_number(p, value)


def _check_number(p: Float | Int, value: Any) -> None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{p.name!r} is a number from {p.low} to {p.high}; got {value!r:.60}.") from None
    slack = 1e-9 * max(abs(p.low), abs(p.high))
    if not p.low - slack <= number <= p.high + slack:
        raise InputError(
            f"`{p.low} <= {p.name} <= {p.high}` must hold; got {value!r:.60}. Widen the space, or leave this point out."
        )
    if isinstance(p, Int) and number != int(number):
        raise InputError(f"{p.name!r} is a whole number; got {value!r}. Round it first.")
