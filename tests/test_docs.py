"""The documentation: builds with warnings as errors, and what it promises on its pages exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import require_part

pytestmark = pytest.mark.full_chains

ROOT = Path(__file__).parents[1]


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    there = all(find_spec(m) is not None for m in ("mkdocs", "material", "mkdocstrings"))
    require_part("mkdocs-material", there, 'Install it: pip install "alebo[docs]".')
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    for page in re.findall(r": (\w+)\.md", (ROOT / "mkdocs.yml").read_text()):
        folder = tmp_path / ("index.html" if page == "index" else f"{page}/index.html")
        assert folder.exists(), page
    api = (tmp_path / "api" / "index.html").read_text()
    for name in ("minimize", "Optimizer", "containment_probability", "CommandEvaluator"):
        assert f"alebo.{name}" in api or f".{name}" in api


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r": (\w+\.md)", (ROOT / "mkdocs.yml").read_text()))
    there = {p.name for p in (ROOT / "docs").glob("*.md")}
    assert named == there


def test_every_verdict_is_explained() -> None:
    source = "".join(p.read_text() for p in (ROOT / "src" / "alebo" / "diagnostics").glob("*.py"))
    written = set(re.findall(r'Verdict\(\s*"(\w+)"', source))
    page = (ROOT / "docs" / "diagnosis.md").read_text()
    assert written
    assert not [key for key in written if f"`{key}`" not in page]


def test_every_key_of_a_study_file_is_documented() -> None:
    from alebo.studyfile import KEYS

    page = (ROOT / "docs" / "start.md").read_text()
    missing = [
        f"{section}.{key}" for section, keys in KEYS.items() if section for key in keys if f"`{key}`" not in page
    ]
    assert not missing


def test_whole_programs_on_the_page_of_real_problems_run() -> None:
    page = (ROOT / "docs" / "constraints_noise.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    programs = [block for block in blocks if block.startswith("import alebo\n")]
    assert len(programs) == 3
    for program in programs:
        exec(compile(program, "constraints_noise.md", "exec"), {})
