"""What the documents promise: the README's examples run, its links lead somewhere, the docstrings' examples hold."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

import alebo

pytestmark = pytest.mark.full_chains

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def test_the_examples_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    found = blocks(README)
    assert len(found) >= 2
    for i, block in enumerate(found):
        short = block.replace("budget=30", "budget=12") if i > 1 else block  # the later ones only have to run
        exec(compile(short, "README.md", "exec"), names)
    result, opt = names["result"], names["opt"]
    assert isinstance(result, alebo.Result)
    assert result.fun < 0.004  # 30 uniformly random points end at 0.03 in the median, and below 0.004 once in ten
    assert len(result.trace) == 30
    assert isinstance(opt, alebo.Optimizer)
    assert len(opt.history.complete) == 12
    assert (tmp_path / "study.json").is_file()


def test_make_and_alebo_know_the_words_of_the_readme() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w[\w-]*)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    from typer.main import get_command

    from alebo.cli.app import app

    known = set(getattr(get_command(app), "commands", {}))
    said = {
        word.strip()
        for line in re.findall(r"^alebo ([a-z |]+)", README, flags=re.MULTILINE)
        for word in line.split("  ")[0].split("|")
    }
    assert {w.split()[0] for w in said} <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages_name_no_machine(page: Path) -> None:
    assert not re.search(r"(?<![\w.])/(?:root|work|tmp|home)/", page.read_text())


@pytest.mark.parametrize(
    "module",
    [
        "alebo",
        "alebo.optimizer",
        "alebo._minimize",
        "alebo.space",
        "alebo.parameters",
        "alebo.goals",
        "alebo.geometry.embedding",
        "alebo.integrations.optuna",
        "alebo.integrations.sklearn",
        "alebo.integrations._hosts",
    ],
)
def test_examples_in_docstrings(module: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_version_is_the_same_everywhere() -> None:
    assert f"## [{alebo.__version__}]" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {alebo.__version__}" in (ROOT / "CITATION.cff").read_text()
