"""MuJoCo's own warnings, led into our log: left alone it writes a file into the user's working folder."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, MuJoCo's warnings are logged; outside, they go where they went before."""
    import mujoco

    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: log.debug("MuJoCo: %s", text))
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)
