"""A study on disk or in a database: the optimizer's history, written as it happens, shared by all who open it."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._errors import InputError, StateError, StudyError
from ..goals import Goal, Goals, Minimize
from ..history import History, State, Trial
from ..methods import Method, default_method
from ..optimizer import Optimizer
from ..space import Space
from ._records import FORMAT, compare, constraints_of, meta_of, plain, record_of, shown, trial_of
from ._storage import connect, is_url, redact, require_optuna

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

log = logging.getLogger(__name__)
T = TypeVar("T")

META = "alebo"
ATTEMPTS = 10  # a trial that so many workers died of is given up


class Study:
    """An Optimizer whose history is stored: `ask`, `tell` and `fail` as there, by any process, and nothing is lost.

    It is an Optuna study, too: the embedded coordinates are its parameters, and the full parameters one attribute of
    each trial, so that Optuna's dashboard opens it and stays quick at a thousand parameters.
    """

    def __init__(self, where: str | os.PathLike[str], name: str, *, must_exist: bool) -> None:
        self._url = os.fspath(where)
        self.where = redact(self._url)  # what may be shown
        self.name = name
        self.patience = 60.0  # seconds for which a database that went away is tried again
        self.worker = _new_worker()
        self._living = False
        self._storage, self._claims = connect(where, name, must_exist=must_exist)
        self._copies = not is_url(self._url)  # a file can be damaged in one line: what matters is written twice
        self._done: dict[int, Trial] = {}
        self.space: Space
        self.goals: Goals
        self.method: Method
        self.seed: int
        self._id: int

    @classmethod
    def create(
        cls,
        where: str | os.PathLike[str],
        space: Space,
        goals: Sequence[Goal] | Goal | Goals,
        *,
        method: Method | None = None,
        seed: int = 0,
        budget: int | None = None,
        name: str = "alebo",
    ) -> Study:
        """A new study at this path or PostgreSQL URL; or the one that is there, if it has the same settings.

        >>> import alebo, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "study.log"
        >>> space = alebo.Space.from_bounds([(0, 1)] * 10)
        >>> study = alebo.Study.create(path, space, alebo.Minimize("loss"), method=alebo.methods.Sobol(), budget=5)
        >>> trial = study.ask()[0]
        >>> study.tell(trial.number, 0.3).state
        <State.COMPLETE: 'complete'>
        >>> len(alebo.Study.open(path).history.complete)
        1
        """
        require_optuna()
        from optuna.exceptions import DuplicatedStudyError
        from optuna.study import StudyDirection

        opt = Optimizer(space, goals, method=default_method() if method is None else method, seed=seed, budget=budget)
        directions = [
            StudyDirection.MINIMIZE if isinstance(g, Minimize) else StudyDirection.MAXIMIZE
            for g in opt.goals.objectives
        ]
        meta = meta_of(opt, name, [int(d) for d in directions])
        study = cls(where, name, must_exist=False)
        with study._claims.asking():
            try:
                study._id = study._storage.create_new_study(directions, study_name=name)
            except DuplicatedStudyError:
                study._id = study._storage.get_study_id_from_name(name)
            stored = study._stored_meta()
            if stored is None:
                if study._storage.get_all_trials(study._id, deepcopy=False):
                    raise StudyError(
                        f"A study of alebo is created by alebo; {study.where} has a study {name!r} with trials of "
                        "another "
                        "program. Choose another name, or use the EmbeddingSampler for it."
                    )
                study._storage.set_study_user_attr(study._id, META, meta)
                if study._copies:
                    study._storage.set_study_user_attr(study._id, META + ":copy", meta)
            else:
                compare(study.where, stored, meta)
            study._load(stored or meta, opt.method)
            if budget is not None and study.budget != budget:
                study.set_budget(budget)
        return study

    @classmethod
    def open(cls, where: str | os.PathLike[str], *, name: str = "alebo", method: Method | None = None) -> Study:
        """The study that is there. `method` is needed only where its settings are not plain data (a function, say)."""
        study = cls(where, name, must_exist=True)
        try:
            study._id = study._storage.get_study_id_from_name(name)
        except KeyError:
            known = ", ".join(repr(s.study_name) for s in study._storage.get_all_studies()) or "none"
            raise StudyError(
                f"A study must exist to be opened; {study.where} has no study {name!r}. It has: {known}."
            ) from None
        meta = study._stored_meta()
        if meta is None:
            raise StudyError(
                f"A study of alebo says what it is; {name!r} in {study.where} does not, so another program made it. "
                "Use the EmbeddingSampler with it."
            )
        study._load(meta, method)
        return study

    def _stored_meta(self) -> dict[str, Any] | None:
        attrs = self._storage.get_study_user_attrs(self._id)
        found = attrs.get(META, attrs.get(META + ":copy"))
        return dict(found) if found is not None else None

    def _load(self, meta: Mapping[str, Any], method: Method | None) -> None:
        from .. import __version__

        if meta.get("format") != FORMAT or str(meta.get("alebo")).split(".")[:2] != __version__.split(".")[:2]:
            raise StudyError(
                f"A study is continued by the version that began it; {self.where} is of alebo {meta.get('alebo')} "
                "(format "
                f"{meta.get('format')}), and this is {__version__} (format {FORMAT}). Run: pip install "
                f"alebo=={meta.get('alebo')}"
            )
        if method is None and "unstored" in meta["method"]:
            raise StudyError(
                f"The method {meta['method']['name']!r} of {self.where} has settings that are no plain data "
                f"({', '.join(meta['method']['unstored'])}). Pass it again: Study.open(..., method=...)."
            )
        opt = Optimizer.from_dict({**meta, "trials": []}, method=method)
        self.space, self.goals, self.method, self.seed = opt.space, opt.goals, opt.method, opt.seed
        self._first_budget = opt.budget
        self._mend()

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def budget(self) -> int | None:
        """How many evaluations may be made in all."""
        stored = self._storage.get_study_user_attrs(self._id).get("budget", self._first_budget)
        return None if stored is None else int(stored)

    def set_budget(self, budget: int) -> None:
        """Allow so many evaluations in all: more, to go on after the end."""
        if int(budget) != budget or budget < 1:
            raise InputError(f"`budget >= 1` must hold; got {budget}. Say how many evaluations you can afford.")
        self._storage.set_study_user_attr(self._id, "budget", int(budget))

    @property
    def history(self) -> History:
        """Everything asked and told so far, by whomever."""
        return History(tuple(self._read(t) for t in self._frozen()), self.budget)

    def optimizer(self, _frozen: list[FrozenTrial] | None = None) -> Optimizer:
        """An Optimizer with the stored history. Tell the study, not it: what it is told is not written."""
        opt = Optimizer(self.space, self.goals, method=self.method, seed=self.seed)
        frozen = self._frozen() if _frozen is None else _frozen
        opt.history = History(tuple(self._read(t) for t in frozen), self.budget)
        opt.queue = self._queue()
        return opt

    def best(self) -> Trial:
        """As Optimizer.best."""
        return self.optimizer().best()

    def front(self) -> list[Trial]:
        """As Optimizer.front."""
        return self.optimizer().front()

    def hypervolumes(self, reference: Sequence[float] | None = None) -> NDArray[np.float64]:
        """As Optimizer.hypervolumes."""
        return self.optimizer().hypervolumes(reference)

    def __repr__(self) -> str:
        h = self.history
        counts = f"{len(h.complete)} complete, {len(h.pending)} pending, {len(h.failed)} failed"
        return f"Study({self.where!r}, {self.name!r}: {counts})"

    def _frozen(self) -> list[FrozenTrial]:
        return self._storage.get_all_trials(self._id, deepcopy=False)

    def _read(self, frozen: FrozenTrial) -> Trial:
        number = frozen.number
        if number not in self._done:
            trial = trial_of(frozen, self.space, self.goals)
            if trial.state is State.PENDING or not frozen.state.is_finished():
                return trial
            self._done[number] = trial
        return self._done[number]

    # -- asking and telling -------------------------------------------------------------------------------------------

    def _queue(self) -> tuple[dict[str, Any], ...]:
        """Every point that was ever queued; a trial's note says which of them it is."""
        return tuple(self._storage.get_study_user_attrs(self._id).get("queue", ()))

    def enqueue(self, params: Mapping[str, Any]) -> None:
        """Queue a point to be the next one asked, by whomever, as Optimizer.enqueue."""
        with self._claims.asking():
            point = plain(self.space.canonical(params))
            self._storage.set_study_user_attr(self._id, "queue", [*self._queue(), point])

    def ask(self, q: int = 1) -> list[Trial]:
        """The next `q` trials, as Optimizer.ask. They are pending until somebody tells or fails them."""
        with self._claims.asking():
            opt = self.optimizer()
            return [self._write_new(t, owner=None) for t in opt.ask(q)]

    def claim(self, q: int = 1, *, stale_after: float | None = None) -> list[Trial]:
        """Up to `q` trials for this process to evaluate: those whose worker died, then new ones within the budget.

        A trial taken over keeps its number and parameters, so a run that was killed goes on as if it had not been. With
        `stale_after`, any pending trial older than so many seconds is taken over, too.
        """
        if not self._living:
            self._claims.live(self.worker)
            self._living = True
        with self._claims.asking():
            frozen = self._frozen()
            taken, given_up = self._take_over(frozen, q, stale_after)
            if given_up:
                frozen = self._frozen()
            opt = self.optimizer(frozen)
            more = q - len(taken)
            if opt.budget is not None:
                more = min(more, opt.budget - opt.asked)
            if more > 0:
                taken += [self._write_new(t, owner=self.worker) for t in opt.ask(more)]
        return taken

    def waiting(self) -> bool:
        """Whether other workers still evaluate: their trials may come back to us, should they die."""
        return any(
            self._read(t).state is State.PENDING and t.user_attrs.get("owner", {}).get("worker") is not None
            for t in self._frozen()
        )

    def tell(self, trial: int | Trial | Mapping[str, Any], outcomes: Any) -> Trial:
        """Record what an evaluation gave, as Optimizer.tell; a mapping of parameters is a point never asked."""
        if isinstance(trial, Mapping):
            with self._claims.asking():
                told = self.optimizer().tell(trial, outcomes)
                return self._write_new(told, owner=None)
        done = self.optimizer().tell(trial, outcomes)
        self._patiently(lambda: self._write_told(done))
        return done

    def fail(self, trial: int | Trial, reason: str | None = None) -> Trial:
        """Record that an evaluation crashed or was given up, as Optimizer.fail."""
        failed = self.optimizer().fail(trial, reason)
        self._patiently(lambda: self._write_failed(failed))
        return failed

    def close(self) -> None:
        """Let go: what this process had claimed can be taken over by others at once."""
        self._claims.close()
        self._living = False
        self.worker = (
            _new_worker()
        )  # should this object claim again, it is somebody else: what it left can be taken over

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- writing: a trial once when it is asked, its outcome once when it is told
    # ---------------------------------------

    def _write_new(self, trial: Trial, *, owner: str | None) -> Trial:
        """Create it in one piece; a point that comes with its outcome is told in a second step, as all are."""
        from optuna.trial import TrialState, create_trial

        record = record_of(replace(trial, state=State.PENDING, outcomes={}))
        coordinates, distributions = shown(trial, self.space)
        attrs: dict[str, Any] = {"params": record.pop("params"), "trial": record}
        attrs["owner"] = {"worker": owner, "at": time.time(), "attempt": 1}
        template = create_trial(
            state=TrialState.RUNNING, params=coordinates, distributions=distributions, user_attrs=attrs
        )
        number = self._storage.get_trial_number_from_id(self._storage.create_new_trial(self._id, template))
        trial = trial if number == trial.number else replace(trial, number=number)
        if trial.complete:
            self._write_told(trial)
        return trial

    def _trial_id(self, number: int) -> int:
        return self._storage.get_trial_id_from_study_id_trial_number(self._id, number)

    def _write_told(self, trial: Trial) -> None:
        from optuna.trial import TrialState

        which = self._trial_id(trial.number)
        record = record_of(trial)
        with self._unhurried():
            if self._copies:
                # what `decode` gives again is left out; a point from elsewhere may not be exactly on the grid of decode
                same = trial.asked and trial.params == self.space.decode(trial.x)
                copy = {k: v for k, v in record.items() if k != "params" or not same}
                self._storage.set_trial_user_attr(which, "told", copy)
            self._storage.set_trial_user_attr(which, "outcomes", record["outcomes"])
            for key, value in constraints_of(trial, self.goals).items():
                self._storage.set_trial_system_attr(which, f"constraints:{key}", value)
        values = [trial.outcomes[g.outcome].mean for g in self.goals.objectives]
        self._storage.set_trial_state_values(which, TrialState.COMPLETE, values)

    def _write_failed(self, trial: Trial) -> None:
        from optuna.trial import TrialState

        which = self._trial_id(trial.number)
        with self._unhurried():
            self._storage.set_trial_user_attr(which, "reason", trial.reason or "given up")
        self._storage.set_trial_state_values(which, TrialState.FAIL)

    def _unhurried(self) -> AbstractContextManager[None]:
        """Records that may wait for the one after them before they are forced to the disk."""
        backend = getattr(self._storage, "_backend", None)
        return backend.more_to_come() if self._copies and backend is not None else nullcontext()

    def _patiently(self, write: Callable[[], T]) -> T:
        """Write, and while a database is away, try again: an outcome may have cost a week."""
        from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError

        errors: tuple[type[Exception], ...] = (StorageInternalError,)
        if not self._copies:
            from sqlalchemy.exc import DBAPIError

            errors = (StorageInternalError, DBAPIError)
        until, pause = time.monotonic() + self.patience, 0.2
        while True:
            try:
                return write()
            except UpdateFinishedTrialError:
                raise StateError(
                    "A trial is told once; another worker has told this one. Its outcome stands, and yours is not "
                    "written."
                ) from None
            except errors:
                if time.monotonic() > until:
                    raise StudyError(
                        f"A study's database must be reachable; {self.where} has been away for {self.patience:.0f} "
                        "seconds. What "
                        "was written is safe: start it, and run the same command again."
                    ) from None
                log.warning("The database of %s does not answer; trying again in %.1f seconds.", self.where, pause)
                time.sleep(pause)
                pause = min(10.0, 2 * pause)

    def _take_over(self, all_trials: list[FrozenTrial], q: int, stale_after: float | None) -> tuple[list[Trial], int]:
        taken: list[Trial] = []
        given_up = 0
        for frozen in all_trials:
            if len(taken) == q:
                break
            owner = frozen.user_attrs.get("owner")
            trial = self._read(frozen)
            if owner is None or trial.state is not State.PENDING:
                continue
            dead = owner["worker"] is not None and not self._claims.alive(owner["worker"])
            age = time.time() - float(owner["at"])
            if not dead and (stale_after is None or age <= stale_after):
                continue
            if int(owner["attempt"]) >= ATTEMPTS:
                self._write_failed(replace(trial, reason=f"its worker died or left it {owner['attempt']} times"))
                given_up += 1
                continue
            log.info("Trial %d is taken over from %s.", trial.number, owner["worker"])
            again = {"worker": self.worker, "at": time.time(), "attempt": int(owner["attempt"]) + 1}
            self._storage.set_trial_user_attr(frozen._trial_id, "owner", again)
            taken.append(trial)
        return taken, given_up

    def _mend(self) -> None:
        """Finish what a killed process had half told."""
        for frozen in self._frozen():
            if frozen.state.is_finished():
                continue
            trial = self._read(frozen)
            worker = frozen.user_attrs.get("owner", {}).get("worker")
            if worker is not None and self._claims.alive(worker):
                continue  # it is being told right now
            try:
                if trial.complete:
                    self._write_told(trial)
                elif trial.state is State.FAILED and ("reason" in frozen.user_attrs or not frozen.user_attrs):
                    self._write_failed(trial)
            except Exception as error:  # another worker was quicker
                log.debug("Trial %d was finished by another worker: %s", trial.number, error)


def _new_worker() -> str:
    """A name that nobody else has."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(6)}"
