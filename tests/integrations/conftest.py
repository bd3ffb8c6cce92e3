"""For the tests with other libraries: Optuna logs warnings only."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    if find_spec("optuna") is None:
        yield
        return
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(level)
