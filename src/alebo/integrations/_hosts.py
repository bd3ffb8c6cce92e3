"""Which versions of another library an integration works with, and the message where another one is installed."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

from .._errors import MissingPartError


def check_host(who: str, package: str, least: str, below: str, extra: str) -> None:
    """Refuse where `package` is missing, older than `least`, or `below` or later; the message carries the line to run.

    >>> check_host("This doctest", "numpy", "1.0", "99", "sklearn")
    >>> check_host("This doctest", "numpy", "98", "99", "sklearn")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    alebo._errors.MissingPartError: This doctest needs numpy 98 or later, before 99; version ... is installed. Run: ...
    """
    needed = f"{who} needs {package} {least} or later, before {below}"
    run = f'Run: pip install "alebo[{extra}]"'
    try:
        found = version(package)
    except PackageNotFoundError:
        raise MissingPartError(f"{needed}, which is not installed. {run}") from None
    if not _numbers(least) <= _numbers(found) < _numbers(below):
        raise MissingPartError(f"{needed}; version {found} is installed. {run}")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text.split("+")[0])[:2])
