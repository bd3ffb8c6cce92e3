"""Containment measured: beside the paper's Fig. 4, S5 and S6, against the clock, and the table behind `advise`.

    python -m alebo.bench.containment check     every published cell beside ours, in standard errors
    python -m alebo.bench.containment speed     draws a second, and the paper's program in x with the same solver
    python -m alebo.bench.containment table     the cells behind `alebo.advise` (about 6 CPU minutes)

Each keeps its cells in a file under results/containment and goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

import alebo

RESULTS = Path("results/containment")

# --- the paper's cells


@dataclass(frozen=True)
class Compared:
    """A published cell and ours. The paper drew 1000 times, too."""

    figure: str
    published: float
    ours: alebo.geometry.Containment

    @property
    def standard_error(self) -> float:
        return math.hypot(self.ours.standard_error, math.sqrt(self.published * (1 - self.published) / 1000))

    @property
    def z(self) -> float:
        """The difference in combined standard errors."""
        gap = self.ours.value - self.published
        return 0.0 if gap == 0.0 else gap / self.standard_error


def published() -> Iterator[tuple[str, tuple[str, int, int, int], float]]:
    """(figure, (kind, D, active, dim), probability) of Fig. 4 and S5 (D=100, three kinds) and S6 (hypersphere)."""
    text = (files("alebo.bench") / "published_containment.csv").read_text()
    for row in csv.DictReader(text.splitlines()):
        cell = (row["kind"], int(row["D"]), int(row["active"]), int(row["dim"]))
        yield row["figure"], cell, float(row["probability"])


def check(samples: int = 1000, seed: int = 0, path: Path = RESULTS / "check.jsonl") -> list[Compared]:
    """Every published cell, computed again. A cell that two figures share is computed once, and compared with both."""
    rows = list(published())
    cells = list(dict.fromkeys(cell for _, cell, _ in rows))
    ours = dict(zip(cells, alebo.containment_sweep(cells, path=path, samples=samples, seed=seed), strict=True))
    return [Compared(figure, p, ours[cell]) for figure, cell, p in rows]


def check_report(rows: list[Compared]) -> str:
    lines = ["figure  kind            D  active  dim   paper    ours   exact       z"]
    for row in rows:
        o = row.ours
        exact = f"{o.exact:7.4f}" if o.exact is not None else "      -"
        lines.append(
            f"{row.figure:6}  {o.kind:12} {o.D:4d}  {o.active:6d}  {o.dim:3d}  {row.published:6.3f}  {o.value:6.3f} "
            f"{exact} {row.z:7.2f}{'  beyond 3' if abs(row.z) > 3 else ''}"
        )
    z = np.array([row.z for row in rows])
    beyond = int(np.count_nonzero(np.abs(z) > 3))
    inside = np.array([0.02 < row.published < 0.98 for row in rows])
    lines += [
        "",
        f"{len(rows)} cells; {len(rows) - beyond} within 3 combined standard errors, {beyond} beyond.",
        f"Of {inside.sum()} cells with a published probability of 0.02 to 0.98: mean z {z[inside].mean():.2f}, "
        f"standard deviation of z {z[inside].std(ddof=1):.2f}, largest |z| {np.abs(z[inside]).max():.2f}.",
    ]
    closed = [(row.published - e) / math.sqrt(e * (1 - e) / 1000) for row in rows if (e := row.ours.exact) and e < 1.0]
    if closed:
        lines.append(
            f"{len(closed)} cells have a closed form: the published values are at most {np.abs(closed).max():.2f} of their "
            "standard errors away from it."
        )
    return "\n".join(lines)


# --- the clock


def paper_program(B: np.ndarray, T: np.ndarray, z: np.ndarray) -> bool:
    """The paper's linear program in x (Supplement, S5), D unknowns, by SciPy's HiGHS."""
    from scipy.optimize import linprog

    D = B.shape[1]
    found = linprog(
        np.zeros(D),
        A_eq=np.vstack([T, np.linalg.pinv(B) @ B - np.eye(D)]),
        b_eq=np.concatenate([z, np.zeros(D)]),
        bounds=[(-1.0, 1.0)] * D,
        method="highs",
    )
    if found.status not in (0, 2):
        raise RuntimeError(found.message)
    return bool(found.status == 0)


def speed(D: int, draws: int, *, active: int = 6, dim: int = 12, seed: int = 0) -> dict[str, float]:
    """Seconds for 1000 draws, and the time of a verdict against the paper's program on the same draws."""
    started = time.perf_counter()
    alebo.containment_probability("hypersphere", D=D, active=active, dim=dim, samples=1000, seed=seed)
    ours_1000 = time.perf_counter() - started
    seconds = {"ours": 0.0, "paper": 0.0}
    agree = 0
    for i in range(draws):
        rng = np.random.default_rng([seed, i])
        T, z = alebo.geometry.axis_aligned(rng, D, active)
        embedding = alebo.geometry.hypersphere(D, dim, seed=i)
        B = embedding.B
        started = time.perf_counter()
        ours = alebo.contains_optimum(embedding, T, z)
        seconds["ours"] += time.perf_counter() - started
        started = time.perf_counter()
        paper = paper_program(B, T, z)
        seconds["paper"] += time.perf_counter() - started
        agree += ours == paper
    return {
        "D": D,
        "seconds for 1000 draws": ours_1000,
        "ms per verdict, ours": 1e3 * seconds["ours"] / draws,
        "ms per verdict, paper's program": 1e3 * seconds["paper"] / draws,
        "times faster": seconds["paper"] / seconds["ours"],
        "times faster, drawing included": seconds["paper"] / draws / (ours_1000 / 1000),
        "draws compared": draws,
        "verdicts that agree": agree,
    }


