"""How a method is written on the command line, and the settings that the paper used for each problem.

`alebo` is a method with its defaults, `alebo(dim=4)` one with settings, `small=alebo(dim=4)` the same under a label
of your own (it names the file of results). Variants such as `alebo-paper` read the problem's dimensions themselves.
A third party's method is `module:Class`, with settings like any other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import alebo
from alebo import AleboError, InputError
from alebo.methods import METHODS, Method, build, to_dict

from ._format import NAME
from .problems import Problem
from .problems._problem import resolve

_TEXT = re.compile(r"(?:(?P<label>[^=()]+)=)?(?P<name>[^=()]+)(?:\((?P<settings>.*)\))?")


class Unfit(InputError):
    """The method is not defined for this problem; others may be."""


def _need(problem: Problem, what: str) -> int:
    value: int | None = getattr(problem, what)
    if value is None:
        raise Unfit(
            f"Variants named after the paper need the problem's `{what}`; {problem.name!r} states none. "
            "Give the dimension yourself: alebo(dim=8)."
        )
    return value


def _paper(problem: Problem, settings: dict[str, Any]) -> Method:
    chosen = dict(settings)
    made = to_dict(alebo.ALEBO.paper(dim=chosen.pop("dim", None) or _need(problem, "paper_dim")))
    metric = made.pop("metric")
    renamed = alebo.ALEBO.renamed({"metric": "laplace", **chosen})
    inner = renamed.pop("metric", {})
    return build(**made | renamed, metric=metric | (inner if isinstance(inner, dict) else {}))


def _fixed(name: str, of: Callable[[Problem], int]) -> Callable[[Problem, dict[str, Any]], Method]:
    return lambda problem, settings: build(
        name, **(settings if "dim" in settings else {"dim": of(problem), **settings})
    )


def _d(problem: Problem) -> int:
    return _need(problem, "active")


def _peer(name: str, **fixed: Any) -> Callable[[Problem, dict[str, Any]], Method]:
    def make(problem: Problem, settings: dict[str, Any]) -> Method:
        from . import peers

        try:
            made: Method = getattr(peers, name)(**{**fixed, **settings})
        except TypeError as error:
            raise InputError(f"{name!r} cannot be built with {settings}: {error}.") from None
        return made

    return make


# Variants that read the problem's dimensions: d (`active`) and d_e (`paper_dim`), as the paper set them.
VARIANTS: dict[str, Callable[[Problem, dict[str, Any]], Method]] = {
    "alebo-fixed": _fixed("alebo", lambda p: _need(p, "paper_dim")),
    "alebo-paper": _paper,
    "rembo-d": _fixed("rembo", _d),
    "rembo-phi-d": _fixed("rembo-phi", _d),
    "rembo-gamma-d": _fixed("rembo-gamma", _d),
    "hesbo-d": _fixed("hesbo", _d),
    "hesbo-2d": _fixed("hesbo", lambda p: 2 * _d(p)),
    # other libraries, in their own defaults
    "optuna-tpe": _peer("OptunaSampler", kind="tpe"),
    "optuna-gp": _peer("OptunaSampler", kind="gp"),
    "ax": _peer("Ax"),
    "nevergrad": _peer("Nevergrad"),
    "botorch-tutorial": _peer("BoTorchTutorial"),
}


@dataclass(frozen=True)
class Label:
    """A method as written: its label (a file's name), its name and settings; `make` builds the method."""

    text: str
    label: str
    name: str
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Label:
        """Read `name`, `name(setting=value, ...)` or `label=name(...)`; the name is checked, the settings by `make`."""
        match = _TEXT.fullmatch(text.strip())
        if not match:
            raise InputError(f"A method is written name, name(setting=value) or label=name(...); got {text!r}.")
        name = match["name"].strip()
        settings = _settings(text, match["settings"])
        if name not in VARIANTS:
            resolve(name, METHODS, "method", tuple(VARIANTS))
        label = (match["label"] or _default_label(name, settings)).strip()
        if not NAME.fullmatch(label):
            raise InputError(
                f"A label names a file: letters, digits and . _ + - only; got {label!r} from {text!r}. "
                "Write mine=name(...) with a label of your own."
            )
        return cls(text.strip(), label, name, settings)

    def make(self, problem: Problem) -> Method:
        """The method for this problem."""
        if self.name in VARIANTS:
            return VARIANTS[self.name](problem, dict(self.settings))
        if self.name in METHODS:
            return build(self.name, **self.settings)
        found = resolve(self.name, METHODS, "method", tuple(VARIANTS))
        try:
            made = found if isinstance(found, Method) and not self.settings else found(**self.settings)
        except TypeError as error:
            raise InputError(f"{self.name!r} cannot be built with {self.settings}: {error}.") from None
        except AleboError:
            raise
        except Exception as error:
            raise InputError(
                f"{self.name!r} cannot be built with {self.settings}: {type(error).__name__}: {error}."
            ) from error
        if not isinstance(made, Method):
            raise InputError(f"A method is an alebo.methods.Method; {self.name!r} gave {type(made).__name__}.")
        return made


def describe(method: Method) -> dict[str, Any]:
    """The method's name and settings as plain data, for the record of a run."""
    plain = (str, int, float, bool, dict, type(None))
    return {k: v if isinstance(v, plain) else repr(v) for k, v in to_dict(method).items()}


def split(text: str) -> list[str]:
    """Cut at commas that are outside brackets: `a,b(c=1,d=2)` is two methods."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def labels(text: str) -> list[Label]:
    """All methods of a comma-separated list, with labels that differ."""
    found = [Label.parse(part) for part in split(text)]
    if not found:
        raise InputError("Name one method or more, such as --method alebo,hesbo-2d; got none.")
    names = [label.label for label in found]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InputError(
            f"Methods of one sweep need different labels; got {twice} more than once. Write mine=name(...)."
        )
    return found


def _settings(text: str, inside: str | None) -> dict[str, Any]:
    if not inside or not inside.strip():
        return {}
    out: dict[str, Any] = {}
    for part in split(inside):
        key, equals, value = part.partition("=")
        if not equals or not key.strip().isidentifier():
            raise InputError(f"Settings are written setting=value; got {part!r} in {text!r}.")
        try:
            out[key.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            out[key.strip()] = value.strip()  # a bare word is text
    return out


def _default_label(name: str, settings: dict[str, Any]) -> str:
    base = name.replace(":", "-").replace("_", "-")
    return "-".join([base, *(f"{key}{value}" for key, value in settings.items())]).replace(" ", "")
