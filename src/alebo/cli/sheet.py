"""Sheets: CSV files with one row for each trial, which people fill in by hand or in a spreadsheet."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import InputError, StudyError
from .._table import FORMULA as _FORMULA
from .._table import cells_of, check_names, rows_below, said_separator
from .._table import unguarded as unguarded
from ._out import err, say

if TYPE_CHECKING:
    from ..history import Trial
    from ..parameters import Parameter
    from ..space import Space

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_VALUE = re.compile(rf"({_NUMBER})(?:\s*(?:\+-|\+/-|±)\s*({_NUMBER}))?")
_WITH_UNIT = re.compile(rf"({_NUMBER})\s*[^\d\s.,;+-][^;]*")
NOTHING = "Nothing of this file was stored."


@dataclass(frozen=True)
class Layout:
    """Which column of a sheet means what. Names that would stand twice get a `_` at their end."""

    trial: str
    params: dict[str, str]  # parameter -> column
    outcomes: dict[str, str]  # outcome -> column
    check: str  # ties a row to its trial: a sheet of another study is noticed

    @classmethod
    def of(cls, space: Space, outcomes: Sequence[str]) -> Layout:
        """The columns of a study."""
        taken: set[str] = set()

        def free(name: str) -> str:
            while name in taken:
                name += "_"
            taken.add(name)
            return name

        params = {n: free(n) for n in space.names}
        measured = {n: free(n) for n in outcomes}
        return cls(free("trial"), params, measured, free("check"))

    @property
    def header(self) -> list[str]:
        """All columns, in order."""
        return [self.trial, *self.params.values(), *self.outcomes.values(), self.check]

    def cells(self, trial: Trial, space: Space) -> dict[str, str]:
        """A trial's cells by column, its outcomes left empty."""
        settings = {self.params[p.name]: short(p, trial.params[p.name]) for p in space.parameters}
        return {self.trial: str(trial.number), **settings, self.check: mark(trial)}


@dataclass(frozen=True)
class Sheet:
    """A file as it was read: its rows with their lines, and how its numbers are written."""

    path: Path
    header: tuple[str, ...]
    rows: tuple[tuple[int, dict[str, str]], ...]
    separator: str
    newline: str

    @property
    def comma(self) -> bool:
        """Whether a decimal comma is read as one: plainly so where columns are separated by semicolons."""
        return self.separator == ";"

    def refuse(self, line: int, column: str | None, why: str) -> InputError:
        """The error for a cell: file, line, column, what is wrong and the way out."""
        where = f"{self.path}, line {line}" + (f", column {column!r}" if column is not None else "")
        return InputError(f"{where}: {why} {NOTHING}")


def short(p: Parameter, value: Any) -> str:
    """A setting with as many digits as its step or its range deserves: a ten-thousandth of the range."""
    from ..parameters import Float

    if not isinstance(p, Float) or not isinstance(value, float):
        return guarded(str(value))
    if p.gridded:
        return _plain(value)
    if p.log:
        return _plain(min(max(float(f"{value:.3e}"), p.low), p.high))
    places = max(0, 4 - math.floor(math.log10(p.high - p.low)))
    return _plain(min(max(round(value, places), p.low), p.high))


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def mark(trial: Trial) -> str:
    """Four letters that tie a row to a trial's proposal. Letters, because a spreadsheet leaves them alone."""
    first = trial.earlier[0] if trial.earlier else trial
    digest = hashlib.sha256(f"{trial.number}:{first.x.tolist()!r}".encode()).digest()
    return "".join("abcdefghkmnpqrst"[b % 16] for b in digest[:4])


def guarded(text: str) -> str:
    """A text that a spreadsheet does not take for a formula."""
    return "'" + text if text.startswith(_FORMULA) and not _VALUE.fullmatch(text) else text


