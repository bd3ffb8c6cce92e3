"""The recorded numbers of single parts: a change of a rule or of a constant is seen where it was made."""

from __future__ import annotations

import json

import numpy as np
import pytest

from . import parts

pytestmark = pytest.mark.full_chains

RECORDED = json.loads(parts.FILE.read_text())
WIDER = {"full_space_fits": 1e-5, "subsets_of_coordinates": 1e-5}  # climbs to their end: where it is flat, bits decide


def test_every_part_is_recorded() -> None:
    assert list(RECORDED) == list(parts.PARTS)


@pytest.mark.parametrize("name", parts.PARTS)
def test_the_numbers_of_a_part_are_the_recorded_ones(name: str) -> None:
    now, then = parts.numbers(name), RECORDED[name]
    assert [len(row) for row in now] == [len(row) for row in then]
    tolerance = WIDER.get(name, 1e-6)
    for k, (one, other) in enumerate(zip(now, then, strict=True)):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=f"{name}, row {k}")
