"""Fig. 4 and S5: the chance of containing an optimum against the dimension, three kinds of embedding at D = 100."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alebo import InputError

from .. import containment
from ._style import pyplot, save

STYLE = {
    "hypersphere": ("tab:blue", "hypersphere (ALEBO)"),
    "gaussian": ("tab:orange", "normal (REMBO)"),
    "hesbo": ("tab:green", "HeSBO"),
}


def data(folder: Path, figure: str = "4/S5") -> dict[str, Any]:
    """The paper's cells of this figure and ours, from the kept sweep."""
    path = Path(folder) / "containment" / "check.jsonl"
    if not path.exists():
        raise InputError(
            f"This figure is drawn from a kept sweep; {path} is not there. "
            "Make it with: python -m alebo.bench.containment check"
        )
    return {"cells": [row for row in containment.check(path=path) if row.figure == figure]}


def verdict(rows: list[containment.Compared], figure: str) -> str:
    """Whether it agrees, counted."""
    beyond = [row for row in rows if abs(row.z) > 3]
    said = (
        f"{len(rows) - len(beyond)} of {len(rows)} cells lie within 3 combined standard errors of the paper's {figure}"
    )
    for row in beyond:
        exact = "" if row.ours.exact is None else f", closed form {row.ours.exact:.3f}"
        said += (
            f"; {row.ours.kind} with {row.ours.active} active, dim {row.ours.dim} does not "
            f"({row.ours.value:.3f} against {row.published:.3f}{exact})"
        )
    return said + "."


def draw(data: dict[str, Any], path: Path) -> str:
    plt = pyplot()
    rows: list[containment.Compared] = data["cells"]
    actives = sorted({row.ours.active for row in rows})
    figure, panels = plt.subplots(1, len(actives), figsize=(11, 3.7), sharey=True, layout="constrained")
    for axes, active in zip(panels, actives, strict=True):
        for kind, (colour, name) in STYLE.items():
            some = sorted(
                (row for row in rows if row.ours.active == active and row.ours.kind == kind), key=lambda r: r.ours.dim
            )
            x = [row.ours.dim for row in some]
            axes.fill_between(
                x, [r.ours.low for r in some], [r.ours.high for r in some], color=colour, alpha=0.25, lw=0
            )
            axes.plot(x, [row.ours.value for row in some], color=colour, label=name)
            axes.plot(x, [row.published for row in some], "x", color=colour, ms=5)
        axes.set(title=f"{active} active variables", xlabel="dimension of the embedding", ylim=(-0.03, 1.03))
        axes.set_xticks(range(active, 21, 2))
    panels[0].plot([], [], "x", color="0.3", label="paper")
    panels[0].set_ylabel("chance of containing an optimum")
    panels[0].legend(frameon=False, loc="lower right")
    save(figure, path)
    return (
        f"The chance that an embedding of 100 parameters contains an optimum; bands are 95 % intervals of "
        f"{rows[0].ours.samples} draws. It rises steeply with the dimension, and hypersphere embeddings are ahead from "
        f"a few dimensions above the number of active variables. {verdict(rows, 'Fig. 4 and S5')}"
    )
