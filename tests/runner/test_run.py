"""Runs: breaking evaluations cost one trial, stopped runs continue exactly, executors of every kind; and what is refused."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import alebo
from alebo.methods import Sobol
from alebo.runner import _pools
from tests.conftest import require_module

from . import functions as fn

SPACE = alebo.Space.from_bounds([(-1, 1)] * 30)
GOAL = alebo.Minimize("loss")


def create(path: Path, budget: int = 8, **kwargs: Any) -> alebo.Study:
    return alebo.Study.create(path / "s.log", SPACE, GOAL, method=Sobol(), seed=3, budget=budget, **kwargs)


def twin(f: Any, budget: int = 8) -> alebo.Optimizer:
    """The same run in memory, never interrupted."""
    opt = alebo.Optimizer(SPACE, GOAL, method=Sobol(), seed=3, budget=budget)
    for _ in range(budget):
        trial = opt.ask()[0]
        opt.tell(trial.number, f(trial.params))
    return opt


def same(a: alebo.History, b: alebo.History) -> bool:
    return [t.to_dict() for t in a] == [t.to_dict() for t in b]


def test_a_run_is_the_optimizer_run(tmp_path: Path) -> None:
    seen: list[int] = []
    opt = alebo.run(create(tmp_path), fn.sphere, callback=lambda trial, study: seen.append(trial.number))
    assert same(opt.history, twin(fn.sphere).history)
    assert seen == list(range(8))
    assert alebo.run(tmp_path / "s.log", fn.sphere, budget=10).asked == 10  # the same command, and more


def test_constraints_and_standard_errors(tmp_path: Path) -> None:
    goals = [GOAL, alebo.AtMost("latency", 0.0)]
    study = alebo.Study.create(tmp_path / "s.log", SPACE, goals, method=Sobol(), budget=4)
    opt = alebo.run(study, fn.two, workers=2)
    assert opt.best().params["x0"] <= 0
    assert opt.history[0].outcomes["loss"].sem == 0.1


def test_every_way_of_breaking_costs_one_trial(tmp_path: Path) -> None:
    kinds = len(fn.KINDS)
    space = alebo.Space([alebo.Int("kind", 0, kinds), alebo.Float("x", 0, 1)])
    study = alebo.Study.create(tmp_path / "s.log", space, GOAL, method=Sobol(), budget=60)
    opt = alebo.run(study, fn.in_turn, workers=3, timeout=1.0, memory=512 * 1024**2, max_failed=1.0, budget=24)
    reasons = {t.params["kind"]: t.reason or "" for t in opt.history}
    words = [
        "ValueError: the simulator has no licence",
        "SIGKILL",
        "longer than 1.0 seconds",
        "MemoryError",
        "finite",
        "finite",
    ]
    assert set(reasons) == set(range(kinds + 1))
    for kind, word in enumerate(words):
        assert word in reasons[kind]
    assert all(t.complete == (t.params["kind"] == kinds) for t in opt.history)
    assert opt.asked == 24
    assert [t.reason for t in alebo.Study.open(tmp_path / "s.log").history] == [t.reason for t in opt.history]


def test_too_many_failures_end_the_run_and_nothing_is_lost(tmp_path: Path) -> None:
    study = create(tmp_path, budget=40)
    with pytest.raises(alebo.EvaluationError, match=r"of 10 in this run 10 did.*no licence"):
        alebo.run(study, fn.raises)
    assert len(study.history.failed) == 10
    assert len(alebo.run(study, fn.sphere).history.complete) == 30


def test_the_embedding_goes_on_as_it_was(tmp_path: Path) -> None:
    """ALEBO's notes and coordinates pass through the file, too."""
    settings: dict[str, Any] = {"method": alebo.ALEBO(dim=4), "seed": 1}
    whole = alebo.Study.create(tmp_path / "a.log", SPACE, GOAL, budget=9, **settings)
    parts = alebo.Study.create(tmp_path / "b.log", SPACE, GOAL, budget=9, **settings)
    a = alebo.run(whole, fn.sphere).history
    parts.tell(parts.ask()[0].number, a[0].outcomes["loss"])
    for budget in (3, 6, 9):
        b = alebo.run(tmp_path / "b.log", fn.sphere, budget=budget).history
    assert [t.x.tolist() for t in a] == [t.x.tolist() for t in b]


