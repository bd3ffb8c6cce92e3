"""Figures of the models: how well they predict, what matters, and how the objective depends on named parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._errors import InputError
from ..diagnostics import Diagnosis, Importance, diagnose, fit_models, importances, sparse_model
from ..history import Trial
from ..space import Categorical
from ._style import BLUE, GREY, PALE, RED, Run, figure, graph_objects, label, labels, parameter, says
from .data import fit_data
from .named import centre, contour_data, is_log, predictor, slice_data

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

TOP = 15  # parameters in the figure of importances, and all that are certain
FEW = "Too few trials for a model of all parameters: {n} of 15 that it needs."
BAND = "rgba(59,130,246,0.20)"


def predicted(run: Run, outcome: str | None = None, *, diagnosis: Diagnosis | None = None) -> Figure:
    """What the method's model predicts for each trial without having seen it, against what was observed.

    Args:
        run: An Optimizer or a Study.
        outcome: An outcome; None: the first objective.
        diagnosis: What `diagnose` gave, where it was called before.
    """
    go = graph_objects()
    name = run.goals.objectives[0].outcome if outcome is None else outcome
    if name not in run.goals.outcomes:
        raise InputError(f"`outcome` is one of {list(run.goals.outcomes)}; got {name!r}.")
    found = diagnosis or diagnose(run.history, run.space, run.goals, method=run.method, seed=run.seed)
    fit = next((f for f in found.fits if f.outcome == name), None)
    if fit is None:
        why = (
            f"{found.title} has no model of the whole space."
            if not found.modelled
            else "There is no model to judge yet."
        )
        return says(why)
    d = fit_data(fit)
    both = np.array([d["observed"], d["predicted"]])
    low, high = float(both.min()), float(both.max())
    pad = 0.06 * (high - low or 1.0)
    ends = [low - pad, high + pad]
    diagonal = go.Scatter(x=ends, y=ends, mode="lines", line={"color": GREY, "dash": "dash"}, hoverinfo="skip")
    points = go.Scatter(
        x=d["observed"],
        y=d["predicted"],
        mode="markers",
        marker={"color": BLUE, "size": 6},
        error_y={"type": "data", "array": d["error"], "color": "rgba(59,130,246,0.3)", "thickness": 1, "width": 0},
        hovertemplate="observed %{x:.5g}<br>predicted %{y:.5g} ± %{error_y.array:.2g}<extra></extra>",
    )
    words = f"R² {d['r2']:.2f}, {d['coverage']:.0%} inside their 95 % interval"
    made = figure([diagonal, points], x=f"observed {label(name)}", y="predicted", showlegend=False)
    made.update_layout(xaxis={"range": ends}, yaxis={"range": [low - 4 * pad, high + 4 * pad]})
    made.add_annotation(
        text=words, x=0, y=1.02, xref="paper", yref="paper", xanchor="left", yanchor="bottom", showarrow=False
    )
    return made


def importance(run: Run, *, diagnosis: Diagnosis | None = None, most: int = TOP) -> Figure:
    """How much each parameter matters to the first objective; those that matter beyond chance in full colour.

    Args:
        run: An Optimizer or a Study.
        diagnosis: What `diagnose` gave, where it was called before.
        most: How many parameters to show; all that are certain are shown in any case.
    """
    go = graph_objects()
    found = diagnosis.importance if diagnosis is not None else _importance(run)
    if not found:
        return says(FEW.format(n=len(run.history.complete)))
    certain = [s for s in found if s.certain]
    rows = [s for i, s in enumerate(found) if s.certain or i < most][::-1]
    spread: dict[str, Any] = {}
    if all(s.low is not None and s.high is not None for s in rows):
        up = [max(0.0, (s.high or 0.0) - s.share) for s in rows]
        down = [max(0.0, s.share - (s.low or 0.0)) for s in rows]
        spread["error_x"] = {
            "type": "data",
            "symmetric": False,
            "array": up,
            "arrayminus": down,
            "color": GREY,
            "thickness": 1.2,
        }
    bars = go.Bar(
        x=[s.share for s in rows],
        y=labels([s.name for s in rows]),
        orientation="h",
        marker={
            "color": [BLUE if s.certain else PALE for s in rows],
            "opacity": [1.0 if s.certain else 0.45 for s in rows],
        },
        text=["certain" if s.certain else "not certain" for s in rows],
        textposition="none",
        hovertemplate="%{y}: %{x:.1%}, %{text}<extra></extra>",
        **spread,
    )
    words = f"Certain: {len(certain)} of {len(found)} (full colour)"
    if not certain:
        words = "No parameter is certain to matter yet"
    made = figure([bars], x="share of the model's slope", showlegend=False, height=max(240, 110 + 22 * len(rows)))
    made.update_layout(
        xaxis={"tickformat": ".0%", "rangemode": "tozero"}, yaxis={"type": "category", "dtick": 1, "title": None}
    )
    made.add_annotation(
        text=words, x=0, y=1.0, xref="paper", yref="paper", xanchor="left", yanchor="bottom", showarrow=False
    )
    return made


def _importance(run: Run) -> tuple[Importance, ...]:
    fitted = fit_models(run.history, run.space, run.goals, method=run.method, seed=run.seed)
    sparse = sparse_model(run.history, run.space, run.goals)
    return importances(run.space, run.goals, fitted, sparse, seed=run.seed)[0]


def slices(
    run: Run,
    name: str,
    *,
    outcome: str | None = None,
    at: int | Trial | None = None,
    diagnosis: Diagnosis | None = None,
) -> Figure:
    """How an outcome depends on one parameter, with its uncertainty, all others as in one trial.

    Args:
        run: An Optimizer or a Study.
        name: The parameter.
        outcome: Which outcome; None: the first objective.
        at: The trial, or its number, that gives the other values; None: the incumbent.
        diagnosis: What `diagnose` gave, where it was called before.
    """
    go = graph_objects()
    p, first = parameter(run.space, name), outcome or run.goals.objectives[0].outcome
    predict, point = predictor(run, diagnosis, first), centre(run, at)
    if predict is None or point is None:
        return says(FEW.format(n=len(run.history.complete)))
    d = slice_data(predict, run.space, point.params, name)
    complete = run.history.complete
    where, seen, ticks = _axis(run, name, d["at"], (*complete, point))
    dots = {"color": GREY, "size": 5, "opacity": 0.55}
    observed = go.Scatter(
        x=seen[:-1],
        y=[t.outcomes[first].mean for t in complete],
        text=[t.number for t in complete],
        mode="markers",
        name="all trials (other values differ)",
        marker=dots,
        hovertemplate="trial %{text}: %{y:.5g}<extra></extra>",
    )
    model = _model_traces(where, d["mean"], np.array(d["sd"]), choices=isinstance(p, Categorical))
    star = {"symbol": "star", "size": 14, "color": RED}
    best = [t for t in [point] if first in t.outcomes]
    marks = [
        go.Scatter(x=seen[-1:], y=[t.outcomes[first].mean], mode="markers", name=f"trial {t.number}", marker=star)
        for t in best
    ]
    made = figure([observed, *model, *marks], x=label(name), y=label(first))
    made.update_layout(xaxis=ticks)
    return made


def _model_traces(where: list[Any], mean: list[float], sd: NDArray[np.float64], *, choices: bool) -> list[Any]:
    """The model's mean with its 95 % interval: a line in a band, or a dot with a bar for each choice."""
    go = graph_objects()
    hover, half = "%{x}: %{y:.5g}<extra></extra>", 1.959964 * sd
    if choices:
        bars = {"type": "data", "array": half.tolist(), "color": BLUE}
        return [
            go.Scatter(
                x=where,
                y=mean,
                mode="markers",
                name="model, 95 %",
                error_y=bars,
                marker={"color": BLUE, "size": 9},
                hovertemplate=hover,
            )
        ]
    band = [*(mean + half).tolist(), *(mean - half).tolist()[::-1]]
    return [
        go.Scatter(
            x=[*where, *where[::-1]],
            y=band,
            fill="toself",
            fillcolor=BAND,
            line={"width": 0},
            name="95 %",
            hoverinfo="skip",
        ),
        go.Scatter(x=where, y=mean, mode="lines", name="model", line={"color": BLUE, "width": 3}, hovertemplate=hover),
    ]


