"""Reading runs back: every line of a folder is a run, a failure, or reported as foreign; nothing disappears."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from alebo import InputError
from alebo.goals import hypervolume_trace

from . import store

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Run:
    """One finished or failed run, as stored; traces are in the user's sign, NaN while nothing was feasible."""

    record: dict[str, Any]
    path: Path | None = None

    @property
    def problem(self) -> str:
        return str(self.record["problem"])

    @property
    def label(self) -> str:
        return str(self.record["label"])

    @property
    def seed(self) -> int:
        return int(self.record["seed"])

    @property
    def budget(self) -> int:
        return int(self.record["budget"])

    @property
    def optimum(self) -> float | None:
        return None if self.record.get("optimum") is None else float(self.record["optimum"])

    @property
    def complete(self) -> bool:
        return bool(self.record["state"] == "complete")

    @property
    def error(self) -> str:
        return str(self.record.get("error"))

    @property
    def version(self) -> str:
        return str(self.record["environment"]["versions"]["alebo"])

    @property
    def commit(self) -> str:
        return str(self.record["environment"].get("commit") or "?")

    @property
    def settings(self) -> str:
        """The method and its settings in one line: runs of one label must agree in it."""
        return json.dumps(self.record["method"], sort_keys=True)

    @property
    def sign(self) -> float:
        """+1 where small is good."""
        return -1.0 if len(self._objectives) > 1 or self._objectives[0]["type"] == "Maximize" else 1.0

    @property
    def _objectives(self) -> list[dict[str, Any]]:
        return [g for g in self.record["goals"] if g["type"] in ("Minimize", "Maximize")]

    @cached_property
    def values(self) -> Array:
        """The objective of every evaluation as measured, NaN where it failed or broke a constraint.  -> n"""
        return self._column(self.record["outcomes"][self._objectives[0]["outcome"]])

    def _column(self, series: Sequence[float | None]) -> Array:
        column = np.array([np.nan if v is None else v for v in series], dtype=np.float64)
        feasible = self.record["feasible"]
        if feasible is not None:
            column[~np.array(feasible, dtype=bool)] = np.nan
        return column

    @cached_property
    def trace(self) -> Array:
        """Best so far after each evaluation: measured, or the hypervolume where there are several objectives.  -> n

        Where measurements are noisy: the true value of the point that had measured best.
        """
        if len(self._objectives) > 1:
            columns = [self._column(self.record["outcomes"][g["outcome"]]) for g in self._objectives]
            signs = [-1.0 if g["type"] == "Maximize" else 1.0 for g in self._objectives]
            if any(g.get("reference") is None for g in self._objectives):
                raise InputError(f"A hypervolume needs references; {self.problem!r} states none for its objectives.")
            points = np.stack([s * c for s, c in zip(signs, columns, strict=True)], axis=1)
            reference = np.array([s * g["reference"] for s, g in zip(signs, self._objectives, strict=True)])
            return hypervolume_trace(points, reference)
        if np.isnan(self.values).all():
            return self.values
        best = self.sign * np.fmin.accumulate(self.sign * self.values)
        truth = self.record["truth"].get(self._objectives[0]["outcome"])
        if truth is None:
            return best
        seen = np.array([np.nan if v is None else v for v in truth], dtype=np.float64)
        out, at = np.full(len(best), np.nan), -1
        for i, v in enumerate(self.values):
            if not np.isnan(v) and (at < 0 or self.sign * v < self.sign * self.values[at]):
                at = i
            out[i] = seen[at] if at >= 0 else np.nan
        return out

    @property
    def final(self) -> float:
        """What the run came to: the true value of the point it names best; NaN where nothing feasible was found."""
        best = self.record.get("best")
        if best is not None and best.get("value") is not None:
            return float(best["value"])
        return float(self.trace[-1]) if len(self._objectives) > 1 else float("nan")

    @property
    def dims(self) -> Array:
        """The embedding's dimension at every evaluation; empty where the method has none.  -> n"""
        changes = self.record["dim"]
        if not changes:
            return np.zeros(0)
        out = np.full(len(self.values), np.nan)
        for at, dim in changes:
            out[at:] = dim
        return out

    @property
    def model_seconds(self) -> float:
        """CPU seconds of the method for one evaluation, on average."""
        return float(sum(self.record["seconds"]["model"])) / max(1, len(self.values))

    @property
    def evaluation_seconds(self) -> float:
        """CPU seconds of the problem for one evaluation, on average."""
        return float(self.record["seconds"]["evaluation"]) / max(1, len(self.values))


