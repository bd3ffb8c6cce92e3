"""A study in PostgreSQL: Optuna's tables, one transaction for each change, and claims as advisory locks."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from .._errors import MissingPartError, StudyError
from .._urls import redact, without_password
from ._claims import Claims, number_of
from ._patience import Away, Patience
from ._storage import Outcome, Storage

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

T = TypeVar("T")

STARTING = 5.0  # seconds for which the first connection is tried again; a wrong address is to be named soon
COMING_UP = ("starting up", "shutting down", "recovery")  # what a server says that is there but not ready


class _Taken(Exception):
    """Another worker has taken the number."""


def _storage_class() -> Any:
    """Optuna's storage with changes that compare before they set, in one transaction each."""
    from datetime import datetime

    from optuna.storages import RDBStorage
    from optuna.storages._rdb import models
    from optuna.trial import TrialState

    class Transactions(RDBStorage):
        @contextmanager
        def _transaction(self) -> Iterator[Any]:
            session = self.scoped_session()
            try:
                yield session
                session.commit()
            except BaseException:
                session.rollback()
                raise
            finally:
                session.close()

        def _get_prepared_new_trial(self, study_id: int, template_trial: Any, session: Any) -> Any:
            made = super()._get_prepared_new_trial(study_id, template_trial, session)
            if template_trial is not None and made.number != template_trial.number:
                raise _Taken
            return made

        def finish(self, trial_id: int, outcome: Outcome) -> bool:
            with self._transaction() as session:
                trial = models.TrialModel.find_or_raise_by_id(trial_id, session, for_update=True)
                if trial.state.is_finished():
                    return False
                for kind, given in (
                    (models.TrialUserAttributeModel, outcome.attributes),
                    (models.TrialSystemAttributeModel, {f"constraints:{k}": v for k, v in outcome.constraints.items()}),
                ):
                    for key, value in given.items():
                        self._set_trial_attr_without_commit(session, kind, trial_id, key, value)
                for i, value in enumerate(outcome.values):
                    self._set_trial_value_without_commit(session, trial, i, float(value))
                trial.state = TrialState.COMPLETE if outcome.complete else TrialState.FAIL
                trial.datetime_complete = datetime.now()
                return True

        def swap_owner(self, trial_id: int, old: Any, new: Any) -> bool:
            import json

            with self._transaction() as session:
                trial = models.TrialModel.find_or_raise_by_id(trial_id, session, for_update=True)
                found = models.TrialUserAttributeModel.find_by_trial_and_key(trial, "owner", session)
                if trial.state.is_finished() or (None if found is None else json.loads(str(found.value_json))) != old:
                    return False
                self._set_trial_attr_without_commit(session, models.TrialUserAttributeModel, trial_id, "owner", new)
                return True

    return Transactions


