"""The `alebo` command as a function, in a folder of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from alebo.cli import main

SIM = """\
import json, sys
p = json.load(open(sys.argv[1]))
print("solving")
print(sum((v - 0.3) ** 2 for v in list(p.values())[:2]))
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sim.py").write_text(SIM)
    return tmp_path


class Said:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def alebo(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str) -> Said:
        capsys.readouterr()
        code: Any = 0
        try:
            main([str(w) for w in words])
        except SystemExit as stop:
            code = stop.code
        said = capsys.readouterr()
        return Said(int(code or 0), said.out, said.err)

    return run


def new(alebo: Any, *more: str, budget: int = 6, method: str = "sobol", evaluator: Sequence[str] = ()) -> None:
    """`alebo new` of a study with 20 parameters, evaluated by sim.py unless told."""
    words = evaluator or ["--command", f"{sys.executable} -S sim.py {{params}}"]
    said = alebo(
        "new", "--param", "x[20]=0:1", "--minimize", "loss", "--budget", str(budget), "--method", method, *words, *more
    )
    assert said.code == 0, said.err


@pytest.fixture
def study(here: Path) -> Path:
    """A folder with the study by hand, s.toml."""
    from tests.cli import by_hand

    (here / "s.toml").write_text(by_hand.STUDY.format(more="", end=""))
    return here
