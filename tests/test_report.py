"""The report: pure data, one self-contained page, and a real browser that shows it without a complaint."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from alebo import ALEBO, AtMost, Float, Goals, History, Maximize, Minimize, Optimizer, Space, State, StateError, Trial
from alebo.diagnostics import Importance, fit_models
from alebo.geometry import hypersphere
from alebo.goals import Outcome
from alebo.plots import (
    constraints_data,
    contour_data,
    convergence_data,
    front_data,
    parameters_data,
    trace_data,
    trace_png,
)
from alebo.report import render, report_data, write_report
from tests.browser import chromium, open_page
from tests.conftest import require_module, require_part

TWO = Goals([Minimize("loss"), AtMost("latency", 1.2)])
FRONT = Goals([Minimize("loss"), Maximize("speed")])


def run_of(D: int, n: int, goals: Goals = TWO, *, dim: int = 4, failed: int = 2) -> tuple[History, Space]:
    """What a run of `n` trials leaves behind, made by hand: fast at any size."""
    space = Space([Float(f"p{i}", 0, 10) for i in range(D - 1)] + [Float('a "quoted" <name>', 1e-3, 1, log=True)])
    embedding = hypersphere(D, dim, 0).orthonormal()
    trials = []
    for i, y in enumerate(embedding.domain.sample(n, 0)):
        x = embedding.up(y)
        values = {"loss": float(x[0] ** 2 + x[1]), "latency": float(1 + x[2]), "speed": float(x[0])}
        told = {k: Outcome(v) for k, v in values.items() if k in goals.outcomes}
        t = Trial(i, space.decode(x), x, y, told, State.COMPLETE, {"dim": 2 if i < n // 2 else dim})
        if i < failed:
            t = Trial(i, t.params, x, y, {}, State.FAILED, reason="</script><b>boom</b> exit code 3")
        trials.append(t)
    return History(tuple(trials), budget=2 * n), space


def test_trace_starts_at_the_first_feasible_value() -> None:
    n, best = trace_data([np.nan, np.nan, 3.0, 2.0])
    assert n.tolist() == [3.0, 4.0]
    assert best.tolist() == [3.0, 2.0]


def test_convergence_keeps_the_users_sign_and_ignores_what_is_not_feasible() -> None:
    goals = Goals([Maximize("gain"), AtMost("cost", 1.0)])
    rows = [(1.0, 0.5), (9.0, 2.0), (3.0, 0.1), (2.0, 0.1)]
    trials = [Trial(i, {}, np.zeros(1), None, {"gain": Outcome(g), "cost": Outcome(c)}, State.COMPLETE) for i, (g, c) in enumerate(rows)]  # fmt: skip
    trials.append(Trial(4, {}, np.zeros(1), state=State.PENDING))
    data = convergence_data(History(tuple(trials)), goals)
    assert data["best"] == [1.0, 1.0, 3.0, 3.0]
    assert data["kind"] == ["feasible", "infeasible", "feasible", "feasible"]
    (one,) = constraints_data(History(tuple(trials)), goals)
    assert one["value"] == [0.5, 2.0, 0.1, 0.1]


def test_front_marks_exactly_the_points_that_no_other_beats() -> None:
    history, _ = run_of(12, 15, FRONT, failed=0)
    data = front_data(history, FRONT)
    assert data is not None
    values = np.array(data["values"]) * [1, -1]
    for v, on in zip(values, data["front"], strict=True):
        beaten = any((w <= v).all() and (w < v).any() for w in values)
        assert on != beaten
    assert front_data(history, Goals(Minimize("loss"))) is None


def test_contours_lie_in_the_polytope_and_pass_through_the_point() -> None:
    history, space = run_of(15, 20, failed=0)
    models = fit_models(history, space, TWO)
    assert models is not None
    data = contour_data(models, "loss", models.P[3], size=15)
    assert data is not None
    grid = np.array([[np.nan if v is None else v for v in row] for row in data["mean"]])
    assert np.isfinite(grid).any()
    assert np.isnan(grid).any()
    u, w, off = (data["points"][k][3] for k in ("u", "w", "off"))
    assert max(abs(u), abs(w), off) < 1e-9


def test_parameters_know_their_place_in_the_range() -> None:
    space = Space([Float("a", 0, 10), Float("b", 1e-4, 1, log=True)])
    t = Trial(0, {"a": 2.5, "b": 1e-2}, np.zeros(2))
    rows = parameters_data(t, space, [Importance("b", 0.9, 0.8, 1.0, True), Importance("a", 0.1, 0.0, 0.2, False)])
    assert [r["name"] for r in rows] == ["b", "a"]
    assert [r["at"] for r in rows] == pytest.approx([0.5, 0.25])


def test_picture(tmp_path: Path) -> None:
    require_module("matplotlib", "plot")
    path = trace_png([np.nan, 3.0, 1.0], tmp_path / "new" / "trace.png", measured=[4, 3, 1], optimum=0.4, title="t")
    assert path.read_bytes()[:4] == b"\x89PNG"


def test_a_report_needs_something_to_report(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="completed"):
        write_report(tmp_path / "r.html", History(), Space.from_bounds([(0, 1)] * 3), Goals(Minimize("v")))


def test_no_model_still_a_report() -> None:
    require_module("plotly", "plot")
    space = Space.from_bounds([(0, 1)] * 6)
    trials = tuple(
        Trial(i, space.decode(np.zeros(6)), np.zeros(6), None, {"v": Outcome(i)}, State.COMPLETE) for i in range(3)
    )
    data = report_data(History(trials), space, Goals(Minimize("v")))
    assert data["contours"] is None
    assert data["fits"] == []
    page = render(data)
    assert "@DATA@" not in page
    assert "@PLOTLY@" not in page


def test_everything_in_the_page_is_inside_the_page(tmp_path: Path) -> None:
    require_module("plotly", "plot")
    history, space = run_of(20, 14)
    data = report_data(history, space, TWO, name="<wing> & co")
    page = render(data)
    ours = re.sub(r"<script>/\*.*?</script>", "", page, count=1, flags=re.S)
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?:https?:)?//""", ours)
    stored = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.S)
    assert stored is not None  # a reason with </script> in it does not end the data early
    assert json.loads(stored.group(1))["trials"][0][3].startswith("</script>")
    assert "<title>&lt;wing&gt; &amp; co" in page


