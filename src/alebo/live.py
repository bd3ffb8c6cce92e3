"""The live view of a run: lines that refresh every second in a terminal, a small block in a notebook."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .goals import Goals
from .history import History, State
from .progress import Snapshot, clock, events, seconds, snapshot, status_lines
from .space import Space

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

SLOW = 10  # an evaluation that takes so many times the median gets a warning
JUDGED = 3  # finished evaluations before the median says anything


def _brief(spent: float) -> str:
    return clock(spent) if spent >= 1.0 else seconds(spent)


def _notebook() -> Any:
    from importlib import import_module

    return import_module("IPython.display")


@dataclass
class Progress:
    """A live view for a terminal or a notebook; events are printed above it. Silent where there is neither.

    Call `began(number)` when an evaluation starts and `update(history, ...)` after every change. Between the calls a
    thread redraws it every second.
    """

    goals: Goals
    title: str = ""
    space: Space | None = None  # where evaluations have a fidelity, only those at its target count
    console: Console | None = None
    log_events: bool = False  # print the event lines where there is no terminal, too
    time_now: Callable[[], float] = time.monotonic
    model_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    timeout: float | None = None  # seconds after which an evaluation is ended, where there is such a limit
    _last: History | None = None
    _live: Any = None
    _handle: Any = None  # the notebook's display
    _running: dict[int, float] = field(default_factory=dict)  # trial -> when it began
    _took: list[float] = field(default_factory=list)  # seconds of the finished evaluations
    _warned: set[int] = field(default_factory=set)
    _started: float = 0.0
    _first: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _ticker: threading.Thread | None = None
    _lock: Any = field(default_factory=threading.RLock)

    def __enter__(self) -> Progress:
        from rich.console import Console

        if self.console is None:
            self.console = Console(stderr=True, highlight=False)
        self._started = self.time_now()
        if self.console.is_jupyter:
            notebook = _notebook()
            self._handle = notebook.display(notebook.HTML(""), display_id=True)
        elif self.live:
            from rich.live import Live

            self._live = Live(console=self.console, auto_refresh=False, transient=False)
            self._live.start()
        if self._live is not None or self._handle is not None or self.log_events:
            self._ticker = threading.Thread(target=self._tick_every_second, daemon=True, name="alebo-progress")
            self._ticker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop.set()
        if self._ticker is not None:
            self._ticker.join(timeout=2)
        with self._lock:
            self._running.clear()
            if self._last is not None:
                self._draw(self._last)
            if self._live is not None:
                self._live.stop()

    @property
    def live(self) -> bool:
        """Whether lines can be redrawn here."""
        return self.console is not None and self.console.is_terminal and not self.console.is_dumb_terminal

    def start(self, history: History) -> None:
        """Show where a run stands before it goes on; what is already there is no event."""
        with self._lock:
            self._last = history
            self._first = sum(t.state is not State.PENDING for t in history)
            self._draw(history)

    def began(self, number: int) -> None:
        """The evaluation of this trial starts now."""
        with self._lock:
            self._running[number] = self.time_now()
            if self._last is not None:
                self._draw(self._last)

    def update(self, history: History, *, model_seconds: float = 0.0, evaluation_seconds: float = 0.0) -> None:
        """Take in a later history of the run, and the seconds that were spent since the last one."""
        with self._lock:
            self.model_seconds += model_seconds
            self.evaluation_seconds += evaluation_seconds
            if evaluation_seconds > 0:
                self._took.append(evaluation_seconds)
            pending = {t.number for t in history.pending}
            self._running = {n: at for n, at in self._running.items() if n in pending or n >= len(history)}
            for line in events(self._last, history, self.goals, self.space):
                self._say(line)
            self._last = history
            self._draw(history)

    def tick(self) -> None:
        """What a second brings: a warning for an evaluation that takes too long, and fresh times on the screen."""
        with self._lock:
            if len(self._took) >= JUDGED:
                usual = statistics.median(self._took)
                for number, at in self._running.items():
                    spent = self.time_now() - at
                    if spent > SLOW * usual and number not in self._warned:
                        self._warned.add(number)
                        way = "a `timeout` would end it"
                        if self.timeout is not None:
                            way = f"its `timeout` ends it after {_brief(self.timeout)}"
                        self._say(
                            f"trial {number} has run for {clock(spent)}, over {SLOW} times the usual {_brief(usual)}; {way}"
                        )
            if self._last is not None:
                self._draw(self._last)

    def now(self, history: History) -> Snapshot:
        """The snapshot of this moment, with the time left judged by the wall clock of this run."""
        finished = sum(t.state is not State.PENDING for t in history) - self._first
        elapsed = self.time_now() - self._started
        return snapshot(
            history,
            self.goals,
            space=self.space,
            model_seconds=self.model_seconds,
            evaluation_seconds=self.evaluation_seconds,
            seconds_per_trial=elapsed / finished if finished > 0 else None,
            timed=finished,
            elapsed=elapsed,
            running=[(n, self.time_now() - at) for n, at in self._running.items()],
        )

    def _tick_every_second(self) -> None:
        while not self._stop.wait(1.0):
            self.tick()

    def _say(self, line: str) -> None:
        from rich.text import Text

        if self.console is None or self._handle is not None:
            return
        if self.console.is_terminal or self.log_events:
            stamp = clock(self.time_now() - self._started)
            self.console.print(Text.assemble((f"{stamp:>7}  ", "dim"), line), soft_wrap=True)

    def _draw(self, history: History) -> None:
        if self._live is not None:
            self._live.update(self._render(self.now(history)), refresh=True)
        if self._handle is not None:
            self._handle.update(_notebook().HTML(self._html(self.now(history))))

    def _html(self, now: Snapshot) -> str:
        lines = "\n".join(escape(line) for line in status_lines(now, title=self.title, width=100))
        done = (
            ""
            if not now.budget
            else f'<progress value="{now.done - now.earlier}" max="{now.budget}" style="width:30em"></progress>'
        )
        return f"<div>{done}<pre style='margin:0'>{lines}</pre></div>"

    def _render(self, now: Snapshot) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        assert self.console is not None
        width = self.console.width
        ascii_only = not (self.console.encoding or "").lower().startswith("utf")
        lines = status_lines(now, title=self.title, width=width, ascii_only=ascii_only)
        done = (now.done - now.earlier) / now.budget if now.budget else 0.0
        full = int(done * min(width, 60))
        bar = Text(("#" if ascii_only else "━") * full, style="green")
        bar.append(("-" if ascii_only else "─") * (min(width, 60) - full), style="dim")
        rows = [
            Text(lines[0], style="bold"),
            bar,
            Text(lines[1], style="cyan"),
            *(Text(x, style="dim") for x in lines[2:]),
        ]
        return Group(*(rows if now.budget else [rows[0], *rows[2:]]))
