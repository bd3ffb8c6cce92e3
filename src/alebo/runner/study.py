"""A study on disk or in a database: the optimizer's history, written as it happens, shared by all who open it."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import whole as whole_number
from .._errors import AleboError, InputError, StudyError
from .._text import printable
from ..goals import Goal, Goals
from ..history import History, Span, State, Trial
from ..methods import Method, default_method
from ..optimizer import Optimizer
from ..space import Space
from ._claims import new_worker
from ._lines import META
from ._records import FORMAT, check_sources, compare, learned, meta_of, needs_method, plain, span_of
from ._storage import require_optuna, whole
from ._trials import StoredTrials


class Study(StoredTrials):
    """An Optimizer whose history is stored: `ask`, `tell` and `fail` as there, by any process, and nothing is lost.

    It is an Optuna study, too: the embedded coordinates are its parameters, and the full parameters one attribute of
    each trial, so that Optuna's dashboard opens it and stays quick at a thousand parameters.

    While a database is away, every call waits for it (`patience` seconds at most). An outcome in hand is kept in a
    local file meanwhile.
    """

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
        sources: Any = (),
    ) -> Study:
        """A new study at this path or PostgreSQL URL; or the one that is there, if it has the same settings.

        Args:
            where: A path, or `postgresql://user:password@host/database`.
            space: The parameters.
            goals: What is minimised, maximised or bounded.
            method: How points are proposed. None: the default method, or the one that the stored study has.
            seed: The same seed and history give the same next point.
            budget: How many evaluations may be made in all; None: not known yet.
            name: A database holds several studies by name.
            sources: Earlier studies to learn from: `alebo.Source`, or what one is made of. A new study keeps a copy of them.

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
        meta = meta_of(opt, name)
        study = cls(where, name, must_exist=False)
        if not study._storage.select(name) or study._stored_meta() is None:
            meta |= learned(sources, opt, study.where, name)
            with study._storage.claims.asking():
                study._begin(meta)
        stored = study._stored_meta() or meta
        check_sources(study.where, stored, sources, opt)
        keeps = method is None and not needs_method(stored)  # the default may be another one than when it was begun
        compare(study.where, stored, {**meta, "method": stored.get("method")} if keeps else meta)
        study._load(stored, None if keeps else opt.method)
        if budget is not None and study.budget != budget:
            study.set_budget(budget)
        return study

    @classmethod
    def open(cls, where: str | os.PathLike[str], *, name: str = "alebo", method: Method | None = None) -> Study:
        """The study that is there. `method` is needed only where its settings are not plain data (a function, say).

        Args:
            where: The path, or the URL of a database.
            name: Which study, where there are several.
            method: The method, where its settings cannot be stored.

        Returns:
            The study.
        """
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
        with whole(self.where):
            return dict(found) if found is not None else None

    def _load(self, meta: Mapping[str, Any], method: Method | None) -> None:
        from .. import __version__

        if meta.get("format") != FORMAT or str(meta.get("alebo")).split(".")[:2] != __version__.split(".")[:2]:
            raise StudyError(
                f"A study is continued by the version that began it; {self.where} is of alebo {meta.get('alebo')} "
                f"(format {meta.get('format')}), and this is {__version__} (format {FORMAT}). Run: pip install "
                f"alebo=={meta.get('alebo')}"
            )
        with whole(self.where):
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

    def set_budget(self, budget: int) -> None:
        """Allow so many evaluations in all: more, to go on after the end."""
        budget = whole_number("budget", budget, 1, "Say how many evaluations you can afford.")
        self._storage.set_attribute("budget", budget)

    @property
    def history(self) -> History:
        """Everything asked and reported so far, by whomever."""
        return self._refreshed().history

    def optimizer(self) -> Optimizer:
        """An Optimizer with the stored history. Report outcomes to the study: what this object gets is not written."""
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

    def spans(self) -> list[Span]:
        """When and by whom each trial was evaluated, for those that a worker claimed."""
        return [span for frozen in self._storage.trials() if (span := span_of(frozen, self._read(frozen))) is not None]

    def show_by_name(self, names: Sequence[str]) -> None:
        """Have Optuna's dashboard show these parameters of later trials by name, beside the embedded coordinates."""
        unknown = [n for n in names if n not in self.space.names]
        if unknown:
            raise InputError(f"Names to show are parameters of the space; got {unknown[:4]}.")
        if list(names) != self._storage.attributes().get("shown", []):
            self._storage.set_attribute("shown", list(names))

    # -- asking and telling -------------------------------------------------------------------------------------------

    def enqueue(self, params: Mapping[str, Any] | Sequence[Any]) -> None:
        """Queue a point to be the next one asked, by whomever, as Optimizer.enqueue."""
        with self._storage.claims.asking():
            point = plain(self.space.canonical(params))
            queue = self._storage.attributes().get("queue", ())
            self._storage.set_attribute("queue", [*queue, point])

    def ask(self, q: int = 1) -> list[Trial]:
        """The next `q` trials, as Optimizer.ask. They are pending until somebody tells or fails them."""
        with self._storage.claims.asking():
            return self._propose(self._refreshed(), q, owner=None)

    def claim(self, q: int = 1, *, stale_after: float | None = None, begun: int | None = None) -> list[Trial]:
        """Up to `q` trials for this process to evaluate: those whose worker died, then new ones within the budget.

        A trial taken over keeps its number and parameters, so a run that was killed goes on as if it had not been. A
        living worker's trial is never taken over. With `stale_after`, a trial that was asked by hand so many seconds
        ago and is still pending is taken over, too. With `begun`, those after the first so many are prepared only, until
        `begin` says otherwise.
        """
        if not self._living:
            self._storage.claims.live(self.worker)
            self._living = True
        with self._storage.claims.asking():
            trials = self._storage.trials()
            taken, given_up = self._take_over(trials, q, stale_after, begun)
            opt = self._refreshed(None if given_up else trials)
            more = q - len(taken)
            if opt.budget is not None:
                more = min(more, opt.budget - opt.asked)
            if more > 0:
                rest = None if begun is None else max(0, begun - len(taken))
                taken += self._propose(opt, more, owner=self.worker, begun=rest)
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
            if params is not None:
                raise InputError(
                    "`params` corrects the settings of an asked trial; a point never asked is its own params."
                )
            return self._tell_point(trial, outcomes)
        self.hold(trial, outcomes, params)
        with self._until_written(trial):
            opt = self._refreshed()
            ours = self._on_our_behalf(trial.number if isinstance(trial, Trial) else trial)
            return ours or self._finish(opt.tell(trial, outcomes, params=params))

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

    def fail(self, trial: int | Trial, reason: str | None = None) -> Trial:
        """Record that an evaluation crashed or was given up, as Optimizer.fail."""
        reason = None if reason is None else printable(reason)
        with self._until_written(trial):
            return self._finish(self._refreshed().fail(trial, reason))

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
