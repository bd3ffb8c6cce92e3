"""`python -m alebo.bench.figures [RESULTS [OUT]]`: every figure from committed results, nothing is run."""

from __future__ import annotations

import sys
from pathlib import Path

from alebo import AleboError

from . import figure, names


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    out = Path(sys.argv[2] if len(sys.argv) > 2 else "docs/img")
    missing = 0
    for name in names():
        try:
            path, caption = figure(name, folder, out)
            print(f"{path}: {caption}")
        except AleboError as error:
            missing += 1
            print(f"{name} is not drawn: {error}", file=sys.stderr)
    raise SystemExit(1 if missing else 0)


if __name__ == "__main__":
    main()
