"""A study on disk or in a database: the optimizer's history, written as it happens, shared by all who open it."""

from __future__ import annotations

import copy
import logging
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._errors import AleboError, InputError, StateError, StudyError
from .._text import printable
from ..goals import Goal, Goals, Minimize
from ..history import History, State, Trial
from ..methods import Method, default_method
from ..optimizer import Optimizer
from ..space import Space
from ._claims import new_worker
from ._lines import META
from ._records import FORMAT, compare, constraints_of, meta_of, needs_method, plain, record_of, shown, trial_of
from ._spool import Spool
from ._storage import Outcome, connect, require_optuna

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

log = logging.getLogger(__name__)

AMENDED = "amended:"  # with its number: an attribute of the study that holds a corrected trial
ATTEMPTS = 10  # a trial that so many workers died of is given up


class Study:
    """An Optimizer whose history is stored: `ask`, `tell` and `fail` as there, by any process, and nothing is lost.

    It is an Optuna study, too: the embedded coordinates are its parameters, and the full parameters one attribute of
    each trial, so that Optuna's dashboard opens it and stays quick at a thousand parameters.

    While a database is away, every call waits for it (`patience` seconds at most). An outcome in hand is kept in a
    local file meanwhile.
    """

    def __init__(self, where: str | os.PathLike[str], name: str, *, must_exist: bool) -> None:
        self._storage = connect(where, name, must_exist=must_exist)
        self.where = self._storage.where  # what may be shown
        self.name = name
        self.worker = new_worker()
        self._living = False
        self._handed: set[int] = set()  # trials claimed by this object and not finished yet
        self._in_hand: dict[int, dict[str, Any]] = {}  # outcomes that are being written
        self._spool = Spool(os.fspath(where), name)
        self.while_away = self._storage.patience.meanwhile  # called before every pause while the storage is away
        self.while_away.append(self.rescue)
        self._done: dict[int, Trial] = {}
        self._opt: Optimizer

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

        Args:
            where: A path, or `postgresql://user:password@host/database`.
            space: The parameters.
            goals: What is minimised, maximised or bounded.
            method: How points are proposed; by default the default method.
            seed: The same seed and history give the same next point.
            budget: How many evaluations may be made in all; None: not known yet.
            name: A database holds several studies by name.

        Returns:
            The study, ready for `ask`, `tell` and `run`.

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
        opt = Optimizer(space, goals, method=default_method() if method is None else method, seed=seed, budget=budget)
        directions = [1 if isinstance(g, Minimize) else 2 for g in opt.goals.objectives]  # Optuna's numbers
        meta = meta_of(opt, name, directions)
        study = cls(where, name, must_exist=False)
        if not study._storage.select(name) or study._stored_meta() is None:
            with study._storage.claims.asking():
                study._begin(meta)
        stored = study._stored_meta() or meta
        compare(study.where, stored, meta)
        study._load(stored, opt.method)
        if budget is not None and study.budget != budget:
            study.set_budget(budget)
        return study

    @classmethod
    def open(cls, where: str | os.PathLike[str], *, name: str = "alebo", method: Method | None = None) -> Study:
        """The study that is there. `method` is needed only where its settings are not plain data (a function, say)."""
        study = cls(where, name, must_exist=True)
        if not study._storage.select(name):
            known = ", ".join(map(repr, study._storage.names())) or "none"
            raise StudyError(f"A study must exist to be opened; {study.where} has no study {name!r}. It has: {known}.")
        meta = study._stored_meta()
        if meta is None:
            raise StudyError(
                f"A study of alebo says what it is; {name!r} in {study.where} does not, so another program made it. "
                "Use the EmbeddingSampler with it."
            )
        study._load(meta, method)
        return study

    def _begin(self, meta: Mapping[str, Any]) -> None:
        """Write what this study is, unless another process has done so meanwhile."""
        self._storage.create(self.name, meta["directions"])
        if self._stored_meta() is not None:
            return
        if self._storage.trials():
            raise StudyError(
                f"A study of alebo is created by alebo; {self.where} has a study {self.name!r} with trials of another "
                "program. Choose another name, or use the EmbeddingSampler for it."
            )
        self._storage.set_attribute(META, meta)
        if self._storage.twice:
            self._storage.set_attribute(META + ":copy", meta)

    def _stored_meta(self) -> dict[str, Any] | None:
        attrs = self._storage.attributes()
        found = attrs.get(META, attrs.get(META + ":copy"))
        return dict(found) if found is not None else None

    def _load(self, meta: Mapping[str, Any], method: Method | None) -> None:
        from .. import __version__

        if meta.get("format") != FORMAT or str(meta.get("alebo")).split(".")[:2] != __version__.split(".")[:2]:
            raise StudyError(
                f"A study is continued by the version that began it; {self.where} is of alebo {meta.get('alebo')} "
                f"(format {meta.get('format')}), and this is {__version__} (format {FORMAT}). Run: pip install "
                f"alebo=={meta.get('alebo')}"
            )
        if method is None and needs_method(meta):
            raise StudyError(
                f"The method {meta['method']['name']!r} of {self.where} has settings that are no plain data "
                f"({', '.join(needs_method(meta))}). Pass it again: Study.open(..., method=...)."
            )
        if method is not None:
            stored = {**meta, "method": {"name": method.name}}
            self._opt = Optimizer.from_dict({**stored, "trials": []}, method=method)
        else:
            self._opt = Optimizer.from_dict({**meta, "trials": []})
        self._first_budget = self._opt.budget
        if not self._storage.read_only:
            self._mend()

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def space(self) -> Space:
        """The parameters."""
        return self._opt.space

    @property
    def goals(self) -> Goals:
        """What is minimised, maximised or bounded."""
        return self._opt.goals

    @property
    def method(self) -> Method:
        """How points are proposed."""
        return self._opt.method

    @property
    def seed(self) -> int:
        """The seed of the method."""
        return self._opt.seed

    @property
    def patience(self) -> float:
        """Seconds for which a database that went away is waited for."""
        return self._storage.patience.seconds

    @patience.setter
    def patience(self, seconds: float) -> None:
        self._storage.patience.seconds = float(seconds)

    @property
    def budget(self) -> int | None:
        """How many evaluations may be made in all."""
        return self._budget(self._storage.attributes())

    def _budget(self, attributes: Mapping[str, Any]) -> int | None:
        stored = attributes.get("budget", self._first_budget)
        return None if stored is None else int(stored)

    def set_budget(self, budget: int) -> None:
        """Allow so many evaluations in all: more, to go on after the end."""
        if int(budget) != budget or budget < 1:
            raise InputError(f"`budget >= 1` must hold; got {budget}. Say how many evaluations you can afford.")
        self._storage.set_attribute("budget", int(budget))

    @property
    def history(self) -> History:
        """Everything asked and reported so far, by whomever."""
        return self._refreshed().history

    def optimizer(self) -> Optimizer:
        """An Optimizer with the stored history. Tell the study, not it: what it is told is not written."""
        return copy.copy(self._refreshed())

    def best(self) -> Trial:
        """As Optimizer.best."""
        return self._refreshed().best()

    def front(self) -> list[Trial]:
        """As Optimizer.front."""
        return self._refreshed().front()

    def hypervolumes(self, reference: Sequence[float] | None = None) -> NDArray[np.float64]:
        """As Optimizer.hypervolumes."""
        return self._refreshed().hypervolumes(reference)

    @property
    def known(self) -> int:
        """How many completed evaluations this object knows of, without looking again."""
        return len(self._opt.history.complete)

    def __repr__(self) -> str:
        h = self.history
        counts = f"{len(h.complete)} complete, {len(h.pending)} pending, {len(h.failed)} failed"
        return f"Study({self.where!r}, {self.name!r}: {counts})"

    def _refreshed(self, trials: list[FrozenTrial] | None = None) -> Optimizer:
        """The one Optimizer of this study, with the history that is stored now."""
        stored = self._storage.trials() if trials is None else trials
        attributes = self._storage.attributes()
        known = [self._read(t) for t in stored]
        for key, record in attributes.items():
            if key.startswith(AMENDED):
                known[int(key.removeprefix(AMENDED))] = Trial.from_dict(record)
        self._opt.history = History(tuple(known), self._budget(attributes))
        self._opt.queue = tuple(attributes.get("queue", ()))  # a trial's note says which of them it is
        return self._opt

    def _read(self, frozen: FrozenTrial) -> Trial:
        number = frozen.number
        if number not in self._done:
            trial = trial_of(frozen, self.space, self.goals)
            if trial.state is State.PENDING or not frozen.state.is_finished():
                return trial
            self._done[number] = trial
        return self._done[number]

    # -- asking and telling -------------------------------------------------------------------------------------------

    def enqueue(self, params: Mapping[str, Any]) -> None:
        """Queue a point to be the next one asked, by whomever, as Optimizer.enqueue."""
        with self._storage.claims.asking():
            point = plain(self.space.canonical(params))
            queue = self._storage.attributes().get("queue", ())
            self._storage.set_attribute("queue", [*queue, point])

    def ask(self, q: int = 1) -> list[Trial]:
        """The next `q` trials, as Optimizer.ask. They are pending until somebody tells or fails them."""
        with self._storage.claims.asking():
            return self._propose(q, owner=None)

    def claim(self, q: int = 1, *, stale_after: float | None = None) -> list[Trial]:
        """Up to `q` trials for this process to evaluate: those whose worker died, then new ones within the budget.

        A trial taken over keeps its number and parameters, so a run that was killed goes on as if it had not been. A
        living worker's trial is never taken over. With `stale_after`, a trial that was asked by hand so many seconds
        ago and is still pending is taken over, too.
        """
        if not self._living:
            self._storage.claims.live(self.worker)
            self._living = True
        with self._storage.claims.asking():
            taken = self._take_over(self._storage.trials(), q, stale_after)
            opt = self._refreshed()
            more = q - len(taken)
            if opt.budget is not None:
                more = min(more, opt.budget - opt.asked)
            if more > 0:
                taken += self._propose(more, owner=self.worker)
        self._handed |= {t.number for t in taken}
        return taken

    def waiting(self) -> bool:
        """Whether other workers still evaluate: their trials may come back to us, should they die."""
        return any(
            self._read(t).state is State.PENDING and t.user_attrs.get("owner", {}).get("worker") is not None
            for t in self._storage.trials()
        )

    def tell(
        self, trial: int | Trial | Mapping[str, Any], outcomes: Any, *, params: Mapping[str, Any] | None = None
    ) -> Trial:
        """Record what an evaluation gave, as Optimizer.tell; a mapping of parameters is a point never asked.

        The first outcome of a trial stands, whoever writes it. A second one is refused with a StateError.
        """
        if isinstance(trial, Mapping):
            return self._tell_point(trial, outcomes)
        if params is None:
            self.hold(trial, outcomes)
        with self._until_written(trial):
            return self._finish(self._refreshed().tell(trial, outcomes, params=params))

    def amend(
        self,
        trial: int | Trial,
        outcomes: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        reason: str | None = None,
    ) -> Trial:
        """Correct a finished trial, as Optimizer.amend. The storage keeps both; Optuna's dashboard shows the first."""
        with self._storage.claims.asking():
            return self._correct(self._refreshed().amend(trial, outcomes, params=params, reason=reason))

    def forget(self, trial: int | Trial, reason: str | None = None) -> Trial:
        """Withdraw what was recorded for a trial, as Optimizer.forget."""
        with self._storage.claims.asking():
            return self._correct(self._refreshed().forget(trial, None if reason is None else printable(reason)))

    def _correct(self, trial: Trial) -> Trial:
        self._storage.set_attribute(f"{AMENDED}{trial.number}", record_of(trial))
        return trial

    def fail(self, trial: int | Trial, reason: str | None = None) -> Trial:
        """Record that an evaluation crashed or was given up, as Optimizer.fail."""
        reason = None if reason is None else printable(reason)
        with self._until_written(trial):
            return self._finish(self._refreshed().fail(trial, reason))

    def hold(self, trial: int | Trial, outcomes: Any) -> None:
        """Have this outcome in hand: should the storage be away before it is told, it is kept in a local file."""
        number = trial.number if isinstance(trial, Trial) else trial
        known = self._opt.history
        if isinstance(number, int) and 0 <= number < len(known) and number not in self._in_hand:
            read = self.goals.read(outcomes)
            self._in_hand[number] = record_of(replace(known[number], outcomes=read, state=State.COMPLETE))

    def close(self) -> None:
        """Let go: what this process had claimed can be taken over by others at once."""
        if self._handed:
            patience, self.patience = self.patience, 2.0  # it may be the database's absence that ends us
            with suppress(AleboError, OSError):
                self._release()
            self.patience = patience
        self._handed.clear()
        self._storage.close()
        self._living = False
        self.worker = new_worker()  # should this object claim again, it is somebody else

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- writing: a trial once when it is asked, its outcome once when it is reported -----------------------------------

    def _propose(self, q: int, *, owner: str | None) -> list[Trial]:
        """Ask the method and write its trials; where another process was quicker, ask again with what it wrote."""
        written: list[Trial] = []
        while len(written) < q:
            for trial in self._refreshed().ask(q - len(written)):
                if not self._add(trial, owner):
                    break
                written.append(trial)
        return written

    def _add(self, trial: Trial, owner: str | None) -> bool:
        """Write a new trial in one piece, as pending; False if its number is taken."""
        from optuna.trial import TrialState, create_trial

        record = record_of(replace(trial, state=State.PENDING, outcomes={}))
        coordinates, distributions = shown(trial, self.space)
        stamp = self._storage.claims.stamp() if owner is None else {"at": time.time()}
        attrs: dict[str, Any] = {"params": record.pop("params"), "trial": record}
        attrs["owner"] = {"worker": owner, "attempt": 1, "token": secrets.token_hex(6), **stamp}
        template = create_trial(
            state=TrialState.RUNNING, params=coordinates, distributions=distributions, user_attrs=attrs
        )
        template.number = trial.number
        return self._storage.add(template)

    def _tell_point(self, params: Mapping[str, Any], outcomes: Any) -> Trial:
        with self._storage.claims.asking():
            done = self._refreshed().tell(params, outcomes)
            while not self._add(done, owner=None):
                done = self._refreshed().tell(params, outcomes)
            return self._finish(done)

    def _finish(self, trial: Trial) -> Trial:
        """Write what finishes a trial, unless somebody has finished it."""
        if not self._storage.finish(trial.number, self._outcome(trial)):
            raise StateError(
                f"A trial is told once; another worker has finished trial {trial.number}. Its outcome stands, and "
                "yours is not written."
            )
        return trial

    def _outcome(self, trial: Trial) -> Outcome:
        if not trial.complete:
            return Outcome(False, attributes={"reason": trial.reason or "given up"})
        record = record_of(trial)
        attributes = {"outcomes": record["outcomes"]}
        if self._storage.twice or trial.earlier:  # settings that were really run stand only here
            # what `decode` gives again is left out; a point from elsewhere may not be exactly on the grid of decode
            same = trial.asked and trial.params == self.space.decode(trial.x)
            attributes["told"] = {k: v for k, v in record.items() if k != "params" or not same}
        values = [trial.outcomes[g.outcome].mean for g in self.goals.objectives]
        return Outcome(True, values, attributes, constraints_of(trial, self.goals))

    @contextmanager
    def _until_written(self, trial: int | Trial) -> Iterator[None]:
        """Inside, a trial is finished; an outcome that cannot be written stays in a local file, and nowhere else."""
        number = trial.number if isinstance(trial, Trial) else trial
        try:
            yield
        except StudyError as error:
            self.rescue()
            record = self._in_hand.pop(number, None)
            path = None if record is None else self._spool.keep(number, record)
            if path is None:
                raise
            raise StudyError(
                f"{error} The outcome of trial {number} is kept in {path}, and is written when this study is opened "
                "again on this machine."
            ) from None
        except AleboError:  # refused: there is nothing to keep
            self._written(number)
            raise
        except BaseException:  # stopped in the middle
            self.rescue()
            raise
        self._written(number)

    def _written(self, number: int) -> None:
        self._in_hand.pop(number, None)
        self._spool.drop(number)
        self._handed.discard(number)

    def rescue(self) -> None:
        """The storage is away: keep what is in hand in local files."""
        for number, record in list(self._in_hand.items()):
            self._spool.keep(number, record)

    def _take_over(self, trials: list[FrozenTrial], q: int, stale_after: float | None) -> list[Trial]:
        claims = self._storage.claims
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
                continue
            again = {"worker": self.worker, "attempt": int(owner["attempt"]) + 1, "at": time.time()}
            if self._storage.swap_owner(trial.number, owner, again):
                log.info("Trial %d is taken over from %s.", trial.number, owner["worker"])
                taken.append(trial)
        return taken

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
        try:
            kept = Trial.from_dict(record)
            history = self.history
            if not 0 <= kept.number < len(history) or history[kept.number].x.tolist() != kept.x.tolist():
                return False
        except (KeyError, TypeError, ValueError):
            return False
        if history[kept.number].state is State.PENDING:
            self._finish(kept)
            log.warning("The outcome of trial %d, kept while the storage was away, has been written.", kept.number)
        return True
