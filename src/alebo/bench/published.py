"""The paper's own numbers, carried as a small file with its source, and which label of ours stands for which row."""

from __future__ import annotations

import json
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
    "cmaes": "CMA-ES",
    "smac": "SMAC",
    "sobol": "Sobol",
    "add-gp": "Add-GP-UCB",
    "addgp": "Add-GP-UCB",
    "ebo": "EBO",
}


@cache
def published() -> dict[str, Any]:
    """Everything in the file."""
    data: dict[str, Any] = json.loads((files("alebo.bench") / "published.json").read_text())
    return data


def row(problem: str, label: str) -> dict[str, Any] | None:
    """The paper's row for this problem and our label, where it has one."""
    rows: dict[str, Any] = published()["problems"].get(problem, {})
    dim = re.fullmatch(r"alebo(?:-paper|-fixed)?-dim(\d+)", label)
    if dim:
        name = f"ALEBO, d={dim[1]}"
        return rows.get(name, rows.get("ALEBO") if problem.startswith("branin") and dim[1] == "4" else None)
    hits = [start for start in NAMES if label == start or label.startswith(start + "-")]
    if not hits:
        return None
    found: dict[str, Any] | None = rows.get(NAMES[max(hits, key=len)])
    return found
