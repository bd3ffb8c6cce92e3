"""Figures: their numbers are right, each is drawn of a run, and names are text in all of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

import alebo
from alebo import (  # fmt: skip
    AtLeast,
    AtMost,
    Categorical,
    Float,
    Goals,
    History,
    InputError,
    Int,
    Maximize,
    Minimize,
    Optimizer,
    Space,
    State,
    Trial,
)
from alebo.diagnostics import Diagnosis, Importance, diagnose, sparse_model
from alebo.goals import Outcome
from alebo.history import Span
from alebo.plots import _style
from alebo.plots.data import (
    arms_data,
    constraints_data,
    convergence_data,
    dimension_data,
    front_data,
    hypervolume_data,
    log_scale,
    parameters_data,
    trace_data,
)
from tests.conftest import require_module

MIXED = Space([Float("a", 0, 10), Float("b", 1e-4, 1, log=True), Int("c", 1, 5), Categorical("d", ["x", "y", 3])])
NASTY = ("<b>bold</b>", "<script>alert(1)</script>", "<!--<script", "=cmd()", "a[/b]", "@PLOTLY@", 'a "q" \'s\'', "two\nlines", "شدة", "{{ 7*7 }}")  # fmt: skip


def mixed(n: int = 24, goals: Goals | None = None, fail: int = 2) -> Optimizer:
    """A quasi-random run of a mixed space in which `a` and `d` matter; the first trials fail."""
    opt = Optimizer(MIXED, goals or Goals([Minimize("loss"), AtMost("mass", 8)]), method=alebo.methods.Sobol(), seed=0)
    for i in range(n):
        t = opt.ask()[0]
        if i < fail:
            opt.fail(t.number, "<b>boom</b> exit code 3")
            continue
        loss = 0.05 + (t.params["a"] - 4.0) ** 2 + 3.0 * (t.params["d"] == "y")
        values = {"loss": loss, "mass": float(t.params["a"]), "speed": -float(t.params["b"])}
        opt.tell(t.number, {k: values[k] for k in opt.goals.outcomes})
    return opt


@pytest.fixture(scope="module")
def run() -> Optimizer:
    return mixed()


@pytest.fixture(scope="module")
def said(run: Optimizer) -> Diagnosis:
    return diagnose(run.history, run.space, run.goals, method=run.method)


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_trace_starts_at_the_first_feasible_value() -> None:
    n, best = trace_data([np.nan, np.nan, 3.0, 2.0])
    assert n.tolist() == [3.0, 4.0]
    assert best.tolist() == [3.0, 2.0]


def trials_of(rows: list[dict[str, float]]) -> list[Trial]:
    return [Trial(i, {}, np.zeros(1), None, {k: Outcome(v) for k, v in r.items()}, State.COMPLETE) for i, r in enumerate(rows)]  # fmt: skip


def test_convergence_keeps_the_users_sign_and_ignores_what_is_not_feasible() -> None:
    goals = Goals([Maximize("gain"), AtMost("cost", 1.0)])
    rows = [(1.0, 0.5), (9.0, 2.0), (3.0, 0.1), (2.0, 0.1)]
    trials = trials_of([{"gain": g, "cost": c} for g, c in rows])
    trials.append(Trial(4, {}, np.zeros(1), state=State.PENDING))
    data = convergence_data(History(tuple(trials)), goals)
    assert data["best"] == [1.0, 1.0, 3.0, 3.0]
    assert data["kind"] == ["feasible", "infeasible", "feasible", "feasible"]
    (one,) = constraints_data(History(tuple(trials)), goals)
    assert one["value"] == [0.5, 2.0, 0.1, 0.1]
    assert one["holds"] == [True, False, True, True]


def test_a_log_axis_where_it_helps() -> None:
    assert log_scale([100, 5, 3, 1], [100, 5, 3, 1])
    assert not log_scale([3, 2, 1], [3, 2, 1])
    assert not log_scale([100, -5], [100, -5])
    assert not log_scale([100, 5, 0], [100, 5, 0])
    assert not log_scale([None], [None])


def test_front_marks_exactly_the_pareto_optimal_points() -> None:
    goals = Goals([Minimize("loss"), Maximize("speed")])
    rng = np.random.default_rng(0)
    history = History(tuple(trials_of([{"loss": a, "speed": b} for a, b in rng.normal(size=(15, 2))])))
    data = front_data(history, goals)
    assert data is not None
    values = np.array(data["values"]) * [1, -1]
    for v, on in zip(values, data["front"], strict=True):
        assert on != any((w <= v).all() and (w < v).any() for w in values)
    assert front_data(history, Goals(Minimize("loss"))) is None
    volume = hypervolume_data(history, goals)
    assert volume is not None
    assert np.all(np.diff(volume["volume"]) >= 0)
    assert volume["volume"][-1] > 0


def test_hypervolume_uses_the_references_of_the_goals() -> None:
    goals = Goals([Minimize("a", reference=2.0), Maximize("b", reference=0.0)])
    data = hypervolume_data(History(tuple(trials_of([{"a": 1.0, "b": 3.0}, {"a": 3.0, "b": 9.0}]))), goals)
    assert data is not None
    assert data["volume"] == [3.0, 3.0]
    assert data["reference"] == [2.0, 0.0]


def test_parameters_know_their_place_in_the_range() -> None:
    space = Space([Float("a", 0, 10), Float("b", 1e-4, 1, log=True)])
    t = Trial(0, {"a": 2.5, "b": 1e-2}, np.zeros(2))
    rows = parameters_data(t, space, [Importance("b", 0.9, 0.8, 1.0, True), Importance("a", 0.1, 0.0, 0.2, False)])
    assert [r["name"] for r in rows] == ["b", "a"]
    assert [r["at"] for r in rows] == pytest.approx([0.5, 0.25])


def test_shares_of_arms_and_dimensions_over_time() -> None:
    notes = [{"arm": "dense", "dim": 2}, {"arm": "sparse", "dim": 2}, {"arm": "sparse", "dim": 4}, {}]
    history = History(tuple(Trial(i, {}, np.zeros(1), note=note) for i, note in enumerate(notes)))
    arms = arms_data(history, window=2)
    assert arms is not None
    assert arms["shares"] == {"dense": [1.0, 0.5, 0.0], "sparse": [0.0, 0.5, 1.0]}
    dims = dimension_data(history)
    assert dims is not None
    assert dims["grown"] == [[2, 4]]
    assert arms_data(History()) is None
    assert dimension_data(History()) is None


# -- figures -----------------------------------------------------------------------------------------------------------


def plots() -> Any:
    require_module("plotly", "plot")
    import alebo.plots

    return alebo.plots


def test_failed_and_infeasible_trials_are_marked_at_the_axis(run: Optimizer) -> None:
    made = plots().trace(run)
    marked = {t.name: t for t in made.data if t.yaxis == "y2"}
    assert set(marked) == {"failed", "breaks a constraint"}
    assert made.layout.yaxis2.range == (0, 1)
    assert list(marked["failed"].x) == [0, 1]
    assert all(0.0 <= y <= 0.05 for t in marked.values() for y in t.y)
    assert "<b>" not in marked["failed"].text[0]
    assert made.layout.yaxis.type == "log"  # from 0.05 to 36
    measured = next(t for t in made.data if t.name == "measured")
    infeasible = [t.number for t in run.history.complete if t.params["a"] > 8]
    assert not set(measured.x) & set(infeasible)


def test_a_few_extreme_values_do_not_flatten_the_trace() -> None:
    opt = Optimizer(Space.from_bounds([(0, 1)] * 3), Minimize("v"), method=alebo.methods.Sobol(), seed=0)
    for i in range(20):
        opt.tell(opt.ask()[0].number, 1e9 * (i == 7) - i % 5)
    made = plots().trace(opt)
    low, high = made.layout.yaxis.range
    assert low < -4.0 < high < 1e3
    assert any("outside" in a.text for a in made.layout.annotations)


def test_every_figure_of_one_run(run: Optimizer, said: Diagnosis) -> None:
    p = plots()
    made = {
        "trace": p.trace(run, optimum=1.0),
        "constraint": p.constraint(run, "mass"),
        "importance": p.importance(run, diagnosis=said),
        "parallel": p.parallel(run, diagnosis=said),
        "slices a": p.slices(run, "a", diagnosis=said),
        "slices b": p.slices(run, "b", diagnosis=said),
        "slices d": p.slices(run, "d", diagnosis=said, at=5),
        "contour": p.contour(run, "a", "d", diagnosis=said),
        "contour log": p.contour(run, "b", "c", diagnosis=said),
        "predicted": p.predicted(run, diagnosis=said),
        "shares": p.shares(run),
    }
    for name, figure in made.items():
        assert type(figure).__name__ == "Figure", name
        figure.to_json()
    assert made["slices b"].layout.xaxis.type == "log"
    assert made["contour log"].layout.xaxis.type == "log"
    assert "no model of the whole space" in made["predicted"].layout.annotations[0].text
    assert "neither" in made["shares"].layout.annotations[0].text
    assert any("mass ≤ 8" in a.text for a in made["constraint"].layout.annotations)


def test_a_slice_follows_the_function_and_has_its_uncertainty(run: Optimizer, said: Diagnosis) -> None:
    made = plots().slices(run, "a", diagnosis=said)
    line = next(t for t in made.data if t.name == "model")
    best = line.x[int(np.argmin(line.y))]
    assert best == pytest.approx(4.0, abs=0.7)
    assert line.x[0] == 0
    assert line.x[-1] == 10
    band = next(t for t in made.data if t.name == "95 %")
    n = len(line.x)
    assert all(band.y[i] >= line.y[i] >= band.y[2 * n - 1 - i] for i in range(n))


def test_a_contour_covers_both_ranges_with_mean_and_deviation(run: Optimizer, said: Diagnosis) -> None:
    made = plots().contour(run, "a", "d", diagnosis=said)
    mean, sd = made.data[0], made.data[1]
    assert (mean.x[0], mean.x[-1]) == (0, 10)
    assert list(mean.y) == [0, 1, 2]
    assert list(made.layout.yaxis.ticktext) == ["x", "y", "3"]
    assert np.shape(mean.z) == np.shape(sd.z) == (3, len(mean.x))
    assert np.all(np.array(sd.z) >= 0)
    assert len(made.layout.updatemenus[0].buttons) == 2
    with pytest.raises(InputError, match="two parameters"):
        plots().contour(run, "a", "a", diagnosis=said)
    with pytest.raises(InputError, match="one of the space"):
        plots().contour(run, "a", "nothing", diagnosis=said)


def test_importance_says_when_nothing_is_certain(run: Optimizer, said: Diagnosis) -> None:
    sure = plots().importance(run, diagnosis=said)
    assert [s.name for s in said.importance if s.certain] == ["a"]
    assert sure.layout.annotations[0].text.startswith("Certain: 1 of 4")
    unsure = replace(said, importance=tuple(replace(s, certain=False) for s in said.importance))
    made = plots().importance(run, diagnosis=unsure)
    assert made.layout.annotations[0].text.startswith("No parameter is certain")
    assert len(set(made.data[0].marker.color)) == 1
    assert set(made.data[0].marker.color) != set(sure.data[0].marker.color)


def test_figures_of_two_objectives() -> None:
    opt = mixed(12, Goals([Minimize("loss"), Maximize("speed"), AtLeast("mass", 1)]), fail=1)
    p = plots()
    made = p.front(opt)
    assert {t.name for t in made.data} == {"Pareto front", "other trials"}
    assert p.front(opt, x="speed", y="loss").layout.xaxis.title.text == "speed"
    assert len(p.hypervolume(opt).data[0].y) == 12
    single = mixed(4)
    for figure in (p.front, p.hypervolume):
        with pytest.raises(InputError, match="several objectives"):
            figure(single)
    with pytest.raises(InputError, match="is an objective"):
        p.front(opt, x="mass")


def test_timeline_has_a_row_for_each_worker() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    spans = [
        Span(0, "one", start, start + timedelta(seconds=5), State.COMPLETE),
        Span(1, "<b>two</b>", start, start + timedelta(seconds=2), State.FAILED),
        Span(2, "one", start + timedelta(seconds=5), None, State.PENDING),
    ]
    made = plots().timeline(spans, now=start + timedelta(seconds=9))
    assert {t.name: (list(t.x), list(t.y)) for t in made.data} == {
        "complete": ([5000.0], ["one"]),
        "failed": ([2000.0], ["&lt;b&gt;two&lt;/b&gt;"]),
        "running": ([4000.0], ["one"]),
    }
    both = [*spans, Span(3, "one", start + timedelta(seconds=1), start + timedelta(seconds=3), State.COMPLETE)]
    made = plots().timeline(both, now=start + timedelta(seconds=9))
    done = next(t for t in made.data if t.name == "complete")
    assert list(done.y) == ["one · 1", "one · 2"]  # two at a time: two rows
    assert "No times" in plots().timeline([]).layout.annotations[0].text


def test_nothing_to_draw_says_so() -> None:
    opt = mixed(0)
    p = plots()
    for figure in (p.trace(opt), p.importance(opt), p.parallel(opt), p.slices(opt, "a"), p.contour(opt, "a", "b")):
        assert not figure.data
        assert figure.layout.annotations[0].text


@pytest.mark.parametrize("name", NASTY)
def test_names_are_text(name: str) -> None:
    shown = _style.label(name)
    assert "<" not in shown
    assert "\n" not in shown
    assert ("\u2068" in shown) == (name == "شدة")
    assert len(set(_style.labels([name, name + "!"]))) == 2


def test_long_names_that_are_cut_alike_stay_different() -> None:
    names = ["a" * 60 + str(i) + "b" * 60 for i in range(3)]
    shown = _style.labels(names)
    assert len(set(shown)) == 3
    assert max(map(len, shown)) < 60


def test_the_sparse_model_says_what_is_certain_and_what_is_not() -> None:
    space = Space.from_bounds([(-1.0, 1.0)] * 20)
    goals = Goals(Minimize("v"))
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 20))

    def history(f: Any) -> History:
        return History(tuple(Trial(i, space.decode(x), x, None, {"v": Outcome(float(f(x)))}, State.COMPLETE) for i, x in enumerate(X)))  # fmt: skip

    found = sparse_model(history(lambda x: (x[3] - 0.2) ** 2 + x[7] * (1 + x[3])), space, goals)
    assert found is not None
    assert {s.name for s in found.importance if s.certain} == {"x3", "x7"}
    assert sum(s.share for s in found.importance) == pytest.approx(1.0)
    mean, variance = found.predict(X[:5])
    np.testing.assert_allclose(mean, [(x[3] - 0.2) ** 2 + x[7] * (1 + x[3]) for x in X[:5]], atol=0.05)
    assert (variance >= 0).all()
    noise = sparse_model(history(lambda x: rng.normal()), space, goals)
    assert noise is not None
    assert not any(s.certain for s in noise.importance)
    assert sparse_model(History(history(lambda x: 1.0).trials), space, goals) is None


def test_two_parameters_that_could_stand_for_each_other_are_not_certain() -> None:
    space = Space.from_bounds([(-1.0, 1.0)] * 12)
    goals = Goals(Minimize("v"))
    X = np.random.default_rng(0).uniform(-1, 1, (40, 12))
    X[:, 5] = X[:, 2]  # always moved together
    trials = (Trial(i, space.decode(x), x, None, {"v": Outcome(float(x[2] ** 2 + x[2] + 2 * x[9]))}, State.COMPLETE) for i, x in enumerate(X))  # fmt: skip
    found = sparse_model(History(tuple(trials)), space, goals)
    assert found is not None
    assert [s.name for s in found.importance if s.certain] == ["x9"]
