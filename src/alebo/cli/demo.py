"""`alebo demo`: the main job on an embedded default, from nothing to a picture in under a minute."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._errors import InputError
from ..live import Progress
from ..progress import clock, number, seconds, sparkline
from ._out import err, out, print_json, say, table


def demo(problem: str, *, budget: int | None, seed: int, folder: Path, as_json: bool) -> None:
    """Run the named demonstration."""
    if problem == "hexapod":
        _hexapod(100 if budget is None else budget, seed, folder, as_json)
        return
    if problem != "branin":
        raise InputError(f"A demo is 'branin' or 'hexapod'; got {problem!r}. Plain `alebo demo` runs branin.")
    _branin(50 if budget is None else budget, seed, folder, as_json)


def _branin(budget: int, seed: int, folder: Path, as_json: bool) -> None:
    words = err()
    if not as_json:
        say(words, "Branin's function hidden in 100 parameters: two of them matter, and nobody says which.", "dim")
        say(words, f"{budget} evaluations; the optimum is 0.39789, random search of 50 ends near 1.4.", "dim")
    import numpy as np

    import alebo

    from ..bench.problems import problem as named

    problem = named("branin-100")
    optimum = float(problem.optimum or 0.0)
    opt = alebo.Optimizer(problem.space, problem.goals, seed=seed, budget=budget)
    start = time.monotonic()
    with Progress(opt.goals, title="branin-100", console=words) as progress:
        progress.start(opt.history)
        while opt.asked < budget:
            t0 = time.monotonic()
            trial = opt.ask()[0]
            t1 = time.monotonic()
            progress.began(trial.number)
            opt.tell(trial.number, problem.outcomes(np.array(list(trial.params.values()))))
            progress.update(opt.history, model_seconds=t1 - t0, evaluation_seconds=time.monotonic() - t1)
    spent = time.monotonic() - start
    best = opt.best()
    trace = np.asarray(progress.now(opt.history).trace)
    value = float(trace[-1])
    active = [problem.space.names[i] for i in problem.axes]
    measured = [t.outcomes["value"].mean for t in opt.history.complete]
    picture = _picture(trace, measured, optimum, folder / "trace.png")
    if as_json:
        print_json(
            {
                "problem": "branin-100", "evaluations": len(opt.history), "seconds": spent, "best": value,
                "optimum": optimum, "trial": best.number, "params": best.params, "active": active,
                "trace": trace, "picture": picture, "dim": progress.now(opt.history).dim,
            }
        )  # fmt: skip
        return
    show = out()
    show.print()
    say(show, f"Best value {value:.5f} (optimum {optimum:.5f}), trial {best.number}, in {clock(spent)}.", "bold")
    show.print(table(["the two that matter", "value"], [(n, number(best.params[n])) for n in active], right=[1]))
    say(show, f"and {len(best.params) - len(active)} more that do not.")
    say(show, f"Model time {seconds(progress.model_seconds / max(1, budget))} for each evaluation.")
    if picture:
        say(show, f"The trace: {picture}")
    else:
        say(show, "best so far  " + sparkline(list(trace), 40))
        say(show, 'A picture needs matplotlib: pip install "alebo[plot]"')
    say(show, NEXT)


NEXT = """
Next:
  alebo demo hexapod
      a six-legged robot learns to walk (72 parameters)
  alebo advise --params 100 --budget 200
      which embedding, and its chance to contain an optimum
  alebo new    and then    alebo run study.toml
      your own program"""


def _hexapod(budget: int, seed: int, folder: Path, as_json: bool) -> None:
    from ..bench.problems import hexapod
    from ..optimizer import Optimizer

    words = err()
    if not as_json:
        say(words, f"A six-legged robot, 18 joints, 72 parameters, {budget} gaits to try.", "dim")
    folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    goals = hexapod.hexapod().goals
    with Progress(goals, title="hexapod", console=words) as progress:

        def step(opt: Optimizer, model: float, simulation: float) -> None:
            progress.update(opt.history, model_seconds=model, evaluation_seconds=simulation)

        found = hexapod.demo(budget, seed, folder / "hexapod.gif", step)
    rewards = {"first": found.first.reward, "best": found.best.reward, "tripod": found.tripod.reward}
    if as_json:
        print_json(
            {
                "problem": "hexapod-72",
                "evaluations": len(found.optimizer.history),
                "seconds": time.monotonic() - start,
                **rewards,
                "picture": str(found.picture),
                "note": found.note,
            }
        )
        return
    show = out()
    show.print()
    say(
        show, f"Best reward {found.best.reward:.3f} after {budget} gaits, in {clock(time.monotonic() - start)}.", "bold"
    )
    say(
        show, f"The first gait had {found.first.reward:.3f}; a tripod gait tuned by hand has {found.tripod.reward:.3f}."
    )
    say(show, f"The film: {found.picture}" + (f" ({found.note})" if found.note else ""))


def _picture(trace: Any, measured: Sequence[float], optimum: float, path: Path) -> str | None:
    """The trace as a PNG, or None where matplotlib is missing."""
    try:
        from ..bench.trace_picture import trace_png
    except ImportError:
        return None
    try:
        return str(trace_png(trace, path, measured=measured, optimum=optimum, title="Branin in 100 dimensions"))
    except ImportError:
        return None
