"""Optuna's own test cases for samplers, all that apply, with our sampler in their place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("optuna")

from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)

from alebo.integrations.optuna import EmbeddingSampler


class TestALEBO(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    """The default method. SingleOnlySamplerTestCase does not apply: we take several directions."""

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: EmbeddingSampler(seed=0)
