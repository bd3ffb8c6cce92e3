"""Every method is the same noun: settings, and `suggest(history, space, goals, q, seed)`, pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from .._errors import InputError
from ._method import Method as Method
from ._method import Setting as Setting
from ._method import Suggestion as Suggestion
from ._method import Supports as Supports
from ._method import setting as setting
from .add_gp_ucb import AddGPUCB as AddGPUCB
from .alebo import ALEBO as ALEBO
from .baxus import BAxUS as BAxUS
from .bo import BO as BO
from .cmaes import CMAES as CMAES
from .ebo import EBO as EBO
from .hesbo import HeSBO as HeSBO
from .linebo import CoordinateLineBO as CoordinateLineBO
from .linebo import DescentLineBO as DescentLineBO
from .linebo import RandomLineBO as RandomLineBO
from .rembo import REMBO as REMBO
from .rembo_gamma import REMBOGamma as REMBOGamma
from .rembo_phi import REMBOPhi as REMBOPhi
from .saasbo import SAASBO as SAASBO
from .saasbo import SAASMAP as SAASMAP
from .smac import SMAC as SMAC
from .sobol import Sobol as Sobol
from .turbo import TuRBO as TuRBO

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        ALEBO,
        REMBO,
        REMBOPhi,
        REMBOGamma,
        HeSBO,
        CoordinateLineBO,
        RandomLineBO,
        DescentLineBO,
        AddGPUCB,
        EBO,
        SMAC,
        CMAES,
        TuRBO,
        BAxUS,
        BO,
        SAASBO,
        SAASMAP,
        Sobol,
    )
}


def default_method() -> Method:
    """The best default we know: ALEBO in an embedding that grows by itself."""
    return ALEBO()


def lookup(name: str) -> type[Method]:
    """The method of that name, or a sentence with the names there are."""
    if name not in METHODS:
        near = difflib.get_close_matches(name, METHODS, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise InputError(f"A method's name is one of METHODS; got {name!r}. {hint}Known: {', '.join(METHODS)}.")
    return METHODS[name]


def build(name: str, **settings: Any) -> Method:
    """The method of that name with these settings: where strings become objects, for files and command lines."""
    cls = lookup(name)
    known = cls.settings()
    wrong = [key for key in settings if key not in known]
    if wrong:
        near = difflib.get_close_matches(wrong[0], known, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise InputError(f"{name!r} has no setting {wrong[0]!r}. {hint}Its settings: {', '.join(known) or 'none'}.")
    return cls(**settings)


def to_dict(method: Method) -> dict[str, Any]:
    """The method's name and settings as plain data."""
    return {"name": method.name, **{key: getattr(method, key) for key in method.settings()}}


def from_dict(data: Mapping[str, Any]) -> Method:
    """The method that `to_dict` wrote."""
    settings = dict(data)
    return build(settings.pop("name"), **settings)
