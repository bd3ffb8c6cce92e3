"""Where a study lives: a journal file by path, PostgreSQL by URL. Strings become storages here, and only here."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import MissingPartError, StudyError
from ._claims import Claims, FileClaims, PostgresClaims, number_of

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

_SCHEME = re.compile(r"^[a-zA-Z][a-zA-Z0-9+]*://")
_SECRET = re.compile(
    r"(?P<before>://[^/@]*?:)[^/]*(?P<after>@)|(?P<key>(?:password|passfile|sslpassword)=)[^&\s]*", re.IGNORECASE
)


def is_url(where: str) -> bool:
    """Whether this names a database and not a file."""
    return bool(_SCHEME.match(where))


def redact(text: str) -> str:
    """The text with every password of a URL in it replaced: what may be shown or logged."""
    return _SECRET.sub(lambda m: m["before"] + "***" + m["after"] if m["before"] else m["key"] + "***", text)


def require_optuna() -> None:
    """Say how to install Optuna where it is missing."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingPartError(
            'A study needs Optuna, which is not installed. Run: pip install "optuna>=5" "pebble>=5.1"'
        ) from None


def connect(where: str | os.PathLike[str], name: str, *, must_exist: bool) -> tuple[BaseStorage, Claims]:
    """The storage at this path or URL, healed where it was damaged, and the claims of its workers."""
    require_optuna()
    where = os.fspath(where)
    return _database(where, name) if is_url(where) else _file(Path(where), must_exist)


def _file(path: Path, must_exist: bool) -> tuple[BaseStorage, Claims]:
    from optuna.storages import JournalStorage

    from ._journal import Journal

    if path.is_dir():
        raise StudyError(
            f"A study is one file; {path} is a folder. Name a file in it, for instance {path / 'study.log'}."
        )
    if must_exist and not path.exists():
        raise StudyError(
            f"A study must exist to be opened; there is no file {path}. Check the path, or create it first."
        )
    if path.exists() and path.stat().st_size and not _is_journal(path):
        raise StudyError(
            f"A study file is a journal that alebo or Optuna wrote; {path} is something else. Choose another path."
        )
    claims = FileClaims(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return JournalStorage(Journal(path, claims)), claims
    except OSError as error:
        raise StudyError(f"A study file must be writable; {path} is not ({error}). Check its folder.") from None


def _is_journal(path: Path) -> bool:
    """Whether one of the first lines is a journal's; the very first may be damaged."""
    with open(path, "rb") as file:
        return any(b'"op_code"' in line for _, line in zip(range(64), file, strict=False))


def _database(url: str, name: str) -> tuple[BaseStorage, Claims]:
    url = re.sub(r"^postgres(ql)?://", f"postgresql+{_driver()}://", url)
    if not url.startswith("postgresql"):
        raise StudyError(
            f"Many machines share a study in PostgreSQL; got {redact(url)}. Give postgresql://user@host/database, or "
            "the path "
            "of a file for one machine."
        )
    try:
        import sqlalchemy
        from optuna.storages import RDBStorage, get_storage
    except ImportError:
        raise _missing() from None
    alive = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "connect_timeout": 10}
    server = " ".join(f"-c tcp_{key}={value}" for key, value in alive.items() if key.startswith("keep"))
    settings: dict[str, Any] = {"pool_pre_ping": True, "connect_args": {**alive, "options": server}}
    try:
        engine = sqlalchemy.create_engine(url, **settings)
        with engine.connect() as connection:  # two workers that make the tables at once would trip over each other
            key = {"key": number_of("alebo/tables")}
            connection.execute(sqlalchemy.text("SELECT pg_advisory_xact_lock(CAST(:key AS bigint))"), key)
            storage = RDBStorage(url, engine_kwargs=settings)
        engine.dispose()
    except ImportError:
        raise _missing() from None
    except Exception as error:
        reason = redact(str(getattr(error, "orig", None) or error)).strip().splitlines()
        raise StudyError(
            f"A study's database must be reachable; {redact(url)} is not: {without(url, reason[0] if reason else '')} "
            "Check the host, the port, the database and the password."
        ) from None
    return get_storage(storage), PostgresClaims(storage.engine, name)


def _driver() -> str:
    """The Python library for PostgreSQL that is here: SQLAlchemy's own guess changes with its version."""
    return "psycopg" if find_spec("psycopg2") is None and find_spec("psycopg") is not None else "psycopg2"


def without(url: str, text: str) -> str:
    """The text without this URL's password, should a library have put it there."""
    from sqlalchemy.engine import make_url

    try:
        password = make_url(url).password
    except Exception:
        return redact(text)
    return redact(text.replace(password, "***") if password else text)


def _missing() -> MissingPartError:
    return MissingPartError('PostgreSQL needs psycopg2, which is not installed. Run: pip install "alebo[postgres]"')
