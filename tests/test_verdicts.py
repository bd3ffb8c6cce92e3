"""Each verdict of a diagnosis: one number moved, and it comes or goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from alebo.diagnostics import Diagnosis, Fit, Importance, verdicts
from alebo.methods import Learned


def fit(**change: Any) -> Fit:
    base = Fit("loss", np.zeros(60), np.zeros(60), np.ones(60), 0.9, 0.95, 0.0)
    return replace(base, **change)


CLEAR = (Importance("gain", 0.4, 0.3, 0.5, True, 0.0), Importance("lr", 0.01, 0.0, 0.02, False, 0.6))
HEALTHY = Diagnosis(
    n=60,
    failed=2,
    infeasible=5,
    reasons=(("timeout", 2),),
    since_improvement=3,
    D=100,
    dim=6,
    fits=(fit(),),
    boundary_share=0.9,
    pull=0.05,
    containment=0.9,
    directions=2,
    rank=2.0,
    rank_low=1.8,
    rank_high=2.2,
    importance=CLEAR,
    method="alebo",
)
UNCLEAR = tuple(replace(s, certain=False) for s in CLEAR)
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # verdict: (a change that makes it appear, a near change at which it must not)
    "failures": ({"failed": 20}, {"failed": 14}),
    "infeasible": ({"infeasible": 60}, {"infeasible": 40}),
    "early": ({"n": 20}, {"n": 25}),
    "no_model": ({"fits": (), "modelled": False}, {"fits": ()}),
    "poor_fit": ({"fits": (fit(r2=0.12),)}, {"fits": (fit(r2=0.12),), "n": 20}),
    "assumption": ({"unexplained": 0.2}, {"unexplained": None}),
    "arms": ({"finding": "12 of the last 20 evaluations were proposed by 'full'."}, {"finding": None}),
    "approximation": ({"approximation": "The models learn from 500 of 812 trials."}, {"approximation": None}),
    "sources": ({"learned": (Learned("march", 40, 0.81, 0.9, 0.7),)}, {"learned": ()}),
    "good_fit": ({"fits": (fit(r2=0.71),)}, {"fits": (fit(r2=0.69),)}),
    "overconfident": ({"fits": (fit(coverage=0.75),)}, {"fits": (fit(coverage=0.88),)}),
    "noisy": ({"fits": (fit(noise_share=0.4),)}, {"fits": (fit(noise_share=0.1),)}),
    "faces": ({"pull": 0.8}, {"pull": 0.8, "boundary_share": 0.2}),
    "full_rank": ({"rank": 5.5, "rank_low": 5.0}, {"rank": 4.5, "rank_low": 3.0}),
    "containment": ({"containment": 0.2}, {"containment": 0.6}),
    "stalled": ({"since_improvement": 30}, {"since_improvement": 19}),
    "parameters": ({"importance": CLEAR}, {"importance": UNCLEAR}),
    "parameters_unclear": ({"importance": UNCLEAR}, {"importance": CLEAR}),
}


def keys(d: Diagnosis) -> set[str]:
    return {v.key for v in verdicts(d)}


def test_a_healthy_run_has_only_good_words() -> None:
    assert keys(HEALTHY) == {"good_fit", "parameters"}
    assert {v.level for v in verdicts(HEALTHY)} == {"good"}


@pytest.mark.parametrize("key", CASES)
def test_each_verdict_appears_and_stays_away(key: str) -> None:
    there, absent = CASES[key]
    assert key in keys(replace(HEALTHY, **there))
    assert key not in keys(replace(HEALTHY, **absent))


def test_a_model_is_not_judged_right_after_growing() -> None:
    poor = replace(HEALTHY, fits=(fit(r2=0.0),))
    assert "poor_fit" in keys(replace(poor, since_growth=15))
    fresh = keys(replace(poor, since_growth=14))
    assert "poor_fit" not in fresh
    assert "early" in fresh


def test_every_verdict_has_its_case() -> None:
    import ast
    import inspect

    import alebo.diagnostics.verdict as module

    calls = [n for n in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(n, ast.Call)]
    written = {c.args[0].value for c in calls if getattr(c.func, "id", "") == "Verdict"}  # type: ignore[attr-defined]
    assert written == set(CASES)


def test_warnings_come_first_and_speak_in_full() -> None:
    said = verdicts(replace(HEALTHY, fits=(fit(r2=0.12),), failed=30))
    assert [v.level for v in said] == sorted((v.level for v in said), key=["warning", "note", "good"].index)
    text = next(v.text for v in said if v.key == "poor_fit")
    assert text.startswith("The model explains 12 % of the variation of 'loss' after 60 evaluations")
    assert "turbo" in text
    assert "timeout" in next(v.text for v in said if v.key == "failures")
