"""How far a sweep is, in the terminal or in its log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .experiment import Task


KEPT = "Stored runs are kept, those in flight are lost; the same command goes on with the others."


@contextmanager
def stoppable() -> Iterator[None]:
    """Ctrl-C ends a command with one line that says what is kept, and exit code 130."""
    import typer

    try:
        yield
    except KeyboardInterrupt as stop:
        typer.echo(str(stop) or f"Stopped. {KEPT}", err=True)
        raise typer.Exit(130) from None


@contextmanager
def progress(total: int, *, show: bool) -> Iterator[Any]:
    """A bar in evaluations with the time left; where there is no terminal, a line a minute."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        "[progress.description]{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        "left",
        TimeRemainingColumn(),
    )
    bar = Progress(
        *(TextColumn(c) if isinstance(c, str) else c for c in columns),
        console=console,
        disable=not show or not console.is_terminal,
    )
    with bar:
        handle = bar.add_task("evaluations", total=max(total, 1))
        start, done, last = time.monotonic(), 0, time.monotonic()
        lock = Lock()

        def step(task: Task, advance: int, error: str | None) -> None:
            nonlocal done, last
            with lock:
                done += advance
                bar.update(
                    handle, advance=advance, description=f"{task.path.parent.name} {task.label} seed {task.seed}"
                )
                if error is not None and show:
                    console.print(
                        f"failed: {task.path.parent.name} {task.label} seed {task.seed}: {error}",
                        style="red",
                        markup=False,
                    )
                now = time.monotonic()
                if show and not console.is_terminal and now - last > 60:
                    last, left = now, (now - start) / max(done, 1) * (total - done)
                    console.print(f"{done} of {total} evaluations, about {left / 60:.0f} minutes left", markup=False)

        yield step