def drive(path: str, budget: int, said: str) -> None:
    """A driver of its own, to be killed."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
    study = alebo.Study.create(path, SPACE, GOAL, method=Sobol(), seed=3, budget=budget)
    try:
        alebo.run(study, fn.slow)
    except KeyboardInterrupt as stop:
        Path(said).write_text(str(stop))
        os._exit(130)


def driver(path: Path, budget: int) -> multiprocessing.Process:
    process = multiprocessing.get_context("fork").Process(
        target=drive, args=(str(path), budget, str(path.with_suffix(".said")))
    )
    process.start()
    return process  # type: ignore[return-value]


def test_a_killed_run_continues_with_the_same_proposals(tmp_path: Path) -> None:
    for pause in (0.5, 0.8, 1.1):
        process = driver(tmp_path / "s.log", 8)
        time.sleep(pause)
        process.kill()
        process.join()
    before = alebo.Study.open(tmp_path / "s.log").history
    assert 0 < len(before) < 8
    opt = alebo.run(tmp_path / "s.log", fn.sphere)
    assert same(opt.history, twin(fn.sphere).history)


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path: Path) -> None:
    process = driver(tmp_path / "s.log", 50)
    time.sleep(1.5)
    os.kill(process.pid or 0, signal.SIGINT)
    process.join(timeout=20)
    assert process.exitcode == 130
    assert "To go on, run the same command again" in (tmp_path / "s.said").read_text()
    study = alebo.Study.open(tmp_path / "s.log")
    done = len(study.history.complete)
    assert study.claim(1)[0].number == done  # the one under way is repeated, as the same trial


# -- executors --------------------------------------------------------------------------------------------------------------


def test_threads(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as executor:
        opt = alebo.run(create(tmp_path), lambda params: fn.sphere(params), executor=executor)
    assert same(opt.history, twin(fn.sphere).history)  # Sobol's points do not depend on the order of outcomes


def test_loky(tmp_path: Path) -> None:
    require_module("loky", "dev")
    from loky import get_reusable_executor

    opt = alebo.run(create(tmp_path), fn.sphere, executor=get_reusable_executor(max_workers=2))
    assert same(opt.history, twin(fn.sphere).history)
    get_reusable_executor().shutdown(wait=True)


def test_the_standard_pool_that_breaks_is_a_message_and_the_run_can_go_on(tmp_path: Path) -> None:
    with ProcessPoolExecutor(1) as executor, pytest.raises(alebo.StateError, match="survive the death"):
        alebo.run(create(tmp_path), fn.dies, executor=executor)
    assert len(alebo.run(tmp_path / "s.log", fn.sphere).history.complete) == 8


@pytest.mark.filterwarnings("ignore")  # dask's own
def test_dask(tmp_path: Path) -> None:
    require_module("distributed", "dask")
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        opt = alebo.run(create(tmp_path), fn.sphere, executor=client.get_executor(), workers=2)
        assert same(opt.history, twin(fn.sphere).history)
        with pytest.raises(alebo.EvaluationError, match="no licence"):
            alebo.run(tmp_path / "s.log", fn.raises, executor=client.get_executor(), workers=2, budget=30)
    assert len(alebo.Study.open(tmp_path / "s.log").history.failed) >= 10


def test_a_pool_of_pebbles_own_stops_what_takes_too_long(tmp_path: Path) -> None:
    require_module("pebble", "study")
    from pebble import ProcessPool

    with ProcessPool(max_workers=1) as executor:
        opt = alebo.run(create(tmp_path, budget=2), fn.hangs, executor=executor, timeout=0.2)
        assert [t.state for t in opt.history] == [alebo.State.FAILED] * 2
        assert len(alebo.run(tmp_path / "s.log", fn.sphere, executor=executor, budget=4).history.complete) == 2


def test_submitit(tmp_path: Path) -> None:
    """Real jobs in processes of their own: no Future, but `done` and `result`, which are polled."""
    require_module("submitit", "dev")
    from submitit import LocalExecutor

    executor = LocalExecutor(tmp_path / "logs")
    executor.update_parameters(timeout_min=5)
    opt = alebo.run(create(tmp_path, budget=4), fn.sphere, executor=executor, workers=2)
    assert same(opt.history, twin(fn.sphere, budget=4).history)
    alebo.run(tmp_path / "s.log", fn.raises, executor=executor, workers=2, budget=6)
    failed = alebo.Study.open(tmp_path / "s.log").history.failed
    assert len(failed) == 2
    assert all("no licence" in (t.reason or "") for t in failed)


class _Never(Executor):
    """Takes work and never answers."""

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        return Future()


def test_a_timeout_gives_up_what_an_executor_cannot_stop(tmp_path: Path) -> None:
    opt = alebo.run(create(tmp_path, budget=3), fn.sphere, executor=_Never(), timeout=0.05)
    assert [t.reason for t in opt.history] == ["TimeoutError: it took longer than 0.05 seconds"] * 3


def test_two_drivers_share_a_file(tmp_path: Path) -> None:
    """Threads here, so that coverage sees them; processes in `make faults`."""
    create(tmp_path, budget=20)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with ThreadPoolExecutor(2) as executor:
                alebo.run(alebo.Study.open(tmp_path / "s.log"), fn.sphere, executor=executor)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    history = alebo.Study.open(tmp_path / "s.log").history
    assert same(history, twin(fn.sphere, 20).history)


def test_a_trial_of_which_workers_die_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alebo.runner._trials.ATTEMPTS", 3)
    for _ in range(3):
        study = create(tmp_path)
        assert study.claim(1)[0].number == 0
        study.close()
    study = create(tmp_path)
    assert study.claim(1)[0].number == 1
    assert "3 times" in (study.history[0].reason or "")


# -- what is refused --------------------------------------------------------------------------------------------------------


def test_bad_input_is_a_message(tmp_path: Path) -> None:
    study = create(tmp_path)
    local = threading.Lock()
    with pytest.raises(alebo.InputError, match="picklable"):
        alebo.run(study, lambda params: local and 0.0)
    with pytest.raises(alebo.InputError, match="callable"):
        alebo.run(study, 3)  # type: ignore[arg-type]
    cases: list[dict[str, Any]] = [{"timeout": "5"}, {"memory": "4 GB"}, {"budget": "ten"}, {"budget": 10**400}]
    cases += [{"timeout": 0}, {"memory": -1}, {"max_failed": 0}, {"budget": 0}, {"workers": -1}, {"executor": 3}]
    for wrong in cases:
        with pytest.raises(alebo.InputError):
            alebo.run(study, fn.sphere, **wrong)  # type: ignore[arg-type]
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(alebo.StateError, match="must be open"):
        alebo.run(study, fn.sphere, executor=executor)
    assert len(alebo.run(study, fn.sphere).history.complete) == 8  # and nothing was lost by any of it
    endless = alebo.Study.create(tmp_path / "t.log", SPACE, GOAL, method=Sobol())
    with pytest.raises(alebo.InputError, match="budget"):
        alebo.run(endless, fn.sphere)


def test_missing_parts_are_refused_with_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = create(tmp_path)
    monkeypatch.setitem(sys.modules, "pebble", None)
    with pytest.raises(alebo.MissingPartError, match=r"pip install"):
        alebo.run(study, fn.sphere)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(alebo.MissingPartError, match=r"pip install"):
        alebo.Study.open(tmp_path / "s.log")
    monkeypatch.setitem(sys.modules, "optuna.exceptions", None)
    with pytest.raises(alebo.MissingPartError, match=r"pip install"):
        create(tmp_path)


def _leave_orphans(path: str) -> None:
    pool = _pools.OwnPool(fn.tells_its_process, 1, None, None)
    pool.pool.schedule(fn.tells_its_process, args=[{"file": path}])
    time.sleep(60)


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG")
def test_orphans_die_with_the_driver(tmp_path: Path) -> None:
    """A worker that outlived its driver would hold the driver's claims."""
    process = multiprocessing.get_context("fork").Process(target=_leave_orphans, args=(str(tmp_path / "pid"),))
    process.start()
    while not (tmp_path / "pid").exists():
        time.sleep(0.05)
    worker = Path(f"/proc/{(tmp_path / 'pid').read_text()}/status")
    process.kill()
    process.join()
    until = time.monotonic() + 10
    while worker.exists() and "State:\tZ" not in worker.read_text():
        assert time.monotonic() < until, "the worker lives on"
        time.sleep(0.05)


def test_reasons_name_the_signal() -> None:
    class ProcessExpired(Exception):
        exitcode = -11

    assert "SIGSEGV" in _pools.reason_of(ProcessExpired(), None)


def test_the_log_carries_the_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        alebo.run(create(tmp_path, budget=1), fn.raises)
    assert "no licence" in caplog.text


def test_the_options_that_the_page_of_many_machines_names_are_there() -> None:
    import re

    from typer.testing import CliRunner

    from alebo.cli.app import app

    page = (Path(__file__).parents[2] / "docs" / "many_machines.md").read_text()
    for line in re.findall(r"^alebo run .*$", page, re.MULTILINE):
        for option in re.findall(r"--[a-z-]+", line):
            assert option in CliRunner().invoke(app, ["run", "--help"]).output, option
    assert "--worker " not in page
