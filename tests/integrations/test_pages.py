"""The programs on the pages for users of other libraries run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import require_module

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    "optuna": ("optuna", "study"),
    "sklearn": ("sklearn", "sklearn"),
    "ax": ("ax", "ax"),
    "mlflow": ("mlflow", "mlflow"),
}  # page: the module it needs, and the extra that brings it


@pytest.mark.parametrize("page", PAGES)
def test_every_program_on_the_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_module(*PAGES[page])
    programs = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(), flags=re.DOTALL)
    assert programs
    monkeypatch.chdir(tmp_path)
    for program in programs:
        exec(compile(program, f"{page}.md", "exec"), {"__name__": "__main__"})
