"""study.toml: the parameters, goals, method, budget, storage and evaluator of a study, as one file that people edit."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._errors import InputError, StudyError
from ._failures import FailureLimit
from ._schema import SCHEMA, SECTIONS, hardest_line, meant, memory_bytes
from ._schema import Source as Text
from ._schema import line_of as line_of
from .evaluator import CommandEvaluator, FunctionEvaluator
from .goals import AtLeast, AtMost, Cost, Goal, Goals, Maximize, Minimize
from .methods import ALEBO, METHODS, Method, build, default_method
from .methods._flat_names import GROWTH, METRIC
from .sources import Source, check_method
from .space import Fixed, LinearConstraint, Space

KEYS: dict[str, tuple[str, ...]] = {"": SECTIONS} | {
    name: tuple(kinds) for name, kinds in SCHEMA.items() if name != "parameter"
}


@dataclass(frozen=True)
class StudyFile:
    """A study as its file describes it. Everything is checked when it is read; nothing is created."""

    path: Path
    name: str
    space: Space
    goals: Goals
    method: Method
    evaluator: CommandEvaluator | FunctionEvaluator | None
    budget: int | None = None
    seed: int = 0
    storage: str = ""  # a journal file (beside the study file unless absolute) or a database address
    workers: int = 1
    ahead: int | None = None
    timeout: float | None = None
    memory: int | None = None
    max_failed: float = 0.5  # the share of evaluations that may fail
    baseline: tuple[dict[str, Any], ...] = ()  # points to evaluate first
    sources: tuple[Source, ...] = ()  # earlier studies to learn from
    names_method: bool = True  # False: `method` is the default, and a stored study keeps its own


def load(path: str | Path, *, program: bool = False) -> StudyFile:
    """Read and check a study.toml; a mistake is named with its line and, for a misspelt key, the nearest valid one.

    Args:
        path: The file.
        program: Check, too, that the evaluator's program or function is there. Only a run needs it.
    """
    source = Path(path)
    try:
        text = source.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StudyError(f"A study file must exist; there is no {source}. Write one with: alebo new {source}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"A study file is UTF-8 text; {source} cannot be read: {error}.") from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"{source} must be valid TOML; {error}. A text value needs quotes; a list needs [ ]."
        ) from None
    except (ValueError, RecursionError):
        raise InputError(
            f"{source}, line {hardest_line(text)}: a study file has numbers of at most 4300 digits and lists in lists a "
            "few levels deep; this one has more. Shorten it."
        ) from None
    return _Reader(source, text, data, program).read()


class _Reader:
    """Turns the parsed file into objects, and remembers the text so that mistakes get a line."""

    def __init__(self, path: Path, text: str, data: dict[str, Any], program: bool) -> None:
        self.path, self.data, self.program = path, data, program
        self.source = Text(str(path), text)
        self.wrong = self.source.wrong

    def read(self) -> StudyFile:
        self.source.check(self.data)
        study, goals_table = self.table("study"), self.table("goals")
        for need in ("parameters", "goals"):
            if not self.data.get(need):
                raise self.wrong(
                    (), f"A study needs a [{need}] section; there is none or it is empty. See: alebo new --help"
                )
        name: str = study.get("name", self.path.stem)
        goals = self.goals(goals_table)
        space = self.space()
        evaluator, timeout, memory = self.evaluator(goals, space, name)
        method = self.method()
        try:
            method.check(space, goals)
        except InputError as error:
            raise self.wrong(("method", "name"), str(error)) from None
        storage = study.get("storage", f"{name}.journal")
        if "://" not in storage:
            storage = str((self.path.parent / storage).resolve())
        return StudyFile(
            path=self.path,
            name=name,
            space=space,
            goals=goals,
            method=method,
            names_method="method" in self.data,
            evaluator=evaluator,
            budget=study.get("budget"),
            seed=study.get("seed", 0),
            storage=storage,
            workers=study.get("workers", 1),
            ahead=study.get("ahead"),
            timeout=timeout,
            memory=memory,
            max_failed=self.share(study),
            baseline=self.baseline(space),
            sources=self.sources(study, method, space, goals),
        )

    # -- the sections -------------------------------------------------------------------------------------------------

    def space(self) -> Space:
        described: dict[str, Any] = {}
        for name, spec in self.table("parameters").items():
            for one, what in self.expand(name, spec):
                if one in described:
                    raise self.wrong(("parameters", name), f"Parameter names must differ; {one!r} comes twice.")
                described[one] = what
        constraints = []
        for i, row in enumerate(self.rows("linear")):
            for key in SCHEMA["linear"]:
                if key not in row:
                    rule = "[[linear]] says `sum of coefficient times parameter <= upper` and needs both"
                    raise self.wrong(("linear",), f"{rule}; add `{key}`, which is missing.", i)
            try:
                constraints.append(LinearConstraint(row["coefficients"], row["upper"]))
            except (InputError, TypeError, ValueError, AttributeError) as error:
                raise self.wrong(("linear",), str(error), i) from None
        for name, what in described.items():
            try:
                Space.from_dict({name: what, "_": [0.0, 1.0]})
            except (InputError, TypeError, ValueError) as error:
                raise self.wrong(("parameters", re.sub(r"\d+$", "", name), name), str(error)) from None
        try:
            return Space.from_dict(described, constraints)
        except InputError as error:
            raise self.wrong(("linear",) if constraints else ("parameters",), str(error)) from None

    def expand(self, name: str, spec: Any) -> Sequence[tuple[str, Any]]:
        """`x = { count = 100, low = 0, high = 1 }` stands for x0 ... x99."""
        if not isinstance(spec, Mapping) or "count" not in spec:
            return [(name, spec)]
        rest = {k: v for k, v in spec.items() if k != "count"}
        return [(f"{name}{i}", rest) for i in range(spec["count"])]

    def baseline(self, space: Space) -> tuple[dict[str, Any], ...]:
        """The points of [[baseline]]; `x = 0.5` or `x = [...]` stands for all of x0 ... x99."""
        points = []
        for row in self.rows("baseline"):
            point: dict[str, Any] = {}
            for name, value in row.items():
                spec = self.table("parameters").get(name)
                each = (
                    [f"{name}{i}" for i in range(spec["count"])]
                    if isinstance(spec, Mapping) and "count" in spec
                    else [name]
                )
                values = value if isinstance(value, list) and len(each) > 1 else [value] * len(each)
                if len(values) != len(each):
                    raise self.wrong(("baseline", name), f"{name!r} has {len(each)} values; got {len(values)}.")
                point |= dict(zip(each, values, strict=True))
            point |= {p.name: p.value for p in space.parameters if isinstance(p, Fixed) and p.name not in point}
            try:
                points.append(space.canonical(point))
            except InputError as error:
                raise self.wrong(("baseline",), f"A baseline is a point of the space: {error}") from None
        return tuple(points)

    def sources(self, study: Mapping[str, Any], method: Method, space: Space, goals: Goals) -> tuple[Source, ...]:
        """The sources of `learn_from`, their paths relative to this file. They are read when the study begins."""
        found = []
        for given in study.get("learn_from", ()):
            row = {"path": given} if isinstance(given, str) else dict(given)
            path = row.pop("path")
            where = path if "://" in path else str((self.path.parent / path).resolve())
            found.append(Source(where, **row))
        try:
            if found:
                check_method(method, space, goals)
        except InputError as error:
            raise self.wrong(("study", "learn_from"), str(error)) from None
        return tuple(found)

    def share(self, study: Mapping[str, Any]) -> float:
        try:
            return FailureLimit(study.get("max_failed", 0.5)).share
        except InputError as error:
            raise self.wrong(("study", "max_failed"), str(error)) from None

    def goals(self, table: Mapping[str, Any]) -> Goals:
        listed: list[Goal] = []
        reference = table.get("reference", {})
        for key, kind in (("minimize", Minimize), ("maximize", Maximize)):
            value = table.get(key, [])
            listed += [kind(name, reference.get(name)) for name in ([value] if isinstance(value, str) else value)]
        for key, bound in (("at_most", AtMost), ("at_least", AtLeast)):
            listed += [bound(name, float(value)) for name, value in table.get(key, {}).items()]
        if "cost" in table:
            listed.append(Cost(table["cost"]))
        objectives = {g.outcome for g in listed if isinstance(g, Minimize | Maximize)}
        for name in reference:
            if name not in objectives:
                bounded = any(g.outcome == name for g in listed if isinstance(g, AtMost | AtLeast))
                is_ = "is a constraint, whose bound stands in at_most or at_least" if bounded else "is none"
                rule = "`reference` is for outcomes to minimize or maximize"
                raise self.wrong(("goals", "reference"), f"{rule}; {name!r} {is_}. Remove it.")
        try:
            return Goals(listed)
        except InputError as error:
            raise self.wrong(("goals",), str(error)) from None

    def method(self) -> Method:
        given = self.data.get("method")
        if given is None:
            return default_method()
        settings = {"name": given} if isinstance(given, str) else dict(self.table("method"))
        name = settings.pop("name") if "name" in settings else self.unnamed(settings)
        try:
            return build(name, **settings)
        except InputError as error:
            key = next((k for k in settings if re.search(rf"\b{re.escape(k)}\b", str(error))), "name")
            raise self.wrong(("method", key) if name in METHODS else ("method",), str(error)) from None
        except TypeError as error:
            raise self.wrong(("method",), f"The method {name!r} cannot be built: {error}.") from None

    def unnamed(self, settings: Mapping[str, Any]) -> str:
        """The method whose settings stand in a file without its name: the default, or ALEBO where they are ALEBO's alone.

        ALEBO was the default when such files were first written.
        """
        method = default_method()
        if set(settings) <= set(method.settings()):
            return method.name
        for key in settings:
            if key not in {*method.settings(), *ALEBO.settings(), *GROWTH, *METRIC}:
                known = ("name", *method.settings(), *ALEBO.settings())
                rest = f"Without `name` it is {method.name}, and this is none of its settings. Add name = ..., or see: alebo methods"
                raise self.wrong(("method", key), f"[method] has no key {key!r:.60}. {meant(key, known)}{rest}")
        return ALEBO.name

    def evaluator(
        self, goals: Goals, space: Space, name: str
    ) -> tuple[CommandEvaluator | FunctionEvaluator | None, float | None, int | None]:
        table = self.table("evaluator")
        command, python = table.get("command"), table.get("python")
        if command is not None and python is not None:
            raise self.wrong(("evaluator", "python"), "An evaluator is a `command` or a `python` function; got both.")
        directory = str((self.path.parent / table.get("directory", ".")).resolve())
        timeout, memory = table.get("timeout"), table.get("memory")
        size = None if memory is None else memory_bytes(memory)
        logs = str((self.path.parent / f"{name}.logs").resolve())
        made: CommandEvaluator | FunctionEvaluator | None = None
        key = "command" if command is not None else "python"
        try:
            if command is not None:
                made = CommandEvaluator(command, goals.outcomes, directory, timeout, size, logs=logs)
            elif python is not None:
                made = FunctionEvaluator(python, directory, logs)
            if made is not None and self.program:
                made.check(space.names)
        except InputError as error:
            raise self.wrong(("evaluator", key), str(error)) from None
        return made, None if timeout is None else float(timeout), size

    # -- small readers ------------------------------------------------------------------------------------------------

    def table(self, name: str) -> Mapping[str, Any]:
        value: Mapping[str, Any] = self.data.get(name, {})
        return value

    def rows(self, name: str) -> Sequence[Mapping[str, Any]]:
        value: Sequence[Mapping[str, Any]] = self.data.get(name, [])
        return value


def parameters_of(table: Mapping[str, Any]) -> Space:
    """The Space of a [parameters] section, as `load` would build it."""
    reader = _Reader(Path("study.toml"), "", {"parameters": {**table, "_": [0.0, 1.0]}}, False)
    reader.source.check(reader.data)
    return reader.space()
