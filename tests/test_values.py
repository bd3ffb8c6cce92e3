"""Values are frozen: what was built and checked stays so, and arrays are not compared by `==`."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import alebo

PACKAGES = ("geometry", "models", "acquisition", "methods", "diagnostics", "runner", "integrations")
MODULES = (
    "goals",
    "space",
    "parameters",
    "history",
    "optimizer",
    "evaluator",
    "studyfile",
    "_processes",
    "_saving",
    "_result",
)
CHANGES = {"Patience", "Running", "AleboNode"}  # no values: they change while they wait, run or propose
COMPARED = {"ChainState", "Hyperparameters", "Result"}  # hold arrays, and nobody compares them


def dataclasses_of_the_package() -> Iterator[type]:
    names = [f"alebo.{m}" for m in MODULES]
    for package in PACKAGES:
        found = importlib.import_module(f"alebo.{package}")
        names += [m.name for m in pkgutil.walk_packages(found.__path__, found.__name__ + ".")]
    for name in names:
        try:
            module = importlib.import_module(name)
        except (ImportError, alebo.MissingPartError):
            continue  # an extra that is not here
        for value in vars(module).values():
            if isinstance(value, type) and dataclasses.is_dataclass(value) and value.__module__ == name:
                yield value


FOUND = list(dataclasses_of_the_package())


def test_there_are_many() -> None:
    assert len(FOUND) > 40


@pytest.mark.parametrize("kind", FOUND, ids=lambda k: k.__qualname__)
def test_a_dataclass_is_frozen(kind: type) -> None:
    if kind.__name__ not in CHANGES:
        assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", FOUND, ids=lambda k: k.__qualname__)
def test_one_that_holds_arrays_is_compared_by_identity(kind: type) -> None:
    """`==` of two arrays is an array, and `if a == b` of two such values would raise."""
    texts = [str(f.type) for f in dataclasses.fields(kind)]
    holds = any(text.split("[")[0].split(" ")[0] in ("Array", "Tensor", "NDArray", "np.ndarray") for text in texts)
    if holds:
        assert not kind.__dataclass_params__.eq or kind.__name__ in COMPARED  # type: ignore[attr-defined]
