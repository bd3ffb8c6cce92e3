"""How all figures look: one colour for each method, one size of letters, files that do not change unless the data do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alebo import MissingPartError

COLOURS = {
    "alebo-fixed": "#6baed6",
    "alebo-paper": "#9467bd",
    "alebo": "#08519c",
    "rembo-gamma": "#fdae6b",
    "rembo-phi": "#a6761d",
    "rembo": "#e6550d",
    "hesbo-2d": "#31a354",
    "hesbo-d": "#a1d99b",
    "hesbo": "#31a354",
    "turbo": "#d62728",
    "cma": "#8c564b",
    "smac": "#e377c2",
    "add": "#bcbd22",
    "baxus": "#17becf",
    "sobol": "#969696",
}
ORDER = list(COLOURS)


def pyplot() -> Any:
    """Matplotlib without a window, or an error that says how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise MissingPartError('Figures are drawn by Matplotlib. Install it: pip install "alebo[plot]"') from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "figure.dpi": 110})
    return plt


def colour(label: str, at: int = 0) -> str:
    """The colour of a method; unknown ones take turns."""
    for start, value in COLOURS.items():
        if label == start or label.startswith(start):
            return value
    return ["#1b9e77", "#7570b3", "#e7298a", "#66a61e", "#e6ab02"][at % 5]


def order(label: str) -> tuple[int, str]:
    """Our methods first, the rest as in the palette."""
    return next((i for i, start in enumerate(ORDER) if label.startswith(start)), len(ORDER)), label


def save(figure: Any, path: Path) -> None:
    """Write the picture with no date inside, so that the same data give the same file."""
    dates = {".svg": "Date", ".pdf": "CreationDate"}
    figure.savefig(path, bbox_inches="tight", metadata={dates.get(path.suffix.lower(), "Software"): None})
    pyplot().close(figure)
