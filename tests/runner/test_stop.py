"""A signal ends a run at a safe place: never lost, never a traceback, soon also during a wait."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import alebo
from alebo.methods import Sobol
from alebo.runner._patience import Away, Patience
from alebo.runner._stop import Stop

SPACE = alebo.Space.from_bounds([(-1, 1)] * 3)


@pytest.fixture(autouse=True)
def _python_handlers() -> Iterator[None]:
    """The handlers of a program that was just started, whatever started pytest."""
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, old in before.items():
        signal.signal(number, old)


def create(folder: Path, budget: int = 4) -> alebo.Study:
    path, goal = folder / "s.log", alebo.Minimize("loss")
    return alebo.Study.create(path, SPACE, goal, method=Sobol(), seed=3, budget=budget)


def first(params: dict[str, Any]) -> float:
    return float(params["x0"])


def ask_to_end(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.01)  # the handler runs here


def soon(seconds: float = 0.3) -> None:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGTERM))
    timer.daemon = True
    timer.start()


class Dies:
    """An object during whose end the signal comes: what a destructor raises is printed and dropped."""

    fine = None

    def __del__(self) -> None:
        ask_to_end()


def test_a_signal_in_a_destructor_stops_the_run_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt, match="1 evaluations are safe"):
        alebo.run(create(tmp_path), first, executor=pool, on_step=lambda _: Dies().fine)
    assert "Traceback" not in capsys.readouterr().err
    assert len(alebo.Study.open(tmp_path / "s.log").history.complete) == 1


def test_a_signal_while_a_worker_is_forked_stops_the_run_without_a_traceback(tmp_path: Path) -> None:
    """Found by signals at random moments: Python drops what its hooks around a fork raise."""
    code = (
        "import os, sys, signal; import alebo; from tests.runner.test_stop import *\n"
        "os.register_at_fork(after_in_parent=lambda: threading.current_thread() is threading.main_thread() and "
        "ask_to_end())\n"
        "signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
        "try: alebo.run(create(Path(sys.argv[1])), first)\n"
        "except KeyboardInterrupt as stop: print(stop); sys.exit(130)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in done.stderr
    assert (done.returncode, "Stopped by SIGTERM" in done.stdout) == (130, True), done.stderr


def test_a_signal_with_the_last_evaluation_is_not_lost(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt, match="1 evaluations are safe"):
        alebo.run(create(tmp_path, budget=1), first, executor=pool, on_step=ask_to_end)


def test_the_callback_of_what_was_written_is_called_before_the_run_stops(tmp_path: Path) -> None:
    heard: list[int] = []

    def callback(trial: alebo.Trial, study: alebo.Study) -> None:
        ask_to_end()
        heard.append(trial.number)

    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt, match="1 evaluations are safe"):
        alebo.run(create(tmp_path), first, executor=pool, callback=callback)
    assert heard == [0]


def test_a_second_signal_is_not_held_back(tmp_path: Path) -> None:
    def twice(*_: Any) -> None:
        ask_to_end()
        with pytest.raises(KeyboardInterrupt):
            ask_to_end()

    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt, match="1 evaluations"):
        alebo.run(create(tmp_path), first, executor=pool, on_step=twice)


def test_a_run_stops_while_another_process_asks(tmp_path: Path) -> None:
    study = create(tmp_path)
    code = "import fcntl, os, sys, time; f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
    code += "fcntl.lockf(f, fcntl.LOCK_EX, 1, 1); print('held', flush=True); time.sleep(60)"
    other = subprocess.Popen([sys.executable, "-c", code, f"{tmp_path}/s.log.claims"], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        assert other.stdout.readline()
        began = time.monotonic()
        soon()
        with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt, match="by SIGTERM"):
            alebo.run(study, first, executor=pool)
        assert time.monotonic() - began < 10
    finally:
        other.kill()
        other.communicate()
    assert len(study.ask()) == 1  # its own lock is free again


class AtOnce:
    """An executor that evaluates before `submit` returns."""

    def submit(self, f: Any, params: dict[str, Any]) -> Future[Any]:
        future: Future[Any] = Future()
        time.sleep(60)
        return future


def test_an_executor_that_evaluates_in_this_thread_is_interrupted(tmp_path: Path) -> None:
    began = time.monotonic()
    soon()
    with pytest.raises(KeyboardInterrupt, match="by SIGTERM"):
        alebo.run(create(tmp_path), first, executor=AtOnce())
    assert time.monotonic() - began < 10


def test_a_wait_for_a_database_ends_with_a_signal() -> None:
    def away() -> None:
        raise Away("gone")

    stop, began = Stop(), time.monotonic()
    patience = Patience("there", first=60.0, check=stop.check)
    soon()
    with stop.handled(), pytest.raises(KeyboardInterrupt, match="by SIGTERM"):
        patience.wait_for(away)
    assert time.monotonic() - began < 10
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
