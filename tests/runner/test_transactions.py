"""What a database does for a study, without a server: the same transactions on SQLite, and answers made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("optuna")

from optuna.study import StudyDirection
from optuna.trial import TrialState, create_trial

from alebo.runner import _postgres
from alebo.runner._patience import Patience
from alebo.runner._postgres import PostgresClaims, PostgresStorage, _storage_class, _Taken
from alebo.runner._storage import Outcome


def waiting_trial(number: int, owner: Any) -> Any:
    made = create_trial(state=TrialState.RUNNING, user_attrs={"owner": owner})
    made.number = number
    return made


@pytest.fixture
def backend() -> Any:
    made = _storage_class()("sqlite://")
    made.study = made.create_new_study([StudyDirection.MINIMIZE], study_name="s")
    return made


def test_a_number_is_given_once(backend: Any) -> None:
    for number in (0, 1):
        backend.create_new_trial(backend.study, waiting_trial(number, {"worker": "a"}))
    for taken in (1, 0, 3):
        with pytest.raises(_Taken):
            backend.create_new_trial(backend.study, waiting_trial(taken, {"worker": "b"}))
    assert [t.user_attrs["owner"]["worker"] for t in backend.get_all_trials(backend.study)] == ["a", "a"]


def test_an_owner_is_swapped_only_where_it_is_the_one_that_was_seen(backend: Any) -> None:
    mine, yours = {"worker": "a", "attempt": 1}, {"worker": "b", "attempt": 2}
    which = backend.create_new_trial(backend.study, waiting_trial(0, mine))
    assert backend.swap_owner(which, yours, yours) is False
    assert backend.swap_owner(which, mine, yours) is True
    assert backend.get_trial(which).user_attrs["owner"] == yours
    assert backend.swap_owner(which, mine, yours) is False
    bare = create_trial(state=TrialState.RUNNING)
    bare.number = 1
    unowned = backend.create_new_trial(backend.study, bare)
    assert backend.swap_owner(unowned, mine, yours) is False
    assert backend.swap_owner(unowned, None, yours) is True
    assert backend.finish(which, Outcome(True, [1.0])) is True
    assert backend.swap_owner(which, yours, mine) is False  # finished
    assert backend.get_trial(which).user_attrs["owner"] == yours


def test_a_trial_is_finished_once_and_whole(backend: Any) -> None:
    which = [backend.create_new_trial(backend.study, waiting_trial(k, {"worker": "a"})) for k in (0, 1)]
    first = Outcome(True, [2.5], {"outcomes": {"v": [2.5, None]}, "told": 1}, {"mass <= 2": -0.5})
    assert backend.finish(which[0], first) is True
    assert backend.finish(which[0], Outcome(True, [9.0], {"outcomes": 9})) is False
    done = backend.get_trial(which[0])
    assert (done.state, done.values, done.datetime_complete is not None) == (TrialState.COMPLETE, [2.5], True)
    assert done.user_attrs == {"owner": {"worker": "a"}, "outcomes": {"v": [2.5, None]}, "told": 1}
    assert done.system_attrs == {"constraints:mass <= 2": -0.5}
    assert backend.finish(which[1], Outcome(False, attributes={"reason": "no"})) is True
    assert backend.get_trial(which[1]).state is TrialState.FAIL


def test_a_transaction_that_breaks_writes_nothing(backend: Any) -> None:
    which = backend.create_new_trial(backend.study, waiting_trial(0, {"worker": "a"}))
    with pytest.raises((TypeError, ValueError)):
        backend.finish(which, Outcome(True, ["no number"], {"outcomes": 1}))  # type: ignore[list-item]
    there = backend.get_trial(which)
    assert (there.state, there.user_attrs) == (TrialState.RUNNING, {"owner": {"worker": "a"}})


# -- answers made by hand ----------------------------------------------------------------------------------------------------------


def storage(optuna: Any = None, backend: Any = None) -> PostgresStorage:
    made = object.__new__(PostgresStorage)
    made.where, made._url, made._study, made.patience = "here", "postgresql://db/s", 7, Patience("here", seconds=1.0)
    made._optuna, made._backend, made.claims = optuna, backend, SimpleNamespace(interrupted=lambda: None)  # type: ignore[assignment]
    return made


def test_a_number_that_is_taken_may_be_taken_by_us() -> None:
    """The server may have written a trial and gone away before it could say so."""
    there: list[Any] = []

    def refuse(study: int, trial: Any) -> None:
        raise _Taken

    made = storage(SimpleNamespace(create_new_trial=refuse, get_all_trials=lambda study, deepcopy: there))
    ours = waiting_trial(1, {"worker": "me", "token": "x"})
    assert made.add(ours) is False  # fewer trials than the number says: it is not the next one
    there.append(waiting_trial(0, {"worker": "me", "token": "x"}))
    assert made.add(ours) is False
    there.append(waiting_trial(1, {"worker": "other", "token": "y"}))
    assert made.add(ours) is False
    there[1] = waiting_trial(1, {"worker": "me", "token": "x"})
    assert made.add(ours) is True
    made = storage(SimpleNamespace(create_new_trial=lambda study, trial: 5))
    assert made.add(ours) is True


def test_an_owner_that_was_swapped_before_the_answer_came_is_ours() -> None:
    owner = {"worker": "other"}
    optuna = SimpleNamespace(
        get_trial_id_from_study_id_trial_number=lambda study, number: 100 * study + number,
        get_trial=lambda which: SimpleNamespace(user_attrs={"owner": owner} if which == 703 else {}),
    )
    asked: list[Any] = []

    def swap(*given: Any) -> bool:
        asked.append(given)
        return False

    made = storage(optuna, SimpleNamespace(swap_owner=swap))
    assert made.swap_owner(3, "old", {"worker": "me"}) is False
    assert made.swap_owner(3, "old", {"worker": "other"}) is True
    assert asked == [(703, "old", {"worker": "me"}), (703, "old", {"worker": "other"})]


@pytest.mark.parametrize(("lost", "stored", "ends"), [(0, 1, False), (1, 1, True), (1, 2, False)])
def test_an_outcome_that_was_written_before_the_answer_came_is_ours(
    lost: int, stored: int, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer may get lost; then the second try finds the trial finished, with our outcome or another's."""
    tries: list[Any] = []

    def finish(which: int, outcome: Outcome) -> bool:
        tries.append(which)
        if len(tries) <= lost:
            raise ConnectionError("cut")
        return False

    monkeypatch.setattr(_postgres, "_transient", lambda error: isinstance(error, ConnectionError))
    monkeypatch.setattr("alebo.runner._patience.time.sleep", lambda seconds: None)
    optuna = SimpleNamespace(get_trial_id_from_study_id_trial_number=lambda study, number: number)
    backend = SimpleNamespace(finish=finish, get_trial=lambda which: SimpleNamespace(user_attrs={"outcomes": stored}))
    made = storage(optuna, backend)
    assert made.finish(4, Outcome(True, [1.0], {"outcomes": 1})) is ends
    assert tries == [4] * (1 + lost)


