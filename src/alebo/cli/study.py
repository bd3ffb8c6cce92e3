"""Opening a study; best, status and export, which only look at it."""

from __future__ import annotations

import csv
import io
import json
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import InputError, MissingPartError, StateError, StudyError
from .._text import printable
from .._urls import redact
from ._out import SHOWN, cell, err, measured, out, plain, print_json, say, table
from .budget import settle
from .sheet import guarded

if TYPE_CHECKING:
    from ..history import Trial
    from ..runner import Study
    from ..studyfile import StudyFile

FORMATS = ("csv", "json", "parquet")


def open_study(
    where: str,
    *,
    create: bool,
    program: bool = False,
    learn_from: Sequence[str] = (),
    budget: int | None = None,
) -> tuple[Study, StudyFile | None]:
    """The study of a study.toml (begun if `create`), or of a journal file or database address.

    `program`: check that the evaluator's program is there. `learn_from`: sources beside those that the file names.
    `budget`: what the command was given, which comes before the file's.
    """
    from .. import runner

    cls = runner.Study
    if not where.endswith(".toml"):
        if learn_from:
            raise InputError(f"`--learn-from` is for a study.toml that has not begun; got {redact(where)}.")
        place, _, name = where.partition("#")  # a database may hold several studies: address#name
        if "://" not in place and not Path(place).exists():
            raise StudyError(
                f"A study must exist; there is no {place}. Begin with: alebo new, then alebo run study.toml."
            )
        _quiet()
        try:
            return cls.open(place, name=name or Path(place).stem), None
        except StudyError:
            if name:
                raise
            return cls.open(place), None
    from ..studyfile import load

    file = load(where, program=program)
    if not create and "://" not in file.storage and not Path(file.storage).exists():
        raise StudyError(
            f"Nothing was asked or run yet for {where}. Begin with: alebo run {where}, or alebo ask {where}."
        )
    _quiet()
    logging.getLogger("alebo.sources").addHandler(logging.NullHandler())  # what it says is said below
    study = cls.create(
        file.storage,
        file.space,
        file.goals,
        method=file.method if file.names_method else None,
        seed=file.seed,
        name=file.name,
        sources=[*file.sources, *learn_from] if create else (),
    )
    if create:  # looking at a study does not change it
        settle(study, file, where, budget)
        _introduce(study)
        queue = study.optimizer().queue
        for point in file.baseline:
            if point not in queue:
                study.enqueue(point)
    return study, file


def _introduce(study: Study) -> None:
    """Say, before the first trial, what is learned from and what of it was left out."""
    history = study.history
    for task in () if len(history) else history.sources:
        say(err(), f"Learning from {task.name}: {len(task)} evaluations.")
        for words in task.said:
            say(err(), f"  {words}", "dim")


def _quiet() -> None:
    """Optuna's own words about opening a study are no news here."""
    from ..runner._storage import require_optuna

    require_optuna()
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)


def best(where: str, *, everything: bool, output: Path | None, as_json: bool) -> None:
    """The best point, or the front where there are several objectives."""
    if output is not None and output.suffix.lower() not in (".csv", ".json"):
        raise InputError(f"A point is written to a .csv or .json file; got '{output}'. Give it one of the two endings.")
    study, _ = open_study(where, create=False)
    with study:
        trials = [study.best()] if study.goals.single else study.front()
        goals, names = study.goals, study.space.names
    if output is not None:
        _write_points(trials, names, goals.outcomes, output)
    if as_json:
        data = [_trial_data(t) for t in trials]
        print_json(data[0] if goals.single else data)
        return
    show = out()
    if not goals.single:
        rows = [[t.number, *(measured(t.outcomes[n]) for n in goals.outcomes)] for t in trials]
        show.print(table(["trial", *goals.outcomes], rows, right=range(len(goals.outcomes) + 1)))
        say(show, f"{len(trials)} Pareto-optimal points. Their parameters: alebo best {where} --output front.csv")
        return
    top = trials[0]
    say(show, f"trial {top.number}: " + ", ".join(f"{k} = {measured(v)}" for k, v in top.outcomes.items()), "bold")
    if top.note.get("chosen_by") not in (None, "measured value"):
        say(show, f"(chosen by {top.note['chosen_by']}, because measurements are noisy)")
    shown = names if everything or len(names) <= SHOWN else names[:SHOWN]
    show.print(table(["parameter", "value"], [(n, cell(top.params[n])) for n in shown], right=[1]))
    if len(shown) < len(names):
        say(show, f"and {len(names) - len(shown)} more: add --all, or --output best.csv")


def status(where: str, *, as_json: bool) -> None:
    """How the study stands."""
    from ..methods import learned
    from ..methods._notes import approximation
    from ..methods.adaptive import finding
    from ..progress import snapshot, status_lines

    study, file = open_study(where, create=False)
    with study:
        history, goals, space = study.history, study.goals, study.space
        prepared = study.prepared()
    now = snapshot(history, goals, space=space)
    told = learned(history, space, goals) if history.sources else []
    pending = [t.number for t in history.pending]
    failures = [{"number": t.number, "reason": t.reason} for t in history.failed]
    if as_json:
        print_json(
            {
                **{
                    k: v
                    for k, v in vars(now).items()
                    if k not in ("model_seconds", "evaluation_seconds", "seconds_left", "timed")
                },
                "pending_trials": pending,
                "waiting_trials": prepared,
                "failures": failures,
                "finding": finding(history),
                "approximation": approximation(history),
                **({"learned": [vars(s) for s in told]} if told else {}),
                "storage": study.where,
            }
        )
        return
    show = out()
    lines = status_lines(now, title=file.name if file else study.name, width=show.width)
    for line in (lines[0], lines[1]):
        say(show, line)
    counts = (
        f"{len(history.complete)} complete, {len(pending)} pending, {now.failed} failed, {now.infeasible} infeasible"
    )
    say(show, counts + (f", embedding of {now.dim} dimensions" if now.dim else ""))
    for words in (finding(history), approximation(history)):
        if words is not None:
            say(show, words)
    for source in told:
        say(show, str(source))
    if pending:
        say(show, "pending: " + ", ".join(map(str, pending[:12])) + (", ..." if len(pending) > 12 else ""))
    if prepared:
        say(show, f"waiting for a free worker, not begun: {', '.join(map(str, prepared[:12]))}")
    for f in failures[-3:]:
        say(show, f"trial {f['number']} failed: {f['reason']}")
    say(show, f"stored in {study.where}")


