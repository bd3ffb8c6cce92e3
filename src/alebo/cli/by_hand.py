"""ask, tell, forget, enqueue: a study driven by hand, between which days may pass."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import AleboError, InputError, StateError, StudyError
from . import sheet as sheets
from ._out import SHOWN, cell, err, measured, out, print_json, say, table
from .budget import check_left
from .plan import from_sheet, from_words, parse_words
from .study import open_study

if TYPE_CHECKING:
    from ..history import Trial


def ask(
    where: str,
    *,
    count: int | None,
    pending: bool,
    form: str,
    output: Path | None,
    force: bool,
    semicolon: bool,
    learn_from: Sequence[str] = (),
    as_json: bool,
) -> None:
    """The next points as a table, CSV or JSON."""
    _check_ask(count, pending, form, output, force, semicolon, as_json)
    number = 1 if count is None else count
    study, file = open_study(where, create=True, learn_from=learn_from)
    with study:
        space, outcomes = study.space, study.goals.outcomes
        layout = sheets.Layout.of(space, outcomes)
        before = (
            _existing(output, layout, semicolon) if output is not None and not force else None
        )  # refused before asking
        if not pending:
            check_left(study, file, where, number)
        trials = list(study.history.pending) if pending else study.ask(number)
    if as_json:
        print_json([{"number": t.number, "params": t.params} for t in trials])
        return
    if output is None and form == "csv":
        rows = [layout.cells(t, space) for t in trials]
        sys.stdout.write(sheets.written(layout.header, rows, separator=";" if semicolon else ","))
        return
    if output is not None:
        there = set() if before is None else {row.get(layout.trial) for _, row in before.rows}
        trials = [t for t in trials if str(t.number) not in there]
        rows = [layout.cells(t, space) for t in trials]
        _write(output, rows, layout, before, ";" if semicolon else ",")
        verb = "Wrote" if before is None else "Added"
        wanted = f"Fill in {', '.join(outcomes)}, and correct what you set otherwise."
        say(out(), f"{verb} {len(trials)} points to {output}. {wanted}")
        say(out(), f"Then: alebo tell {where} --csv {output}")
        return
    show = out()
    if not trials:
        say(show, "No trial is pending." if pending else "Nothing to ask.")
        return
    names = space.names
    listed = names if len(names) <= SHOWN else names[:SHOWN]
    rows_ = [[n, *(cell(t.params[n]) for t in trials)] for n in listed]
    show.print(table(["parameter", *(f"trial {t.number}" for t in trials)], rows_, right=range(1, len(trials) + 1)))
    if len(names) > len(listed):
        say(show, f"and {len(names) - len(listed)} more parameters: alebo ask {where} --pending --output points.csv")
    example = f"{outcomes[0]}=0.31" if len(outcomes) == 1 else " ".join(f"{n}=..." for n in outcomes)
    say(show, f"When it is measured: alebo tell {where} {trials[0].number} {example}")


def _check_ask(
    count: int | None, pending: bool, form: str, output: Path | None, force: bool, semicolon: bool, as_json: bool
) -> None:
    """Refuse flags that would do nothing."""
    if form not in ("table", "csv"):
        raise InputError(f"`--format` is table or csv; got {form!r}.")
    if count is not None and count < 1:
        raise InputError(f"`--count` is a whole number of 1 or more; got {count}. Ask for one point or more.")
    if count is not None and pending:
        raise InputError(
            "`--count` asks for new points and --pending shows those that were asked. Leave one of the two out."
        )
    if as_json and (output is not None or form == "csv"):
        other = "--output" if output is not None else "--format csv"
        raise InputError(f"--json prints the points as JSON, and {other} writes a sheet. Leave one of the two out.")
    if semicolon and output is None and form != "csv":
        raise InputError("`--semicolon` is for a sheet. Add --output sheet.csv or --format csv, or leave it out.")
    if force and output is None:
        raise InputError("`--force` overwrites a sheet. Add --output sheet.csv, or leave it out.")


def _existing(path: Path, layout: sheets.Layout, semicolon: bool) -> sheets.Sheet | None:
    """The sheet that is there and can be continued; None where there is none."""
    if not path.exists():
        return None
    try:
        found = sheets.read(path, layout.header)
    except AleboError as error:
        raise StudyError(
            f"A sheet that is there is never overwritten; {path} cannot be continued: {error} Choose another file, or "
            "add --force."
        ) from None
    missing = [name for name in layout.header if name not in found.header]
    if missing:
        raise StudyError(
            f"A sheet that is there is never overwritten; {path} exists and has no column {missing[0]!r}, so new rows do "
            "not fit. Choose another file, or add --force."
        )
    if semicolon and found.separator != ";":
        kind = "commas" if found.separator == "," else "tabs"
        raise InputError(
            f"Rows are added as a sheet is written; {path} separates its columns by {kind}. Ask without --semicolon, or "
            "choose another file."
        )
    return found


def _write(
    path: Path, rows: Sequence[Mapping[str, str]], layout: sheets.Layout, before: sheets.Sheet | None, separator: str
) -> None:
    """Write a new sheet, or add rows to the one that is there, in its own order of columns."""
    try:
        if before is None:
            path.write_text(sheets.written(layout.header, rows, separator=separator), encoding="utf-8", newline="")
            return
        data = path.read_bytes()
        encoding = "utf-16-le" if data[:2] == b"\xff\xfe" else "utf-16-be" if data[:2] == b"\xfe\xff" else "utf-8"
        more = sheets.written(before.header, rows, separator=before.separator, newline=before.newline, head=False)
        gap = "" if data.decode(encoding).endswith("\n") else before.newline
        with path.open("ab") as file:
            file.write((gap + more).encode(encoding))
    except OSError as error:
        raise StudyError(
            f"A sheet is written to a file in a folder that exists; {path} cannot be: {error}. The points are kept as "
            "pending: alebo ask --pending --output FILE writes them."
        ) from None


def tell(
    where: str,
    *,
    number: int | None,
    values: Sequence[str],
    failed: bool,
    reason: str | None,
    file: Path | None,
    replace: bool,
    as_json: bool,
) -> None:
    """Record outcomes given as words or in a sheet; everything is checked before anything is stored."""
    if (number is None) == (file is None):
        raise InputError("Tell one trial by its number and outcomes, or many with --csv FILE; give one of the two.")
    if file is not None and failed:
        raise InputError("`--failed` is for one trial; got --csv, too. In a sheet, write failed in its cell instead.")
    study, _ = open_study(where, create=file is not None)  # old data may come before the first ask
    with study:
        if file is not None:
            plan = from_sheet(study, file, replace)
        else:
            assert number is not None
            plan = from_words(study, where, number, values, failed, replace)
        plan.check_reason(reason)
        told = plan.carry_out(study, reason, file)
        status = study.history
    if as_json:
        print_json(
            {
                "told": [t.to_dict() for t in told],
                "already_there": plan.known,
                "complete": len(status.complete),
                "pending": len(status.pending),
            }
        )
        return
    _report(told, status)
    if plan.known:
        say(out(), f"{plan.known} rows were recorded before, with the same values.")
    if not told and not plan.known and file is not None:
        say(err(), f"No outcome is filled in in {file}.", "yellow")


def _report(told: Sequence[Trial], status: Any) -> None:
    for t in told[:10]:
        words = (
            ", ".join(f"{k} = {measured(v)}" for k, v in t.outcomes.items()) if t.complete else f"failed ({t.reason})"
        )
        before = t.earlier[-1] if t.earlier else None
        if before is not None and before.params != t.params:
            changed = [n for n in t.params if before.params[n] != t.params[n]]
            words += "; really run: " + ", ".join(f"{n} = {cell(t.params[n])}" for n in changed[:5])
        if before is not None and before.complete:
            words += "; it was " + ", ".join(f"{k} = {measured(v)}" for k, v in before.outcomes.items())
        say(out(), f"trial {t.number}: {words}")
    if len(told) > 10:
        say(out(), f"and {len(told) - 10} more")
    say(out(), f"{len(status.complete)} complete, {len(status.pending)} pending, {len(status.failed)} failed.")


def forget(where: str, *, number: int, reason: str | None, as_json: bool) -> None:
    """Withdraw what was recorded for a trial."""
    study, _ = open_study(where, create=False)
    with study:
        history = study.history
        if 0 <= number < len(history) and history[number].state.value == "pending":
            raise StateError(
                f"What was recorded is forgotten; trial {number} is pending. If it broke, write: "
                f"alebo tell {where} {number} --failed"
            )
        gone = study.forget(number, reason)
        status = study.history
    if as_json:
        print_json({"forgotten": gone.to_dict()})
        return
    was = ", ".join(f"{k} = {measured(v)}" for k, v in gone.earlier[-1].outcomes.items())
    say(
        out(),
        f"trial {gone.number}: forgotten{'; it was ' + was if was else ''}. It counts as failed; the record is kept.",
    )
    say(out(), f"To enter it again: alebo tell {where} {gone.number} --replace {study.goals.outcomes[0]}=...")
    say(out(), f"{len(status.complete)} complete, {len(status.pending)} pending, {len(status.failed)} failed.")


def enqueue(where: str, *, values: Sequence[str], file: Path | None, as_json: bool) -> None:
    """Queue points, such as the present settings, to be asked next."""
    if bool(values) == (file is not None):
        raise InputError("Queue one point as name=value words, or many with --csv FILE; give one of the two.")
    study, _ = open_study(where, create=True)
    with study:
        by_name = {p.name: p for p in study.space.parameters}
        points: list[dict[str, Any]] = []
        if file is None:
            read, params = parse_words(values, study)
            if read:
                raise InputError(
                    f"A queued point has settings only; {next(iter(read))!r} is an outcome. Tell it afterwards."
                )
            points.append(params)
        else:
            sheet = sheets.read(file, by_name)
            if not sheet.rows:
                raise InputError(f"{file}: a sheet has a row for every point to queue; it has no row. {sheets.NOTHING}")
            sheets.say_unused(sheet, by_name)
            for line, row in sheet.rows:
                try:
                    point = {n: sheets.setting(p, row[n], comma=sheet.comma) for n, p in by_name.items() if row.get(n)}
                    points.append(study.space.canonical(point))
                except InputError as error:
                    raise sheet.refuse(line, None, str(error)) from None
        points = [study.space.canonical(p) for p in points]
        for point in points:
            study.enqueue(point)
        waiting = len(study.optimizer().queued)
    if as_json:
        print_json({"queued": points, "waiting": waiting})
        return
    say(out(), f"Queued {len(points)}; {waiting} wait to be asked. Next: alebo ask {where}, or alebo run {where}")
