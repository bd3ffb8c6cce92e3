"""`alebo run`: evaluate a study's trials with live progress; the same command goes on after an interruption."""

from __future__ import annotations

import logging
import time
from typing import Any

from .._errors import InputError, StateError
from ..history import Trial
from ..progress import Progress, clock, number
from ..runner import Study
from ..runner import run as evaluate
from ._out import err, out, print_json, say
from .study import open_study


class _Timed(Study):
    """A study that knows how long its questions took; what is stored is the same."""

    asking: float = 0.0
    began: dict[int, float]

    def claim(self, *args: Any, **kwargs: Any) -> list[Trial]:
        start = time.monotonic()
        trials = super().claim(*args, **kwargs)
        now = time.monotonic()
        self.asking += now - start
        self.began = {**getattr(self, "began", {}), **{t.number: now for t in trials}}
        return trials


def run(where: str, *, budget: int | None, workers: int | None, log: bool, as_json: bool) -> None:
    """Run until the budget is used."""
    study, file = open_study(where, create=True, kind=_Timed)
    assert isinstance(study, _Timed)
    if file is None or file.evaluator is None:
        raise InputError(
            f"A run needs an [evaluator] with a command or a Python function; {where} has none. Add one, or drive the "
            f"study by hand: alebo ask {where}, then alebo tell {where} ..."
        )
    logging.getLogger("alebo").addHandler(logging.NullHandler())  # failures are shown as events, once
    words, start = err(), time.monotonic()
    before = study.history
    done = len(before) - len(before.pending)
    if done and words.is_terminal and not as_json:
        say(words, f"{done} evaluations are already there; going on.", "dim")
    command = type(file.evaluator).__name__ == "CommandEvaluator"
    with Progress(study.goals, title=file.name, space=study.space, console=words, log_events=log) as progress:
        progress.start(before)

        def step(trial: Trial, study: Study) -> None:
            assert isinstance(study, _Timed)
            asked, study.asking = study.asking, 0.0
            took = time.monotonic() - study.began.get(trial.number, time.monotonic())
            progress.update(study.history, model_seconds=asked, evaluation_seconds=took)

        opt = evaluate(
            study,
            file.evaluator,
            workers=workers or file.workers,
            budget=budget,
            # a command's limits are held by its evaluator, which can also end what the command started
            timeout=None if command else file.timeout,
            memory=None if command else file.memory,
            callback=step,
        )
    history = opt.history
    made = len(history) - len(history.pending) - done
    summary: dict[str, Any] = {
        "study": file.name,
        "evaluations": len(history) - len(history.pending),
        "made_now": made,
        "failed": len(history.failed),
        "seconds": time.monotonic() - start,
        "storage": study.where,
    }
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
        f"{made} evaluations in {clock(summary['seconds'])}, {len(history.failed)} of {len(history)} failed in all.",
    )
    say(show, f"Its parameters: alebo best {where}     Everything: alebo report {where}")
    say(show, f"Go on with more: alebo run {where} --budget {2 * (opt.budget or made)}")
