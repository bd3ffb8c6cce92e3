"""Objects as a few lines of text, and as a small HTML table for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ._text import printable

SHOWN = 6  # parameters that are shown of a point

Rows = Sequence[tuple[str, str]]  # a word and what belongs to it


def number(value: Any) -> str:
    """A value for people: six digits of a float, everything else as it is written."""
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))[:60]


def measured(outcomes: Mapping[str, Any]) -> str:
    """loss = 0.31 ± 0.02, latency = 8.2"""
    parts = [
        f"{printable(k)} = {v.mean:.6g}" + (f" ± {v.sem:.2g}" if v.sem is not None else "") for k, v in outcomes.items()
    ]
    return ", ".join(parts)


def point(params: Mapping[str, Any], most: int = SHOWN) -> str:
    """gain = 0.41, layers = 3, and 98 more"""
    items = [f"{printable(k)} = {number(v)}" for k, v in list(params.items())[:most]]
    rest = len(params) - len(items)
    return ", ".join(items) + (f", and {rest} more" if rest else "")


def text(title: str, rows: Rows) -> str:
    """The title, and a line for each row."""
    width = max((len(word) for word, _ in rows), default=0)
    return "\n".join([title, *(f"  {word:<{width}}  {what}" for word, what in rows)])


def html(title: str, rows: Rows) -> str:
    """The same as a table; every text is escaped."""
    lines = "".join(
        f'<tr><th style="text-align:left">{escape(word)}</th><td style="text-align:left">{escape(what)}</td></tr>'
        for word, what in rows
    )
    return f"<table><caption style='text-align:left;white-space:nowrap'><b>{escape(title)}</b></caption>{lines}</table>"
