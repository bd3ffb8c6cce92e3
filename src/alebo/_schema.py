"""The schema of study.toml: the keys of every section, what each may hold, and the line where a key stands."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._errors import InputError
from ._text import printable

LARGEST_COUNT = 100_000  # parameters that one line of a study file may stand for
_UNITS = {"": 1, "b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "k": 2**10, "m": 2**20, "g": 2**30, "tb": 2**40}


@dataclass(frozen=True)
class Kind:
    """What a key may hold: a rule in words, and its check."""

    rule: str
    good: Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and printable(value) == value


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(float(value))
    except OverflowError:
        return False


def _is_scalar(value: Any) -> bool:
    return isinstance(value, bool) or _is_number(value) or (isinstance(value, str) and "\0" not in value)


def _is_list(value: Any, good: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(good, value))


def _are_numbers(value: Any) -> bool:
    return isinstance(value, Mapping) and all(_is_text(k) and _is_number(v) for k, v in value.items())


def _is_source(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return _is_text(value)
    parts = {"path": _is_text, "name": _is_text, "given": _are_scalars, "columns": _are_texts}
    return "path" in value and all(k in parts and parts[k](v) for k, v in value.items())


def _are_scalars(value: Any) -> bool:
    return isinstance(value, Mapping) and all(_is_text(k) and _is_scalar(v) for k, v in value.items())


def _are_texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(_is_text(k) and _is_text(v) for k, v in value.items())


def memory_bytes(value: Any) -> int | None:
    """Bytes of `"4 GB"` or of a number; None for anything else."""
    if _is_number(value):
        found = re.fullmatch("(.*?)()", repr(float(value)))
    else:
        found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-zA-Z]*)\s*", value) if isinstance(value, str) else None
    unit = _UNITS.get(found.group(2).lower()) if found else None
    size = float(found.group(1)) * unit if found and unit else 0.0
    return int(size) if 1.0 <= size < 2.0**62 else None


def _whole(low: int, high: int) -> Kind:
    return Kind(
        f"is a whole number of {low} or more, up to {high}",
        lambda v: isinstance(v, int) and not isinstance(v, bool) and low <= v <= high,
    )


TEXT = Kind("is a text in quotes, without control characters", _is_text)
NAMES = Kind("names an outcome, or a list of them", lambda v: _is_text(v) or _is_list(v, _is_text))
BOUNDS = Kind("reads { latency = 10.0 }, where every value is a number", _are_numbers)
NUMBER = Kind("is a finite number", _is_number)
SCALAR = Kind("is a number, a text or true/false", _is_scalar)
PARAMETER = Kind(
    "is a pair [low, high], a list of choices, a section, or one fixed value (a number, a text or true/false)",
    lambda v: isinstance(v, Mapping) or _is_scalar(v) or _is_list(v, _is_scalar),
)

LEARN_FROM = Kind(
    'is a list of paths, or of { path = "old.csv", name = "march", given = { knob = 3.0 }, columns = { loss = "error" } }',
    lambda v: bool(v) and _is_list(v, _is_source),
)

SCHEMA: dict[str, dict[str, Kind]] = {
    "study": {
        "name": TEXT,
        "budget": _whole(1, 10**9),
        "seed": _whole(0, 2**63 - 1),
        "storage": TEXT,
        "workers": _whole(1, 10_000),
        "ahead": _whole(0, 10_000),
        "max_failed": NUMBER,
        "learn_from": LEARN_FROM,
    },
    "goals": {
        "minimize": NAMES,
        "maximize": NAMES,
        "at_most": BOUNDS,
        "at_least": BOUNDS,
        "cost": TEXT,
        "reference": BOUNDS,
    },
    "evaluator": {
        "command": Kind(
            "is a text or a list of words, without control characters",
            lambda v: _is_text(v) or (bool(v) and _is_list(v, _is_text)),
        ),
        "python": TEXT,
        "directory": TEXT,
        "timeout": Kind("is a number of seconds above 0", lambda v: _is_number(v) and v > 0),
        "memory": Kind('reads "4 GB" or a number of bytes', lambda v: memory_bytes(v) is not None),
    },
    "linear": {"coefficients": BOUNDS, "upper": NUMBER},
    "parameter": {
        "type": TEXT,
        "low": NUMBER,
        "high": NUMBER,
        "log": Kind("is true or false", lambda v: isinstance(v, bool)),
        "step": NUMBER,
        "digits": _whole(-300, 300),
        "choices": Kind("is a list of numbers or texts", lambda v: _is_list(v, _is_scalar)),
        "value": SCALAR,
        "count": _whole(1, LARGEST_COUNT),
    },
}
SECTIONS = ("study", "parameters", "goals", "method", "evaluator", "linear", "baseline")


@dataclass(frozen=True)
class Source:
    """A study file's path and text: makes messages with the line."""

    path: str
    text: str

    def wrong(self, keys: Sequence[str], message: str, row: int = 0) -> InputError:
        """The error for the key at this path; `row` counts sections written [[so]], from 0."""
        line = line_of(self.text, keys, row)
        return InputError(f"{self.path}{f', line {line}' if line else ''}: {message}")

    def check(self, data: Mapping[str, Any]) -> None:
        """Refuse every key that means nothing, and every value of a wrong kind; the only place where this is done."""
        self.known((), data, SECTIONS)
        for section, given in self._sections(data):
            schema = SCHEMA["parameter"] if section[0] == "parameters" else SCHEMA[section[0]]
            self.known(section, given, tuple(schema))
            for key, value in given.items():
                if not schema[key].good(value):
                    raise self.wrong((*section, key), f"`{key}` {schema[key].rule}; got {shown(value)}.")

    def _sections(self, data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
        """The tables that have a schema, each with the path of its key."""
        for name in SECTIONS:
            value = data.get(name)
            if value is None or (name == "method" and isinstance(value, str)):
                continue
            if name in ("linear", "baseline"):
                if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
                    raise self.wrong((name,), f"`{name}` is a list of sections, each written [[{name}]].")
                yield from (((name,), row) for row in value if name == "linear")
                continue
            if not isinstance(value, Mapping):
                raise self.wrong((name,), f"`{name}` is a section, written [{name}]; got {shown(value)}.")
            if name == "parameters":
                for key, spec in value.items():
                    if not _is_text(key):
                        raise self.wrong(
                            (name,), f"A parameter's name is a text without control characters; got {key!r:.60}."
                        )
                    if not PARAMETER.good(spec):
                        raise self.wrong((name, key), f"{key!r} {PARAMETER.rule}; got {shown(spec)}.")
                    if isinstance(spec, Mapping):
                        yield (name, key), spec
            elif name != "method":
                yield (name,), value

    def known(self, section: Sequence[str], given: Mapping[str, Any], valid: Sequence[str]) -> None:
        """Refuse a key that means nothing here, and say which one was probably meant."""
        for key in given:
            if key not in valid:
                where = f"[{'.'.join(section)}]" if section else "a study file"
                raise self.wrong(
                    (*section, key), f"{where} has no key {key!r:.60}. {meant(key, valid)}Its keys: {', '.join(valid)}."
                )


def meant(key: str, valid: Iterable[str]) -> str:
    """The question whether another key was meant; of equally near ones that with the same letters in another order."""
    near = difflib.get_close_matches(key, valid, n=3, cutoff=0.5)
    near.sort(key=lambda k: sorted(k) != sorted(key))  # stable: otherwise the nearest comes first
    return f"Did you mean {near[0]!r}? " if near else ""


def shown(value: Any, size: int = 60) -> str:
    """A value in a message; Python refuses to write a whole number of thousands of digits."""
    try:
        return f"{value!r:.{size}}"
    except (ValueError, RecursionError):
        return "a value too large to be shown"


def line_of(text: str, keys: Sequence[str], row: int = 0) -> int | None:
    """The line where a key stands in a TOML text: the deepest part of its path that can be found, in its `row`-th [[section]]."""
    starts = [i for i, line in enumerate(text.splitlines(), start=1) if keys and _is_row(line, keys[0])]
    if row and row < len(starts):
        return starts[row]
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


def _is_row(line: str, name: str) -> bool:
    return re.match(rf"\s*\[\[\s*[\"']?{re.escape(name)}[\"']?\s*\]\]", line) is not None


def hardest_line(text: str) -> int:
    """The line with the longest number or the deepest brackets: where a text that is too large to parse is too large."""
    lines = text.splitlines() or [""]
    digits = [max((len(d) for d in re.findall(r"\d+", line)), default=0) for line in lines]
    if max(digits) > 1000:
        return digits.index(max(digits)) + 1
    depths = [line.count("[") + line.count("{") for line in lines]
    return depths.index(max(depths)) + 1
