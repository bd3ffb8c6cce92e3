"""python -m tests.faults.driver PATH FOLDER LABEL BUDGET: a driver in a process of its own, for a clock of its own."""

from __future__ import annotations

import sys
from pathlib import Path

from alebo.methods import Sobol

from .table import Notes, Setting, Slow, drive

if __name__ == "__main__":
    path, folder, label, budget = sys.argv[1:]
    notes = Notes(Path(folder), label)
    drive(Setting(Sobol(), budget=int(budget)), path, notes, Slow(notes, 0.1))
