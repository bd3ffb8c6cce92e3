"""What a person wants to record, from words or from a sheet: checked whole before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import InputError, StateError
from ..parameters import Fixed, check_value
from . import sheet as sheets
from ._out import err, measured, say

if TYPE_CHECKING:
    from ..history import Trial
    from ..runner import Study

FAILED = ("failed", "fail")


@dataclass
class Plan:
    """What a file or a line of words asks for, checked, before anything is stored."""

    steps: list[tuple[str, Any, Any, dict[str, Any] | None]] = field(
        default_factory=list
    )  # verb, which, outcomes, params
    known: int = 0  # rows that are stored already, with the same values

    def check_reason(self, reason: str | None) -> None:
        """Refuse a reason that nothing would keep."""
        if reason is not None and self.steps and all(verb == "tell" for verb, *_ in self.steps):
            raise InputError(
                f"`--reason` says why an evaluation broke or is corrected; got {reason!r:.60} for one that did neither. "
                "Leave it out, or add --failed or --replace."
            )

    def carry_out(self, study: Study, reason: str | None, path: Path | None = None) -> list[Trial]:
        """Store it."""
        done: list[Trial] = []
        for verb, which, outcomes, params in self.steps:
            try:
                if verb == "tell":
                    done.append(study.tell(which, outcomes, params=params))
                elif verb == "fail":
                    done.append(study.fail(which, reason or "reported as failed by hand"))
                elif verb == "amend":
                    done.append(study.amend(which, outcomes, params=params, reason=reason))
                else:
                    done.append(study.forget(which, reason))
            except StateError as error:  # somebody else told it in this moment
                if path is None:
                    raise
                kept = f"{len(done)} rows before it are stored; telling {path} again stores the others."
                raise StateError(f"{error} {kept}") from None
        return done


def from_words(study: Study, where: str, number: int, values: Sequence[str], failed: bool, replace: bool) -> Plan:
    plan = Plan()
    if failed:
        if values:
            raise InputError(
                f"An evaluation that broke has no outcomes and no settings; got {values[0]!r} and --failed. Leave one of the "
                "two out."
            )
        _check_state(study, where, number, replace)
        plan.steps.append(("forget" if replace else "fail", number, None, None))
        return plan
    outcomes, params = parse_words(values, study)
    if not outcomes and not (replace and params):
        raise InputError(
            f"An outcome is needed for {list(study.goals.outcomes)}; got none. Write: alebo tell {where} "
            f"{number} {study.goals.outcomes[0]}=0.31, or --failed for an evaluation that broke."
        )
    missing = [n for n in study.goals.outcomes if n not in outcomes]
    if missing and outcomes:
        raise InputError(
            f"All outcomes are reported together; {missing} missing. Write {' '.join(f'{n}=...' for n in missing)} too."
        )
    _check_state(study, where, number, replace)
    plan.steps.append(("amend" if replace else "tell", number, outcomes or None, params or None))
    return plan


def _check_state(study: Study, where: str, number: int, replace: bool) -> None:
    """Refuse to tell twice, or to correct what was never told, in words of the command line."""
    history = study.history
    if not 0 <= number < len(history):
        return  # the study says so
    state = history[number].state.value
    if replace and state == "pending":
        raise StateError(f"--replace corrects what was recorded; trial {number} is pending. Tell it without --replace.")
    if not replace and state != "pending":
        way = f", or withdraw it: alebo forget {where} {number}" if state == "complete" else "."
        raise StateError(
            f"A trial is reported once; trial {number} is already {state}. Add --replace to correct it{way}"
        )


def parse_words(words: Sequence[str], study: Study) -> tuple[dict[str, Any], dict[str, Any]]:
    """loss=0.3 latency=8.2+-0.1 gain=0.41 as outcomes, and as settings that were really run."""
    outcomes = study.goals.outcomes
    if len(words) == 1 and "=" not in words[0] and len(outcomes) == 1:
        return {outcomes[0]: sheets.number(words[0], outcomes[0])}, {}
    by_name = {p.name: p for p in study.space.parameters}
    read: dict[str, Any] = {}
    params: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"An outcome reads name=number; got {word!r}. The outcomes are {', '.join(outcomes)}.")
        if name in read or name in params:
            raise InputError(f"Each name is given once; {name!r} comes twice. Leave one of the two out.")
        if name in outcomes:
            read[name] = sheets.number(value, name)
        elif name in by_name:
            params[name] = sheets.setting(by_name[name], value)
        else:
            import difflib

            near = difflib.get_close_matches(name, [*outcomes, *by_name], n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            raise InputError(f"There is no outcome {name!r}. {hint}The outcomes are {', '.join(outcomes)}.")
    return read, params


def from_sheet(study: Study, path: Path, replace: bool) -> Plan:
    layout = sheets.Layout.of(study.space, study.goals.outcomes)
    errors = {name: f"{column}_sem" for name, column in layout.outcomes.items()}
    sheet = sheets.read(path, [*layout.header, *errors.values()])
    _check_columns(sheet, layout, set(errors.values()), study)
    reader = _Reader(study, sheet, layout, errors, replace)
    for line, row in sheet.rows:
        reader.take(line, row)
    return reader.plan


def _check_columns(sheet: sheets.Sheet, layout: sheets.Layout, errors: set[str], study: Study) -> None:
    missing = [c for c in layout.outcomes.values() if c not in sheet.header]
    if missing:
        raise InputError(
            f"{sheet.path}, line 1: a sheet has a column for every outcome; {missing} missing. Name them as in the study: "
            f"{', '.join(study.goals.outcomes)}. {sheets.NOTHING}"
        )
    unused = [c for c in sheet.header if c and c not in {*layout.header, *errors}]
    absent = [c for c in layout.params.values() if c not in sheet.header]
    if unused and absent:
        raise InputError(
            f"{sheet.path}, line 1: column {unused[0]!r} is no parameter and no outcome of this study, and {absent[0]!r} is "
            f"missing. Is it a sheet of another study? Rename the column, or remove it. {sheets.NOTHING}"
        )
    sheets.say_unused(sheet, {*layout.header, *errors})


class _Reader:
    """Turns the rows of a sheet into a plan; the first cell that is wrong refuses the whole sheet."""

    def __init__(
        self, study: Study, sheet: sheets.Sheet, layout: sheets.Layout, errors: Mapping[str, str], replace: bool
    ) -> None:
        self.study, self.sheet, self.layout, self.errors, self.replace = study, sheet, layout, errors, replace
        self.history = study.history
        self.plan = Plan()
        self.lines: dict[int, int] = {}  # trial -> the line where it stands

    def take(self, line: int, row: Mapping[str, str]) -> None:
        """One row: a measured trial, an old point, or one that is not measured yet."""
        cells = {n: row.get(c, "") for n, c in self.layout.outcomes.items()}
        if not any(cells.values()):
            return
        broken = any(c.casefold() in FAILED for c in cells.values())
        if broken:
            self._check_broken(line, row, cells)
        outcomes = None if broken else self._outcomes(line, row, cells)
        label = row.get(self.layout.trial, "")
        if not label:
            self._old_point(line, row, outcomes)
            return
        trial = self._trial(line, label, row)
        params = self._settings(line, row, trial)
        self._step(line, trial, outcomes, params)

    def _check_broken(self, line: int, row: Mapping[str, str], cells: Mapping[str, str]) -> None:
        """Refuse a row that says failed in one cell and holds a measurement in another."""
        measured = {self.layout.outcomes[n]: text for n, text in cells.items() if text.casefold() not in FAILED}
        measured |= {column: row.get(column, "") for column in self.errors.values()}
        for column, text in measured.items():
            if text:
                raise self.sheet.refuse(
                    line,
                    column,
                    f"it holds {text[:20]!r}, and another cell of the row says failed. Empty it, or fill in all outcomes.",
                )

    def _outcomes(self, line: int, row: Mapping[str, str], cells: Mapping[str, str]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, text in cells.items():
            column = self.layout.outcomes[name]
            if not text:
                raise self.sheet.refuse(
                    line, column, "it is empty, and all outcomes belong together. Fill it in, or write failed."
                )
            try:
                value = sheets.number(text, name, comma=self.sheet.comma)
                sem = row.get(self.errors[name], "")
                if sem:
                    column = self.errors[name]
                    if isinstance(value, tuple):
                        raise InputError(f"{name!r} has its error twice. Write it in one of the two cells.")
                    value = (value, sheets.number(sem, column, comma=self.sheet.comma))
                out[name] = value
            except InputError as error:
                raise self.sheet.refuse(line, column, str(error)) from None
        try:
            self.study.goals.read(out)
        except InputError as error:
            raise self.sheet.refuse(line, next(iter(self.layout.outcomes.values())), str(error)) from None
        return out

    def _trial(self, line: int, label: str, row: Mapping[str, str]) -> Trial:
        column = self.layout.trial
        try:
            value = float(label.replace(",", "."))
            number = int(value)
        except (ValueError, OverflowError):
            value, number = -1.0, -1
        if value != number or not 0 <= number < len(self.history):
            there = f"trials 0 to {len(self.history) - 1}" if len(self.history) else "no trials yet"
            raise self.sheet.refuse(
                line,
                column,
                f"trial {label[:20]} was not asked; there are {there}. Leave the cell empty for an old point.",
            )
        if number in self.lines:
            raise self.sheet.refuse(
                line, column, f"trial {number} stands in line {self.lines[number]}, too. Remove one."
            )
        self.lines[number] = line
        trial = self.history[number]
        mark = row.get(self.layout.check, "")
        if mark and mark != sheets.mark(trial):
            raise self.sheet.refuse(
                line,
                self.layout.check,
                f"{mark[:20]!r} does not belong to trial {number}, which has {sheets.mark(trial)!r}. Is "
                "it a sheet of another study, or a row with another number? To tell it all the same, empty the cell.",
            )
        return trial

    def _settings(self, line: int, row: Mapping[str, str], trial: Trial) -> dict[str, Any] | None:
        """The settings that were changed in the sheet, checked; None where none was."""
        changed: dict[str, Any] = {}
        for p in self.study.space.parameters:
            column = self.layout.params[p.name]
            text = row.get(column, "")
            if not text:
                continue
            try:
                value = sheets.setting(p, text, comma=self.sheet.comma)
                if value in (trial.params[p.name], _shown(p, trial.params[p.name])):
                    continue
                check_value(p, value)
            except InputError as error:
                raise self.sheet.refuse(line, column, str(error)) from None
            changed[p.name] = value
        return changed or None

    def _step(self, line: int, trial: Trial, outcomes: Any, params: dict[str, Any] | None) -> None:
        if outcomes is None and params and trial.state.value != "failed":
            unused = ", ".join(map(repr, params))
            words = f"line {line}: trial {trial.number} failed, so its corrected {unused} is not stored."
            say(err(), f"{self.sheet.path}, {words}", "yellow")
        if trial.state.value == "pending":
            self.plan.steps.append(("tell" if outcomes is not None else "fail", trial.number, outcomes, params))
            return
        if outcomes is None and trial.state.value == "failed":
            self.plan.known += 1
            return
        if (
            trial.complete
            and outcomes is not None
            and params is None
            and self.study.goals.read(outcomes) == trial.outcomes
        ):
            self.plan.known += 1  # the same sheet again does no harm
            return
        if not self.replace:
            has = ", ".join(f"{k} = {measured(v)}" for k, v in trial.outcomes.items()) or trial.reason or ""
            raise StateError(
                f"{self.sheet.path}, line {line}: trial {trial.number} is already {trial.state.value} ({has}), and this sheet "
                f"says something else. Add --replace to correct it, or empty the row's outcomes. {sheets.NOTHING}"
            )
        self.plan.steps.append(("amend" if outcomes is not None else "forget", trial.number, outcomes, params))

    def _old_point(self, line: int, row: Mapping[str, str], outcomes: Any) -> None:
        if outcomes is None:
            raise self.sheet.refuse(line, None, "a point that was never asked cannot have failed. Leave the row out.")
        params: dict[str, Any] = {}
        for p in self.study.space.parameters:
            column = self.layout.params[p.name]
            text = row.get(column, "")
            try:
                if not text and isinstance(p, Fixed):
                    params[p.name] = p.value
                    continue
                if not text:
                    raise InputError(
                        "it is empty, and a point without a trial number names every parameter. Fill it in."
                    )
                params[p.name] = sheets.setting(p, text, comma=self.sheet.comma)
                check_value(p, params[p.name])
            except InputError as error:
                raise self.sheet.refuse(line, column, str(error)) from None
        point = self.study.space.canonical(params)
        if any(
            not t.asked and t.params == point and t.outcomes == self.study.goals.read(outcomes) for t in self.history
        ):
            self.plan.known += 1
            return
        self.plan.steps.append(("tell", point, outcomes, None))


def _shown(p: Any, value: Any) -> Any:
    """The value that a sheet shows for a setting."""
    return sheets.setting(p, sheets.unguarded(sheets.short(p, value)))