def _trial_data(t: Trial) -> dict[str, Any]:
    data = {"number": t.number, "params": t.params, "outcomes": {k: v.mean for k, v in t.outcomes.items()}}
    errors = {k: v.sem for k, v in t.outcomes.items() if v.sem is not None}
    return data | ({"standard_errors": errors} if errors else {}) | {"chosen_by": t.note.get("chosen_by")}


def _write_points(trials: Sequence[Trial], names: Sequence[str], outcomes: Sequence[str], path: Path) -> None:
    if path.suffix.lower() == ".json":
        _write(path, json.dumps(plain([_trial_data(t) for t in trials]), indent=2))
        return
    header = ["trial", *names, *outcomes]
    rows = [[t.number, *(t.params[n] for n in names), *(t.outcomes[n].mean for n in outcomes)] for t in trials]
    write_csv(header, rows, path)


def write_csv(header: Sequence[str], rows: Sequence[Sequence[Any]], path: Path | None) -> None:
    """Exact values as CSV, to a file or to standard output; a text that a spreadsheet would take for a formula is quoted."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([guarded(name) for name in header])
    for row in rows:
        writer.writerow(["" if v is None else repr(v) if isinstance(v, float) else guarded(str(v)) for v in row])
    if path is None:
        sys.stdout.write(text.getvalue())
    else:
        _write(path, text.getvalue())


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make the file's folder, and say what to do where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise StudyError(
            f"A result goes to a new file; {path} cannot be written: {error}. Choose another --output."
        ) from None


def _write(path: Path, text: str) -> None:
    with writing(path):
        path.write_text(text, encoding="utf-8", newline="")


def logs(where: str, *, number: int | None, as_json: bool) -> None:
    """What the evaluation of a trial printed; of the last one, where no number is given."""
    from .._logs import Logs
    from ..studyfile import load

    if not where.endswith(".toml"):
        raise InputError(f"Logs lie beside a study.toml; got {where}. Name the study.toml.")
    file = load(where)
    if file.evaluator is None or file.evaluator.logs is None:
        raise InputError(f"Logs are kept of evaluations; {where} has no [evaluator]. See alebo status.")
    kept = Logs(file.evaluator.logs)
    known = kept.numbers()
    which = number if number is not None else max(known, default=0)
    text = kept.read(which)
    if text is None:
        there = f"there are logs of {len(known)} trials, {known[0]} to {known[-1]}" if known else "there are none yet"
        raise StateError(
            f"A log is kept where a trial was evaluated, and the oldest go first; trial {which} has none in {kept.folder}: "
            f"{there}."
        )
    if as_json:
        print_json({"number": which, "path": str(kept.path(which)), "log": printable(text)})
        return
    say(err(), f"trial {which}: {kept.path(which)}", "dim")
    sys.stdout.write(printable(text))


def _format(given: str | None, output: Path | None, as_json: bool) -> str:
    """The format that was asked for, or that the file's ending names; two that contradict each other are refused."""
    if given is not None and given not in FORMATS:
        raise InputError(f"`--format` is csv, json or parquet; got {given!r}.")
    if as_json and (output is not None or given not in (None, "json")):
        other = "--output" if output is not None else f"--format {given}"
        raise InputError(f"--json prints every trial as JSON; got {other}, too. Leave one of the two out.")
    if as_json or output is None:
        return "json" if as_json else given or "csv"
    ending = output.suffix.lower().removeprefix(".")
    if given is None and ending not in FORMATS:
        rule = "The ending of a file says its format, .csv, .json or .parquet"
        raise InputError(f"{rule}; got '{output}'. Give it such an ending, or add --format.")
    if given is not None and ending in FORMATS and ending != given:
        raise InputError(
            f"The ending of a file says its format; got '{output}' and --format {given}. Leave --format out."
        )
    return given or ending


def export(where: str, *, form: str | None, output: Path | None, as_json: bool) -> None:
    """Every trial with its settings, outcomes and state."""
    from .._frame import dataframe, table

    form = _format(form, output, as_json)
    if form == "parquet" and output is None:
        raise InputError("A parquet file cannot be printed. Add --output trials.parquet.")
    study, _ = open_study(where, create=False)
    with study:
        history, space, goals = study.history, study.space, study.goals
    header, rows = table(history, space, goals)
    if form == "csv":
        write_csv(header, rows, output)
    elif form == "json":
        data = [dict(zip(header, row, strict=True)) for row in rows]
        if output is None:
            print_json(data)
            return
        _write(output, json.dumps(plain(data), indent=2, ensure_ascii=False))
    elif output is not None:
        try:
            with writing(output):
                dataframe(history, space, goals).to_parquet(output)
        except ImportError:
            raise MissingPartError('A parquet file needs pandas and pyarrow. Run: pip install "alebo[frame]"') from None
    if output is not None:
        say(out(), f"Wrote {len(rows)} trials to {output}.")
