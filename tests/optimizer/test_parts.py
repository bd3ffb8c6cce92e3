"""What stands between a method and a trial, and what a stored trial must be, each at its edges."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import pytest
import torch

import alebo
from alebo import Categorical, Float, Goals, InputError, Int, Minimize, Optimizer, Space, StateError, StudyError
from alebo._checks import MOST, prepared_ahead, whole
from alebo._propose import Asked, as_run, propose
from alebo._saving import ENQUEUED, Saved, check_noted, check_trial, read, write
from alebo._seeds import derive, reproducible
from alebo.goals import Outcome
from alebo.history import History, State, Trial
from alebo.methods import Sobol
from alebo.methods._method import Suggestion

SPACE = Space([Float("a", 0.0, 1.0), Int("n", 0, 9), Categorical("c", ["u", "v"])])
GOALS = Goals(Minimize("v"))
X = SPACE.encode({"a": 0.5, "n": 3, "c": "u"})


def trial(number: int = 0, **how: Any) -> Trial:
    given: dict[str, Any] = {"outcomes": {"v": Outcome(1.0)}, "state": State.COMPLETE, **how}
    return Trial(number, given.pop("params", {"a": 0.5, "n": 3, "c": "u"}), given.pop("x", X), **given)


class Far(Sobol):
    """Proposes points outside the cube, by global randomness."""

    def suggest(self, history: Any, space: Any, goals: Any, q: int, seed: int) -> Any:
        assert torch.get_num_threads() == 1
        drawn = (float(torch.rand(1)), float(np.random.random()))  # noqa: NPY002
        far = np.full(space.dimension, 1.5)
        return [Suggestion(s * far, np.zeros(2), {"drawn": drawn}) for s in (1.0, -1.0)][:q]


def test_a_proposal_is_brought_into_the_cube_and_numbered_on() -> None:
    before = History((trial(0), trial(1), trial(2)))
    up, down = propose(Far(), before, SPACE, GOALS, 2, 7)
    assert (up.number, down.number) == (3, 4)
    assert (up.x.tolist(), down.x.tolist()) == ([1.0] * 4, [-1.0] * 4)
    assert (up.params["n"], down.params["n"], up.params["a"], down.params["a"]) == (9, 0, 1.0, 0.0)
    assert (up.state, up.outcomes, up.asked) == (State.PENDING, {}, True)
    again = propose(Far(), before, SPACE, GOALS, 1, 7)[0]
    assert again.note == up.note  # the same randomness after the same history
    assert propose(Far(), History(before.trials[:2]), SPACE, GOALS, 1, 7)[0].note != up.note
    assert propose(Far(), before, SPACE, GOALS, 1, 8)[0].note != up.note


def test_global_randomness_is_seeded_inside_and_as_before_outside() -> None:
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    threads = torch.get_num_threads()
    want = (float(torch.rand(1)), float(np.random.random()))  # noqa: NPY002
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    for seed in (5, derive(3, "a"), 2**63 - 1):
        with reproducible(seed):
            first = (float(torch.rand(1)), float(np.random.random()))  # noqa: NPY002
        torch_alone = torch.Generator().manual_seed(seed % 2**63)
        assert first[0] == float(torch.rand(1, generator=torch_alone))
        assert first[1] == np.random.RandomState(seed % 2**32).random()
    assert (float(torch.rand(1)), float(np.random.random())) == want  # noqa: NPY002
    assert torch.get_num_threads() == threads
    assert derive(0, "a", 3) == int.from_bytes(hashlib.sha256(b"0/a/3").digest()[:8], "big") // 2


def test_a_list_of_trials_says_what_to_write() -> None:
    asked = Asked([trial(0)])
    assert len(asked) == 1
    with pytest.raises(AttributeError, match=r"Write opt\.ask\(\)\[0\]\.params"):
        _ = asked.params  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'list' object has no attribute 'paramz'"):
        _ = asked.paramz  # type: ignore[attr-defined]


def test_a_setting_that_moved_little_keeps_its_embedded_point() -> None:
    proposed = trial(0, y=np.array([0.1, 0.2]), outcomes={}, state=State.PENDING)
    assert as_run(SPACE, proposed, None) is proposed
    assert as_run(SPACE, proposed, {"a": 0.5}) is proposed
    near = as_run(SPACE, proposed, {"a": 0.5499})  # 0.0998 in the cube, where the range is two wide
    assert near.y is not None
    assert (near.params["a"], near.x[0], near.earlier[0].params["a"]) == (0.5499, pytest.approx(0.0998), 0.5)
    assert as_run(SPACE, proposed, {"a": 0.5501}).y is None
    assert as_run(SPACE, proposed, {"c": "v"}).y is None
    with pytest.raises(InputError, match=r"\['b', 'd'\] are none"):
        as_run(SPACE, proposed, {"b": 1, "d": 2})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"number": 1}, "is numbered 1"),
        ({"x": X[:-1]}, "no finite point of the cube of 4 coordinates"),
        ({"x": X + np.array([math.nan, 0, 0, 0])}, "no finite point"),
        ({"x": np.array([1.0 + 3e-9, 0, 0, 0])}, "no finite point"),
        ({"y": np.zeros((1, 1))}, "not a finite vector"),
        ({"y": np.array([math.inf])}, "not a finite vector"),
        ({"outcomes": {"w": Outcome(1.0)}}, r"has outcomes \['w'\] where \['v'\] belong"),
        ({"outcomes": {}}, r"has outcomes \[\]"),
        ({"outcomes": {"v": Outcome(math.nan)}}, "an outcome that is not finite"),
        ({"outcomes": {"v": Outcome(1.0, -1e-9)}}, "a standard error that is negative"),
        ({"outcomes": {"v": Outcome(1.0, math.inf)}}, "a standard error that is negative or not finite"),
        ({"params": {"a": True, "n": 3, "c": "u"}}, "has True for the number 'a'"),
        ({"params": {"a": 0.5, "n": True, "c": "u"}}, "has True for the number 'n'"),
    ],
)
def test_a_stored_trial_that_does_not_fit_is_refused(change: dict[str, Any], words: str) -> None:
    wrong = trial(change.pop("number", 0), **change)
    with pytest.raises(StudyError, match=words):
        check_trial(0, wrong, SPACE, GOALS, Sobol())
    if wrong.number == 0:  # what a trial was before it was corrected is checked, too
        with pytest.raises(StudyError, match=words):
            check_trial(0, trial(0, earlier=(wrong,)), SPACE, GOALS, Sobol())


def test_a_stored_trial_that_fits_is_taken() -> None:
    for good in (
        trial(0),
        trial(0, x=np.array([1.0 + 1e-10, -1.0, 1.0, -1.0]), y=np.array([5.0])),
        trial(0, x=np.array([1.0 + 1e-9, -1.0 - 1e-9, 1.0, -1.0])),
        trial(0, outcomes={"v": Outcome(1.0, 0.0)}),
        trial(0, outcomes={}, state=State.PENDING),
        trial(0, earlier=(trial(7),)),
    ):
        check_trial(0, good, SPACE, GOALS, Sobol())
    flags = Space([Categorical("c", [True, False])])
    check_trial(0, Trial(0, {"c": True}, flags.encode({"c": True})), flags, GOALS, Sobol())


def test_a_method_whose_settings_are_no_plain_data_has_to_be_passed_again() -> None:
    plain = Optimizer(SPACE, GOALS, method="sobol")
    data = Saved(plain.space, plain.goals, plain.method, 0, plain.history).to_dict()
    assert Saved.from_dict(data).method == Sobol()
    other = Sobol(centre=True)
    assert Saved.from_dict(data, method=other).method == other
    data["method"] = {"name": "sobol", "settings": None}
    with pytest.raises(StudyError, match="must be passed again; this study used 'sobol'"):
        Saved.from_dict(data)
    assert Saved.from_dict(data, method=other).method == other


def test_a_note_is_checked_of_our_methods_and_of_queued_points() -> None:
    damaged = trial(0, note={"events": 3})
    queued = trial(0, note={ENQUEUED: "x"})

    class Foreign(Sobol):
        name = "foreign"

    with pytest.raises(StudyError):
        check_noted(0, queued, SPACE, Foreign())
    check_noted(0, damaged, SPACE, Foreign())
    with pytest.raises(StudyError):
        check_noted(0, damaged, SPACE, alebo.ALEBO())


def test_what_is_written_is_whole(tmp_path: Any) -> None:
    opt = Optimizer(SPACE, GOALS, method="sobol", seed=3, budget=5)
    plain = opt.to_dict()
    assert ("queue" in plain, "sources" in plain, plain["format"], plain["budget"]) == (False, False, 1, 5)
    opt.enqueue({"a": 0.25, "n": 1, "c": "v"})
    opt.ask(2)
    opt.save(tmp_path / "s.json")
    saved = read(tmp_path / "s.json")
    assert isinstance(saved, Saved)
    assert (saved.queue, saved.seed, len(saved.history)) == (({"a": 0.25, "n": 1, "c": "v"},), 3, 2)
    assert [p.name for p in tmp_path.iterdir()] == ["s.json"]
    for wrong, words in (("[]", "something else"), ("{}", "something else"), ('{"format": 2, "alebo": "9"}', "format 2, by alebo 9"), ("{", "cannot be read")):  # fmt: skip
        (tmp_path / "s.json").write_text(wrong)
        with pytest.raises(StudyError, match=words):
            read(tmp_path / "s.json")
    with pytest.raises(StudyError, match="plain data"):
        write({"a": math.nan}, tmp_path / "t.json")
    with pytest.raises(StudyError, match="cannot be written"):
        write({"a": 1}, tmp_path / "none" / "t.json")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.json"]


def test_counts_at_their_edges() -> None:
    assert (whole("k", 1, 1, "w"), whole("k", MOST, 1, "w"), whole("k", -(10**12), None, "w")) == (1, MOST, -(10**12))
    assert whole("k", np.int64(3), 1, "w") == whole("k", 3.0, 1, "w") == 3
    for value in (0, 1.5, "3", b"3", None, math.inf, math.nan):
        with pytest.raises(InputError, match=r"`k >= 1` must hold, a whole number; got .* w"):
            whole("k", value, 1, "w")
    with pytest.raises(InputError, match=r"`k <= 1000000000` must hold; got a number of about 9 digits"):
        whole("k", MOST + 1, 1, "w")
    assert whole("k", MOST + 1, None, "w") == MOST + 1
    assert [prepared_ahead(None, k) for k in (1, 2, 9)] == [0, 1, 4]
    assert [prepared_ahead(k, 1) for k in (0, 3)] == [0, 3]


def test_the_budget_is_kept_to_the_last_trial() -> None:
    opt = Optimizer(SPACE, GOALS, method="sobol", budget=3)
    opt.ask(2)
    with pytest.raises(StateError, match=r"At most 3 .* and 2 have been asked for; got a request for 2 more"):
        opt.ask(2)
    assert len(opt.ask(1)) == 1
    opt.tell({"a": 0.1, "n": 1, "c": "u"}, 1.0)  # beside the budget
    with pytest.raises(StateError):
        opt.ask()
    opt.budget = 4
    assert opt.ask()[0].number == 4
    for number in (-1, 5, True, 2.0, "1"):
        with pytest.raises(InputError, match="needs the number of a trial"):
            opt.fail(number)  # type: ignore[arg-type]
    assert opt.fail(np.int64(0)).state is State.FAILED  # type: ignore[arg-type]
    assert opt.queued == ()


def test_queued_points_come_first_and_once() -> None:
    opt = Optimizer(SPACE, GOALS, method="sobol")
    points = [{"a": 0.1 * k, "n": k, "c": "u"} for k in range(3)]
    for p in points:
        opt.enqueue(p)
    first = opt.ask(2)
    assert [t.params for t in first] == points[:2]
    assert [t.note for t in first] == [{ENQUEUED: 0}, {ENQUEUED: 1}]
    assert opt.queued == (points[2],)
    both = opt.ask(3)
    assert (both[0].params, len(both), opt.queued) == (points[2], 3, ())
    assert [t.number for t in both] == [2, 3, 4]
    assert all(ENQUEUED not in t.note for t in both[1:])
    np.testing.assert_array_equal(first[1].x, SPACE.encode(points[1]))


def test_a_correction_keeps_what_was_and_needs_something_to_correct() -> None:
    opt = Optimizer(SPACE, GOALS, method="sobol")
    opt.ask(3)
    opt.tell(0, 1.0)
    opt.fail(1, "lost")
    for number, how in ((0, {}), (1, {"params": {"a": 0.5}})):
        with pytest.raises(InputError, match="needs the right outcomes"):
            opt.amend(number, **how)  # type: ignore[arg-type]
    with pytest.raises(StateError, match="pending"):
        opt.amend(2, 1.0)
    found = opt.amend(1, 4.0, reason="late")
    assert (found.state, found.reason, found.outcomes["v"].mean) == (State.COMPLETE, None, 4.0)
    moved = opt.amend(0, params={"a": 0.75})
    assert (moved.params["a"], moved.outcomes["v"].mean, len(moved.earlier)) == (0.75, 1.0, 1)
    gone = opt.forget(0, "wrong")
    assert (gone.state, gone.outcomes, gone.reason) == (State.FAILED, {}, "forgotten: wrong")
    assert opt.forget(1).reason == "forgotten: by hand"
    with pytest.raises(StateError, match="already failed"):
        opt.tell(1, 2.0)
