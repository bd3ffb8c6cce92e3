"""A real headless Chromium for tests: the page's DOM after its scripts ran, its console, and a picture."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip


def chromium() -> str | None:
    """Where Chromium is, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@dataclass(frozen=True)
class Page:
    """What a browser made of a page."""

    dom: str
    console: tuple[str, ...]  # every line the page wrote to its console, errors included


def open_page(path: Path, *, picture: Path | None = None, width: int = 1200, height: int = 900) -> Page:
    """Load a file without a network, wait for its scripts, and read what came of it; take a picture too if asked."""
    program = chromium()
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="browser-") as profile:
        common = [program, *FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        common += ["--enable-logging=stderr", "--v=0", "--virtual-time-budget=20000"]
        if picture is not None:
            subprocess.run(
                [*common, f"--screenshot={picture}", path.as_uri()], capture_output=True, timeout=120, check=True
            )
        done = subprocess.run(
            [*common, "--dump-dom", path.as_uri()], capture_output=True, timeout=120, check=True, text=True
        )
    console = tuple(re.findall(r":CONSOLE[:(].*", done.stderr))
    return Page(done.stdout, console)
