"""`alebo new`: a commented study.toml, from flags or from a few questions."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._errors import AleboError, InputError, StudyError
from ._out import err, out, print_json, say

_RANGE = re.compile(r"\s*([^=\[\]]+?)\s*(?:\[(\d+)\])?\s*=\s*(.+?)\s*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def new(
    path: Path,
    *,
    param: Sequence[str],
    minimize: Sequence[str],
    maximize: Sequence[str],
    at_most: Sequence[str],
    at_least: Sequence[str],
    command: str | None,
    python: str | None,
    budget: int | None,
    method: str | None,
    seed: int,
    by_hand: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write a study file from flags, or from the answers to a few questions."""
    if path.suffix != ".toml":
        path = path.with_name(path.name + ".toml") if path.name else path
    if path.exists() and not force:
        raise StudyError(f"A new study must not overwrite another; {path} exists. Choose another name, or add --force.")
    timeout: float | None = None
    if not (param or minimize or maximize or command or python):
        if not sys.stdin.isatty():
            raise InputError(
                "A new study needs its parameters and its program; got neither flags nor a terminal to ask at. Write: "
                "alebo new --param 'x[100]=0:1' --minimize loss --command './simulate {params}'"
            )
        from .questions import questions

        answers = questions(budget, by_hand)
        param, minimize, maximize, command, python = (
            answers.param,
            answers.small,
            answers.large,
            answers.command,
            answers.python,
        )
        budget, timeout, by_hand = answers.budget, answers.timeout, answers.by_hand
    if bool(command) + bool(python) + by_hand > 1:
        raise InputError(
            "An evaluator is a command, a Python function, or --by-hand; got more than one. Leave the others out."
        )
    text = template(
        name=path.stem,
        parameters=[parameter_line(p) for p in param] or ["x = { count = 100, low = 0.0, high = 1.0 }   # x0 ... x99"],
        minimize=minimize or ([] if maximize else ["loss"]),
        maximize=list(maximize),
        at_most=[bound_pair(b) for b in at_most],
        at_least=[bound_pair(b) for b in at_least],
        command=command,
        python=python,
        budget=100 if budget is None else budget,
        method=method,
        seed=seed,
        timeout=timeout,
        by_hand=by_hand,
    )
    _write(path, text, by_hand, as_json)


def _write(path: Path, text: str, by_hand: bool, as_json: bool) -> None:
    """Write the file, read it back the way `run` will, and say what is still missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    from ..parameters import Fixed
    from ..studyfile import load

    problem: str | None = None
    D = None
    try:
        parameters = load(path, program=True).space.parameters
        D = sum(not isinstance(p, Fixed) for p in parameters)
    except AleboError as error:
        problem = str(error)
    if as_json:
        print_json({"path": str(path), "dimension": D, "problem": problem})
        return
    say(out(), f"Wrote {path}." + (f" {D} parameters to search." if D else ""))
    if problem:
        say(err(), f"Before it can run: {problem}", "yellow")
    if by_hand:
        say(
            out(),
            f"Old data first: alebo tell {path} --csv old.csv. Then: alebo ask {path} --count 4 --output sheet.csv",
        )
        return
    say(out(), f"Look it over, then: alebo run {path}")


def parameter_line(text: str) -> str:
    """One line of [parameters] from a flag: gain=0:1, lr=1e-5:1:log, layers=1:12:int, act=relu,tanh, x[100]=0:1."""
    found = _RANGE.fullmatch(text)
    if not found:
        raise InputError(
            f"A parameter reads name=low:high; got {text!r}. "
            "Also name=low:high:log, name=low:high:int, name=low:high:step=5, name=a,b,c, and name[100]=low:high for a hundred of them."
        )
    name, count, spec = found.groups()
    key = name if _BARE.fullmatch(name) else _quoted(name)
    repeat = f"count = {count}, " if count else ""
    parts = spec.split(":")
    if len(parts) >= 2 and all(is_number(p) for p in parts[:2]):
        low, high, *words = parts
        _check_words(text, words)
        kind = 'type = "int", ' if "int" in words else ""
        scale = ", log = true" if "log" in words else ""
        scale += "".join(f", {w.split('=')[0]} = {_toml(w.split('=')[1])}" for w in words if "=" in w)
        return f"{key} = {{ {repeat}{kind}low = {_toml(low)}, high = {_toml(high)}{scale} }}"
    choices = [c.strip() for c in spec.split(",")]
    values = ", ".join(_toml(c) if is_number(c) else _quoted(c) for c in choices)
    if len(choices) == 1:
        return f"{key} = {{ {repeat}value = {values} }}"
    return f"{key} = {{ {repeat}choices = [{values}] }}"


def _check_words(text: str, words: Sequence[str]) -> None:
    """Refuse what cannot stand behind low:high."""
    for word in words:
        key, equals, value = word.partition("=")
        known = key in ("step", "digits") and is_number(value) if equals else word in ("log", "int")
        if not known:
            raise InputError(f"After low:high come log, int, step=5 or digits=2; {text!r} has {word!r}. Correct it.")
        if equals and "int" in words:
            rest = ":".join(part for part in text.split(":") if part != "int")
            raise InputError(
                f"`{key}` is for numbers, and a whole number has no {key}; write {rest}, or leave {word} out."
            )


def bound_pair(text: str) -> tuple[str, float]:
    """latency=10 as a name and a number."""
    name, _, value = text.partition("=")
    if not name or not is_number(value):
        raise InputError(f"A bound reads outcome=number; got {text!r}. Write --at-most latency=10.")
    return name.strip(), float(value)


def template(
    *,
    name: str,
    parameters: Sequence[str],
    minimize: Sequence[str],
    maximize: Sequence[str],
    at_most: Sequence[tuple[str, float]],
    at_least: Sequence[tuple[str, float]],
    command: str | None,
    python: str | None,
    budget: int,
    method: str | None,
    seed: int,
    timeout: float | None = None,
    by_hand: bool = False,
) -> str:
    """The commented file."""
    from ..methods import default_method

    goals = _goal_lines(minimize, maximize, at_most, at_least)
    if python:
        evaluator = (
            f"python = {_quoted(python)}   # called with a dict of parameters; returns a number or a dict of outcomes"
        )
    elif command:
        evaluator = f"command = {_quoted(command)}"
    else:
        evaluator = 'command = "./simulate {params}"'
    use = f"alebo ask {name}.toml, then alebo tell {name}.toml" if by_hand else f"alebo run {name}.toml"
    limit = "# timeout = 3600       # seconds" if timeout is None else f"timeout = {timeout:g}          # seconds"
    section = "" if by_hand else _EVALUATOR.format(evaluator=evaluator, limit=limit)
    return f"""# A study for alebo. Use it with: {use}      (again after an interruption: it goes on)

