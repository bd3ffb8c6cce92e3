"""Advice on the size of an embedding: its chance of containing an optimum against what a budget lets it learn.

The paper's rule (Supplement, "Selecting the Embedding Dimension"): the highest d_e that the budget supports, because
the chance rises with d_e while learning slows down. It names two points, 8 to 10 for 50 evaluations
and 15 to 20 for 500.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from .._errors import InputError, MissingPartError
from .containment import _whole, containment_probability

_SPREAD = (2, 4, 6, 8, 10)  # numbers of active variables shown when nobody knows theirs
_ENOUGH = 0.95  # a chance beyond which more dimensions only cost
_LIVE_DRAWS = 100


@dataclass(frozen=True)
class Row:
    """One size of embedding: what it may contain, and what it costs to learn."""

    dim: int
    probability: dict[int, float | None]  # number of active variables -> chance; None where dim is below it
    parameters: int  # of the kernel: d_e (d_e + 1) / 2 entries of Gamma, variance, noise and mean
    share: (
        float  # of the budget that is as large as the number of parameters; above 1 there are more unknowns than data
    )

    @property
    def cost(self) -> str:
        """The cost of learning, in words."""
        if self.share <= 0.25:
            return "learns in the first quarter"
        if self.share <= 0.5:
            return "learns in the first half"
        return "learns late" if self.share <= 1.0 else "more unknowns than evaluations"


@dataclass(frozen=True)
class Advice:
    """Sizes of embedding side by side, a recommendation and its reason. Prints as a table; `plot` draws it."""

    D: int
    budget: int
    active: tuple[int, ...]
    rows: tuple[Row, ...]
    supported: int  # the largest dim that the budget supports
    recommendation: int
    reason: str
    source: str  # where the probabilities come from

    def table(self) -> str:
        """The rows in columns, the recommended one marked."""
        head = "dim  " + "  ".join(f"{f'd={a}':>5}" for a in self.active) + "  unknowns  of budget  learning"
        lines = [
            f"Chance that a hypersphere embedding of {self.D} parameters contains an optimum, when d of them matter;",
            f"unknowns of the model against a budget of {self.budget} evaluations:",
            "",
            "  " + head,
        ]
        for row in self.rows:
            chances = "  ".join(f"{_percent(row.probability[a]):>5}" for a in self.active)
            mark = ">" if row.dim == self.recommendation else " "
            lines.append(f"{mark} {row.dim:3d}  {chances}  {row.parameters:8d}  {row.share:9.0%}  {row.cost}")
        return "\n".join(lines)

    def __str__(self) -> str:
        words = textwrap.fill(f"Recommended: dim={self.recommendation}. {self.reason} ({self.source})", 100)
        return f"{self.table()}\n\n{words}"

    def plot(self, target: Any = None) -> Any:
        """Draw on a matplotlib axes, or into the file of that name, or on a new axes; returns the axes."""
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingPartError('A picture needs matplotlib: pip install "alebo[plot]"') from error

        to_file = isinstance(target, str | Path)
        if target is None or to_file:
            figure = Figure(figsize=(7.2, 4.4), layout="constrained")
            axes = figure.subplots()
        else:
            axes = target
        shades = np.linspace(0.85, 0.25, len(self.active))
        for a, shade in zip(self.active, shades, strict=True):
            known = [(row.dim, p) for row in self.rows if (p := row.probability[a]) is not None]
            x, y = [k[0] for k in known], [k[1] for k in known]
            axes.plot(x, y, "o-", ms=4, lw=1.6, color=(0.1 * shade, 0.75 * shade, 0.35 + 0.5 * shade), label=f"{a}")
        limit = self.supported + 0.5
        right = max(self.rows[-1].dim + 0.5, limit + 0.5)
        axes.axvspan(limit, right, color="0.5", alpha=0.15, lw=0)
        axes.text(
            right - 0.2,
            0.03,
            f"too many for\n{self.budget} evaluations",
            ha="right",
            va="bottom",
            fontsize=9,
            color="0.35",
        )
        axes.axvline(self.recommendation, color="tab:red", ls="--", lw=1.4)
        axes.text(
            self.recommendation - 0.15, 1.06, f"recommended: {self.recommendation}",
            ha="right" if self.recommendation > 5 else "left", color="tab:red", fontsize=9,
        )  # fmt: skip
        axes.set(
            xlim=(min(self.rows[0].dim, self.recommendation) - 0.5, right),
            ylim=(-0.03, 1.14),
            yticks=np.linspace(0, 1, 6),
            xlabel="dimension of the embedding",
            ylabel="chance of containing an optimum",
            xticks=[row.dim for row in self.rows],
            title=f"{self.D} parameters, {self.budget} evaluations",
        )
        axes.legend(title="active", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        if to_file:
            figure.savefig(target, dpi=130)
        return axes


def advise(
    D: int,
    budget: int,
    *,
    active: int | Sequence[int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Advice:
    """Which dimension to give an embedding of D parameters, for a budget of evaluations.

    `active` is the number of variables that matter, or several to consider, where something is known of it. Common
    sizes are answered from a shipped table; beyond it, chances are computed, which takes up to minutes (`progress`
    is called with the rows done and in all).

    Args:
        D: How many parameters there are.
        budget: How many evaluations you can afford.
        active: How many parameters matter, one number or several to consider; None: not known.
        progress: Called with (rows done, rows in all).

    Returns:
        The recommended dimension, and a table of the others.

    >>> import alebo
    >>> alebo.advise(D=100, budget=50).recommendation
    9
    """
    D, budget = _whole(D, "D"), _whole(budget, "budget")
    given = active is not None
    wanted = _SPREAD if active is None else (active,) if isinstance(active, int | np.integer) else tuple(active)
    numbers = tuple(sorted({_whole(a, "active") for a in wanted}))
    if active is None:
        numbers = tuple(a for a in numbers if a <= D) or (1,)
    if not numbers or numbers[-1] > D:
        raise InputError(
            f"`active` is at most D; got active={wanted}, D={D}. Count the parameters that matter among all."
        )
    supported = supported_dim(D, budget)
    sizes, actives, _, _ = _table()
    live = sizes[-1] < D or numbers[-1] > actives[-1]  # drawn now, so of fewer sizes
    dims = (4, 8, 12, 16, 20) if live else (2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 25, 30)
    shown = {d for d in dims if d <= min(D, 1.5 * supported)} | {supported}
    chance = cache(lambda a, dim: probability(D, a, dim))
    # enough is enough: the smallest dim with a good chance for all the numbers considered, where one is below the limit
    below = sorted(shown) if live else range(1, supported)
    good = [dim for dim in below if dim < supported and (chance(numbers[-1], dim) or 0.0) >= _ENOUGH]
    choice = good[0] if good else supported
    shown.add(choice)
    for done, dim in enumerate(sorted(shown), 1):
        for a in numbers:
            chance(a, dim)
        if progress is not None:
            progress(done, len(shown))
    rows = tuple(
        Row(dim, {a: chance(a, dim) for a in numbers}, parameters(dim), parameters(dim) / budget)
        for dim in sorted(shown)
    )
    source = f"Chances from {_LIVE_DRAWS if live else _draws()} draws a cell{' made now' if live else ''}."
    reason = _reason(D, budget, numbers, given, supported, choice, {a: chance(a, choice) for a in numbers})
    return Advice(D, budget, numbers, rows, supported, choice, reason, source)


def parameters(dim: int) -> int:
    """Unknowns of the model in an embedding: the symmetric Gamma, the signal's variance, the noise and the mean."""
    return dim * (dim + 1) // 2 + 3


