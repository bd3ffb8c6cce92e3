"""What evaluations printed, kept in a folder: one file for each trial, and never more than a cap."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path

EACH = 2**20  # characters that are kept of one evaluation: its beginning and its end
ALL = 2**28  # bytes that are kept of all of them: the newest


@dataclass(frozen=True)
class Logs:
    """A folder of logs. Writing never fails an evaluation: a log that cannot be written is left out."""

    folder: str

    def path(self, number: int) -> Path:
        """Where the log of a trial is."""
        return Path(self.folder) / f"{number:06d}.log"

    def read(self, number: int) -> str | None:
        """The log of a trial; None where there is none."""
        try:
            return self.path(number).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def numbers(self) -> list[int]:
        """The trials that have a log."""
        return sorted(int(p.stem) for p in Path(self.folder).glob("*.log") if p.stem.isdecimal())

    def write(self, number: int, text: str) -> None:
        """Keep a log; of a long one the beginning and the end, and of many the newest."""
        if len(text) > EACH:
            left_out = f"\n[... {len(text) - EACH} characters left out ...]\n"
            text = text[: EACH // 4] + left_out + text[-(EACH - EACH // 4) :]
        with suppress(OSError):
            Path(self.folder).mkdir(exist_ok=True)
            self.path(number).write_text(text, encoding="utf-8", errors="replace")
            self._prune()

    def _prune(self) -> None:
        files = sorted(Path(self.folder).glob("*.log"), key=lambda p: p.stat().st_mtime)
        size = sum(p.stat().st_size for p in files)
        for old in files[:-1]:
            if size <= ALL:
                return
            size -= old.stat().st_size
            old.unlink()

    @contextmanager
    def printed(self, number: int) -> Iterator[None]:
        """Inside, what Python prints goes to the log of this trial."""
        import traceback

        with suppress(OSError):
            Path(self.folder).mkdir(exist_ok=True)
        try:
            file = self.path(number).open("w", encoding="utf-8", errors="replace", buffering=1)
        except OSError:
            file = open(os.devnull, "w")  # noqa: SIM115
        with file, redirect_stdout(file), redirect_stderr(file):
            try:
                yield
            except Exception:
                traceback.print_exc(file=file)
                raise
        text = self.read(number)
        if text is not None and len(text) > EACH:
            self.write(number, text)
