"""`python -m tests.mutants named [WORD ...]`: put in each mistake of named.toml whose test has one of these words.

`python -m tests.mutants drawn FILE [--workers 2]`: run the mutants that generate.py wrote to FILE, and print a table by
package, every survivor with its line, and those that equivalent.toml explains. Both end with 1 if something survives that
should not.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .runs import ROOT, Job, run_all, warm_up

HERE = Path(__file__).parent
ENOUGH = 0.9  # of the mutants that are not equivalent, and
EACH = 0.85  # of those of every package, have to be noticed


def named(words: Sequence[str], workers: int) -> int:
    """Put in each mistake by hand; its test must pass without it and fail with it."""
    mistakes = tomllib.loads((HERE / "named.toml").read_text())["mistake"]
    mistakes = [m for m in mistakes if not words or any(w in m["test"] for w in words)]
    jobs = [Job([m["test"]], 60.0, m["file"], with_mistake(m), m) for m in mistakes]
    run_all([Job(sorted({m["test"] for m in mistakes}), 600.0)], workers=1, report=_must_pass)

    def report(job: Job) -> None:
        word = "NOT NOTICED" if job.outcome == "passed" else "noticed"
        print(f"{word:12s} {job.data['file']:34s} {job.data['what']}  ({job.seconds:.1f} s)", flush=True)

    run_all(jobs, workers=workers, report=report)
    bad = sum(j.outcome == "passed" for j in jobs)
    print(f"{len(jobs) - bad} of {len(jobs)} named mistakes are noticed by their tests.")
    return int(bad > 0)


def _must_pass(job: Job) -> None:
    if job.outcome != "passed":
        sys.exit(
            f"{job.said[-3000:]}\nThe tests must pass before a mistake is put in; these {job.outcome}: {job.tests}"
        )


def with_mistake(mistake: dict[str, str]) -> str:
    text = (ROOT / "src" / "alebo" / mistake["file"]).read_text()
    if text.count(mistake["old"]) != 1:
        sys.exit(
            f"named.toml: {mistake['old']!r} must stand once in {mistake['file']}; it does {text.count(mistake['old'])} times."
        )
    return text.replace(mistake["old"], mistake["new"])


def drawn(file: Path, workers: int, seconds: float | None) -> int:
    """Run the mutants of a file and print what came of them; None seconds: as many as the tests take without a mutant."""
    began = time.monotonic()
    mutants = json.loads(file.read_text())
    targets = tomllib.loads((HERE / "targets.toml").read_text())["target"]
    known = tomllib.loads((HERE / "equivalent.toml").read_text()).get("equivalent", [])
    reasons = {(e["file"], e["old"], e["new"]): e["reason"] for e in known}
    before = {k: Job(targets[k]["tests"], 900.0) for k in sorted({m["target"] for m in mutants})}
    if seconds is None:
        run_all(list(before.values()), workers=workers, report=_must_pass)
    jobs = [
        Job(
            targets[m["target"]]["tests"],
            20.0 + 2.5 * before[m["target"]].seconds if seconds is None else seconds,
            m["file"],
            m["source"],
            m,
        )
        for m in mutants
        if (m["file"], m["old"], m["new"]) not in reasons
    ]

    def report(job: Job) -> None:
        m = job.data
        by = re.findall(r"^(?:FAILED|ERROR) (\S+)", job.said, re.MULTILINE)
        print(
            f"{job.outcome:7s} {job.seconds:5.1f} s  {m['file']}:{m['line']}  {m['old'][:60]}  {' '.join(by)}",
            flush=True,
        )

    run_all(jobs, workers=workers, report=report)
    print(table(mutants, jobs, reasons))
    print(f"\n{time.monotonic() - began:.0f} seconds, {workers} at a time.")
    rates = [_rate([j for j in jobs if j.data["package"] == p]) for p in {m["package"] for m in mutants}]
    return int(_rate(jobs) < ENOUGH or min(rates) < EACH)


def _rate(jobs: Sequence[Job]) -> float:
    return sum(j.outcome != "passed" for j in jobs) / len(jobs) if jobs else 1.0


def table(mutants: Sequence[dict[str, Any]], jobs: Sequence[Job], reasons: dict[tuple[str, str, str], str]) -> str:
    """By package; then the survivors, and the equivalent ones with their reasons."""
    lines = ["", f"{'package':18s} mutants  equivalent  noticed  survived  score"]
    for package in [*dict.fromkeys(m["package"] for m in mutants), ""]:
        of = [m for m in mutants if m["package"].startswith(package)]
        ran = [j for j in jobs if j.data["package"].startswith(package)]
        alive = sum(j.outcome == "passed" for j in ran)
        shown = f"{len(of):7d}  {len(of) - len(ran):10d}  {len(ran) - alive:7d}  {alive:8d}  {_rate(ran):5.0%}"
        lines.append(f"{package or 'all':18s} {shown}")
    for job in jobs:
        if job.outcome == "passed":
            m = job.data
            lines += [
                "",
                f"survived: src/alebo/{m['file']}:{m['line']}  {m['operator']}",
                f"  - {m['old']}",
                f"  + {m['new']}",
            ]
    for m in mutants:
        reason = reasons.get((m["file"], m["old"], m["new"]))
        if reason:
            lines += ["", f"equivalent: src/alebo/{m['file']}:{m['line']}  {reason}"]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("what", choices=["named", "drawn"])
    parser.add_argument("words", nargs="*", help="named: parts of tests' names; drawn: the file of mutants")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--seconds", type=float, help="drawn: a limit for each mutant, instead of a first run without any"
    )
    given = parser.parse_args()
    warm_up()
    if given.what == "named":
        return named(given.words, given.workers)
    return drawn(Path(given.words[0]), given.workers, given.seconds)


if __name__ == "__main__":
    sys.exit(main())