@pytest.mark.parametrize(
    ("goals", "D", "n"), [(TWO, 30, 30), (FRONT, 30, 30), (TWO, 1000, 500)], ids=["constraint", "front", "D=1000 n=500"]
)
def test_in_a_real_browser(tmp_path: Path, goals: Goals, D: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    require_module("plotly", "plot")
    require_part("Chromium", chromium() is not None, "Install it: apt-get install chromium.")
    history, space = run_of(D, n, goals)
    if D == 1000:  # the size is at stake here, not the fit: a cheap fit has as many numbers
        import alebo.models.mahalanobis.chains as chain

        monkeypatch.setattr(chain, "BURN_IN", 2)
    path = tmp_path / "report.html"
    data = write_report(path, history, space, goals, name="browser")
    assert path.stat().st_size < 10e6
    page = open_page(path)
    assert page.console == ()
    assert 'data-ready="yes"' in page.dom
    assert "undefined" not in re.sub(r"<script.*?</script>", "", page.dom, flags=re.S)
    body = page.dom[page.dom.rindex('<h1 id="title">') if '<h1 id="title">' in page.dom else 0 :]
    figures = {"trace", "sens", "contour", *(f"fit{i}" for i in range(len(data["fits"])))}
    figures |= {"front"} if goals is FRONT else {"constraint0"}
    for figure in figures:
        found = re.search(
            rf'<div class="[^"]*\bjs-plotly-plot\b[^"]*"[^>]*id="{figure}"|id="{figure}"[^>]*js-plotly-plot', page.dom
        )
        assert found, figure
    assert page.dom.count("main-svg") >= len(figures)
    rows = re.search(r'<table id="params">(.*?)</table>', page.dom, flags=re.S)
    assert rows is not None
    assert rows.group(1).count("<tr>") == D + 1  # every parameter can be found, also a thousand of them
    assert "a &quot;quoted&quot; &lt;name&gt;" in rows.group(1) or 'a "quoted" &lt;name&gt;' in rows.group(1)
    assert "<b>boom</b>" not in body


def test_the_optimizers_own_history_makes_a_report() -> None:
    space = Space.from_bounds([(0, 1)] * 15)
    goals = Goals(Minimize("v"))
    opt = Optimizer(space, goals, method=ALEBO(dim=2, initial=9), seed=0)
    for _ in range(10):
        t = opt.ask()[0]
        opt.tell(t.number, float(t.x[0] ** 2))
    data = report_data(opt.history, space, goals, method=opt.method, seed=opt.seed, best=opt.best())
    assert data["dim"] == 2
    assert data["best"]["number"] == opt.best().number
    assert len(data["importance"]) == 15
