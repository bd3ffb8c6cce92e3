"""A suite as text and picture: the table of standings, the values of every problem, the two profiles."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np

from alebo import InputError

from . import _left_out, tables
from .figures._style import colour, pyplot, save
from .standings import CHECKPOINTS, TARGETS, Cell, Standings
from .statistics import standard_error
from .suite import Entry

PICTURES = (".png", ".svg", ".pdf")


def head(made: Standings, against: str | None) -> list[str]:
    """The columns of the table of standings."""
    counts = {n: len(made.reaching(n)) for n in CHECKPOINTS}
    regrets = [f"regret at {n} ({k} problem{'' if k == 1 else 's'})" for n, k in counts.items()]
    duel = [f"problems won : lost against {against}", f"runs won : lost against {against}", "p"] if against else []
    return ["method", "average rank (95 %)", *regrets, *duel, "runs", "model s"]


def rows(made: Standings, against: str | None) -> list[list[str]]:
    """One row a method, best average rank first."""
    duels = {d.label: d for d in made.duels(against)} if against else {}
    out = []
    for s in made.lines():
        cells = [s.label, f"{s.rank:.2f} ({s.low:.1f} to {s.high:.1f})", *(_number(v, 3) for v in s.regret)]
        if against:
            d = duels.get(s.label)
            cells += (
                ["", "", ""]
                if d is None
                else [f"{d.wins} : {d.losses}", f"{d.run_wins} : {d.run_losses}", _number(d.p, 3)]
            )
        failed = f" ({s.failed} failed)" if s.failed else ""
        out.append([*cells, f"{s.runs}{failed}", _number(s.seconds, 2)])
    return out


def value_rows(made: Standings, *, short: bool = False) -> list[list[str]]:
    """One row for each problem of the suite, also where nothing was run: mean final value of every method, ± SE (runs)."""
    order = [s.label for s in made.lines(draws=1)]
    out = []
    for e in made.suite.entries:
        there = {label: made.cells[e.name, label] for label in order if (e.name, label) in made.cells}
        means = [float(np.nanmean(c.values)) for c in there.values() if not np.isnan(c.values).all()]
        first = min(means, key=lambda v: e.sign * v, default=math.nan)
        arrow = "min" if e.goal == "minimise" else "max"
        few = {label: made.short.get((e.name, label), 0) for label in order}
        bad = {label for label in order if (e.name, label) in made.damaged}
        values = ("damaged" if label in bad else _value(there.get(label), first, short, few[label]) for label in order)
        out.append([f"{e.name} ({arrow}, {e.budget})", *values])
    return out


def _value(cell: Cell | None, first: float, short: bool, few: int) -> str:
    if cell is None and few:
        return "too short" if short else f"too few evaluations ({few})"
    if cell is None:
        return "-" if short else "not run"
    found = cell.values[~np.isnan(cell.values)]
    complete = len(cell.seeds) - cell.failed
    if short:
        return f"{found.mean():.4g}" if len(found) else "failed" if not complete else "infeasible"
    if not len(found):
        return f"failed ({cell.failed})" if not complete else f"nothing feasible ({complete})"
    text = f"{found.mean():.4g}"
    text = f"**{text}**" if found.mean() == first else text
    error = standard_error(found)
    spread = f" ± {error:.2g}" if np.isfinite(error) else ""
    lost = f", {cell.failed} failed" if cell.failed else ""
    lost += f", {complete - len(found)} without a feasible point" if complete > len(found) else ""
    return f"{text}{spread} ({complete}{lost})"


def notes(made: Standings, against: str | None = None) -> list[str]:
    """What a reader must know of the table."""
    names = [e.name for e in made.common]
    out = [
        f"Ranks, regrets, wins and losses, runs and model s are over the {len(names)} of {len(made.suite.entries)} problems on which every one of "
        f"these methods has runs: {', '.join(names)}. Regret is normalised: 1 is the median random point, 0 the best value known; a run's "
        "regret is cut to the range from 0 to 1. The interval is over bootstrap draws of problems and runs. "
        "p: Wilcoxon signed rank over problems, two-sided, uncorrected; empty with fewer than six.",
        "On each problem the methods are ranked by the mean regret of their runs at the end, and the average of these ranks is shown. A run "
        "that is worse than the median random point, one without a feasible point and a failed one each have regret 1. The values below are "
        "means of what runs found, neither cut nor with a value for runs that found nothing, so their order can be another, and the average rank cannot be recomputed from them.",
        *_uneven(made),
        *_paired(made, against),
    ]
    short = sum(cell.short for cell in made.cells.values()) + sum(made.short.values())
    if short:
        out.append(f"{short} runs with fewer evaluations than the suite asks for are left out.")
    if made.aside:
        out.append(
            f"A method counts on one variant of a problem; left out, because there are runs of the other: {', '.join(made.aside)}."
        )
    few = sorted({label for (_, label), cell in made.cells.items() if len(cell.seeds) < 5})
    if few:
        out.append(f"Fewer than five runs on some problem: {', '.join(few)}. Their order is uncertain.")
    return [*out, *_left_out.notes(made.absent, len(made.suite.entries)), *tables.skipped(made.foreign)]


def _uneven(made: Standings) -> list[str]:
    """What to say where the columns of regret are over different problems."""
    counts = {n: len(made.reaching(n)) for n in CHECKPOINTS}
    if len(set(counts.values())) < 2:
        return []
    parts = []
    for n in (n for n, k in counts.items() if 0 < k < len(made.common)):
        inside, outside = made.reaching(n), [e for e in made.common if e.budget < n]
        few = len(inside) <= len(outside)
        parts.append(
            f"at {n} {'only ' if few else 'without '}{', '.join(e.name for e in (inside if few else outside))}"
        )
    named = f" ({'; '.join(parts)})" if parts else ""
    return [
        f"A mean regret at n evaluations is over the problems with n evaluations or more{named}. The columns are over different "
        "problems, so nothing follows from a difference between two columns."
    ]


def _paired(made: Standings, against: str | None) -> list[str]:
    """What the columns of wins and losses count."""
    if against is None:
        return []
    alone = [f"{d.label} on {', '.join(d.unpaired)}" for d in made.duels(against) if d.unpaired]
    text = f"Runs won : lost counts pairs of runs with the same seed that a method and {against} both have; equal runs count for neither."
    return [text + (f" No seed in common: {'; '.join(alone)}." if alone else "")]


def markdown(made: Standings, against: str | None) -> str:
    """Both tables and the notes."""
    body = rows(made, against)
    lines = [*_table(head(made, against), body), "", *(f"{note}\n" for note in notes(made, against))]
    lines += ["Mean best value at the end ± standard error (number of runs); bold: the best mean of the row.", ""]
    values = [[f"`{name}`", *cells] for name, *cells in value_rows(made)]
    return "\n".join([*lines, *_table(["problem (goal, evaluations)", *(row[0] for row in body)], values)])


def terminal(made: Standings, against: str | None) -> None:
    """Both tables on the terminal."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    body = rows(made, against)
    duel = ["won : lost", "in runs", "p"] if against else []
    columns = ["method", "rank (95 %)", *(f"@{n} ({len(made.reaching(n))})" for n in CHECKPOINTS), *duel, "runs", "s"]
    values = value_rows(made, short=True)
    for title, names, lines in (
        (f"{made.suite.name}: {made.suite.title}", columns, body),
        ("mean best value at the end", ["problem", *(row[0] for row in body)], values),
    ):
        table = Table(title=title)
        shown = tables.fitting(names, lines, console.width, first=names[:2])
        for i in shown:
            table.add_column(names[i], justify="left" if i == 0 else "right", no_wrap=i == 0)
        for row in lines:
            table.add_row(*(row[i] for i in shown))
        console.print(table)
        if len(shown) < len(names):
            console.print(tables.too_wide(names, shown), markup=False)
    won = f"won : lost against {against}; " if against else ""
    console.print(
        f"{won}@n (k): mean normalised regret after n evaluations, over k problems; s: CPU s of one proposal.",
        markup=False,
    )
    for note in notes(made, against):
        console.print(note, markup=False)


