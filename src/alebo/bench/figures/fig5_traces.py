"""Fig. 5 and S7: the best value by evaluation on the paper's five problems, log regret, and where the runs end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from alebo import InputError

from ..problems import PAPER
from ..published import ENOUGH, is_study, published, row, verdict
from ..results import Results, load
from ..statistics import standard_error, standard_errors
from ._style import colour, order, pyplot, save


def main_labels(results: Results, problem: str) -> list[str]:
    """The methods of the main comparison."""
    found = [x for x in results.labels(problem) if not is_study(x) and results.of(problem, x)]
    return sorted(found, key=order)


def data(folder: Path) -> dict[str, Any]:
    """Mean trace with its standard error, mean log regret, and final values, by problem and method."""
    results = load(folder)
    out: dict[str, Any] = {}
    for problem in PAPER:
        for label in main_labels(results, problem):
            runs = results.alike(problem, label)
            traces = np.stack([r.trace for r in runs])
            optimum = runs[0].optimum
            assert optimum is not None
            regret = np.log10(np.maximum(runs[0].sign * (traces - optimum), 1e-8))
            known = row(problem, label) or {}
            with np.errstate(invalid="ignore"):
                out.setdefault(problem, {})[label] = {
                    "runs": len(runs),
                    "mean": _mean(traces),
                    "se": standard_errors(traces),
                    "regret": _mean(regret),
                    "regret_se": standard_errors(regret),
                    "final": np.array([r.final for r in runs]),
                    "optimum": optimum,
                    "published": {"after": known.get("after", {}), "mean": known.get("mean"), "se": known.get("se")},
                }
    if not out:
        raise InputError(f"Traces need runs of {', '.join(PAPER)}; {folder} has none. Make them with: alebo bench run")
    return out


def _mean(traces: np.ndarray) -> np.ndarray:
    # runs without a feasible point so far are left out of the mean, as in the paper's numbers
    some = ~np.isnan(traces).all(axis=0)
    out = np.full(traces.shape[1], np.nan)
    out[some] = np.nanmean(traces[:, some], axis=0)
    return out


def draw(data: dict[str, Any], path: Path) -> str:
    plt = pyplot()
    problems = list(data)
    figure, axes = plt.subplots(len(problems), 3, figsize=(15, 3.4 * len(problems)), squeeze=False)
    for line, problem in zip(axes, problems, strict=True):
        for at, (label, d) in enumerate(data[problem].items()):
            n = np.arange(1, len(d["mean"]) + 1)
            c = colour(label, at)
            line[0].plot(n, d["mean"], color=c, label=f"{label} ({d['runs']})")
            line[0].fill_between(n, d["mean"] - 2 * d["se"], d["mean"] + 2 * d["se"], color=c, alpha=0.15, lw=0)
            line[1].plot(n, d["regret"], color=c)
            line[1].fill_between(
                n, d["regret"] - 2 * d["regret_se"], d["regret"] + 2 * d["regret_se"], color=c, alpha=0.15, lw=0
            )
            final = np.log10(np.maximum(np.abs(d["final"] - d["optimum"]), 1e-8))
            jitter = np.random.default_rng(0).uniform(-0.25, 0.25, len(final))
            line[2].scatter(final, at + jitter, s=9, color=c, alpha=0.7, lw=0)
            if np.isfinite(final).any():
                line[2].plot([np.nanmedian(final)] * 2, [at - 0.35, at + 0.35], color="black", lw=1.5)
        known = published()["problems"][problem].get("ALEBO", {}).get("after", {})
        line[0].scatter(
            [int(k) for k in known], list(known.values()), marker="x", color="black", zorder=5, label="ALEBO, published"
        )
        line[0].axhline(next(iter(data[problem].values()))["optimum"], color="black", lw=0.6, ls=":")
        _limits(line[0], data[problem])
        line[0].set_title(f"{problem}: mean best value, two standard errors")
        line[0].legend(fontsize=6.5, loc="upper right", ncol=2)
        line[1].set_title("log10 regret, mean and two standard errors")
        line[2].set_title("log10 regret at the end, every run (bar: median)")
        line[2].set_yticks(range(len(data[problem])), list(data[problem]), fontsize=7)
        line[2].invert_yaxis()
        for axis in line[:2]:
            axis.set_xlabel("evaluations")
    figure.tight_layout()
    save(figure, path)
    return caption(data)


def _limits(axis: Any, by_label: dict[str, Any]) -> None:
    """From the optimum to where the methods are after ten evaluations: the first points would hide everything else."""
    optimum = next(iter(by_label.values()))["optimum"]
    tops = [np.nanmax(d["mean"][min(9, len(d["mean"]) - 1) :]) for d in by_label.values()]
    top = float(np.nanmax(tops))
    axis.set_ylim(optimum - 0.05 * (top - optimum), top + 0.05 * (top - optimum))


def caption(data: dict[str, Any]) -> str:
    """Who is first, and whether our ALEBO agrees with the published one."""
    parts = []
    for problem, by_label in data.items():
        means = {x: float(np.nanmean(d["final"])) for x, d in by_label.items()}
        enough = [x for x in means if by_label[x]["runs"] >= ENOUGH]
        first = min(enough, key=lambda x: means[x], default=None)
        text = f"{problem}: " + (f"best mean {first} ({means[first]:.4f})" if first else "too few runs to name a first")
        for label in ("alebo-paper", "alebo-fixed", "alebo"):
            if label in by_label:
                d = by_label[label]
                se = standard_error(d["final"])
                text += (
                    f"; {label} {means[label]:.4f} ± {se:.4f} ({verdict(means[label], se, d['runs'], d['published'])})"
                )
        parts.append(text)
    return (
        "Fig. 5 and S7. Mean best value and log regret by evaluation, and every run's end; the number of runs is in brackets (methods with fewer than five are shown but not judged), "
        f"crosses are the published means of ALEBO. {'. '.join(parts)}."
    )
