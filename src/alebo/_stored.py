"""The schema of what is stored: a saved study, its trials, and what a method has noted in them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ._errors import StudyError
from ._schema import Kind, shown

MOST = 10**9  # evaluations that a budget may allow


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_object, value))


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and set(map(type, value)) <= {int, float}  # quick for a thousand of them


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_memory(value: Any) -> bool:
    """Where a fit ended, by the name of its outcome: finite numbers, or lists of them."""
    return _is_object(value) and all(
        isinstance(v, list) and (_are_finite(v) or all(isinstance(x, list) and _are_finite(x) for x in v))
        for v in value.values()
    )


def _are_lists(value: Any) -> bool:
    return _is_memory(value) and all(isinstance(x, list) for v in value.values() for x in v)


def _are_finite(values: list[Any]) -> bool:
    return all(map(_is_finite, values))


def _is_finite(value: Any) -> bool:
    return _is_number(value) and abs(value) <= 1e300 and math.isfinite(value)


def _is_basin(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 4 or not all(isinstance(v, list) for v in value[2:]):
        return False
    return all(_is_whole(v) and v >= 0 for v in (*value[:2], *value[2])) and all(map(_is_number, value[3]))


def _are_events(value: Any) -> bool:
    kinds = ("grow", "towards", "through")
    return isinstance(value, list) and all(
        isinstance(e, list) and len(e) in (3, 4) and e[0] in kinds and _is_whole(e[1]) and _is_whole(e[2]) and e[1] >= 0
        for e in value
    )


TEXT = Kind("is a text", lambda v: isinstance(v, str))
FLAG = Kind("is true or false", lambda v: isinstance(v, bool))
OBJECT = Kind("is an object", _is_object)
OBJECTS = Kind("is a list of objects", _are_objects)
WHOLE = Kind("is a whole number", _is_whole)
NUMBER = Kind("is a number", _is_number)
COUNT = Kind("is a whole number of 0 or more", lambda v: _is_whole(v) and v >= 0)
SIZE = Kind("is a whole number of 1 or more", lambda v: _is_whole(v) and v >= 1)
MEMORY = Kind("holds finite numbers, or lists of them, by the name of an outcome", _is_memory)
MEMORIES = Kind("holds lists of finite numbers by the name of an outcome", _are_lists)

STUDY = {
    "space": OBJECT,
    "constraints": Kind("is a list of { coefficients, upper }", lambda v: isinstance(v, list) and all(map(_linear, v))),
    "goals": OBJECTS,
    "method": OBJECT,
    "seed": WHOLE,
    "budget": Kind(
        f"is a whole number of 1 or more, up to {MOST}, or null",
        lambda v: v is None or (_is_whole(v) and 1 <= v <= MOST),
    ),
    "trials": OBJECTS,
}
TRIAL = {
    "number": WHOLE,
    "params": OBJECT,
    "x": Kind("is a list of numbers", _are_numbers),
    "y": Kind("is a list of numbers, or null", lambda v: v is None or _are_numbers(v)),
    "outcomes": Kind("holds [mean, standard error or null] by name", lambda v: _is_object(v) and _pairs(v)),
    "state": TEXT,
    "note": OBJECT,
    "reason": Kind("is a text or null", lambda v: v is None or isinstance(v, str)),
    "asked": FLAG,
}
NOTE = {  # by the methods of alebo; a method from elsewhere notes what it likes
    "enqueued": COUNT,
    **dict.fromkeys(("arm", "by", "draw", "groups", "assumption"), TEXT),
    **dict.fromkeys(("log_ei", "unexplained", "side"), NUMBER),
    **dict.fromkeys(("again", "line", "age", "generation", "member", "region", "life", "stage", "batch"), COUNT),
    **dict.fromkeys(("dim", "size"), SIZE),
    **dict.fromkeys(("initial", "extra", "elsewhere"), FLAG),
    **dict.fromkeys(("chains", "mode", "fit"), MEMORIES),
    **dict.fromkeys(("sparse", "skipped", "refused"), OBJECT),
    "projection": COUNT,
    "anchor": Kind("is the number of a trial, or null", lambda v: v is None or (_is_whole(v) and v >= 0)),
    "lengthscale": Kind("is a number from 1e-6 to 1e6", lambda v: _is_number(v) and 1e-6 <= v <= 1e6),
    "events": Kind("is a list of growths, [kind, number, trial]", _are_events),
    "filled": Kind("is a basin, [trial, number, coordinates, lengthscales]", _is_basin),
}
TOGETHER = {  # what a method that notes the first reads, too
    "region": ("life", "batch", "initial"),
    "stage": ("life", "batch", "initial"),
    "initial": ("life", "batch"),
    "line": ("anchor",),
    "draw": ("age", "size", "lengthscale"),
}


def _linear(value: Any) -> bool:
    if not isinstance(value, Mapping) or set(value) != {"coefficients", "upper"} or not _is_number(value["upper"]):
        return False
    return _is_object(value["coefficients"]) and all(map(_is_number, value["coefficients"].values()))


def _pairs(outcomes: Mapping[str, Any]) -> bool:
    return all(
        isinstance(o, list) and len(o) == 2 and _is_number(o[0]) and (o[1] is None or _is_number(o[1]))
        for o in outcomes.values()
    )


def check_study(data: Mapping[str, Any]) -> None:
    """Refuse plain data that are no saved study."""
    _check("A saved study", STUDY, data)
    for i, trial in enumerate(data["trials"]):
        check_trial_record(f"Trial {i} of a saved study", trial)
    queued = data.get("queue", [])
    if not OBJECTS.good(queued):
        raise StudyError(f"A saved study: `queue` is a list of points; got {shown(queued)}. Use a backup of it.")


def check_trial_record(what: str, data: Any) -> None:
    """Refuse plain data that are no trial.

    Args:
        what: What they are said to be, for the message.
        data: As `Trial.to_dict` writes them.
    """
    if not isinstance(data, Mapping):
        raise StudyError(f"{what} is an object; got {shown(data)}. Use a backup of it.")
    _check(what, TRIAL, data)
    earlier = data.get("earlier", [])
    if not OBJECTS.good(earlier):
        raise StudyError(f"{what}: `earlier` is a list of objects; got {shown(earlier)}. Use a backup of it.")
    for was in earlier:
        _check(f"{what}, before a correction", TRIAL, {"number": data["number"], **was})


def check_note(number: int, note: Mapping[str, Any], dimension: int) -> None:
    """Refuse a note that no method of alebo has written.

    Args:
        number: Of its trial.
        note: The note.
        dimension: Coordinates of the space.
    """
    what = f"The note of trial {number}"
    for key, value in note.items():
        kind = NOTE.get(key, MEMORY if key.endswith(" fit") else None)
        if kind is not None and not kind.good(value):
            raise StudyError(f"{what}: `{key}` {kind.rule}; got {shown(value)}. Use a backup of the study.")
        for other in TOGETHER.get(key, ()):
            if other not in note:
                raise StudyError(f"{what} must have `{other}` beside `{key}`; it has not. Use a backup of the study.")
    named = [note[k] for k in ("again", "anchor") if note.get(k) is not None]
    named += [how for kind, how, *_ in note.get("events", ()) if kind == "through"]
    if any(n >= number for n in named):
        raise StudyError(f"{what} names earlier trials; got {max(named)}. Use a backup of the study.")
    grown = [how for kind, how, *_ in note.get("events", ()) if kind != "through"]
    if any(how > dimension for how in grown):
        raise StudyError(
            f"{what} adds at most {dimension} directions at a time; got {max(grown)}. Use a backup of the study."
        )


def _check(what: str, kinds: Mapping[str, Kind], data: Mapping[str, Any]) -> None:
    """Refuse plain data that lack a key, or hold a value of a wrong kind."""
    for key, kind in kinds.items():
        if key not in data:
            raise StudyError(f"{what} must have `{key}`; it has not. Use a backup of it.")
        if not kind.good(data[key]):
            raise StudyError(f"{what}: `{key}` {kind.rule}; got {shown(data[key])}. Use a backup of it.")
