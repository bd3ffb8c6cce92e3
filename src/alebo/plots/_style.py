"""What all figures share: colours that are legible on light and dark pages, and names that are always text."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .._errors import InputError, MissingPartError
from ..goals import Goals
from ..history import History
from ..methods import Method
from ..space import Space

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

BLUE, PALE, GREY, AMBER, RED, GREEN = "#3b82f6", "#9db4d6", "#8d99a8", "#d9942a", "#d64550", "#2e9e5b"
SERIES = (BLUE, AMBER, GREEN, RED, "#8b5cf6", "#14a3a8", "#c2659e", GREY)
LONGEST = 48  # characters of a name that a figure shows


class Run(Protocol):
    """What a figure is drawn of: an `Optimizer` or a `Study`."""

    space: Space
    goals: Goals
    method: Method
    seed: int

    @property
    def history(self) -> History:
        """All trials so far."""


def label(text: object, longest: int = LONGEST) -> str:
    """A name as plain text for Plotly, which reads HTML tags in its labels.

    Tags are escaped, control characters and newlines are shown as spaces, text that runs from right to left is isolated so
    that it does not reorder its neighbours, and a long name is shortened in the middle.
    """
    plain = re.sub(r"\s+", " ", "".join(c if unicodedata.category(c) not in ("Cc", "Cs") else " " for c in str(text)))
    plain = re.sub("[\u202a-\u202e\u2066-\u2069]", "", plain).strip() or " "
    if len(plain) > longest:
        plain = f"{plain[: longest // 2]}…{plain[-(longest - longest // 2 - 1) :]}"
    if any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in plain):
        plain = f"\u2068{plain}\u2069"
    return html.escape(plain, quote=False)


def labels(names: Sequence[object]) -> list[str]:
    """Names as text, made different where shortening has made two of them equal."""
    out: list[str] = []
    for name in names:
        text = label(name)
        n = sum(o == text or o.startswith(f"{text} (") for o in out)
        out.append(f"{text} ({n + 1})" if text in out else text)
    return out


def figure(traces: Sequence[Any], *, x: str = "", y: str = "", **layout: Any) -> Figure:
    """A figure in the common style; `x` and `y` are the titles of its axes, already text."""
    go = graph_objects()
    made = go.Figure(data=list(traces))
    grid = {"gridcolor": "rgba(128,140,160,0.22)", "zeroline": False, "automargin": True}
    made.update_layout(
        margin={"l": 60, "r": 24, "t": 44, "b": 48},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 13, "color": "#6b7685"},
        hovermode="closest",
        hoverlabel={"namelength": -1},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        modebar={"orientation": "v", "bgcolor": "rgba(0,0,0,0)"},
        xaxis=grid | ({"title": {"text": x}} if x else {}),
        yaxis=grid | ({"title": {"text": y}} if y else {}),
    )
    made.update_layout(**layout)
    return made


def graph_objects() -> Any:
    """Plotly's figures, or the way to install them."""
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise MissingPartError('A figure needs plotly. Install it: pip install "alebo[plot]".') from None
    return go


def says(text: str) -> Figure:
    """An empty figure that says why there is nothing to show."""
    note = {"text": label(text, 400), "showarrow": False, "x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
    return figure([], annotations=[note], xaxis={"visible": False}, yaxis={"visible": False})


def parameter(space: Space, name: str) -> Any:
    """The parameter of this name."""
    for p in space.parameters:
        if p.name == name:
            return p
    import difflib

    near = difflib.get_close_matches(name, space.names, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    raise InputError(f"A figure's parameter is one of the space; got {name!r}. {hint}There are {len(space)}.")
