"""Methods that have runs on a suite's problems and are not in its table, each with the reason."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from alebo import InputError

from .published import is_study
from .results import Results
from .suite import Suite, how

ASKED = "not asked for; --methods adds them"
FEW = "they have runs on too few of the problems that the others share; --methods adds them"
STUDY = "studies of ALEBO's settings; --methods adds them"
SHORT = "all their runs have fewer evaluations than the suite asks for"
DAMAGED = "no line of theirs is a run that can be read"

Pairs = Collection[tuple[str, str]]  # (problem, method)


@dataclass(frozen=True)
class Absent:
    """A method that is not in the table."""

    label: str
    problems: int  # of the suite, on which it has runs, or files of them
    why: str


def damaged(results: Results, suite: Suite) -> frozenset[tuple[str, str]]:
    """The pairs whose file holds no line that is a run."""
    there = {(r.problem, r.label) for r in results.runs}
    files = {(p.parent.name, p.stem) for p, _ in results.foreign if p.suffix == ".jsonl"}
    return frozenset(
        (entry.name, label)
        for entry in suite.entries
        for name, label in files - there
        if name in entry.names and not any((other, label) in there for other in entry.names)
    )


def absent(chosen: Collection[str], full: Pairs, short: Pairs, lost: Pairs, *, named: bool) -> tuple[Absent, ...]:
    """The methods that are not chosen, by name.

    Args:
        chosen: The methods of the table.
        full: The pairs with runs that count.
        short: Those with shorter runs alone.
        lost: Those with damaged lines alone.
        named: Whether the methods were chosen by name.
    """
    out = []
    for label in sorted({label for _, label in (*full, *short, *lost)} - set(chosen)):
        counts = [len({problem for problem, other in pairs if other == label}) for pairs in (full, short, lost)]
        if counts[0]:
            why = ASKED if named else STUDY if is_study(label) else FEW
        else:
            why = SHORT if counts[1] else DAMAGED
        out.append(Absent(label, next(n for n in counts if n), why))
    return tuple(out)


def notes(found: Sequence[Absent], problems: int) -> list[str]:
    """A line for each reason."""
    out = []
    for why in dict.fromkeys(a.why for a in found):
        names = ", ".join(f"{a.label} ({a.problems})" for a in found if a.why == why)
        out.append(f"Not in this table ({why}), with the number of the {problems} problems that each has: {names}.")
    return out


def check_chosen(
    suite: Suite,
    chosen: Sequence[str],
    full: Pairs,
    short: dict[tuple[str, str], int],
    lost: Pairs,
    *,
    named: bool,
    make: str | None,
) -> None:
    """Raise an InputError unless there are runs of two methods or more."""
    there = list(dict.fromkeys(label for _, label in full))
    for label in chosen:
        if label not in there:
            n = sum(n for (_, other), n in short.items() if other == label)
            left = f" ({n} with fewer evaluations than the suite asks for)" if n else ""
            files = sum(other == label for _, other in lost)
            left += f" (no line of its files on {files} problems is a run that can be read)" if files else ""
            raise InputError(
                f"No run of {label!r} on suite {suite.name!r} is here{left}. There are: {', '.join(there) or 'none'}."
            )
    if named and len(chosen) < 2:
        raise InputError(
            f"A suite's table compares two methods or more; got {chosen[0]}. Name more of {', '.join(there)}."
        )
    if len(chosen) < 2:
        here = [label for label in there if not is_study(label)]
        n = sum(short.values())
        left = f", and {n} runs with fewer evaluations than the suite asks for" if n else ""
        another = (
            " (which leaves out those in whose place a shorter run is stored; another --out makes them)" if n else ""
        )
        raise InputError(
            f"Suite {suite.name!r} needs runs of two methods or more; here are those of {', '.join(here) or 'none'}{left}. "
            f"Make them with: {make or how(suite)}{another}"
        )
