"""Bayesian optimization of expensive functions of 20 to 1000 and more parameters, inside linear embeddings.

>>> import alebo
>>> space = alebo.Space.from_bounds([(0, 1)] * 30)
>>> opt = alebo.Optimizer(space, alebo.Minimize("loss"), seed=0)
>>> trial = opt.ask()[0]
>>> opt.tell(trial.number, 0.5).state
<State.COMPLETE: 'complete'>
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

# The public names stand once, in __init__.pyi, with the module each comes from. A module is imported when one of its
# names is first used, so that `import alebo` and `alebo --help` do not wait for Torch.
_PUBLIC = re.findall(
    r"^from \.([\w.]*) import (\w+) as \2$",
    Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"),
    re.MULTILINE,
)
_SOURCE: dict[str, str] = {name: module for module, name in _PUBLIC}

__all__ = ["__version__", *sorted(_SOURCE)]


def __getattr__(name: str) -> Any:
    if name not in _SOURCE:
        raise AttributeError(f"module 'alebo' has no attribute {name!r}")
    module = _SOURCE[name]
    return getattr(import_module(f".{module}", __name__), name) if module else import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted(__all__)
