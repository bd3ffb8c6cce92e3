"""Functions that processes of a pool can import: good ones, and those that break in every way."""

from __future__ import annotations

import math
import os
import signal
import time
from typing import Any


def sphere(params: dict[str, Any]) -> float:
    return sum((v - 0.2) ** 2 for v in params.values())


def slow(params: dict[str, Any]) -> float:
    time.sleep(0.3)
    return sphere(params)


def two(params: dict[str, Any]) -> dict[str, Any]:
    return {"loss": (sphere(params), 0.1), "latency": params["x0"]}


def raises(params: dict[str, Any]) -> float:
    raise ValueError("the simulator has no licence")


def dies(params: dict[str, Any]) -> float:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0.0


def hangs(params: dict[str, Any]) -> float:
    time.sleep(600)
    return 0.0


def tells_its_process(params: dict[str, Any]) -> float:
    part = params["file"] + ".part"
    with open(part, "w") as file:
        file.write(str(os.getpid()))
    os.replace(part, params["file"])
    return hangs(params)


def hungry(params: dict[str, Any]) -> float:
    return float(len(bytearray(2 * 1024**3)))


def not_a_number(params: dict[str, Any]) -> float:
    return math.nan


def minus_infinity(params: dict[str, Any]) -> float:
    return -math.inf


def unreliable(params: dict[str, Any]) -> float:
    """Thirty per cent crash, ten hang, ten give no number: by the parameters, so that a repetition does the same."""
    dice = int(abs(params["x1"]) * 1e6) % 10
    if dice < 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if dice < 2:
        raise ValueError("crashed")
    if dice < 3:
        os._exit(3)
    if dice < 4:
        time.sleep(600)
    if dice < 5:
        return math.nan
    return sphere(params)


KINDS = [raises, dies, hangs, hungry, not_a_number, minus_infinity]


def in_turn(params: dict[str, Any]) -> float:
    """Every way of breaking, for values that a test fixes."""
    kind = int(params["kind"])
    return sphere(params) if kind == len(KINDS) else KINDS[kind](params)
