"""A study in a journal file: Optuna's journal as the reader, and appends that compare before they set."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optuna.distributions import distribution_to_json
from optuna.exceptions import DuplicatedStudyError
from optuna.storages import JournalStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from .._errors import StudyError
from ._claims import FileClaims, NoClaims, new_worker
from ._journal import Journal
from ._lines import CREATE_TRIAL, STATE, SYSTEM_ATTR, TRIAL_ATTR
from ._patience import Patience
from ._storage import Outcome, Storage, whole

if TYPE_CHECKING:
    from collections.abc import Mapping


class FileStorage(Storage):
    """One journal file, for any number of processes of one machine."""

    twice = True  # a file can be damaged in one line

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self.patience = Patience(self.where)
        if path.exists() and path.stat().st_size and not _is_journal(path):
            raise StudyError(
                f"A study file is a journal that alebo or Optuna wrote; {path} is something else. Choose another path."
            )
        self.read_only = path.exists() and not _writable(path)
        claims = NoClaims(self.where) if self.read_only else FileClaims(path)
        self.claims = claims
        try:
            if not self.read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
            with whole(self.where):
                self._journal = Journal(path, claims)
                self._optuna = JournalStorage(self._journal)
        except OSError as error:
            raise StudyError(f"A study file must be writable; {path} is not ({error}). Check its folder.") from None
        self._study = -1
        self._writer = new_worker()

    def names(self) -> list[str]:
        with whole(self.where):
            return [s.study_name for s in self._optuna.get_all_studies()]

    def select(self, name: str) -> bool:
        try:
            self._study = self._optuna.get_study_id_from_name(name)
        except KeyError:
            return False
        return True

    def create(self, name: str, directions: Sequence[int]) -> None:
        with suppress(DuplicatedStudyError):
            self._optuna.create_new_study([StudyDirection(d) for d in directions], study_name=name)
        self.select(name)

    def attributes(self) -> dict[str, Any]:
        with whole(self.where):
            return dict(self._optuna.get_study_user_attrs(self._study))

    def set_attribute(self, key: str, value: Any) -> None:
        self._optuna.set_study_user_attr(self._study, key, value)

    def trials(self) -> list[FrozenTrial]:
        with whole(self.where):
            return self._optuna.get_all_trials(self._study, deepcopy=False)

    def add(self, trial: FrozenTrial) -> bool:
        record = {
            "study_id": self._study,
            "datetime_start": _now(),
            "state": int(TrialState.RUNNING),
            "value": None,
            "values": None,
            "distributions": {k: distribution_to_json(d) for k, d in trial.distributions.items()},
            "params": {k: trial.distributions[k].to_internal_repr(v) for k, v in trial.params.items()},
            "user_attrs": trial.user_attrs,
            "system_attrs": trial.system_attrs,
            "intermediate_values": {},
        }
        with self._journal.alone():
            if len(self.trials()) != trial.number:
                return False
            self._append([(CREATE_TRIAL, record)])
        return True

    def swap_owner(self, number: int, old: Any, new: Any) -> bool:
        with self._journal.alone():
            trial = self.trials()[number]
            if trial.state.is_finished() or trial.user_attrs.get("owner") != old:
                return False
            self._append([(TRIAL_ATTR, {"trial_id": trial._trial_id, "user_attr": {"owner": new}})])
        return True

    def finish(self, number: int, outcome: Outcome) -> bool:
        with self._journal.alone():
            trial = self.trials()[number]
            if trial.state.is_finished():
                return False
            which = {"trial_id": trial._trial_id}
            records: list[tuple[int, Mapping[str, Any]]] = [
                (TRIAL_ATTR, {**which, "user_attr": {key: value}}) for key, value in outcome.attributes.items()
            ]
            records += [
                (SYSTEM_ATTR, {**which, "system_attr": {f"constraints:{key}": value}})
                for key, value in outcome.constraints.items()
            ]
            state = TrialState.COMPLETE if outcome.complete else TrialState.FAIL
            values = [float(v) for v in outcome.values] or None
            records.append((STATE, {**which, "state": int(state), "values": values, "datetime_complete": _now()}))
            self._append(records)
        return True

    def _append(self, records: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
        self._journal.append_logs([{"op_code": code, "worker_id": self._writer, **rest} for code, rest in records])


def _now() -> str:
    return datetime.now(tz=UTC).isoformat(timespec="microseconds")


def _writable(path: Path) -> bool:
    """Whether this file can be written, and neighbours (its lock) made beside it."""
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError:
        return False
    return os.access(path.parent, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)


def _is_journal(path: Path) -> bool:
    """Whether one of the first lines is a journal's; the very first may be damaged."""
    with open(path, "rb") as file:
        return any(b'"op_code"' in line for _, line in zip(range(64), file, strict=False))
