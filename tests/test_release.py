"""A release as a user meets it: wheel and sdist install into a clean environment, work, and show their types."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import alebo
from tests.conftest import require_part

ROOT = Path(__file__).parents[1]
SITE = sysconfig.get_paths()["purelib"]
# What `pip install alebo` brings without extras; everything else is hidden from the clean environment.
EXTRAS = ("matplotlib", "plotly", "cma", "smac", "dask", "sklearn", "mujoco", "psycopg2")


HEAVY = ",".join(
    f"{name}.*" for name in ("torch", "botorch", "gpytorch", "linear_operator", "scipy", "numpy", "optuna")
)
OUTSIDE = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}  # what is installed is tested, not the sources


def call(*words: str | Path, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        [str(w) for w in words], cwd=cwd, env={**OUTSIDE, **env}, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    there = find_spec("build") is not None and find_spec("hatchling") is not None
    require_part("build and hatchling", there, 'Install them: pip install "alebo[dev]".')
    out = tmp_path_factory.mktemp("dist")
    # the sdist first and the wheel from it, as for an upload; the builder is here already, so nothing is fetched
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    return out


@pytest.fixture(scope="module")
def clean(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel in it. Its dependencies come from here by a path file: Torch is not fetched again."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    call(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    (wheel,) = dist.glob("*.whl")
    call(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder.parent)
    site = next(folder.glob("lib/python*/site-packages"))
    hide = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r}))"
    (site / "zz_borrowed.pth").write_text(f"{SITE}\n{hide}\n")
    return python


def test_what_is_in_the_packages(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    assert alebo.__version__ in wheel.name
    inside = zipfile.ZipFile(wheel).namelist()
    for needed in ("alebo/py.typed", "alebo/data/report/page.html", "alebo/data/containment.json", "alebo/cli/app.py"):
        assert needed in inside
    assert not [n for n in inside if n.startswith(("tests", "docs", "results")) or n.endswith(".pyc")]
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        names = {n.partition("/")[2] for n in file.getnames()}
    assert {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "src/alebo/__init__.py"} <= names


def test_the_version_has_its_place_in_the_changelog() -> None:
    assert f"## [{alebo.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_minimize_works_without_extras(clean: Path, tmp_path: Path) -> None:
    code = (
        "import alebo, sys\n"
        "assert 'venv' in alebo.__file__, alebo.__file__\n"
        "r = alebo.minimize(lambda x: (x[3] - 0.2) ** 2, [(0, 1)] * 20, budget=10, seed=1)\n"
        "print(len(r.x), len(r.trace), r.fun < 0.2)\n"
    )
    assert call(clean, "-W", "ignore", "-c", code, cwd=tmp_path).split() == ["20", "10", "True"]


def test_new_and_run_work_without_extras_and_a_missing_extra_is_named(clean: Path, tmp_path: Path) -> None:
    command = clean.with_name("alebo")
    assert call(command, "--version", cwd=tmp_path).strip() == alebo.__version__
    assert "advise" in call(command, "--help", cwd=tmp_path)
    flags = ("--param", "x[20]=0:1", "--minimize", "y", "--command", "echo {x3}", "--budget", "3", "--method", "sobol")
    call(command, "new", *flags, cwd=tmp_path)
    assert "Best: trial" in call(command, "run", cwd=tmp_path)
    text = (tmp_path / "study.toml").read_text()
    (tmp_path / "cma.toml").write_text(text.replace('"sobol"', '"cmaes"').replace("study.journal", "cma.journal"))
    done = subprocess.run([command, "run", "cma.toml"], cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install" in done.stderr
    assert "cma" in done.stderr
    assert "Traceback" not in done.stderr


def test_type_hints_are_visible_to_users(clean: Path, tmp_path: Path) -> None:
    require_part("mypy", find_spec("mypy") is not None, 'Install it: pip install "alebo[dev]".')
    script = tmp_path / "user.py"
    script.write_text(
        "import alebo\n"
        "space = alebo.Space([alebo.Float('gain', 0.0, 1.0)])\n"
        "opt = alebo.Optimizer(space, alebo.Minimize('loss'), seed=0)\n"
        "reveal_type(opt.ask(2))\n"
        "reveal_type(alebo.minimize(lambda x: 1.0, [(0, 1)]).fun)\n"
        "alebo.Float('gain', '0', 1.0)\n"
    )
    # only our own types are asked for: those of Torch and its like take mypy half a minute to read
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nfollow_imports = silent\n[mypy-{HEAVY}]\nfollow_imports = skip\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--python-executable", clean, "--cache-dir", tmp_path / "c", script],
        cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert (
        'Revealed type is "builtins.list[alebo.history.Trial]"' in done.stdout
        or "list[alebo.history.Trial]" in done.stdout
    )
    assert "float" in done.stdout
    assert 'incompatible type "str"' in done.stdout  # a user's mistake is found
    assert "import-untyped" not in done.stdout
    assert "import-not-found" not in done.stdout
