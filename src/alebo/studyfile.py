"""study.toml: the parameters, goals, method, budget, storage and evaluator of a study, as one file that people edit."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._errors import InputError, StudyError
from ._failures import FailureLimit
from .evaluator import CommandEvaluator, FunctionEvaluator
from .goals import AtLeast, AtMost, Cost, Goal, Goals, Maximize, Minimize
from .methods import METHODS, Method, build, default_method
from .space import Fixed, LinearConstraint, Space

KEYS: dict[str, tuple[str, ...]] = {
    "": ("study", "parameters", "goals", "method", "evaluator", "linear", "baseline"),
    "study": ("name", "budget", "seed", "storage", "workers", "max_failed"),
    "goals": ("minimize", "maximize", "at_most", "at_least", "cost", "reference"),
    "evaluator": ("command", "python", "directory", "timeout", "memory"),
    "linear": ("coefficients", "upper"),
}
_PARAMETER = ("type", "low", "high", "log", "step", "digits", "choices", "value", "count")
_UNITS = {"": 1, "b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "k": 2**10, "m": 2**20, "g": 2**30, "tb": 2**40}


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
    timeout: float | None = None
    memory: int | None = None
    max_failed: float = 0.5  # the share of evaluations that may fail
    baseline: tuple[dict[str, Any], ...] = ()  # points to evaluate first


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
    return _Reader(source, text, data, program).read()


class _Reader:
    """Turns the parsed file into objects, and remembers the text so that mistakes get a line."""

    def __init__(self, path: Path, text: str, data: dict[str, Any], program: bool) -> None:
        self.path, self.text, self.data, self.program = path, text, data, program

    def read(self) -> StudyFile:
        self.keys("", self.data)
        study, goals_table = self.table("study"), self.table("goals")
        for section, given in (("study", study), ("goals", goals_table), ("evaluator", self.table("evaluator"))):
            self.keys(section, given)
        for need in ("parameters", "goals"):
            if not self.data.get(need):
                raise self.wrong(
                    (), f"A study needs a [{need}] section; there is none or it is empty. See: alebo new --help"
                )
        name = self.text_value(study, "study", "name", self.path.stem if self.path.stem != "study" else "study")
        goals = self.goals(goals_table)
        space = self.space()
        evaluator, timeout, memory = self.evaluator(goals, space, name)
        method = self.method()
        try:
            method.check(space, goals)
        except InputError as error:
            raise self.wrong(("method", "name"), str(error)) from None
        storage = self.text_value(study, "study", "storage", f"{name}.journal")
        if "://" not in storage:
            storage = str((self.path.parent / storage).resolve())
        return StudyFile(
            path=self.path,
            name=name,
            space=space,
            goals=goals,
            method=method,
            evaluator=evaluator,
            budget=self.whole(study, "budget", None, 1),
            seed=self.whole(study, "seed", 0, 0) or 0,
            storage=storage,
            workers=self.whole(study, "workers", 1, 1) or 1,
            timeout=timeout,
            memory=memory,
            max_failed=self.share(study),
            baseline=self.baseline(space),
        )

    # -- the sections -------------------------------------------------------------------------------------------------

    def space(self) -> Space:
        described: dict[str, Any] = {}
        for name, spec in self.table("parameters").items():
            if isinstance(spec, Mapping):
                self.keys("parameters." + name, spec, _PARAMETER)
            for one, what in self.expand(name, spec):
                if one in described:
                    raise self.wrong(("parameters", name), f"Parameter names must differ; {one!r} comes twice.")
                described[one] = what
        constraints = []
        for row in self.rows("linear"):
            self.keys("linear", row)
            try:
                constraints.append(LinearConstraint(row.get("coefficients", {}), row.get("upper", 0.0)))
            except (InputError, TypeError, ValueError, AttributeError) as error:
                raise self.wrong(("linear",), str(error)) from None
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
        count = spec["count"]
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise self.wrong(
                ("parameters", name), f"`count` of {name!r} is a whole number of 1 or more; got {count!r}."
            )
        rest = {k: v for k, v in spec.items() if k != "count"}
        return [(f"{name}{i}", rest) for i in range(count)]

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
            for name in [value] if isinstance(value, str) else value:
                if not isinstance(name, str):
                    raise self.wrong(("goals", key), f"`{key}` names an outcome, or a list of them; got {name!r}.")
                listed.append(kind(name, reference.get(name)))
        for key, bound in (("at_most", AtMost), ("at_least", AtLeast)):
            pairs = table.get(key, {})
            if not isinstance(pairs, Mapping):
                raise self.wrong(("goals", key), f"`{key}` reads {{ latency = 10.0 }}; got {pairs!r}.")
            for name, value in pairs.items():
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise self.wrong(("goals", key), f"The bound of {name!r} is a number; got {value!r}.")
                listed.append(bound(name, float(value)))
        if "cost" in table:
            listed.append(Cost(str(table["cost"])))
        try:
            return Goals(listed)
        except InputError as error:
            raise self.wrong(("goals",), str(error)) from None

    def method(self) -> Method:
        given = self.data.get("method")
        if given is None:
            return default_method()
        settings = {"name": given} if isinstance(given, str) else dict(self.table("method"))
        name = settings.pop("name", default_method().name)
        try:
            return build(name, **settings)
        except InputError as error:
            key = next((k for k in settings if f"no setting {k!r}" in str(error)), "name")
            raise self.wrong(("method", key) if name in METHODS else ("method",), str(error)) from None
        except TypeError as error:
            raise self.wrong(("method",), f"The method {name!r} cannot be built: {error}.") from None

    def evaluator(
        self, goals: Goals, space: Space, name: str
    ) -> tuple[CommandEvaluator | FunctionEvaluator | None, float | None, int | None]:
        table = self.table("evaluator")
        command, python = table.get("command"), table.get("python")
        if command is not None and python is not None:
            raise self.wrong(("evaluator", "python"), "An evaluator is a `command` or a `python` function; got both.")
        directory = str((self.path.parent / self.text_value(table, "evaluator", "directory", ".")).resolve())
        timeout, memory = table.get("timeout"), table.get("memory")
        if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0):
            raise self.wrong(("evaluator", "timeout"), f"`timeout` is a number of seconds above 0; got {timeout!r}.")
        size = None if memory is None else self.bytes(memory)
        logs = str((self.path.parent / f"{name}.logs").resolve())
        made: CommandEvaluator | FunctionEvaluator | None = None
        key = "command" if command is not None else "python"
        try:
            if command is not None:
                if not isinstance(command, str | list):
                    raise InputError(f"`command` is a text or a list of words; got {command!r}.")
                made = CommandEvaluator(command, goals.outcomes, directory, timeout, size, logs=logs)  # type: ignore[arg-type]
            elif python is not None:
                made = FunctionEvaluator(str(python), directory, logs)
            if made is not None and self.program:
                made.check(space.names)
        except InputError as error:
            raise self.wrong(("evaluator", key), str(error)) from None
        return made, None if timeout is None else float(timeout), size

    # -- small readers ------------------------------------------------------------------------------------------------

    def table(self, name: str) -> Mapping[str, Any]:
        value = self.data.get(name, {})
        if name == "method" and isinstance(value, str):
            return {"name": value}
        if not isinstance(value, Mapping):
            raise self.wrong((name,), f"`{name}` is a section, written [{name}]; got {value!r:.60}.")
        return value

    def rows(self, name: str) -> Sequence[Mapping[str, Any]]:
        value = self.data.get(name, [])
        if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
            raise self.wrong((name,), f"`{name}` is a list of sections, each written [[{name}]].")
        return value

    def keys(self, section: str, given: Mapping[str, Any], known: Sequence[str] | None = None) -> None:
        """Refuse a key that means nothing here, and say which one was probably meant."""
        valid = KEYS[section] if known is None else known
        for key in given:
            if key not in valid:
                near = difflib.get_close_matches(key, valid, n=1, cutoff=0.5)
                where = f"[{section}]" if section else "a study file"
                hint = f"Did you mean {near[0]!r}? " if near else ""
                path = (*section.split("."), key) if section else (key,)
                raise self.wrong(path, f"{where} has no key {key!r}. {hint}Its keys: {', '.join(valid)}.")

    def text_value(self, table: Mapping[str, Any], section: str, key: str, default: str) -> str:
        value = table.get(key, default)
        if not isinstance(value, str) or not value:
            raise self.wrong((section, key), f"`{key}` is a text in quotes; got {value!r}.")
        return value

    def whole(self, table: Mapping[str, Any], key: str, default: int | None, low: int) -> int | None:
        value = table.get(key, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise self.wrong(("study", key), f"`{key}` is a whole number of {low} or more; got {value!r}.")
        return value

    def bytes(self, value: Any) -> int:
        found = re.fullmatch(r"\s*([\d.]+)\s*([a-zA-Z]*)\s*", str(value))
        unit = _UNITS.get(found.group(2).lower()) if found else None
        if not found or unit is None or float(found.group(1)) <= 0:
            raise self.wrong(("evaluator", "memory"), f'`memory` reads "4 GB" or a number of bytes; got {value!r}.')
        return int(float(found.group(1)) * unit)

    def wrong(self, keys: Sequence[str], message: str) -> InputError:
        line = line_of(self.text, keys)
        return InputError(f"{self.path}{f', line {line}' if line else ''}: {message}")


def line_of(text: str, keys: Sequence[str]) -> int | None:
    """The line where a key stands in a TOML text: the deepest part of its path that can be found."""
    best, depth, section = None, 0, ()  # type: tuple[int | None, int, tuple[str, ...]]
    for i, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]\]?", line)
        if header:
            section = tuple(part.strip().strip("\"'") for part in header.group(1).split("."))
            here: tuple[str, ...] = section
        else:
            named = re.match(r"\s*([\w.\"'-]+)\s*=", line)
            here = section
            if named:
                here = (*section, *(part.strip("\"'") for part in named.group(1).split(".")))
            inline = re.findall(r"[{,]\s*[\"']?([\w-]+)[\"']?\s*=", line)
            here = (*here, *(k for k in inline if k in keys[len(here) :]))
        same = 0
        for a, b in zip(here, keys, strict=False):
            if a != b:
                break
            same += 1
        if same > depth:
            best, depth = i, same
    return best


def parameters_of(table: Mapping[str, Any]) -> Space:
    """The Space of a [parameters] section, as `load` would build it."""
    return _Reader(Path("study.toml"), "", {"parameters": {**table, "_": [0.0, 1.0]}}, False).space()
