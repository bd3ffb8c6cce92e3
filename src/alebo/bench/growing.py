"""Fixed embeddings beside growing ones, seed by seed, and beside the best value that each fixed embedding holds at all.

    python -m alebo.bench.growing results docs      writes docs/growing_seeds.md and docs/img/growing.png

The best reachable value is found by minimising the true function inside the seed's polytope from many starts.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

import alebo
from alebo.bench.figures._style import colour, pyplot, save
from alebo.bench.problems import PROBLEMS, Problem
from alebo.bench.results import load
from alebo.methods import View

SHOWN = ("branin-100", "hartmann6-100", "hartmann6-1000", "hartmann6-random-1000")


def reachable(problem: Problem, seed: int, starts: int = 40) -> float:
    """The best value inside the polytope of the fixed embedding that this seed draws."""
    method = alebo.ALEBO(dim=problem.paper_dim)
    opt = alebo.Optimizer(problem.space, problem.goals, method=method, seed=seed)
    embedding = method.embedded(View(opt.history, problem.space, opt.goals, seed)).embedding
    low = np.array([p.low for p in problem.space.parameters if isinstance(p, alebo.Float)])
    high = np.array([p.high for p in problem.space.parameters if isinstance(p, alebo.Float)])
    domain = embedding.domain

    def f(y: Any) -> float:
        x = np.clip(embedding.up(y), -1.0, 1.0)
        return float(problem.evaluate(low + 0.5 * (x + 1.0) * (high - low)))

    raw = domain.sample(50 * starts, seed)
    first = raw[np.argsort([f(y) for y in raw])[:starts]]
    rule = {"type": "ineq", "fun": domain.slack, "jac": lambda y: -domain.A}
    ends = [minimize(f, y, method="SLSQP", constraints=rule, options={"maxiter": 200}) for y in first]
    inside = [float(e.fun) for e in ends if domain.contains(np.asarray(e.x), 1e-7)]
    return min([*inside, *(f(y) for y in first[:1])])


def rows(results: Path, name: str) -> list[dict[str, Any]]:
    """One row a seed: what the fixed and the growing embedding came to, and the growing one's last dimension."""
    runs = {
        (r.label, r.seed): r for r in load(results).runs if r.problem == name and r.label in ("alebo", "alebo-fixed")
    }
    problem = PROBLEMS[name]()
    out = []
    for seed in sorted({s for _, s in runs}):
        fixed, growing = runs.get(("alebo-fixed", seed)), runs.get(("alebo", seed))
        row: dict[str, Any] = {"seed": seed}
        if fixed is not None:
            row["fixed"] = fixed.final
            if name == "branin-100":  # cheap enough to search exhaustively
                row["reachable"] = reachable(problem, seed)
        if growing is not None:
            row["growing"], row["dim"] = growing.final, int(growing.dims[-1])
        out.append(row)
    return out


def table(name: str, found: list[dict[str, Any]]) -> str:
    columns = [c for c in ("seed", "fixed", "reachable", "growing", "dim") if any(c in r for r in found)]
    lines = [f"## {name}", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for r in found:
        cells = [f"{r[c]:.4f}" if isinstance(r.get(c), float) else str(r.get(c, "")) for c in columns]
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("")
    for column in ("fixed", "growing"):
        values = np.array([r[column] for r in found if column in r])
        if len(values):
            lines.append(
                f"{column}: {len(values)} seeds, mean {values.mean():.4f}, median {np.median(values):.4f}, worst {values.max():.4f}  "
            )
    if "reachable" in columns:
        pairs = [(r["fixed"], r["reachable"]) for r in found if "reachable" in r]
        near = sum(f <= best + 0.02 for f, best in pairs)
        lines.append(f"fixed within 0.02 of the best reachable in its polytope: {near} of {len(pairs)}")
    return "\n".join([*lines, ""])


def draw(found: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Each seed a line from its fixed embedding's result to its growing one's, as regret on a logarithmic scale."""
    plt = pyplot()
    figure, axes = plt.subplots(1, len(found), figsize=(3.0 * len(found), 3.2), squeeze=False)
    for ax, (name, seeds) in zip(axes[0], found.items(), strict=True):
        optimum = PROBLEMS[name]().optimum or 0.0
        for r in seeds:
            ends = [max(r[c] - optimum, 1e-6) if c in r else np.nan for c in ("fixed", "growing")]
            ax.plot([0, 1], ends, color="#bbbbbb", lw=0.7, zorder=1)
            ax.scatter([0, 1], ends, c=[colour("alebo-fixed"), colour("alebo")], s=14, zorder=2)
        ax.set_yscale("log")
        ax.set_xticks([0, 1], ["fixed", "growing"])
        ax.set_xlim(-0.3, 1.3)
        ax.set_title(name)
    axes[0, 0].set_ylabel("distance to the optimum at the end")
    figure.tight_layout()
    save(figure, path)


def main(results: Path, docs: Path) -> None:
    found = {name: rows(results, name) for name in SHOWN}
    found = {name: seeds for name, seeds in found.items() if seeds}
    head = "# Fixed and growing embeddings, seed by seed\n\nMade by `python -m alebo.bench.growing results docs` from `results/`.\n\n![](img/growing.png)\n\n"
    (docs / "growing_seeds.md").write_text(head + "\n".join(table(name, seeds) for name, seeds in found.items()))
    draw(found, docs / "img" / "growing.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