def supported_dim(D: int, budget: int) -> int:
    """The largest d_e that a budget supports: the power law through the paper's two points.

    These are 9 (8 to 10) at 50 evaluations and 18 (15 to 20) at 500. Never above 20, which
    the paper calls the maximum that Bayesian optimization supports, nor above D.
    """
    return max(1, min(D, 20, round(9.0 * math.pow(budget / 50.0, math.log10(2.0)))))


def _reason(
    D: int,
    budget: int,
    numbers: tuple[int, ...],
    given: bool,
    supported: int,
    choice: int,
    chance: dict[int, float | None],
) -> str:
    held = [f"{_percent(chance[a])} with {a} active" for a in numbers if chance[a] is not None]
    over = [a for a in numbers if a > choice]
    parts = []
    if choice == D:
        parts.append(f"All {D} parameters fit the budget of {budget} evaluations, so no embedding is needed.")
    elif choice < supported:
        parts.append(
            f"It contains an optimum with a chance of {_percent(chance[numbers[-1]])} for {numbers[-1]} active "
            f"variables; the budget of {budget} would support {supported}, but more dimensions only slow the learning."
        )
    else:
        parts.append(f"It is the highest dimension that {budget} evaluations support, and the chance rises with it.")
        if held:
            parts.append(f"Chance of containing an optimum: {', '.join(held)}.")
    if over:
        parts.append(
            f"With {' or '.join(map(str, over))} active variables it cannot contain the optimum, only good points near "
            "it: a larger budget would help."
        )
    elif choice < D and given and (chance[numbers[-1]] or 0.0) < 0.5:
        parts.append("That is less than even: expect a good point rather than the optimum, or let the embedding grow.")
    if choice < D:
        parts.append("dim may also be left out: ALEBO starts small and grows by itself.")
    return " ".join(parts)


