"""What a stored run must hold. A line that breaks a rule is reported, and nothing is computed from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

_NEEDED = ("problem", "label", "method", "seed", "budget", "state", "environment")
_NEEDED_COMPLETE = ("goals", "outcomes", "truth", "feasible", "dim", "seconds")
_OBJECTIVES = ("Minimize", "Maximize")


def damage(record: dict[str, Any]) -> str | None:
    """The first rule that a run of this format breaks, or None.

    Args:
        record: What was read, an object of JSON.
    """
    return next(_faults(record), None)


def _faults(record: dict[str, Any]) -> Iterator[str]:
    complete = record.get("state") == "complete"
    missing = [key for key in _NEEDED + (_NEEDED_COMPLETE if complete else ()) if key not in record]
    if missing:
        yield f"damaged: {', '.join(missing)} missing"
        return
    for rules in (_RULES, _RULES_COMPLETE) if complete else (_RULES,):
        for key, (good, words) in rules.items():
            if not good(record.get(key)):
                yield _words(key, words, record.get(key))
    if complete:
        yield from _series(record)


def _series(record: dict[str, Any]) -> Iterator[str]:
    """Faults of the series of a complete run: one value for each evaluation, and one series for each objective."""
    n = int(record["budget"])
    for key in ("outcomes", "truth"):
        for name, values in record[key].items():
            if not _list_of(values, _maybe_number) or len(values) != n:
                yield _words(f"{key}.{name}", f"a list of {n} numbers", values)
    if record["feasible"] is not None and len(record["feasible"]) != n:
        yield _words("feasible", f"a list of {n} truth values", record["feasible"])
    if any(not 0 <= at < n for at, _ in record["dim"]):
        yield _words("dim", f"a list of [evaluation below {n}, dimension]", record["dim"])
    for goal in record["goals"]:
        if goal["type"] in _OBJECTIVES and goal["outcome"] not in record["outcomes"]:
            yield f"damaged: `outcomes` must hold the objective {goal['outcome']!r:.40}"


def _words(key: str, words: str, value: Any) -> str:
    return f"damaged: `{key}` must be {words}; it is {value!r:.40}"


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _whole(value: Any, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value < 2**63


def _number(value: Any) -> bool:
    """A finite number; NaN, which JSON does not have, is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < 2**1000


def _maybe_number(value: Any) -> bool:
    return value is None or _number(value)


def _list_of(value: Any, good: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(good, value))


def _goals(value: Any) -> bool:
    def goal(g: Any) -> bool:
        return (
            isinstance(g, dict)
            and _text(g.get("type"))
            and isinstance(g.get("outcome"), str)
            and _maybe_number(g.get("reference"))
        )

    return _list_of(value, goal) and any(g["type"] in _OBJECTIVES for g in value)


def _dim(value: Any) -> bool:
    return _list_of(value, lambda c: isinstance(c, list) and len(c) == 2 and _whole(c[0], 0) and _number(c[1]))


def _environment(value: Any) -> bool:
    versions = value.get("versions") if isinstance(value, dict) else None
    return isinstance(versions, dict) and _text(versions.get("alebo"))


_Rules = dict[str, tuple[Callable[[Any], bool], str]]
_RULES: _Rules = {
    "problem": (_text, "a text"),
    "label": (_text, "a text"),
    "method": (lambda v: isinstance(v, dict) and _text(v.get("name")), "an object with a name"),
    "seed": (lambda v: _whole(v, 0), "a whole number of 0 or more"),
    "budget": (lambda v: _whole(v, 1), "a whole number of 1 or more"),
    "state": (lambda v: v in ("complete", "failed"), "complete or failed"),
    "environment": (_environment, "an object with the version of alebo"),
}
_RULES_COMPLETE: _Rules = {
    "goals": (_goals, "a list of goals with an objective"),
    "outcomes": (lambda v: isinstance(v, dict), "an object of series"),
    "truth": (lambda v: isinstance(v, dict), "an object of series"),
    "feasible": (lambda v: v is None or _list_of(v, lambda x: isinstance(x, bool)), "null or a list of truth values"),
    "dim": (_dim, "a list of [evaluation, dimension]"),
    "seconds": (
        lambda v: isinstance(v, dict) and _list_of(v.get("model"), _number) and _number(v.get("evaluation")),
        "an object with a list `model` and a number `evaluation`",
    ),
    "optimum": (_maybe_number, "null or a number"),
    "best": (lambda v: v is None or (isinstance(v, dict) and _maybe_number(v.get("value"))), "null or hold a number"),
}
