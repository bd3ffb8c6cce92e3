"""Draw docs/img/run.png from the stored runs of the main comparison: Branin hidden in 100 parameters.

    alebo bench run --problem branin-100 --method alebo,sobol --seeds 100-149      makes the runs, those that are missing
    make picture                                                                draws them

Left, one run: seed 0. Right, every stored seed of the default method and of quasi-random search, and their medians.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from .figures._style import pyplot
from .results import load

OURS, CHANCE, GROWN = "#1f5fa8", "#9a9a9a", "#c77b1e"


def draw(folder: Path, path: Path) -> None:
    results = load(folder)
    ours, chance = (
        [r.record for r in results.of("branin-100", method) if r.budget == 50 and 100 <= r.seed < 150]
        for method in ("alebo", "sobol")
    )
    if not ours or not chance:
        sys.exit(
            "No stored runs of branin-100; make them: alebo bench run --problem branin-100 --method alebo,sobol --seeds 100-149"
        )
    plt = pyplot()
    optimum = float(ours[0]["optimum"])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")

    first = ours[0]
    values = np.array(first["outcomes"]["value"])
    n = np.arange(1, len(values) + 1)
    left.scatter(n, values, s=14, color=OURS, alpha=0.5, linewidths=0, label="each evaluation")
    left.plot(n, np.minimum.accumulate(values), color=OURS, lw=1.8, drawstyle="steps-post", label="best so far")
    left.axhline(optimum, color="black", lw=0.8, ls=":", label="optimum")
    sizes = [(start, dim) for start, dim in first["dim"]]
    for start, dim in sizes:
        if start:
            left.axvline(start + 0.5, color=GROWN, lw=0.8, zorder=0)
        left.annotate(
            f"{dim}", (start + 1, 0.98), xycoords=("data", "axes fraction"), fontsize=8, color=GROWN, va="top"
        )
    left.set(
        yscale="log",
        xlabel="evaluations",
        ylabel="Branin's value",
        title=f"One run (seed {first['seed']}); orange: dimensions of the embedding",
    )
    left.set_ylim(bottom=0.12)
    left.legend(frameon=False, fontsize=8, loc="lower left", ncols=3)

    for group, colour, label in ((chance, CHANCE, "Sobol"), (ours, OURS, "alebo")):
        traces = np.array([np.minimum.accumulate(r["outcomes"]["value"]) - optimum for r in group])
        right.plot(n, traces.T, color=colour, lw=0.5, alpha=0.3)
        right.plot(n, np.median(traces, axis=0), color=colour, lw=2.2, label=f"{label}, {len(group)} seeds")
        print(
            f"{label}: {len(group)} seeds, final value median {np.median(traces[:, -1]) + optimum:.4f}, worst {traces[:, -1].max() + optimum:.4f}"
        )
    right.set(
        yscale="log", xlabel="evaluations", ylabel="best so far minus optimum", title="Every seed; bold: the median"
    )
    right.legend(frameon=False, fontsize=8, loc="lower left")
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.title.set_fontsize(10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    given = [Path(a) for a in sys.argv[1:]]
    draw(*given, *[Path("results"), Path("docs/img/run.png")][len(given) :])
