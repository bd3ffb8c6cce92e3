"""A trace as a PNG file, by Matplotlib: for the demo and the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from alebo import MissingPartError
from alebo.plots.data import trace_data


def trace_png(
    trace: ArrayLike,
    path: str | Path,
    *,
    measured: Sequence[float] | None = None,
    optimum: float | None = None,
    title: str = "",
    outcome: str = "value",
) -> Path:
    """Draw the best value so far (and every measured value) to a PNG file."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPartError('A picture needs matplotlib. Install it: pip install "alebo[plot]".') from None
    n, best = trace_data(trace)
    figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot()
    if measured is not None:
        axes.plot(np.arange(1, len(measured) + 1), measured, "o", ms=3, color="0.7", label="measured")
    axes.step(n, best, where="post", color="#1f6feb", lw=2, label="best so far")
    if optimum is not None:
        axes.axhline(optimum, color="#d1495b", lw=1, ls="--", label=f"optimum {optimum:.4g}")
        if len(best) and best.min() > optimum > 0 and best.max() > 5 * optimum:
            axes.set_yscale("log")
    axes.set(xlabel="evaluations", ylabel=outcome, title=title)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target)
    return target
