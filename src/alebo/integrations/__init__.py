"""Other libraries: the Optuna sampler, the node for Ax, the search for scikit-learn, the callback for MLflow, and spaces of Optuna and ConfigSpace. Loaded when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import ax as ax
    from . import mlflow as mlflow
    from . import optuna as optuna
    from . import sklearn as sklearn
    from . import spaces as spaces

__all__ = ["ax", "mlflow", "optuna", "sklearn", "spaces"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