@dataclass(frozen=True)
class Results:
    """The runs of a folder, and the files (or lines) in it that are none, each with the reason."""

    runs: tuple[Run, ...]
    foreign: tuple[tuple[Path, str], ...] = field(default=())

    @property
    def complete(self) -> tuple[Run, ...]:
        return tuple(r for r in self.runs if r.complete)

    @property
    def failed(self) -> tuple[Run, ...]:
        return tuple(r for r in self.runs if not r.complete)

    @property
    def problems(self) -> list[str]:
        return list(dict.fromkeys(r.problem for r in self.runs))

    def labels(self, problem: str) -> list[str]:
        return list(dict.fromkeys(r.label for r in self.runs if r.problem == problem))

    def of(self, problem: str, label: str | None = None) -> list[Run]:
        """The complete runs of a problem (and method), by seed."""
        found = [r for r in self.complete if r.problem == problem and label in (None, r.label)]
        return sorted(found, key=lambda r: (r.label, r.seed))

    def alike(self, problem: str, label: str) -> list[Run]:
        """The complete runs that share the most frequent budget: those whose traces can be averaged."""
        runs = self.of(problem, label)
        budgets = [r.budget for r in runs]
        return [r for r in runs if r.budget == max(budgets, key=budgets.count)]

    def only(self, problems: Iterable[str] = (), labels: Iterable[str] = ()) -> Results:
        """These problems and methods alone; all where none is named. A name that is not there is an error."""
        wanted, methods = list(problems), list(labels)
        for given, there, kind in (
            (wanted, self.problems, "problem"),
            (methods, sorted({r.label for r in self.runs}), "method"),
        ):
            for name in given:
                if name not in there:
                    import difflib

                    near = difflib.get_close_matches(name, there, n=1)
                    hint = f"Did you mean {near[0]!r}? " if near else ""
                    raise InputError(
                        f"No run of {kind} {name!r} is here. {hint}There are: {', '.join(there) or 'none'}."
                    )
        runs = [r for r in self.runs if (not wanted or r.problem in wanted) and (not methods or r.label in methods)]
        return Results(tuple(runs), self.foreign)

    def check_unmixed(self) -> None:
        """Raise an InputError where one table would compare runs of different versions, settings or budgets."""
        versions = sorted({r.version for r in self.runs})
        if len(versions) > 1:
            raise InputError(
                f"One table, one version of alebo; these runs were made by {', '.join(versions)}. "
                "Make the old ones again, or pass --mixed to see them together."
            )
        groups: dict[tuple[str, str], set[tuple[str, int]]] = {}
        for r in self.complete:
            groups.setdefault((r.problem, r.label), set()).add((r.settings, r.budget))
        for (problem, label), kinds in groups.items():
            if len(kinds) > 1:
                raise InputError(
                    f"Runs under one label share settings and budget; {problem}/{label} has {len(kinds)} kinds: "
                    f"{'; '.join(f'{s} with {b} evaluations' for s, b in sorted(kinds))[:400]}. "
                    "Make them again, or pass --mixed to see them together."
                )


def load(folder: str | Path, *, make: str | None = None) -> Results:
    """Every run under the folder; files and lines that are not runs are listed with the reason, and skipped.

    Args:
        folder: Where the runs are.
        make: The command that makes them, for the message where there is no folder.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(
            f"Results are a folder; there is no folder {root}. "
            f"Make one with: {make or f'alebo bench run --out {root} ...'}"
        )
    runs: dict[tuple[str, str, int], Run] = {}
    foreign: list[tuple[Path, str]] = []
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        records, reasons = store.read(path) if path.suffix == ".jsonl" else ([], ["not a .jsonl file"])
        foreign += [(path, reason) for reason in reasons]
        for run in (Run(record, path) for record in records):
            first = runs.setdefault((run.problem, run.label, run.seed), run)
            if first is run:
                continue
            if run.complete and not first.complete:
                runs[run.problem, run.label, run.seed] = run
            elif run.complete:
                foreign.append((path, f"seed {run.seed} is another complete run: that of {first.path} counts"))
    return Results(tuple(sorted(runs.values(), key=lambda r: (r.problem, r.label, r.seed))), tuple(foreign))