[study]
budget = {budget}            # evaluations in all
seed = {seed}
storage = {_quoted(name + ".journal")}   # every step is written here; or postgresql://... for many machines
# workers = 4          # evaluations at a time
# ahead = 1            # trials that are prepared while all workers are busy
# learn_from = ["../march/study.toml", "old.csv"]   # earlier studies of related tasks
# max_failed = 0.5     # a run ends when more than this share of its evaluations failed

[parameters]
# gain = [0.0, 1.0]                                       a number
# rate = {{ low = 1e-5, high = 1.0, log = true }}           a number on a logarithmic scale
# heat = {{ low = 20, high = 80, step = 5 }}                only what can be set; or digits = 2 (significant ones)
# layers = {{ type = "int", low = 1, high = 12 }}           a whole number
# kind = ["relu", "tanh"]                                 a choice
# x = {{ count = 100, low = 0.0, high = 1.0 }}              x0 ... x99
{chr(10).join(parameters)}

[goals]
{chr(10).join(goals)}
{section}
[method]
name = {_quoted(method or default_method().name)}         # the others, and settings that may follow here: alebo methods

# [[baseline]]         # your present settings, to be evaluated first; a value for every parameter
# gain = 0.5
"""


def _goal_lines(
    minimize: Sequence[str],
    maximize: Sequence[str],
    at_most: Sequence[tuple[str, float]],
    at_least: Sequence[tuple[str, float]],
) -> list[str]:
    """The lines of [goals]."""
    goals = []
    for key, names in (("minimize", minimize), ("maximize", maximize)):
        if names:
            goals.append(
                f"{key} = {_quoted(names[0]) if len(names) == 1 else '[' + ', '.join(map(_quoted, names)) + ']'}"
            )
    for key, pairs in (("at_most", at_most), ("at_least", at_least)):
        if pairs:
            goals.append(f"{key} = {{ " + ", ".join(f"{_quoted(n)} = {v!r}" for n, v in pairs) + " }")
    if not at_most and not at_least:
        goals.append("# at_most = { latency = 10.0 }      # a point counts only where these hold, too")
    return goals


_EVALUATOR = """
[evaluator]
# {{params}} is the path of a JSON file with all parameters; {{gain}} would be the value of one of them.
# The outcome is read from the last line printed (0.31, or {{"loss": 0.31, "latency": 8.2}}), or from a JSON file
# that the command writes where {{outcomes}} says. An exit code other than 0 counts as a failed evaluation.
{evaluator}
{limit}
# memory = "4 GB"
"""


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(text: str) -> str:
    """A number the way TOML wants it (1. and .5 are not)."""
    try:
        return str(int(text))
    except ValueError:
        return repr(float(text))


def is_number(text: Any) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
