"""Fig. S4: Branin in 100 dimensions on a plane, inside the polytope of a normal and of a hypersphere embedding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import alebo

from ..._seeds import generator
from ..problems import problem
from ._style import pyplot, save


def _pair(i: int, seed: int) -> dict[str, Any]:
    """One normal matrix, and the same with its columns on the unit circle, as in the paper."""
    B = generator(seed, "s4", i).standard_normal((2, 100))
    return {
        "normal": alebo.geometry.from_matrix(B),
        "hypersphere": alebo.geometry.from_matrix(B / np.linalg.norm(B, axis=0)),
    }


def _area(embedding: Any) -> float:
    """Of the polygon {y : -1 <= A y <= 1}, by its reach in 4000 directions."""
    turn = np.linspace(0, 2 * np.pi, 4001)
    reach = 1.0 / np.abs(embedding.A @ np.stack([np.cos(turn), np.sin(turn)])).max(axis=0)
    return float(np.trapezoid(0.5 * reach**2, turn))


def _optima() -> np.ndarray:
    """Branin's three optima in [-1, 1]^2."""
    x = np.array([[-np.pi, 12.275], [np.pi, 2.275], [3 * np.pi, 2.475]])
    return (x - [-5.0, 0.0]) / 7.5 - 1.0


def data(pairs: int = 1000, seed: int = 0) -> dict[str, Any]:
    """For many pairs: the area of both polygons and which optima they contain."""
    branin = problem("branin-100")
    T = np.eye(100)[list(branin.axes)]
    found: dict[str, dict[str, list[Any]]] = {k: {"area": [], "optima": []} for k in ("normal", "hypersphere")}
    for i in range(pairs):
        for kind, embedding in _pair(i, seed).items():
            found[kind]["area"].append(round(_area(embedding), 1))
            found[kind]["optima"].append([int(alebo.contains_optimum(embedding, T, z)) for z in _optima()])
    return {"pairs": pairs, "seed": seed, "found": found}


def draw(data: dict[str, Any], path: Path) -> str:
    plt = pyplot()
    branin = problem("branin-100")
    inside = {k: np.array(v["optima"]) for k, v in data["found"].items()}
    # shown: the first pair like the paper's, no optimum in the normal one and two in the hypersphere
    like = np.flatnonzero((inside["normal"].sum(1) == 0) & (inside["hypersphere"].sum(1) == 2))
    shown = int(like[0])
    figure, panels = plt.subplots(1, 2, figsize=(9.4, 4.3), layout="constrained")
    low, high = branin.bounds.T
    for axes, (kind, embedding) in zip(panels, _pair(shown, data["seed"]).items(), strict=True):
        lowest, highest = embedding.domain.bounds
        Y = np.stack(np.meshgrid(*np.linspace(lowest, highest, 220).T), axis=-1)
        X = embedding.up(Y)
        ok = np.abs(X).max(axis=-1) <= 1.0
        value = np.full(ok.shape, np.nan)
        value[ok] = [float(branin.evaluate(low + (x + 1) / 2 * (high - low))) for x in X[ok]]
        axes.contourf(*np.moveaxis(Y, -1, 0), np.log10(value), 20, cmap="viridis")
        places = np.linalg.solve(embedding.A[list(branin.axes)], _optima().T).T
        for y, has in zip(places, inside[kind][shown], strict=True):
            axes.plot(*y, "*", ms=12, mfc="tab:red" if has else "none", mec="white" if has else "tab:red")
        axes.set(
            title=f"{kind}: area {data['found'][kind]['area'][shown]:.0f}, {inside[kind][shown].sum()} of 3 optima"
        )
        axes.set(aspect="equal", xlabel="first coordinate", ylabel="second coordinate")
        axes.set(xlim=1.25 * np.array([lowest[0], highest[0]]), ylim=1.25 * np.array([lowest[1], highest[1]]))
    save(figure, path)
    area = {k: np.array(v["area"]) for k, v in data["found"].items()}
    any_ = {k: v.any(axis=1).mean() for k, v in inside.items()}
    better = np.mean(area["hypersphere"] > area["normal"])
    agrees = better > 0.95 and any_["hypersphere"] > any_["normal"]
    return (
        "Branin (D = 100) on a plane, inside the polytope of a normal matrix and of the same with its columns on the unit "
        f"circle (log scale; red stars: optima inside). Shown is pair {shown} of {data['pairs']}, the first that is like "
        f"the paper's: no optimum inside on the left, two on the right ({len(like)} pairs are). Over all pairs the "
        f"hypersphere's polygon is the larger in {better:.0%}, by a median factor of "
        f"{np.median(area['hypersphere'] / area['normal']):.2f} (the paper's draw: 2.02), and contains an optimum in "
        f"{any_['hypersphere']:.0%} against {any_['normal']:.0%}: the paper's Fig. S4 is "
        + ("typical." if agrees else "not typical.")
    )
