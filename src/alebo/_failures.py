"""How many evaluations of a run may fail: one rule for `minimize`, `run` and `alebo run`."""

from __future__ import annotations

from dataclasses import dataclass

from ._errors import EvaluationError, InputError


@dataclass(frozen=True)
class FailureLimit:
    """A failed evaluation costs one trial. A run ends only when more than the share `share` of its evaluations failed.

    It is judged from the evaluation `after` on, so that a bad start does not end a run.
    """

    share: float = 0.5
    after: int = 10

    def __post_init__(self) -> None:
        if isinstance(self.share, bool) or not isinstance(self.share, int | float) or not 0 < self.share <= 1:
            raise InputError(
                f"`0 < max_failed <= 1` must hold; got {self.share!r}. It is a share: 0.5 is half of the evaluations, "
                "1 never stops a run."
            )

    def check(self, made: int, failed: int, last: str, kept: str) -> None:
        """Raise an EvaluationError when too many of the evaluations made in this run failed.

        Args:
            made: Evaluations finished in this run.
            failed: How many of them failed.
            last: Why the last one failed.
            kept: Where the trials are kept, for the message.
        """
        if made < self.after or failed <= self.share * made:
            return
        raise EvaluationError(
            f"At most {self.share:.0%} of the evaluations may fail; of {made} in this run {failed} did, the last "
            f"because of {full_stop(last)} Everything is kept in {kept}: correct the function and run again, or raise "
            "max_failed."
        )


def full_stop(text: str) -> str:
    """`text` with a full stop at its end, so that more text can follow."""
    text = text.rstrip()
    return text if text.endswith((".", "!", "?")) else text + "."
