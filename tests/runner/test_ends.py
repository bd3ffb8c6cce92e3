"""However a driver ends, nothing that its evaluations started goes on; and every trial gets its own number."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

import alebo
from alebo.evaluator import CommandEvaluator
from alebo.methods import Sobol
from tests.test_evaluator import FAMILY, gone

SPACE = alebo.Space.from_bounds([(-1, 1)] * 3)
GOAL = alebo.Minimize("loss")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a subreaper")


def create(path: Path, budget: int = 4) -> alebo.Study:
    return alebo.Study.create(path / "s.log", SPACE, GOAL, method=Sobol(), seed=3, budget=budget)


def starts_a_program(params: dict[str, Any]) -> float:
    """A Python function that starts a program of its own, in a session of its own, and waits for it."""
    program = [sys.executable, "-I", "-S", "-c", FAMILY + "time.sleep(300)", os.environ["ALEBO_TEST_MARKS"]]
    return float(subprocess.run(program, start_new_session=True, check=False).returncode)


def drive(folder: str, kind: str) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["ALEBO_TEST_MARKS"] = folder + "/marks"
    tempfile.tempdir = folder + "/tmp"
    program = (sys.executable, "-I", "-S", "-c", FAMILY + "time.sleep(300)", folder + "/marks", "{x0}")
    f: Any = CommandEvaluator(program, ("loss",)) if kind == "command" else starts_a_program
    try:
        alebo.run(create(Path(folder)), f)
    except KeyboardInterrupt as stop:
        Path(folder, "said").write_text(str(stop))
        os._exit(130)


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("command", signal.SIGINT),
        ("command", signal.SIGTERM),
        ("command", signal.SIGHUP),
        ("command", signal.SIGKILL),
        ("function", signal.SIGTERM),
        ("function", signal.SIGKILL),
    ],
)
def test_no_process_and_no_folder_outlives_the_driver(tmp_path: Path, kind: str, number: signal.Signals) -> None:
    marks, temporary = tmp_path / "marks", tmp_path / "tmp"
    marks.mkdir()
    temporary.mkdir()
    process = multiprocessing.get_context("fork").Process(target=drive, args=(str(tmp_path), kind))
    process.start()
    until = time.monotonic() + 30
    while len(list(marks.iterdir())) < 3:
        assert time.monotonic() < until, "the program did not start"
        time.sleep(0.02)
    os.kill(process.pid or 0, number)
    process.join(timeout=20)
    assert gone(marks, 3)
    if number == signal.SIGKILL:
        assert process.exitcode == -signal.SIGKILL
    else:
        assert process.exitcode == 130
        said = (tmp_path / "said").read_text()
        assert "To go on, run the same command again" in said
        assert (number.name in said) == (number != signal.SIGINT)
    until = time.monotonic() + 10
    while list(temporary.glob("alebo-run-*")):
        assert time.monotonic() < until, "a temporary folder stayed"
        time.sleep(0.05)
    again = alebo.Study.open(tmp_path / "s.log")
    assert again.claim(1)[0].number == 0  # the same trial, at once


def test_a_timeout_ends_what_a_python_function_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALEBO_TEST_MARKS", str(tmp_path / "marks"))
    (tmp_path / "marks").mkdir()
    opt = alebo.run(create(tmp_path, budget=1), starts_a_program, timeout=2.0)
    assert "longer than 2.0" in (opt.history[0].reason or "")
    assert gone(tmp_path / "marks", 3)


def test_every_trial_writes_its_own_file(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1], 'w').write(sys.argv[2]); print(1.0)"
    words = (sys.executable, "-I", "-S", "-c", code, str(tmp_path / "out_{number}.dat"), "{seed} {x0}")
    alebo.run(create(tmp_path), CommandEvaluator(words, ("loss",)), workers=2)
    assert sorted(p.name for p in tmp_path.glob("out_*")) == [f"out_{k}.dat" for k in range(4)]
    seeds = {p.read_text().split()[0] for p in tmp_path.glob("out_*")}
    assert len(seeds) == 4


def tells_its_trial(params: dict[str, Any]) -> float:
    return float(os.environ["ALEBO_TRIAL"])


def test_a_python_function_finds_its_trial_in_the_environment(tmp_path: Path) -> None:
    history = alebo.run(create(tmp_path), tells_its_trial, workers=2).history
    assert [t.outcomes["loss"].mean for t in history] == [0.0, 1.0, 2.0, 3.0]


def test_a_step_has_its_seconds(tmp_path: Path) -> None:
    steps: list[Any] = []
    alebo.run(create(tmp_path), tells_its_trial, on_step=steps.append)
    assert [s.trial.number for s in steps] == [0, 1, 2, 3]
    assert all(s.ask_seconds > 0 and s.evaluation_seconds > 0 for s in steps)


class Computes(Sobol):
    """A method that is interrupted while compiled code computes, which swallows the interrupt."""

    def suggest(self, *args: Any, **kwargs: Any) -> Any:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
        except KeyboardInterrupt:
            pass
        return super().suggest(*args, **kwargs)


def test_an_interrupt_that_a_method_swallows_still_stops_and_its_points_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    study = alebo.Study.create(tmp_path / "s.log", SPACE, GOAL, method=Sobol(), seed=3, budget=4)
    monkeypatch.setattr(study._opt, "method", Computes())
    try:
        with pytest.raises(KeyboardInterrupt, match="run the same command again"):
            alebo.run(study, tells_its_trial)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)
    assert len(alebo.Study.open(tmp_path / "s.log").history) == 0
