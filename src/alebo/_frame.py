"""A history as a table: one row for each trial, for pandas and for files."""

from __future__ import annotations

from typing import Any

from ._errors import MissingPartError
from .goals import Goals
from .history import History
from .space import Space


def table(history: History, space: Space, goals: Goals) -> tuple[list[str], list[list[Any]]]:
    """The columns (trial, state, parameters, outcomes, their standard errors, reason) and the rows."""
    columns: list[str] = []
    keys: list[tuple[str, str]] = [("trial", ""), ("state", "")]
    keys += [("param", n) for n in space.names] + [("outcome", n) for n in goals.outcomes]
    known = [n for n in goals.outcomes if any(n in t.outcomes and t.outcomes[n].sem is not None for t in history)]
    keys += [("sem", n) for n in known] + [("reason", "")]
    for kind, name in keys:
        word = name + "_sem" if kind == "sem" else name or kind
        while word in columns:  # a parameter called "state", an outcome called like a parameter
            word += "_"
        columns.append(word)
    rows = []
    for t in history:
        cells: dict[tuple[str, str], Any] = {("trial", ""): t.number, ("state", ""): t.state.value}
        cells[("reason", "")] = t.reason
        cells |= {("param", n): v for n, v in t.params.items()}
        cells |= {("outcome", n): o.mean for n, o in t.outcomes.items()}
        cells |= {("sem", n): o.sem for n, o in t.outcomes.items()}
        rows.append([cells.get(key) for key in keys])
    return columns, rows


def dataframe(history: History, space: Space, goals: Goals) -> Any:
    """The table as a pandas DataFrame."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingPartError(
            'A DataFrame needs pandas, which is not installed. Run: pip install "alebo[frame]"'
        ) from None
    columns, rows = table(history, space, goals)
    return pd.DataFrame(rows, columns=columns)
