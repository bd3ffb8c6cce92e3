"""ALEBO's settings: checked, and plain data both ways."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import alebo
from alebo import ALEBO
from alebo.methods import Growth, Laplace, Sampled, build, from_dict, to_dict


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: ALEBO(dim=0), "dim"),
        (lambda: ALEBO(dim=2.5), "dim"),
        (lambda: ALEBO(kind="cube"), "kind"),
        (lambda: ALEBO(initial=0), "initial"),
        (lambda: ALEBO(centre="yes"), "centre"),
        (lambda: ALEBO(settle=7), "settle"),
        (lambda: ALEBO(settle="late"), "settle"),
        (lambda: ALEBO(metric="map"), "metric"),
        (lambda: ALEBO(growth=None), "growth"),
        (lambda: ALEBO(dim=3, growth=Growth(step=1)), r"start=3"),
        (lambda: ALEBO(infer_noise=None), "infer_noise"),
        (lambda: Sampled(samples=0), "samples"),
        (lambda: Sampled(samples=None), "samples"),
        (lambda: Laplace(ridge=-5), "ridge"),
        (lambda: Laplace(inflation=-1), "inflation"),
        (lambda: Laplace(inflation="m"), "inflation"),
        (lambda: Laplace(cold=-1), "cold"),
        (lambda: Growth(step=0), "step"),
        (lambda: Growth(most=0), "most"),
        (lambda: Growth(patience=-3), "patience"),
        (lambda: Growth(threshold=math.nan), "threshold"),
        (lambda: Growth(pace=2.0), "pace"),
        (lambda: Growth(start=1.5), "start"),
    ],
)
def test_every_setting_is_checked(build, word):
    with pytest.raises(alebo.InputError, match=word):
        build()


class TestPlainData:
    @pytest.mark.parametrize(
        "method",
        [
            ALEBO(),
            ALEBO(dim=8),
            ALEBO.paper(4),
            ALEBO(growth=Growth(step=3, most=30), metric=Laplace(inflation=7.0)),
            ALEBO(dim=np.int64(5)),
        ],
    )
    def test_a_method_survives_plain_data(self, method):
        assert from_dict(json.loads(json.dumps(to_dict(method)))) == method

    def test_tables_and_texts_become_objects(self):
        assert build("alebo", growth={"step": 3}, metric="laplace") == ALEBO(growth=Growth(step=3), metric=Laplace())
        assert build("alebo", metric={"type": "laplace", "ridge": 0}) == ALEBO(metric=Laplace(ridge=0))

    def test_the_flat_names_of_earlier_versions_are_read(self, caplog):
        old = {
            "name": "alebo", "dim": 4, "initial": 10, "kind": "hypersphere", "centre": False, "samples": 25, "metric": "laplace",
            "infer_noise": False, "ridge": 0.0, "inflation": -1.0, "warm": False, "cold": 10, "iterations": 100, "start": None,
            "step": 2, "most": 20, "threshold": -7.0, "patience": 5, "pace": 0.2, "settle": 0.0, "acquisition": None,
        }  # fmt: skip
        assert from_dict(old) == ALEBO.paper(4)
        assert build("alebo", threshold=-5.0, samples=6) == ALEBO(
            growth=Growth(threshold=-5.0), metric=Sampled(samples=6)
        )
        assert not caplog.text
        assert build("alebo", dim=3, step=4, ridge=1.0) == ALEBO(dim=3)
        assert "step: not used with a fixed `dim`" in caplog.text
        assert "ridge: not used with a sampled metric" in caplog.text

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"growth": {"pase": 0.1}}, r"'growth' of 'alebo' has no setting 'pase'\. Did you mean 'pace'\?"),
            (
                {"metric": {"type": "laplase"}},
                r"The type of 'metric' of 'alebo' is one of sampled, laplace; got 'laplase'",
            ),
            ({"metric": {"type": "sampled", "ridge": 1}}, r"has no setting 'ridge'"),
            ({"centr": True}, r"Did you mean 'centre'\?"),
            ({"growth": {"step": 0}}, "step >= 1"),
        ],
    )
    def test_wrong_tables_get_a_message(self, settings, words):
        with pytest.raises(alebo.InputError, match=words):
            build("alebo", **settings)
