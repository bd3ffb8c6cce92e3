"""How rows of an earlier study are matched, in detail: scales, cells, what is left out, what is said, what is stored."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alebo
from alebo import AtMost, Categorical, Fixed, Float, Goals, InputError, Int, Maximize, Minimize, Space, StudyError
from alebo import _match as match
from alebo._match import Matcher, Row, Text, _coordinates, _listed
from alebo._tasks import Task
from alebo.goals import Outcome
from alebo.sources import Source, _from_csv, as_list, learned_from

ONE = Space([Float("gain", 0, 1)])
LOSS = Goals(Minimize("loss"))


def matcher(space: Space = ONE, goals: Goals = LOSS, given: Any = (), columns: Any = ()) -> Matcher:
    return Matcher("old", space, goals, dict(given), dict(columns))


def rows(*pairs: tuple[float, float | None]) -> list[Row]:
    return [Row({"gain": g}, {} if v is None else {"loss": Outcome(v)}, v is not None) for g, v in pairs]


# -- scales ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "p",
    [
        Float("a", -3.0, 5.0),
        Float("a", 1e-3, 10.0, log=True),
        Int("a", -2, 7),
        Int("a", 1, 64, log=True),
        Float("a", 0.0, 1.0, step=0.25),
        Categorical("a", ["u", "v", "w"]),
        Categorical("a", [1, 2.5, True]),
    ],
)
def test_inside_the_bounds_a_value_lies_where_the_space_has_it(p: Any) -> None:
    space = Space([p])
    for u in np.linspace(-1.0, 1.0, 9):
        params = space.decode(np.full(space.dimension, u) if not isinstance(p, Categorical) else np.eye(3)[int(u > 0)])
        np.testing.assert_allclose(_coordinates(p, params["a"]), space.encode(params), atol=1e-12)


def test_beyond_the_bounds_the_scale_goes_on() -> None:
    assert _coordinates(Float("a", 0.0, 2.0), 5.0).tolist() == [4.0]
    assert _coordinates(Float("a", 1.0, 100.0, log=True), 1e4) == pytest.approx([3.0])
    assert _coordinates(Int("a", 1, 4), 6) == pytest.approx([2.0 * 5.5 / 4.0 - 1.0])
    low, high = math.log(0.5), math.log(8.5)
    at = 0.5 * (math.log(15.5) + math.log(16.5))
    assert _coordinates(Int("a", 1, 8, log=True), 16) == pytest.approx([2.0 * (at - low) / (high - low) - 1.0])
    assert _coordinates(Fixed("a", 3), 9).shape == (0,)
    assert _coordinates(Categorical("a", ["u", "v"]), "v").tolist() == [-1.0, 1.0]
    wrong: list[tuple[Any, Any]] = [
        *((Float("a", 1.0, 2.0, log=True), v) for v in (0.0, -1.0, math.nan, math.inf)),
        *((Int("a", 1, 8, log=True), v) for v in (0, 0.5)),
        (Categorical("a", ["u", "v"]), "w"),
    ]
    for p, value in wrong:
        with pytest.raises(InputError, match="'a' is"):
            _coordinates(p, value)
    assert _coordinates(Int("a", 1, 8, log=True), 0.6).shape == (1,)
    assert _coordinates(Float("a", -1.0, 1.0), 0.0).tolist() == [0.0]


# -- cells -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        ({"loss": "1.5"}, (1.5, None)),
        ({"loss": " 1.5 ± 0.2 "}, (1.5, 0.2)),
        ({"loss": "1.5 +- 0.2"}, (1.5, 0.2)),
        ({"loss": "1.5+/-0.2"}, (1.5, 0.2)),
        ({"loss": "1.5 ± 0.2", "loss_sem": "0.7"}, (1.5, 0.2)),
        ({"loss": "1.5", "loss_sem": "0.7"}, (1.5, 0.7)),
        ({"loss": 1.5, "loss_sem": 0.7}, (1.5, 0.7)),
        ({"loss": 1, "loss_sem": 0}, (1.0, 0.0)),
        ({"loss": 1.5, "loss_sem": math.nan}, (1.5, None)),
        ({"loss": 1.5, "loss_sem": None}, (1.5, None)),
        ({"loss": "1.5", "loss_sem": " "}, (1.5, None)),
        ({"loss": ""}, None),
        ({"loss": "  "}, None),
        ({"loss": None}, None),
        ({}, None),
    ],
)
def test_an_outcome_in_a_cell(cells: dict[str, Any], found: Any) -> None:
    assert Text(cells).outcome("loss") == (None if found is None else Outcome(*found))


def test_numbers_with_commas_and_choices_in_cells() -> None:
    assert Text({"loss": "1,5 ± 0,25"}, comma=True).outcome("loss") == Outcome(1.5, 0.25)
    assert Text({"gain": "0,5"}, comma=True).param("gain", ONE.parameters[0]) == 0.5
    assert Text({"gain": "0.5"}).param("gain", Int("gain", 0, 1)) == 0.5
    assert Text({"gain": 0.25}).param("gain", ONE.parameters[0]) == 0.25
    kind = Categorical("kind", ["a", 2, True])
    for cell, choice in (("a", "a"), (" a ", "a"), ("'a", "a"), ("2", 2), (2, 2), ("True", True), ("z", "z")):
        assert Text({"kind": cell}).param("kind", kind) == choice
    with pytest.raises(InputError, match=r"^old\.csv, line 7, column 'gain' holds numbers; got 'x'"):
        Text({"gain": "x"}, where="old.csv, line 7").param("gain", ONE.parameters[0])
    with pytest.raises(InputError, match=r"^column 'loss' holds numbers; got '1,5'"):
        Text({"loss": "1,5"}).outcome("loss")
    states = [("complete", True), (" Complete ", True), ("", True), (None, True), ("failed", False), ("pending", False)]
    assert [Text({"state": s}).complete for s, _ in states] == [good for _, good in states]
    assert Text({}).complete


def test_the_columns_of_a_file(tmp_path: Path) -> None:
    for separator, text in ((",", "a,b\n1,2\n\n , \n3\n"), (";", "a;b\n1;2\n3;\n"), ("\t", "a\tb\n1\t2\n3\n")):
        (tmp_path / "old.csv").write_text(text, encoding="utf-8-sig")
        found = _from_csv(tmp_path / "old.csv")
        assert (found.names, found.name) == (("a", "b"), "old")
        read = list(found.rows)
        assert [r.params.get("a") for r in read] == ["1", "3"]
        assert [getattr(r, "comma") for r in read] == [separator == ";"] * 2  # noqa: B009
        assert getattr(read[0], "where") == f"{tmp_path}/old.csv, line 2"  # noqa: B009
    (tmp_path / "old.csv").write_text("\n , \n1,2\n")
    with pytest.raises(InputError, match="line of column names"):
        _from_csv(tmp_path / "old.csv")
    (tmp_path / "old.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        _from_csv(tmp_path / "old.csv")


# -- what is left out ------------------------------------------------------------------------------------------------------


def test_what_is_left_out_is_counted_and_said() -> None:
    given = [*rows((0.1, 1.0), (0.2, 2.0), (0.3, None), (2.0, 5.0), (2.01, 6.0), (-1.0, 7.0), (-1.01, 8.0))]
    given.append(Row({"gain": "x"}, {"loss": Outcome(1.0)}, True))
    given.append(Row({"gain": 0.5}, {"loss": Outcome(math.inf)}, True))
    given.append(Row({"gain": 0.5}, {"loss": Outcome(1.0, -0.1)}, True))
    given.append(Row({"gain": 0.5}, {"loss": Outcome(1.0, math.nan)}, True))
    found = matcher().task(given, ("gain", "loss"))
    assert found.means["loss"].tolist() == [1.0, 2.0, 5.0, 7.0]  # three half widths from the middle: -1 to 2
    np.testing.assert_allclose(found.X[:, 0], [-0.8, -0.6, 3.0, -3.0])
    assert found.said == (
        "4 of 11 evaluations failed, were pending or have no finite outcome, and are left out.",
        "1 of 11 evaluations have values that parameters cannot have, and are left out.",
        "2 of 11 evaluations lie far outside the present bounds, and are left out.",
    )
    assert found.sems == {}


def test_two_evaluations_are_needed() -> None:
    assert len(matcher().task(rows((0.1, 1.0), (0.2, 2.0)), ("gain", "loss"))) == 2
    with pytest.raises(
        InputError, match=r"has 1 evaluations that can be learned from, of 3: 1 without .* 1 far outside"
    ):
        matcher().task(rows((0.1, 1.0), (0.2, None), (9.0, 1.0)), ("gain", "loss"))
    with pytest.raises(InputError, match="has 2 evaluations, none of them with finite outcomes"):
        matcher().task(rows((0.1, None), (0.2, None)), ("gain", "loss"))
    with pytest.raises(InputError, match="has 0 evaluations that can be learned from, of 0"):
        matcher().task([], ("gain", "loss"))


def test_an_outcome_that_never_changed_teaches_nothing() -> None:
    goals = Goals([Minimize("loss"), AtMost("mass", 1.0), AtMost("heat", 2.0)])
    given = [
        Row({"gain": g}, {"loss": Outcome(v, s), "mass": Outcome(3.0, 0.1)}, True)
        for g, v, s in ((0.1, 1.0, None), (0.2, 1.0 + 1e-9, 0.5))
    ]
    found = matcher(goals=goals).task(given, ("gain", "loss", "mass"))
    assert (list(found.means), list(found.sems)) == (["loss"], ["loss"])
    assert np.isnan(found.sems["loss"][0])
    assert found.sems["loss"][1] == 0.5
    assert found.said == ("It has no 'heat': that is learned here.", "Its 'mass' never changed: that is learned here.")
    tiny = [Row({"gain": g}, {"loss": Outcome(v), "mass": Outcome(v)}, True) for g, v in ((0.1, 1e-15), (0.2, 2e-15))]
    assert list(matcher(goals=goals).task(tiny, ("gain", "loss", "mass")).means) == ["loss", "mass"]  # by its own size
    same = [Row({"gain": g}, {"loss": Outcome(v)}, True) for g, v in ((0.1, 5.0), (0.2, 5.0 + 1e-13))]
    with pytest.raises(InputError, match=r"same 'loss' in all of its 2 evaluations, 5:"):
        matcher().task(same, ("gain", "loss"))


def test_of_many_the_best_feasible_ones_are_kept_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "MOST", 4)
    goals = Goals([Maximize("gain of it"), AtMost("mass", 0.0)])
    values = [(5.0, 1.0), (1.0, 0.0), (4.0, 0.0), (9.0, 1e-9), (3.0, -1.0), (2.0, 0.0)]
    given = [
        Row({"gain": 0.1 * k}, {"gain of it": Outcome(v), "mass": Outcome(m)}, True) for k, (v, m) in enumerate(values)
    ]
    found = matcher(goals=goals).task(given, ("gain", "gain of it", "mass"))
    assert found.means["gain of it"].tolist() == [5.0, 4.0, 3.0, 2.0]  # the best two; first and last of the others
    assert found.said[-1] == "4 of 6 evaluations are learned from: the best, and some of all others."
    assert len(matcher(goals=goals).task(given[:4], ("gain", "gain of it", "mass"))) == 4
    monkeypatch.setattr(match, "HELD", 4)
    held = matcher(goals=goals).task(iter(given), ("gain", "gain of it", "mass"))
    assert 4.0 in held.means["gain of it"]
    assert len(held) <= 4


def test_names_are_listed_four_at_most() -> None:
    assert [_listed("abcdef"[:k]) for k in (1, 4, 5, 6)] == [
        *("'a'", "'a', 'b', 'c', 'd'", "'a', 'b', 'c', 'd' and 1 more", "'a', 'b', 'c', 'd' and 2 more"),
    ]


def test_names_that_differ_and_values_that_were_fixed() -> None:
    space = Space([Float("gain", 0, 1), Float("rate", 0, 2), Fixed("mode", "x")])
    made = matcher(space, given={"rate": 1.5}, columns={"gain": "old", "loss": "error"})
    given = [Row({"old": g}, {"error": Outcome(v)}, True) for g, v in ((0.25, 1.0), (0.75, 2.0))]
    found = made.task(given, ("old", "error", "error_sem", "trial", "state", "reason", "check", "more"))
    np.testing.assert_allclose(found.X, [[-0.5, 0.5], [0.5, 0.5]])
    assert found.said == ("'more' is not in the present study, and left out.", "'rate' had the value 1.5 there.")
    two = matcher().task(rows((0.1, 1.0), (0.2, 2.0)), ("gain", "loss", "a", "b"))
    assert two.said == ("'a', 'b' are not in the present study, and left out.",)
    for given_, columns, words in (
        ({"loss": 1.0}, {}, "says something of 'loss'"),
        ({}, {"los": "x"}, "Did you mean 'loss'"),
        ({"gain": 5j}, {}, "states a value of 'gain' that it cannot have"),
    ):
        with pytest.raises(InputError, match=words):
            matcher(given=given_, columns=columns)
    assert matcher(columns={"loss": "x"}).columns == {"loss": "x"}


# -- lists of sources ------------------------------------------------------------------------------------------------------


def test_sources_of_the_same_name_are_told_apart(caplog: pytest.LogCaptureFixture) -> None:
    class Frame:
        """As a table of pandas looks from outside."""

        def __init__(self, shift: float) -> None:
            self._cells = {"gain": [0.1, 0.5, 0.9], "loss": [1.0 + shift, 2.0, 3.0], "odd": [1, 2, 3]}
            self.columns = list(self._cells)

        def __getitem__(self, name: str) -> Any:
            return np.array(self._cells[name])

        def to_dict(self) -> None: ...

    method = alebo.methods.Adaptive()
    with caplog.at_level(logging.WARNING, "alebo"):
        found = learned_from([Frame(0.0), Frame(0.5), Source(Frame(0.25), name="march")], ONE, LOSS, method)
    assert [t.name for t in found] == ["source", "source (2)", "march"]
    assert all(t.kernels for t in found)
    assert "source (2): 'odd' is not in the present study, and left out." in caplog.text
    with pytest.raises(InputError, match="'source \\(2\\)' has the data of 'source'"):
        learned_from([Frame(0.0), Frame(0.0)], ONE, LOSS, method)
    assert learned_from((), ONE, LOSS, method) == ()
    one = Frame(0.0)
    assert as_list(one) == [one]
    assert as_list("a.csv") == ["a.csv"]
    assert as_list(["a.csv", "b.csv"]) == ["a.csv", "b.csv"]
    for wrong in ({"given": {1: 2}}, {"columns": {"a": 1}}, {"columns": []}, {"name": ""}, {"name": 3}):
        with pytest.raises(InputError):
            Source(one, **wrong)  # type: ignore[arg-type]


# -- stored data -----------------------------------------------------------------------------------------------------------


KERNEL = {"kernel": "rbf", "lengthscales": [1.0, 2.0], "variance": 1.0, "noise": 0.1, "mean": 0.0}
PLAIN = {
    **{"name": "old", "X": [[0.5, -10.0], [1.0, 10.0]], "means": {"v": [1.0, 2.0]}, "sems": {"v": [0.0, None]}},
    **{"said": ["a"], "embedding": None, "kernels": {"objective 0": KERNEL}},
}


def test_a_task_survives_plain_data() -> None:
    task = Task.from_dict(PLAIN)
    assert task.to_dict() == PLAIN
    assert (len(task), len(task.digest)) == (2, 16)
    assert Task("x", np.array([[1 / 3]]), {"v": np.array([2 / 3])}).rounded().X.tolist() == [[0.333333333]]
    assert task.digest == Task.from_dict({**PLAIN, "name": "other", "kernels": {}}).digest
    assert task.digest != Task.from_dict({**PLAIN, "means": {"v": [1.0, 3.0]}}).digest
    assert Task.from_dict(
        {**PLAIN, "X": [], "means": {}, "sems": {}, "kernels": {}} | {"X": np.zeros((0, 2))}
    ).X.shape == (0, 2)
    assert dict(Task.from_dict({**PLAIN, "embedding": {"A": 1}}).embedding or {}) == {"A": 1}


@pytest.mark.parametrize(
    "damage",
    [
        {"X": [[0.5, -10.1], [1.0, 1.0]]},
        {"X": [[0.5, math.nan], [1.0, 1.0]]},
        {"X": [0.5, 1.0]},
        {"means": {"v": [1.0]}},
        {"means": {"v": [1.0, math.inf]}},
        {"sems": {"v": [-1e-9, None]}},
        {"sems": {"v": [0.1]}},
        {"kernels": {"objective 0": {**KERNEL, "kernel": "cubic"}}},
        {"kernels": {"objective 0": {**KERNEL, "lengthscales": [1.0]}}},
        {"kernels": {"objective 0": {**KERNEL, "lengthscales": [1.0, 0.0]}}},
        {"kernels": {"objective 0": {**KERNEL, "lengthscales": [1.0, math.inf]}}},
        {"kernels": {"objective 0": {**KERNEL, "variance": 0.0}}},
        {"kernels": {"objective 0": {**KERNEL, "noise": 0}}},
        {"kernels": {"objective 0": {**KERNEL, "mean": math.nan}}},
        {"embedding": 3},
        {"said": None},
    ],
)
def test_a_damaged_task_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(StudyError, match="A stored source holds points, outcomes and fitted kernels"):
        Task.from_dict({**PLAIN, **damage})
