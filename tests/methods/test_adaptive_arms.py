"""The adaptive method with other arms than the default's: what they refuse, what fails in them, and what the notes say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import alebo
from alebo import Float, InputError, Int, LinearConstraint, Minimize, Optimizer, Space, StateError
from alebo.methods import ALEBO, Adaptive, TuRBO
from alebo.methods._full_space import FullSpaceArm
from alebo.methods._plateaus import PLATEAUS, Plateaus

SPACE = Space.from_bounds([(0.0, 1.0)] * 4)
CUT = Space([Float(f"x{i}", 0, 1) for i in range(6)], [LinearConstraint({"x0": 1.0, "x1": 1.0}, 0.7)])
NARROW = Space(
    [*(Float(f"x{i}", 0, 1) for i in range(5)), Int("n", 0, 9)],
    [LinearConstraint({**{f"x{i}": 1.0 for i in range(5)}, "n": 1.0}, 0.8)],
)


def bowl(params: Any) -> float:
    return float(sum((v - 0.3) ** 2 for v in params.values()))


def stairs(params: Any) -> float:
    return float(np.mean([np.round(3.0 * (v - 0.3)) ** 2 for v in params.values()]))


def run(opt: Optimizer, count: int, q: int = 1, f: Any = bowl) -> Optimizer:
    for _ in range(count // q):
        for t in opt.ask(q):
            opt.tell(t.number, f(t.params))
    return opt


def start(*arms: str, space: Space = SPACE, **how: Any) -> Optimizer:
    return Optimizer(space, Minimize("v"), method=Adaptive(arms=arms, **how), seed=0, budget=40)


def no_factor(*args: Any, **how: Any) -> Any:
    raise np.linalg.LinAlgError("no factor")


# -- linear constraints ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [CUT, NARROW], ids=["cut", "narrow"])
@pytest.mark.parametrize("q", [1, 16])
def test_first_points_obey_linear_constraints_where_several_arms_can(space: Space, q: int) -> None:
    opt = run(
        start("embedding", "alebo", space=space), 16, q
    )  # in a batch of 16 three more than there are first points
    assert len(opt.history) == 16
    assert all(space.feasible(t.params) for t in opt.history)
    assert len({t.x.tobytes() for t in opt.history[:13]}) == 13


def test_spare_points_obey_linear_constraints(monkeypatch: pytest.MonkeyPatch) -> None:
    opt = run(start("embedding", "alebo", space=NARROW), 13)
    monkeypatch.setattr(ALEBO, "propose", no_factor)
    for t in [*opt.ask(), *opt.ask(3)]:
        assert set(t.note["skipped"]) == {"embedding", "alebo"}
        assert NARROW.feasible(t.params)
    assert len({t.x.tobytes() for t in opt.history}) == 17


# -- arms that cannot do what is asked -------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["told", "queued", "nothing"])
def test_arms_left_out_are_said_once_also_after_old_data_and_queued_points(first: str) -> None:
    opt = Optimizer(CUT, Minimize("v"), seed=0, budget=30)
    point = dict.fromkeys(CUT.names, 0.1)
    if first == "told":
        opt.tell(point, 1.0)
    elif first == "queued":
        opt.enqueue(point)
    run(opt, 4)
    said = [t.number for t in opt.history if "left out" in t.note]
    assert said == [0 if first == "nothing" else 1]
    assert set(opt.history[said[0]].note["left out"]) == {"full", "local"}


def test_the_name_of_an_arm_is_a_text() -> None:
    with pytest.raises(InputError, match=r"An arm has one of these names: full, .*; got \['full'\]"):
        Adaptive(arms=(["full"],))  # type: ignore[arg-type]


# -- batches ---------------------------------------------------------------------------------------------------------------


def test_where_no_arm_can_do_batches_the_ask_is_refused_in_the_words_of_an_arm() -> None:
    opt = start("coordinate-linebo", "random-linebo", initial=2)
    with pytest.raises(InputError, match=r"CoordinateLineBO is not defined for batches.* a batch of 3"):
        opt.ask(3)
    run(opt, 6)
    assert {t.note["arm"] for t in opt.history} == {"initial", "coordinate-linebo", "random-linebo"}
    opt.ask()
    with pytest.raises(InputError, match="trial 6, which is pending"):
        opt.ask()
    assert not any("skipped" in t.note for t in opt.history)


def test_an_arm_that_cannot_do_batches_proposes_where_nothing_is_under_way() -> None:
    opt = run(start("coordinate-linebo", "sparse", initial=3), 12, 3)
    arms = [t.note["arm"] for t in opt.history]
    assert arms[3] == "coordinate-linebo"  # its turn
    assert arms[4:6] == ["sparse"] * 2
    assert all(arm != "coordinate-linebo" for i, arm in enumerate(arms) if i % 3)
    assert not any({"skipped", "refused"} & t.note.keys() for t in opt.history)


# -- refusals and failures -------------------------------------------------------------------------------------------------


def test_a_refusal_by_an_arm_is_no_failed_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> Any:
        raise InputError("too little memory")

    opt = run(start("full", "embedding", initial=3), 3)
    monkeypatch.setattr(FullSpaceArm, "propose", refuse)
    (t,) = opt.ask()
    assert t.note["arm"] == "embedding"
    assert t.note["refused"] == {"full": "too little memory"}
    assert "skipped" not in t.note
    assert Optimizer.from_dict(opt.to_dict()).history[3].note["refused"] == t.note["refused"]
    monkeypatch.setattr(ALEBO, "propose", refuse)
    with pytest.raises(InputError, match="too little memory"):
        opt.ask()


def test_an_error_of_ours_that_is_no_refusal_ends_the_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*args: Any) -> Any:
        raise StateError("at the wrong time")

    opt = run(start("full", "embedding", initial=3), 3)
    monkeypatch.setattr(FullSpaceArm, "propose", closed)
    with pytest.raises(StateError):
        opt.ask()


@pytest.mark.parametrize("error", [InputError, StateError])
def test_a_single_arm_that_refuses_ends_the_ask(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> Any:
        raise error("not now")

    monkeypatch.setattr(TuRBO, "suggest", refuse)
    with pytest.raises(error, match="not now"):
        start("turbo").ask()


def test_a_single_arm_whose_fit_fails_gives_quasi_random_points_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    opt = run(start("turbo"), 9)
    with monkeypatch.context() as patched:
        patched.setattr("alebo.methods.turbo.fit_region", no_factor)
        run(opt, 2)
        run(opt, 2, 2)
    run(opt, 2)
    assert [t.note["arm"] for t in opt.history] == ["turbo"] * 9 + ["initial"] * 4 + ["turbo"] * 2
    for t in opt.history[9:13]:
        assert t.note["skipped"] == {"turbo": "LinAlgError: no factor"}
    assert len({t.x.tobytes() for t in opt.history}) == 15


def test_the_default_goes_on_inside_linear_constraints_where_its_fit_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    opt = run(Optimizer(CUT, Minimize("v"), seed=0), 9)
    monkeypatch.setattr(ALEBO, "surrogate", no_factor)
    run(opt, 6)
    assert [set(t.note.get("skipped", ())) for t in opt.history] == [set()] * 9 + [{"embedding"}] * 6
    assert all(CUT.feasible(t.params) for t in opt.history)
    assert len({t.x.tobytes() for t in opt.history}) == 15


# -- sources ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def old() -> Optimizer:
    return run(Optimizer(SPACE, Minimize("v"), method="sobol", seed=5), 15)


@pytest.mark.parametrize("arms", [("turbo",), ("turbo", "sobol")])
def test_sources_are_refused_where_no_arm_learns_from_them(arms: tuple[str, ...], old: Optimizer) -> None:
    said = "do not: 'turbo'.*Arms that learn: full, dense, sparse, local, embedding, alebo. Name one"
    with pytest.raises(InputError, match=said):
        Optimizer(SPACE, Minimize("v"), method=Adaptive(arms=arms), sources=[old])


def test_sources_are_refused_where_the_arms_that_learn_cannot_do_what_is_asked(old: Optimizer) -> None:
    space = Space.from_bounds([(0, 1)] * 20_001)
    with pytest.raises(InputError, match="do not: 'sobol'"):
        Optimizer(space, Minimize("v"), method=Adaptive(arms=("full", "sobol")), sources=[old])


@pytest.mark.parametrize("arm", ["embedding", "alebo"])
def test_an_arm_alone_evaluates_the_best_point_of_a_source_once(arm: str, old: Optimizer) -> None:
    opt = Optimizer(SPACE, Minimize("v"), method=Adaptive(arms=(arm,)), sources=[old], seed=0)
    alone = Optimizer(SPACE, Minimize("v"), method=ALEBO(), sources=[old], seed=0)
    run(opt, 7)
    run(alone, 7)
    assert [t.note["arm"] for t in opt.history] == ["source"] + [arm] * 6
    assert [t.params for t in opt.history] == [t.params for t in alone.history]


@pytest.mark.parametrize("arms", [("full",), ("local", "turbo"), ("sobol", "alebo")])
def test_one_arm_that_learns_is_enough_for_sources(arms: tuple[str, ...], old: Optimizer) -> None:
    opt = Optimizer(SPACE, Minimize("v"), method=Adaptive(arms=arms), sources=[old], seed=0)
    assert run(opt, 1).history[0].note["arm"] == "source"


# -- plateaus --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arms", [("embedding",), ("full", "embedding")])
def test_an_arm_alone_keeps_away_from_plateaus(arms: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    weighed = start(*arms, space=CUT)
    run(weighed, 24, f=stairs)
    noted = [t.number for t in weighed.history if PLATEAUS in t.note]
    assert noted
    monkeypatch.setattr("alebo.methods.adaptive.plateaus", lambda view: None)
    plain = run(start(*arms, space=CUT), 24, f=stairs)
    same = [a.params == b.params for a, b in zip(weighed.history, plain.history, strict=True)]
    assert all(same[: noted[0]])  # before there were ties
    assert not same[noted[0]]


@pytest.mark.parametrize("arms", [("turbo", "full", "embedding"), ("turbo",), ("bo",), ("alebo",)])
def test_the_note_speaks_of_plateaus_where_a_proposal_was_weighed_by_them(
    arms: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("alebo.methods.adaptive.plateaus", lambda view: Plateaus(0.2, view.X))
    opt = run(start(*arms, initial=4), 16, 4)
    weighing = {"full", "embedding", "alebo"}
    for t in opt.history:
        expected = t.note["arm"] in weighing and "log_ei" in t.note
        assert (t.note.get(PLATEAUS) == 0.2) == expected
        assert (PLATEAUS in t.note) == expected
    assert {t.note["arm"] for t in opt.history if PLATEAUS in t.note} == weighing & set(arms)


def test_a_repeated_measurement_was_not_weighed_by_plateaus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alebo.methods.adaptive.plateaus", lambda view: Plateaus(0.2, view.X))
    opt = run(start("full", "local", initial=3), 3)
    monkeypatch.setattr("alebo.methods._full_space.to_repeat", lambda view, model: opt.history[1])
    (t,) = opt.ask()
    assert t.note["again"] == 1
    assert PLATEAUS not in t.note


def test_points_next_to_each_other_alone_show_no_plateaus() -> None:
    opt = alebo.Optimizer(Space([Float("x", 0, 1)]), Minimize("v"), seed=0)
    for k in range(6):
        opt.tell({"x": 0.5 + k * 1e-9}, 1.0)
    run(opt, 2, f=lambda params: 1.0)
    assert not any(PLATEAUS in t.note for t in opt.history)
