"""Figures of a run as it goes on: values, constraints, who evaluated what, dimension and arms."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import InputError
from ..history import Span
from ._style import AMBER, BLUE, GREEN, GREY, RED, SERIES, Run, figure, graph_objects, label, labels, says
from .data import arms_data, constraints_data, convergence_data, dimension_data, log_scale

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

AT_THE_AXIS = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}


def trace(run: Run, *, optimum: float | None = None) -> Figure:
    """The measured values and the incumbent after each trial; failed and infeasible trials are marked at the axis.

    Args:
        run: An Optimizer or a Study.
        optimum: The best value there can be, where it is known.
    """
    go = graph_objects()
    d = convergence_data(run.history, run.goals, run.space)
    if not d["number"]:
        return says("No trial has finished yet.")
    kinds = np.array(d["kind"])

    def chosen(kind: str, key: str) -> list[Any]:
        return [d[key][i] for i in np.flatnonzero(kinds == kind)]

    name = label(d["outcome"])
    traces = [
        go.Scatter(
            x=chosen("feasible", "number"),
            y=chosen("feasible", "value"),
            mode="markers",
            name="measured",
            marker={"color": GREY, "size": 6, "opacity": 0.7},
            hovertemplate="trial %{x}: %{y:.5g}<extra></extra>",
        ),
        go.Scatter(
            x=d["number"],
            y=d["best"],
            mode="lines",
            name="best so far",
            line={"shape": "hv", "color": BLUE, "width": 3},
            hovertemplate="best after trial %{x}: %{y:.5g}<extra></extra>",
        ),
    ]
    traces += _at_the_axis(d, kinds, name)
    if optimum is not None:
        at = [d["number"][0], d["number"][-1]]
        line = {"color": RED, "dash": "dash", "width": 1}
        traces.append(go.Scatter(x=at, y=[optimum] * 2, mode="lines", name=f"optimum {optimum:.4g}", line=line))
    made = figure(traces, x="trial", y=name, yaxis2=AT_THE_AXIS)
    _scale(made, d)
    _growth_lines(made, run)
    return made


def _at_the_axis(d: dict[str, Any], kinds: Any, name: str) -> list[Any]:
    """Markers along the lower axis for trials without a value that counts."""
    go = graph_objects()
    out = []
    for kind, words, symbol, colour, height in (
        ("failed", "failed", "x", RED, 0.012),
        ("infeasible", "breaks a constraint", "triangle-up-open", AMBER, 0.04),
    ):
        rows = np.flatnonzero(kinds == kind)
        if not len(rows):
            continue
        what = [
            label(d["reason"][i] or "no reason given", 90) if kind == "failed" else f"{name} {d['value'][i]:.5g}"
            for i in rows
        ]
        out.append(
            go.Scatter(
                x=[d["number"][i] for i in rows],
                y=[height] * len(rows),
                yaxis="y2",
                mode="markers",
                name=words,
                text=what,
                marker={"color": colour, "symbol": symbol, "size": 8},
                cliponaxis=False,
                hovertemplate=f"trial %{{x}} {words}: %{{text}}<extra></extra>",
            )
        )
    return out


def _scale(made: Figure, d: dict[str, Any]) -> None:
    """A logarithmic axis where it helps; else a range that a few extreme values do not stretch, and words about them."""
    values = [v for v, k in zip(d["value"], d["kind"], strict=True) if k == "feasible" and v is not None]
    best = [v for v in d["best"] if v is not None]
    if log_scale(values, best):
        decades = max(values) >= 100.0 * min(values)
        made.update_layout(yaxis={"type": "log", "dtick": 1 if decades else "D2"})
        return
    if len(values) < 10:
        return
    low, high = np.quantile(values, [0.05, 0.95])
    span = max(float(high - low), float(np.ptp(best)) if len(best) > 3 else 0.0, 1e-300)
    inside = [v for v in values if low - 3.0 * span <= v <= high + 3.0 * span]
    outside = len(values) - len(inside)
    if outside:
        ends = [min([*inside, best[-1]]), max([*inside, best[-1]])]
        pad = 0.06 * max(ends[1] - ends[0], 1e-300)
        made.update_layout(yaxis={"range": [ends[0] - pad, ends[1] + pad]})
        text = f"{outside} extreme value{'s' * (outside > 1)} outside; double-click shows all"
        made.add_annotation(
            text=text, x=1, y=1, xref="paper", yref="paper", xanchor="right", yanchor="top", showarrow=False
        )


def _growth_lines(made: Figure, run: Run) -> None:
    grown = (dimension_data(run.history) or {"grown": []})["grown"]
    for i, (number, dim) in enumerate(grown):
        made.add_shape(
            type="line", x0=number, x1=number, y0=0, y1=1, yref="paper", line={"color": GREY, "dash": "dot", "width": 1}
        )
        if len(grown) <= 12 or i == len(grown) - 1:
            text = {"text": f"d={dim}", "font": {"size": 10}, "showarrow": False}
            made.add_annotation(x=number, y=0.99, yref="paper", xanchor="left", yanchor="top", **text)


def constraint(run: Run, outcome: str) -> Figure:
    """The outcome of a constraint after every completed trial, with its bound.

    Args:
        run: An Optimizer or a Study.
        outcome: The name of an outcome that has a bound.
    """
    go = graph_objects()
    found = [c for c in constraints_data(run.history, run.goals) if c["outcome"] == outcome]
    if not found:
        known = [c.outcome for c in run.goals.constraints]
        raise InputError(f"`outcome` must be one that has a bound; got {outcome!r}. There are {known}.")
    colours = [GREEN if all(c["holds"][i] for c in found) else AMBER for i in range(len(found[0]["number"]))]
    values = go.Scatter(
        x=found[0]["number"],
        y=found[0]["value"],
        mode="markers",
        marker={"color": colours, "size": 6},
        hovertemplate="trial %{x}: %{y:.5g}<extra></extra>",
    )
    made = figure([values], x="trial", y=label(outcome), showlegend=False)
    for c in found:
        line = {"color": RED, "dash": "dash", "width": 1.5}
        made.add_shape(type="line", xref="paper", x0=0, x1=1, y0=c["bound"], y1=c["bound"], line=line)
        text = {"text": f"{label(outcome)} {c['relation']} {c['bound']:g}", "font": {"color": RED}, "showarrow": False}
        made.add_annotation(xref="paper", x=1, xanchor="right", y=c["bound"], yanchor="bottom", **text)
    return made


def shares(run: Run, *, window: int = 20) -> Figure:
    """The dimension of the embedding over time, and which share of recent proposals each arm made.

    Args:
        run: An Optimizer or a Study.
        window: Over how many proposals the shares are taken.
    """
    go = graph_objects()
    dims, arms = dimension_data(run.history), arms_data(run.history, window)
    if dims is None and arms is None:
        return says("The method notes neither a dimension nor an arm.")
    traces: list[Any] = []
    if arms is not None:
        for i, ((_, share), words) in enumerate(zip(arms["shares"].items(), labels(list(arms["shares"])), strict=True)):
            colour = SERIES[(i + 1) % len(SERIES)]
            band: dict[str, Any] = {"stackgroup": "arms", "fillcolor": colour, "opacity": 0.6, "yaxis": "y2"}
            hover = f"{words}: %{{y:.0%}} of the last {window}<extra></extra>"
            line = {"width": 0.5, "color": colour, "shape": "hv"}
            traces.append(
                go.Scatter(x=arms["number"], y=share, name=words, mode="lines", line=line, hovertemplate=hover, **band)
            )
    if dims is not None:
        line = {"shape": "hv", "color": BLUE, "width": 2.5}
        hover = "trial %{x}: %{y} dimensions<extra></extra>"
        traces.append(
            go.Scatter(x=dims["number"], y=dims["dim"], mode="lines", name="dimension", line=line, hovertemplate=hover)
        )
    right = {"overlaying": None, "range": [0, 1], "tickformat": ".0%", "title": {"text": "share of proposals"}}
    layout: dict[str, Any] = {}
    if arms is not None and dims is not None:
        layout = {"yaxis2": right | {"side": "right", "showgrid": False}, "yaxis": {"overlaying": "y2"}}
    elif arms is not None:
        layout = {"yaxis2": right | {"side": "left"}}
    made = figure(traces, x="trial", y="dimension" if dims is not None else "")
    made.update_layout(**layout)
    if dims is not None:
        made.update_layout(yaxis={"rangemode": "tozero"})
    return made


def timeline(spans: Sequence[Span], *, now: datetime | None = None) -> Figure:
    """When each worker evaluated which trial.

    Args:
        spans: One for each trial, as `Study.spans()` has them.
        now: Where a running trial ends in the picture; None: the present.
    """
    go = graph_objects()
    if not spans:
        return says("No times are stored for these trials.")
    present = now or datetime.now(UTC)
    rows = _lanes(spans, present)
    traces = []
    for state, colour in (("complete", BLUE), ("failed", RED), ("pending", GREY)):
        some = [s for s in spans if s.state == state]
        if not some:
            continue
        lengths = [((s.end or present) - s.start).total_seconds() for s in some]
        traces.append(
            go.Bar(
                base=[s.start.isoformat() for s in some],
                x=[max(1000.0 * t, 1.0) for t in lengths],
                y=[rows[s.number] for s in some],
                orientation="h",
                name={"pending": "running"}.get(state, state),
                text=[f"trial {s.number}, {t:.3g} s" for s, t in zip(some, lengths, strict=True)],
                textposition="none",
                hovertemplate="%{text}<extra></extra>",
                marker={"color": colour, "line": {"width": 0.6, "color": "rgba(255,255,255,0.7)"}},
            )
        )
    return figure(
        traces,
        x="time",
        xaxis={"type": "date"},
        yaxis={"type": "category", "title": {"text": "worker"}, "autorange": "reversed"},
        barmode="overlay",
        height=max(200, 110 + 26 * len(set(rows.values()))),
    )


def _lanes(spans: Sequence[Span], present: datetime) -> dict[int, str]:
    """The row of each trial, by number: one for a worker, or several where it evaluates several trials at a time."""
    workers = list(dict.fromkeys(s.worker for s in sorted(spans, key=lambda s: s.start)))
    names = dict(zip(workers, labels(workers), strict=True))
    busy: dict[str, list[datetime]] = {w: [] for w in workers}  # until when each row of a worker is taken
    lane: dict[int, tuple[str, int]] = {}
    for s in sorted(spans, key=lambda s: (s.start, s.number)):
        rows = busy[s.worker]
        free = next((i for i, until in enumerate(rows) if until <= s.start), len(rows))
        rows[free : free + 1] = [s.end or present]
        lane[s.number] = (s.worker, free)
    return {n: names[w] + (f" · {i + 1}" if len(busy[w]) > 1 else "") for n, (w, i) in lane.items()}