def written(
    header: Sequence[str],
    rows: Iterable[Mapping[str, str]],
    *,
    separator: str = ",",
    newline: str = "\n",
    head: bool = True,
) -> str:
    """Rows as CSV text. With semicolons, numbers get a decimal comma."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator=newline)
    if head:
        writer.writerow([guarded(name) for name in header])
    for row in rows:
        cells = [row.get(name, "") for name in header]
        writer.writerow([c.replace(".", ",") if separator == ";" and _VALUE.fullmatch(c) else c for c in cells])
    return out.getvalue()


def read(path: Path, known: Iterable[str]) -> Sheet:
    """The rows of a file; `known` are the columns that it may have, from which its separator is found."""
    text = _text(path)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    skip = next((i for i, line in enumerate(lines) if line.strip()), 0)
    named = said_separator(lines[skip])
    if named:
        skip += 1
    if skip >= len(lines) or not lines[skip].strip():
        raise InputError(f"{path}, line 1: a sheet begins with the names of its columns; this file is empty. {NOTHING}")
    wanted = set(known)
    first = lines[skip]
    separator = named or max(",;\t", key=lambda s: len(wanted & set(cells_of(first, s))))
    header = cells_of(first, separator)
    sheet = Sheet(path, tuple(header), (), separator, newline)
    check_names(header, skip + 1, sheet.refuse)
    body = (line + "\n" for line in lines[skip + 1 :])
    return replace(sheet, rows=tuple(rows_below(body, header, separator, skip + 1, sheet.refuse)))


def say_unused(sheet: Sheet, known: Iterable[str]) -> None:
    """Name the columns that mean nothing here."""
    unused = [c for c in sheet.header if c and c not in set(known)]
    if unused:
        say(err(), f"Not used in {sheet.path}: column {', '.join(map(repr, unused[:8]))}.", "yellow")


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except FileNotFoundError:
        raise StudyError(f"A sheet must exist to be read; there is no {path}.") from None
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise StudyError(
            f"A sheet is UTF-8 text; {path}, line {line} is not. Save it as 'CSV UTF-8'. {NOTHING}"
        ) from None
    except OSError as error:
        raise StudyError(f"A sheet must be readable; {path} is not: {error}.") from None
    if "\0" in text:
        raise StudyError(
            f"A sheet is text; {path} is not: save the spreadsheet as CSV, not as .xlsx or .ods. {NOTHING}"
        )
    return text


def number(text: str, name: str, *, comma: bool = False) -> Any:
    """A number, or (mean, standard error) for 0.7+-0.1. A comma never means an error.

    Args:
        text: What somebody wrote.
        name: Of what, for the message.
        comma: Whether a decimal comma is read as one.
    """
    given = text.strip()
    if comma and "." not in given:
        given = (
            given.replace(",", ".") if all(part.count(",") <= 1 for part in re.split(r"\+-|\+/-|±", given)) else given
        )
    found = _VALUE.fullmatch(given)
    if found:
        mean = float(found.group(1))
        return mean if found.group(2) is None else (mean, float(found.group(2)))
    dotted = given.replace(",", ".")
    if "," in given and _VALUE.fullmatch(dotted):
        way = f"Write {dotted}, and 0.7+-0.1 for a standard error; a decimal comma is read where columns are separated by ;."
        raise InputError(f"{name!r} has a comma, {text.strip()!r}, which could mean two things. {way}")
    unit = _WITH_UNIT.fullmatch(given)
    if unit:
        raise InputError(f"{name!r} is a number without a unit; got {text.strip()!r:.60}. Write {unit.group(1)}.")
    raise InputError(
        f"{name!r} is a number, such as 0.7, or 0.7+-0.1 with its standard error; got {text.strip()!r:.60}."
    )


def setting(p: Parameter, text: str, *, comma: bool = False) -> Any:
    """The value of a parameter that somebody wrote."""
    from ..parameters import Categorical, Fixed, Int

    if isinstance(p, Categorical | Fixed):
        choices = p.choices if isinstance(p, Categorical) else (p.value,)
        exact = [c for c in choices if str(c) == text] or [c for c in choices if str(c).casefold() == text.casefold()]
        if len(exact) != 1:
            one = "is one of" if isinstance(p, Categorical) else "is fixed at"
            listed = ", ".join(str(c) for c in choices[:8])
            raise InputError(f"{p.name!r} {one} {listed}; got {text!r:.60}. Write it as it stands in the study.")
        return exact[0]
    value = number(text, p.name, comma=comma)
    if isinstance(value, tuple):
        raise InputError(f"{p.name!r} is a setting, one number without an error; got {text!r:.60}.")
    return int(value) if isinstance(p, Int) and value.is_integer() else value
