"""`alebo run`: evaluate a study's trials with live progress; the same command goes on after an interruption."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .._errors import InputError, StateError
from .._processes import remove_stale_folders
from .._urls import redact
from ..live import Progress
from ..progress import clock, number
from ..runner import Step
from ..runner import run as evaluate
from ._out import err, out, print_json, say
from .budget import check_given
from .study import open_study

if TYPE_CHECKING:
    from rich.console import Console

    from ..optimizer import Optimizer


class _Screen(logging.Handler):
    """Shows what the storage has to say (waiting for a database, healing a file) above the live view."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.WARNING)
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        say(self.console, record.getMessage(), "yellow")


@contextmanager
def _storage_messages(console: Console) -> Iterator[None]:
    logger, screen = logging.getLogger("alebo.runner.storage"), _Screen(console)
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(screen)
    try:
        yield
    finally:
        logger.removeHandler(screen)
        logger.propagate = propagate


def run(
    where: str,
    *,
    budget: int | None,
    workers: int | None,
    ahead: int | None,
    max_failed: float | None,
    log: bool,
    learn_from: Sequence[str] = (),
    as_json: bool,
) -> None:
    """Run until the budget is used."""
    if workers is not None and workers < 1:
        raise InputError(
            f"`--workers` is a whole number of 1 or more; got {workers}. Leave it out to take study.toml's."
        )
    words = err()
    with _storage_messages(words):
        how: dict[str, Any] = {
            "budget": budget,
            "workers": workers,
            "ahead": ahead,
            "max_failed": max_failed,
            "log": log,
        }
        _run(where, words, **how, learn_from=learn_from, as_json=as_json)


def _run(
    where: str,
    words: Console,
    *,
    budget: int | None,
    workers: int | None,
    ahead: int | None,
    max_failed: float | None,
    log: bool,
    learn_from: Sequence[str] = (),
    as_json: bool,
) -> None:
    remove_stale_folders()
    study, file = open_study(where, create=True, program=True, learn_from=learn_from, budget=budget)
    if file is None or file.evaluator is None:
        raise InputError(
            f"A run needs an [evaluator] with a command or a Python function; {redact(where)} has none. Add one, or "
            "drive the study by hand: alebo ask, then alebo tell."
        )
    check_given(study, where, budget)
    logging.getLogger("alebo").addHandler(logging.NullHandler())  # failures are shown as events, once
    start = time.monotonic()
    before = study.history
    done = len(before) - len(before.pending)
    if done and words.is_terminal and not as_json:
        say(words, f"{done} evaluations are already there; going on.", "dim")
    command = type(file.evaluator).__name__ == "CommandEvaluator"
    shown: dict[str, Any] = {"title": file.name, "space": study.space, "console": words, "log_events": log}
    with Progress(study.goals, timeout=file.timeout, **shown) as progress:
        progress.start(before)

        def after(step: Step) -> None:
            progress.update(
                step.study.history, model_seconds=step.ask_seconds, evaluation_seconds=step.evaluation_seconds
            )

        opt = evaluate(
            study,
            file.evaluator,
            workers=file.workers if workers is None else workers,
            ahead=file.ahead if ahead is None else ahead,
            budget=budget,
            max_failed=file.max_failed if max_failed is None else max_failed,
            # a command's limits are held by its evaluator, which can also end what the command started
            timeout=None if command else file.timeout,
            memory=None if command else file.memory,
            on_step=after,
            on_start=lambda trial: progress.began(trial.number),
        )
    finished = len(opt.history) - len(opt.history.pending)
    summary: dict[str, Any] = {
        "study": file.name,
        "evaluations": finished,
        "made_now": finished - done,
        "failed": len(opt.history.failed),
        "seconds": time.monotonic() - start,
        "storage": study.where,
    }
    _conclude(opt, summary, where, as_json=as_json)


def _conclude(opt: Optimizer, summary: dict[str, Any], where: str, *, as_json: bool) -> None:
    """Say what a run found, and what to do next."""
    try:
        best = [opt.best()] if opt.goals.single else opt.front()
    except StateError as nothing:
        best, summary["message"] = [], str(nothing)
    if as_json:
        points = [
            {"number": t.number, "params": t.params, "outcomes": {k: v.mean for k, v in t.outcomes.items()}}
            for t in best
        ]
        print_json({**summary, **({"best": points[0] if points else None} if opt.goals.single else {"front": points})})
        return
    show = out()
    if not best:
        say(show, str(summary["message"]))
        return
    if opt.goals.single:
        values = ", ".join(f"{k} = {number(v.mean)}" for k, v in best[0].outcomes.items())
        say(show, f"Best: trial {best[0].number} with {values}.", "bold")
    else:
        say(
            show, f"{len(best)} points on the front of {' and '.join(g.outcome for g in opt.goals.objectives)}.", "bold"
        )
    say(
        show,
        f"{summary['made_now']} evaluations in {clock(summary['seconds'])}, {summary['failed']} of {len(opt.history)} "
        "failed in all.",
    )
    say(show, f"Its parameters: alebo best {where}     Everything: alebo report {where}")
    say(show, f"Go on with more: alebo run {where} --budget {2 * max(opt.budget or 1, opt.asked)}")
