"""A terminal screen, captured with its colours (`tmux capture-pane -e -p`), as an SVG picture for the documentation.

tmux capture-pane -e -p > screen.ansi; python -m alebo.bench.terminal_picture screen.ansi docs/img/progress.svg
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text


def main(source: Path, target: Path, width: int = 100) -> None:
    console = Console(record=True, width=width, file=io.StringIO())
    for line in source.read_text().rstrip().splitlines():
        console.print(Text.from_ansi(line), no_wrap=True, crop=True)
    svg = console.export_svg(title="alebo run study.toml")
    svg = re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL)  # the picture fetches nothing from a network
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(svg)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *(int(width) for width in sys.argv[3:4]))
