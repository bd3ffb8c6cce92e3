"""ask, tell, best, status: a study driven by hand, between which days may pass."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import InputError, StateError, StudyError
from ._out import err, out, plain, print_json, say, table

if TYPE_CHECKING:
    from ..history import Trial
    from ..runner import Study
    from ..studyfile import StudyFile

_PAIR = re.compile(r"\s*(\S+?)\s*(?:,|\+-|\+/-|±|\s)\s*(\S+)\s*")
SHOWN = 30  # parameters that a terminal shows of a point


def open_study(where: str, *, create: bool) -> tuple[Study, StudyFile | None]:
    """The study of a study.toml (begun if `create`), or of a journal file or database address."""
    from .. import runner

    cls = runner.Study
    if not where.endswith(".toml"):
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

    file = load(where)
    if not create and "://" not in file.storage and not Path(file.storage).exists():
        raise StudyError(
            f"Nothing was asked or run yet for {where}. Begin with: alebo run {where}, or alebo ask {where}."
        )
    _quiet()
    study = cls.create(
        file.storage,
        file.space,
        file.goals,
        method=file.method,
        seed=file.seed,
        budget=file.budget if create else None,  # looking at a study does not change it
        name=file.name,
    )
    return study, file


def _quiet() -> None:
    """Optuna's own words about opening a study are no news here."""
    from ..runner._storage import require_optuna

    require_optuna()
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)


def ask(where: str, *, count: int, pending: bool, form: str, output: Path | None, as_json: bool) -> None:
    """The next points as a table, CSV or JSON."""
    if form not in ("table", "csv"):
        raise InputError(f"`--format` is table or csv; got {form!r}.")
    study, _ = open_study(where, create=True)
    with study:
        trials = list(study.history.pending) if pending else study.ask(count)
        outcomes = study.goals.outcomes
        names = study.space.names
    if as_json:
        print_json([{"number": t.number, "params": t.params} for t in trials])
        return
    if output is not None or form == "csv":
        text = points_csv(trials, names, outcomes)
        if output is None:
            sys.stdout.write(text)
            return
        output.write_text(text, encoding="utf-8")
        say(out(), f"Wrote {len(trials)} points to {output}. Fill in {', '.join(outcomes)}, then:")
        say(out(), f"  alebo tell {where} --csv {output}")
        return
    show = out()
    if not trials:
        say(show, "No trial is pending." if pending else "Nothing to ask.")
        return
    shown = names if len(names) <= SHOWN else names[:SHOWN]
    rows = [[n, *(_cell(t.params[n]) for t in trials)] for n in shown]
    show.print(table(["parameter", *(f"trial {t.number}" for t in trials)], rows, right=range(1, len(trials) + 1)))
    if len(names) > len(shown):
        say(show, f"and {len(names) - len(shown)} more parameters: alebo ask {where} --pending --output points.csv")
    example = f"{outcomes[0]}=0.31" if len(outcomes) == 1 else " ".join(f"{n}=..." for n in outcomes)
    say(show, f"When it is measured: alebo tell {where} {trials[0].number} {example}")


