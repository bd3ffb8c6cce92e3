"""Checks of arguments that several functions share."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

from ._errors import InputError

MOST = 10**9  # of anything that is counted


def whole(name: str, value: Any, least: int | None, way_out: str) -> int:
    """`value` as an int, or an InputError that names the argument and the way out."""
    try:
        number = int(value)
        good = not isinstance(value, str | bytes) and number == value and (least is None or number >= least)
    except (TypeError, ValueError, OverflowError):
        good = False
    if not good:
        rule = f"`{name}` must be a whole number" if least is None else f"`{name} >= {least}` must hold, a whole number"
        raise InputError(f"{rule}; got {value!r:.60}. {way_out}")
    if least is not None and number > MOST:
        raise InputError(
            f"`{name} <= {MOST}` must hold; got a number of about {number.bit_length() * 0.30103:.0f} digits. {way_out}"
        )
    return number


def listed(given: Any, rule: str, way_out: str = "Put one in brackets: [...].") -> tuple[Any, ...]:
    """The members of a list, or an InputError where it is none: one object, a text, None."""
    if not isinstance(given, str | bytes):
        try:
            return tuple(given)
        except TypeError:
            pass
    raise InputError(f"{rule}; got {given!r:.80}. {way_out}")


def named(names: Sequence[str], given: Any) -> Mapping[str, Any]:
    """A point as a mapping; where it is a sequence, its values are in the order of the names."""
    if isinstance(given, Mapping):
        return given
    values = given.tolist() if hasattr(given, "tolist") else given
    if not isinstance(values, list | tuple) or len(values) != len(names):
        known = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise InputError(
            f"A point is a mapping of names to values, or a list of {len(names)} values in the order of the space; got "
            f"{given!r:.60}. The order is {known}."
        )
    return dict(zip(names, values, strict=True))


def misfit(name: str, kind: str, given: Mapping[str, Any], makers: Mapping[str, Any]) -> str:
    """Which key things of this kind do not have, or which one is missing; empty where neither is the mistake."""
    takes = {k: {p.name: p.default is p.empty for p in signature(m).parameters.values()} for k, m in makers.items()}
    for keys in takes.values():
        del keys["name"]
    one = f"{name!r} is {'an' if kind == 'int' else 'a'} {kind}, which"
    for key in given:
        if key not in takes[kind]:
            near = difflib.get_close_matches(str(key), takes[kind], n=1)
            others = " or ".join(k for k, keys in takes.items() if key in keys)
            way = f"Leave `{key}` out{f', or give it the type {others}' if others else ''}."
            hint = f"Did you mean {near[0]!r}?" if near else way
            return f"{one} has no `{key}`; it has {', '.join(takes[kind])}. {hint}"
    missing = [key for key, needed in takes[kind].items() if needed and key not in given]
    return f"{one} needs `{missing[0]}`; got {', '.join(given) or 'nothing'}. Add it." if missing else ""


def callable_or_none(name: str, given: Any) -> None:
    """Refuse what is to be called later and cannot be."""
    if given is not None and not callable(given):
        raise InputError(f"`{name}` must be callable; got {given!r:.60}. Pass the function itself, or leave it out.")


def prepared_ahead(ahead: int | None, workers: int) -> int:
    """How many points are prepared while all workers are busy: as said, or one for every two workers.

    Of four workers two often end nearly at once, and the second would wait while its point is asked for.
    """
    if ahead is None:
        return workers // 2
    return whole("ahead", ahead, 0, "It is the number of points that are prepared while all workers are busy.")
