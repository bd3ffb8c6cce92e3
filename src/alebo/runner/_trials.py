"""The trials of a stored study: read, written once when asked and once when reported, taken over, mended."""

from __future__ import annotations

import copy
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._errors import AleboError, InputError, StateError, StudyError
from .._propose import as_run
from .._saving import ENQUEUED, check_noted, check_trial
from ..history import History, State, Trial
from ..optimizer import Optimizer
from ._claims import new_worker
from ._records import amended, amended_keys, check_owner, constraints_of, read_record, record_of, shown, trial_of
from ._spool import Key, Spool, named
from ._stop import Stop
from ._storage import Outcome, connect, whole
from ._waiting import WAITING, begun_by, waits

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

log = logging.getLogger(__name__)

ATTEMPTS = 10  # a trial that so many workers died of is given up


class StoredTrials:
    """What a Study keeps in its storage. The verbs of `Study` are made of these; none of them waits for a person."""

    def __init__(self, where: str | os.PathLike[str], name: str, *, must_exist: bool) -> None:
        self._storage = connect(where, name, must_exist=must_exist)
        self.where = self._storage.where  # what may be shown
        self.name = name
        self.worker = new_worker()
        self._living = False
        self._handed: set[int] = set()  # trials claimed by this object and not finished yet
        self._in_hand: dict[Key, dict[str, Any]] = {}  # outcomes that are being written
        self._spool = Spool(os.fspath(where), name)
        self.while_away = self._storage.patience.meanwhile  # called before every pause while the storage is away
        self.while_away.append(self.rescue)
        self.while_asking: Callable[[], AbstractContextManager[None]] = nullcontext  # around a method's computation
        self._done: dict[int, Trial] = {}
        self._opt: Optimizer
        self._first_budget: int | None = None

    def obey(self, stop: Stop | None) -> None:
        """Have this object's pauses and computations end when a signal says so; None: not any more."""
        self.while_asking = nullcontext if stop is None else stop.after
        self._storage.claims.waiting = nullcontext if stop is None else stop.at_once
        self._storage.patience.check = None if stop is None else stop.check

    # -- reading -----------------------------------------------------------------------------------------------------

    def _budget(self, attributes: Mapping[str, Any]) -> int | None:
        stored = attributes.get("budget", self._first_budget)
        return None if stored is None else int(stored)

    def _refreshed(self, trials: list[FrozenTrial] | None = None) -> Optimizer:
        """The one Optimizer of this study, with the history that is stored now (or with these trials)."""
        attributes = self._storage.attributes()  # first: what they say is about trials that are there
        stored = self._storage.trials() if trials is None else trials
        with whole(self.where):
            known = [self._read(t) for t in stored]
            for number, record in amended(attributes).items():
                if number < len(known):
                    known[number] = self._fitting(read_record(record), number)
            sources = self._opt.history.sources
            self._opt.history = History(tuple(known), self._budget(attributes), sources)
            self._opt.queue = tuple(attributes.get("queue", ()))  # a trial's note says which of them it is
        return self._opt

    def _read(self, frozen: FrozenTrial) -> Trial:
        number = frozen.number
        if number not in self._done:
            with whole(self.where):
                trial = self._fitting(trial_of(frozen, self._opt.space, self._opt.goals), number)
                check_owner(frozen.user_attrs.get("owner", {}))
            if trial.state is State.PENDING or not frozen.state.is_finished():
                return trial
            self._done[number] = trial
        return self._done[number]

    def _fitting(self, trial: Trial, number: int) -> Trial:
        """This trial, checked: one that another program changed may not fit the study. Of a failed one only its note is read."""
        if trial.state is State.FAILED:
            check_noted(number, trial, self._opt.space, self._opt.method)
        else:
            check_trial(number, trial, self._opt.space, self._opt.goals, self._opt.method)
        return trial

    # -- writing: a trial once when it is asked, its outcome once when it is reported --------------------------------

    def hold(self, trial: int | Trial, outcomes: Any, params: Mapping[str, Any] | None = None) -> None:
        """Have this outcome in hand: if the storage is away before it is written, it is kept in a local file."""
        number = trial.number if isinstance(trial, Trial) else trial
        known = self._opt.history
        if isinstance(number, int) and 0 <= number < len(known) and number not in self._in_hand:
            read = self._opt.goals.read(outcomes)
            run = as_run(self._opt.space, known[number], params)
            self._in_hand[number] = record_of(replace(run, outcomes=read, state=State.COMPLETE))

    def _correct(self, trial: Trial) -> Trial:
        """Write a corrected trial; in a file twice, as all that matters."""
        for key in amended_keys(trial.number, twice=self._storage.twice):
            self._storage.set_attribute(key, record_of(trial))
        return trial

    def _propose(self, opt: Optimizer, q: int, *, owner: str | None, begun: int | None = None) -> list[Trial]:
        """Ask the method and write its trials; where another process was quicker, ask again with what it wrote.

        After the first `begun` of them the others are written as waiting (None: all begin).
        """
        written: list[Trial] = []
        while True:
            with self.while_asking():
                proposed = opt.ask(q - len(written))
            for trial in proposed:
                if not self._add(trial, owner, waiting=begun is not None and len(written) >= begun):
                    break
                written.append(trial)
            if len(written) == q:
                return written
            opt = self._refreshed()
            if owner is not None and opt.budget is not None:  # a worker takes what is left; a person gets an error
                q = min(q, len(written) + max(0, opt.budget - opt.asked))
                if len(written) == q:
                    return written

    def _add(self, trial: Trial, owner: str | None, token: str = "", *, waiting: bool = False) -> bool:
        """Write a new trial in one piece, as pending; False if its number is taken."""
        from optuna.trial import TrialState, create_trial

        record = record_of(replace(trial, state=State.PENDING, outcomes={}))
        coordinates, distributions = shown(trial, self._opt.space, self._storage.attributes().get("shown", ()))
        stamp = self._storage.claims.stamp() if owner is None else {"at": time.time()}
        attrs: dict[str, Any] = {"params": record.pop("params"), "trial": record}
        attrs["owner"] = {"worker": owner, "attempt": 1, "token": token or secrets.token_hex(6), **stamp}
        if waiting:
            attrs["owner"][WAITING] = True
        template = create_trial(
            state=TrialState.RUNNING, params=coordinates, distributions=distributions, user_attrs=attrs
        )
        template.number = trial.number
        return self._storage.add(template)

    def _tell_point(self, params: Mapping[str, Any], outcomes: Any) -> Trial:
        """Write the outcome of a point that was never asked."""
        done, token = copy.copy(self._opt).tell(params, outcomes), secrets.token_hex(6)  # refused before any access
        key = f"point-{token}"
        self._in_hand[key] = {**record_of(done), "token": token}
        with self._until_written(key):
            return self._write_point(done, token)

    def _write_point(self, done: Trial, token: str) -> Trial:
        """Add this point and finish it, once: another process may have found it in the spool, too."""
        with self._storage.claims.asking():
            while True:
                there = [t for t in self._storage.trials() if (t.user_attrs.get("owner") or {}).get("token") == token]
                if there:
                    done = replace(done, number=there[0].number)
                    break
                done = replace(done, number=len(self._refreshed().history))
                if self._add(done, owner=None, token=token):
                    break
            if self._storage.finish(done.number, self._outcome(done)):
                return done
            stored = self._refreshed().history[done.number]
            if record_of(stored)["outcomes"] != record_of(done)["outcomes"]:
                raise self._finished_by_another(done.number)
            return stored

    def _finish(self, trial: Trial) -> Trial:
        """Write what finishes a trial, unless somebody has finished it."""
        if not self._storage.finish(trial.number, self._outcome(trial)):
            ours = self._on_our_behalf(trial.number)
            if ours is not None:
                return ours
            raise self._finished_by_another(trial.number)
        return trial

    @staticmethod
    def _finished_by_another(number: int) -> StateError:
        return StateError(
            f"A trial is reported once; another worker has finished trial {number}. Its outcome stands, and yours is not "
            "written."
        )

    def _on_our_behalf(self, number: int) -> Trial | None:
        """The trial, if another process has found our outcome in the spool and written it for us."""
        record = self._in_hand.get(number)
        if record is None or not self._spool.has(number):
            return None
        stored = self._refreshed().history[number]
        return stored if stored.complete and record_of(stored)["outcomes"] == record["outcomes"] else None

    def _outcome(self, trial: Trial) -> Outcome:
        if not trial.complete:
            return Outcome(False, attributes={"reason": trial.reason or "given up"})
        record = record_of(trial)
        attributes = {"outcomes": record["outcomes"]}
        if self._storage.twice or trial.earlier:  # settings that were really run stand only here
            # what `decode` gives again is left out; a point from elsewhere may not be exactly on the grid of decode
            same = trial.asked and ENQUEUED not in trial.note and not trial.earlier
            attributes["told"] = {k: v for k, v in record.items() if k != "params" or not same}
        values = [trial.outcomes[g.outcome].mean for g in self._opt.goals.objectives]
        return Outcome(True, values, attributes, constraints_of(trial, self._opt.goals))

    @contextmanager
    def _until_written(self, trial: Key | Trial) -> Iterator[None]:
        """Inside, a trial is finished; an outcome that cannot be written stays in a local file, and nowhere else."""
        number = trial.number if isinstance(trial, Trial) else trial
        try:
            yield
        except StudyError as error:
            self.rescue()
            record = self._in_hand.pop(number, None)
            path = None if record is None else self._spool.keep(number, record)
            if path is None:
                raise StudyError(
                    f"{error} What you reported of {named(number)} is not stored: report it again."
                ) from None
            raise StudyError(
                f"{error} The outcome of {named(number)} is kept in {path}, and is written when this study is opened "
                "again on this machine."
            ) from None
        except AleboError:  # refused: there is nothing to keep
            self._written(number)
            raise
        except BaseException:  # stopped in the middle
            self.rescue()
            raise
        self._written(number)

    def _written(self, number: Key) -> None:
        self._in_hand.pop(number, None)
        self._spool.drop(number)
        if isinstance(number, int):
            self._handed.discard(number)

    def rescue(self) -> None:
        """The storage is away: keep what is in hand in local files."""
        for number, record in list(self._in_hand.items()):
            self._spool.keep(number, record)

    def begin(self, trial: Trial) -> bool:
        """Begin a trial that was claimed ahead; False if it is not ours any more."""
        owner = self._storage.trials()[trial.number].user_attrs.get("owner") or {}
        ours = owner.get("worker") == self.worker and WAITING in owner
        return ours and self._storage.swap_owner(trial.number, owner, begun_by(owner))

    def prepared(self) -> list[int]:
        """The numbers of the pending trials that nobody has begun: prepared by a worker for when it is free."""
        return [t.number for t in self._storage.trials() if waits(t) and self._read(t).state is State.PENDING]

    def _take_over(
        self, trials: list[FrozenTrial], q: int, stale_after: float | None, begun: int | None = None
    ) -> tuple[list[Trial], bool]:
        """Up to `q` trials whose worker is gone, now ours, and whether others were given up."""
        claims, given_up = self._storage.claims, False
        taken: list[Trial] = []
        for frozen in trials:
            if len(taken) == q:
                break
            owner = frozen.user_attrs.get("owner")
            trial = self._read(frozen)
            if owner is None or trial.state is not State.PENDING:
                continue
            if owner["worker"] is None:
                if stale_after is None or claims.age(owner) <= stale_after:
                    continue
            elif not owner.get("released") and claims.alive(owner["worker"]):
                continue
            if int(owner["attempt"]) >= ATTEMPTS:
                reason = f"its worker died or left it {owner['attempt']} times"
                with suppress(StateError):
                    self._finish(replace(trial, state=State.FAILED, reason=reason))
                given_up = True
                continue
            tried = int(owner["attempt"]) + (not owner.get(WAITING))
            again: dict[str, Any] = {"worker": self.worker, "attempt": tried, "at": time.time()}
            if begun is not None and len(taken) >= begun:
                again[WAITING] = True
            if self._storage.swap_owner(trial.number, owner, again):
                log.info("Trial %d is taken over from %s.", trial.number, owner["worker"])
                taken.append(trial)
        return taken, given_up

    def _release(self) -> None:
        """Give back what was claimed and not finished."""
        for frozen in self._storage.trials():
            owner = frozen.user_attrs.get("owner") or {}
            if frozen.number in self._handed and owner.get("worker") == self.worker:
                self._storage.swap_owner(frozen.number, owner, {**owner, "released": True})

    def _mend(self) -> None:
        """Finish what a killed process had half written, and write what was kept while the storage was away."""
        for frozen in self._storage.trials():
            if frozen.state.is_finished():
                continue
            trial = self._read(frozen)
            worker = frozen.user_attrs.get("owner", {}).get("worker")
            if worker is not None and self._storage.claims.alive(worker):
                continue  # it is being written right now
            damaged = not frozen.user_attrs
            if trial.complete or (trial.state is State.FAILED and ("reason" in frozen.user_attrs or damaged)):
                with suppress(StateError):
                    self._finish(trial)
        for path, record in self._spool.found():
            with suppress(StateError):
                if not self._write_kept(record):
                    log.warning("%s is of another study of that name, and is left alone.", path)
                    continue
            self._spool.discard(path)

    def _write_kept(self, record: Mapping[str, Any]) -> bool:
        """Write an outcome that was kept while the storage was away; False if it is not of this study."""
        history, token = self._refreshed().history, record.get("token")
        try:
            kept = read_record(record)
            if isinstance(token, str):
                check_trial(kept.number, kept, self._opt.space, self._opt.goals, self._opt.method)
            else:
                asked = kept.earlier[0] if kept.earlier else kept
                if not 0 <= kept.number < len(history) or history[kept.number].x.tolist() != asked.x.tolist():
                    return False
        except (InputError, StudyError, KeyError, TypeError, ValueError):
            return False
        key: Key = f"point-{token}" if isinstance(token, str) else kept.number
        if isinstance(token, str):
            self._write_point(kept, token)
        elif history[kept.number].state is State.PENDING:
            self._finish(kept)
        else:
            return True
        log.warning("The outcome of %s, kept while the storage was away, has been written.", named(key))
        return True
