"""Fig. 2: the share of REMBO's embedding that maps inside the box, without clipping."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ..._seeds import generator
from ._style import pyplot, save

# The paper's figure with its own seed, 1000 draws: D -> d_e = 1 to 5
PAPER = {
    20: [0.497, 0.095, 0.009, 0.002, 0.0],
    100: [0.392, 0.053, 0.002, 0.002, 0.0],
    1000: [0.292, 0.025, 0.006, 0.001, 0.0],
}


def data(draws: int = 4000, seed: int = 0) -> dict[str, Any]:
    """y uniform in [-sqrt(d_e), sqrt(d_e)]^d_e, A with N(0, 1) entries: how often A y lies in [-1, 1]^D."""
    share = {}
    for D in PAPER:
        for dim in range(1, 6):
            rng = generator(seed, "fig2", D, dim)
            hits = 0
            for _ in range(draws):
                y = rng.uniform(-math.sqrt(dim), math.sqrt(dim), dim)
                hits += bool(np.abs(rng.standard_normal((D, dim)) @ y).max() <= 1.0)
            share[f"{D},{dim}"] = hits / draws
    return {"draws": draws, "seed": seed, "share": share}


def draw(data: dict[str, Any], path: Path) -> str:
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
    worst = 0.0
    for (D, paper), colour in zip(PAPER.items(), ("tab:blue", "tab:orange", "tab:green"), strict=True):
        ours = [data["share"][f"{D},{dim}"] for dim in range(1, 6)]
        axes.plot(range(1, 6), ours, "o-", color=colour, ms=4, label=f"D = {D}")
        axes.plot(range(1, 6), paper, "x", color=colour, ms=9, mew=1.6)
        for p, q in zip(ours, paper, strict=True):
            se = math.sqrt(p * (1 - p) / data["draws"] + q * (1 - q) / 1000)
            worst = max(worst, abs(p - q) / se if p != q else 0.0)
    axes.plot([], [], "x", color="0.3", ms=9, mew=1.6, label="paper (1000 draws)")
    axes.set(xticks=range(1, 6), xlabel="dimension of the embedding", ylabel="share of points inside the box")
    axes.legend(frameon=False)
    save(figure, path)
    beyond = max(data["share"][f"{D},{dim}"] for D in PAPER for dim in (3, 4, 5))
    return (
        f"The share of REMBO's embedding that maps inside the box, {data['draws']} draws a point: from three dimensions "
        f"on at most {beyond:.3f}, so nearly every point is clipped. It agrees with the paper's Fig. 2: the largest "
        f"difference of the 15 points is {worst:.1f} combined standard errors."
        if worst <= 3
        else f"The share of REMBO's embedding that maps inside the box differs from the paper's Fig. 2 by up to {worst:.1f} "
        "combined standard errors."
    )
