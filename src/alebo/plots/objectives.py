"""Figures of a run with several objectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._errors import InputError
from ._style import BLUE, GREY, Run, figure, graph_objects, label, says
from .data import front_data, hypervolume_data

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def front(run: Run, *, x: str | None = None, y: str | None = None) -> Figure:
    """The Pareto front: two objectives of all feasible trials, the Pareto-optimal ones joined.

    Args:
        run: An Optimizer or a Study with several objectives.
        x: The objective along the axis; None: the first.
        y: The objective up the axis; None: the second.
    """
    go = graph_objects()
    d = front_data(run.history, run.goals, run.space)
    if d is None:
        raise InputError("A front needs several objectives; this run has one. Use trace().")
    if not d["number"]:
        return says("No trial is feasible yet.")
    names = d["outcomes"]
    i, j = (names.index(_objective(n, names)) for n in (x or names[0], y or names[1]))
    values, on = np.array(d["values"]), np.array(d["front"])
    order = np.flatnonzero(on)[np.argsort(values[on, i])]
    hover = f"trial %{{text}}<br>{label(names[i])} %{{x:.5g}}<br>{label(names[j])} %{{y:.5g}}<extra></extra>"
    other = go.Scatter(
        x=values[~on, i].tolist(),
        y=values[~on, j].tolist(),
        text=[d["number"][k] for k in np.flatnonzero(~on)],
        mode="markers",
        name="other trials",
        marker={"color": GREY, "size": 6, "opacity": 0.6},
        hovertemplate=hover,
    )
    best = go.Scatter(
        x=values[order, i].tolist(),
        y=values[order, j].tolist(),
        text=[d["number"][k] for k in order],
        mode="lines+markers" if len(names) == 2 else "markers",
        name="Pareto front",
        line={
            "shape": "hv" if run.goals.objectives[i].sign == run.goals.objectives[j].sign > 0 else "linear",
            "color": BLUE,
        },
        marker={"size": 9, "color": BLUE},
        hovertemplate=hover,
    )
    return figure([other, best], x=label(names[i]), y=label(names[j]))


def _objective(name: str, names: list[str]) -> str:
    if name not in names:
        raise InputError(f"An axis of the front is an objective; got {name!r}. There are {names}.")
    return name


def hypervolume(run: Run) -> Figure:
    """The hypervolume that the front dominates, after each trial.

    Args:
        run: An Optimizer or a Study with several objectives.
    """
    go = graph_objects()
    d = hypervolume_data(run.history, run.goals, run.space)
    if d is None:
        raise InputError("A hypervolume needs several objectives; this run has one. Use trace().")
    if d["reference"] is None:
        return says("No trial is feasible yet.")
    line = {"shape": "hv", "color": BLUE, "width": 3}
    hover = "after trial %{x}: %{y:.5g}<extra></extra>"
    volume = go.Scatter(x=d["number"], y=d["volume"], mode="lines", line=line, hovertemplate=hover)
    names = [g.outcome for g in run.goals.objectives]
    at = ", ".join(f"{label(n)} {v:.4g}" for n, v in zip(names, d["reference"], strict=True))
    made = figure([volume], x="trial", y="hypervolume", showlegend=False, yaxis={"rangemode": "tozero"})
    made.add_annotation(
        text=f"up to {at}", x=0, y=1.02, xref="paper", yref="paper", xanchor="left", yanchor="bottom", showarrow=False
    )
    return made
