"""Names that version 0.1 gave to ALEBO's settings: one flat list. Files and command lines with them are still read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ._growth import Growth
from ._metric import PER_DATUM, Laplace, Sampled

log = logging.getLogger(__name__)

GROWTH = ("start", "step", "most", "threshold", "patience", "pace")
METRIC = ("samples", "ridge", "inflation", "warm", "cold", "iterations")


def grouped(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Flat settings gathered into the tables `metric` and `growth`; others stay as they are."""
    out = {key: value for key, value in settings.items() if key not in (*GROWTH, *METRIC)}
    growth = {key: settings[key] for key in GROWTH if key in settings}
    metric = {key: settings[key] for key in METRIC if key in settings}
    if growth and isinstance(out.get("growth", {}), Mapping):
        if out.get("dim") is None:
            out["growth"] = {**growth, **out.get("growth", {})}
        else:
            _unused(growth, Growth.settings(), "a fixed `dim`, which does not grow")
    if metric and isinstance(out.get("metric", ""), str | Mapping):
        given = out.get("metric", "sampled")
        table = {"type": given} if isinstance(given, str) else {"type": "sampled", **given}
        if table["type"] == "sampled":
            laplace = {key: metric.pop(key) for key in list(metric) if key not in Sampled.settings()}
            _unused(laplace, Laplace.settings(), "a sampled metric")
        elif metric.get("inflation") == -1:
            metric["inflation"] = PER_DATUM
        out["metric"] = {**metric, **table}
    return out


def _unused(settings: Mapping[str, Any], known: Mapping[str, Any], what: str) -> None:
    """Say that settings are not used; old files hold all of them, so only those that are not at their defaults."""
    changed = [key for key, value in settings.items() if value != known[key].default]
    if changed:
        log.warning("%s: not used with %s.", ", ".join(changed), what)
