"""Fig. S6: the chance of containing an optimum over active variables and dimension, for D = 50, 100 and 200."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..containment import Compared
from ._style import pyplot, save
from .fig4_containment import data as paper_cells
from .fig4_containment import verdict


def data(folder: Path) -> dict[str, Any]:
    """The paper's cells of this figure and ours, from the kept sweep."""
    return paper_cells(folder, "S6")


def draw(data: dict[str, Any], path: Path) -> str:
    plt = pyplot()
    rows: list[Compared] = data["cells"]
    sizes = sorted({row.ours.D for row in rows})
    levels = np.linspace(0.1, 0.9, 5)
    figure, panels = plt.subplots(1, len(sizes), figsize=(11, 3.8), sharey=True, layout="constrained")
    for axes, D in zip(panels, sizes, strict=True):
        some = [row for row in rows if row.ours.D == D]
        x, y = [r.ours.dim for r in some], [r.ours.active for r in some]
        shown = axes.tricontourf(x, y, [r.ours.value for r in some], np.linspace(0, 1, 21), cmap="Blues")
        axes.tricontour(x, y, [r.published for r in some], levels, colors="tab:red", linewidths=1.0)
        axes.plot(x, y, ".", color="0.4", ms=2)
        axes.set(title=f"D = {D}", xlabel="dimension of the embedding")
    panels[0].set_ylabel("active variables")
    panels[0].text(2.5, 16.8, "shades: ours\nred: the paper's 0.1, 0.3 ... 0.9", fontsize=8, va="top")
    figure.colorbar(shown, ax=panels, label="chance of containing an optimum", ticks=np.linspace(0, 1, 6))
    save(figure, path)
    return (
        "The chance that a hypersphere embedding contains an optimum. Doubling D lowers it, more so with many active "
        f"variables. {verdict(rows, 'Fig. S6')}"
    )