def points_csv(trials: Sequence[Trial], names: Sequence[str], outcomes: Sequence[str]) -> str:
    """Points with empty places for their outcomes, to be filled in and told."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["trial", *names, *outcomes])
    for t in trials:
        rows.writerow([t.number, *(_exact(t.params[n]) for n in names), *("" for _ in outcomes)])
    return text.getvalue()


def tell(
    where: str,
    *,
    number: int | None,
    values: Sequence[str],
    failed: bool,
    reason: str | None,
    file: Path | None,
    as_json: bool,
) -> None:
    """Record outcomes given as words or in a CSV file; everything is checked before anything is written."""
    if (number is None) == (file is None):
        raise InputError("Tell one trial by its number and outcomes, or many with --csv FILE; give one of the two.")
    study, _ = open_study(where, create=False)
    with study:
        if file is not None:
            told = _tell_csv(study, file)
        else:
            assert number is not None
            if failed:
                told = [study.fail(number, reason or "told so by hand")]
            elif not values:
                raise InputError(
                    f"An outcome is needed for {list(study.goals.outcomes)}; got none. Write: alebo tell {where} "
                    f"{number} {study.goals.outcomes[0]}=0.31, or --failed for an evaluation that broke."
                )
            else:
                told = [study.tell(number, parse_outcomes(values, study.goals.outcomes))]
        status = study.history
    if as_json:
        print_json(
            {"told": [t.to_dict() for t in told], "complete": len(status.complete), "pending": len(status.pending)}
        )
        return
    for t in told[:10]:
        words = (
            ", ".join(f"{k} = {_measured(v)}" for k, v in t.outcomes.items()) if t.complete else f"failed ({t.reason})"
        )
        say(out(), f"trial {t.number}: {words}")
    if len(told) > 10:
        say(out(), f"and {len(told) - 10} more")
    say(out(), f"{len(status.complete)} complete, {len(status.pending)} pending, {len(status.failed)} failed.")


def parse_outcomes(words: Sequence[str], outcomes: Sequence[str]) -> dict[str, Any]:
    """loss=0.3 latency=8.2+-0.1 as outcomes; a lone number where there is one outcome."""
    if len(words) == 1 and "=" not in words[0] and len(outcomes) == 1:
        return {outcomes[0]: _number(words[0], outcomes[0])}
    read: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"An outcome reads name=number; got {word!r}. The outcomes are {', '.join(outcomes)}.")
        if name not in outcomes:
            import difflib

            near = difflib.get_close_matches(name, outcomes, n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            raise InputError(f"There is no outcome {name!r}. {hint}The outcomes are {', '.join(outcomes)}.")
        read[name] = _number(value, name)
    missing = [n for n in outcomes if n not in read]
    if missing:
        raise InputError(
            f"All outcomes are told together; {missing} missing. Write {' '.join(f'{n}=...' for n in missing)} too."
        )
    return read


def _tell_csv(study: Study, path: Path) -> list[Trial]:
    try:
        rows = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))
    except FileNotFoundError:
        raise StudyError(f"A file of outcomes must exist; there is no {path}.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StudyError(f"A file of outcomes is UTF-8 CSV; {path} cannot be read: {error}.") from None
    outcomes, history = study.goals.outcomes, study.history
    columns = set(rows[0]) if rows else set()
    missing = [n for n in outcomes if n not in columns]
    if missing:
        raise InputError(
            f"{path} needs a column for every outcome; {missing} missing. Ask writes them: alebo ask --output."
        )
    plan: list[tuple[int | dict[str, Any], Any]] = []
    seen: set[int] = set()
    for line, row in enumerate(rows, start=2):
        at = f"{path}, line {line}"
        cells = {n: (row.get(n) or "").strip() for n in outcomes}
        label = (row.get("trial") or "").strip()
        if not any(cells.values()):
            continue  # not measured yet
        try:
            if any(c.lower() in ("failed", "fail") for c in cells.values()):
                outcome: Any = None
            else:
                empty = [n for n, c in cells.items() if not c]
                if empty:
                    raise InputError(f"all outcomes are told together; {empty} empty. Fill it in, or write failed.")
                outcome = {n: _with_error(c, (row.get(f"{n}_sem") or "").strip(), n) for n, c in cells.items()}
                study.goals.read(outcome)
            if label:
                number = int(label)
                if not 0 <= number < len(history) or number in seen:
                    raise InputError(f"trial {number} was not asked, or comes twice.")
                if history[number].state.value != "pending":
                    if history[number].complete and outcome is not None and _same(history[number], outcome):
                        continue  # told before, with the same numbers: telling the same file again does no harm
                    raise StateError(f"trial {number} is already {history[number].state.value}.")
                seen.add(number)
                plan.append((number, outcome))
            else:
                if outcome is None:
                    raise InputError("a point that was never asked cannot have failed; leave the line out.")
                params = {p: _parameter(study, p, row.get(p)) for p in study.space.names}
                study.space.check(params)
                plan.append((params, outcome))
        except ValueError as error:
            raise InputError(f"{at}: {error} Nothing of this file was written.") from None
        except StateError as error:
            raise StateError(f"{at}: {error} Nothing of this file was written.") from None
    if not plan and rows:
        say(err(), f"No outcome is filled in in {path}, or all were told before.", "yellow")
    return [
        study.fail(which, "told so by hand")
        if outcome is None and isinstance(which, int)
        else study.tell(which, outcome)
        for which, outcome in plan
    ]


def best(where: str, *, everything: bool, output: Path | None, as_json: bool) -> None:
    """The best point, or the front where there are several objectives."""
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
        rows = [[t.number, *(_measured(t.outcomes[n]) for n in goals.outcomes)] for t in trials]
        show.print(table(["trial", *goals.outcomes], rows, right=range(len(goals.outcomes) + 1)))
        say(show, f"{len(trials)} points that no other beats. Their parameters: alebo best {where} --output front.csv")
        return
    top = trials[0]
    say(show, f"trial {top.number}: " + ", ".join(f"{k} = {_measured(v)}" for k, v in top.outcomes.items()), "bold")
    if top.note.get("chosen_by") not in (None, "measured value"):
        say(show, f"(chosen by {top.note['chosen_by']}, because measurements are noisy)")
    shown = names if everything or len(names) <= SHOWN else names[:SHOWN]
    show.print(table(["parameter", "value"], [(n, _cell(top.params[n])) for n in shown], right=[1]))
    if len(shown) < len(names):
        say(show, f"and {len(names) - len(shown)} more: add --all, or --output best.csv")


def status(where: str, *, as_json: bool) -> None:
    """How the study stands."""
    from ..progress import snapshot, status_lines

    study, file = open_study(where, create=False)
    with study:
        history, goals, space = study.history, study.goals, study.space
    now = snapshot(history, goals, space=space)
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
                "failures": failures,
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
    if pending:
        say(show, "pending: " + ", ".join(map(str, pending[:12])) + (", ..." if len(pending) > 12 else ""))
    for f in failures[-3:]:
        say(show, f"trial {f['number']} failed: {f['reason']}")
    say(show, f"stored in {study.where}")


def _trial_data(t: Trial) -> dict[str, Any]:
    data = {"number": t.number, "params": t.params, "outcomes": {k: v.mean for k, v in t.outcomes.items()}}
    errors = {k: v.sem for k, v in t.outcomes.items() if v.sem is not None}
    return data | ({"standard_errors": errors} if errors else {}) | {"chosen_by": t.note.get("chosen_by")}


def _write_points(trials: Sequence[Trial], names: Sequence[str], outcomes: Sequence[str], path: Path) -> None:
    if path.suffix == ".json":
        import json

        path.write_text(json.dumps(plain([_trial_data(t) for t in trials]), indent=2), encoding="utf-8")
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["trial", *names, *outcomes])
        for t in trials:
            rows.writerow(
                [t.number, *(_exact(t.params[n]) for n in names), *(repr(t.outcomes[n].mean) for n in outcomes)]
            )


def _parameter(study: Study, name: str, cell: str | None) -> Any:
    from ..space import Categorical, Fixed, Int

    p = next(q for q in study.space.parameters if q.name == name)
    if isinstance(p, Fixed):
        return p.value
    text = (cell or "").strip()
    if not text:
        raise InputError(f"a point that was never asked names every parameter; {name!r} is empty.")
    if isinstance(p, Categorical):
        return next((c for c in p.choices if str(c) == text), text)
    number = _number(text, name)
    return int(number) if isinstance(p, Int) and number == int(number) else number


def _number(text: str, name: str) -> Any:
    pair = _PAIR.fullmatch(text)
    try:
        return (float(pair.group(1)), float(pair.group(2))) if pair else float(text)
    except ValueError:
        raise InputError(f"{name!r} is a number, or mean+-error; got {text!r}.") from None


def _with_error(cell: str, sem: str, name: str) -> Any:
    return (_number(cell, name), _number(sem, f"{name}_sem")) if sem else _number(cell, name)


def _same(trial: Trial, outcome: Mapping[str, Any]) -> bool:
    return all(trial.outcomes[n].mean == (v[0] if isinstance(v, tuple) else v) for n, v in outcome.items())


def _exact(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _measured(value: Any) -> str:
    return f"{value.mean:.6g}" + (f" ± {value.sem:.2g}" if value.sem is not None else "")
