"""Waiting for a database that is away: bounded, with growing pauses, and with a line on the screen."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from .._errors import StudyError
from ._stop import LOOK

log = logging.getLogger("alebo.runner.storage")
T = TypeVar("T")


class Away(Exception):
    """The storage does not answer now; the same access may succeed later."""


@dataclass
class Patience:
    """How long accesses are tried again, and what is done meanwhile.

    Args:
        where: The storage, as it may be shown.
        seconds: How long one access is tried again before it is given up.
        meanwhile: Called before every pause; what is in hand is brought to safety there.
        check: Called several times a second during a pause; it raises to end the wait.
    """

    where: str
    seconds: float = 600.0
    first: float = 0.2  # seconds of the first pause; each is up to twice as long as the one before
    longest: float = 5.0
    meanwhile: list[Callable[[], None]] = field(default_factory=list)
    check: Callable[[], None] | None = None

    def wait_for(self, access: Callable[[], T]) -> T:
        """The answer of `access`, which raises `Away` while the storage is away."""
        pause, began, said = self.first, None, 0.0
        while True:
            try:
                answer = access()
            except Away as error:
                now = time.monotonic()
                began = now if began is None else began
                for action in reversed(self.meanwhile):
                    action()
                if now - began >= self.seconds:
                    raise StudyError(
                        f"A study's database must be reachable; {self.where} has been away for "
                        f"{now - began:.0f} seconds ({error}). What was written is safe: start the database, and run "
                        "the same command again."
                    ) from None
                if now - said > 10.0 or said == 0.0:
                    log.warning(
                        "The database of %s does not answer (%s); waiting for up to %.0f seconds.",
                        *(self.where, error, self.seconds - (now - began)),
                    )
                    said = now
                # jitter, so that many workers do not come back in the same instant
                self._sleep(max(0.01, min(pause * random.uniform(0.5, 1.5), began + self.seconds - now)))
                pause = min(self.longest, 2 * pause)
                continue
            if began is not None:
                log.warning("The database of %s answers again.", self.where)
            return answer

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (rest := until - time.monotonic()) > 0:
            if self.check is not None:
                self.check()
            time.sleep(min(rest, LOOK))
