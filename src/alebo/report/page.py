"""The report's data as one HTML page, by a template."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from .._errors import MissingPartError
from ..diagnostics import diagnose
from ..history import Span, Trial
from ..plots._style import Run
from .content import content, finite

BLOCKS = (
    "head",
    "found",
    "verdicts",
    "front",
    "numbers",
    "go",
)  # parts of the page that are text; a live page replaces them


@cache
def _templates() -> Any:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError:
        raise MissingPartError('A report needs Jinja2. Install it: pip install "alebo[plot]".') from None
    return Environment(loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined, trim_blocks=True)


def _read(name: str) -> str:
    return (files("alebo") / "data" / "report" / name).read_text(encoding="utf-8")


def blocks(data: Mapping[str, Any], written: str) -> dict[str, str]:
    """The parts of the page that are text, as HTML."""
    made = _templates().get_template("blocks.html").make_module({"d": data, "written": written})
    return {name: str(getattr(made, name)()) for name in BLOCKS}


def embedded(data: Any) -> str:
    """JSON that can stand inside a script element, whatever text it holds."""
    text = json.dumps(finite(data), allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def stamp(now: datetime | None = None) -> str:
    """The time, for people."""
    return (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")


def shown(data: Mapping[str, Any]) -> dict[str, Any]:
    """What the page's script needs of the data."""
    return {k: data[k] for k in ("name", "figures", "parameters", "trials", "chosen", "front")}


def render(data: Mapping[str, Any], *, written: str | None = None, live: Mapping[str, Any] | None = None) -> str:
    """The data as one self-contained HTML page; `live` holds the version and the seconds between two looks."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise MissingPartError('A report needs plotly. Install it: pip install "alebo[plot]".') from None
    from markupsafe import Markup

    page = _templates().get_template("page.html")
    return str(
        page.render(
            name=data["name"],
            blocks={k: Markup(v) for k, v in blocks(data, written or stamp()).items()},
            style=Markup(_read("page.css")),
            script=Markup(_read("page.js")),
            plotly=Markup(get_plotlyjs().replace("</script", "<\\/script")),
            data=Markup(embedded({**shown(data), "live": None if live is None else dict(live)})),
        )
    )


def write_report(
    path: str | Path,
    run: Run,
    *,
    name: str = "study",
    where: str = "study.toml",
    best: Trial | None = None,
    spans: Sequence[Span] = (),
) -> dict[str, Any]:
    """Fit and judge the models of a run, and write its report.

    Args:
        path: The HTML file.
        run: An Optimizer or a Study.
        name: The title.
        where: How the command line names the study.
        best: The best trial, where a model chooses it; None: the incumbent by measured values.
        spans: When and by whom trials were evaluated, where it is known.

    Returns:
        The data in the page.
    """
    said = (
        diagnose(run.history, run.space, run.goals, method=run.method, seed=run.seed) if run.history.complete else None
    )
    data = content(run, diagnosis=said, name=name, where=where, best=best, spans=spans)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(render(data), encoding="utf-8")
    return data
