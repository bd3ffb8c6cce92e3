"""What the tests of runs share: a PostgreSQL server, and quiet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import require_module, require_part

from .postgres import Server, programs, running


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    require_module("optuna", "study")
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(level)


@pytest.fixture(autouse=True)
def _own_spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outcomes that cannot be written are kept beside the test's files, not in the home folder."""
    monkeypatch.setenv("ALEBO_SPOOL", str(tmp_path / "spool"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A running server, which tests may stop and start."""
    require_part("PostgreSQL", programs() is not None, "Install it: apt-get install postgresql.")
    require_module("psycopg2", "postgres")
    with running() as made:
        yield made


@pytest.fixture
def postgres(postgres_server: Server) -> str:
    """The URL of a running server."""
    return postgres_server.url
