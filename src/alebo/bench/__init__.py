"""The paper's experiments: problems, one run, sweeps, tables and figures. Uses only the package's public names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .labels import VARIANTS as VARIANTS
    from .labels import Label as Label
    from .one_run import replication as replication
    from .problems import PAPER as PAPER
    from .problems import PROBLEMS as PROBLEMS
    from .problems import Problem as Problem
    from .problems import problem as problem

# A name is fetched when first used: tables and figures of old runs need no Torch.
_WHERE = {
    "VARIANTS": "labels",
    "Label": "labels",
    "PAPER": "problems",
    "PROBLEMS": "problems",
    "Problem": "problems",
    "problem": "problems",
    "replication": "one_run",
}

__all__ = [*_WHERE]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module 'alebo.bench' has no attribute {name!r}")
