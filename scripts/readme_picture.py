"""Draw docs/img/run.png from real runs: Branin hidden in 100 parameters, the default method beside quasi-random search.

    .venv/bin/python scripts/readme_picture.py

Takes about two minutes on one core. Nothing is stored: the runs are made anew each time, seeds 0 to 4.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

import alebo
from alebo.bench.problems import problem

BUDGET, SEEDS = 50, range(5)
OURS, CHANCE = "#1f5fa8", "#9a9a9a"


def run(method: alebo.methods.Method | None, seed: int) -> alebo.Result:
    branin = problem("branin-100")
    return alebo.minimize(
        lambda x: branin.outcomes(x), branin.space, BUDGET, seed, method=method, goals=branin.goals.goals
    )


def draw(path: Path) -> None:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    optimum = problem("branin-100").optimum
    ours = [run(None, s) for s in SEEDS]
    chance = [run(alebo.methods.METHODS["sobol"](), s) for s in SEEDS]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")

    n = np.arange(1, BUDGET + 1)
    first = ours[0]
    values = [next(iter(t.outcomes.values())).mean for t in first.history]
    left.scatter(n, values, s=14, color=OURS, alpha=0.5, linewidths=0, label="each evaluation")
    left.plot(n, first.trace, color=OURS, lw=1.8, drawstyle="steps-post", label="best so far")
    left.axhline(optimum, color="black", lw=0.8, ls=":", label=f"optimum {optimum:.3f}")
    dims = [t.note.get("dim", 0) for t in first.history]
    for i in np.flatnonzero(np.diff(dims)):
        left.axvline(i + 1.5, color="#d08a2e", lw=0.8, zorder=0)
        left.annotate(
            f"{dims[i + 1]}", (i + 2, 0.97), xycoords=("data", "axes fraction"), fontsize=7, color="#b06a10", va="top"
        )
    left.set(
        yscale="log",
        xlabel="evaluations",
        ylabel="Branin's value",
        title="One run (seed 0); orange: the embedding grows",
    )
    left.set_ylim(bottom=0.12)
    left.legend(frameon=False, fontsize=8, loc="lower left", ncols=3)

    for results, colour, label in ((chance, CHANCE, "Sobol"), (ours, OURS, "alebo")):
        for i, r in enumerate(results):
            right.plot(n, r.trace - optimum, color=colour, lw=1.3, alpha=0.85, label=label if i == 0 else None)
    right.set(yscale="log", xlabel="evaluations", ylabel="best so far minus optimum", title="Five seeds of each")
    right.legend(frameon=False, fontsize=8, loc="lower left")
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.title.set_fontsize(10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    print("final values, alebo:", *(f"{r.fun:.4f}" for r in ours))
    print("final values, Sobol:", *(f"{r.fun:.4f}" for r in chance))
    print("sizes of the embedding, alebo:", *(r.history[-1].note.get("dim") for r in ours))


if __name__ == "__main__":
    draw(Path(__file__).parents[1] / "docs" / "img" / "run.png")
