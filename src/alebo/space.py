"""Named parameters and the cube [-1, 1]^D in which everything else works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _show
from ._checks import listed, named
from ._errors import InputError
from .parameters import Categorical as Categorical
from .parameters import Fidelity as Fidelity
from .parameters import Fixed as Fixed
from .parameters import Float as Float
from .parameters import Int as Int
from .parameters import LinearConstraint as LinearConstraint
from .parameters import Parameter as Parameter
from .parameters import check_value, index, parameter_from

Array: TypeAlias = NDArray[np.float64]
Params: TypeAlias = dict[str, Any]


class Space:
    """An ordered set of parameters, and the exact way between their values and a point of the cube [-1, 1]^D.

    Args:
        parameters: Float, Int, Categorical, Fixed and at most one Fidelity.
        constraints: Linear rules that every proposal obeys.
    """

    def __init__(self, parameters: Sequence[Parameter], constraints: Sequence[LinearConstraint] = ()) -> None:
        self.parameters: tuple[Parameter, ...] = listed(parameters, "A Space is made of a list of parameters")
        self.constraints: tuple[LinearConstraint, ...] = listed(constraints, "`constraints` of a Space is a list")
        for p in self.parameters:
            if not isinstance(p, Float | Int | Categorical | Fixed):
                raise InputError(
                    f"A Space is made of Float, Int, Categorical and Fixed; got {p!r}. Build the parameter first, "
                    "or use Space.from_bounds for plain (low, high) pairs."
                )
            if not isinstance(p.name, str) or not p.name:
                raise InputError(
                    f"A parameter's name is a text; got {p.name!r}. Write {type(p).__name__}('gain', ...), say."
                )
        self.names: tuple[str, ...] = tuple(p.name for p in self.parameters)
        self._known = frozenset(self.names)
        if len(self._known) < len(self.names):
            twice = sorted({n for n in self.names if self.names.count(n) > 1})
            raise InputError(f"Parameter names must differ; got {twice} more than once. Rename one of each.")
        widths = [
            len(p.choices) if isinstance(p, Categorical) else int(not isinstance(p, Fixed)) for p in self.parameters
        ]
        self.dimension: int = sum(widths)  # D of the paper
        if self.dimension == 0:
            raise InputError("A Space needs one free parameter or more; got none. Add a Float, Int or Categorical.")
        starts = np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(int)
        self._numeric = [(i, p) for i, p in enumerate(self.parameters) if isinstance(p, Float | Int)]
        self._numeric_names = tuple(p.name for _, p in self._numeric)
        self._fixed = {p.name: p.value if isinstance(p, Fixed) else None for p in self.parameters}  # all names
        self._categorical = [
            (p, slice(int(s), int(s) + len(p.choices)))
            for p, s in zip(self.parameters, starts, strict=True)
            if isinstance(p, Categorical)
        ]
        self._at = starts[[i for i, _ in self._numeric]] if self._numeric else np.zeros(0, dtype=int)
        self._log = np.array([p.log for _, p in self._numeric], dtype=bool)
        self._int = np.array([isinstance(p, Int) for _, p in self._numeric], dtype=bool)
        self._grid = [(j, p) for j, (_, p) in enumerate(self._numeric) if isinstance(p, Float) and p.gridded]
        # half a bin: the first and the last value of a grid get a whole bin, like the others
        half = self._half = np.where(self._int, 0.5, 0.0)
        for j, p in self._grid:
            half[j] = 0.5 * (p.step or 0.0)
        low = np.array([p.low for _, p in self._numeric], dtype=float)
        high = np.array([p.high for _, p in self._numeric], dtype=float)
        self._ends = (low, high)
        low, high = low - half, high + half
        with np.errstate(divide="ignore", invalid="ignore"):
            self._low = np.where(self._log, np.log(low), low)
            self._high = np.where(self._log, np.log(high), high)
        levels = [(int(at), p) for at, (_, p) in zip(self._at, self._numeric, strict=True) if isinstance(p, Fidelity)]
        if len(levels) > 1:
            raise InputError(
                f"One Fidelity at most; got {[p.name for _, p in levels]}. Make the others Float parameters, or Fixed."
            )
        self.fidelity: tuple[int, Fidelity] | None = levels[0] if levels else None  # its coordinate, and itself
        self.one_hot: NDArray[np.bool_] = np.zeros(self.dimension, dtype=bool)  # the coordinates of categories
        for _, where in self._categorical:
            self.one_hot[where] = True
        self.continuous: bool = not self._categorical and not bool(self._int.any()) and not self._grid
        self._check_constraints()

    @classmethod
    def from_bounds(cls, bounds: Sequence[tuple[float, float]]) -> Space:
        """Real parameters x0, x1, ... with these bounds.

        Args:
            bounds: A (low, high) pair for each parameter.

        Returns:
            The space.
        """
        try:
            pairs = [(float(low), float(high)) for low, high in bounds]
        except (TypeError, ValueError):
            raise InputError(
                f"`bounds` is a sequence of (low, high) pairs; got {bounds!r:.80}. Write [(0, 1)] * 100, for instance."
            ) from None
        if not pairs:
            raise InputError(
                "`bounds` needs one (low, high) pair or more; got none. Write [(0, 1)] * 100, for instance."
            )
        return cls([Float(f"x{i}", low, high) for i, (low, high) in enumerate(pairs)])

    @classmethod
    def from_dict(cls, description: Mapping[str, Any], constraints: Sequence[LinearConstraint] = ()) -> Space:
        """A Space from plain data: `{"lr": {"type": "float", "low": 1e-5, "high": 1, "log": True}, "act": ["a", "b"]}`.

        Short forms: a pair of numbers is a Float, a list of other things a Categorical, a lone value Fixed.

        Args:
            description: What each parameter is, by name.
            constraints: Linear rules that every proposal obeys.

        Returns:
            The space.
        """
        return cls([parameter_from(name, spec) for name, spec in description.items()], constraints)

    def to_dict(self) -> dict[str, Any]:
        """Plain data from which `from_dict` builds the same parameters again."""
        out: dict[str, Any] = {}
        for p in self.parameters:
            if isinstance(p, Categorical):
                out[p.name] = {"type": "categorical", "choices": list(p.choices)}
            elif isinstance(p, Fixed):
                out[p.name] = {"type": "fixed", "value": p.value}
            else:
                kind = "int" if isinstance(p, Int) else "fidelity" if isinstance(p, Fidelity) else "float"
                grid = {k: getattr(p, k) for k in ("step", "digits") if getattr(p, k, None) is not None}
                out[p.name] = {"type": kind, "low": p.low, "high": p.high, "log": p.log, **grid}
        return out

    @property
    def positional(self) -> bool:
        """Whether the parameters have no names but those of `from_bounds`: x0, x1, ..., all real."""
        return all(isinstance(p, Float) and p.name == f"x{i}" for i, p in enumerate(self.parameters))

    def __len__(self) -> int:
        return len(self.parameters)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Space) and self.parameters == other.parameters and self.constraints == other.constraints
        )

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        shown = ", ".join(f"{p!r:.80}" for p in self.parameters[:3]) + (", ..." if len(self) > 3 else "")
        return f"Space({len(self)} parameters, {self.dimension} coordinates: {shown})"

    def __str__(self) -> str:
        return _show.text(f"Space of {len(self)} parameters, {self.dimension} coordinates", self._rows())

    def _repr_html_(self) -> str:
        return _show.html(f"Space of {len(self)} parameters, {self.dimension} coordinates", self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        rows = [(p.name[:40], p.described()) for p in self.parameters[:8]]
        if len(self) > 8:
            rows.append(("...", f"and {len(self) - 8} more"))
        return rows + [("constraint", f"{dict(c.coefficients)} <= {c.upper}"[:120]) for c in self.constraints[:3]]

    def coordinates(self) -> dict[str, slice]:
        """The coordinates of the cube that belong to each parameter, by name; a Fixed has none."""
        out, at = {}, 0
        for p in self.parameters:
            width = len(p.choices) if isinstance(p, Categorical) else int(not isinstance(p, Fixed))
            if width:
                out[p.name] = slice(at, at + width)
            at += width
        return out

    def columns(self) -> list[str]:
        """The name of every coordinate of the cube: the parameter's, with `=choice` for a category."""
        out: list[str] = []
        for p in self.parameters:
            if isinstance(p, Categorical):
                out.extend(f"{p.name}={c}" for c in p.choices)
            elif not isinstance(p, Fixed):
                out.append(p.name)
        return out

    def encode(self, params: Mapping[str, Any]) -> Array:
        """The cube point of these values.  -> D

        Args:
            params: A value for every parameter.

        Returns:
            A point of the cube.  D
        """
        self.check(params)
        x = np.empty(self.dimension)
        if self._numeric:
            v = np.array([float(params[p.name]) for _, p in self._numeric])
            with np.errstate(divide="ignore", invalid="ignore"):
                mid = 0.5 * (np.log(v - 0.5) + np.log(v + 0.5))  # the centre of a whole number's bin on a log scale
                t = np.where(self._log, np.where(self._int, mid, np.log(v)), v)
            x[self._at] = np.clip(2.0 * (t - self._low) / (self._high - self._low) - 1.0, -1.0, 1.0)
        for p, where in self._categorical:
            x[where] = -1.0
            x[where.start + index(p, params[p.name])] = 1.0
        return x

    def decode(self, x: ArrayLike) -> Params:
        """The values at a point of the cube: whole numbers rounded, the largest coordinate of a category chosen.

        Args:
            x: A point of the cube.  D

        Returns:
            A value for every parameter.
        """
        x = np.asarray(x, dtype=float)
        if x.shape != (self.dimension,):
            raise InputError(f"A cube point of this space has shape ({self.dimension},); got {x.shape}.")
        u = np.clip(x[self._at], -1.0, 1.0)
        t = self._low + 0.5 * (u + 1.0) * (self._high - self._low)
        with np.errstate(over="ignore"):
            v = np.where(self._log, np.exp(np.where(self._log, t, 0.0)), t)
        v = np.where(self._int, np.rint(v), v)
        v = np.clip(v, *self._ends)
        for j, q in self._grid:
            v[j] = q.rounded(float(v[j]))
        out = dict(self._fixed)
        out.update(zip(self._numeric_names, v.tolist(), strict=True))
        for at in np.flatnonzero(self._int):
            out[self._numeric_names[at]] = int(v[at])
        for p, where in self._categorical:
            out[p.name] = p.choices[int(np.argmax(x[where]))]
        return out

    def canonical(self, params: Mapping[str, Any] | Sequence[Any]) -> Params:
        """The same values, checked, in the order and in the plain types of this space (no NumPy numbers)."""
        self.check(params := named(self.names, params))
        out: Params = {}
        for p in self.parameters:
            value = params[p.name]
            if isinstance(p, Fixed):
                out[p.name] = p.value
            elif isinstance(p, Categorical):
                out[p.name] = p.choices[index(p, value)]
            else:
                out[p.name] = int(float(value)) if isinstance(p, Int) else float(value)
        return out

    def snap(self, x: Array) -> Array:
        """The cube points really evaluated for these: whole numbers at bin centres, categories one-hot.  ... x D"""
        if self.continuous:
            return x
        return np.stack([self.encode(self.decode(row)) for row in x.reshape(-1, self.dimension)]).reshape(x.shape)

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuse `params` unless they name every parameter with a value of its range."""
        if params.keys() != self._known:
            missing = [n for n in self.names if n not in params]
            extra = [n for n in params if n not in self._known]
            raise InputError(
                f"A point names every parameter once; missing {missing[:5]}, unknown {extra[:5]}. "
                f"The space has {len(self)} parameters: {', '.join(self.names[:5])}{', ...' if len(self) > 5 else ''}."
            )
        for p in self.parameters:
            if type(v := params[p.name]) is not float or type(p) is not Float or not p.low <= v <= p.high:  # quick
                check_value(p, v)

    def feasible(self, params: Mapping[str, Any], tolerance: float = 1e-9) -> bool:
        """Whether every linear constraint holds at `params`.

        Args:
            params: A value for every parameter.
            tolerance: Relative, for rounding errors.
        """
        return all(
            c.value(params) <= c.upper + tolerance * max(1.0, abs(c.upper), *(abs(v) for v in c.coefficients.values()))
            for c in self.constraints
        )

    def at_target(self, params: Mapping[str, Any]) -> bool:
        """Whether an evaluation at `params` is made at the fidelity that counts; always so where there is none."""
        if self.fidelity is None:
            return True
        level = self.fidelity[1]
        return abs(float(params[level.name]) - level.target) <= 1e-9 * max(abs(level.low), abs(level.high))

    def rows(self, *, rounded: bool = False) -> tuple[Array, Array]:
        """The linear constraints as rows `A x <= b` over the cube.  -> (k x D, k)

        With `rounded`, tightened so that they still hold when whole numbers are rounded.
        """
        A, b = np.zeros((len(self.constraints), self.dimension)), np.zeros(len(self.constraints))
        if not self.constraints:
            return A, b
        fixed = {p.name: p.value for p in self.parameters if isinstance(p, Fixed)}
        place = {p.name: j for j, (_, p) in enumerate(self._numeric)}
        for row, c in enumerate(self.constraints):
            b[row] = c.upper
            for name, coefficient in c.coefficients.items():
                if name in fixed:
                    b[row] -= coefficient * float(fixed[name])
                    continue
                j = place[name]
                A[row, self._at[j]] = coefficient * 0.5 * (self._high[j] - self._low[j])
                b[row] -= coefficient * 0.5 * (self._high[j] + self._low[j])
                if rounded:
                    b[row] -= self._half[j] * abs(coefficient)
        return A, b

    def _check_constraints(self) -> None:
        kinds = {p.name: p for p in self.parameters}
        for c in self.constraints:
            for name in c.coefficients:
                if name not in kinds:
                    raise InputError(
                        f"A LinearConstraint names parameters of the space; got {name!r}. "
                        f"Known: {', '.join(self.names[:8])}{', ...' if len(self) > 8 else ''}."
                    )
                p = kinds[name]
                word = isinstance(p, Fixed) and not isinstance(p.value, int | float)
                if word or isinstance(p, Categorical) or (isinstance(p, Float | Int) and p.log):
                    raise InputError(
                        f"A LinearConstraint speaks of numbers on a linear scale; {name!r} is {p!r}. "
                        "Use log=False for it, or state the rule as an outcome with AtMost."
                    )
        if not self.constraints:
            return
        from scipy.optimize import linprog

        A, b = self.rows()
        used = np.flatnonzero(np.abs(A).sum(axis=0))
        possible = bool(np.all(b >= 0.0))  # the middle of the cube
        if not possible and len(used):
            possible = linprog(np.zeros(len(used)), A_ub=A[:, used], b_ub=b, bounds=[(-1, 1)] * len(used)).success
        if not possible:
            rules = "; ".join(f"{dict(c.coefficients)} <= {c.upper}" for c in self.constraints[:4])
            raise InputError(f"Some point must satisfy all linear constraints; none does: {rules}. Loosen one of them.")
