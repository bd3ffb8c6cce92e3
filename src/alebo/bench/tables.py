"""Tables of a folder of runs, for the terminal, as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .published import ENOUGH, is_study, paper_name, published
from .results import Results
from .statistics import Line, Pair, lines, pairs

HEAD = (
    "method",
    "runs",
    "mean ± SE",
    "median",
    "worst",
    "best",
    "within 1 %",
    "to 10 % regret",
    "s/iter model",
    "s/iter eval",
    "rank [95 %]",
    "published mean ± SE",
    "published median",
    "z",
)
# where a terminal is narrow, the columns that are kept first
FIRST = ("method", "mean ± SE", "runs", "median", "published mean ± SE", "z", "worst", "s/iter model")
HEAD_PAIRS = (
    "method",
    "against",
    "seeds",
    "difference ± SE (positive: worse)",
    "better on",
    "worse on",
    "p (Wilcoxon)",
)


def number(value: float | None, digits: int = 4) -> str:
    """A number for reading: nothing for none, a dash for unknown."""
    if value is None:
        return ""
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "never" if value > 0 else "-never"
    return f"{value:.{digits}f}" if abs(value) < 1e4 else f"{value:.4g}"


def cells(line: Line, budget: int) -> list[str]:
    """One method's line as text."""
    runs = str(line.runs)
    runs += f" ({line.failed} failed)" if line.failed else ""
    runs += f" ({line.nothing} found nothing feasible)" if line.nothing else ""
    reach = "-" if math.isnan(line.reach) else f"> {budget}" if math.isinf(line.reach) else f"{line.reach:.0f}"
    reach += "" if math.isnan(line.reach) else f" ({line.reached}/{line.runs})"
    worst = "nothing feasible" if math.isinf(line.worst) else number(line.worst)
    median = "nothing feasible" if math.isinf(line.median) else number(line.median)
    known = line.published_mean is not None
    return [
        line.label,
        runs,
        f"{number(line.mean)} ± {number(line.se)}",
        median,
        worst,
        number(line.best),
        "-" if math.isnan(line.within) else f"{100 * line.within:.0f} %",
        reach,
        number(line.model_seconds, 3),
        number(line.evaluation_seconds, 4),
        "" if math.isnan(line.rank) else f"{line.rank:.1f} [{line.rank_low:.0f}, {line.rank_high:.0f}]",
        f"{number(line.published_mean)} ± {number(line.published_se)}" if known else "",
        number(line.published_median),
        "" if line.z is None else f"{line.z:+.1f}",
    ]


def pair_cells(pair: Pair) -> list[str]:
    p = "-" if math.isnan(pair.p) else f"{pair.p:.2g}"
    return [
        pair.label,
        pair.against,
        str(pair.seeds),
        f"{pair.difference:+.4f} ± {number(pair.se)}",
        str(pair.wins),
        str(pair.losses),
        p,
    ]


def notes(results: Results, problem: str) -> list[str]:
    """What belongs under a table: failures, the commits, and the paper's methods that were not run."""
    runs = results.of(problem)
    out = []
    if any(0 < line.runs < ENOUGH for line in lines(results, problem, draws=1)):
        out.append(f"Methods with fewer than {ENOUGH} runs stand last and are not ranked or judged.")
    if any(line.published_mean is not None for line in lines(results, problem, draws=1)):
        out.append(
            "z: our mean minus the published one in combined standard errors"
            + (" (negative: ours is better)." if runs and runs[0].sign > 0 else " (positive: ours is better).")
        )
    ours = {paper_name(label) for label in results.labels(problem)}
    rows: dict[str, Any] = published()["problems"].get(problem, {})
    rest = [
        f"{n} {r['mean']:.4f} ± {r['se']:.4f}" for n, r in rows.items() if n not in ours and not n.startswith("ALEBO,")
    ]
    if rest:
        out.append(f"Published, not run here: {'; '.join(rest)}.")
    for run in results.failed:
        if run.problem == problem:
            out.append(f"Failed: {run.label}, seed {run.seed}: {run.error}")
    commits = sorted({r.commit for r in runs})
    if commits:
        out.append(f"alebo {', '.join(sorted({r.version for r in runs}))}; code at {', '.join(commits)}.")
    return out


def title(results: Results, problem: str) -> str:
    """The problem, its optimum and the budget."""
    runs = results.of(problem)
    if not runs:
        return problem
    optimum = "unknown" if runs[0].optimum is None else f"{runs[0].optimum:.6g}"
    budgets = sorted({r.budget for r in runs})
    return f"{problem}: optimum {optimum}, {' or '.join(map(str, budgets))} evaluations"


def markdown(results: Results, *, against: str | None = None) -> str:
    """All problems as Markdown."""
    out: list[str] = []
    for problem in results.problems:
        out += [f"### {title(results, problem)}", "", *_markdown_table(HEAD, _rows(results, problem)), ""]
        if against is not None:
            out += [*_markdown_table(HEAD_PAIRS, [pair_cells(p) for p in pairs(results, problem, against)]), ""]
        for note in notes(results, problem):
            out += [note, ""]
    out += foreign(results)
    return "\n".join(out).rstrip() + "\n"


