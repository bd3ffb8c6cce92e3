"""Runs that survive: a study that is written as it goes, and `run`, which evaluates its trials and resumes."""

from __future__ import annotations

from importlib.util import find_spec

from .._errors import MissingPartError

if find_spec("fcntl") is None:
    raise MissingPartError(
        "A stored study needs the file locks of a POSIX system (Linux, macOS); this one has none. Use WSL on Windows, or "
        "alebo.minimize and alebo.Optimizer, which run everywhere."
    )

from .evaluate import Step as Step
from .evaluate import run as run
from .study import Study as Study
