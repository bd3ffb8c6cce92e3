"""A number of damaged inputs, and what came of each: accepted, refused with an AleboError, or a finding."""

from __future__ import annotations

import hashlib
import logging
import random
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from alebo import AleboError

from .targets import TARGETS, Target

SECONDS = 20  # an input that takes longer is a finding


@dataclass
class Count:
    """What came of the inputs of one target."""

    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    seconds: float = 0.0
    findings: dict[str, tuple[str, bytes]] = field(default_factory=dict)  # place -> traceback, first input
    tracebacks: int = 0


class TooSlow(BaseException):
    """An input takes longer than SECONDS."""


@contextmanager
def limited() -> Iterator[None]:
    """Inside, an exception after SECONDS."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"not read within {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def attempt(target: Target, data: bytes, count: Count) -> None:
    """Read one input and count what came of it."""
    count.inputs += 1
    try:
        with limited():
            target.read(data)
        count.accepted += 1
    except AleboError as error:
        count.refused += 1
        if not str(error).strip():
            count.findings.setdefault("an empty message", (repr(error), data))
    except (Exception, TooSlow) as error:
        count.tracebacks += 1
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if "/alebo/" in f.filename] or list(frames)
        place = f"{type(error).__name__} in {Path(ours[-1].filename).name}:{ours[-1].lineno}"
        count.findings.setdefault(place, ("".join(traceback.format_exception(error))[-4000:], data))


def campaign(name: str, folder: Path, inputs: int, seed: int) -> Count:
    """`inputs` damaged inputs of one target, the same for the same seed."""
    target = TARGETS[name](folder / name)
    rng = random.Random(int.from_bytes(hashlib.sha256(f"{name}:{seed}".encode()).digest()[:8], "big"))
    count, start = Count(), time.perf_counter()
    logging.disable(logging.CRITICAL)
    try:
        for _ in range(inputs):
            attempt(target, target.mutated(rng), count)
    finally:
        logging.disable(logging.NOTSET)
    count.seconds = time.perf_counter() - start
    return count
