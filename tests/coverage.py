"""`python -m tests.coverage FILE`: line and branch coverage by package, from the JSON report of coverage.py.

Ends with 1 where a package of `JUDGED` is below `LEAST`. What runs in processes of its own (the supervisor of commands,
worker processes) is not seen. A file for a host that is not installed (`HOSTS`) is left out, and named: its tests were
skipped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LEAST = 95.0  # percent of lines and branches
JUDGED = ("geometry", "models", "acquisition", "methods", "goals", "space", "history", "optimizer", "runner")
JUDGED += ("evaluator", "integrations")
HOSTS = {"integrations/ax.py": "ax", "integrations/mlflow.py": "mlflow", "integrations/sklearn.py": "sklearn"}


def without_hosts(files: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The files that could be tested here; and those that could not, each with the library that is missing."""
    missing = {
        name: host for name in files for end, host in HOSTS.items() if name.endswith(end) and find_spec(host) is None
    }
    return {name: found for name, found in files.items() if name not in missing}, missing


def by_package(files: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Lines and branches that ran, and all there are, by the first part of a file's path below the package."""
    out: dict[str, tuple[int, int]] = {}
    for name, found in files.items():
        inside = Path(name).parts[Path(name).parts.index("alebo") + 1 :]
        package = Path(inside[0]).stem
        total = found["summary"]
        ran = total["covered_lines"] + total["covered_branches"]
        of = total["num_statements"] + total["num_branches"]
        before = out.get(package, (0, 0))
        out[package] = (before[0] + ran, before[1] + of)
    return out


def main(path: str) -> int:
    """Print the table; 1 where a judged package is below the least."""
    files, missing = without_hosts(json.loads(Path(path).read_text())["files"])
    counts = by_package(files)
    low = 0
    for package, (ran, of) in sorted(counts.items()):
        share = 100.0 * ran / of if of else 100.0
        bad = package in JUDGED and share < LEAST
        low += bad
        print(f"{package:18s} {ran:6d} of {of:6d}  {share:5.1f} %{'   <-- below ' + str(LEAST) if bad else ''}")
    total = [sum(c[i] for c in counts.values()) for i in (0, 1)]
    print(f"{'all':18s} {total[0]:6d} of {total[1]:6d}  {100.0 * total[0] / total[1]:5.1f} %")
    for name, host in missing.items():
        print(f"left out: {name} (its tests need {host}, which is not installed)")
    return int(low > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
