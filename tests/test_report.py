"""The report in a browser: one self-contained page, shown by a real browser without a complaint, and live while a run goes on."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alebo
from alebo import AtMost, Categorical, Float, Goals, History, Int, Maximize, Minimize, Optimizer, Space, State, Trial
from alebo.diagnostics import diagnose
from alebo.goals import Outcome
from alebo.report import LivePage, content, render, write_report
from tests.browser import Browser, Page, chromium
from tests.conftest import require_module, require_part
from tests.test_plots import mixed

TWO = Goals([Minimize("loss"), AtMost("latency", 1.2)])
FRONT = Goals([Minimize("loss"), Maximize("speed")])


def run_of(D: int, n: int, goals: Goals = TWO, *, failed: int = 2, names: tuple[str, ...] = ()) -> Optimizer:
    """What a run of `n` trials leaves behind, made by hand: fast at any size. The first two parameters matter."""
    free = [*names, *(f"p{i}" for i in range(D - len(names)))]
    opt = Optimizer(Space([Float(name, 0, 10) for name in free]), goals, method=alebo.methods.Sobol(), seed=0)
    X = np.random.default_rng(0).uniform(-1, 1, (n, D))
    trials = []
    for i, x in enumerate(X):
        values = {"loss": float(2 + x[0] ** 2 + x[1]), "latency": float(1 + 0.5 * x[2]), "speed": float(x[0] - x[1])}
        t = Trial(i, opt.space.decode(x), x, None, {k: Outcome(values[k]) for k in goals.outcomes}, State.COMPLETE)
        if i < failed:
            t = replace(t, outcomes={}, state=State.FAILED, reason="</script><b>boom</b> <!--<script exit code 3")
        trials.append(replace(t, note={"dim": 2 if i < n // 2 else 4, "arm": "dense" if i % 3 else "<b>sparse</b>"}))
    opt.history = History(tuple(trials), budget=2 * n)
    return opt


def data_of(run: Optimizer, **more: Any) -> dict[str, Any]:
    said = diagnose(run.history, run.space, run.goals, method=run.method) if run.history.complete else None
    return content(run, diagnosis=said, **more)


# -- in a real browser: one session for all -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    require_module("plotly", "plot")
    require_part("Chromium", chromium() is not None, "Install it: apt-get install chromium.")
    with Browser() as started:
        yield started


def first_paint(page: Page) -> float:
    """Milliseconds from the start of loading until the first text or picture was on the screen."""
    return float(page.run("performance.getEntriesByName('first-contentful-paint')[0]?.startTime") or 0.0)


def drawn(page: Page) -> list[str]:
    """The figures that Plotly has drawn."""
    found = page.run("[...document.querySelectorAll('.fig.js-plotly-plot')].filter(f => f.querySelector('.main-svg')).map(f => f.id)")  # fmt: skip
    return [str(name) for name in found]


def fine(page: Page) -> None:
    """No complaint, no undefined text, nothing wider than the window, no label under the toolbar."""
    assert page.console() == []
    assert "undefined" not in page.run("document.querySelector('main').innerText")
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    hidden = page.run("""[...document.querySelectorAll('.fig')].filter(f => {
      const bar = f.querySelector('.modebar-container .modebar'); if (!bar) return false; const b = bar.getBoundingClientRect();
      return [...f.querySelectorAll('.annotation-text, .legendtext, .gtitle, .cbaxis text')].some(t => { const r = t.getBoundingClientRect();
        return r.width && r.right > b.left + 1 && r.left < b.right - 1 && r.bottom > b.top + 1 && r.top < b.bottom - 1; }); }).map(f => f.id)""")
    assert hidden == []


def test_one_objective_with_a_constraint_and_failures(browser: Browser, tmp_path: Path) -> None:
    run = run_of(30, 40, names=("<b>first</b>", "=cmd()"))
    data = write_report(tmp_path / "r.html", run, name="<wing> & co")
    page = browser.open(tmp_path / "r.html")
    fine(page)
    names = {"trace", "constraint0", "importance", "parallel", "slice0", "contour", "shares"}
    names |= {f"slice{i}" for i in range(sum(s["certain"] for s in data["importance"]))}
    assert {f"fig-{f['id']}" for f in data["figures"]} == set(drawn(page)) == {f"fig-{n}" for n in names}
    assert page.run("document.querySelector('h1').innerText") == "<wing> & co"
    assert "<b>first</b>" in page.run("document.getElementById('fig-importance').textContent")
    assert page.run("document.querySelectorAll('main b').length") == len(data["verdicts"])  # none of a name
    assert page.run("document.querySelectorAll('#parameters tbody tr').length") == 30
    assert "</script><b>boom</b>" in page.run("document.getElementById('trials').innerText")
    assert page.run("csvCell('=cmd()') + csvCell(-1.5) + csvCell('a,b')") == '\'=cmd()-1.5"a,b"'
    rows = page.run("allRows()")
    assert len(rows) == 41
    assert rows[11][-1] == pytest.approx(run.history[10].params["p27"])
    page.close()


def test_search_sort_choose_and_theme(browser: Browser, tmp_path: Path) -> None:
    write_report(tmp_path / "r.html", run_of(12, 30))
    page = browser.open(tmp_path / "r.html", dark=True)
    assert page.run("document.documentElement.dataset.theme") == "dark"
    page.run("$('theme').click()")
    assert page.run("document.documentElement.dataset.theme") == "light"
    page.run("$('find-trial').value = 'boom'; $('find-trial').dispatchEvent(new Event('input'))")
    assert page.run("document.querySelectorAll('#trials tbody tr').length") == 2
    page.run("$('find-trial').value = ''; $('find-trial').dispatchEvent(new Event('input'))")
    page.run("document.querySelectorAll('#trials th button')[R.trials.heads.indexOf('loss')].click()")
    shown = page.run("[...document.querySelectorAll('#trials tbody tr')].map(t => R.trials.rows[+t.dataset.trial][R.trials.heads.indexOf('loss')])")  # fmt: skip
    known = [v for v in shown if v is not None]
    assert known == sorted(known)
    assert shown[-2:] == [None, None]  # what has no value comes last
    page.run("document.querySelector('#trials tr[data-trial=\"17\"]').click()")
    assert page.run("$('parameters-title').textContent") == "Parameters of trial 17"
    page.run("$('find-parameter').value = 'P1'; $('find-parameter').dispatchEvent(new Event('input'))")
    assert page.run("document.querySelectorAll('#parameters tbody tr').length") == 3  # p1, p10, p11
    fine(page)
    page.close()


def test_two_objectives_at_a_phones_width(browser: Browser, tmp_path: Path) -> None:
    data = write_report(tmp_path / "r.html", run_of(20, 30, FRONT))
    page = browser.open(tmp_path / "r.html", width=390, height=800)
    fine(page)
    assert {"fig-front", "fig-hypervolume"} <= set(drawn(page))
    rows = page.run("[...document.querySelectorAll('#block-front tr[data-trial]')].map(t => +t.dataset.trial)")
    assert sorted(rows) == sorted(data["front"])
    page.run(f"document.querySelector('#block-front tr[data-trial=\"{rows[-1]}\"]').click()")
    assert page.run("$('parameters-title').textContent") == f"Parameters of trial {rows[-1]}"
    page.close()


def test_a_mixed_space_and_its_fit(browser: Browser, tmp_path: Path) -> None:
    opt = mixed(20)
    said = diagnose(opt.history, opt.space, opt.goals, method=opt.method)
    from alebo.diagnostics import Fit

    values = np.array([t.outcomes["loss"].mean for t in opt.history.complete])
    fit = Fit("loss", values, values + 0.1, np.ones_like(values), 0.9, 0.95, 0.0)
    page_file = tmp_path / "r.html"
    page_file.write_text(render(content(opt, diagnosis=replace(said, fits=(fit,)))), encoding="utf-8")
    page = browser.open(page_file)
    fine(page)
    assert "fig-fit0" in drawn(page)
    number = next(t.number for t in opt.history.complete if t.params["d"] == "y")
    assert page.run(f"point({number})[3]") == "y"
    page.run("Plotly.restyle('fig-contour', {visible: [false, true, true, true]}).then(() => 0)")
    fine(page)
    page.close()


@pytest.mark.parametrize(("done", "failed"), [(0, 0), (0, 2), (1, 0)])
def test_pages_with_little_in_them(browser: Browser, tmp_path: Path, done: int, failed: int) -> None:
    data = write_report(tmp_path / "r.html", run_of(5, done + failed, failed=failed))
    page = browser.open(tmp_path / "r.html")
    fine(page)
    assert (data["empty"] or "loss = ") in page.run("document.body.innerText")
    page.close()


def test_a_thousand_parameters_and_five_hundred_trials(browser: Browser, tmp_path: Path) -> None:
    run = run_of(1000, 500)
    some = History(run.history.trials[:120])  # enough to judge; the size of the page is at stake here
    said = diagnose(some, run.space, run.goals, method=run.method)
    path = tmp_path / "r.html"
    path.write_text(render(content(run, diagnosis=said)), encoding="utf-8")
    assert path.stat().st_size < 8e6
    page = browser.open(path)
    assert 0 < first_paint(page) < 3000  # milliseconds
    fine(page)
    assert page.run("document.querySelectorAll('#parameters tbody tr').length") == 1000
    assert page.run("allRows().length") == 501
    assert page.run("point(499)[999]") == pytest.approx(run.history[499].params["p999"], abs=1e-6)
    assert [s.name for s in said.importance if s.certain] == ["p1"]  # 120 trials do not show the bowl of p0 yet
    page.close()


def test_packed_values_are_read_as_they_were(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alebo.report.table.EXACT", 0)
    space = Space(
        [
            Float("a", -3.0, 7.0),
            Float("rate", 1e-6, 10.0, log=True),
            Int("n", 1, 1000),
            Int("m", 1, 10**6, log=True),
            Categorical("c", ["x", 2, True]),
            alebo.Fixed("k", "const"),
        ]
    )
    opt = Optimizer(space, Minimize("loss"), method=alebo.methods.Sobol())
    points: list[dict[str, object]] = [
        {"a": -3.0, "rate": 1e-6, "n": 1, "m": 1, "c": "x", "k": "const"},
        {"a": 7.0, "rate": 10.0, "n": 1000, "m": 10**6, "c": True, "k": "const"},
        {"a": 0.1234567, "rate": 3.2109e-4, "n": 617, "m": 4711, "c": 2, "k": "const"},
    ]
    for i, point in enumerate(points):
        opt.tell(point, float(i))
    path = tmp_path / "r.html"
    path.write_text(render(content(opt)), encoding="utf-8")
    page = browser.open(path)
    fine(page)
    for i, point in enumerate(points):
        a, rate, *others = page.run(f"point({i})")
        assert a == pytest.approx(point["a"], abs=1e-6)
        assert rate == pytest.approx(point["rate"], rel=2e-6)
        assert others == [point[k] for k in ("n", "m", "c", "k")]
    page.close()


# -- live ------------------------------------------------------------------------------------------------------------------


def answer(address: str, host: str | None = None) -> tuple[int, bytes]:
    request = urllib.request.Request(address, headers={} if host is None else {"Host": host})
    try:
        with urllib.request.urlopen(request, timeout=30) as got:
            return got.status, got.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_the_live_page_refreshes_itself(browser: Browser) -> None:
    run = run_of(12, 20)
    with LivePage(lambda: run, name="live", every=0.2) as live:
        page = browser.open(live.address)
        page.wait("R.figures.some(f => f.id === 'importance')")  # the models come a little later
        x = np.zeros(12)
        t = Trial(20, run.space.decode(x), x, None, {"loss": Outcome(-7.0), "latency": Outcome(0.5)}, State.COMPLETE)
        run.history = run.history.with_trial(t)
        page.wait("document.getElementById('block-found').innerText.includes('loss = -7')")
        assert page.run("R.trials.rows.length") == 21
        assert page.run("$('parameters-title').textContent") == "The best parameters"
        fine(page)
    page.wait("document.getElementById('live').className === 'lost'")
    page.close()


def test_a_correction_reaches_the_live_page() -> None:
    require_module("plotly", "plot")
    run = run_of(4, 6)
    with LivePage(lambda: run, every=60.0, models=False) as live:
        assert not live.refresh()
        run.amend(5, {"loss": -7.5, "latency": 1.0})
        assert live.refresh()
        assert b"-7.5" in (live.update(0) or b"")


def test_the_live_page_follows_a_run_of_a_thousand_parameters(browser: Browser) -> None:
    run = run_of(1000, 120)
    with LivePage(lambda: run, name="wide", every=0.2, models=False) as live:
        page = browser.open(live.address)
        assert 0 < first_paint(page) < 3000
        assert page.run("allRows().length") == 121
        run.tell(dict(run.history[-1].params), {"loss": -9.0, "latency": 1.0})
        page.wait("allRows().length === 122")
        assert "loss = -9" in page.run("document.body.innerText")
        fine(page)
        page.close()


def test_the_live_page_is_for_this_machine_and_its_token_only() -> None:
    require_module("plotly", "plot")
    run = run_of(4, 3, failed=0)
    with LivePage(lambda: run, every=60.0, models=False) as live:
        assert live.address.startswith("http://127.0.0.1:")
        assert live._server.server_address[0] == "127.0.0.1"
        base, token = live.address.rstrip("/").rsplit("/", 1)
        assert len(token) >= 20
        assert answer(live.address)[0] == 200
        assert answer(live.address + "data?since=0")[0] == 200
        assert answer(live.address + "data?since=1")[0] == 204
        assert answer(live.address + "data?since=x")[0] == 200
        for wrong in ("/", "/data", f"/{token[:-1]}/", f"/{token}x/data", f"/{token}/../etc/passwd"):
            status, body = answer(base + wrong)
            assert status == 404
            assert token.encode() not in body
        assert answer(live.address, host="evil.example")[0] == 404
        threads = threading.active_count()
    with pytest.raises(OSError):
        answer(live.address)
    assert threading.active_count() < threads + 1


def test_a_look_that_fails_does_not_end_the_live_page(caplog: pytest.LogCaptureFixture) -> None:
    require_module("plotly", "plot")
    run = run_of(4, 3, failed=0)
    live = LivePage(lambda: run, models=False)
    try:
        assert live.refresh()
        assert not live.refresh()

        def broken() -> Any:
            raise alebo.StudyError("The file is locked.")

        live._read = broken
        assert not live._try(live.refresh)
        assert "locked" in caplog.text
        assert "loss" in live.page()
    finally:
        live._server.server_close()
