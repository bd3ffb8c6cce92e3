"""The paper's own numbers, carried as a small file with its source, and which label of ours stands for which row."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from importlib.resources import files
from typing import Any

# Our label (its beginning, the longest wins) -> the paper's name for the same thing.
NAMES = {
    "alebo": "ALEBO",
    "rembo": "REMBO",
    "rembo-phi": "REMBO-phi k_Psi",
    "rembo-gamma": "REMBO-gamma k_Psi",
    "hesbo-d": "HeSBO, d=d",
    "hesbo-2d": "HeSBO, d=2d",
    "hesbo": "HeSBO",
    "turbo": "TuRBO",
    "cma": "CMA-ES",
    "cma-es": "CMA-ES",
    "cmaes": "CMA-ES",
    "smac": "SMAC",
    "sobol": "Sobol",
    "add-gp": "Add-GP-UCB",
    "addgp": "Add-GP-UCB",
    "ebo": "EBO",
    "coordinate-linebo": "coordinatelinebo",
    "random-linebo": "randomlinebo",
    "descent-linebo": "descentlinebo",
}

ENOUGH = 5  # runs below which no verdict is given, and no method is called first


@cache
def published() -> dict[str, Any]:
    """Everything in the file."""
    data: dict[str, Any] = json.loads((files("alebo.bench") / "published.json").read_text())
    return data


def row(problem: str, label: str) -> dict[str, Any] | None:
    """The paper's row for this problem and our label, where it has one."""
    rows: dict[str, Any] = published()["problems"].get(problem, {})
    label = label.replace("_", "-")
    dim = re.fullmatch(r"alebo(?:-paper|-fixed)?-dim(\d+)", label)
    if dim:
        exact = f"ALEBO, d={dim[1]}"
        return rows.get(exact, rows.get("ALEBO") if problem.startswith("branin") and dim[1] == "4" else None)
    name = paper_name(label)
    found: dict[str, Any] | None = rows.get(name) if name is not None else None
    return found


def paper_name(label: str) -> str | None:
    """The paper's name for our label, where it has one."""
    label = label.replace("_", "-")
    if re.search(r"-dim\d+", label):  # a dimension of one's own is not the paper's setting
        return None
    hits = [start for start in NAMES if label == start or label.startswith(start + "-")]
    return NAMES[max(hits, key=len)] if hits else None


def is_study(label: str) -> bool:
    """Whether a label belongs to a study of ALEBO's settings (sensitivity, ablation), not to the comparison of methods."""
    return label.startswith("ablation") or re.fullmatch(r"alebo.*-dim\d+", label) is not None


def verdict(mean: float, se: float, runs: int, known: dict[str, Any] | None, *, sign: float = 1.0) -> str:
    """In words: whether our mean agrees with a published one within two combined standard errors."""
    if known is None or known.get("mean") is None:
        return "not published"
    text = f"published {known['mean']:.4g} ± {known['se']:.2g}"
    if runs < ENOUGH:
        return f"{text}; {runs} of ours {'is' if runs == 1 else 'are'} too few to judge"
    z = sign * (mean - known["mean"]) / math.hypot(se, known["se"])
    word = "agrees" if abs(z) <= 2 else "better" if z < 0 else "worse"
    return f"{text}: {word}, z = {z:+.1f}"
