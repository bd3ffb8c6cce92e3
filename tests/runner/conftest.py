"""What the tests of runs share: a PostgreSQL server, and quiet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import require_module, require_part

from .postgres import programs, server


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    require_module("optuna", "study")
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(level)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a running server."""
    require_part("PostgreSQL", programs() is not None, "Install it: apt-get install postgresql.")
    require_module("psycopg2", "postgres")
    with server() as url:
        yield url
