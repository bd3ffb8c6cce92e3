"""The user's program as a function from parameters to outcomes: an external command, or a Python function by name."""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ._errors import EvaluationError, InputError
from ._logs import Logs
from ._processes import Ended, TooLong, run_supervised, temporary_folder
from ._text import printable

_FIELD = re.compile(r"\{([A-Za-z_][\w.-]*)\}")
_RESERVED = ("params", "outcomes", "number", "seed")


@dataclass(frozen=True)
class CommandEvaluator:
    """Runs a command for every trial. Unlike `function`, what it calls can be written in any language.

    In the command's words `{name}` becomes the value of a parameter, `{params}` the path of a JSON file with all of
    them, `{outcomes}` the path where the command writes its outcomes as JSON (without it they are read from the last
    line that it prints: a number, a JSON object, or `loss=0.3 latency=8`), `{number}` the trial's number, and `{seed}`
    a number for the program's own randomness, which a repetition of the trial gets again. Number and seed are also in
    the environment, as ALEBO_TRIAL and ALEBO_SEED. A parameter that is called number or seed comes first in braces.

    When the command ends, or is stopped, everything that it started is ended.
    """

    command: tuple[str, ...]
    outcomes: tuple[str, ...]
    directory: str = "."
    timeout: float | None = None  # seconds
    memory: int | None = None  # bytes of address space, for each process
    number: int = 0  # of the trial
    seed: int = 0  # of the trial
    logs: str | None = None  # a folder where what the command printed is kept

    def __post_init__(self) -> None:
        command: Any = self.command
        try:
            words = shlex.split(command) if isinstance(command, str) else list(command)
        except ValueError as error:  # a quote that is not closed
            raise InputError(
                f"A command is words as in a shell; {command!r:.80} cannot be split: {error}. Close the quote."
            ) from None
        object.__setattr__(self, "command", tuple(map(str, words)))
        object.__setattr__(self, "outcomes", tuple(self.outcomes))
        if not self.command or not self.command[0]:
            raise InputError(
                "A command needs a program to start; got an empty one. Write command = './simulate {params}'."
            )
        for name, value in (("timeout", self.timeout), ("memory", self.memory)):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise InputError(f"`{name} > 0` must hold; got {value}. Leave it out for no limit.")

    def for_trial(self, number: int, seed: int) -> CommandEvaluator:
        """The same evaluator for the trial of this number, with a seed of its own."""
        return replace(self, number=number, seed=seed)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names in braces."""
        return tuple(dict.fromkeys(name for word in self.command for name in _FIELD.findall(word)))

    def check(self, parameters: Sequence[str]) -> None:
        """Raise an InputError unless the program can be found and is given the parameters."""
        self.check_fields(parameters)
        self._program()

    def check_fields(self, parameters: Sequence[str]) -> None:
        """Raise an InputError unless the names in braces mean something and the parameters are among them."""
        import difflib

        known = {*parameters, *_RESERVED}
        for name in self.fields:
            if name in ("params", "outcomes") and name in parameters:
                raise InputError(
                    f"{{{name}}} in a command is the path of a file; a parameter is called {name!r}, too. Rename the "
                    "parameter."
                )
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f" Did you mean {{{near[0]}}}?" if near else ""
                raise InputError(
                    "A name in braces is a parameter, {params}, {outcomes}, {number} or {seed}; "
                    f"the command has {{{name}}}.{hint}"
                )
        if not {"params", *parameters} & set(self.fields):
            raise InputError(
                f"A command must be given the parameters; {shlex.join(self.command)!r} has none. Add {{params}}, a "
                f"JSON file with all of them, or {{name}} for single ones, such as {{{next(iter(parameters), 'x0')}}}."
            )

    def _program(self) -> str:
        word = self.command[0]
        beside = Path(self.directory) / word
        found = str(beside.resolve()) if os.sep in word and beside.exists() else shutil.which(word)
        if found is None:
            if _FIELD.search(word):
                return word
            raise InputError(
                f"The command's program must exist; there is no {word!r} in {Path(self.directory).resolve()} or on "
                "the PATH. Check the spelling, or write ./program for a file beside the study."
            )
        if not os.access(found, os.X_OK):
            raise InputError(f"The command's program must be executable; {found} is not. Run chmod +x {found}.")
        return found

    def __call__(self, params: Mapping[str, Any], number: int | None = None) -> dict[str, Any]:
        """Evaluate one point; an EvaluationError says what went wrong."""
        number = self.number if number is None else number
        with temporary_folder() as folder:
            given, wanted = folder / "params.json", folder / "outcomes.json"
            given.write_text(json.dumps(dict(params)))
            files = {"params": str(given), "outcomes": str(wanted)}
            values = {"number": number, "seed": self.seed, **params, **files}
            words = [_FIELD.sub(lambda m: _word(values, m), w) for w in self.command]
            words[0] = self._program() if words[0] == self.command[0] else words[0]
            printed = self._run(words, folder, {"ALEBO_TRIAL": str(number), "ALEBO_SEED": str(self.seed)})
            if "outcomes" in self.fields:
                return self._from_file(wanted)
            return self._from_line(printed)

    def _run(self, words: list[str], folder: Path, extra: Mapping[str, str]) -> str:
        """What the command printed."""
        try:
            ended = run_supervised(
                words, directory=self.directory, extra=extra, folder=folder, memory=self.memory, timeout=self.timeout
            )
        except TooLong as late:
            self._keep(extra["ALEBO_TRIAL"], words, late.ended)
            raise EvaluationError(
                f"The command must end within {self.timeout:g} s; it did not and was stopped. "
                "Raise `timeout` if it needs more."
            ) from None
        except OSError as error:
            raise EvaluationError(
                f"The command could not start: {error}. Check the program and its directory."
            ) from None
        self._keep(extra["ALEBO_TRIAL"], words, ended)
        if ended.badly:
            limit = f" (memory limit {self.memory / 2**20:.0f} MB)" if self.memory is not None else ""
            said = printable(ended.said).strip().splitlines()
            raise EvaluationError(
                f"The command {ended.badly}{limit}" + (f"; its last words: {said[-1][:200]}" if said else ".")
            )
        return ended.printed

    def _keep(self, number: str, words: list[str], ended: Ended) -> None:
        """Keep what the command printed."""
        if self.logs is not None:
            how = ended.badly or "ended well"
            text = f"$ {shlex.join(words)}\n{ended.printed}\n--- standard error ---\n{ended.said}\n--- the command {how} ---\n"
            Logs(self.logs).write(int(number), text)

    def _from_file(self, path: Path) -> dict[str, Any]:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            raise EvaluationError(
                "The command must write its outcomes to {outcomes}; it ended without writing them."
            ) from None
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:  # no JSON, a number of 5000 digits, or nested without end
            raise EvaluationError(f"The outcomes file must be JSON; it holds {text[:80]!r} ({error}).") from None
        return self._checked(data, text)

    def _from_line(self, printed: str) -> dict[str, Any]:
        lines = [line.strip() for line in printed.splitlines() if line.strip()]
        if not lines:
            raise EvaluationError(
                f"The last line printed must hold {_wanted(self.outcomes)}; the command printed nothing. "
                "Print the number last, or write a JSON file and name it {outcomes} in the command."
            )
        last = lines[-1]
        try:
            data = json.loads(last)
        except (ValueError, RecursionError):
            pairs = re.findall(r"(?<![\w.-])([\w.-]+)\s*[=:]\s*([^\s,;]+)", last)  # each word is tried once
            if pairs and all(_is_number(v) for _, v in pairs):
                return self._checked({k: float(v) for k, v in pairs}, last)
            raise EvaluationError(
                f"The last line printed must hold {_wanted(self.outcomes)}; got {last[:80]!r}."
            ) from None
        return self._checked(data, last)

    def _checked(self, data: Any, text: str) -> dict[str, Any]:
        if not isinstance(data, Mapping) and len(self.outcomes) == 1:
            data = {self.outcomes[0]: data}
        if not isinstance(data, Mapping):
            raise EvaluationError(f"The outcomes must be {_wanted(self.outcomes)}; got {text.strip()[:80]!r}.")
        missing = [n for n in self.outcomes if n not in data]
        if missing:
            raise EvaluationError(f"Every outcome must be there; {missing} missing in {text.strip()[:80]!r}.")
        chosen = {n: tuple(data[n]) if isinstance(data[n], list) else data[n] for n in self.outcomes}
        for n, v in chosen.items():
            numbers = v if isinstance(v, tuple) else (v,)
            if len(numbers) not in (1, 2) or not all(
                isinstance(x, int | float) and not isinstance(x, bool) for x in numbers
            ):
                raise EvaluationError(f"Outcome {n!r} must be a number or [mean, standard error]; got {data[n]!r:.60}.")
            if not all(abs(x) <= sys.float_info.max for x in numbers):  # also of a whole number beyond a float
                raise EvaluationError(f"Outcome {n!r} must be finite; got {data[n]!r:.60}.")
        return chosen


def function(name: str, directory: str | Path = ".") -> Callable[..., Any]:
    """The Python function that `module:function` names, with `directory` searched first."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise InputError(
            f"A Python evaluator is written module:function; got {name!r}. Write 'simulate:run', for instance."
        )
    folder = str(Path(directory).resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"The module of a Python evaluator must be importable from {folder}; {module!r} is not: {error}. "
            "Check the name, or put the file beside study.toml."
        ) from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            import difflib

            near = difflib.get_close_matches(part, [n for n in dir(found) if not n.startswith("_")], n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InputError(f"Module {module!r} must hold the evaluator; it has no {part!r}.{hint}")
        found = getattr(found, part)
    if not callable(found):
        raise InputError(
            f"A Python evaluator must be callable with the parameters; {name!r} is {type(found).__name__}."
        )
    return found  # type: ignore[no-any-return]


@dataclass(frozen=True)
class FunctionEvaluator:
    """Calls `module:function` with the parameters as a dict; the name, not the function, goes to other processes."""

    name: str
    directory: str = "."
    logs: str | None = None  # a folder where what the function printed is kept

    def check(self, parameters: Sequence[str]) -> None:
        """Raise an InputError unless the function can be imported."""
        function(self.name, self.directory)

    def __call__(self, params: Mapping[str, Any]) -> Any:
        """Evaluate one point."""
        found = function(self.name, self.directory)
        if self.logs is None:
            return found(dict(params))
        with Logs(self.logs).printed(int(os.environ.get("ALEBO_TRIAL", "0"))):
            return found(dict(params))


def _word(values: Mapping[str, Any], match: re.Match[str]) -> str:
    value = values[match.group(1)]
    return json.dumps(value) if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)


def _wanted(outcomes: Sequence[str]) -> str:
    if len(outcomes) == 1:
        return f"{outcomes[0]!r}, as a number"
    return "a JSON object with " + ", ".join(map(repr, outcomes))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
