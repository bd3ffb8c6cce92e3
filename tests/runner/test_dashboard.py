"""Optuna's dashboard opens our study, and its answer stays small at a thousand parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from alebo.bench.overhead import dashboard, measure
from tests.conftest import require_module


@pytest.mark.filterwarnings("ignore")  # the dashboard's own
def test_the_dashboard_shows_embedded_coordinates(tmp_path: Path) -> None:
    require_module("optuna_dashboard", "dashboard")
    asks, tells = measure(tmp_path / "s.log", 1000, 20, "alebo")
    seconds, megabytes = dashboard(tmp_path / "s.log")
    assert len(asks) == len(tells) == 20
    assert megabytes / 20 < 0.02  # 0.25 MB a trial where every parameter is one of Optuna's
    assert seconds < 30
