"""Keeps docs/reproduction.md and docs/choosing.md true: the parts between markers are rewritten from results, everything else is left alone.

A part begins with `<!-- table: branin-100 -->` or `<!-- caption: fig5_traces -->`
or `<!-- summary: alebo -->` or `<!-- suite: real -->`, of named methods `<!-- suite: real of bo,sobol -->`, and ends with `<!-- end -->`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from alebo import AleboError, InputError

from . import figures, suite_page, tables
from ._clash import clash
from .problems import PAPER
from .results import Results, Run, load
from .standings import standings
from .suite import SHARED, how, suite

_PART = re.compile(r"<!-- (table|caption|summary|suite): (\S+?)( of \S+)? -->\n(.*?)<!-- end -->", flags=re.DOTALL)
_NOTHING = "Not run yet."
_MARKERS = (
    "<!-- table: PROBLEM -->, <!-- caption: FIGURE -->, <!-- summary: METHOD -->, <!-- suite: SUITE --> and "
    "<!-- suite: SUITE of METHOD,METHOD -->, each up to <!-- end -->"
)


class _Elsewhere(InputError):
    """The runs of a part are in another folder than the given one, which is not there."""


def refresh(page: Path, folder: Path, pictures: Path) -> list[str]:
    """Rewrite every marked part; returns a message for each part that has nothing to show yet.

    A part whose runs are in another folder, which is not there, stays as it is.
    """
    try:
        text = page.read_text()
    except OSError as error:
        raise InputError(f"The page must exist to be refreshed; {page} cannot be read: {error.strerror}.") from None
    if not _PART.search(text):
        raise InputError(f"A page is refreshed between markers; {page} has none. They are: {_MARKERS}.")
    results, missing = load(folder), []
    try:
        pictures.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Pictures need a folder; {pictures} cannot be made: {error.strerror}.") from None

    def part(match: re.Match[str]) -> str:
        kind, name, of = match[1], match[2], match[3] or ""
        try:
            if kind == "summary":
                body = tables.summary(results, PAPER, name)
            elif kind == "suite":
                body = _suite(results, folder, name, pictures, [m for m in of[4:].split(",") if m])
            else:
                body = _table(results, name) if kind == "table" else _caption(name, folder, pictures)
        except AleboError as error:
            old = match[4].rstrip("\n")
            keep = isinstance(error, _Elsewhere) and old not in ("", _NOTHING)
            missing.append(f"{kind} {name}: {'its part of the page stays as it is. ' if keep else ''}{error}")
            body = old if keep else _NOTHING
        return f"<!-- {kind}: {name}{of} -->\n{body}\n<!-- end -->"

    new = _PART.sub(part, text)
    if new != text:
        page.write_text(new)
    return missing


def _table(results: Results, problem: str) -> str:
    """The table of a problem, and each method against our ALEBO, seed by seed."""
    some = results.only([problem])
    # of files and lines that are no runs, those of this problem; the others are the business of `alebo bench table`
    some = Results(some.runs, tuple((path, why) for path, why in some.foreign if path.parent.name == problem))
    against = "alebo" if some.of(problem, "alebo") and len(some.labels(problem)) > 1 else None
    lines = tables.markdown(some, against=against).splitlines()
    mixed = [label for label in some.labels(problem) if _mixed(some.of(problem, label))]
    note = f"\n\nRuns made with more than one setting or budget: {', '.join(mixed)}." if mixed else ""
    return "\n".join(lines[2:]).strip() + note


def _suite(results: Results, given: Path, name: str, pictures: Path, methods: Sequence[str] = ()) -> str:
    """The standings of a suite, its picture and its values; of its own folder, where it has one."""
    chosen = suite(name)
    folder = given if chosen.folder == SHARED else given.parent / chosen.folder
    if folder != given:
        if not folder.is_dir():
            raise _Elsewhere(
                f"Its results are a folder; there is no folder {folder}. Make one with: {how(chosen, folder)}"
            )
        results = load(folder)
    made = standings(results, chosen, methods, make=how(chosen, folder))
    path = pictures / f"suite_{name}.png"
    suite_page.draw(made, path)
    against = "alebo" if "alebo" in made.labels else None
    about = (
        "Left: share of targets (normalised regrets) that runs have reached after so many evaluations. Right: share of targets that a "
        "method's median run reaches with at most so many times the evaluations of the quickest method."
    )
    return f"![profiles]({path.parent.name}/{path.name})\n\n{about}\n\n{suite_page.markdown(made, against)}"


def _caption(name: str, folder: Path, pictures: Path) -> str:
    path, caption = figures.figure(name, folder, pictures)
    return f"![{figures.find(name)}]({path.parent.name}/{path.name})\n\n{caption}"


def _mixed(runs: Sequence[Run]) -> bool:
    """Whether the runs differ in budget or settings; those that only newer or older versions have are not compared."""
    first = runs[0]
    alike = [{"state": "complete", "method": json.loads(run.settings), "budget": run.budget} for run in runs]
    return any(run["budget"] != first.budget or clash(run, 0, first.settings) for run in alike)
