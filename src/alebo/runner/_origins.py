"""Where the sources of a stored study came from, so that others are noticed when it is begun again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from .._errors import StudyError
from .._urls import is_url
from ..optimizer import Optimizer
from ..sources import Source, as_list


def origins(sources: Any, opt: Optimizer, where: str) -> list[str]:
    """What tells each source from others, in a few words. A file is not opened for it: it may be gone.

    Args:
        sources: As given for a study.
        opt: The study's space and goals.
        where: Its storage.
    """
    return [_origin(s if isinstance(s, Source) else Source(s), opt, where) for s in as_list(sources)]


def check_sources(where: str, stored: Mapping[str, Any], sources: Any, opt: Optimizer) -> None:
    """Refuse other sources than the study was begun with. Those are kept as they were then: their files may change or go."""
    had, got = len(stored.get("sources", ())), len(as_list(sources))
    if not got:
        return
    before, now = str(had or "none"), str(got)
    if had == got:
        given = origins(sources, opt, where)
        begun = list(map(str, stored.get("origins", given)))  # not kept by earlier versions
        if sorted(begun) == sorted(given):
            return
        before, now = ", ".join(begun), ", ".join(given)
    raise StudyError(
        f"A study keeps its sources; {where} was begun with {before}, and got {now}. Leave the sources out to go on with what "
        "it has, or choose another path (or name) for a study that learns from them."
    )


def _origin(source: Source, opt: Optimizer, where: str) -> str:
    said = {"name": source.name, "given": dict(source.given), "columns": dict(source.columns)}
    kept = {k: v for k, v in said.items() if v}
    more = f" with {json.dumps(kept, sort_keys=True, default=_plain)}" if kept else ""
    if isinstance(source.data, str | os.PathLike):
        return _of_path(os.fspath(source.data), where) + more
    name = getattr(source.data, "name", None)
    if isinstance(name, str) and hasattr(source.data, "where"):  # a stored study
        return f"study {name}{more}"
    return f"data {source.task(opt.space, opt.goals).digest}{more}"


def _of_path(path: str, where: str) -> str:
    """A path relative to the storage, so that both can be moved together; for a database, which all may reach, the name."""
    if is_url(path):
        place, _, name = path.partition("#")  # its host and user may be called otherwise elsewhere
        return f"{place.rsplit('/', 1)[-1].partition('?')[0]}#{name}"
    file = Path(path).resolve()
    name = f"{file.parent.name}/{file.name}" if file.suffix == ".toml" else file.name
    if is_url(where):
        return name
    try:
        return Path(os.path.relpath(file, Path(where).resolve().parent)).as_posix()
    except ValueError:  # another drive
        return name


def _plain(value: Any) -> Any:
    """A value of `given` that JSON does not know, such as a number of NumPy."""
    return float(value) if isinstance(value, Real) else str(value)
