"""Memory that does not suffice is an error before the fit."""

from __future__ import annotations

import pytest
import torch

from alebo import InputError
from alebo.models import _memory, fit_gp, sample_gp
from alebo.models._memory import require_memory


def test_what_does_not_fit_is_refused_with_the_way_out():
    require_memory(500, 12, available=200_000_000)
    with pytest.raises(
        InputError, match=r"n=5000 observations and 25 kernels, which need 40\.0 GB, where 2\.0 GB.*Sampled"
    ):
        require_memory(5000, 25, available=2_000_000_000)


@pytest.mark.parametrize("build", [fit_gp, sample_gp])
def test_a_model_asks_before_it_is_fitted(build, monkeypatch, tmp_path):
    Y = torch.zeros(40, 2, dtype=torch.double)
    (tmp_path / "meminfo").write_text("MemTotal: 16 kB\nMemAvailable: 900 kB\n")
    monkeypatch.setattr(_memory, "MEMINFO", tmp_path / "meminfo")
    with pytest.raises(InputError, match="n=40"):
        build(Y, Y[:, 0], samples=10)


def test_the_limit_of_a_container_counts_and_without_any_word_nothing_is_checked(monkeypatch, tmp_path):
    files = {"meminfo": "MemAvailable: 900 kB", "memory.max": "500000", "memory.current": "300000"}
    for name, text in {**files, "memory.stat": "anon 5\ninactive_file 100000"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(_memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(_memory, "GROUP", tmp_path)
    assert _memory._available() == 300_000
    (tmp_path / "memory.max").write_text("max")
    assert _memory._available() == 921_600
    (tmp_path / "meminfo").unlink()
    assert _memory._available() is None
    require_memory(10**6, 100)
