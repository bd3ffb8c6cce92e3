"""`alebo bench suite run`: what is there already, what failed, what is left out, and what Ctrl-C leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

import alebo
from alebo.bench import PROBLEMS, experiment, replication, store
from alebo.bench import suite as suites
from alebo.bench.cli import app
from alebo.bench.labels import Unfit, labels
from alebo.bench.problems import problem
from alebo.bench.results import load
from alebo.bench.suite import Suite, suite

ENTRY = suite("synthetic").entries[0]
(ROVER,) = [e for e in suite("real").entries if e.name == "rover-60"]


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A suite of a problem that runs and one whose part is there while the list is empty."""
    gone: list[bool] = []

    def build() -> object:
        if gone:
            raise alebo.MissingPartError("It needs a part.")
        return replace(problem("gramacy-100"), name="part-9")

    monkeypatch.setitem(PROBLEMS, "part-9", build)
    entries = (replace(ENTRY, budget=2), replace(ENTRY, name="part-9", budget=2, penalised="levy20-100"))
    monkeypatch.setattr(suites, "suites", lambda: {"two": Suite("two", "", entries)})
    return gone


def sweep(out: Path, *more: str, methods: str = "sobol", seeds: str = "0-1") -> Result:
    return CliRunner().invoke(
        app, ["suite", "run", "two", "--methods", methods, "--seeds", seeds, "--jobs", "1", "--out", str(out), *more]
    )


def keep(out: Path, name: str, method: str, seeds: range, budget: int = 2) -> None:
    """Complete runs, without a process of their own."""
    for task in experiment.plan([name], labels(method), seeds, out, budget=budget):
        store.append(task.path, replication(problem(name), method, task.seed, budget=budget) | {"problem": name})


def test_stored_runs_of_a_problem_that_cannot_be_built_are_there_already(missing: list[bool], tmp_path: Path) -> None:
    keep(tmp_path, "branin-100", "sobol", range(2))
    keep(tmp_path, "part-9", "sobol", range(2))
    missing.append(True)
    done = sweep(tmp_path)
    assert done.exit_code == 0, done.output
    assert "0 runs made, 0 failed, 4 were there already" in done.output
    assert "failed:" not in done.output
    more = sweep(tmp_path, seeds="1-3")  # seeds 2 and 3 are made on one problem, and cannot be on the other
    assert more.exit_code == 1
    assert "failed: part-9, sobol: It needs a part." in more.output
    assert "2 runs made, 2 failed, 2 were there already" in more.output
    again = sweep(tmp_path, seeds="0-3")
    assert again.exit_code == 0
    assert "0 runs made, 0 failed, 8 were there already" in again.output
    assert "2 of these failed then" in again.output
    retried = sweep(tmp_path, "--retry-failed", seeds="0-3")
    assert retried.exit_code == 1
    assert "0 runs made, 2 failed, 6 were there already" in retried.output
    assert len(load(tmp_path).complete) == 6


def test_runs_of_the_penalised_variant_count_where_the_problem_cannot_be_built(
    missing: list[bool], tmp_path: Path
) -> None:
    keep(tmp_path, "branin-100", "sobol", range(2))
    keep(tmp_path, "levy20-100", "sobol", range(2))
    missing.append(True)
    assert "0 runs made, 0 failed, 4 were there already" in sweep(tmp_path).output
    assert not (tmp_path / "part-9").exists()


def test_nothing_is_stored_as_failed_before_every_pair_is_checked(missing: list[bool], tmp_path: Path) -> None:
    missing.append(True)
    turned = replace(suites.suite("two"), entries=suites.suite("two").entries[::-1])
    with pytest.raises(alebo.InputError, match="has no setting"):
        suites.plan(turned, labels("sobol,wrong=sobol(center=True)"), [0], tmp_path)
    assert not list(tmp_path.rglob("*.jsonl"))


