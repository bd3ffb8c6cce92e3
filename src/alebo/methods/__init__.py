"""All methods share one interface: settings, and a pure `suggest(history, space, goals, q, seed)`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from .._errors import InputError
from ._learned import Learned as Learned
from ._learned import learned as learned
from ._method import Method as Method
from ._method import Setting as Setting
from ._method import Suggestion as Suggestion
from ._method import Supports as Supports
from ._method import setting as setting
from ._settings import Settings as Settings
from ._settings import to_plain
from ._transfer import prepared as prepared
from ._transfer import searched as searched
from ._transfer import weights as weights
from ._view import View as View
from .adaptive import Adaptive as Adaptive
from .adaptive import Sharing as Sharing
from .add_gp_ucb import AddGPUCB as AddGPUCB
from .alebo import ALEBO as ALEBO
from .alebo import Growth as Growth
from .alebo import Laplace as Laplace
from .alebo import Sampled as Sampled
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
        Adaptive,
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
    """The best default we know: several searches that share the evaluations, ALEBO among them."""
    return Adaptive()


def lookup(name: str) -> type[Method]:
    """The method of that name; InputError with the known names where there is none."""
    if name not in METHODS:
        near = difflib.get_close_matches(name, METHODS, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise InputError(f"A method's name is one of METHODS; got {name!r}. {hint}Known: {', '.join(METHODS)}.")
    return METHODS[name]


def build(name: str, **settings: Any) -> Method:
    """The method of that name with these settings, for files and command lines.

    Args:
        name: one of METHODS.
        settings: plain data; a setting that is an object may be a table with its `type`, or the type alone.
    """
    cls = lookup(name)
    return cls.from_plain(cls.renamed(settings), repr(name))


def to_dict(method: Method) -> dict[str, Any]:
    """The method's name and settings as plain data."""
    return {"name": method.name, **{key: to_plain(getattr(method, key)) for key in method.settings()}}


def from_dict(data: Mapping[str, Any]) -> Method:
    """The method that `to_dict` wrote, also by an earlier version."""
    settings = dict(data)
    return build(settings.pop("name"), **settings)
