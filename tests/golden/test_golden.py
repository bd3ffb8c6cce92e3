"""The recorded proposals that are quick to make: a refactoring that moves a point is seen at once.

All of them: `python -m tests.golden check`. Other processors round the last bit another way, so only the first asks count.
"""

from __future__ import annotations

import pytest

from .__main__ import agreeing

pytestmark = pytest.mark.full_chains


@pytest.mark.parametrize("name", ["branin-100", "batches", "old-data", "paper", "hesbo", "baxus", "ebo", "bo"])
def test_the_first_proposals_are_the_recorded_ones(name: str) -> None:
    same, of = agreeing(name, tolerance=1e-4)
    assert same >= of // 2
