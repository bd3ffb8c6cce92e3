"""Diagnosis: its numbers against functions whose truth is known; verdicts have a file of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import alebo
from alebo import ALEBO, AtMost, Goals, History, Minimize, Optimizer, Space, State, Trial
from alebo.diagnostics import (
    Fit,
    cross_validate,
    diagnose,
    effective_rank,
    fit_models,
    outward_pull,
    slope_importance,
    slopes,
)
from alebo.diagnostics.models import recovered_embedding, without
from alebo.geometry import hypersphere
from alebo.goals import Outcome
from alebo.methods import Growth

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


def run_of(method: alebo.methods.Method, n: int, f: Callable[[np.ndarray], float] = bowl, seed: int = 0) -> Optimizer:
    opt = Optimizer(SPACE, GOALS, method=method, seed=seed)
    for _ in range(n):
        t = opt.ask()[0]
        opt.tell(t.number, f(t.x))
    return opt


def test_the_embedding_is_recovered_from_the_points_alone() -> None:
    history = history_of(bowl, 12)
    found = recovered_embedding(history, SPACE)
    assert found is not None
    embedding, trials, Y = found
    truth = hypersphere(D, DIM, 0).orthonormal()
    np.testing.assert_allclose(embedding.A, truth.A, atol=1e-10)
    np.testing.assert_allclose(embedding.up(Y), [t.x for t in trials], atol=1e-10)


def test_a_grown_embedding_is_recovered_as_its_method_sees_it() -> None:
    opt = run_of(ALEBO(growth=Growth(start=2, patience=1, threshold=50.0, most=6)), 14, seed=1)
    seen = fit_models(opt.history, SPACE, GOALS, method=opt.method, seed=opt.seed)
    blind = recovered_embedding(opt.history, SPACE)
    assert seen is not None
    assert seen.embedding is not None
    assert blind is not None
    assert seen.embedding.dim == blind[0].dim > 2
    np.testing.assert_allclose(seen.embedding.A, blind[0].A, atol=1e-8)


def test_no_model_says_so() -> None:
    opt = run_of(alebo.methods.Sobol(), 10)
    assert recovered_embedding(opt.history, SPACE) is None
    said = diagnose(opt.history, SPACE, GOALS, method=opt.method)
    assert said.fits == ()
    assert [v.key for v in said.verdicts] == ["no_model"]
    assert said.verdicts[0].text.startswith("Sobol")


@pytest.mark.parametrize(
    ("method", "kind", "what"),
    [
        (ALEBO.paper(3), "MahalanobisGP", "Laplace"),
        (ALEBO(dim=3), "MahalanobisGP", "sampled"),
        (alebo.methods.BO(initial=9), "ARDGP", "Plain BO's model of all 20 coordinates"),
        (alebo.methods.SAASMAP(initial=9), "ARDGP", "SAAS-MAP's model of all 20 coordinates"),
        (alebo.methods.HeSBO(dim=3), "ARDGP", "HeSBO's model in 3 dimensions"),
    ],
    ids=["paper", "alebo", "bo", "saas-map", "hesbo"],
)
def test_the_model_judged_is_the_one_the_method_uses(method: alebo.methods.Method, kind: str, what: str) -> None:
    opt = run_of(method, 9)
    found = fit_models(opt.history, SPACE, GOALS, method=method)
    assert found is not None
    model = found.models["loss"].model
    one = model[0] if isinstance(model, list) else model
    assert type(one).__name__ == kind
    assert found.what.startswith(what)
    if method == ALEBO.paper(3):  # the mode and draws around it, noise known to be zero; no chain anywhere
        assert len(one.U) <= 25
        assert float(one.noise.max()) <= 1e-6
    assert (found.embedding is None) == (what.endswith("all 20 coordinates"))
    np.testing.assert_allclose(found.see(np.stack([t.x for t in found.trials])), found.P, atol=1e-8)
    said = diagnose(opt.history, SPACE, GOALS, method=method, models=found)
    assert said.model == found.what
    assert np.isfinite(said.fits[0].predicted).all()


@pytest.mark.parametrize("goal", [Minimize("loss"), alebo.Maximize("loss")])
@pytest.mark.parametrize("method", [ALEBO(dim=3), alebo.methods.BO(initial=12)], ids=["alebo", "bo"])
def test_predictions_are_in_the_users_sign_and_units(method: alebo.methods.Method, goal: alebo.Minimize) -> None:
    goals = Goals([goal, alebo.AtLeast("speed", -3.0)])
    opt = Optimizer(SPACE, goals, method=method, seed=0)
    for _ in range(12):
        t = opt.ask()[0]
        opt.tell(t.number, {"loss": 100.0 + 5.0 * bowl(t.x), "speed": float(t.x[0] - t.x[1])})
    found = fit_models(opt.history, SPACE, goals, method=method)
    assert found is not None
    for outcome in ("loss", "speed"):
        mean, variance = found.models[outcome].predict(found.P)
        sd = float(np.std(found.values(outcome)))
        assert float(np.abs(mean - found.values(outcome)).max()) < sd
        assert (variance >= 0).all()
        left, spread = found.models[outcome].leave_one_out()
        assert abs(float(np.mean(left)) - float(np.mean(found.values(outcome)))) < sd
        assert (spread > 0).all()


def test_a_trial_left_out_is_not_seen_and_nothing_is_remembered_of_it() -> None:
    opt = run_of(ALEBO(dim=3), 12)
    hidden = without(opt.history, [3, 11])
    found = fit_models(hidden, SPACE, GOALS, method=opt.method, fresh=True)
    assert found is not None
    assert [t.number for t in found.trials] == [0, 1, 2, 4, 5, 6, 7, 8, 9, 10]
    changed = History(
        tuple(replace(t, outcomes={"loss": Outcome(99.0)}) if t.number in (3, 11) else t for t in opt.history)
    )
    again = fit_models(without(changed, [3, 11]), SPACE, GOALS, method=opt.method, fresh=True)
    assert again is not None
    for one, two in zip(found.models["loss"].predict(found.P), again.models["loss"].predict(found.P), strict=True):
        np.testing.assert_array_equal(one, two)


def test_slopes_are_the_gradient_of_the_posterior_mean() -> None:
    import torch

    models = fit_models(history_of(bowl, 30), SPACE, GOALS)
    assert models is not None
    model, Y = models.models["loss"].model, models.P[:4]
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
    found = slope_importance(models, "loss", SPACE)
    assert sum(s.share for s in found) == pytest.approx(1.0)
    assert {s.name for s in found[:2]} == {"x3", "x7"}
    assert all(0.0 <= s.low <= s.high <= 1.0 for s in found)
    assert found[0].name == "x7"  # twice as steep
    assert found[0].chance is not None
    assert found[5].chance is not None
    assert found[0].chance < 0.01 < found[5].chance
    assert [s.certain for s in found] == [s.chance is not None and s.chance < 0.05 / D for s in found]


def test_categories_and_constants_share_by_parameter() -> None:
    space = Space(
        [*(alebo.Float(f"x{i}", -1, 1) for i in range(9)), alebo.Categorical("c", ["a", "b"]), alebo.Fixed("k", 1)]
    )
    embedding = hypersphere(11, 4, 0).orthonormal()
    Y = embedding.domain.sample(20, 0)
    values = [float(embedding.up(y)[0]) for y in Y]
    trials = tuple(
        Trial(i, {}, embedding.up(y), y, {"loss": Outcome(v)}, State.COMPLETE)
        for i, (y, v) in enumerate(zip(Y, values, strict=True))
    )
    models = fit_models(History(trials), space, GOALS)
    assert models is not None
    shares = slope_importance(models, "loss", space)
    assert sorted(s.name for s in shares) == sorted([*(f"x{i}" for i in range(9)), "c"])
    assert sum(s.share for s in shares) == pytest.approx(1.0)


def cross_validated(history: History) -> Fit:
    models = fit_models(history, SPACE, GOALS)
    assert models is not None
    return cross_validate(history, SPACE, GOALS, models, folds=4)[0]


def test_cross_validation_tells_a_function_from_noise() -> None:
    good = history_of(bowl, 40)
    assert cross_validated(good).r2 > 0.8
    shuffled = np.random.default_rng(1).permutation([t.outcomes["loss"].mean for t in good])
    trials = (replace(t, outcomes={"loss": Outcome(v)}) for t, v in zip(good, shuffled, strict=True))
    fit = cross_validated(History(tuple(trials)))
    assert fit.r2 < 0.3
    assert 0.0 <= fit.coverage <= 1.0
    assert np.isfinite(fit.predicted).all()


@pytest.mark.parametrize("reported", [False, True], ids=["inferred", "reported"])
def test_cross_validated_coverage_of_noisy_data_is_near_95_percent(reported: bool) -> None:
    """Of 240 predictions, in three data sets; the mean of three such shares has a standard deviation of 0.019 (measured).

    With reported noise it is 0.95 on average, and below 0.89 in 2 of a thousand cases. Where noise is inferred, each of the
    three fits has 53 points, and the maximum under a prior that expects little noise takes a part of it for signal: 0.91 on
    average (`tests/models/test_calibration.py` has the same on fresh points), below 0.85 in 1 of a thousand. The mean square
    of an error in units of its standard deviation shows intervals that are too wide: 1.05 and 1.33 on average, with a
    standard deviation of 0.11, so beyond the bounds in 2 of a thousand.
    """
    space = Space.from_bounds([(-1.0, 1.0)] * 2)
    inside, squares = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        opt = Optimizer(space, GOALS, method="bo", seed=seed)
        for x in rng.uniform(-1, 1, (80, 2)):
            value = np.sin(2 * x[0]) + x[1] + 0.5 * rng.normal()
            opt.tell(space.decode(x), (value, 0.5) if reported else value)
        models = fit_models(opt.history, space, GOALS, method=opt.method)
        assert models is not None
        (fit,) = cross_validate(opt.history, space, GOALS, models, method=opt.method, folds=6)
        inside.append(fit.coverage)
        squares.append(np.mean(((fit.observed - fit.predicted) / fit.sd) ** 2))
        assert fit.r2 > 0.4
        if not reported:
            assert fit.noise_share == pytest.approx(0.25 / np.var(fit.observed), rel=0.5)
    assert np.mean(inside) > (0.89 if reported else 0.85)
    low, high = (0.7, 1.4) if reported else (0.98, 1.68)
    assert low < np.mean(squares) < high


def test_many_trials_are_left_out_by_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    import alebo.diagnostics.fit as module

    history = history_of(bowl, 45)
    models = fit_models(history, SPACE, GOALS)
    assert models is not None
    monkeypatch.setattr(module, "REFITS", 44)
    monkeypatch.setattr(module, "fit_models", None)  # not called
    (fit,) = cross_validate(history, SPACE, GOALS, models)
    assert fit.r2 > 0.8
    assert fit.coverage > 0.8


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
        return outward_pull(models, GOALS)

    slope = pull(lambda x: float(x[3] + x[7]))
    assert slope is not None
    assert slope > 0.5
    flat = pull(lambda x: float(x[3] ** 2))
    assert flat is None or flat < 0.3


def test_an_embedding_that_never_grew_has_no_time_since_growth() -> None:
    opt = run_of(ALEBO(dim=3), 9)
    assert diagnose(opt.history, SPACE, GOALS, method=opt.method).since_growth is None


def test_end_to_end_a_linear_function_and_one_that_is_not() -> None:
    good = diagnose(history_of(bowl, 30), SPACE, GOALS)
    assert {"good_fit"} <= {v.key for v in good.verdicts}
    assert good.directions is not None
    assert 1 <= good.directions <= DIM
    rng = np.random.default_rng(0)
    bad = diagnose(history_of(lambda x: float(rng.normal()), 30), SPACE, GOALS)
    assert "poor_fit" in {v.key for v in bad.verdicts}
    assert "good_fit" not in {v.key for v in bad.verdicts}


def test_end_to_end_failures_constraints_and_plain_data() -> None:
    import json

    history = history_of(bowl, 33)
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
    assert [v.key for v in said.verdicts] == ["early"]


def test_a_model_of_compressed_outcomes_is_judged_on_what_it_was_fitted_to() -> None:
    opt = run_of(alebo.methods.METHODS["adaptive"](), 16)
    found = fit_models(opt.history, SPACE, GOALS, method=opt.method, seed=opt.seed)
    assert found is not None
    assert not found.refits
    (fit,) = cross_validate(opt.history, SPACE, GOALS, found, method=opt.method)
    np.testing.assert_allclose(fit.observed, found.models["loss"].targets)
    best = int(np.argmin(found.values("loss")))
    assert fit.observed[best] == pytest.approx(found.values("loss")[best])  # good outcomes stay as they are
