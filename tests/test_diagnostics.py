"""Diagnosis: its numbers against functions whose truth is known, and each verdict made to appear and made to stay away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import alebo
from alebo import ALEBO, AtMost, Goals, History, Minimize, Optimizer, Space, State, Trial
from alebo.diagnostics import (
    Diagnosis,
    Fit,
    Sensitivity,
    View,
    cross_validate,
    diagnose,
    effective_rank,
    fit_models,
    outward_pull,
    sensitivity,
    slopes,
    verdicts,
    view,
)
from alebo.geometry import hypersphere
from alebo.goals import Outcome

D, DIM = 20, 5
SPACE = Space.from_bounds([(-1.0, 1.0)] * D)
GOALS = Goals(Minimize("loss"))


def history_of(
    f: Callable[[np.ndarray], float], n: int, *, dim: int = DIM, noise: float = 0.0, seed: int = 0
) -> History:
    """`n` points spread over a random embedding, measured: what a run leaves behind, without the cost of running it."""
    embedding = hypersphere(D, dim, seed).orthonormal()
    rng = np.random.default_rng(seed)
    trials = []
    for i, y in enumerate(embedding.domain.sample(n, seed)):
        x = embedding.up(y)
        value = f(x) + noise * rng.normal()
        trials.append(Trial(i, SPACE.decode(x), x, y, {"loss": Outcome(value)}, State.COMPLETE, {"dim": dim}))
    return History(tuple(trials))


def bowl(x: np.ndarray) -> float:
    return float((x[3] - 0.2) ** 2 + 2.0 * (x[7] + 0.1) ** 2)


def test_the_embedding_is_recovered_from_the_points_alone() -> None:
    history = history_of(bowl, 12)
    seen = view(history, SPACE)
    assert seen is not None
    truth = hypersphere(D, DIM, 0).orthonormal()
    np.testing.assert_allclose(seen.embedding.A, truth.A, atol=1e-10)
    np.testing.assert_allclose(seen.embedding.up(seen.Y), [t.x for t in history], atol=1e-10)


def test_a_grown_embedding_is_recovered_as_its_method_sees_it() -> None:
    opt = Optimizer(SPACE, GOALS, method=ALEBO(start=2, patience=1, threshold=50.0, most=6), seed=1)
    for _ in range(14):
        t = opt.ask()[0]
        opt.tell(t.number, bowl(t.x))
    told = view(opt.history, SPACE, opt.method, opt.seed)
    blind = view(opt.history, SPACE)
    assert told is not None
    assert blind is not None
    assert told.embedding.dim == blind.embedding.dim > 2
    np.testing.assert_allclose(told.embedding.A, blind.embedding.A, atol=1e-8)


def test_no_embedding_no_view() -> None:
    opt = Optimizer(SPACE, GOALS, method=alebo.methods.Sobol())
    for _ in range(10):
        t = opt.ask()[0]
        opt.tell(t.number, bowl(t.x))
    assert view(opt.history, SPACE) is None
    said = diagnose(opt.history, SPACE, GOALS, method=opt.method)
    assert said.fits == ()
    assert [v.key for v in said.verdicts] == ["no_model"]


def test_slopes_are_the_gradient_of_the_posterior_mean() -> None:
    import torch

    models = fit_models(history_of(bowl, 30), SPACE, GOALS)
    assert models is not None
    model, Y = models.by_outcome["loss"], models.view.Y[:4]
    found = slopes(model, Y).mean(axis=0)

    def mean(Z: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return np.asarray(model.posterior(torch.from_numpy(Z).unsqueeze(-2)).mean).reshape(-1)

    h = 1e-5
    for j in range(DIM):
        step = np.eye(DIM)[j] * h
        numeric = (mean(Y + step) - mean(Y - step)) / (2 * h)
        np.testing.assert_allclose(found[:, j], numeric, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_effective_rank(rank: int) -> None:
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))
    assert effective_rank(Q[:, :rank] @ Q[:, :rank].T) == pytest.approx(rank)


def test_shares_add_up_and_find_what_matters() -> None:
    history = history_of(bowl, 70, dim=12)
    models = fit_models(history, SPACE, GOALS)
    assert models is not None
    found = sensitivity(models.by_outcome["loss"], models.view, SPACE)
    assert sum(s.share for s in found) == pytest.approx(1.0)
    assert {s.name for s in found[:2]} == {"x3", "x7"}
    assert all(0.0 <= s.low <= s.high <= 1.0 for s in found)
    assert found[0].name == "x7"  # twice as steep
    assert found[0].chance < 0.01 < found[5].chance


def test_categories_and_constants_share_by_parameter() -> None:
    space = Space([*(alebo.Float(f"x{i}", -1, 1) for i in range(9)), alebo.Categorical("c", "ab"), alebo.Fixed("k", 1)])
    embedding = hypersphere(11, 4, 0).orthonormal()
    Y = embedding.domain.sample(20, 0)
    values = [float(embedding.up(y)[0]) for y in Y]
    trials = tuple(
        Trial(i, {}, embedding.up(y), y, {"loss": Outcome(v)}, State.COMPLETE)
        for i, (y, v) in enumerate(zip(Y, values, strict=True))
    )
    models = fit_models(History(trials), space, GOALS)
    assert models is not None
    shares = sensitivity(models.by_outcome["loss"], models.view, space)
    assert sorted(s.name for s in shares) == sorted([*(f"x{i}" for i in range(9)), "c"])
    assert sum(s.share for s in shares) == pytest.approx(1.0)


def test_cross_validation_tells_a_function_from_noise() -> None:
    good = history_of(bowl, 40)
    seen = view(good, SPACE)
    assert seen is not None
    assert cross_validate(seen.Y, seen.values("loss")).r2 > 0.8
    shuffled = np.random.default_rng(1).permutation(seen.values("loss"))
    fit = cross_validate(seen.Y, shuffled)
    assert fit.r2 < 0.3
    assert 0.0 <= fit.coverage <= 1.0
    assert np.isfinite(fit.predicted).all()


def test_pull_is_large_where_the_optimum_is_outside_and_small_where_it_is_inside() -> None:
    def pull(f: Callable[[np.ndarray], float]) -> float | None:
        embedding = hypersphere(D, 2, 3).orthonormal()
        Y = embedding.domain.sample(30, 0)
        values = np.array([f(embedding.up(y)) for y in Y])
        edge = Y[np.argmin(values)]
        Y = np.vstack([Y, edge * embedding.domain.ray(np.zeros((1, 2)), edge[None])[1]])  # pushed onto the face
        trials = tuple(
            Trial(i, {}, embedding.up(y), y, {"loss": Outcome(f(embedding.up(y)))}, State.COMPLETE)
            for i, y in enumerate(Y)
        )
        models = fit_models(History(trials), SPACE, GOALS)
        assert models is not None
        return outward_pull(models.by_outcome["loss"], models.view, GOALS)

    slope = pull(lambda x: float(x[3] + x[7]))
    assert slope is not None
    assert slope > 0.5
    flat = pull(lambda x: float(x[3] ** 2))
    assert flat is None or flat < 0.3


# -- verdicts: one number moved, one verdict comes or goes ---------------------------------------------------------------


def fit(**change: Any) -> Fit:
    base = Fit("loss", np.zeros(60), np.zeros(60), np.ones(60), 0.9, 0.95, 0.0)
    return replace(base, **change)


CLEAR = (Sensitivity("gain", 0.4, 0.3, 0.5, 0.0), Sensitivity("lr", 0.01, 0.0, 0.02, 0.6))
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
    sensitivity=CLEAR,
    method="alebo",
)
UNCLEAR = tuple(replace(s, chance=0.04) for s in CLEAR)
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # verdict: (a change that makes it appear, a near change at which it must not)
    "failures": ({"failed": 20}, {"failed": 14}),
    "infeasible": ({"infeasible": 60}, {"infeasible": 40}),
    "early": ({"n": 20}, {"n": 25}),
    "no_model": ({"fits": (), "method": "sobol"}, {"fits": (), "method": "alebo"}),
    "poor_fit": ({"fits": (fit(r2=0.12),)}, {"fits": (fit(r2=0.12),), "n": 20}),
    "assumption": ({"unexplained": 0.2}, {"unexplained": None}),
    "good_fit": ({"fits": (fit(r2=0.71),)}, {"fits": (fit(r2=0.69),)}),
    "overconfident": ({"fits": (fit(coverage=0.75),)}, {"fits": (fit(coverage=0.88),)}),
    "noisy": ({"fits": (fit(noise_share=0.4),)}, {"fits": (fit(noise_share=0.1),)}),
    "faces": ({"pull": 0.8}, {"pull": 0.8, "boundary_share": 0.2}),
    "full_rank": ({"rank": 5.5, "rank_low": 5.0}, {"rank": 4.5, "rank_low": 3.0}),
    "containment": ({"containment": 0.2}, {"containment": 0.6}),
    "stalled": ({"since_improvement": 30}, {"since_improvement": 19}),
    "parameters": ({"sensitivity": CLEAR}, {"sensitivity": UNCLEAR}),
    "parameters_unclear": ({"sensitivity": UNCLEAR}, {"sensitivity": CLEAR}),
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
    opt = Optimizer(SPACE, GOALS, method=ALEBO(dim=3), seed=0)
    for _ in range(9):
        t = opt.ask()[0]
        opt.tell(t.number, bowl(t.x))
    assert diagnose(opt.history, SPACE, GOALS, method=opt.method).since_growth is None


def test_every_verdict_has_its_case() -> None:
    import ast
    import inspect

    import alebo.diagnostics as module

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


def test_end_to_end_a_linear_function_and_one_that_is_not() -> None:
    good = diagnose(history_of(bowl, 45), SPACE, GOALS)
    assert {"good_fit"} <= {v.key for v in good.verdicts}
    assert good.directions is not None
    assert 1 <= good.directions <= DIM
    rng = np.random.default_rng(0)
    bad = diagnose(history_of(lambda x: float(rng.normal()), 45), SPACE, GOALS)
    assert "poor_fit" in {v.key for v in bad.verdicts}
    assert "good_fit" not in {v.key for v in bad.verdicts}


def test_end_to_end_failures_constraints_and_plain_data() -> None:
    import json

    history = history_of(bowl, 30)
    goals = Goals([Minimize("loss"), AtMost("latency", 0.0)])
    trials = [
        replace(t, outcomes={**t.outcomes, "latency": Outcome(1.0 + t.x[0])}) if i % 3 else replace(
            t, outcomes={}, state=State.FAILED, reason="out of memory"
        )
        for i, t in enumerate(history)
    ]  # fmt: skip
    said = diagnose(History(tuple(trials)), SPACE, goals)
    assert {"failures", "infeasible"} <= {v.key for v in said.verdicts}
    assert "out of memory" in said.verdicts[0].text
    json.dumps(said.to_dict())


def test_an_outcome_that_never_changes_is_no_model_and_no_crash() -> None:
    said = diagnose(history_of(lambda x: 1.0, 20), SPACE, GOALS)
    assert said.fits == ()
    assert isinstance(view(history_of(lambda x: 1.0, 20), SPACE), View)
