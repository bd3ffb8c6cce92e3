"""CSV files as rows of text by column, for sheets and for sources: a cell that belongs to no column is refused."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ._errors import InputError

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with one of these a spreadsheet begins a formula
Refuse: TypeAlias = Callable[[int, str | None, str], InputError]  # line, column, what is wrong


def unguarded(text: str) -> str:
    """The text of a cell without the apostrophe by which it was kept from being a formula."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA) else text


def said_separator(line: str) -> str | None:
    """The separator that a first line such as `sep=;` names, as Excel writes it; None where it is another line."""
    found = re.fullmatch(r"sep=(.)", line.strip(" \r\n"))
    return None if found is None else found.group(1)


def cells_of(line: str, separator: str) -> list[str]:
    """The cells of a line, as names of columns are read."""
    try:
        return [unguarded(c.strip()) for c in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error:
        return []


def check_names(header: Sequence[str], line: int, refuse: Refuse) -> None:
    """Refuse a header in which a name comes twice: its last column alone would be read."""
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise refuse(line, None, f"every column has a name of its own; {twice[0]!r} comes twice. Rename one of them.")


def rows_below(
    lines: Iterable[str], header: Sequence[str], separator: str, line: int, refuse: Refuse
) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows below a header in this line, each with its own line; empty rows are left out.

    Args:
        lines: What follows the header, with line ends.
        header: The names of the columns, or "".
        separator: Between cells.
        line: The number of the header's last line.
        refuse: Makes the error for a cell.

    A row with fewer cells than the header lacks the last columns.
    """
    body = csv.reader(lines, delimiter=separator, strict=True)
    try:
        for cells in body:
            row: dict[str, str] = {}
            for i, cell in enumerate(cells):
                name = header[i] if i < len(header) else ""
                if name:
                    row[name] = unguarded(cell.strip())
                elif cell.strip():
                    why = f"{cell.strip()[:40]!r} stands in a column without a name."
                    why += " A comma inside a number, perhaps? Write 0.7, not 0,7."
                    raise refuse(body.line_num + line, None, why)
            if any(row.values()):
                yield body.line_num + line, row
    except csv.Error as error:
        raise refuse(body.line_num + line, None, f"it is no CSV: {error}. Check the quotes.") from None


@dataclass(frozen=True)
class Table:
    """A CSV file whose header was read; its rows are read one after the other: it may be larger than memory."""

    path: Path
    header: tuple[str, ...]
    separator: str
    line: int  # of the header
    encoding: str

    @classmethod
    def opened(cls, path: Path) -> Table:
        """The file, with the separator that its first line names, or that most of its columns are separated by."""
        encoding = _encoding(path)
        named = None
        for number, text in enumerate(_lines(path, encoding), start=1):
            if named is None and (named := said_separator(text)) is not None:
                continue
            if not text.strip():
                continue
            separator = named or max(",;\t", key=lambda s: len(cells_of(text, s)))
            table = cls(path, tuple(cells_of(text, separator)), separator, number, encoding)
            check_names(table.header, number, table.refuse)
            if any(table.header):
                return table
            break
        raise InputError(f"A CSV file begins with a line of column names; {path} does not. Add one.")

    def refuse(self, line: int, column: str | None, why: str) -> InputError:
        """The error for a cell: file, line, column, what is wrong and the way out."""
        return InputError(f"{self.path}, line {line}{'' if column is None else f', column {column!r}'}: {why}")

    def rows(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Each row with its line."""
        lines = _lines(self.path, self.encoding)
        for _ in range(self.line):
            next(lines, None)
        return rows_below(lines, self.header, self.separator, self.line, self.refuse)


def _encoding(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    except OSError as error:
        raise InputError(f"A CSV file must be readable; {path} is not: {error}.") from None


def _lines(path: Path, encoding: str) -> Iterator[str]:
    number = 0
    try:
        with path.open(encoding=encoding) as file:
            for number, line in enumerate(file, start=1):
                if "\0" in line:
                    raise InputError(
                        f"A CSV file is text; {path}, line {number} is not: save the spreadsheet as CSV, not as .xlsx or .ods."
                    )
                yield line
    except UnicodeDecodeError as error:
        raise InputError(
            f"A CSV file is UTF-8 text; {path} cannot be read after line {number}: {error}. Save it as 'CSV UTF-8'."
        ) from None
    except OSError as error:
        raise InputError(f"A CSV file must be readable; {path} is not: {error}.") from None
