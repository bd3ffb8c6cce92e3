"""S10: ALEBO on Branin D=100 without its kernel and without its projection, in the paper's scaling and in a fair one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from alebo import InputError

from ..published import published, verdict
from ..results import load
from ..statistics import standard_errors
from ._style import pyplot, save

PROBLEM = "branin-100"
# our label -> (the paper's name or None, words, colour)
VARIANTS: dict[str, tuple[str | None, str, str]] = {
    "alebo-paper": ("ALEBO", "ALEBO, the paper's settings", "#9467bd"),
    "ablation-normal": ("Normal projection", "normal instead of hypersphere projection", "#31a354"),
    "ablation-matern-raw": ("Matern kernel", "ARD Matern kernel, raw coordinates as in the paper", "#e6550d"),
    "ablation-matern-scaled": (None, "ARD Matern kernel, coordinates scaled to [-1, 1]", "#fdae6b"),
}
# The commands that make these runs; `alebo bench run --problem branin-100 --method "<these, comma-separated>"`.
METHODS = (
    "alebo-paper",
    "ablation-normal=alebo-paper(kind=gaussian)",
    "ablation-matern-raw=alebo.bench.ablation:ArdALEBO(coordinates=raw)",
    "ablation-matern-scaled=alebo.bench.ablation:ArdALEBO(coordinates=scaled)",
)


def data(folder: Path) -> dict[str, Any]:
    """Mean trace and final values of every variant."""
    results = load(folder)
    out: dict[str, Any] = {}
    for label in VARIANTS:
        runs = results.alike(PROBLEM, label) if PROBLEM in results.problems else []
        if runs:
            traces = np.stack([r.trace for r in runs])
            out[label] = {
                "runs": len(runs),
                "mean": traces.mean(axis=0),
                "se": standard_errors(traces),
                "median": float(np.median(traces[:, -1])),
            }
    if not any(label.startswith("ablation") for label in out):
        raise InputError(
            f"The ablation needs runs of its variants; {folder} has none. Make them with: "
            f'alebo bench run --problem {PROBLEM} --method "{",".join(METHODS)}"'
        )
    return out


def draw(data: dict[str, Any], path: Path) -> str:
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(7, 4.4))
    known = published()["ablation"]
    parts = []
    for label, d in data.items():
        name, words, c = VARIANTS[label]
        n = np.arange(1, len(d["mean"]) + 1)
        axis.plot(n, d["mean"], color=c, label=f"{words} ({d['runs']} runs)")
        axis.fill_between(n, d["mean"] - 2 * d["se"], d["mean"] + 2 * d["se"], color=c, alpha=0.15, lw=0)
        text = f"{words}: mean {d['mean'][-1]:.3f} ± {d['se'][-1]:.3f}, median {d['median']:.3f} ({d['runs']} runs)"
        if name is not None:
            p = known[name]
            at = [int(k) for k in p if k != "se"]
            axis.scatter(at, [p[str(k)] for k in at], marker="x", color=c, zorder=5)
            known_end = {"mean": p["50"], "se": p["se"]}
            text += f"; {verdict(float(d['mean'][-1]), float(d['se'][-1]), d['runs'], known_end)}"
        parts.append(text)
    axis.set_ylim(0, 10)
    axis.set_xlabel("evaluations")
    axis.set_ylabel("mean best value, two standard errors")
    axis.legend(fontsize=7)
    figure.tight_layout()
    save(figure, path)
    return f"S10. The ablation of kernel and projection; crosses are read off the published figure. {'. '.join(parts)}."
