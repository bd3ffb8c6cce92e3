"""The dialogue of `alebo new`: each answer is checked when it is given, and asked for again alone."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from .._errors import InputError
from .._text import printable
from ._out import err, say
from .new import is_number, parameter_line

T = TypeVar("T")
BY_HAND = "by hand"
FUNCTION = r"[\w.]+:[\w.]+"
PROGRAM = "What runs one evaluation? (a command with {params}, module:function, or: by hand)"


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

    answers = Answers()
    say(err(), "A few questions; everything can be changed in the file later.")
    program = BY_HAND if by_hand else _asked(PROGRAM, "./simulate {params}", _program)
    listed = "Parameters? (x[100]=0:1 gain=0:1 lr=1e-5:1:log heat=20:80:step=5 layers=1:12:int act=relu,tanh)"
    answers.param, names = _asked(listed, "x[100]=0:1", _parameters)
    try:
        _program(program, names)
    except InputError as error:  # only now is it known what may stand in braces
        say(err(), str(error), "yellow")
        program = _asked(PROGRAM, "./simulate {params}", lambda text: _program(text, names))
    answers.by_hand = program == BY_HAND
    if re.fullmatch(FUNCTION, program):
        answers.python = program
    elif not answers.by_hand:
        answers.command = program
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


def _program(text: str, names: Sequence[str] | None = None) -> str:
    """The program, checked; its names in braces as soon as those of the parameters are known."""
    import shlex

    from ..evaluator import CommandEvaluator

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"A command has its quotation marks in pairs; {text!r}: {error}. Write it again.") from None
    if not words:
        raise InputError("A program is a command, such as ./simulate {params}, or: by hand. Write one of them.")
    if text == BY_HAND or re.fullmatch(FUNCTION, text):
        return text
    if text.count("{") != text.count("}"):
        raise InputError(
            f"A name in braces is written {{params}}; {text!r} has a brace without its other half. Add it."
        )
    command = CommandEvaluator(words, ())  # type: ignore[arg-type]
    if names is not None or not command.fields:
        command.check_fields(names or ())
    return text


def _parameters(text: str) -> tuple[list[str], Sequence[str]]:
    """The parameters as words, and their names."""
    import tomllib

    from ..studyfile import parameters_of

    words = text.split()
    if not words:
        raise InputError("A study needs one parameter or more; got none. Write gain=0:1, say.")
    every: dict[str, Any] = {}
    for word in words:
        table = tomllib.loads(parameter_line(word))
        parameters_of(table)
        twice = [name for name in table if name in every]
        if twice:
            raise InputError(f"Parameter names must differ; {twice[0]!r} comes twice. Rename one of them.")
        every |= table
    return words, [name for name in parameters_of(every).names if name != "_"]


def _outcome(text: str) -> str:
    if not text:
        raise InputError("The name of what is measured is a text, such as loss; got none.")
    if re.search(r"[,;=]", text) or printable(text) != text:
        raise InputError(
            f"What is measured has one name, such as loss; got {text!r}. Name what shall be made small or large; constraints "
            "and more objectives can be added to [goals] in the file."
        )
    return text


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"It is a whole number of 1 or more; got {text!r}.")
    return int(text)


def _seconds(text: str) -> float | None:
    if not is_number(text) or not 0 <= float(text) < math.inf:
        raise InputError(f"It is a number of seconds, or 0; got {text!r}.")
    return float(text) or None