class PostgresStorage(Storage):
    """Optuna's tables in PostgreSQL. Every access waits while the server is away."""

    def __init__(self, url: str, name: str) -> None:
        self.where = redact(url)
        self._url = re.sub(r"^postgres(ql)?://", f"postgresql+{_driver()}://", url)
        if not self._url.startswith("postgresql"):
            raise StudyError(
                f"Many machines share a study in PostgreSQL; got {self.where}. Give postgresql://user@host/database, "
                "or the path of a file for one machine."
            )
        self.patience = Patience(self.where)
        self._backend = self._open()
        from optuna.storages import get_storage

        self._optuna: Any = get_storage(self._backend)
        self.claims = PostgresClaims(self._backend.engine, name, self)
        self._study = -1

    def _open(self) -> Any:
        try:
            import sqlalchemy
            from optuna.storages import RDBStorage  # noqa: F401
        except ImportError:
            raise _missing() from None
        alive = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "connect_timeout": 10}
        server = " ".join(f"-c tcp_{key}={value}" for key, value in alive.items() if key.startswith("keep"))
        settings: dict[str, Any] = {"pool_pre_ping": True, "connect_args": {**alive, "options": server}}
        until = time.monotonic() + STARTING
        while True:
            try:
                engine = sqlalchemy.create_engine(self._url, **settings)
                with engine.connect() as connection:  # two workers that make the tables at once would be in the way
                    key = {"key": number_of("alebo/tables")}
                    connection.execute(sqlalchemy.text("SELECT pg_advisory_xact_lock(CAST(:key AS bigint))"), key)
                    storage = _storage_class()(self._url, engine_kwargs=settings)
                engine.dispose()
                return storage
            except ImportError:
                raise _missing() from None
            except Exception as error:
                reason = self._reason(error)
                coming = any(word in reason for word in COMING_UP)
                again = _transient(error) and (coming or "refused" in reason or "closed" in reason)
                if again and time.monotonic() < until + coming * self.patience.seconds:
                    time.sleep(0.3)
                    continue
                raise StudyError(
                    f"A study's database must be reachable; {self.where} is not: {reason} Check the host, the port, "
                    "the database and the password."
                ) from None

    def _reason(self, error: BaseException) -> str:
        """The first line of what the server or its library said, without the password."""
        cause = error.__cause__ or error
        lines = str(getattr(cause, "orig", None) or cause).strip().splitlines()
        return without_password(self._url, lines[0].strip() if lines else type(error).__name__)

    def _asked(self, access: Callable[[], T]) -> T:
        """The answer of the server, waited for."""

        def once() -> T:
            try:
                return access()
            except Exception as error:
                if not _transient(error):
                    raise
                self.claims.interrupted()
                raise Away(self._reason(error)) from None

        return self.patience.wait_for(once)

    def names(self) -> list[str]:
        return [s.study_name for s in self._asked(self._optuna.get_all_studies)]

    def select(self, name: str) -> bool:
        try:
            self._study = self._asked(lambda: self._optuna.get_study_id_from_name(name))
        except KeyError:
            return False
        return True

    def create(self, name: str, directions: Sequence[int]) -> None:
        from optuna.exceptions import DuplicatedStudyError
        from optuna.study import StudyDirection

        with suppress(DuplicatedStudyError):
            self._asked(lambda: self._optuna.create_new_study([StudyDirection(d) for d in directions], study_name=name))
        if not self.select(name):
            raise StudyError(f"A study that was just made must be there; {self.where} has no {name!r}. Try again.")

    def attributes(self) -> dict[str, Any]:
        return self._asked(lambda: dict(self._optuna.get_study_user_attrs(self._study)))

    def set_attribute(self, key: str, value: Any) -> None:
        self._asked(lambda: self._optuna.set_study_user_attr(self._study, key, value))

    def trials(self) -> list[FrozenTrial]:
        return self._asked(lambda: list(self._optuna.get_all_trials(self._study, deepcopy=False)))

    def _id(self, number: int) -> int:
        return self._asked(lambda: int(self._optuna.get_trial_id_from_study_id_trial_number(self._study, number)))

    def add(self, trial: FrozenTrial) -> bool:
        try:
            self._asked(lambda: self._optuna.create_new_trial(self._study, trial))
        except _Taken:
            # By us, perhaps: the server may have written it and gone away before it could say so.
            there = self.trials()
            return (
                len(there) > trial.number and there[trial.number].user_attrs.get("owner") == trial.user_attrs["owner"]
            )
        return True

    def swap_owner(self, number: int, old: Any, new: Any) -> bool:
        trial_id = self._id(number)
        done = self._asked(lambda: bool(self._backend.swap_owner(trial_id, old, new)))
        return done or self._optuna.get_trial(trial_id).user_attrs.get("owner") == new

    def finish(self, number: int, outcome: Outcome) -> bool:
        trial_id, tries = self._id(number), 0

        def once() -> bool:
            nonlocal tries
            tries += 1
            return bool(self._backend.finish(trial_id, outcome))

        if self._asked(once):
            return True
        if tries == 1:
            return False
        # An earlier try may have been written by a server that went away before it could say so.
        there = self._asked(lambda: self._backend.get_trial(trial_id).user_attrs)
        return all(there.get(k) == v for k, v in outcome.attributes.items())


