"""The tables of docs/choosing.md from stored runs: `python -m alebo.bench.choosing [RESULTS [PAGE]]`.

Reads whatever runs are there, and replaces what stands between the two markers of the page.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

from .results import Results, Run, load
from .statistics import standard_error

START, END = "<!-- tables: begin -->", "<!-- tables: end -->"
# title, folders read as one problem, better direction, references
PROBLEMS: list[tuple[str, list[str], float, str]] = [
    ("Hexapod gait, D=72", ["hexapod-72"], 1.0, "tripod by hand 9.24, standing still 5.00, ceiling 10"),
    (
        "Architecture search under a time limit, D=30",
        ["nasbench201-30", "nasbench201-30-penalised"],
        1.0,
        "best of the table 90.638",
    ),
    ("Rover, D=60", ["rover-60"], 1.0, "border path 4.911"),
    ("Sparse regression on diabetes data, D=64", ["lasso-diabetes-64"], -1.0, ""),
    ("HalfCheetah, linear policy, D=102", ["halfcheetah-102"], 1.0, ""),
    ("Boosted trees, 22 mixed parameters", ["tuning-22"], -1.0, "scikit-learn's trees 0.1214, logistic model 0.0730"),
]


def table(results: Results, names: list[str], sign: float) -> list[str]:
    """Rows by method, best mean first; one table for each number of evaluations."""
    groups: dict[tuple[int, str], list[Run]] = {}
    for run in (r for name in names for r in results.of(name)):
        adapted = " (infeasible = poor)" if run.problem.endswith("-penalised") else ""
        label = run.label.removesuffix(f"-{run.budget}")  # the same method with another budget
        groups.setdefault((run.budget, label + adapted), []).append(run)
    out: list[str] = []
    for budget in sorted({b for b, _ in groups}):
        rows = []
        for (_, label), runs in ((k, v) for k, v in groups.items() if k[0] == budget):
            values = np.array([r.final for r in runs])
            found = values[np.isfinite(values)]
            if not len(found):
                continue
            error = standard_error(found)
            model = np.mean([r.model_seconds for r in runs])
            rows.append((sign * found.mean(), label, len(runs), found, error, model))
        out += [
            f"{budget} evaluations:",
            "",
            "| method | seeds | mean ± SE | median | worst | best | model s for each |",
        ]
        out.append("|---|---|---|---|---|---|---|")
        for _, label, n, found, error, model in sorted(rows, key=lambda r: r[:2], reverse=True):
            worst, best = (sign * f(sign * found) for f in (np.min, np.max))
            digits = 4 if abs(found.mean()) < 1 else 3 if abs(found.mean()) < 100 else 0
            spread = f" ± {error:.{digits}f}" if np.isfinite(error) else ""
            cells = [
                label,
                str(n),
                f"{found.mean():.{digits}f}{spread}",
                *(f"{v:.{digits}f}" for v in (np.median(found), worst, best)),
            ]
            out.append("| " + " | ".join([*cells, f"{model:.2f}"]) + " |")
        out.append("")
    return out


def main(folder: Path, page: Path) -> None:
    results, text = load(folder), []
    for title, names, sign, note in PROBLEMS:
        rows = table(results, names, sign)
        if rows:
            goal = "maximised" if sign > 0 else "minimised"
            text += [f"### {title}", "", f"`{names[0]}`, {goal}" + (f"; {note}." if note else "."), "", *rows]
    block = f"{START}\n\n" + "\n".join(text).strip() + f"\n\n{END}"
    page.write_text(
        re.sub(re.escape(START) + ".*?" + re.escape(END), lambda _: block, page.read_text(), flags=re.DOTALL)
    )


if __name__ == "__main__":
    given = [Path(a) for a in sys.argv[1:]]
    main(*given, *[Path("results"), Path("docs/choosing.md")][len(given) :])
