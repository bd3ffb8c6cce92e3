"""Parallel coordinates of the most important parameters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..diagnostics import Diagnosis
from ..history import counts
from ..space import Categorical, Fixed, Space
from ._style import BLUE, GREY, Run, figure, graph_objects, label, labels, parameter, says
from .data import position
from .model import _importance

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST = 7  # parameters side by side
GROUPS = ("rgba(141,153,168,0.20)", "rgba(141,153,168,0.35)", "rgba(99,148,216,0.45)", "rgba(59,130,246,0.65)")


def parallel_data(run: Run, names: Sequence[str]) -> dict[str, Any]:
    """Where every feasible trial lies in the range of each named parameter (0 to 1) and in its objective, best last."""
    goal = run.goals.objectives[0]
    good = [t for t in run.history if counts(t, run.goals, run.space)]
    good.sort(key=lambda t: -goal.sign * t.outcomes[goal.outcome].mean)
    columns = {n: [_position(run.space, n, t.params[n]) for t in good] for n in names}
    values = [t.outcomes[goal.outcome].mean for t in good]
    return {"outcome": goal.outcome, "number": [t.number for t in good], "value": values, "at": columns}


def _position(space: Space, name: str, value: Any) -> float:
    p = parameter(space, name)
    if isinstance(p, Categorical):
        return [repr(c) for c in p.choices].index(repr(value)) / max(1, len(p.choices) - 1)
    return 0.5 if isinstance(p, Fixed) else position(p, float(value))


def _ends(space: Space, name: str) -> tuple[str, str]:
    p = parameter(space, name)
    if isinstance(p, Categorical):
        return label(p.choices[0], 12), label(p.choices[-1], 12)
    return (f"{p.low:.4g}", f"{p.high:.4g}") if not isinstance(p, Fixed) else ("", "")


def parallel(run: Run, names: Sequence[str] | None = None, *, diagnosis: Diagnosis | None = None) -> Figure:
    """Every feasible trial as a line through the values of a few parameters and its objective; better trials are bluer.

    Args:
        run: An Optimizer or a Study.
        names: The parameters; None: those that matter most.
        diagnosis: What `diagnose` gave, where it was called before.
    """
    go = graph_objects()
    if names is None:
        found = diagnosis.importance if diagnosis is not None else _importance(run)
        free = [p.name for p in run.space.parameters if not isinstance(p, Fixed)]
        names = [s.name for s in found[:MOST]] or free[:MOST]
    d = parallel_data(run, names)
    n = len(d["number"])
    if n < 2:
        return says(f"Parallel coordinates need two feasible trials; there {'is' if n == 1 else 'are'} {n}.")
    low, high = min(d["value"]), max(d["value"])
    inner = [(v - low) / (high - low) if high > low else 0.5 for v in d["value"]]
    columns = [*d["at"].values(), inner]
    traces = []
    cuts = np.unique(np.linspace(0, n - 1, len(GROUPS) + 1).round().astype(int))
    for k, (start, stop) in enumerate(pairwise(cuts)):
        xs: list[float | None] = []
        ys: list[float | None] = []
        for i in range(start, stop):
            xs += [*range(len(columns)), None]
            ys += [*(c[i] for c in columns), None]
        colour = GROUPS[k + len(GROUPS) - (len(cuts) - 1)]
        traces.append(go.Scatter(x=xs, y=ys, mode="lines", line={"color": colour, "width": 1.2}, hoverinfo="skip"))
    best = [c[-1] for c in columns]
    goal = run.goals.objectives[0]
    words = f"trial {d['number'][-1]}: {label(goal.outcome)} {d['value'][-1]:.5g}"
    line = {"color": BLUE, "width": 3.5}
    traces.append(go.Scatter(x=list(range(len(columns))), y=best, mode="lines+markers", line=line, text=[words] * len(best), hovertemplate="%{text}<extra></extra>"))  # fmt: skip
    titles = [*labels(names), f"<b>{label(goal.outcome)}</b>"]
    made = figure(traces, showlegend=False)
    made.update_layout(
        xaxis={
            "tickvals": list(range(len(columns))),
            "ticktext": titles,
            "showgrid": False,
            "range": [-0.25, len(columns) - 0.75],
        },
        yaxis={"visible": False, "range": [-0.08, 1.1]},
    )
    ends = [*(_ends(run.space, name) for name in names), (f"{low:.4g}", f"{high:.4g}")]
    for i, pair in enumerate(ends):
        made.add_shape(type="line", x0=i, x1=i, y0=0, y1=1, line={"color": GREY, "width": 1})
        for text, at, anchor in ((pair[0], 0, "top"), (pair[1], 1, "bottom")):
            made.add_annotation(x=i, y=at, text=text, yanchor=anchor, showarrow=False, font={"size": 11})
    return made