class PostgresClaims(Claims):
    """Claims as advisory locks of one connection, which the server drops when the connection goes."""

    def __init__(self, engine: Any, name: str, storage: PostgresStorage) -> None:
        super().__init__()
        self.engine, self.name, self.storage = engine, name, storage
        self.workers: set[str] = set()
        self.guard = threading.RLock()  # one statement at a time
        self.ask_guard = threading.RLock()  # threads share the connection, and with it the lock
        self._connection: Any = None

    def _run(self, statement: str, **values: Any) -> Any:
        """The answer to one statement on the connection that holds the locks; a lost one is opened again."""
        from sqlalchemy import text

        with self.guard:
            try:
                if self._connection is None:
                    self._connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
                    self._free.clear()  # others have lost theirs, too, perhaps
                    for worker in self.workers:
                        # not waited for: a connection that was cut may hold it for a while
                        self._connection.execute(text(_call("pg_try_advisory_lock")), {"key": self._key(worker)})
                return self._connection.execute(text(statement), values).scalar()
            except Exception:
                self._drop()
                raise

    def _patiently(self, function: str, key: int) -> Any:
        return self.storage._asked(lambda: self._run(_call(function), key=key))

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                self._connection.invalidate()
            with suppress(Exception):
                self._connection.close()
        self._connection = None

    def _key(self, what: str) -> int:
        return number_of(f"alebo/{self.name}/{what}")

    @contextmanager
    def asking(self) -> Iterator[None]:
        with self.ask_guard:
            self._patiently("pg_advisory_lock", self._key("ask"))
            holder = self._connection
            try:
                yield
            finally:
                with self.guard:
                    # With the connection went the lock. What is written compares before it sets, so nothing is wrong.
                    if holder is not None and self._connection is holder:
                        with suppress(Exception):
                            self._run(_call("pg_advisory_unlock"), key=self._key("ask"))

    def live(self, worker: str) -> None:
        self._patiently("pg_advisory_lock", self._key(worker))
        self.workers.add(worker)
        self._keep_renewing()

    def renew(self) -> None:
        if self.guard.acquire(blocking=False):  # else a statement is under way, and its connection is seen to
            try:
                self._run("SELECT 1")
            finally:
                self.guard.release()

    def _held(self, worker: str) -> bool:
        if worker in self.workers:
            return True
        if not self._patiently("pg_try_advisory_lock", self._key(worker)):
            return True
        self._patiently("pg_advisory_unlock", self._key(worker))
        return False

    def stamp(self) -> dict[str, Any]:
        clock = "SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
        return {"at": float(self.storage._asked(lambda: self._run(clock)))}

    def age(self, stamp: Mapping[str, Any]) -> float:
        return float(self.stamp()["at"]) - float(stamp["at"])

    def close(self) -> None:
        self._stop_renewing()
        with self.guard:
            self.workers.clear()
            self._drop()


def _call(function: str) -> str:
    return f"SELECT {function}(CAST(:key AS bigint))"


def _transient(error: BaseException) -> bool:
    """Whether the same access may succeed later: the server, the connection or its resources are to blame."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy import exc

    cause = error.__cause__ if isinstance(error, StorageInternalError) else error
    if isinstance(cause, exc.DBAPIError):
        return bool(cause.connection_invalidated) or isinstance(cause, exc.OperationalError | exc.InterfaceError)
    return isinstance(cause, exc.TimeoutError | exc.PendingRollbackError | exc.ResourceClosedError)


def _driver() -> str:
    """The Python library for PostgreSQL that is here: SQLAlchemy's own guess changes with its version."""
    return "psycopg" if find_spec("psycopg2") is None and find_spec("psycopg") is not None else "psycopg2"


def _missing() -> MissingPartError:
    return MissingPartError('PostgreSQL needs psycopg2, which is not installed. Run: pip install "alebo[postgres]"')