def summary(results: Results, problems: Sequence[str], label: str = "alebo") -> str:
    """Where one method stands among all that were run: first in mean and median or not, and by how much."""
    head = ("problem", f"{label}: runs", "mean", "median", "best other by mean", "best other by median", "verdict")
    rows = []
    for problem in problems:
        found = [line for line in lines(results, problem, draws=1) if line.runs] if problem in results.problems else []
        mine = next((line for line in found if line.label == label), None)
        # studies of one method's settings are not methods of their own
        others = [x for x in found if x.label != label and not is_study(x.label) and x.runs >= ENOUGH]
        if mine is None or not others or mine.runs < ENOUGH:
            runs = 0 if mine is None else mine.runs
            word = (
                "not run"
                if not runs
                else "too few runs to judge"
                if runs < ENOUGH
                else "no other method has enough runs"
            )
            rows.append([problem, str(runs), "", "", "", "", word])
            continue
        sign = results.of(problem)[0].sign
        mean = min(others, key=lambda x: sign * x.mean)
        median = min(others, key=lambda x: sign * x.median)
        gaps = [
            f"{word} worse by {sign * (getattr(mine, word) - getattr(other, word)):.4g} than {other.label}"
            for word, other in (("mean", mean), ("median", median))
            if sign * (getattr(mine, word) - getattr(other, word)) > 0
        ]
        rows.append(
            [
                problem,
                str(mine.runs),
                f"{number(mine.mean)} ± {number(mine.se)}",
                number(mine.median),
                f"{mean.label} {number(mean.mean)} ± {number(mean.se)} ({mean.runs})",
                f"{median.label} {number(median.median)} ({median.runs})",
                "; ".join(gaps) or "first in both",
            ]
        )
    return "\n".join(_markdown_table(head, rows))


def json_text(results: Results) -> str:
    """The rows of `csv_text` as a JSON list of objects; numbers as numbers, what is missing as null."""

    def value(text: str) -> Any:
        try:
            number = float(text)
        except ValueError:
            return text or None
        if not math.isfinite(number):
            return None
        return int(number) if number.is_integer() and "." not in text and "e" not in text else number

    rows = csv.DictReader(io.StringIO(csv_text(results)))
    return json.dumps([{key: value(text) for key, text in row.items()} for row in rows])


def csv_text(results: Results) -> str:
    """One line a problem and method, every number unrounded."""
    handle = io.StringIO()
    names = [f.name for f in dataclasses.fields(Line)]
    writer = csv.writer(handle, lineterminator="\n")
    writer.writerow([*names, "z"])
    for problem in results.problems:
        for line in lines(results, problem):
            writer.writerow([*(getattr(line, name) for name in names), line.z])
    return handle.getvalue()


def terminal(results: Results, *, against: str | None = None) -> None:
    """Print all problems in the terminal."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for problem in results.problems:
        blocks: list[tuple[Sequence[str], list[list[str]]]] = [(HEAD, _rows(results, problem))]
        if against is not None:
            blocks.append((HEAD_PAIRS, [pair_cells(p) for p in pairs(results, problem, against)]))
        for head, rows in blocks:
            table = Table(title=title(results, problem) if head is HEAD else None)
            shown = fitting(head, rows, console.width)
            for i in shown:
                table.add_column(head[i], justify="left" if head[i] == "method" else "right")
            for row in rows:
                table.add_row(*(row[i] for i in shown))
            console.print(table, markup=False)
            if len(shown) < len(head):
                console.print(too_wide(head, shown), markup=False)
        for note in notes(results, problem):
            console.print(note, markup=False)
    for note in foreign(results):
        console.print(note, markup=False)


def fitting(head: Sequence[str], rows: Sequence[Sequence[str]], width: int, first: Sequence[str] = FIRST) -> list[int]:
    """The columns that fit into so many characters, the important ones first; always those that name and judge."""
    important = [head.index(name) for name in first if name in head]
    shown: list[int] = []
    for i in [*important, *(i for i in range(len(head)) if i not in important)]:
        need = max(len(text) for text in [*head[i].split(), *(row[i] for row in rows)]) + 3
        if len(shown) < 2 or need < width:
            shown.append(i)
            width -= need
    return sorted(shown)


def too_wide(head: Sequence[str], shown: Sequence[int]) -> str:
    """What to say of columns that did not fit."""
    left = ", ".join(head[i] for i in range(len(head)) if i not in shown)
    return f"Too wide for this terminal: {left}. --format markdown has all columns."


def foreign(results: Results) -> list[str]:
    """The files and lines that do not count, listed and counted."""
    return skipped(results.foreign)


def skipped(found: Sequence[tuple[Path, str]]) -> list[str]:
    """The same for files and lines with their reasons."""
    if not found:
        return []
    shown = [f"{path} ({reason})" for path, reason in found[:5]]
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return [
        f"Skipped {len(found)} files or lines that are no runs, or not the ones that count: {'; '.join(shown)}{more}."
    ]


def _rows(results: Results, problem: str) -> list[list[str]]:
    budget = max((r.budget for r in results.runs if r.problem == problem), default=0)
    return [cells(line, budget) for line in lines(results, problem)]


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]
