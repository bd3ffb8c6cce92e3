"""Trials that a worker has prepared for when it is free: pending, owned, and not begun."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

WAITING = "waiting"  # the key of a trial's owner that says so


def waits(frozen: FrozenTrial) -> bool:
    """Whether nobody has begun this trial, as far as is known."""
    return bool((frozen.user_attrs.get("owner") or {}).get(WAITING))


def begun_by(owner: Mapping[str, Any]) -> dict[str, Any]:
    """The same owner, now evaluating."""
    return {**{k: v for k, v in owner.items() if k != WAITING}, "at": time.time()}
