"""Saving and loading: exact, and a damaged file is named."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import alebo
from alebo import (
    AtMost,
    Categorical,
    Fixed,
    Float,
    Int,
    LinearConstraint,
    Maximize,
    Minimize,
    Optimizer,
    Space,
    StudyError,
)
from alebo.methods import METHODS

from .runs import D, Sobol, drive, optimizer, record, refused, small, value


@pytest.mark.parametrize("method", [Sobol(), small(4), small(None)], ids=["sobol", "alebo", "alebo-growing"])
def test_load_and_ask_equals_never_stopped(method: Any, tmp_path: Path) -> None:
    """Stopped and loaded before every single ask, and pending, failed and foreign points among them."""
    straight, stopped = optimizer(method, seed=3), optimizer(method, seed=3)
    path = tmp_path / "study.json"
    for k in range(11):
        stopped.save(path)
        stopped = Optimizer.load(path)
        assert stopped.method == method
        for opt in (straight, stopped):
            if k == 4:
                opt.tell({f"x{i}": 0.1 for i in range(D)}, 0.7)
            trials = opt.ask(2 if k == 6 else 1)
            if k == 5:
                opt.fail(trials[0].number, "broke")
            elif k != 7:  # 7 stays pending
                for t in trials:
                    opt.tell(t.number, (value(t), 0.01) if k == 8 else value(t))
        assert record(straight) == record(stopped), f"differs at ask {k}"


def test_a_saved_study_holds_everything(tmp_path: Path) -> None:
    space = Space(
        [
            Float("a", 1e-3, 1, log=True),
            Int("n", 1, 9),
            Categorical("c", ["x", 2, True]),
            Fixed("f", None),
            Float("b", 0, 1),
        ],
        [LinearConstraint({"b": 1.0, "n": 0.1}, 1.5)],
    )
    goals = [Minimize("y", reference=3.0), Maximize("z"), AtMost("w", 1.5), alebo.Cost("t")]
    opt = Optimizer(space, goals, method=METHODS["alebo"](), seed=2**61 + 1, budget=30)  # type: ignore[arg-type]
    for t in opt.ask(3):
        opt.tell(t.number, {"y": 1e-12, "z": (1e12, 0.5), "w": 0, "t": 4})
    path = tmp_path / "s.json"
    opt.save(path)
    again = Optimizer.load(str(path))
    assert (again.space, again.goals, again.seed, again.budget) == (opt.space, opt.goals, opt.seed, 30)
    assert again.space.constraints == opt.space.constraints
    assert record(again) == record(opt)
    assert repr(again) == repr(opt)
    again.save(path)  # over the old one
    assert record(Optimizer.load(path)) == record(opt)
    assert os.listdir(tmp_path) == ["s.json"]  # no half-written neighbour stays


def saved(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    path = tmp_path / "study.json"
    drive(optimizer(Sobol()), 4).save(path)
    return path, json.loads(path.read_text())


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_file(share: float, tmp_path: Path) -> None:
    path, _ = saved(tmp_path)
    text = path.read_text()
    path.write_text(text[: int(share * len(text))])
    refused(StudyError, lambda: Optimizer.load(path), "one JSON file", str(path), "backup")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00binary", b"hello", b"[1, 2]", b'{"a": 1}', b"null", b"3"])
def test_a_foreign_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(content)
    refused(StudyError, lambda: Optimizer.load(path), "A saved study is", str(path))


def test_no_file_or_a_folder(tmp_path: Path) -> None:
    refused(StudyError, lambda: Optimizer.load(tmp_path / "no.json"), "must exist", "no.json", "Check the path")
    refused(StudyError, lambda: Optimizer.load(tmp_path), "cannot be read")
    opt = drive(optimizer(), 2)
    refused(StudyError, lambda: opt.save(tmp_path / "no" / "s.json"), "folder that exists", "No outcome is lost")
    refused(StudyError, lambda: opt.save(tmp_path), "cannot be written")
    assert len(opt.history) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_a_later_format(tmp_path: Path) -> None:
    path, data = saved(tmp_path)
    path.write_text(json.dumps({**data, "format": 99, "alebo": "7.0"}))
    refused(StudyError, lambda: Optimizer.load(path), "format 99", "alebo 7.0", "Install that version")


def damage_cases() -> list[Any]:
    def trial(i: int, **change: Any) -> Callable[[dict[str, Any]], None]:
        return lambda d: d["trials"][i].update(change)

    return [
        pytest.param(lambda d: d.pop("space"), id="no space"),
        pytest.param(lambda d: d.pop("trials"), id="no trials"),
        pytest.param(lambda d: d.update(trials=7), id="trials are a number"),
        pytest.param(lambda d: d.update(trials=[{}]), id="an empty trial"),
        pytest.param(lambda d: d.update(goals=[{"type": "Smallest", "outcome": "y"}]), id="unknown goal"),
        pytest.param(lambda d: d.update(goals=[]), id="no goals"),
        pytest.param(lambda d: d.update(method={"name": "alebbo"}), id="unknown method"),
        pytest.param(lambda d: d.update(method=None), id="method null"),
        pytest.param(lambda d: d.update(seed=None), id="seed null"),
        pytest.param(lambda d: d.update(budget=-3), id="budget negative"),
        pytest.param(lambda d: d["space"]["x0"].update(low=5), id="bounds reversed"),
        pytest.param(trial(1, x=[0.0, 1.0]), id="a short point"),
        pytest.param(trial(1, x="abc"), id="a point of text"),
        pytest.param(trial(1, x=[math.nan] * D), id="a point of NaN"),
        pytest.param(trial(1, y=[[1.0]]), id="embedded coordinates of a wrong shape"),
        pytest.param(trial(1, number=3), id="a number twice"),
        pytest.param(trial(1, state="done"), id="unknown state"),
        pytest.param(trial(1, outcomes={}), id="complete without outcomes"),
        pytest.param(trial(1, outcomes={"loss": [math.nan, None]}), id="a NaN outcome"),
        pytest.param(trial(1, params={"x0": 3}), id="other parameters"),
        pytest.param(trial(1, outcomes={"loss": [1.0, math.nan]}), id="a NaN standard error"),
        pytest.param(trial(1, outcomes={"loss": [1.0, -0.5]}), id="a negative standard error"),
        pytest.param(trial(1, x=[0.0] * (D - 1) + [1.001]), id="a point outside the cube"),
        pytest.param(trial(1, earlier=[{"number": 1}]), id="half a correction"),
        pytest.param(lambda d: d.update(queue=[{"x0": 9}]), id="a queue of nonsense"),
        pytest.param(lambda d: d.update(queue=3), id="a queue that is a number"),
        pytest.param(lambda d: d["trials"].pop(1), id="a missing trial"),
        pytest.param(lambda d: d["trials"][1].pop("state"), id="no state"),
        pytest.param(lambda d: d.update(seed="1"), id="a seed of text"),
        pytest.param(lambda d: d.update(seed=1.5), id="a seed with a fraction"),
        pytest.param(lambda d: d.update(budget=True), id="a budget of true"),
        pytest.param(lambda d: d.update(constraints=""), id="constraints are a text"),
        pytest.param(lambda d: d.update(queue={}), id="a queue that is an object"),
        pytest.param(lambda d: d["goals"][0].update(reference="a"), id="a reference of text"),
        pytest.param(lambda d: d["goals"][0].update(outcome=3), id="an outcome that is a number"),
        pytest.param(lambda d: d["space"]["x0"].update(log="no"), id="a scale of text"),
        pytest.param(trial(1, number="1"), id="a number of text"),
        pytest.param(trial(1, asked="no"), id="asked is a text"),
        pytest.param(trial(1, reason=7), id="a reason that is a number"),
        pytest.param(trial(1, outcomes={"loss": ["1.0", None]}), id="an outcome of text"),
        pytest.param(trial(1, outcomes={"loss": [1.0, None, 2.0]}), id="an outcome of three numbers"),
        pytest.param(trial(1, x=["0.0"] * D), id="a point of texts"),
        pytest.param(trial(1, x=[10**400] * D), id="a point beyond floats"),
        pytest.param(trial(1, note={"enqueued": []}), id="a note of a wrong kind"),
        pytest.param(trial(1, note={"chains": {"objective 0": [["x"]]}}), id="a chain of text"),
        pytest.param(trial(1, note={"unexplained": {}}), id="an unexplained share that is no number"),
        pytest.param(trial(1, note={"line": 1}), id="a line without its anchor"),
        pytest.param(trial(1, note={"again": 7}), id="a repetition of a later trial"),
        pytest.param(trial(1, note={"events": [["grow", 10**9, 0]]}), id="a growth beyond the space"),
        pytest.param(trial(1, params={"x0": True, **{f"x{i}": 0.0 for i in range(1, D)}}), id="true for a number"),
        pytest.param(lambda d: d.update(budget=10**400), id="a budget beyond floats"),
        pytest.param(lambda d: d.update(constraints=[{"coefficients": {"x0": True}, "upper": 1}]), id="true as weight"),
        pytest.param(lambda d: d.update(method={"name": "alebo", "acquisition": "ei"}), id="a text as a function"),
        pytest.param(lambda d: d.update(method={"name": "alebo", "growth": {"directions": 3}}), id="a number for one"),
        pytest.param(trial(1, earlier={}), id="corrections that are an object"),
    ]


@pytest.mark.parametrize("damage", damage_cases())
def test_a_damaged_file(damage: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    path, data = saved(tmp_path)
    damage(data)
    path.write_text(json.dumps(data))
    said = refused(StudyError, lambda: Optimizer.load(path), str(path))
    assert "backup" in said


def test_what_is_not_plain_data_is_not_saved_and_nothing_is_lost(tmp_path: Path) -> None:
    space = Space([Categorical("c", [object(), object()]), Float("a", 0, 1)])
    opt = Optimizer(space, Minimize("y"), method=Sobol())
    opt.tell(opt.ask()[0].number, 1.0)
    path = tmp_path / "s.json"
    path.write_text("the old file")
    refused(StudyError, lambda: opt.save(path), "plain data", "Use plain values")
    assert path.read_text() == "the old file"
    assert opt.best().number == 0
