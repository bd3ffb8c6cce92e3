"""What arms note and remember, the acquisition that goals call for, repeats, and the effort of a proposal."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import alebo
from alebo import AtMost, Cost, Goals, Maximize, Minimize
from alebo.acquisition import LogEI, NoisyLogEHVI, NoisyLogEI, PerCost, PerLook
from alebo.geometry import Embedding, hypersphere
from alebo.goals import Outcome
from alebo.history import History, State, Trial
from alebo.methods import _full_space, _maximise, _outcomes, _rounding
from alebo.methods._growth import Event
from alebo.methods._notes import approximation, memory, note, remembered
from alebo.methods._repeat import estimates, to_repeat
from alebo.methods._view import View
from alebo.models import fit_ard
from alebo.models.priors import dense

from .views import ARMS, GOAL, D, trial, view

# -- arms of the full space --------------------------------------------------------------------------------------------------


def test_a_proposal_notes_its_value_and_the_side_of_its_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        _full_space.FullSpaceArm, "_maximise", lambda *given: (np.array([0.25, 0.5, 1.0, 0.0]), 1.23456789)
    )
    now = view(*[trial(k, float(k % 5)) for k in range(8)])
    one, two = ARMS["dense"].propose(now, 2)
    assert (one.x.tolist(), one.note["log_ei"], one.y) == ([-0.5, 0.0, 1.0, -1.0], 1.234568, None)
    assert ("fit" in one.note, "fit" in two.note) == (True, False)
    assert ARMS["local"].propose(replace(now, arm="local"), 1)[0].note["side"] == 0.8


def test_many_trials_are_thinned_and_the_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_full_space, "MOST_TRIALS", 6)
    monkeypatch.setattr(_full_space.FullSpaceArm, "_maximise", lambda *given: (np.full(D, 0.5), 0.0))
    now = view(*[trial(k, float(k)) for k in range(8)])
    assert ARMS["dense"].propose(now, 1)[0].note["learned from"] == "6 of 8 trials"
    assert [len(p) for p in ARMS["dense"].expects(now, np.zeros(D))["foreseen"].values()] == [1]
    few = view(*[trial(k, float(k)) for k in range(6)])
    assert "learned from" not in ARMS["dense"].propose(few, 1)[0].note


def test_where_a_fit_starts_by_its_own_note_or_anothers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_full_space, "MANY", 3)
    fits = {"objective 0": [[1.0], [2.0]]}  # dense, sparse
    local = [trial(k, 1.0, note={"arm": "local", "fit": fits} if k == 1 else {"arm": "local"}) for k in range(4)]
    full, dense_arm = ARMS["full"], ARMS["dense"]
    now = view(*local, arm="full")
    assert full._remembered(now) == {"objective 0": [(), [2.0]]}
    assert (
        full._remembered(replace(now, history=History(tuple(local[:3])))) is None
    )  # few trials: a search costs little
    assert dense_arm._remembered(replace(now, arm="dense")) == {"objective 0": [()]}
    own = [*local, trial(4, 1.0, note={"arm": "full", "fit": {"objective 0": "mine"}})]
    assert full._remembered(replace(now, history=History(tuple(own)))) == {"objective 0": "mine"}
    newer = {"arm": "sparse", "fit": {"objective 0": [[3.0]], "constraint 0": []}}
    assert full._remembered(now.plus(np.zeros(D), newer)) == {"objective 0": [(), [3.0]]}
    damaged = replace(local[1], note={"arm": "local", "fit": 3})
    assert full._remembered(replace(now, history=History((local[0], damaged, *local[2:])))) is None


def test_an_arm_refuses_beyond_its_coordinates() -> None:
    goals: Any = None
    for count, able in ((20_000, True), (20_001, False)):
        space: Any = SimpleNamespace(constraints=(), fidelity=None, dimension=count)
        assert (ARMS["full"].unable(space, goals) is None) is able


# -- the acquisition that goals call for ------------------------------------------------------------------------------------


def models(*goals: Any, noise: float | None = None) -> _outcomes.OutcomeModels:
    rng = np.random.default_rng(0)
    X = rng.random((8, 2))
    named = {"v": np.sin(X[:, 0]), "w": X[:, 1], "g": X[:, 0] - 0.5, "c": 1.0 + X[:, 1]}
    trials = [
        Trial(i, {}, x, None, {k: Outcome(float(v[i]), noise) for k, v in named.items()}, State.COMPLETE)
        for i, x in enumerate(X)
    ]

    def build(P: Any, values: Any, **how: Any) -> Any:
        return fit_ard(P, values, dense(2), variances=how["variances"], iterations=2)

    return _outcomes.fit_outcomes(X, trials, Goals(list(goals)), build=build, infer_noise=False)


def test_each_kind_of_goal_has_its_acquisition() -> None:
    v, waiting = Minimize("v"), torch.full((1, 2), 0.4).double()
    cost = models(v, Cost("c"))
    look: Any = lambda X: X[..., 0, 0]  # noqa: E731
    kinds: list[tuple[Any, Any]] = [
        (models(v).acquisition(None, 0), LogEI),
        (models(v).acquisition(waiting, 0), NoisyLogEI),
        (models(v, AtMost("g", 0.0)).acquisition(None, 0), NoisyLogEI),
        (models(v, noise=0.2).acquisition(None, 0), NoisyLogEI),
        (models(v, Maximize("w")).acquisition(None, 0), NoisyLogEHVI),
        (cost.acquisition(None, 0), PerCost),
        (models(v).acquisition(None, 0, log_cost=look), PerLook),
    ]
    assert [type(found) for found, _ in kinds] == [kind for _, kind in kinds]
    assert isinstance(cost.acquisition(None, 0).acquisition, NoisyLogEI)  # type: ignore[union-attr]
    assert isinstance(cost.acquisition(None, 0, log_cost=look).acquisition, LogEI)  # type: ignore[union-attr]
    assert (models(v, AtMost("g", 0.0)).acquisition(None, 0, log_cost=look)).__class__ is PerLook


def test_noise_is_evident_by_its_size_the_number_of_data_and_the_likelihood() -> None:
    def evident(known: bool, noise: float, n: int, ratio: float) -> bool:
        m = SimpleNamespace(
            known_noise=known,
            noise=torch.full((n,), noise, dtype=torch.double),
            v=np.zeros(n),
            noise_evidence=lambda: ratio,
        )
        found = replace(models(Minimize("v")), objectives=(m,))
        assert found.noisy is (noise > 1e-3)
        return found.noise_is_evident()

    assert [evident(True, v, 5, 0.0) for v in (1e-3, 1.1e-3)] == [False, True]
    assert [evident(False, v, 20, 5.1) for v in (5e-3, 5.1e-3)] == [False, True]
    assert [evident(False, 0.1, n, 5.1) for n in (19, 20)] == [False, True]
    assert [evident(False, 0.1, 20, r) for r in (5.0, 5.1)] == [False, True]


def test_extreme_values_are_compressed_and_a_bound_stays_where_it_is() -> None:
    given: dict[str, np.ndarray] = {}
    rng = np.random.default_rng(1)
    g = np.append(3.0 + rng.random(9), 1e9)

    def build(P: Any, values: Any, **how: Any) -> Any:
        given[str(len(given))] = values.numpy()
        assert (how["warm"], how["variances"]) == ((), None)
        return SimpleNamespace(memory=[[1.23456789, (0.1, 2)]])

    trials = [
        trial(k, outcomes={"v": Outcome(float(v)), "g": Outcome(float(w))})
        for k, (v, w) in enumerate(zip(rng.random(10), g, strict=True))
    ]
    goals = Goals([Minimize("v"), AtMost("g", 1.0)])
    made = _outcomes.fit_outcomes(rng.random((10, 2)), trials, goals, build=build)
    assert (list(made.squeezed), made.compressed) == (["constraint 0"], ["g"])
    squeeze = made.squeezed["constraint 0"]
    np.testing.assert_allclose(given["1"], squeeze(g - 1.0) - squeeze(np.zeros(1)))
    assert (given["1"] > 0.0).all()  # beyond the bound, as measured
    assert given["1"].argmax() == 9
    assert given["1"][9] < 1e3
    assert made.packed() == {name: [[1.23457, [0.1, 2.0]]] for name in ("objective 0", "constraint 0")}
    far = np.append(1e9, -3.0 - rng.random(9))  # a bound far from all but one: its zero is moved, and comes back
    many = [trial(k, outcomes={"v": Outcome(1.0), "g": Outcome(float(w))}) for k, w in enumerate(1e12 + far)]
    moved = _outcomes.fit_outcomes(rng.random((10, 2)), many, Goals([Minimize("v"), AtMost("g", 0.0)]), build=build)
    back = moved.squeezed["constraint 0"]
    np.testing.assert_allclose(given["3"], back(1e12 + far) - float(back(np.zeros(1))[0]))


# -- notes, repeats, the point proposed --------------------------------------------------------------------------------------


def test_what_notes_keep() -> None:
    seen = view(*[trial(k, 1.0, note={"chains": {"a": [[k]]}}) for k in range(3)]).inside(hypersphere(D, 2, 0))
    assert note(replace(seen, events=(Event("grow", 1, 0),))) == {"dim": 2, "events": [["grow", 1, 0]]}
    found: Any = SimpleNamespace(value=0.123456789)
    assert note(seen, found)["log_ei"] == 0.123457
    assert remembered(seen, "chains", 2) == {"a": [[2], [1]]}
    assert remembered(seen, "none", 2) == {}
    odd = view(trial(0, 1.0, note={"chains": {"a": ["x", [0]]}}), trial(1, 1.0, note={"chains": {"a": [[1]]}}))
    assert remembered(odd.inside(hypersphere(D, 2, 0)), "chains", 6) == {"a": [[1], [0]]}
    model: Any = SimpleNamespace(
        objectives=[SimpleNamespace(unexplained=lambda s=s: s) for s in (0.12345, 0.02)],
        packed=lambda: "packed",
        compressed=["g"],
    )
    assert memory(seen, model, "chains") == {"chains": "packed", "unexplained": 0.123, "compressed": ["g"]}
    assert approximation(History()) is None
    said = approximation(History((trial(0, 1.0, note={"learned from": "5 of 9 trials"}),)))
    assert said == "The models learn from 5 of 9 trials: the best, and some of all others."


def test_when_the_best_point_is_measured_again() -> None:
    def model(known: bool = False, count: int = 1, feasible: Any = (True, True, False), evident: bool = True) -> Any:
        return SimpleNamespace(
            models={"a": SimpleNamespace(known_noise=known)},
            objectives=[None] * count,
            feasible=np.array(feasible),
            values=np.array([[2.0], [1.0], [0.5]]),
            noise_is_evident=lambda: evident,
        )

    now = view(trial(0, 2.0), trial(1, 1.0), trial(2, 0.5))
    assert to_repeat(now, model()) is now.history[1]
    for no in (model(known=True), model(count=2), model(feasible=(False,) * 3), model(evident=False)):
        assert to_repeat(now, no) is None
    again = view(trial(0, 2.0), trial(1, 1.0, note={"again": 0}), trial(2, 0.5))
    assert to_repeat(again, model()) is None
    five = [trial(k, float(k)) for k in range(5)]
    posterior = [{"v": Outcome(10.0 + k)} for k in range(5)]
    made: Any = SimpleNamespace(noise_is_evident=lambda: True, estimates=lambda: posterior)
    assert estimates(view(*five[:4]), lambda: made) is None
    assert {k: o["v"].mean for k, o in (estimates(view(*five), lambda: made) or {}).items()} == {
        k: 10.0 + k for k in range(5)
    }
    same = [*five, trial(5, 2.0, x=five[2].x)]
    assert estimates(view(*same), lambda: made) is None


@pytest.mark.parametrize("short", [False, True])
def test_the_effort_of_a_proposal(monkeypatch: pytest.MonkeyPatch, short: bool) -> None:
    asked: dict[str, Any] = {}

    def candidates(acquisition: Any, domain: Any, seed: int, **how: Any) -> tuple[np.ndarray, np.ndarray]:
        asked.update(seed=seed, **how)
        return np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([0.75, 0.5])

    monkeypatch.setattr(_maximise, "candidates", candidates)
    embedding = hypersphere(D, 2, 0).orthonormal()
    points = [np.array([0.05 * k, -0.05 * k]) for k in range(6)]
    trials = [trial(k, float(abs(k - 3)), x=embedding.up(y), y=y) for k, y in enumerate(points)]
    seen = view(*trials).inside(embedding)
    ok = np.array([True, True, True, False, True, True])
    model: Any = SimpleNamespace(values=np.array([[abs(k - 3.0)] for k in range(6)]), feasible=ok)
    found = _maximise.maximise(None, model, seen, 3, short=short)  # type: ignore[arg-type]
    np.testing.assert_array_equal(asked.pop("around"), [points[k] for k in (2, 4, 1, 5)])  # feasible ones first
    effort = {"raw": 128, "starts": 4, "steps": 4} if short else {}
    assert asked == {"seed": 3, "rough": None, **effort}
    np.testing.assert_array_equal(found.x, embedding.up([0.1, 0.2]))
    assert (found.y.tolist(), found.value) == ([0.1, 0.2], 0.75)


# -- what is seen ------------------------------------------------------------------------------------------------------------


def test_a_point_is_seen_where_it_was_proposed_and_is_not_projected_again() -> None:
    embedding = hypersphere(D, 2, 0).orthonormal()
    y = np.array([0.1, 0.2])
    trials = [trial(0, 1.0, x=embedding.up([0.3, 0.3]), y=y), trial(1, 1.0, x=embedding.up([0.3, 0.3]), y=np.ones(3))]
    seen = view(*trials).inside(embedding)
    assert seen.Y[0].tolist() == [0.1, 0.2]  # whatever its x is
    np.testing.assert_allclose(seen.Y[1], [0.3, 0.3])  # of a larger embedding: by its point
    assert view(*trials, only=frozenset({1})).inside(embedding).Y.shape == (1, 2)
    off = embedding.up([0.1, 0.1]) + np.linalg.svd(embedding.A)[0][:, -1] * np.array([[1.9e-6], [2.1e-6]])
    near = view(trial(0, 1.0, x=off[0]), trial(1, 1.0, x=off[1])).inside(embedding)
    assert [t.number for t in near.trials] == [0]  # 1e-6 times the root of D: 2e-6


def test_of_many_trials_the_best_are_kept_by_feasibility_front_and_ranks() -> None:
    both = Goals([Minimize("v"), Maximize("w"), AtMost("g", 0.0)])
    told = [(3, 1, 0), (1, 1, 0), (2, 5, 0), (0, 9, 1), (4, 0, 0), (5, 5, 0)]
    trials = [
        trial(k, outcomes={"v": Outcome(v), "w": Outcome(w), "g": Outcome(g)}) for k, (v, w, g) in enumerate(told)
    ]
    seen = view(*trials, goals=both)
    # the front (1, 1), (2, 5); then by the sum of ranks; the infeasible one last
    assert seen._ranked().tolist() == [2, 1, 0, 5, 4, 3]
    assert seen.thinned(6) is seen
    few = seen.thinned(4)
    assert sorted(few.only or ()) == [0, 1, 2, 3]  # the best two, and the first and the last of the others
    assert (few.whole.only, seen.whole is seen) == (None, True)
    assert (few.learned_from, seen.learned_from) == ({"learned from": "4 of 6 trials"}, {})
    one = view(*[trial(k, float(v)) for k, v in enumerate((3, 1, 2))])
    assert one._ranked().tolist() == [1, 2, 0]
    bounded = view(*trials[:4], goals=Goals([Minimize("v"), AtMost("g", 0.0)]))
    assert bounded._ranked().tolist() == [1, 2, 0, 3]


def test_of_points_that_promise_the_same_the_first_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    space = alebo.Space([alebo.Int("n", 0, 9)])
    monkeypatch.setattr(_rounding, "evaluate", lambda acquisition, points: np.ones(len(points)))
    monkeypatch.setattr(_rounding, "ROUNDS", 0)
    points = np.array([space.encode({"n": n}) for n in (3, 5, 7)])
    known = [Trial(n, {"n": n}, space.encode({"n": n}), None, {"v": Outcome(1.0)}, State.COMPLETE) for n in range(10)]
    seen = View(History(tuple(known)), space, GOAL, 0).inside(Embedding(np.eye(1), np.zeros(1)))
    order = np.argsort(-np.ones(3))
    x, value = _rounding.rounded(seen, None, points, points[:1], 0)  # type: ignore[arg-type]
    assert (x.tolist(), value) == (points[order[0]].tolist(), 1.0)
