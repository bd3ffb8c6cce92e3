"""`alebo methods`: what there is to choose from, and the settings of each."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from ._out import out, print_json, say

SHORT = {
    "constraints": "bounds",
    "objectives": "fronts",
    "integers": "whole",
    "categories": "choices",
}  # heads of columns


def methods(name: str | None, *, as_json: bool) -> None:
    """Print the methods with what each takes, or one of them in full."""
    from ..methods import METHODS, lookup

    chosen = METHODS if name is None else {name: lookup(name)}
    if as_json:
        print_json([_described(m) for m in chosen.values()])
    elif name is None:
        _print_all()
    else:
        _print_one(chosen[name])


def _described(method: Any) -> dict[str, Any]:
    return {
        "name": method.name,
        "title": method.title,
        "citation": method.citation,
        "supports": dataclasses.asdict(method.supports),
        "settings": {key: value.to_dict() for key, value in method.settings().items()},
    }


def _print_all() -> None:
    from ..methods import METHODS, default_method
    from ..methods._method import ABILITIES

    width = max(map(len, METHODS))
    show = out()
    heads = {a: SHORT.get(a, a) for a in ABILITIES}  # so that the table fits 80 columns
    say(show, " ".join([" " * width, *heads.values()]).rstrip(), "bold")
    for name, method in METHODS.items():
        marks = [("yes" if getattr(method.supports, a) else "-").center(len(h)) for a, h in heads.items()]
        say(show, " ".join([name.ljust(width), *marks]).rstrip())
    say(
        show,
        f"\n{'; '.join(f'{SHORT.get(a, a)}: {words}' for a, words in ABILITIES.items())}.\nEvery one takes real parameters and one objective; {default_method().name} is the default. "
        "One in full, with its settings: alebo methods turbo",
    )


def _print_one(method: Any) -> None:
    from ..methods._method import ABILITIES

    show = out()
    say(show, f"{method.title} ({method.name})", "bold")
    say(show, f"{inspect.cleandoc(method.__doc__)}\n\n{method.citation}.")
    for title, able in (("Takes", True), ("Refuses", False)):
        words = [w for a, w in ABILITIES.items() if getattr(method.supports, a) is able]
        if words:
            say(show, f"{title}: {', '.join(words)}.")
    say(show, "\nSettings and their defaults:")
    for key, known in method.settings().items():
        default = known.default.type_name() if known.parts else repr(known.default)
        say(show, f"  {key} = {default}".ljust(26) + known.meaning)
        for part in known.parts:
            for inner, (value, meaning, _) in part.settings().items():
                where = f"{key}.{inner}" if len(known.parts) == 1 else f"{key}.{inner} ({part.type_name()})"
                say(show, f"    {where} = {value!r}".ljust(42) + meaning)
    say(show, f'\nIn a study.toml: method = "{method.name}", or a [method] table with name and settings.')
