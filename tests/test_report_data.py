"""What a report holds and how it is written, as data and as text: nothing here needs a browser."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import alebo
from alebo import AtMost, Categorical, Float, Goals, Int, Maximize, Minimize, Optimizer, Space
from alebo.goals import Goal
from alebo.report import render
from alebo.report.content import notation
from alebo.report.page import embedded
from tests.conftest import require_module
from tests.test_plots import NASTY
from tests.test_report import data_of, run_of


def test_goals_in_mathematical_notation() -> None:
    goals: list[Goal] = [
        Minimize("loss"),
        Maximize("gain"),
        AtMost("mass", 1.5),
        alebo.AtLeast("speed", 20),
        alebo.Cost("hours"),
    ]
    assert [notation(g) for g in goals] == ["minimise loss", "maximise gain", "mass ≤ 1.5", "speed ≥ 20", "cost hours"]


@pytest.mark.parametrize(
    ("done", "failed", "words"),
    [
        (0, 0, "No trial has been proposed"),
        (0, 3, "No evaluation has succeeded: 3 of 4 failed, and 1 still"),
        (1, 1, ""),
    ],
)
def test_a_study_with_little_or_nothing_in_it_gives_a_page_that_says_so(done: int, failed: int, words: str) -> None:
    require_module("plotly", "plot")
    run = run_of(6, done + failed, failed=failed)
    if failed and not done:
        run.ask()
    data = data_of(run)
    assert words in data["empty"]
    assert bool(data["empty"]) == (done == 0)
    page = render(data)
    assert (words or "loss = ") in page
    assert ("Nothing yet." in page) == (done == 0)


def test_text_is_text_everywhere_in_the_page() -> None:
    require_module("plotly", "plot")
    goals = Goals([Minimize(NASTY[0]), AtMost(NASTY[1], 1.0)])
    space = Space([Float(name, 0, 1) for name in NASTY])
    opt = Optimizer(space, goals, method=alebo.methods.Sobol())
    for i in range(20):
        t = opt.ask()[0]
        opt.tell(t.number, {NASTY[0]: t.x[0] ** 2 + t.x[1], NASTY[1]: 0.0}) if i else opt.fail(t.number, NASTY[2])
    page = render(data_of(opt, name="@DATA@ </title><script>alert(1)</script> {{ 7*7 }}", where="<b>.toml"))
    plotly = re.search(r"<script>/\*\*.*?</script>", page, flags=re.S)
    assert plotly is not None
    ours = page.replace(plotly.group(), "")
    assert len(re.findall(r"<script", ours)) == 2  # the data and our own; no name has opened another
    assert "<b>" not in re.sub(r"<b>(Note|Good|Warning)\.</b>", "", ours)
    assert "{{ 7*7 }}" in ours
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?:https?:)?//""", ours)
    stored = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.S)
    assert stored is not None
    assert [h["name"] for h in json.loads(stored.group(1))["parameters"]["heads"]] == list(NASTY)


def test_json_in_a_script_element_holds_no_markup() -> None:
    text = embedded({"a": "</script><!--<script>&\u2028", "b": float("nan")})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script><!--<script>&\u2028", "b": None}


def test_every_trial_and_every_parameter_is_in_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    require_module("plotly", "plot")
    run = run_of(8, 30)
    data = data_of(run)
    assert len(data["trials"]["rows"]) == 30
    assert [r[1] for r in data["trials"]["rows"]].count("failed") == 2
    exact = data["parameters"]["rows"][7][3]
    assert exact == run.history[7].params["p3"]
    monkeypatch.setattr("alebo.report.table.EXACT", 100)
    import base64

    found = data_of(run)["parameters"]
    places = np.frombuffer(base64.b64decode(found["packed"]), dtype=np.uint8).reshape(30, 8, 3) @ [1, 2**8, 2**16]
    low, high = (found["heads"][3][k] for k in ("low", "high"))
    assert low + places[7, 3] / (2**24 - 2) * (high - low) == pytest.approx(exact, abs=1e-7 * (high - low))
    monkeypatch.setattr("alebo.report.table.MOST", 80)
    few = data_of(run)
    assert len(few["parameters"]["numbers"]) == 10
    assert few["chosen"] in few["parameters"]["numbers"]


def test_a_choice_is_stored_by_its_place_and_a_constant_once() -> None:
    require_module("plotly", "plot")
    space = Space([Categorical("c", [1, True, "1"]), alebo.Fixed("k", "<x>"), Int("i", 1, 9)])
    opt = Optimizer(space, Minimize("v"), method=alebo.methods.Sobol())
    for c in (True, "1", 1):
        opt.tell({"c": c, "k": "<x>", "i": 3}, 1.0)
    found = data_of(opt)["parameters"]
    assert [row[0] for row in found["rows"]] == [1, 2, 0]
    assert found["heads"][1]["fixed"] == "<x>"
    assert [row[2] for row in found["rows"]] == [3, 3, 3]
