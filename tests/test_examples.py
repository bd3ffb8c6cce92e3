"""Every example runs as it stands; the notebook runs from its first cell to its last."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import require_module

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(p.name for p in EXAMPLES.glob("*.py"))
NEEDS = {"sklearn": "tuning", "optuna": "study", "dask": "dask", "distributed": "dask", "matplotlib": "plot"}
OURS = {"tune_sklearn.py", "constraints.py", "ask_tell.py", "own_acquisition.py"}
ALONE = {
    "ask_tell.py",
    "dask_batch.py",
}  # as programs of their own: one of the others' kind, and one that starts processes
ENV = {**os.environ, "ALEBO_BUDGET": "13", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}


def test_the_examples_are_there() -> None:
    assert set(SCRIPTS) >= OURS
    assert (EXAMPLES / "simulator" / "study.toml").exists()


@pytest.mark.parametrize("script", SCRIPTS)
def test_script(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (EXAMPLES / script).read_text()
    for module, extra in NEEDS.items():
        if re.search(rf"^\s*(import|from) {module}\b", text, flags=re.M):
            require_module(module, extra)
    if script in ALONE:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / script)], cwd=tmp_path, env=ENV, capture_output=True, text=True, timeout=500
        )
        assert done.returncode == 0, done.stderr[-2000:]
        said = done.stdout
    else:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [script])
        for name in ("ALEBO_BUDGET", "MPLBACKEND"):
            monkeypatch.setenv(name, ENV[name])
        runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        said = capsys.readouterr().out
    assert said.strip()
    if script in OURS:
        assert "best" in said


def test_a_simulator_by_external_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_module("optuna", "study")
    from alebo.cli import main

    shutil.copytree(EXAMPLES / "simulator", tmp_path / "simulator")
    monkeypatch.chdir(tmp_path / "simulator")
    with pytest.raises(SystemExit) as stop:
        main(["run", "study.toml", "--budget", "9", "--json"])
    assert not stop.value.code
    found = json.loads(capsys.readouterr().out)
    assert found["failed"] == 0
    assert found["evaluations"] == 9
    assert found["best"]["outcomes"]["weight"] <= 0.75


def test_the_notebook_runs(tmp_path: Path) -> None:
    if find_spec("nbclient") is None or find_spec("ipykernel") is None:
        require_module("nbclient", "docs")
        require_module("ipykernel", "docs")
    require_module("matplotlib", "plot")
    code = (
        "import nbformat, nbclient, sys\n"
        "nb = nbformat.read(sys.argv[1], as_version=4)\n"
        "nbclient.NotebookClient(nb, timeout=400, kernel_name='python3').execute(cwd=sys.argv[2])\n"
        "print('CELLS', sum(c.cell_type == 'code' for c in nb.cells))\n"
    )
    # in a process of its own: Jupyter's client leaves warnings and sockets behind that are none of our business
    kernel = {**ENV, "ALEBO_BUDGET": "9", "JUPYTER_PLATFORM_DIRS": "1", "IPYTHONDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(EXAMPLES / "first_look.ipynb"), str(tmp_path)],
        env=kernel, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "CELLS" in done.stdout