def _percent(p: float | None) -> str:
    if p is None:
        return "-"
    return "<1 %" if p < 0.005 else ">99 %" if p >= 0.995 else f"{100 * p:.0f} %"


# --- probabilities from the shipped table


def probability(D: int, active: int, dim: int) -> float | None:
    """The chance for one cell: interpolated in the shipped table, drawn outside it; None for dim < active."""
    if dim < active:
        return None
    if dim >= D:
        return 1.0
    sizes, actives, dims, known = _table()
    if sizes[-1] < D or active > actives[-1] or dim > dims[-1]:
        return containment_probability("hypersphere", D=D, active=active, dim=dim, samples=_LIVE_DRAWS).value
    near = [d for d in _around(dims, dim) if d >= active]
    return float(np.interp(dim, near, [_at(known, sizes, D, active, d) for d in near]))


def _at(known: dict[tuple[int, int, int], float], sizes: list[int], D: int, active: int, dim: int) -> float:
    """The chance at a tabulated dim: linear in log D, from D = dim upwards, where the embedding is everything."""
    nodes = {dim: 1.0} | {size: known[size, active, dim] for size in sizes if (size, active, dim) in known}
    return float(np.interp(np.log(D), np.log(list(nodes)), list(nodes.values())))


def _around(grid: list[int], value: int) -> list[int]:
    """The tabulated numbers next to `value`: itself where it is one."""
    if value in grid:
        return [value]
    i = int(np.searchsorted(grid, value))
    return grid[max(0, i - 1) : i + 1]


@cache
def _shipped() -> dict[str, Any]:
    shipped: dict[str, Any] = json.loads((files("alebo") / "data" / "containment.json").read_text())
    return shipped


def _draws() -> str:
    """How many draws stand behind a cell of the table."""
    draws = _shipped()["samples"].values()
    return f"{min(draws)} to {max(draws)}"


@cache
def _table() -> tuple[list[int], list[int], list[int], dict[tuple[int, int, int], float]]:
    """Tabulated D, active and dim, and the chance of each cell."""
    draws = _shipped()["samples"]
    known = {(D, a, dim): hits / draws[str(D)] for D, a, dim, hits in _shipped()["hits"]}
    sizes, actives, dims = (sorted({key[i] for key in known}) for i in range(3))
    return sizes, actives, dims, known
