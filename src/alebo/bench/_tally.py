"""The numbers of a sweep: what it made, what failed, what was there already."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import store

if TYPE_CHECKING:
    from .experiment import Task


@dataclass
class Tally:
    """What a sweep did."""

    made: int = 0  # complete runs that this sweep made
    skipped: int = 0  # runs that were stored before, failed ones included
    failed: int = 0  # runs that had to be made and failed; not among `made`
    failed_before: int = 0  # of those skipped
    longer: list[int] = field(default_factory=list)  # evaluations of those skipped that have more than was asked for

    def skip(self, task: Task, *, retry_failed: bool) -> bool:
        """Count the task if its run is stored; False where it is to be made."""
        run = store.stored(task.path, task.seed)
        if run is None or (retry_failed and run["state"] != "complete"):
            return False
        self.skipped += 1
        self.failed_before += run["state"] != "complete"
        if run["state"] == "complete" and run["budget"] > task.budget:
            self.longer.append(run["budget"])
        return True

    @property
    def words(self) -> str:
        """The three numbers, none of which counts a run of another."""
        return f"{self.made} runs made, {self.failed} failed, {self.skipped} were there already"

    @property
    def hint(self) -> str:
        """What is to be known of the runs that were there; empty where there is nothing."""
        n, more = self.failed_before, self.longer
        budgets = " or ".join(map(str, sorted(set(more))))
        return (f" {n} of these failed then: --retry-failed makes them again." if n else "") + (
            f" {len(more)} of these have more evaluations than asked for ({budgets}): tables of suites cut them, "
            "`alebo bench table` does not."
            if more
            else ""
        )
