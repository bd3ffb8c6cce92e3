"""`make fuzz`: N damaged inputs of every kind (FUZZ_INPUTS, FUZZ_SEED, FUZZ_TARGETS), and a table of what came of them.

A finding is written to build/fuzz with its traceback. Put its input into tests/fuzz/corpus as `found_...` when it is mended.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path

from .campaign import campaign
from .targets import TARGETS


def main() -> int:
    inputs, seed = int(os.environ.get("FUZZ_INPUTS", "2000")), int(os.environ.get("FUZZ_SEED", "1"))
    names = os.environ.get("FUZZ_TARGETS", " ".join(TARGETS)).split()
    found = Path("build/fuzz")
    found.mkdir(parents=True, exist_ok=True)
    print(f"{'kind':10}{'inputs':>9}{'accepted':>10}{'refused':>9}{'tracebacks':>12}{'seconds':>9}", flush=True)
    total = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            count = campaign(name, Path(folder), inputs, seed)
        total += count.tracebacks + ("an empty message" in count.findings)
        print(
            f"{name:10}{count.inputs:9}{count.accepted:10}{count.refused:9}{count.tracebacks:12}{count.seconds:9.0f}",
            flush=True,
        )
        for i, (place, (text, data)) in enumerate(sorted(count.findings.items())):
            (found / f"{name}-{i}.input").write_bytes(data)
            (found / f"{name}-{i}.txt").write_text(text, errors="replace")
            print(f"    {place}: see {found}/{name}-{i}.txt")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
