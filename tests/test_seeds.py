"""Seeds are derived, never carried; global random state is as it was."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from alebo._seeds import derive, generator, reproducible

PATHS = st.lists(st.integers(0, 10**6) | st.text("abcxyz", min_size=1, max_size=5), max_size=4)


@given(st.integers(0, 2**62), PATHS, PATHS)
def test_derive_depends_on_seed_and_path(seed: int, one: list[int | str], two: list[int | str]) -> None:
    assert derive(seed, *one) == derive(seed, *one)
    assert 0 <= derive(seed, *one) < 2**63
    assert (derive(seed, *one) == derive(seed, *two)) == (list(map(str, one)) == list(map(str, two)))
    assert derive(seed, *one) != derive(seed + 1, *one)


def test_derive_is_the_same_in_any_process() -> None:
    code = "from alebo._seeds import derive; print(derive(7, 'ask', 3))"
    command = [sys.executable, "-c", code]
    out = {subprocess.check_output(command, text=True, env={"PYTHONHASHSEED": h}).strip() for h in ("1", "2")}
    assert out == {str(derive(7, "ask", 3))}


def test_derive_is_written_in_stone() -> None:
    """Saved studies resume by these numbers: a change here changes every run that is under way."""
    assert derive(0) == 3456079177858693020
    assert derive(7, "ask", 3) == derive(7, "ask", "3")


def test_generators_of_different_paths_are_unrelated() -> None:
    a, b = (generator(0, "ask", i).standard_normal(5000) for i in (0, 1))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.05


def test_reproducible_seeds_inside_and_restores_outside() -> None:
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    before = torch.get_rng_state().clone(), np.random.get_state()[1].copy()  # noqa: NPY002
    draws = []
    for _ in range(2):
        with reproducible(2**62 + 5):
            assert torch.get_num_threads() == 1
            draws.append((torch.rand(3).tolist(), np.random.rand(3).tolist()))  # noqa: NPY002
    assert draws[0] == draws[1]
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002


def fail_inside() -> None:
    with reproducible(3):
        torch.rand(1)
        raise KeyError("x")


def test_reproducible_restores_after_an_error() -> None:
    before = torch.get_rng_state().clone()
    with pytest.raises(KeyError):
        fail_inside()
    assert torch.equal(torch.get_rng_state(), before)


def test_what_is_drawn_inside_depends_on_the_whole_seed() -> None:
    def drawn(seed: int) -> tuple[float, float]:
        with reproducible(seed):
            return float(torch.rand(1)), float(np.random.random())  # noqa: NPY002

    assert drawn(5) == drawn(5)
    for i in (0, 1):
        assert len({drawn(seed)[i] for seed in range(20)}) == 20
    assert drawn(2**31 + 3)[1] != drawn(3)[1]  # NumPy takes 32 bits
    assert drawn(2**32 + 3)[1] == drawn(3)[1]
    assert drawn(2**63 + 3) == drawn(3)
