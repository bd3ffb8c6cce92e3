"""The later points of a batch: which share of the draws chooses each, what it has seen, and how far the search goes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from alebo._seeds import derive, generator
from alebo.acquisition import LogEI
from alebo.methods import _batch, _maximise
from alebo.methods._batch import Batch
from alebo.methods._maximise import Proposal, Search

AMONG = np.arange(10.0).reshape(5, 2)


class Draws:
    """Draws that keep which share they are, and the points that were added with the randomness they were added by."""

    def __init__(self, name: Any = "whole", added: tuple[Any, ...] = ()) -> None:
        self.name, self.added = name, added

    def share(self, i: int, of: int) -> Draws:
        return Draws((i, of))

    def plus(self, points: np.ndarray, rng: np.random.Generator) -> Draws:
        return Draws(self.name, (*self.added, (points.tolist(), rng.random())))


def models(objectives: int = 1, constraints: int = 0) -> Any:
    values = np.array([[3.0, 0.0], [1.0, 5.0], [2.0, 1.0], [0.5, 2.0], [4.0, 4.0], [5.0, 3.0]])
    return SimpleNamespace(
        objectives=(SimpleNamespace(),) * objectives,
        constraints=(None,) * constraints,
        several=objectives + constraints > 1,
        priced=lambda draws: ("priced", draws),
        values=values,
        feasible=np.array([True, True, True, False, True, True]),
    )


def under_way(count: int, fidelity: Any = None) -> Any:
    waiting = np.arange(2.0 * count).reshape(count, 2)
    domain = SimpleNamespace(many=False)
    return SimpleNamespace(waiting=waiting, space=SimpleNamespace(fidelity=fidelity), domain=domain, Y=np.zeros((6, 2)))


def search() -> Search:
    return Search(Draws(), AMONG)  # type: ignore[arg-type]


@pytest.mark.parametrize(("objectives", "constraints", "kept"), [(1, 0, 5), (1, 2, 3), (2, 0, 5), (2, 1, 5)])
def test_a_batch_has_thirds_of_the_draws_and_some_of_the_starts(objectives: int, constraints: int, kept: int) -> None:
    made: Any = Batch(models(objectives, constraints), search(), 4, 9)
    assert [one.name for one in made.shares] == [(0, 3), (1, 3), (2, 3)]
    assert made.drawn == [4, 4, 4]
    np.testing.assert_array_equal(made.among, AMONG if kept == 5 else AMONG[[0, 2, 4]])


def test_each_point_is_chosen_by_the_next_third_which_then_has_seen_all_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[Any, ...]] = []

    def maximise(acquisition: Any, model: Any, seen: Any, seed: int, **how: Any) -> str:
        asked.append((acquisition, model, seen, seed, how.pop("short"), how.pop("among").tolist(), how))
        return f"point {len(asked)}"

    monkeypatch.setattr(_batch, "maximise", maximise)
    model = models()
    batch = Batch(model, search(), 2, 9)
    found = [batch.next(under_way(2 + i), i) for i in range(1, 5)]
    assert found == ["point 1", "point 2", "point 3", "point 4"]
    new = {
        1: [2],
        2: [2, 3],
        3: [2, 3, 4],
        4: [3, 4, 5],
    }  # by number, of those under way: the fourth has had one before
    for i, (acquisition, with_model, seen, seed, short, among, others) in enumerate(asked, 1):
        price, share = acquisition
        assert (price, with_model, seed, short, others) == ("priced", model, derive(9, i), True, {})
        assert share.name == (i % 3, 3)
        points, drawn = share.added[-1]
        assert points == seen.waiting[new[i]].tolist()
        assert drawn == generator(derive(9, i), "under way").random()
        assert among == AMONG.tolist()
    assert [len(a[0][1].added) for a in asked] == [1, 1, 1, 2]
    assert batch.drawn == [5, 6, 4]


def test_a_batch_goes_on_with_the_search_of_its_first_point(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Proposal(np.zeros(4), np.zeros(2), 1.0, search())
    made = Batch.after(first, models(), under_way(3), 9)
    assert made is not None
    assert (made.drawn, made.seed) == ([2, 2, 2], 9)  # the first point itself is not in the draws
    begun: list[tuple[Any, ...]] = []

    def begin(model: Any, seen: Any, waiting: torch.Tensor, seed: int) -> Search | None:
        begun.append((waiting.tolist(), seed))
        return search() if len(begun) == 1 else None

    monkeypatch.setattr(_batch, "begun", begin)
    alone = first._replace(search=None)
    fresh = Batch.after(alone, models(), under_way(3), 9)
    assert fresh is not None
    assert fresh.drawn == [3, 3, 3]
    assert begun == [(under_way(3).waiting.tolist(), 9)]
    assert Batch.after(alone, models(), under_way(3), 9) is None


@pytest.mark.parametrize(("objectives", "count"), [(1, 256), (2, 128)])
def test_a_search_by_draws_compares_points_over_the_polytope(
    monkeypatch: pytest.MonkeyPatch, objectives: int, count: int
) -> None:
    monkeypatch.setattr(_maximise, "scatter", lambda *given: given)
    model, seen = models(objectives), under_way(1)
    seen.Y = np.arange(12.0).reshape(6, 2)
    model.drawn = lambda waiting, seed: (waiting, seed)
    found = _maximise.begun(model, seen, None, 7)
    assert found is not None
    assert found.draws == (None, 7)
    domain, seed, around, scattered = found.among
    assert (domain, seed, scattered) == (seen.domain, 7, count)
    np.testing.assert_array_equal(around, seen.Y[[1, 2, 0, 4]])  # the best feasible ones
    assert _maximise.begun(model, under_way(1, fidelity="steps"), None, 7) is None
    model.drawn = lambda waiting, seed: None
    assert _maximise.begun(model, seen, None, 7) is None


LATER, FIRST = {"starts": 4, "steps": 4}, {"starts": 6, "steps": 5}
FEWER, STEEP = {"keep": (1.0, 0.5, 0.25)}, {"steep": 0.5}


@pytest.mark.parametrize(
    ("objectives", "constraints", "short", "effort"),
    [
        (1, 0, True, LATER),
        (1, 0, False, FIRST),
        (1, 1, True, LATER | FEWER),
        (1, 1, False, FIRST | FEWER),
        (2, 0, True, LATER | FEWER | STEEP),
        (2, 1, False, FIRST | FEWER | STEEP),
    ],
)
def test_the_effort_of_a_search_by_draws(
    monkeypatch: pytest.MonkeyPatch, objectives: int, constraints: int, short: bool, effort: dict[str, Any]
) -> None:
    asked: list[Any] = []
    ends = np.array([[0.1, 0.2]]), np.array([0.5])

    def swiftly(acquisition: Any, domain: Any, seed: int, among: Any, **how: Any) -> Any:
        asked.append((acquisition, seed, among, how))
        return ends

    def candidates(acquisition: Any, domain: Any, seed: int, **how: Any) -> Any:
        asked.append(("by the other search", seed, how))
        return ends

    monkeypatch.setattr(_maximise, "swiftly", swiftly)
    monkeypatch.setattr(_maximise, "candidates", candidates)
    model, seen = models(objectives, constraints), under_way(1)
    seen.domain = SimpleNamespace(many=False)
    how: dict[str, Any] = {"short": short, "rough": "rough", "many": False, "among": AMONG}
    found = _maximise._searched("priced", model, seen, 3, seen.Y, **how)  # type: ignore[arg-type]
    assert found is ends
    assert asked.pop() == ("priced", 3, AMONG, {"rough": "rough", **effort})
    seen.domain = SimpleNamespace(many=True)  # faces that are too many for it
    _maximise._searched("priced", model, seen, 3, seen.Y, **how)  # type: ignore[arg-type]
    name, seed, other = asked.pop()
    np.testing.assert_array_equal(other.pop("around"), seen.Y)
    usual = {"raw": 128, "starts": 4, "steps": 4} if short else {}
    assert (name, seed, other) == ("by the other search", 3, {"rough": "rough", **usual})
    how |= {"short": False, "many": True}
    _maximise._searched("priced", model, seen, 3, seen.Y, **how)  # type: ignore[arg-type]
    assert asked.pop()[2]["steps"] == 5  # many data: the polish does the rest


def test_climbs_of_log_ei_with_many_data_begin_with_the_curvature_of_the_metric(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(_maximise, "candidates", lambda *given, **how: asked.append(how))
    log_ei, model, seen = object.__new__(LogEI), models(), under_way(1)
    how: dict[str, Any] = {"short": False, "rough": None, "among": None}
    model.objectives[0].gamma = torch.tensor([[[1.0, 0.0], [0.0, 2.0]], [[3.0, 1.0], [1.0, 0.0]]]).double()
    for acquisition, many in ((log_ei, True), (log_ei, False), ("another", True)):
        _maximise._searched(acquisition, model, seen, 3, seen.Y, many=many, **how)  # type: ignore[arg-type]
    bend = asked[0].pop("bend")
    torch.testing.assert_close(bend, torch.tensor([[64.001, 16.0], [16.0, 32.001]]).double())
    assert {k: asked[0][k] for k in ("raw", "starts", "steps")} == {"raw": 128, "starts": 5, "steps": 12}
    assert set(asked[1]) == {"around", "rough"}
    assert (asked[2]["steps"], "bend" in asked[2]) == (5, False)
    del model.objectives[0].gamma
    assert _maximise._bend(model) is None