# --- the table behind the advice: draws per cell for each D

TABLE_D = {12: 500, 20: 1000, 30: 500, 50: 1000, 70: 500, 100: 1000, 200: 1000, 500: 500, 1000: 500}
TABLE_ACTIVE = range(1, 13)
TABLE_DIM = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 25, 30)


def table(seed: int = 0, path: Path = RESULTS / "table.jsonl") -> dict[str, object]:
    """Hits of every cell, hypersphere embeddings under the axis-aligned prior."""
    hits = []
    for D, samples in TABLE_D.items():
        cells = [("hypersphere", D, a, dim) for a in TABLE_ACTIVE for dim in TABLE_DIM if a <= dim < D]
        done = alebo.containment_sweep(
            cells, path=path, samples=samples, seed=seed, progress=lambda i, n, c: print(i, n, c, file=sys.stderr)
        )
        hits += [[c.D, c.active, c.dim, c.hits] for c in done]
    return {
        "what": "hits of containment_probability('hypersphere', ...), axis-aligned prior: [D, active, dim, hits]",
        "command": "python -m alebo.bench.containment table",
        "seed": seed,
        "samples": {str(D): n for D, n in TABLE_D.items()},
        "hits": hits,
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m alebo.bench.containment", description="Containment, measured.")
    parser.add_argument("what", choices=["check", "speed", "table"])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="table: where the shipped file goes", default=None)
    given = parser.parse_args(argv)
    if given.what == "check":
        name = "check" if given.samples == 1000 else f"check-{given.samples}"
        print(check_report(check(given.samples, given.seed, RESULTS / f"{name}.jsonl")))
    elif given.what == "speed":
        for D, draws in ((100, 200), (1000, 10)):
            for name, value in speed(D, draws, seed=given.seed).items():
                print(f"{name:34} {value:.4g}")
            print()
    else:
        made = table(given.seed)
        text = json.dumps(made).replace("], [", "],\n[")
        (given.out or Path(str(files("alebo") / "data" / "containment.json"))).write_text(text + "\n")


if __name__ == "__main__":
    main()
