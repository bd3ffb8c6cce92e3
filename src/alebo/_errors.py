"""One family of errors: every message names the rule, what came, and the way out."""

from __future__ import annotations


class AleboError(Exception):
    """Anything that alebo raises on purpose."""


class InputError(AleboError, ValueError):
    """A value that breaks a rule: bounds, names, shapes, outcomes."""


class StateError(AleboError, RuntimeError):
    """A call that comes at the wrong time: telling twice, asking beyond the budget."""


class EvaluationError(AleboError, ValueError, RuntimeError):
    """The user's function broke or returned no number; `optimizer` holds everything measured until then."""

    optimizer: object = None


class StudyError(AleboError, RuntimeError):
    """A file, study or database that cannot be read or does not fit."""


def damaged_note(expected: str) -> StudyError:
    """The error for a trial's note that does not hold what its method has written.

    Args:
        expected: What it must hold.
    """
    return StudyError(f"A trial's note must hold {expected}; it holds something else. Use a backup of the study.")


class MissingPartError(AleboError, ImportError):
    """An optional part is not installed; the message carries the line that installs it."""
