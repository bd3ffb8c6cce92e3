"""Where a study lives: the few calls that a Study needs, and which storage a path or an address means."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import AleboError, MissingPartError, StudyError
from .._urls import is_url, redact
from ._claims import Claims
from ._patience import Patience

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

__all__ = ["Outcome", "Storage", "connect", "redact", "require_optuna"]


@dataclass(frozen=True)
class Outcome:
    """What finishes a trial: written in one piece, or not at all."""

    complete: bool
    values: Sequence[float] = ()  # of the objectives, in their order
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constraints: Mapping[str, float] = field(default_factory=dict)


class Storage(ABC):
    """One study in a storage. All calls may be made by many processes at once; each takes effect whole or not at all.

    Attributes:
        where: The storage, as it may be shown.
        claims: Who asks and who lives.
        twice: Whether what matters is to be written in two places, because one of them may be damaged.
        read_only: Whether nothing can be written.
        patience: How long an access waits for a storage that is away.
    """

    where: str
    claims: Claims
    twice: bool = False
    read_only: bool = False
    patience: Patience

    @abstractmethod
    def names(self) -> list[str]:
        """The studies that are there."""

    @abstractmethod
    def select(self, name: str) -> bool:
        """Turn to this study; False if it is not there."""

    @abstractmethod
    def create(self, name: str, directions: Sequence[int]) -> None:
        """Make this study if it is not there, and turn to it."""

    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """What is written about the study."""

    @abstractmethod
    def set_attribute(self, key: str, value: Any) -> None:
        """Write something about the study."""

    @abstractmethod
    def trials(self) -> list[FrozenTrial]:
        """All trials in the order of their numbers. They are shared: do not change them."""

    @abstractmethod
    def add(self, trial: FrozenTrial) -> bool:
        """Add a trial under `trial.number`; False, and nothing written, if that is not the next number."""

    @abstractmethod
    def swap_owner(self, number: int, old: Any, new: Any) -> bool:
        """Give a pending trial another owner; False if it is finished or its owner is not `old` any more."""

    @abstractmethod
    def finish(self, number: int, outcome: Outcome) -> bool:
        """Finish a pending trial; False, and nothing written, if it is finished already."""

    def close(self) -> None:
        """Let go of what this process had claimed."""
        self.claims.close()


@contextmanager
def whole(where: str) -> Iterator[None]:
    """Inside, stored content that is not what alebo writes is a StudyError: what a storage holds is not trusted."""
    try:
        yield
    except (AleboError, OSError):
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        AssertionError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise StudyError(
            f"A stored study must be whole; {where} holds something else ({type(error).__name__}: {str(error)[:200]}). "
            "Use a backup of it."
        ) from error


def require_optuna() -> None:
    """Say how to install Optuna where it is missing."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingPartError(
            'A study needs Optuna, which is not installed. Run: pip install "optuna>=5" "pebble>=5.1"'
        ) from None


def connect(where: str | os.PathLike[str], name: str, *, must_exist: bool) -> Storage:
    """The storage at this path or address, healed where it was damaged."""
    require_optuna()
    where = os.fspath(where)
    if is_url(where):
        from ._postgres import PostgresStorage

        return PostgresStorage(where, name)
    path = Path(where)
    if path.is_dir():
        raise StudyError(
            f"A study is one file; {path} is a folder. Name a file in it, for instance {path / 'study.log'}."
        )
    if must_exist and not path.exists():
        raise StudyError(
            f"A study must exist to be opened; there is no file {path}. Check the path, or create it first."
        )
    from ._files import FileStorage

    return FileStorage(path)
