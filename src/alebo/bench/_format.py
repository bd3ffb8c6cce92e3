"""What marks a file as a run of ours; apart, so that reading results needs neither Torch nor a method."""

from __future__ import annotations

import re

FORMAT = 1
KIND = "alebo-bench-run"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")  # of problems and labels, which name folders and files