def test_a_method_that_needs_what_a_problem_does_not_state_is_left_out_there(
    missing: list[bool], tmp_path: Path
) -> None:
    keep(tmp_path, "branin-100", "sobol", range(1))
    keep(tmp_path, "part-9", "sobol", range(1))
    entries = (*suites.suite("two").entries, replace(ROVER, budget=2))
    plan = suites.plan(Suite("three", "", entries), labels("alebo-fixed,sobol"), [0], tmp_path)
    assert [(t.problem, t.label) for t in plan.tasks if t.label == "sobol"] == [
        ("branin-100", "sobol"),
        ("part-9", "sobol"),
        ("rover-60", "sobol"),
    ]
    assert ("branin-100", "alebo-fixed") in [(t.problem, t.label) for t in plan.tasks]
    (why,) = plan.refused
    assert why.startswith("rover-60, alebo-fixed: Variants named after the paper need the problem's `paper_dim`")
    with pytest.raises(Unfit, match="paper_dim"):
        experiment.plan(["rover-60"], labels("alebo-fixed"), [0], tmp_path)
    (given,) = labels("alebo-fixed(dim=5)")
    assert given.make(problem("rover-60")).dim == 5


def test_a_sweep_goes_on_where_no_problem_states_what_a_method_needs(
    missing: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suites, "suites", lambda: {"two": Suite("two", "", (replace(ROVER, budget=2),))})
    both = sweep(tmp_path, methods="alebo-fixed,sobol", seeds="0")
    assert both.exit_code == 0, both.output
    assert "left out: rover-60, alebo-fixed: " in both.output
    assert "1 runs made, 0 failed, 0 were there already" in both.output
    one = sweep(tmp_path, methods="alebo-fixed", seeds="0")
    assert one.exit_code == 0
    assert "left out: rover-60, alebo-fixed: " in one.output
    assert "0 runs made, 0 failed, 0 were there already" in one.output


def test_shorter_runs_are_left_out_and_named_also_where_nothing_else_is_to_be_made(
    missing: list[bool], tmp_path: Path
) -> None:
    keep(tmp_path, "branin-100", "sobol", range(2), budget=1)
    keep(tmp_path, "part-9", "sobol", range(2), budget=1)
    for _ in range(2):  # with the part, and without it
        done = sweep(tmp_path)
        assert done.exit_code == 0, done.output
        for name in ("branin-100", "part-9"):
            assert f"left out: {name}, sobol: 1 evaluations are stored, 2 are wanted (seeds 0, 1)." in done.output
        assert "0 runs made, 0 failed, 0 were there already" in done.output
        missing.append(True)


SLOW = """
import sys, time
from dataclasses import replace
from alebo.bench import PROBLEMS, suite as suites
from alebo.bench.cli import main

entry = replace(suites.suite("synthetic").entries[0], name="branin-100", budget=100_000)
suites.suites = lambda: {"slow": suites.Suite("slow", "", (entry,))}
sys.argv = ["alebo", "suite", "run", "slow", "--methods", "sobol", "--seeds", "0", "--jobs", "1", "--out", sys.argv[1]]
main()
"""


def test_ctrl_c_says_in_one_line_what_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    started = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(out)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
    if not children.exists():  # no /proc: the worker's start cannot be seen
        time.sleep(8)
    for _ in range(600):
        if started.poll() is not None or (children.exists() and children.read_text().strip()):
            break
        time.sleep(0.05)
    os.kill(started.pid, signal.SIGINT)
    stdout, stderr = started.communicate(timeout=60)
    assert started.returncode == 130, stderr
    assert stderr.splitlines() == [
        "Stopped: 0 runs made, 0 failed, 0 were there already. Stored runs are kept, those in flight are lost; "
        "the same command goes on with the others."
    ]
    assert stdout == ""


@pytest.mark.parametrize("call", [["suite", "run", "two"], ["run", "--problem", "branin-100", "--method", "sobol"]])
def test_ctrl_c_before_the_first_run(
    missing: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: list[str]
) -> None:
    def stop(*args: object, **how: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(suites, "plan", stop)
    monkeypatch.setattr(experiment, "plan", stop)
    done = CliRunner().invoke(app, [*call, "--out", str(tmp_path)])
    assert done.exit_code == 130
    assert done.output.startswith("Stopped. Stored runs are kept")
    assert len(done.output.splitlines()) == 1
