"""What marks a file as a run of ours; apart, so that reading results needs neither Torch nor a method."""

from __future__ import annotations

FORMAT = 1
KIND = "alebo-bench-run"
