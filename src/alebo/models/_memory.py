"""Whether a fit has memory enough: said before it begins, not by the system when it ends the process."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from .._errors import InputError

COPIES = 8  # matrices of n x n for each kernel that a fit and its proposal hold at once
DOUBLE = 8  # bytes
MEMINFO = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")  # where a container's limit is


def require_memory(n: int, kernels: int, available: int | None = None) -> None:
    """Raise InputError where the GPs of n observations under so many kernels need more memory than there is.

    Args:
        n: observations.
        kernels: sampled or approximated.
        available: bytes; None: as the system says, and nothing is checked where it does not say.
    """
    there = _available() if available is None else available
    needed = COPIES * DOUBLE * kernels * n**2
    if there is not None and needed > there:
        raise InputError(
            f"The memory must hold {COPIES} matrices of n x n numbers for each kernel; got n={n} observations and {kernels} "
            f"kernels, which need {needed / 1e9:.1f} GB, where {there / 1e9:.1f} GB are available. Use fewer `samples`, or "
            "ALEBO's default metric, `Sampled()`, which learns from 500 trials at most."
        )


def _available() -> int | None:
    """The bytes that a process may still take; None where nobody says."""
    found: list[int] = []
    with suppress(OSError, ValueError, KeyError):
        found.append(1024 * _fields(MEMINFO)["MemAvailable:"])
    with suppress(OSError, ValueError, KeyError):  # a container's limit is "max" where it has none
        cached = _fields(GROUP / "memory.stat")["inactive_file"]  # which the system takes back first
        used = int((GROUP / "memory.current").read_text()) - cached
        found.append(int((GROUP / "memory.max").read_text()) - used)
    return min(found, default=None)


def _fields(path: Path) -> dict[str, int]:
    """The numbers of a file of lines that begin with a name and a number."""
    rows = [line.split() for line in path.read_text().splitlines()]
    return {row[0]: int(row[1]) for row in rows if len(row) > 1}
