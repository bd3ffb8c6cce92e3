"""The package: quick to import, and every public name is found."""

from __future__ import annotations

import subprocess
import sys

import pytest

import alebo

HEAVY = ("torch", "botorch", "gpytorch", "optuna", "matplotlib", "plotly", "mujoco", "smac", "cma", "scipy.optimize")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_nothing_heavy() -> None:
    loaded = run(f"import sys, alebo; print([m for m in {HEAVY!r} if m in sys.modules])")
    assert loaded == "[]"


def test_ask_and_tell_load_no_optional_part() -> None:
    """A run with the default method needs no optional library."""
    optional = ("optuna", "matplotlib", "plotly", "mujoco", "smac", "cma")
    code = (
        "import sys, alebo\n"
        "opt = alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * 20), alebo.Minimize('loss'), seed=0)\n"
        "for t in opt.ask(2): opt.tell(t.number, t.params['x0'])\n"
        "opt.ask()\n"
        f"print([m for m in {optional!r} if m in sys.modules])"
    )
    assert run(code) == "[]"


@pytest.mark.parametrize("name", alebo.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(alebo, name) is not None
    assert name in dir(alebo)


def test_a_public_name_is_the_same_thing_everywhere() -> None:
    from alebo.space import Space

    assert alebo.Space is Space
    assert alebo.methods.METHODS["alebo"] is alebo.ALEBO


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Optimiser"):
        _ = alebo.Optimiser


def test_errors_are_one_family() -> None:
    assert issubclass(alebo.InputError, ValueError)
    assert issubclass(alebo.StateError, RuntimeError)
    assert issubclass(alebo.StudyError, RuntimeError)
    assert issubclass(alebo.MissingPartError, ImportError)
    for error in (alebo.InputError, alebo.StateError, alebo.EvaluationError, alebo.StudyError, alebo.MissingPartError):
        assert issubclass(error, alebo.AleboError)


def test_public_functions_take_options_by_keyword_only() -> None:
    """ARCHITECTURE: everything after `*` is keyword-only."""
    with pytest.raises(TypeError):
        alebo.Optimizer(alebo.Space.from_bounds([(0, 1)]), alebo.Minimize("y"), alebo.methods.METHODS["sobol"]())  # type: ignore[misc]


def test_typed_package() -> None:
    from importlib.resources import files

    assert files("alebo").joinpath("py.typed").is_file()


def test_minimize_needs_no_posix_and_a_stored_study_says_that_it_does() -> None:
    """As on Windows, where there is no fcntl."""
    code = (
        "import sys; sys.modules['fcntl'] = None\n"
        "import alebo\n"
        "print(alebo.minimize(lambda x: x[0], [(0, 1)] * 3, budget=2, method='sobol').nfev)\n"
        "try:\n    alebo.Study\nexcept alebo.MissingPartError as error:\n    print(error)\n"
    )
    said = run(code)
    assert said.startswith("2\n")
    assert "POSIX" in said
    assert "WSL" in said


def test_the_public_names_stand_in_one_place() -> None:
    from pathlib import Path

    source = Path(alebo.__file__).read_text()
    assert not [name for name in alebo.__all__ if name != "__version__" and f'"{name}"' in source]