def json_text(made: Standings, against: str | None) -> str:
    """The same numbers for programs; what is not known is null."""
    data = {
        "suite": made.suite.name,
        "common": [e.name for e in made.common],
        "checkpoints": CHECKPOINTS,
        "problems at checkpoints": [len(made.reaching(n)) for n in CHECKPOINTS],
        "methods": [asdict(s) for s in made.lines()],
        "against": against,
        "duels": [asdict(d) for d in made.duels(against)] if against else [],
        "problems": [_problem(made, e) for e in made.suite.entries],
        "left out": list(made.aside),
        "methods left out": [asdict(a) for a in made.absent],
        "skipped": [{"path": str(path), "reason": reason} for path, reason in made.foreign],
    }
    return json.dumps(_plain(data), indent=1)


def _problem(made: Standings, entry: Entry) -> dict[str, object]:
    cells = {label: made.cells.get((entry.name, label)) for label in made.labels}
    return {
        **asdict(entry),
        "best known": made.best[entry.name],
        "methods": {
            label: _none(made.short.get((entry.name, label), 0))
            if c is None
            else {
                "runs": len(c.seeds) - c.failed,
                "failed": c.failed,
                "short": c.short,
                "values": c.values.tolist(),
                "regret": float(c.end.mean()),
            }
            for label, c in cells.items()
        },
    }


def _none(short: int) -> dict[str, object] | None:
    """A method without a run that counts: null where there is none at all."""
    return {"runs": 0, "failed": 0, "short": short, "values": [], "regret": None} if short else None


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_picture(path: Path) -> None:
    """Raise an InputError unless a picture can be written there; its folder is made."""
    if path.suffix.lower() not in PICTURES:
        raise InputError(f"A picture is a file that ends in {', '.join(PICTURES)}; got {str(path)!r}.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"A picture needs a folder; {path.parent} cannot be made: {error.strerror}. Choose another --picture."
        ) from None
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"A picture is a file that can be written; {path} cannot. Choose another --picture.")


def draw(made: Standings, path: Path) -> None:
    """Left the data profile, right the performance profile."""
    plt = pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4), layout="constrained")
    ratios = np.geomspace(1.0, 16.0, 200)
    profiles = made.performance_profile(ratios)
    for at, s in enumerate(made.lines(draws=1)):
        share, look = made.data_profile(s.label), {"color": colour(s.label, at), "drawstyle": "steps-post"}
        left.plot(np.arange(1, len(share) + 1), share, label=s.label, **look)
        right.plot(ratios, profiles[s.label], **look)
    top = max(float(p.max()) for p in profiles.values())
    left.set(xlabel="evaluations", ylabel="share of targets reached")
    right.set(xlabel="evaluations, times those of the quickest method", xscale="log", ylim=(-0.02, top + 0.05))
    right.set_ylabel("share of targets, median run")
    right.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    right.minorticks_off()
    left.set_title(f"{made.suite.name}: {len(made.common)} problems, regret {', '.join(map(str, TARGETS))}", fontsize=9)
    right.set_title("performance profile", fontsize=9)
    left.legend(frameon=False, fontsize=7, loc="upper left")
    save(figure, path)


def _number(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]
