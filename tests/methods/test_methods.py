"""All methods at once: what METHODS says of each, what each refuses, and the page that lists them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import alebo
from alebo.methods import METHODS, lookup
from alebo.methods._method import ABILITIES, Supports

from . import laws

PAGE = (Path(__file__).parents[2] / "docs" / "methods.md").read_text()


@pytest.mark.parametrize("name", METHODS)
def test_it_refuses_with_messages_and_is_plain_data(name: str) -> None:
    laws.is_plain_data(METHODS[name]())
    laws.refuses(METHODS[name]())


def test_every_ability_has_words() -> None:
    assert list(ABILITIES) == list(Supports.__dataclass_fields__)


def test_the_page_has_every_method_and_what_it_takes() -> None:
    rows = {
        name: [cell == "yes" for cell in map(str.strip, cells.split("|"))]
        for name, cells in re.findall(r"^\| `([\w-]+)` \|(.*)\|$", PAGE, flags=re.MULTILINE)
    }
    assert rows == {name: [getattr(m.supports, a) for a in ABILITIES] for name, m in METHODS.items()}
    for name in METHODS:
        assert re.search(rf"^## .*\(.*`{name}`.*\)", PAGE, flags=re.MULTILINE), name


def test_a_linear_constraint_is_refused_with_the_parameters_it_names() -> None:
    space = alebo.Space([alebo.Float("a", 0, 1), alebo.Float("b", 0, 1)], [alebo.LinearConstraint({"a": 1, "b": 1}, 1)])
    with pytest.raises(
        alebo.InputError, match=r"TuRBO .*linear constraints.*; got 'a', 'b'\. Methods that are: adaptive, alebo\."
    ):
        alebo.Optimizer(space, alebo.Minimize("loss"), method=METHODS["turbo"]())


def test_many_names_are_cut_short() -> None:
    space = alebo.Space([alebo.Int(f"i{k}", 1, 9) for k in range(30)])
    with pytest.raises(alebo.InputError, match=r"got 'i0', 'i1', 'i2', 'i3', \.\.\.\. Methods"):
        alebo.Optimizer(space, alebo.Minimize("loss"), method=METHODS["random-linebo"]())


def test_a_name_that_is_none_of_them() -> None:
    with pytest.raises(alebo.InputError, match=r"got 'trubo'. Did you mean 'turbo'\?"):
        lookup("trubo")


def wrong_values(default: object) -> list[object]:
    """Values that no setting with this default can have."""
    if isinstance(default, bool):
        return ["yes", 2]
    if isinstance(default, int):
        return ["x", 1.5, -1, None, True]
    if isinstance(default, float):
        return ["x", float("nan"), None]
    return ["x", 1.5, -1] if default is None else [7]


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_is_checked(name: str) -> None:
    for key, known in METHODS[name].settings().items():
        if key in ("acquisition", "directions"):  # a function of the user's own
            continue
        for value in wrong_values(known.default):
            with pytest.raises(alebo.InputError, match=key):
                METHODS[name](**{key: value})


def test_a_count_beyond_memory_is_refused() -> None:
    for build in (lambda: alebo.ALEBO(initial=10**9), lambda: METHODS["turbo"](candidates=10**9)):
        with pytest.raises(alebo.InputError, match="<= 100000` must hold"):
            build()
    with pytest.raises(alebo.InputError, match="whole number"):
        alebo.ALEBO(initial=1e9)  # type: ignore[arg-type]
