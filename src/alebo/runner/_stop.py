"""Ctrl-C, SIGTERM and SIGHUP end a run, at a place where nothing is half done."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LOOK = 0.2  # seconds between two looks whether to stop, during a pause


class Stop:
    """Notes the first signal and raises a KeyboardInterrupt where `check` is called; a second signal raises at once.

    An exception that is raised wherever the signal comes is not safe. Compiled code may swallow it and go on with half
    of its numbers. In a destructor or in a hook that runs when a process forks, Python prints it as a traceback and
    drops it, and the run does not stop.
    """

    def __init__(self) -> None:
        self.signal = self.open = 0

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Inside, these signals are noted, unless the program handles them itself."""
        main, driver = threading.current_thread() is threading.main_thread(), os.getpid()
        defaults = {
            signal.SIGINT: signal.default_int_handler,
            signal.SIGTERM: signal.SIG_DFL,
            signal.SIGHUP: signal.SIG_DFL,
        }
        found = {n: old for n, old in defaults.items() if main and signal.getsignal(n) == old}

        def stop(number: int, _: Any) -> None:
            if os.getpid() != driver:  # a process forked from this one: as if there were no handler
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)
            first, self.signal = not self.signal, number
            if self.open or not first:
                self.check()

        try:
            for number in found:
                signal.signal(number, stop)
            yield
        finally:
            for number, old in found.items():
                signal.signal(number, old)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside, the first signal raises, too: around a wait of unknown length."""
        self.open += 1
        try:
            self.check()
            yield
        finally:
            self.open -= 1

    @contextmanager
    def after(self) -> Iterator[None]:
        """Stop after what is done inside, before its result is used."""
        yield
        self.check()

    def check(self) -> None:
        """Raise if a signal came."""
        if self.signal and threading.current_thread() is threading.main_thread():
            by = "" if self.signal == signal.SIGINT else f" by {signal.Signals(self.signal).name}"
            raise KeyboardInterrupt(by)
