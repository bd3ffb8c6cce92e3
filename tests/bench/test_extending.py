"""A third party's problem and method, each under 20 lines, exactly as the documentation prints them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import alebo
from alebo.bench.cli import app
from alebo.bench.problems import problem
from alebo.bench.results import load

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    blocks = re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    found = dict(blocks)
    assert set(found) == {"my_problem", "my_method", "my_model"}
    for name, text in found.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return found


def test_each_takes_under_twenty_lines(files: dict[str, str]) -> None:
    for text in files.values():
        assert len([line for line in text.splitlines() if line.strip()]) < 20


def test_the_documented_comparison_runs(files: dict[str, str]) -> None:
    call = ["run", "--problem", "my_problem:make", "--method", "sobol,near=my_method:Nearby(step=0.1)"]
    done = CliRunner().invoke(app, [*call, "--seeds", "0-1", "--budget", "8", "--out", "mine"])
    assert done.exit_code == 0, done.output
    results = load("mine")
    assert sorted({r.label for r in results.complete}) == ["near", "sobol"]
    assert len(results.complete) == 4
    record = json.loads(Path("mine/sphere-60/near.jsonl").read_text().splitlines()[0])
    assert record["method"] == {"name": "nearby", "step": 0.1}
    table = CliRunner().invoke(app, ["table", "mine", "--against", "sobol"])
    assert table.exit_code == 0, table.output


def test_the_method_is_used_like_any_other(files: dict[str, str]) -> None:
    import my_method  # type: ignore[import-not-found]

    made = problem("my_problem:make")
    assert made.value(made.outcomes(made.optimisers[0])) == pytest.approx(0.0)  # type: ignore[index]
    result = alebo.minimize(made.evaluate, made.space, 20, 1, method=my_method.Nearby(step=0.1))
    again = alebo.minimize(made.evaluate, made.space, 20, 1, method=my_method.Nearby(step=0.1))
    assert np.array_equal(result.x, again.x)
    assert result.fun < result.trace[0]


def test_the_model_is_used_by_a_method(files: dict[str, str]) -> None:
    import my_model  # type: ignore[import-not-found]

    made = problem("my_problem:make")
    result = alebo.minimize(made.evaluate, made.space, 14, 1, method=my_model.Smooth())
    assert "smooth fit" in result.history[13].note
    assert np.array_equal(result.history[0].x, np.zeros(60))
