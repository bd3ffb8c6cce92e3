"""The callback for MLflow against a store in a folder: every trial, the best point and the report are there."""

# ruff: noqa: E402
from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require_module

pytestmark = pytest.mark.filterwarnings("ignore")
require_module("mlflow", "mlflow")
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

import alebo
from alebo.integrations.mlflow import MLflowLogger

SPACE = alebo.Space(
    [alebo.Float("gain", 0, 1), alebo.Int("layers[0]", 1, 4), alebo.Categorical("act", ["relu", "tanh"])]
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return (tmp_path / "mlruns").as_uri()


def loss(params: Any) -> tuple[float, float]:
    if params["gain"] > 0.9:
        raise RuntimeError("too hot")
    return float(params["gain"]), 0.1


def nested(to: MLflowLogger) -> list[Any]:
    found = to.client.search_runs([to.experiment_id], f"tags.mlflow.parentRunId = '{to.run_id}'")
    return sorted(found, key=lambda r: int(r.data.tags["alebo.trial"]))


def test_a_run_of_minimize(store: str) -> None:
    with MLflowLogger("tuning", run_name="first", tracking_uri=store) as to:
        result = alebo.minimize(loss, SPACE, budget=12, seed=1, method="sobol", callback=to)
    client = MlflowClient(store)
    run = client.get_run(to.run_id)
    assert (run.info.status, run.info.run_name) == ("FINISHED", "first")
    assert run.data.params["method"] == "sobol"
    assert run.data.params["goals"] == "Minimize value"
    children = nested(to)
    assert len(children) == 12
    for child, trial in zip(children, result.history, strict=True):
        assert child.data.params["gain"] == str(trial.params["gain"])
        assert child.data.params["layers_0_"] == str(trial.params["layers[0]"])
        assert child.info.status == ("FINISHED" if trial.complete else "FAILED")
        if trial.complete:
            assert child.data.metrics == {
                "value": trial.outcomes["value"].mean,
                "value standard error": trial.outcomes["value"].sem,
            }
        else:
            assert "too hot" in child.data.tags["alebo.reason"]
    assert any(c.info.status == "FAILED" for c in children)
    trace = {m.step: m.value for m in client.get_metric_history(to.run_id, "best")}
    assert [trace[k] for k in sorted(trace)] == [v for v in result.trace if v == v]
    files = {f.path for f in client.list_artifacts(to.run_id)}
    assert files == {"best.json", "report.html", "trials.json"}
    best = json.loads(Path(client.download_artifacts(to.run_id, "best.json")).read_text())
    assert best["params"]["gain"] == min(t.params["gain"] for t in result.history.complete)
    page = Path(client.download_artifacts(to.run_id, "report.html")).read_text()
    assert "<title>first" in page
    stored = json.loads(Path(client.download_artifacts(to.run_id, "trials.json")).read_text())
    assert [alebo.Trial.from_dict(t).params for t in stored] == [t.params for t in result.history]


def test_a_stored_study_with_several_objectives(store: str, tmp_path: Path) -> None:
    goals = [alebo.Minimize("cost"), alebo.Maximize("gain")]
    study = alebo.Study.create(tmp_path / "s.log", SPACE, goals, method=alebo.methods.Sobol(), budget=4)
    study.tell(study.ask()[0].number, {"cost": 1.0, "gain": 2.0})  # before the callback is there
    with MLflowLogger("both", tracking_uri=store, report=False) as to:
        trial = study.ask()[0]
        to(study.tell(trial.number, {"cost": 2.0, "gain": 3.0}), study)
    assert [c.data.metrics for c in nested(to)] == [{"cost": 1.0, "gain": 2.0}, {"cost": 2.0, "gain": 3.0}]
    assert "best" not in to.client.get_run(to.run_id).data.metrics


def test_many_parameters_are_a_file(store: str) -> None:
    with MLflowLogger("many", tracking_uri=store, report=False, max_params=10) as to:
        alebo.minimize(lambda x: x[0], [(0, 1)] * 11, budget=2, method="sobol", callback=to)
    for child in nested(to):
        assert not child.data.params
        assert len(json.loads(Path(to.client.download_artifacts(child.info.run_id, "params.json")).read_text())) == 11
    with MLflowLogger("many", tracking_uri=store, report=False) as to:
        alebo.minimize(lambda x: x[0], [(0, 1)] * 150, budget=1, method="sobol", callback=to)
    assert len(nested(to)[0].data.params) == 150


def test_a_server_that_is_away_costs_no_evaluation(
    store: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    to = MLflowLogger("away", tracking_uri=store, report=False)
    create, away = to.client.create_run, [True]

    def flaky(*args: Any, **settings: Any) -> Any:
        if away[0]:
            raise MlflowException("connection refused")
        return create(*args, **settings)

    monkeypatch.setattr(to.client, "create_run", flaky)
    with caplog.at_level(logging.WARNING), to:
        result = alebo.minimize(lambda x: x[0], [(0, 1)] * 3, budget=5, method="sobol", callback=to)
        assert not nested(to)
        away[0] = False
    assert result.nfev == 5
    assert len(nested(to)) == 5
    assert sum("logged later" in r.message for r in caplog.records) == 1  # then it waits a minute


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, "KILLED"), (ValueError, "FAILED")])
def test_how_a_run_ended_is_its_status(store: str, error: type[BaseException], status: str) -> None:
    with pytest.raises(error), MLflowLogger("ended", tracking_uri=store, report=False) as to:
        raise error
    assert to.client.get_run(to.run_id).info.status == status


def test_a_store_that_cannot_be_opened_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    with pytest.raises(alebo.StudyError, match="MLFLOW_ALLOW_FILE_STORE=true"):
        MLflowLogger(tracking_uri=(tmp_path / "mlruns").as_uri())
    with pytest.raises(alebo.InputError, match="max_params"):
        MLflowLogger(max_params=-1)
