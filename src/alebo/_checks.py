"""Checks of arguments that several functions share."""

from __future__ import annotations

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


def prepared_ahead(ahead: int | None, workers: int) -> int:
    """How many points are prepared while all workers are busy: as said, or one for every two workers.

    Of four workers two often end nearly at once, and the second would wait while its point is asked for.
    """
    if ahead is None:
        return workers // 2
    return whole("ahead", ahead, 0, "It is the number of points that are prepared while all workers are busy.")
