"""An optimizer as plain data and as one JSON file, written whole or not at all."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ._errors import AleboError, StudyError
from ._stored import check_note, check_study
from ._tasks import Task
from .goals import AtLeast, AtMost, Cost, Goal, Goals, Maximize, Minimize
from .history import History, Trial
from .methods import METHODS, Method
from .methods import from_dict as method_from_dict
from .methods import to_dict as method_to_dict
from .space import Float, Int, LinearConstraint, Params, Space

FORMAT = 1
ENQUEUED = "enqueued"  # the key of a trial's note that says which queued point it is
_GOALS: dict[str, type[Goal]] = {g.__name__: g for g in (Minimize, Maximize, AtMost, AtLeast, Cost)}


@dataclass(frozen=True)
class Saved:
    """Everything an optimizer consists of."""

    space: Space
    goals: Goals
    method: Method
    seed: int
    history: History
    queue: tuple[Params, ...] = ()  # points queued by `enqueue`, in order, those already asked included

    def to_dict(self) -> dict[str, Any]:
        """Plain data; floats survive JSON exactly."""
        from . import __version__

        data = {
            "format": FORMAT,
            "alebo": __version__,
            "space": self.space.to_dict(),
            "constraints": [{"coefficients": dict(c.coefficients), "upper": c.upper} for c in self.space.constraints],
            "goals": [{"type": type(g).__name__, **vars(g)} for g in self.goals.goals],
            "method": _plain_method(self.method),
            "seed": self.seed,
            "budget": self.history.budget,
            "trials": [t.to_dict() for t in self.history],
        }
        data |= {"sources": [t.to_dict() for t in self.history.sources]} if self.history.sources else {}
        return data | ({"queue": [dict(p) for p in self.queue]} if self.queue else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, method: Method | None = None) -> Saved:
        """What `to_dict` wrote; `method` replaces one whose settings are not plain data."""
        check_study(data)
        space = Space.from_dict(data["space"], [LinearConstraint(**c) for c in data["constraints"]])
        goals = Goals([_GOALS[g["type"]](**{k: v for k, v in g.items() if k != "type"}) for g in data["goals"]])
        if method is None and "settings" in data["method"]:
            raise StudyError(
                f"A method whose settings are not plain data must be passed again; this study used "
                f"{data['method']['name']!r} with such settings. Write Optimizer.load(path, method=...)."
            )
        made = method_from_dict(data["method"]) if method is None else method
        trials = tuple(Trial.from_dict(t) for t in data["trials"])
        for i, t in enumerate(trials):
            check_trial(i, t, space, goals, made)
        queue = tuple(space.canonical(p) for p in data.get("queue", []))
        return cls(space, goals, made, data["seed"], History(trials, data["budget"], _sources(data, space)), queue)


def _sources(data: Mapping[str, Any], space: Space) -> tuple[Task, ...]:
    """The sources of a saved study, checked."""
    tasks = tuple(Task.from_dict(t) for t in data.get("sources", ()))
    for task in tasks:
        if task.X.shape[1] != space.dimension or not task.kernels:
            raise StudyError(
                f"The source {task.name!r} of a study has points of its {space.dimension} coordinates and fitted kernels; this "
                f"one has {task.X.shape[1]} and {len(task.kernels)}. Use a backup of the study."
            )
    return tasks


def write(data: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write plain data as JSON, first to a neighbouring file: a crash never leaves half a file."""
    target = Path(path)
    try:
        text = json.dumps(data, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StudyError(
            f"A saved study holds plain data (numbers, text, lists); this one does not: {error}. Use plain values "
            "for categories and fixed parameters. No outcome is lost."
        ) from None
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with part.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StudyError(
            f"A study is saved to a file in a folder that exists and has free space; {path} cannot be written: "
            f"{error}. No outcome is lost: save it elsewhere."
        ) from None
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str], *, method: Method | None = None) -> Saved:
    """What `write` stored, checked; a damaged or foreign file is refused with its path."""
    try:
        data = json.loads(Path(path).read_text())
    except FileNotFoundError:
        raise StudyError(f"A saved study must exist to be loaded; there is no file {path}. Check the path.") from None
    except (OSError, ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested without end
        raise StudyError(
            f"A saved study is one JSON file; {path} cannot be read: {error}. Use a backup of it."
        ) from None
    if not isinstance(data, dict) or "format" not in data:
        raise StudyError(f"A saved study is written by Optimizer.save; {path} holds something else.")
    if data["format"] != FORMAT:
        raise StudyError(
            f"This alebo reads format {FORMAT}; {path} has format {data['format']}, by alebo {data.get('alebo')}. "
            "Install that version to read it."
        )
    try:
        return Saved.from_dict(data, method=method)
    except StudyError as error:
        raise StudyError(f"{error} (The file is {path}.)") from None
    except (AleboError, KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise StudyError(
            f"A saved study must be whole; {path} is damaged ({type(error).__name__}: {error}). Use a backup of it."
        ) from None


def check_noted(place: int, t: Trial, space: Space, method: Method) -> None:
    """Refuse a stored trial whose note is not as alebo writes it; a method from elsewhere notes what it likes."""
    if METHODS.get(method.name) is type(method) or ENQUEUED in t.note:
        check_note(place, t.note, space.dimension)


def check_trial(place: int, t: Trial, space: Space, goals: Goals, method: Method) -> None:
    """Refuse a stored trial that does not fit this study."""
    check_noted(place, t, space, method)
    wrong = ""
    if t.number != place:
        wrong = f"is numbered {t.number}"
    elif t.x.shape != (space.dimension,) or not np.isfinite(t.x).all() or np.abs(t.x).max() > 1.0 + 1e-9:
        wrong = f"has a point of shape {t.x.shape} that is no finite point of the cube of {space.dimension} coordinates"
    elif t.y is not None and not (t.y.ndim == 1 and np.isfinite(t.y).all()):
        wrong = "has embedded coordinates that are not a finite vector"
    elif t.complete and set(t.outcomes) != set(goals.outcomes):
        wrong = f"has outcomes {sorted(t.outcomes)} where {sorted(goals.outcomes)} belong"
    elif not all(math.isfinite(o.mean) for o in t.outcomes.values()):
        wrong = "has an outcome that is not finite"
    elif not all(o.sem is None or (math.isfinite(o.sem) and o.sem >= 0.0) for o in t.outcomes.values()):
        wrong = "has a standard error that is negative or not finite"
    if wrong:
        raise StudyError(f"Stored trials must fit their study; trial {place} {wrong}. Use a backup of the file.")
    space.check(t.params)
    if bool in set(map(type, t.params.values())):
        _check_flags(place, t, space)
    for was in t.earlier:
        check_trial(place, replace(was, number=place), space, goals, method)


def _check_flags(place: int, t: Trial, space: Space) -> None:
    """Refuse true or false where a number belongs: Python takes them for 1 and 0."""
    for p in space.parameters:
        if isinstance(p, Float | Int) and isinstance(t.params[p.name], bool):
            raise StudyError(
                f"Stored trials must fit their study; trial {place} has {t.params[p.name]} for the number {p.name!r}. Use "
                "a backup of the file."
            )


def _plain_method(method: Method) -> dict[str, Any]:
    """The method as plain data; with `settings` None where they hold a function, so that it has to be passed again."""
    data = method_to_dict(method)
    try:
        json.dumps(data, allow_nan=False)
    except (TypeError, ValueError):
        return {"name": data["name"], "settings": None}
    return data