def _axis(
    run: Run, name: str, values: list[Any], trials: Sequence[Trial]
) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """A parameter's values and those of the trials along an axis, and the axis: choices stand at 0, 1, 2, ..."""
    if not isinstance(parameter(run.space, name), Categorical):
        return values, [t.params[name] for t in trials], {"type": "log" if is_log(run.space, name) else "linear"}
    places = {repr(v): i for i, v in enumerate(values)}
    ticks = {"type": "linear", "tickvals": list(places.values()), "ticktext": labels(values)}
    return list(places.values()), [places[repr(t.params[name])] for t in trials], ticks


def contour(
    run: Run,
    x: str,
    y: str,
    *,
    outcome: str | None = None,
    at: int | Trial | None = None,
    diagnosis: Diagnosis | None = None,
) -> Figure:
    """How an outcome depends on two parameters, and how uncertain that is, all others as in one trial.

    Two buttons switch between the model's mean and its standard deviation.

    Args:
        run: An Optimizer or a Study.
        x: The parameter along the axis.
        y: The parameter up the axis.
        outcome: Which outcome; None: the first objective.
        at: The trial, or its number, that gives the other values; None: the incumbent.
        diagnosis: What `diagnose` gave, where it was called before.
    """
    go = graph_objects()
    first = outcome or run.goals.objectives[0].outcome
    for name in (x, y):
        parameter(run.space, name)
    predict, point = predictor(run, diagnosis, first), centre(run, at)
    if predict is None or point is None:
        return says(FEW.format(n=len(run.history.complete)))
    d = contour_data(predict, run.space, point.params, x, y)
    trials = (*run.history.complete, point)
    axes, placed, ticks = {}, {}, {}
    for side, name in (("x", x), ("y", y)):
        axes[side], placed[side], ticks[side] = _axis(run, name, d[side]["at"], trials)
    common: dict[str, Any] = {"x": axes["x"], "y": axes["y"], "line": {"width": 0.5, "color": "rgba(255,255,255,0.5)"}}
    bar = {"thickness": 12, "outlinewidth": 0, "len": 0.72, "y": 0, "yanchor": "bottom"}  # the toolbar is above it
    fields = [
        go.Contour(z=d["mean"], colorscale="Viridis", colorbar=bar, contours={"coloring": "heatmap"}, hovertemplate="%{x}, %{y}: %{z:.5g}<extra></extra>", **common),
        go.Contour(z=d["sd"], colorscale="Cividis", colorbar=bar, contours={"coloring": "heatmap"}, hovertemplate="%{x}, %{y}: ± %{z:.3g}<extra></extra>", visible=False, **common),
    ]  # fmt: skip
    dots = {"size": 5, "color": "white", "opacity": 0.75, "line": {"color": "#1b2430", "width": 1}}
    numbers = [f"trial {t.number}" for t in trials]
    hover = {"hovertemplate": "%{text}<extra></extra>"}
    dotted = go.Scatter(x=placed["x"][:-1], y=placed["y"][:-1], text=numbers[:-1], mode="markers", marker=dots, **hover)
    star = {"symbol": "star", "size": 16, "color": RED, "line": {"color": "white", "width": 1}}
    best = go.Scatter(x=placed["x"][-1:], y=placed["y"][-1:], text=numbers[-1:], mode="markers", marker=star, **hover)
    made = figure([*fields, dotted, best], x=label(x), y=label(y), showlegend=False)
    made.update_layout(xaxis=ticks["x"], yaxis=ticks["y"])
    button = {"method": "restyle"}
    menu = [
        {**button, "label": f"mean of {label(first, 24)}", "args": [{"visible": [True, False, True, True]}]},
        {**button, "label": "standard deviation", "args": [{"visible": [False, True, True, True]}]},
    ]
    place = {"x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom", "direction": "right", "pad": {"t": 0, "b": 4}}
    made.update_layout(updatemenus=[{"type": "buttons", "buttons": menu, "showactive": True, **place}])
    return made
