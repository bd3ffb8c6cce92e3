"""What a benchmark problem is: a function with its space, its goals and what is known about its optimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from alebo import AleboError, Goals, InputError, Maximize, Minimize, Space

from ..._seeds import generator

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """A function to optimise. Unlike a plain callable it knows its bounds, its budget and, where known, its optimum.

    `evaluate` is the truth, without noise; `measure` is what a method gets to see. Points are in the user's units.
    """

    name: str
    space: Space  # or (low, high) pairs
    evaluate: Callable[[Any], Any]  # array of len(space) values -> a number, or a mapping of outcomes
    goals: Goals = field(default_factory=lambda: Goals(Minimize("value")))  # or a goal, or a list of them
    optimum: float | None = (
        None  # best feasible value in the user's sign; hypervolume where there are several objectives
    )
    optimisers: Array | None = None  # k x D known best points (not always all of them)
    budget: int = 100
    active: int | None = None  # d of the paper: dimensions that matter
    paper_dim: int | None = None  # d_e used by the paper for ALEBO
    noise: Mapping[str, float] = field(default_factory=dict)  # standard deviation added by `measure`, by outcome
    axes: tuple[int, ...] = ()  # the active columns, where they are axis-aligned
    about: str = ""

    def __post_init__(self) -> None:
        put = object.__setattr__
        space: Any = self.space  # short forms are accepted here and nowhere else
        goals: Any = self.goals
        put(self, "space", space if isinstance(space, Space) else Space.from_bounds(space))
        put(self, "goals", goals if isinstance(goals, Goals) else Goals(goals))
        if not callable(self.evaluate):
            raise InputError(
                f"`evaluate` must be callable with an array; problem {self.name!r} has {self.evaluate!r:.60}."
            )
        if int(self.budget) != self.budget or self.budget < 1:
            raise InputError(f"`budget >= 1` must hold; problem {self.name!r} has {self.budget}.")
        if self.optimisers is not None:
            points = np.atleast_2d(np.asarray(self.optimisers, dtype=float))
            if points.shape[1] != len(self.space):
                raise InputError(
                    f"Optimisers of {self.name!r} need {len(self.space)} values each; got {points.shape[1]}."
                )
            put(self, "optimisers", points)
        unknown = [name for name in self.noise if name not in self.goals.outcomes]
        if unknown:
            raise InputError(
                f"Noise is given by outcome; {self.name!r} has {list(self.goals.outcomes)}, got {unknown}."
            )

    @property
    def D(self) -> int:
        """Number of parameters."""
        return len(self.space)

    @property
    def bounds(self) -> Array:
        """Low and high of every parameter; only for problems made of numbers.  -> D x 2"""
        try:
            return np.array([(p.low, p.high) for p in self.space.parameters], dtype=np.float64)  # type: ignore[union-attr]
        except AttributeError:
            raise InputError(f"Only numbers have bounds; {self.name!r} has categories. Read its `space`.") from None

    @property
    def sign(self) -> float:
        """+1 where small is good, -1 where large is (also for the hypervolume of several objectives)."""
        if not self.goals.single:
            return -1.0
        return -1.0 if isinstance(self.goals.objectives[0], Maximize) else 1.0

    def outcomes(self, x: ArrayLike) -> dict[str, float]:
        """The truth at a point, by outcome."""
        return {name: o.mean for name, o in self.goals.read(self.evaluate(np.asarray(x))).items()}

    def measure(self, x: ArrayLike, *, seed: int = 0, number: int = 0) -> dict[str, float]:
        """What evaluation `number` of the run `seed` sees: the truth plus a draw of the noise."""
        return self.add_noise(self.outcomes(x), seed=seed, number=number)

    def add_noise(self, truth: Mapping[str, float], *, seed: int, number: int) -> dict[str, float]:
        """The truth plus this evaluation's draw of the noise."""
        return {
            name: value + self.noise.get(name, 0.0) * float(generator(seed, "noise", self.name, name, number).normal())
            if self.noise.get(name)
            else value
            for name, value in truth.items()
        }

    def value(self, outcomes: Mapping[str, float]) -> float:
        """The single objective in the user's sign, or NaN where a constraint is broken."""
        read = self.goals.read(outcomes)
        if not self.goals.feasible(read):
            return float("nan")
        return float(outcomes[self.goals.objectives[0].outcome])

    def __repr__(self) -> str:
        return f"Problem({self.name!r}, D={self.D}, {self.goals!r}, budget={self.budget}, optimum={self.optimum})"


def resolve(name: str, known: Mapping[str, Any], kind: str, extra: Sequence[str] = ()) -> Any:
    """The entry of that name, or what `module:attribute` points at; otherwise an error with the nearest name."""
    import difflib
    import importlib
    import os
    import sys

    if name in known:
        return known[name]
    if ":" in name:
        module, _, attribute = name.partition(":")
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())  # a file beside the caller, as with `python -m`
        try:
            return getattr(importlib.import_module(module), attribute)
        except AleboError:
            raise
        except (ImportError, AttributeError) as error:
            raise InputError(
                f"A {kind} of your own is written module:name; {name!r} cannot be imported: {error}. "
                "Check that the module is importable from here and holds that name."
            ) from None
        except Exception as error:  # the module's own code
            raise InputError(
                f"A {kind} of your own is written module:name; {name!r} cannot be imported: "
                f"{type(error).__name__}: {error}. Mend the module."
            ) from error
    names = [*known, *extra]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    raise InputError(
        f"A {kind}'s name must be known; got {name!r}. {hint}Known: {', '.join(sorted(names))}. Your own: module:name."
    )
