"""LineBO: Bayesian optimization on one line through the incumbent after another; three ways to choose the line."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from .._errors import damaged_note
from .._seeds import derive, generator
from ..goals import Goals
from ..history import History, Trial
from ..models import ARDGP, fit_ard
from ..models.outcomes import reported_variances, tamed
from ..models.priors import embedded
from ..space import Space
from ._method import Method, Suggestion, Supports, setting

Array: TypeAlias = NDArray[np.float64]

_CITATION = (
    "Kirschner, Mutny, Hiller, Ischebeck, Krause 2019, Adaptive and Safe Bayesian Optimization in High Dimensions via "
    "One-Dimensional Subspaces, ICML"
)
_NOISY = 1e-3  # inferred noise variance (standardised) above which the incumbent is chosen by the model


@dataclass(frozen=True)
class LineBO(Method):
    """What the three variants share. One process over the whole cube learns from every line; only the search is 1-d.

    A trial's `y` is its coordinate t on the line, x = anchor + t u, and its note names the line and the anchor's trial: so
    direction u is read back from the history, and resuming needs nothing else.
    """

    per_line: int = setting(5, "evaluations on a line before the next one")
    width: float = setting(2.0, "of the confidence bound, in standard deviations")

    citation: ClassVar[str] = _CITATION
    supports: ClassVar[Supports] = Supports(batches=False, integers=False, categories=False)

    def __post_init__(self) -> None:
        self._counts(per_line=1)
        self._numbers(width=(0.0, math.inf))

    @abstractmethod
    def direction(self, gp: ARDGP, x: Array, seed: int) -> Array:
        """A unit vector along which to search from x.  -> D"""

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        self.one_at_a_time(history, q)
        number = len(history)
        here = derive(seed, "ask", number)
        complete = history.complete
        if not complete:  # the first point is the centre; where that failed, anything else
            x = np.zeros(space.dimension) if not number else generator(here, "first").uniform(-1, 1, space.dimension)
            return [Suggestion(x, None, {"line": 0, "anchor": None})]
        X = np.stack([t.x for t in complete])
        variances = reported_variances([t.outcomes[goals.objectives[0].outcome].sem for t in complete])
        values = tamed(np.array([goals.objective_values(t.outcomes)[0] for t in complete]))
        prior = embedded(space.dimension, "rbf", restarts=int(space.dimension <= 20))
        gp = fit_ard(X, values, prior, variances=variances, seed=here)
        line = self._line(history, complete, values, gp, derive(seed, "line", number))
        t, x = self._search(line, gp, history)
        return [Suggestion(x, np.array([t]), {"line": line.number, "anchor": line.anchor.number})]

    def _line(self, history: History, complete: Sequence[Trial], values: Array, gp: ARDGP, seed: int) -> Line:
        """The present line while it has evaluations left, else a new one through the incumbent."""
        last = next((t for t in reversed(history) if "line" in t.note), None)
        if last is not None and last.y is not None:
            on = [t for t in history if t.note.get("line") == last.note["line"] and t.y is not None]
            if len(on) < self.per_line:
                farthest = max(on, key=lambda t: abs(float(np.asarray(t.y)[0])))
                anchor, at = history[int(last.note["anchor"] or 0)], float(np.asarray(farthest.y)[0])
                if at == 0.0 or np.array_equal(farthest.x, anchor.x):
                    raise damaged_note(f"another trial than {farthest.number} as the anchor of its line")
                return Line(int(last.note["line"]), anchor, (farthest.x - anchor.x) / at)
        score = values
        if float(gp.noise.max()) > _NOISY:
            score = gp.marginals(gp.points).mean[0].numpy()
        anchor = complete[int(np.argmin(score))]
        return Line(1 + (int(last.note["line"]) if last is not None else 0), anchor, self.direction(gp, anchor.x, seed))

    def _search(self, line: Line, gp: ARDGP, history: History) -> tuple[float, Array]:
        """The smallest lower confidence bound on the line, by two grids; points tried before are left out."""
        low, high = line.ends()
        gap = 1e-4 * (high - low)
        tried = [float(np.asarray(t.y)[0]) for t in history if t.note.get("line") == line.number and t.y is not None]
        tried.append(0.0)

        def best(grid: Array) -> float:
            free = grid[np.abs(grid[:, None] - np.array(tried)).min(axis=1) >= gap]
            grid = free if len(free) else grid
            found = gp.marginals(torch.from_numpy(line.at(grid)))
            return float(grid[int(torch.argmin(found.mean[0] - self.width * found.variance[0].sqrt()))])

        coarse = best(np.linspace(low, high, 501))
        step = (high - low) / 500
        t = best(np.clip(np.linspace(coarse - step, coarse + step, 101), low, high))
        return t, np.clip(line.at(np.array([t]))[0], -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Line:
    """A line of the cube: an evaluated point and a direction."""

    number: int
    anchor: Trial
    u: Array  # D

    def at(self, t: Array) -> Array:
        """m -> m x D"""
        x: Array = self.anchor.x + t[:, None] * self.u
        return x

    def ends(self) -> tuple[float, float]:
        """Where it leaves the cube, on both sides of the anchor."""
        moving = np.abs(self.u) > 1e-12
        a, u = self.anchor.x[moving], self.u[moving]
        to_low, to_high = (-1.0 - a) / u, (1.0 - a) / u
        return float(np.minimum(to_low, to_high).max()), float(np.maximum(to_low, to_high).min())


@dataclass(frozen=True)
class CoordinateLineBO(LineBO):
    """Lines along one parameter at a time, drawn at random: the choice where parameters act on their own."""

    name: ClassVar[str] = "coordinate-linebo"
    title: ClassVar[str] = "CoordinateLineBO"

    def direction(self, gp: ARDGP, x: Array, seed: int) -> Array:
        u = np.zeros(len(x))
        u[generator(seed, "axis").integers(len(x))] = 1.0
        return u


@dataclass(frozen=True)
class RandomLineBO(LineBO):
    """Lines in uniformly random directions: the one whose rate depends on the effective dimension, not on D."""

    name: ClassVar[str] = "random-linebo"
    title: ClassVar[str] = "RandomLineBO"

    def direction(self, gp: ARDGP, x: Array, seed: int) -> Array:
        return _pointing_inside(generator(seed, "sphere").standard_normal(len(x)), x)


@dataclass(frozen=True)
class DescentLineBO(LineBO):
    """Lines along a gradient drawn from the process at the incumbent: steep where it knows, exploring where not."""

    name: ClassVar[str] = "descent-linebo"
    title: ClassVar[str] = "DescentLineBO"

    def direction(self, gp: ARDGP, x: Array, seed: int) -> Array:
        mean, covariance = gp.gradient(x)
        draw = generator(seed, "gradient").standard_normal(len(x))
        values, vectors = np.linalg.eigh(covariance)
        g = mean + vectors @ (np.sqrt(np.maximum(values, 0.0)) * draw)
        return _pointing_inside(-g, x)


def _pointing_inside(g: Array, x: Array) -> Array:
    """The direction without the parts that leave the cube at once, of unit length: else a face would end every line."""
    blocked = ((x >= 1.0 - 1e-9) & (g > 0)) | ((x <= -1.0 + 1e-9) & (g < 0))
    u: Array = np.where(blocked, 0.0, g)
    if not np.any(u):
        u = -g
    unit: Array = u / np.linalg.norm(u)
    return unit
