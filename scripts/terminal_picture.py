"""A terminal screen, captured with its colours (`tmux capture-pane -e -p`), as an SVG picture for the documentation.

tmux capture-pane -e -p > screen.ansi; python scripts/terminal_picture.py screen.ansi docs/img/progress.svg
"""

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

source, target = map(Path, sys.argv[1:3])
lines = source.read_text().rstrip().splitlines()
console = Console(record=True, width=int(sys.argv[3]) if len(sys.argv) > 3 else 100, file=io.StringIO())
for line in lines:
    console.print(Text.from_ansi(line), no_wrap=True, crop=True)
svg = console.export_svg(title="alebo run study.toml")
svg = re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.S)  # the picture fetches nothing from a network
target.parent.mkdir(parents=True, exist_ok=True)
target.write_text(svg)
