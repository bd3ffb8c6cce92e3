"""Whether a stored run is the wanted one: the same method and settings, and at least as many evaluations."""

from __future__ import annotations

import json
import re
from typing import Any


def clash(stored: dict[str, Any], budget: int, settings: str) -> str | None:
    """Why a stored run cannot stand for the wanted one, or None.

    A failed run stands for any, because it is counted and shown as failed. Runs of older versions lack newer settings or have
    more, so only those that both have are compared.

    Args:
        stored: The record.
        budget: The evaluations that are wanted; a stored run may have more.
        settings: The method as `describe` has it, in JSON; empty where it is not known.
    """
    if stored["state"] != "complete":
        return None
    if settings:
        other = _differences(stored["method"], json.loads(settings))
        if other:
            return f"{', '.join(other[:3])}{', ...' if len(other) > 3 else ''}"
    if stored["budget"] < budget:
        return f"{stored['budget']} evaluations are stored, {budget} are wanted"
    return None


def _differences(stored: dict[str, Any], wanted: dict[str, Any], at: str = "") -> list[str]:
    """What differs, in words; of methods with different names only the names."""
    out: list[str] = []
    for key in sorted(stored.keys() & wanted.keys(), key=lambda k: (k != "name", k)):
        a, b = stored[key], wanted[key]
        if isinstance(a, dict) and isinstance(b, dict):
            out += _differences(a, b, f"{at}{key}.")
        elif isinstance(b, dict) and isinstance(a, str):  # before 0.2 a part without settings was its type's name
            out += [] if b.get("type") == a else [f"{at}{key} {a!r} is stored, {b.get('type')!r} is wanted"]
        elif _plain(a) != _plain(b):
            out.append(f"{at}{key} {a!r:.40} is stored, {b!r:.40} is wanted")
            if key == "name" and not at:
                break
    return out


def _plain(value: Any) -> Any:
    """A setting without the address that Python shows for functions, which is another in each process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", value) if isinstance(value, str) else value
