"""Progress: what a snapshot counts, what is worth a line, and how it looks in 60 columns, without colour, in a pipe."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from alebo import AtMost, Goals, History, Maximize, Minimize, State, Trial
from alebo.goals import Outcome
from alebo.live import Progress
from alebo.progress import ASCII_BARS, clock, events, seconds, snapshot, sparkline, status_lines

LOSS = Goals(Minimize("loss"))
BOUNDED = Goals([Maximize("gain"), AtMost("cost", 1.0)])


def trial(i: int, value: float | None, *, dim: int | None = 4, name: str = "loss", cost: float | None = None) -> Trial:
    note = {} if dim is None else {"dim": dim}
    if value is None:
        return Trial(i, {}, np.zeros(2), state=State.FAILED, reason="exit code 3\nand more", note=note)
    told = {name: Outcome(value)} | ({} if cost is None else {"cost": Outcome(cost)})
    return Trial(i, {}, np.zeros(2), None, told, State.COMPLETE, note)


def history(*values: float | None, budget: int | None = 10) -> History:
    return History(tuple(trial(i, v) for i, v in enumerate(values)), budget)


def test_snapshot_counts() -> None:
    h = history(3.0, None, 1.0, 2.0).with_trial(Trial(4, {}, np.zeros(2), note={"dim": 6}))
    now = snapshot(h, LOSS, seconds_per_trial=2.0)
    assert (now.done, now.failed, now.pending, now.best, now.best_trial, now.dim, now.grown) == (4, 1, 1, 1.0, 2, 6, 1)
    assert now.trace == (3.0, 3.0, 1.0, 1.0)
    assert now.seconds_left == 12.0


def test_snapshot_with_constraints_and_maximize() -> None:
    rows = [(5.0, 2.0), (1.0, 0.5), (2.0, 0.1)]
    h = History(tuple(trial(i, v, name="gain", cost=c) for i, (v, c) in enumerate(rows)))
    now = snapshot(h, BOUNDED)
    assert (now.best, now.best_trial, now.infeasible) == (2.0, 2, 1)
    assert math.isnan(now.trace[0])
    assert now.trace[1:] == (1.0, 2.0)


def test_snapshot_of_several_objectives_is_the_size_of_the_front() -> None:
    goals = Goals([Minimize("a"), Minimize("b")])
    rows = [(1, 4), (4, 1), (5, 5), (0, 0)]
    told = [Trial(i, {}, np.zeros(1), None, {"a": Outcome(a), "b": Outcome(b)}, State.COMPLETE) for i, (a, b) in enumerate(rows)]  # fmt: skip
    assert snapshot(History(tuple(told)), goals).trace == (1, 2, 2, 1)
    assert "front of 1 for a and b" in status_lines(snapshot(History(tuple(told)), goals))[1]


@given(st.lists(st.floats(-1e300, 1e300) | st.just(math.nan), max_size=200), st.integers(1, 60))
def test_sparkline_fits_and_never_breaks(values: list[float], width: int) -> None:
    line = sparkline(values, width)
    assert len(line) <= width
    assert len(line) in (0, min(width, len(values)))


def test_sparkline_shows_improvement() -> None:
    assert sparkline([8, 4, 2, 1]) == "".join(sorted(sparkline([8, 4, 2, 1]), reverse=True))
    assert sparkline([1, 2, 4, 8])[-1] == "█"
    assert sparkline([5, 5, 5]) == "▁▁▁"
    assert set(sparkline([300.0] + [1.0 / i for i in range(1, 20)])) >= {"█", "▁", "▂"}  # a bad start flattens nothing


@given(
    st.lists(st.none() | st.floats(-1e6, 1e6), max_size=30),
    st.integers(40, 120),
    st.booleans(),
    st.floats(0, 1e7),
)
def test_lines_never_exceed_the_width(values: list[float | None], width: int, plain: bool, spent: float) -> None:
    now = snapshot(history(*values), LOSS, model_seconds=spent, evaluation_seconds=spent, seconds_per_trial=spent)
    lines = status_lines(now, title="a rather long name of a study", width=width, ascii_only=plain)
    assert all(len(line) <= width for line in lines)
    if plain:
        assert all(line.isascii() for line in lines)


def test_lines_at_60_columns_keep_every_number() -> None:
    h = history(3.0, None, 1.0, 2.0).with_trial(Trial(4, {}, np.zeros(2), note={"dim": 6}))
    text = "\n".join(
        status_lines(snapshot(h, LOSS, model_seconds=8, evaluation_seconds=80, seconds_per_trial=9), width=60)
    )
    for part in (
        "4 of 10",
        "left",
        "1 (trial 2)",
        "model 2.0 s",
        "evaluation 20.0 s",
        "failed 1",
        "infeasible 0",
        "dimension 6",
    ):
        assert part in text
    assert "grown 1x" in text
    assert any(bar in status_lines(snapshot(h, LOSS), ascii_only=True)[1] for bar in ASCII_BARS)


@pytest.mark.parametrize(("value", "words"), [(7, "0:07"), (750, "12:30"), (11100, "3:05:00"), (190000, "2 d 04 h")])
def test_clock(value: float, words: str) -> None:
    assert clock(value) == words
    assert seconds(0.0123) == "12 ms"


def test_events_are_said_once() -> None:
    a = history(3.0)
    b = a.with_trial(trial(1, None)).with_trial(trial(2, 1.0, dim=6))
    lines = events(a, b, LOSS)
    assert lines == [
        "trial 1 failed: exit code 3",
        "trial 2: best loss is now 1",
        "the embedding grew from 4 to 6 dimensions",
    ]
    assert events(b, b, LOSS) == []
    assert events(b, b.with_trial(trial(3, 5.0, dim=6)), LOSS) == []


def test_the_first_feasible_point_is_an_event() -> None:
    first = History((trial(0, 5.0, name="gain", cost=2.0),))
    then = first.with_trial(trial(1, 1.0, name="gain", cost=0.5))
    assert "trial 1 is the first that satisfies the constraints" in events(first, then, BOUNDED)
    again = events(then, then.with_trial(trial(2, 2.0, name="gain", cost=0.5)), BOUNDED)
    assert not any("first" in line for line in again)


def shown(console: Console, *, log_events: bool = False) -> str:
    with Progress(LOSS, title="demo", console=console, log_events=log_events) as progress:
        progress.start(history(3.0))
        progress.update(history(3.0, 1.0), model_seconds=1.0, evaluation_seconds=2.0)
        progress.update(history(3.0, 1.0, None))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_quiet_where_there_is_no_terminal() -> None:
    assert shown(Console(file=io.StringIO(), force_terminal=False)) == ""
    text = shown(Console(file=io.StringIO(), force_terminal=False, width=60), log_events=True)
    assert "best loss is now 1" in text
    assert "exit code 3" in text
    assert "\x1b" not in text


def test_live_in_a_terminal_with_and_without_colour() -> None:
    plain = shown(Console(file=io.StringIO(), force_terminal=True, no_color=True, width=60, legacy_windows=False))
    assert "3 of 10 evaluations" in plain
    assert "best loss is now 1" in plain
    assert "\x1b[32m" not in plain  # no green
    colour = shown(Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=60))
    assert "\x1b[32m" in colour


def test_a_dumb_terminal_gets_lines_only() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=60, _environ={"TERM": "dumb"})
    text = shown(console)
    assert "best loss is now 1" in text
    assert "evaluations" not in text


def test_resuming_is_no_news() -> None:
    console = Console(file=io.StringIO(), force_terminal=False)
    with Progress(LOSS, console=console, log_events=True) as progress:
        progress.start(history(3.0, 1.0, None))
        progress.update(replace(history(3.0, 1.0, None, 2.0)))
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]


def test_cheap_looks_do_not_count() -> None:
    from alebo import Float, Space
    from alebo.space import Fidelity

    space = Space([Float("a", 0, 1), Fidelity("epochs", 1, 10)])
    rows = [(5.0, 10), (1.0, 2), (3.0, 10)]
    told = [
        Trial(i, {"a": 0.5, "epochs": e}, np.zeros(2), None, {"loss": Outcome(v)}, State.COMPLETE)
        for i, (v, e) in enumerate(rows)
    ]
    now = snapshot(History(tuple(told)), LOSS, space=space)
    assert (now.best, now.best_trial, now.infeasible) == (3.0, 2, 0)
    assert now.trace == (5.0, 5.0, 3.0)
    assert events(History(tuple(told[:1])), History(tuple(told[:2])), LOSS, space) == []


def test_a_resumed_run_divides_its_seconds_by_its_own_evaluations() -> None:
    with Progress(LOSS, console=Console(file=io.StringIO(), force_terminal=False)) as progress:
        progress.start(history(3.0, 2.0, 1.0))
        progress.update(history(3.0, 2.0, 1.0, 5.0), model_seconds=4.0, evaluation_seconds=8.0)
        text = "\n".join(status_lines(progress.now(history(3.0, 2.0, 1.0, 5.0))))
    assert "model 4.0 s" in text
    assert "evaluation 8.0 s" in text


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def test_elapsed_time_and_the_present_evaluation_are_shown_and_move() -> None:
    now = Clock()
    console = Console(file=io.StringIO(), force_terminal=True, width=80, no_color=True, legacy_windows=False)
    with Progress(LOSS, console=console, time_now=now) as progress:
        progress.start(history(3.0))
        waiting = history(3.0).with_trial(Trial(1, {}, np.zeros(2)))
        progress.update(waiting, model_seconds=1.0)
        progress.began(1)
        now.time += 65
        lines = status_lines(progress.now(waiting))
        assert "1:05 elapsed" in lines[0]
        assert "trial 1 running for 1:05" in "\n".join(lines)
        progress.tick()
        assert "trial 1 running for 1:05" in console.file.getvalue()  # type: ignore[attr-defined]
        progress.update(history(3.0, 2.0), evaluation_seconds=65.0)
        assert "running" not in "\n".join(status_lines(progress.now(history(3.0, 2.0))))


def test_an_evaluation_that_takes_ten_times_the_median_gets_one_warning() -> None:
    now = Clock()
    console = Console(file=io.StringIO(), force_terminal=False, width=200)
    values: list[float | None] = []
    with Progress(LOSS, console=console, log_events=True, time_now=now) as progress:
        progress.start(history())
        for v in (3.0, 3.0, 3.0):
            values.append(v)
            progress.update(history(*values), evaluation_seconds=6.0)
        progress.update(history(*values).with_trial(Trial(3, {}, np.zeros(2))))
        progress.began(3)
        for spent in (59, 2, 100):
            now.time += spent
            progress.tick()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.count("trial 3 has run for 1:01, over 10 times the usual 0:06; a `timeout` would end it") == 1
    assert text.count("has run for") == 1


def test_a_slow_evaluation_that_has_a_timeout_is_not_told_of_one() -> None:
    now = Clock()
    console = Console(file=io.StringIO(), force_terminal=False, width=200)
    with Progress(LOSS, console=console, log_events=True, time_now=now, timeout=90.0) as progress:
        progress.start(history())
        for k in range(1, 4):
            progress.update(history(*([3.0] * k)), evaluation_seconds=0.04)
        progress.update(history(3.0, 3.0, 3.0).with_trial(Trial(3, {}, np.zeros(2))))
        progress.began(3)
        now.time += 2
        progress.tick()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "trial 3 has run for 0:02, over 10 times the usual 40 ms; its `timeout` ends it after 1:30" in text
    assert "would end it" not in text


def test_the_screen_refreshes_by_itself() -> None:
    """The thread redraws without a call; how often is not timed."""
    import threading

    seen = threading.Event()

    class Watched(Progress):
        def tick(self) -> None:
            super().tick()
            seen.set()

    console = Console(file=io.StringIO(), force_terminal=True, width=60, no_color=True, legacy_windows=False)
    with Watched(LOSS, console=console) as progress:
        progress.start(history(3.0))
        assert seen.wait(30)


def test_a_notebook_gets_html(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("IPython")
    import IPython.display

    shown_: list[str] = []

    class Handle:
        def update(self, thing: IPython.display.HTML) -> None:
            shown_.append(str(thing.data))

    monkeypatch.setattr(IPython.display, "display", lambda *a, **k: Handle())
    console = Console(file=io.StringIO(), force_jupyter=True, width=80)
    with Progress(LOSS, title="<b>", console=console) as progress:
        progress.start(history(3.0))
    assert "1 of 10 evaluations" in shown_[-1]
    assert "&lt;b&gt;" in shown_[-1]


def test_what_was_measured_before_does_not_count_against_the_budget() -> None:
    old = replace(trial(0, 3.0), asked=False)
    now = snapshot(History((old, trial(1, 2.0)), 10), LOSS, seconds_per_trial=2.0)
    assert status_lines(now)[0].startswith("1 of 10 evaluations and 1 earlier ones")
    assert now.seconds_left == 18.0
