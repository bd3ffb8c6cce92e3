"""Optuna's own test cases for samplers, all that apply, with our sampler in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("optuna")

import optuna
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)

from alebo.integrations.optuna import EmbeddingSampler


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(level)


class TestALEBO(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    """The default method. SingleOnlySamplerTestCase does not apply: we take several directions."""

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: EmbeddingSampler(seed=0)
