"""Source: an earlier study to learn from, in any of the forms in which people keep one."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ._errors import InputError, StudyError
from ._match import Matcher, Row, Text
from ._saving import read as read_saved
from ._table import Table
from ._tasks import Task
from ._urls import is_url, redact
from .goals import Goals
from .history import History
from .methods import METHODS, Method, prepared, searched
from .space import Space

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Source:
    """An earlier study, and what has to be said about it to learn from it.

    Args:
        data: A Study, an Optimizer, a Result of `minimize`, a pandas DataFrame; or a path: of a `study.toml`, a study's
            file, a file of `Optimizer.save`, a CSV file; or the address of a database, with `#name`.
        name: What messages call it; None: the name of the study or of the file.
        given: The value that a parameter of the present study had there, where the data do not have it.
        columns: What the data call a parameter or an outcome of the present study, where the names differ.

    >>> import alebo
    >>> space = alebo.Space([alebo.Float("gain", 0, 1), alebo.Float("rate", 0, 1)])
    >>> old = alebo.minimize(lambda p: p["gain"], alebo.Space([alebo.Float("gain", 0, 1)]), budget=8, method="sobol")
    >>> source = alebo.Source(old, given={"rate": 0.5})
    >>> opt = alebo.Optimizer(space, alebo.Minimize("value"), sources=[source])
    >>> len(opt.history.sources[0])
    8
    """

    data: Any
    name: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, kind in (("given", self.given), ("columns", self.columns)):
            if not isinstance(kind, Mapping) or not all(isinstance(k, str) for k in kind):
                raise InputError(f"`{what}` of a Source is a mapping of names; got {kind!r:.60}.")
        if not all(isinstance(v, str) for v in self.columns.values()):
            raise InputError(f"`columns` of a Source holds names; got {dict(self.columns)!r:.80}.")
        if self.name is not None and not (isinstance(self.name, str) and self.name):
            raise InputError(f"The name of a Source is a text; got {self.name!r:.60}.")

    def task(self, space: Space, goals: Goals) -> Task:
        """The data as a study with this space and these goals sees them; what cannot be used is said, or refused."""
        found = _opened(self.data)
        name = self.name or found.name or "source"
        file = redact(os.fspath(self.data)) if isinstance(self.data, str | os.PathLike) else None
        task = Matcher(name, space, goals, self.given, self.columns, file).task(found.rows, found.names)
        same = found.space == space and not self.given and not self.columns
        embedding = searched(found.method, found.history, space, goals, found.seed) if same else None
        return replace(task, said=(*task.said, *found.said), embedding=embedding)

    def place(self) -> tuple[str, str] | None:
        """Storage and name of a source that is a stored study, to notice a study that would learn from itself."""
        if isinstance(self.data, str | os.PathLike) and str(self.data).endswith(".toml") and Path(self.data).is_file():
            described = _described(Path(self.data))
            return _place(described.storage, described.name)
        found = _opened(self.data)
        return None if found.where is None else _place(found.where, str(found.known_as or found.name))


@dataclass(frozen=True, eq=False)
class _Opened:
    """A source as it was found: rows, the names that they have, and what is known of the search that made them."""

    rows: Iterable[Row]
    names: tuple[str, ...]
    name: str | None = None
    space: Space | None = None
    history: History = field(default_factory=History)
    method: Method | None = None
    seed: int = 0
    where: str | None = None
    known_as: str | None = None  # the name in its storage, where people call it otherwise
    said: list[str] = field(default_factory=list)  # what was found while the rows were read


def _opened(data: Any) -> _Opened:
    if isinstance(data, str | os.PathLike):
        return _from_path(os.fspath(data))
    data = getattr(data, "optimizer", data) if not callable(getattr(data, "optimizer", None)) else data  # a Result
    if all(hasattr(data, part) for part in ("space", "goals", "history")):  # an Optimizer or a Study
        return _from_study(data)
    if hasattr(data, "columns") and hasattr(data, "to_dict"):  # a pandas DataFrame, which may not be installed
        return _from_frame(data)
    raise InputError(
        "A source is a Study, an Optimizer, a Result, a DataFrame, or the path of a study.toml, a stored study, a saved "
        f"Optimizer or a CSV file; got {type(data).__name__}. Wrap it in alebo.Source(...) to say more about it."
    )


def _from_frame(frame: Any) -> _Opened:
    """The rows of a DataFrame. What pandas calls missing (NaN, NA, None, NaT) is an empty cell."""
    names = tuple(map(str, frame.columns))
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InputError(
            f"Every column of a DataFrame has a name of its own; {twice[0]!r} comes twice. Rename one of them."
        )
    cells = (_present(frame[column]) for column in frame.columns)
    return _Opened([Text(dict(zip(names, row, strict=True))) for row in zip(*cells, strict=True)], names)


def _present(column: Any) -> list[Any]:
    """The values of a column; None where one is missing."""
    values = list(column.tolist())
    if not hasattr(column, "isna"):  # a table of another library
        return values
    return [None if gone else v for v, gone in zip(values, column.isna().tolist(), strict=True)]


def _from_study(study: Any, name: str | None = None) -> _Opened:
    history: History = study.history
    rows = [Row(t.params, t.outcomes, t.complete) for t in history if t.params]
    called = name or getattr(study, "name", None)
    return _Opened(
        rows,
        (*study.space.names, *study.goals.outcomes),
        called,
        study.space,
        history,
        getattr(study, "method", None),
        getattr(study, "seed", 0),
        getattr(study, "where", None),
    )


def _from_path(path: str) -> _Opened:
    if is_url(path):
        place, _, name = path.partition("#")
        return _from_study(_runner().Study.open(place, **({"name": name} if name else {})))
    file = Path(path)
    if not file.is_file():
        raise InputError(
            f"A source is a file that exists; there is no file {redact(path)}. Check the path: it is relative to the "
            "folder in which Python was started, and in a study.toml to the folder of that file."
        )
    ending = file.suffix.lower()
    if ending == ".toml":
        described = _described(file)
        if "://" not in described.storage and not Path(described.storage).exists():
            raise InputError(f"A source has been run; {path} has no evaluations yet: {described.storage} is not there.")
        called = file.resolve().parent.name if described.name == "study" else described.name  # march/study.toml: march
        found = _from_study(_runner().Study.open(described.storage, name=described.name), called)
        return replace(found, known_as=described.name)
    if ending == ".json":
        saved = read_saved(file)
        return _from_study(saved, file.stem)
    if ending in (".csv", ".tsv", ".txt"):
        return _from_csv(file)
    study = _runner().Study
    try:
        return _from_study(study.open(file, name=file.stem))
    except StudyError:
        return _from_study(study.open(file))


def _described(file: Path) -> Any:
    return import_module("alebo.studyfile").load(file)  # above this layer: imported where a path asks for it


def _runner() -> Any:
    return import_module("alebo.runner")


def _from_csv(path: Path) -> _Opened:
    table = Table.opened(path)
    if not table.header[0] and "column 1" not in table.header:  # the index of a data frame
        table = replace(table, header=("column 1", *table.header[1:]))
    names = tuple(filter(None, table.header))
    said: list[str] = []

    def rows() -> Iterator[Row]:
        short: list[int] = []
        for line, cells in table.rows():
            if len(cells) < len(names):
                short.append(line)
            yield Text(cells, comma=table.separator == ";", where=f"{path}, line {line}")
        if short:
            count = f"{len(short)} rows have" if len(short) > 1 else "1 row has"
            said.append(
                f"{count} fewer cells than there are columns (line {short[0]}); the missing ones count as empty."
            )

    return _Opened(rows(), names, path.stem, said=said)


def learned_from(
    sources: Any, space: Space, goals: Goals, method: Method, *, place: tuple[str, str] | None = None
) -> tuple[Task, ...]:
    """The sources of a study, matched, with the processes fitted to them; what was left out is logged.

    Args:
        sources: Source objects, or what one is made of: one or several.
        space: The parameters of the present study.
        goals: Its goals.
        method: Its method, which must be able to learn from them.
        place: Storage and name of the present study: no source may be the same.
    """
    listed = as_list(sources)
    if not listed:
        return ()
    check_method(method, space, goals)
    tasks: list[Task] = []
    for given in listed:
        source = given if isinstance(given, Source) else Source(given)
        if place is not None and source.place() == _place(*place):
            raise InputError(f"A study learns from others; {place[0]} is the study itself. Take it out of the sources.")
        task = source.task(space, goals)
        names = [t.name for t in tasks]
        if task.name in names:
            task = replace(task, name=f"{task.name} ({1 + len(names)})")
        twin = next((t for t in tasks if t.digest == task.digest), None)
        if twin is not None:
            raise InputError(f"Every source is given once; {task.name!r} has the data of {twin.name!r}. Leave one out.")
        for words in task.said:
            log.warning("%s: %s", task.name, words)
        tasks.append(prepared(task, goals))
    return tuple(tasks)


def check_method(method: Method, space: Space, goals: Goals | None = None) -> None:
    """Refuse sources where nothing would be learned from them; without goals, as far as that can be told without them."""
    if not method.learns:
        able = ", ".join(sorted(name for name, m in METHODS.items() if m.learns))
        raise InputError(
            f"{method.title} does not learn from other studies. Methods that do: {able}. Or leave out the sources."
        )
    if space.fidelity is not None:
        raise InputError(
            f"Sources are learned from at one fidelity; {space.fidelity[1].name!r} is a Fidelity. Make it Fixed at its "
            "target, or leave out the sources."
        )
    if space.constraints:
        raise InputError(
            "Models that learn from sources search a box; linear constraints cut it. State them as outcomes with AtMost, or "
            "leave out the sources."
        )
    if goals is not None:
        method.check_sources(space, goals)


def _place(where: str, name: str) -> tuple[str, str]:
    return (where if is_url(where) else str(Path(where).resolve())), name


def as_list(sources: Any) -> list[Any]:
    """Sources as a list, also where one was given; None: no source."""
    if sources is None:
        return []
    return [sources] if _is_one(sources) else list(sources)


def _is_one(sources: Any) -> bool:
    return (
        isinstance(sources, str | os.PathLike | Source)
        or not isinstance(sources, Sequence)
        or hasattr(sources, "trials")
    )
