"""The dialogue of `alebo new`: each answer is checked when it is given, and asked for again alone."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .._errors import InputError
from ._out import err, say
from .new import is_number, parameter_line

T = TypeVar("T")


@dataclass
class Answers:
    """What the dialogue found out."""

    by_hand: bool = False
    command: str | None = None
    python: str | None = None
    param: Sequence[str] = ()
    small: Sequence[str] = ()
    large: Sequence[str] = ()
    budget: int = 100
    timeout: float | None = None


def questions(budget: int | None, by_hand: bool) -> Answers:
    """Ask; each answer is checked when it is given, and asked for again alone."""
    import typer

    answers = Answers(by_hand=by_hand)
    say(err(), "A few questions; everything can be changed in the file later.")
    if not by_hand:
        program = _asked(
            "What runs one evaluation? (a command with {params}, module:function, or: by hand)",
            "./simulate {params}",
            _program,
        )
        answers.by_hand = program == "by hand"
        if re.fullmatch(r"[\w.]+:[\w.]+", program):
            answers.python = program
        elif not answers.by_hand:
            answers.command = program
    listed = "Parameters? (x[100]=0:1 gain=0:1 lr=1e-5:1:log heat=20:80:step=5 layers=1:12:int act=relu,tanh)"
    answers.param = _asked(listed, "x[100]=0:1", _parameters)
    outcome = _asked("What is measured?", "loss", _outcome)
    if typer.confirm(f"Should {outcome} be made small?", True):
        answers.small = [outcome]
    else:
        answers.large = [outcome]
    answers.budget = budget if budget is not None else _asked("How many evaluations can you afford?", "100", _count)
    if not answers.by_hand:
        answers.timeout = _asked("How many seconds may one evaluation take? (0: no limit)", "0", _seconds)
    return answers


def _asked(question: str, default: str, check: Callable[[str], T]) -> T:
    import typer

    while True:
        try:
            return check(str(typer.prompt(question, default)).strip())
        except InputError as error:
            say(err(), str(error), "yellow")


def _program(text: str) -> str:
    import shlex

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"A command has its quotation marks in pairs; {text!r}: {error}. Write it again.") from None
    if not words:
        raise InputError("A program is a command, such as ./simulate {params}, or: by hand. Write one of them.")
    return text


def _parameters(text: str) -> list[str]:
    import tomllib

    from ..studyfile import parameters_of

    words = text.split()
    if not words:
        raise InputError("A study needs one parameter or more; got none. Write gain=0:1, say.")
    for word in words:
        parameters_of(tomllib.loads(parameter_line(word)))
    return words


def _outcome(text: str) -> str:
    if not text:
        raise InputError("The name of what is measured is a text, such as loss; got none.")
    return text


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"It is a whole number of 1 or more; got {text!r}.")
    return int(text)


def _seconds(text: str) -> float | None:
    if not is_number(text) or not 0 <= float(text) < math.inf:
        raise InputError(f"It is a number of seconds, or 0; got {text!r}.")
    return float(text) or None
