"""Table S1: seconds per iteration of every method, ours on this machine beside the published ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alebo import InputError

from ..problems import PAPER
from ..published import is_study, row
from ..results import load
from ..statistics import lines
from ._style import order, pyplot, save


def data(folder: Path) -> dict[str, Any]:
    """CPU seconds of one thread for one evaluation, the method's part alone, by problem and label."""
    results = load(folder)
    out: dict[str, Any] = {}
    for problem in PAPER:
        for line in lines(results, problem, draws=1) if problem in results.problems else []:
            if line.runs and not is_study(line.label):
                known = (row(problem, line.label) or {}).get("seconds")
                out.setdefault(line.label, {})[problem] = {
                    "ours": line.model_seconds,
                    "published": known,
                    "runs": line.runs,
                }
    if not out:
        raise InputError(f"A table of seconds needs runs of {', '.join(PAPER)}; {folder} has none.")
    return dict(sorted(out.items(), key=lambda pair: order(pair[0])))


def draw(data: dict[str, Any], path: Path) -> str:
    plt = pyplot()
    rows = [[_cell(data[label].get(problem)) for problem in PAPER] for label in data]
    figure, axis = plt.subplots(figsize=(11, 0.5 + 0.32 * (len(rows) + 1)))
    axis.axis("off")
    table = axis.table(cellText=rows, rowLabels=list(data), colLabels=list(PAPER), loc="center", cellLoc="center")
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    table.scale(1, 1.3)
    save(figure, path)
    faster = [
        d["published"] / d["ours"]
        for label, by in data.items()
        if label.startswith("alebo")
        for d in by.values()
        if d["published"]
    ]
    said = (
        f" Our ALEBO is {min(faster):.0f} to {max(faster):.0f} times faster than the published one." if faster else ""
    )
    return (
        "Table S1. CPU seconds per iteration, the method's part alone, one thread; published (1.90 GHz) in brackets. Machines "
        f"differ, so only large factors mean something.{said}"
    )


def _cell(d: dict[str, Any] | None) -> str:
    if d is None:
        return "not run"
    known = "" if d["published"] is None else f" ({d['published']:.2f})"
    return f"{d['ours']:.3f}{known}"
