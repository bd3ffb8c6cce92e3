"""Suites: named sets of problems with a budget, a start and a best value each, read from suites.toml.

python -m alebo.bench.suite NAME ...      the median of 101 random points, as `start` in suites.toml
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from alebo import AleboError, InputError

from . import experiment, store
from .labels import Label
from .problems import PROBLEMS, problem

METHODS = "adaptive,alebo,bo,turbo,cmaes,sobol"  # cheap enough for every suite
SHARED = "results"  # the folder of the runs of most suites


@dataclass(frozen=True)
class Entry:
    """A problem of a suite: what a table needs to know of it, without building it."""

    name: str
    D: int
    goal: str
    budget: int
    start: float  # normalised regret 1
    seconds: float  # CPU seconds of one evaluation
    source: str
    licence: str
    best: float | None = None  # normalised regret 0; None: the best of all stored runs
    penalised: str | None = None  # the same problem for methods without constraints

    def __post_init__(self) -> None:
        if self.goal not in ("minimise", "maximise"):
            raise InputError(f"`goal` is minimise or maximise; {self.name!r} has {self.goal!r}.")
        if self.budget < 1:
            raise InputError(f"`budget >= 1` must hold; {self.name!r} has {self.budget}.")
        if self.best is not None and self.sign * self.best >= self.sign * self.start:
            raise InputError(f"`best` must be better than `start`; {self.name!r} has {self.best} and {self.start}.")

    @property
    def sign(self) -> float:
        """+1 where small is good."""
        return 1.0 if self.goal == "minimise" else -1.0

    @property
    def names(self) -> tuple[str, ...]:
        """The problems whose runs count for this entry."""
        return (self.name,) if self.penalised is None else (self.name, self.penalised)


@dataclass(frozen=True)
class Suite:
    """A named set of problems."""

    name: str
    title: str
    entries: tuple[Entry, ...]
    folder: str = SHARED  # of its runs, where no other is given


@cache
def suites() -> dict[str, Suite]:
    """All suites by name; `all` is real and synthetic together."""
    data = tomllib.loads((Path(__file__).parent / "suites.toml").read_text())
    entries = {name: Entry(name=name, **fields) for name, fields in data["problem"].items()}
    out = {}
    for name, fields in data["suite"].items():
        chosen = [entries[p] for p in fields["problems"]]
        if "budget" in fields:
            chosen = [replace(e, budget=fields["budget"]) for e in chosen]
        out[name] = Suite(name, fields["title"], tuple(chosen), fields.get("folder", SHARED))
    both = out["real"].entries + out["synthetic"].entries
    out["all"] = Suite("all", "Real and synthetic problems together", both)
    return out


def suite(name: str) -> Suite:
    """The suite of that name."""
    known = suites()
    if name not in known:
        raise InputError(f"A suite is one of {', '.join(known)}; got {name!r}.")
    return known[name]


def how(chosen: Suite, folder: Path | None = None) -> str:
    """The command that makes the runs of a suite, into this folder where it is not the suite's own."""
    return f"alebo bench suite run {chosen.name}" + (f" --out {folder}" if folder is not None else "")


@dataclass(frozen=True)
class Plan:
    """What a suite has to run: tasks by budget, pairs that cannot be run, and problems that cannot be built here."""

    tasks: tuple[experiment.Task, ...]  # also stored runs of problems that cannot be built here: they are there already
    refused: tuple[str, ...]
    broken: tuple[str, ...]  # only where a run is missing
    lost: int = 0  # runs that had to be made and could not: they are stored as failed


def plan(
    chosen: Suite, methods: Sequence[Label], seeds: Sequence[int], out: Path, *, retry_failed: bool = False
) -> Plan:
    """Every run of the suite.

    A method without constraints gets the penalised variant where there is one. Where a problem cannot be built (a missing
    extra, a foreign program that does not run here) each run of it that is not stored yet is stored as failed with the
    reason, so that tables show it; with `retry_failed` it is tried again.
    """
    tasks: list[experiment.Task] = []
    refused: list[str] = []
    broken: list[str] = []
    lost: list[tuple[experiment.Task, str]] = []
    for entry in chosen.entries:
        for label in methods:
            try:
                tasks += _tasks(entry, label, seeds, out, refused)
            except InputError:
                raise
            except AleboError as error:
                there, missing = _stored(entry, label, seeds, out, retry_failed=retry_failed)
                tasks += there
                broken += [f"{entry.name}, {label.label}: {error}"] if missing else []
                lost += [(task, f"{type(error).__name__}: {error}") for task in missing]
    for task, why in lost:  # after every pair has been checked
        store.append(task.path, experiment.broken(task, why))
    tasks.sort(key=lambda t: t.seed)  # every method gets its first seeds first: a partial sweep is comparable
    return Plan(tuple(tasks), tuple(refused), tuple(broken), len(lost))


def _stored(
    entry: Entry, label: Label, seeds: Sequence[int], out: Path, *, retry_failed: bool
) -> tuple[list[experiment.Task], list[experiment.Task]]:
    """Of a problem that cannot be built: the runs that are stored, of whichever variant, and those that are missing."""
    there: list[experiment.Task] = []
    missing: list[experiment.Task] = []
    for seed in seeds:
        variants = [
            experiment.Task(name, label.text, label.label, seed, entry.budget, store.path_of(out, name, label.label))
            for name in entry.names
        ]
        complete = [t for t in variants if store.present(t.path, seed, retry_failed=True)]
        found = complete or [t for t in variants if store.present(t.path, seed, retry_failed=retry_failed)]
        (there if found else missing).append((found or variants)[0])
    return there, missing


def _tasks(entry: Entry, label: Label, seeds: Sequence[int], out: Path, refused: list[str]) -> list[experiment.Task]:
    reasons: list[str] = []
    for name in entry.names:
        try:
            return experiment.plan([name], [label], seeds, out, budget=entry.budget, refused=reasons)
        except InputError:
            if not reasons:
                raise
    refused += reasons[:1]
    return []


def start_value(name: str, points: int = 101) -> float:
    """The median objective of uniform random points, seed 0: where normalised regret is 1."""
    made, rng, values = problem(name), np.random.default_rng(0), []
    for _ in range(points):
        x = list(made.space.decode(rng.uniform(-1.0, 1.0, made.space.dimension)).values())
        numbers = all(isinstance(v, int | float) for v in x)
        outcomes = made.outcomes(np.array(x, dtype=float if numbers else object))
        values.append(outcomes[made.goals.objectives[0].outcome])
    return float(np.median(values))


if __name__ == "__main__":
    for wanted in sys.argv[1:] or PROBLEMS:
        print(f"{wanted}: {start_value(wanted):.4g}", flush=True)
