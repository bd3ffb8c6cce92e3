"""What is offered elsewhere fits the package: the OptunaHub package, the conda-forge recipe, the container, the metadata."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

import alebo
from alebo.integrations.optuna import EmbeddingSampler
from tests.conftest import require_part

ROOT = Path(__file__).parents[2]
CONTRIB = ROOT / "contrib"
HUB = CONTRIB / "optunahub" / "package" / "samplers" / "alebo"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def loaded() -> Any:
    spec = importlib.util.spec_from_file_location("hub_alebo", HUB / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_hub_package_has_all_files_and_the_header_that_the_registry_wants() -> None:
    assert {p.name for p in HUB.iterdir() if p.is_file()} == {
        "LICENSE",
        "README.md",
        "__init__.py",
        "example.py",
        "requirements.txt",
    }
    head = yaml.safe_load((HUB / "README.md").read_text().split("---")[1])
    assert {k: type(v) for k, v in head.items()} == {
        "author": str,
        "title": str,
        "description": str,
        "tags": list,
        "optuna_versions": list,
        "license": str,
    }
    assert head["license"] == "MIT License"
    assert "sampler" in head["tags"]
    assert all(isinstance(v, str) for v in head["tags"] + head["optuna_versions"])
    assert (HUB / "LICENSE").read_text().startswith("MIT License")
    assert "<COPYRIGHT HOLDER>" not in (HUB / "LICENSE").read_text()
    assert (HUB / "requirements.txt").read_text().split() == ["alebo"]


def test_the_hub_page_names_every_argument() -> None:
    page = (HUB / "README.md").read_text()
    for name in inspect.signature(EmbeddingSampler).parameters:
        assert f"`{name}`" in page
    for section in ("Abstract", "APIs", "Installation", "Example"):
        assert f"\n## {section}\n" in page


def test_the_hub_module_is_the_sampler_and_its_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loaded().EmbeddingSampler is EmbeddingSampler
    stand_in = type(sys)("optunahub")
    stand_in.load_module = lambda package: loaded()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "optunahub", stand_in)
    program = re.findall(r"```python\n(.*?)```", (HUB / "README.md").read_text(), flags=re.DOTALL)[0]
    for text in (program, (HUB / "example.py").read_text()):
        assert "n_trials=50" in text
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(text.replace("n_trials=50", "n_trials=2"), "example", "exec"), names)
        assert len(names["study"].trials) == 2


def test_the_hub_package_loads_by_optunahub() -> None:
    there = find_spec("optunahub") is not None
    require_part("optunahub", there, "Install it: pip install optunahub.", in_dev=False)
    import optunahub

    module = optunahub.load_local_module("samplers/alebo", registry_root=str(CONTRIB / "optunahub" / "package"))
    assert module.EmbeddingSampler is EmbeddingSampler


def test_the_hub_package_passes_ruff_with_the_rules_of_the_registry() -> None:
    for words in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, str(CONTRIB / "optunahub")], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_conda_recipe_needs_what_the_package_needs() -> None:
    recipe = yaml.safe_load((CONTRIB / "conda-forge" / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == alebo.__version__
    assert PROJECT["requires-python"] == f">={recipe['context']['python_min']}"
    ours = {re.sub(r"^torch>", "pytorch>", d) for d in PROJECT["dependencies"]}
    theirs = {d.replace(" ", "") for d in recipe["requirements"]["run"] if not d.startswith("python ")}
    assert theirs == ours
    builder = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert {d.replace(" ", "") for d in recipe["requirements"]["host"]} >= set(builder)
    (script,) = recipe["build"]["python"]["entry_points"]
    assert dict([script.split(" = ")]) == PROJECT["scripts"]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert f"ALEBO and {len(alebo.methods.METHODS) - 1} other methods" in recipe["about"]["description"]


def test_the_container_copies_what_is_there_and_installs_known_extras() -> None:
    text = (CONTRIB / "container" / "Containerfile").read_text()
    for line in re.findall(r"^COPY (?!--from)(.*)$", text, flags=re.M):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
    (extras,) = re.findall(r"^ARG EXTRAS=(.*)$", text, flags=re.M)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    needed = {PROJECT["readme"], *PROJECT["license-files"]}  # the builder reads them
    assert all(name in text for name in needed)


def test_the_metadata_of_the_package_are_complete() -> None:
    for key in ("description", "readme", "requires-python", "license", "license-files", "authors", "keywords", "urls"):
        assert PROJECT[key], key
    pythons = {c.rsplit(" ", 1)[-1] for c in PROJECT["classifiers"] if "Python :: 3." in c}
    assert min(pythons, key=lambda v: tuple(map(int, v.split(".")))) == PROJECT["requires-python"].removeprefix(">=")
    assert any(c.startswith("Topic ::") for c in PROJECT["classifiers"])
    assert "Typing :: Typed" in PROJECT["classifiers"]
    for extra, lines in PROJECT["optional-dependencies"].items():
        for line in lines:
            assert re.search(r"[<>=~]|^alebo\[", line), f"{extra}: {line} has no range"
