"""S8 and S9: how ALEBO on Branin depends on the embedding's dimension d_e and on the ambient dimension D."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from alebo import InputError

from ..published import row, verdict
from ..results import Run, load
from ..statistics import standard_error
from ._style import colour, pyplot, save

FAMILIES = ("alebo-paper", "alebo-fixed", "alebo")
D_E, AMBIENT = (2, 3, 4, 5, 6, 7, 8), (50, 100, 200, 500, 1000)


def data(folder: Path) -> dict[str, Any]:
    """Traces and final values by d_e (D=100) and by D (the paper's d_e=4, or whatever the default chooses)."""
    results = load(folder)
    out: dict[str, Any] = {"d_e": {}, "D": {}}
    for family in FAMILIES:
        for label in results.labels("branin-100"):
            match = re.fullmatch(rf"{family}-dim(\d+)", label)
            dim = int(match[1]) if match else 4 if label == family and family != "alebo" else None
            runs = results.alike("branin-100", label)
            if dim in D_E and runs:
                out["d_e"].setdefault(family, {})[dim] = _summary(runs, row("branin-100", f"alebo-dim{dim}"))
        for D in AMBIENT:
            runs = results.alike(f"branin-{D}", family)
            if runs:
                out["D"].setdefault(family, {})[D] = _summary(runs, row(f"branin-{D}", "alebo"))
    for kind in out:  # one point is no dependence
        out[kind] = {family: by for family, by in out[kind].items() if len(by) > 1}
    if not out["d_e"] and not out["D"]:
        raise InputError(
            f"Sensitivity needs runs of branin-100 with labels such as alebo-paper-dim5 and of branin-50 to branin-1000; {folder} "
            "has none. Make them with: alebo bench run --problem branin-100 --method 'alebo-paper(dim=5)'"
        )
    return out


def _summary(runs: list[Run], known: dict[str, Any] | None) -> dict[str, Any]:
    final = np.array([r.final for r in runs])
    return {
        "runs": len(runs),
        "trace": np.stack([r.trace for r in runs]).mean(axis=0),
        "mean": float(final.mean()),
        "se": standard_error(final),
        "median": float(np.median(final)),
        "published": known,
    }


def draw(data: dict[str, Any], path: Path) -> str:
    plt = pyplot()
    figure, axes = plt.subplots(2, 2, figsize=(11, 7))
    words = []
    for column, (kind, title) in enumerate((("d_e", "embedding dimension d_e, D=100"), ("D", "ambient dimension D"))):
        trace, ends = axes[:, column]
        for at, (family, by) in enumerate(data[kind].items()):
            xs = sorted(by)
            for i, x in enumerate(xs):
                if family == next(iter(data[kind])):
                    shade = plt.cm.viridis(i / max(1, len(xs) - 1))
                    trace.plot(np.arange(1, len(by[x]["trace"]) + 1), by[x]["trace"], color=shade, label=f"{kind}={x}")
            positions = [_positions(kind).index(x) + 0.12 * at for x in xs]
            ends.errorbar(
                positions,
                [by[x]["mean"] for x in xs],
                [2 * by[x]["se"] for x in xs],
                fmt="o",
                color=colour(family),
                label=f"{family}, ours",
            )
            ends.scatter(positions, [by[x]["median"] for x in xs], marker="_", s=60, color=colour(family))
            words += _agreement(kind, family, by)
        rows = {
            x: row("branin-100", f"alebo-dim{x}") if kind == "d_e" else row(f"branin-{x}", "alebo")
            for x in _positions(kind)
        }
        known = {x: found for x, found in rows.items() if found}
        at_known = [_positions(kind).index(x) - 0.15 for x in sorted(known)]
        ends.errorbar(
            at_known,
            [known[x]["mean"] for x in sorted(known)],
            [2 * known[x]["se"] for x in sorted(known)],
            fmt="s",
            color="black",
            label="ALEBO, published",
        )
        ends.set_xticks(range(len(_positions(kind))), [str(x) for x in _positions(kind)])
        ends.set_xlabel(title)
        ends.set_ylabel("final value: mean ± 2 SE (dash: median)")
        ends.axhline(0.397887, color="black", lw=0.6, ls=":")
        first = next(iter(data[kind]), "nothing")
        trace.set_title(f"{first}: mean best value")
        trace.set_yscale("log")
        trace.set_xlabel("evaluations")
        for axis in (trace, ends):
            if axis.get_legend_handles_labels()[0]:
                axis.legend(fontsize=7)
    figure.tight_layout()
    save(figure, path)
    return (
        "S8 and S9. Above: mean best value by evaluation on Branin; below: mean of the final values with two standard errors, ours "
        f"and published. {' '.join(words)}"
    )


def _positions(kind: str) -> list[int]:
    return list(D_E if kind == "d_e" else AMBIENT)


def _agreement(kind: str, family: str, by: dict[int, Any]) -> list[str]:
    out = []
    for x in sorted(by):
        d = by[x]
        said = verdict(d["mean"], d["se"], d["runs"], d["published"])
        out.append(f"{family} {kind}={x}: {d['mean']:.3f} ± {d['se']:.3f}, {d['runs']} runs ({said}).")
    return out
