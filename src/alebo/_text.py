"""Text that came from outside: made harmless before it is shown."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movements
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, DCS: window titles, links
    r"|\x1b[ -/]*[0-~]?"  # the other escape sequences
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # all but tab and newline


def printable(text: str) -> str:
    """The text without terminal escape sequences, control characters and changes of the writing direction."""
    return _CONTROL.sub("", _ESCAPE.sub("", text))
