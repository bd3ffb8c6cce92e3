"""What the commands share: where words go (stderr), where results go (stdout), and results as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from .._text import printable
from .._urls import redact

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 30  # parameters that a terminal shows of a point
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document for scripts instead of words.")]


def out() -> Console:
    """Results: standard output, without wrapping long lines where it is no terminal."""
    from rich.console import Console

    return Console(highlight=False)


def err() -> Console:
    """Words about the work: standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def say(console: Console, text: str = "", style: str = "") -> None:
    """Plain words, without passwords and terminal escapes: wrapped at a terminal's edge, left alone in a file or a pipe."""
    console.print(printable(redact(text)), markup=False, soft_wrap=not console.is_terminal, style=style)


def plain(value: Any) -> Any:
    """The same data with what JSON knows only: NumPy numbers become numbers, what is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Sequence | set):
        return [plain(v) for v in value]
    return str(value)


def print_json(data: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(plain(data), indent=2, ensure_ascii=False))


def table(headers: Sequence[str], rows: Sequence[Sequence[Any]], *, right: Sequence[int] = ()) -> Any:
    """A small table without lines, for the terminal. Cells are text: a name like `w[layer]` is shown as it is."""
    from rich.table import Table
    from rich.text import Text

    t = Table(box=None, pad_edge=False, header_style="bold")
    for i, h in enumerate(headers):
        t.add_column(Text(printable(h)), justify="right" if i in right else "left", overflow="fold")
    for row in rows:
        t.add_row(*(Text(printable(str(v))) for v in row))
    return t


def cell(value: Any) -> str:
    """A value for people."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def measured(value: Any) -> str:
    """An outcome for people: 0.31 ± 0.02."""
    return f"{value.mean:.6g}" + (f" ± {value.sem:.2g}" if value.sem is not None else "")
