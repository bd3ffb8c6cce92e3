"""The budget of a study on the command line: what study.toml says, what was set before, and what is left of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import InputError, StateError
from .._urls import redact
from ._out import err, say

if TYPE_CHECKING:
    from ..runner import Study
    from ..studyfile import StudyFile


def settle(study: Study, file: StudyFile, where: str, given: int | None) -> None:
    """Set the file's budget where it is the larger one. One that was `given` is checked only: the run sets it."""
    stored, asked = study.budget, study.history.asked
    if given is not None:
        if given < asked:
            raise InputError(
                f"`--budget` is the evaluations in all, and {asked} were asked for already; got {given}. Write --budget "
                f"{2 * asked} for as many again, or leave it out."
            )
        return
    if file.budget is None or file.budget == stored:
        return
    if stored is None or file.budget > stored:
        study.set_budget(file.budget)
    elif file.evaluator is None:  # nothing but the file sets the budget of a study by hand
        study.set_budget(max(file.budget, asked))
    else:
        words = f"{stored} evaluations are allowed, as was set before; {where} says {file.budget}."
        say(err(), f"{words} Write {stored} there, too, or set another: alebo run {where} --budget N", "dim")


def check_left(study: Study, file: StudyFile | None, where: str, count: int) -> None:
    """Refuse to ask for more points than the budget leaves, and say where it stands."""
    budget, asked = study.budget, study.history.asked
    if budget is None or asked + count <= budget:
        return
    need = asked + count
    way = f"Set a `budget` of {need} or more in {where if file is not None else 'the study.toml'}"
    if file is not None and file.evaluator is not None:
        way += f", or run on: alebo run {where} --budget {need}"
    raise StateError(
        f"At most {budget} evaluations are allowed, and {asked} were asked for; got a request for {count} more. {way}."
    )


def check_given(study: Study, where: str, given: int | None) -> None:
    """Refuse a run that does not know when to stop."""
    if given is None and study.budget is None:
        raise InputError(
            f"A run needs to know when to stop; this study has no budget. Set `budget` in {redact(where)}, or write: "
            f"alebo run {redact(where)} --budget 100"
        )
