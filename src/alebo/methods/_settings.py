"""Settings of a method: frozen dataclasses, checked when they are built, and plain data in files.

A setting that only matters together with others belongs to an object with them (`growth=Growth(step=3)`). In plain data such
an object is a table with its `type`: `{"type": "laplace", "samples": 25}`; a text alone is the object with its defaults.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from .._errors import InputError

T = TypeVar("T")

MOST = 100_000  # of anything that a setting counts: points, samples, directions


class Setting(NamedTuple):
    """A setting's default and meaning, and the classes of the object that it holds, if it holds one."""

    default: Any
    meaning: str
    parts: tuple[type[Settings], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the settings of every object that may stand here."""
        out: dict[str, Any] = {"default": to_plain(self.default), "meaning": self.meaning}
        if self.parts:
            out["types"] = {p.type_name(): {k: s.to_dict() for k, s in p.settings().items()} for p in self.parts}
        return out


def setting(default: T, meaning: str, *, parts: tuple[type[Settings], ...] = ()) -> T:
    """A dataclass field for a setting.

    Args:
        default: the value where none is given.
        meaning: what it means, in a few words, for `alebo methods`.
        parts: the classes of which one may stand here, for a setting that is an object.
    """
    return field(default=default, metadata={"meaning": meaning, "parts": parts})


class Settings:
    """What methods and the objects among their settings share: a list of settings, checks, and plain data."""

    @classmethod
    def type_name(cls) -> str:
        """How plain data name this class."""
        return cls.__name__.lower()

    @classmethod
    def settings(cls) -> dict[str, Setting]:
        """The settings by name."""
        listed = fields(cls)  # type: ignore[arg-type]
        return {
            f.name: Setting(f.default, f.metadata.get("meaning", ""), f.metadata.get("parts", ()))
            for f in listed
            if f.init
        }

    @classmethod
    def from_plain(cls, data: Mapping[str, Any], owner: str) -> Self:
        """The object with these settings; tables become the objects that belong there.

        Args:
            data: settings by name, as `to_plain` gives them.
            owner: what has these settings, for error messages: "'alebo'", "'growth' of 'alebo'".
        """
        known = cls.settings()
        for key in data:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"Did you mean {near[0]!r}? " if near else ""
                raise InputError(f"{owner} has no setting {key!r}. {hint}Its settings: {', '.join(known) or 'none'}.")
        return cls(**{key: _read(known[key], value, f"{key!r} of {owner}") for key, value in data.items()})

    # -- checks for __post_init__: each raises an InputError that states the rule, what came, and the way out ------------

    def _may_be_none(self, name: str) -> bool:
        return self.settings()[name].default is None and getattr(self, name) is None

    def _counts(self, **least: int) -> None:
        """Each named setting is a whole number of at least this; None only where that is its default."""
        for name, bound in least.items():
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not self._may_be_none(name) and not (whole and value >= bound):
                raise InputError(
                    f"`{name} >= {bound}` must hold, a whole number; got {value!r}. Choose {bound} or more."
                )
            if value is not None and value > MOST:
                raise InputError(
                    f"`{name} <= {MOST}` must hold, so that it fits in memory; got {value!r}. Choose less."
                )

    def _numbers(self, **bounds: tuple[float, float]) -> None:
        """Each named setting is a finite number in this range; None only where that is its default."""
        for name, (low, high) in bounds.items():
            value = getattr(self, name)
            number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
            if not self._may_be_none(name) and not (number and math.isfinite(value) and low <= value <= high):
                rule = " and ".join(
                    [f"{name} >= {low:g}"] * math.isfinite(low) + [f"{name} <= {high:g}"] * math.isfinite(high)
                )
                raise InputError(
                    f"`{rule or name}` must hold, a finite number; got {value!r}. The default is "
                    f"{self.settings()[name].default!r}."
                )

    def _flags(self, *names: str) -> None:
        """Each named setting is True or False."""
        for name in names:
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise InputError(f"`{name}` is True or False; got {getattr(self, name)!r}.")

    def _functions(self, *names: str) -> None:
        """Each named setting can be called, or is None."""
        for name in names:
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise InputError(f"`{name}` is a function or None; got {getattr(self, name)!r:.60}.")

    def _parts(self, *names: str) -> None:
        """Each named setting is one of the objects that may stand there."""
        for name in names:
            value, parts = getattr(self, name), self.settings()[name].parts
            if not isinstance(value, parts):
                shown = " or ".join(f"{p.__name__}(...)" for p in parts)
                raise InputError(f"`{name}` is {shown}; got {value!r:.60}. In plain data: a table with its `type`.")


def to_plain(value: Any) -> Any:
    """A setting as plain data: an object becomes a table with its `type`, a NumPy number a Python one."""
    if isinstance(value, Settings):
        return {"type": value.type_name(), **{key: to_plain(getattr(value, key)) for key in value.settings()}}
    return value.item() if isinstance(value, np.generic) else value


def _read(known: Setting, value: Any, owner: str) -> Any:
    """The value of a setting from plain data."""
    if not known.parts or not isinstance(value, str | Mapping):
        return value
    by_name = {p.type_name(): p for p in known.parts}
    table = {"type": value} if isinstance(value, str) else dict(value)
    default = known.default.type_name() if isinstance(known.default, Settings) else next(iter(by_name))
    name = table.pop("type", default)
    if name not in by_name:
        near = difflib.get_close_matches(str(name), by_name, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise InputError(f"The type of {owner} is one of {', '.join(by_name)}; got {name!r}. {hint}".rstrip())
    return by_name[name].from_plain(table, owner)
