"""For MLflow: a callback that logs every trial, the best point and the report of a run."""

from __future__ import annotations

import json
import logging
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from .. import __version__
from .._checks import whole
from .._errors import StudyError
from ..history import State, Trial, incumbent, incumbents
from ._hosts import check_host

check_host("The callback for MLflow", "mlflow-skinny", "3.0", "4", "mlflow")

from mlflow import MlflowClient  # noqa: E402
from mlflow.entities import Metric, Param, RunTag  # noqa: E402

log = logging.getLogger(__name__)
BATCH = 100  # how many parameters MLflow takes at a time
LONGEST = 5000  # characters of a value or a tag
PAUSE = 60.0  # seconds without a try after a server did not answer


class MLflowLogger:
    """A callback for `minimize` and `run` that logs to MLflow: one run, and one nested run for each trial.

    The run has the outcomes of all trials and the best value so far as metrics by trial number. At the end it gets the
    best point (`best.json`), every trial (`trials.json`) and the report (`report.html`). A tracking server that does not
    answer never ends the optimization: what could not be logged is logged later, at the end at the latest.

    Args:
        experiment: The name of the MLflow experiment, which is made if there is none.
        run_name: The name of the run; None: MLflow's choice.
        tracking_uri: Where MLflow stores; None: MLflow's own setting (`mlflow.set_tracking_uri`, MLFLOW_TRACKING_URI).
        trials: Whether to make a nested run for each trial.
        report: Whether to write the report at the end (needs the extra `plot`).
        max_params: A trial with more parameters than this has them in the file `params.json` instead of by name.

    >>> import alebo, os, tempfile
    >>> os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # MLflow's condition for a folder as its store
    >>> with MLflowLogger("doctest", tracking_uri=f"file:{tempfile.mkdtemp()}", report=False) as to_mlflow:
    ...     result = alebo.minimize(lambda x: x[0], [(0, 1)] * 3, budget=4, method="sobol", callback=to_mlflow)
    >>> to_mlflow.client.get_run(to_mlflow.run_id).info.status
    'FINISHED'
    """

    def __init__(
        self,
        experiment: str = "alebo",
        *,
        run_name: str | None = None,
        tracking_uri: str | None = None,
        trials: bool = True,
        report: bool = True,
        max_params: int = 200,
    ) -> None:
        self.max_params = whole("max_params", max_params, 0, "It is a number of parameters.")
        self.trials, self.report = trials, report
        if report:
            from ..report import render  # noqa: F401  a missing part is named now, not after the last evaluation
        try:
            self.client = MlflowClient(tracking_uri)
            found = self.client.get_experiment_by_name(experiment)
            self.experiment_id = self.client.create_experiment(experiment) if found is None else found.experiment_id
            made = self.client.create_run(self.experiment_id, run_name=run_name, tags={"alebo.version": __version__})
        except Exception as error:  # of any of MLflow's stores
            raise StudyError(
                f"MLflow must be able to store a run at {tracking_uri or 'its default address'}; it said: {error}. Give "
                "`tracking_uri`: the address of a server, or sqlite:///mlflow.db, or a "
                "folder with the environment variable MLFLOW_ALLOW_FILE_STORE=true."
            ) from error
        self.run_id: str = made.info.run_id
        self.name: str = made.info.run_name or experiment
        self._logged: set[int] = set()
        self._run: Any = None  # the Optimizer or Study that called last
        self._not_before = 0.0
        self._titled = False

    def __call__(self, trial: Trial, run: Any) -> None:
        """Log what is new in this run (an Optimizer or a Study): the trial, and any before it that are not logged yet."""
        self._run = run
        if time.monotonic() < self._not_before:
            return
        try:
            self._update()
        except Exception as error:  # whatever MLflow's client raises, the evaluations are worth more
            self._not_before = time.monotonic() + PAUSE
            log.warning("MLflow did not take trial %d, which is logged later: %s", trial.number, error)

    def __enter__(self) -> MLflowLogger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Log what is missing, the best point and the report, and end the run: finished, failed, or killed by Ctrl-C."""
        status = "FINISHED" if kind is None else "KILLED" if kind is KeyboardInterrupt else "FAILED"
        try:
            if self._run is not None:
                self._update()
                self._summary()
            self.client.set_terminated(self.run_id, status)
        except Exception as failure:
            log.warning("MLflow did not take the end of run %s: %s", self.run_id, failure)

    def _update(self) -> None:
        run = self._run
        if not self._titled:
            self.client.log_batch(self.run_id, params=[Param(k, v[:LONGEST]) for k, v in _facts(run).items()])
            self._titled = True
        single = run.goals.single
        best = dict(_best_values(run)) if single else {}
        for trial in run.history:
            if trial.state is State.PENDING or trial.number in self._logged:
                continue
            values = {_key(k): o.mean for k, o in trial.outcomes.items()}
            if self.trials:
                self._nested(trial, values)
            if trial.number in best:
                values["best"] = best[trial.number]
            now = int(time.time() * 1000)
            self.client.log_batch(self.run_id, metrics=[Metric(k, v, now, trial.number) for k, v in values.items()])
            self._logged.add(trial.number)

    def _nested(self, trial: Trial, values: Mapping[str, float]) -> None:
        """A run of its own for this trial, below ours."""
        tags = {"mlflow.parentRunId": self.run_id, "alebo.trial": str(trial.number), "alebo.state": str(trial.state)}
        if trial.reason:
            tags["alebo.reason"] = trial.reason[:LONGEST]
        made = self.client.create_run(self.experiment_id, run_name=f"trial {trial.number}", tags=tags)
        child, now = made.info.run_id, int(time.time() * 1000)
        errors = {f"{_key(k)} standard error": o.sem for k, o in trial.outcomes.items() if o.sem is not None}
        self.client.log_batch(child, metrics=[Metric(k, v, now, 0) for k, v in {**values, **errors}.items()])
        if len(trial.params) <= self.max_params:
            shown = [Param(k, str(v)[:LONGEST]) for k, v in _keys(trial.params).items()]
            for at in range(0, len(shown), BATCH):
                self.client.log_batch(child, params=shown[at : at + BATCH])
        else:
            self.client.log_text(child, _json(trial.params), "params.json")
        self.client.set_terminated(child, "FINISHED" if trial.complete else "FAILED")

    def _summary(self) -> None:
        run = self._run
        self.client.log_text(self.run_id, _json([t.to_dict() for t in run.history]), "trials.json")
        best = incumbent(run.history, run.goals, run.space) if run.goals.single else None
        if best is not None:
            found = {"trial": best.number, "params": best.params}
            outcomes = {k: [o.mean, o.sem] for k, o in best.outcomes.items()}
            self.client.log_text(self.run_id, _json({**found, "outcomes": outcomes}), "best.json")
            self.client.log_batch(self.run_id, tags=[RunTag("alebo.best", f"trial {best.number}")])
        if self.report and run.history.complete:
            from ..report import write_report

            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "report.html"
                write_report(path, run, name=self.name)
                self.client.log_artifact(self.run_id, str(path))


def _facts(run: Any) -> dict[str, str]:
    return {
        "method": str(run.method.name),
        "settings": repr(run.method),
        "seed": str(run.seed),
        "budget": str(run.history.budget),
        "parameters": str(len(run.space)),
        "goals": ", ".join(f"{type(g).__name__} {g.outcome}" for g in run.goals.goals),
    }


def _best_values(run: Any) -> Iterator[tuple[int, float]]:
    name = run.goals.objectives[0].outcome
    for trial, best in incumbents(run.history, run.goals, run.space):
        if best is not None:
            yield trial.number, best.outcomes[name].mean


def _key(name: str) -> str:
    """A name as MLflow takes it: letters, digits, and some signs."""
    return re.sub(r"[^\w\-. :/]", "_", name)[:200]


def _keys(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by names that MLflow takes; two that would become one keep their place as well."""
    out: dict[str, Any] = {}
    for place, (name, value) in enumerate(params.items()):
        key = _key(name)
        out[key if key not in out else f"{key} {place}"] = value
    return out


def _json(data: Any) -> str:
    return json.dumps(data, indent=1, default=repr)