def test_what_is_worth_another_try() -> None:
    from optuna.exceptions import StorageInternalError
    from sqlalchemy import exc

    def wrapped(error: Exception) -> StorageInternalError:
        made = StorageInternalError("x")
        made.__cause__ = error
        return made

    cut = exc.ProgrammingError("s", None, Exception("x"), connection_invalidated=True)
    for error in (
        exc.OperationalError("s", None, Exception("x")),
        exc.InterfaceError("s", None, Exception("x")),
        exc.TimeoutError(),
        exc.ResourceClosedError(),
        cut,
    ):
        assert _postgres._transient(error) is True
        assert _postgres._transient(wrapped(error)) is True
    for error in (ValueError(), exc.ProgrammingError("s", None, Exception("x")), exc.ArgumentError()):
        assert _postgres._transient(error) is False
        assert _postgres._transient(wrapped(error)) is False


def test_claims_of_a_database_ask_the_server_only_of_others() -> None:
    said: list[str] = []
    answers = {"pg_try_advisory_lock": True}

    def run(function: str, key: int) -> bool:
        said.append(function)
        return answers.get(function, True)

    claims = PostgresClaims(None, "s", None)  # type: ignore[arg-type]
    claims._patiently = run  # type: ignore[method-assign]
    claims.workers.add("me")
    assert claims._held("me") is True
    assert said == []
    assert claims._held("other") is False  # we got its lock, and gave it back
    assert said == ["pg_try_advisory_lock", "pg_advisory_unlock"]
    answers["pg_try_advisory_lock"] = False
    assert claims._held("other") is True
    assert said[2:] == ["pg_try_advisory_lock"]
    claims.stamp = lambda: {"at": 107.5}  # type: ignore[method-assign]
    assert claims.age({"at": 100.0}) == 7.5
    keys = {claims._key("a"), claims._key("b"), PostgresClaims(None, "t", None)._key("a")}  # type: ignore[arg-type]
    assert len(keys) == 3


def test_a_connection_notices_a_dead_server_and_one_process_makes_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """After half a minute of silence three probes, ten seconds apart, from either end; the tables are made under a lock."""
    import sqlalchemy

    did: list[Any] = []

    class Engine:
        def connect(self) -> Any:
            return self

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: Any) -> None:
            did.append("released")

        def execute(self, statement: Any, values: Any) -> None:
            did.append((str(statement), values))

        def dispose(self) -> None:
            did.append("disposed")

    def create(url: str, **settings: Any) -> Engine:
        did.append((url, settings))
        return Engine()

    def tables(url: str, engine_kwargs: Any) -> str:
        did.append((url, engine_kwargs))
        return "made"

    monkeypatch.setattr(sqlalchemy, "create_engine", create)
    monkeypatch.setattr(_postgres, "_storage_class", lambda: tables)
    assert storage()._open() == "made"
    probes = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
    server = "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"
    settings = {"pool_pre_ping": True, "connect_args": {**probes, "connect_timeout": 10, "options": server}}
    lock = ("SELECT pg_advisory_xact_lock(CAST(:key AS bigint))", {"key": _postgres.number_of("alebo/tables")})
    place = "postgresql://db/s"
    assert did == [(place, settings), lock, (place, settings), "released", "disposed"]


@pytest.mark.parametrize(("reason", "tries"), [("connection refused", 18), ("password is wrong", 1)])
def test_a_server_that_refuses_is_tried_for_five_seconds(
    monkeypatch: pytest.MonkeyPatch, reason: str, tries: int
) -> None:
    import sqlalchemy
    from sqlalchemy import exc

    now, asked = [100.0], []

    def create(url: str, **settings: Any) -> None:
        asked.append(now[0])
        raise exc.OperationalError("s", None, Exception(reason))

    monkeypatch.setattr(sqlalchemy, "create_engine", create)
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s))
    monkeypatch.setattr(_postgres, "time", clock)
    with pytest.raises(_postgres.StudyError, match=f"must be reachable; here is not: .*{reason}"):
        storage()._open()
    assert len(asked) == tries  # every 0.3 s
