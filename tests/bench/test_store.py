"""Stored runs: a line each, written by several sweeps at once, unfinished lines tolerated, failures replaced."""

from __future__ import annotations

import errno
import json
import math
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from alebo import InputError, StudyError
from alebo.bench import store
from alebo.bench._format import FORMAT, KIND


def record(seed: int, state: str = "complete", **more: Any) -> dict[str, Any]:
    return {
        **{"kind": KIND, "format": FORMAT, "problem": "p", "label": "a", "method": {"name": "sobol"}},
        **{"seed": seed, "budget": 2, "state": state, "environment": {"versions": {"alebo": "0.2.0"}}},
        **{"goals": [{"type": "Minimize", "outcome": "value"}], "outcomes": {"value": [1.0, None]}, "truth": {}},
        **{"feasible": None, "dim": [[0, 4]], "seconds": {"model": [0.1], "evaluation": 0.0}, "best": None},
        **more,
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return store.path_of(tmp_path, "p", "a")


def test_runs_are_read_back_as_written(path: Path, tmp_path: Path) -> None:
    assert path == tmp_path / "p" / "a.jsonl"
    assert not store.present(path, 1)
    assert store.append(path, record(1))
    assert store.append(path, record(11))
    assert store.read(path) == ([record(1), record(11)], [])
    assert [store.present(path, s) for s in (1, 11, 111, 0)] == [True, True, False, False]


def test_a_complete_run_replaces_a_failed_one_and_is_never_replaced(path: Path) -> None:
    store.append(path, record(3, "failed", error="first"))
    assert store.present(path, 3)
    assert not store.present(path, 3, retry_failed=True)
    assert store.append(path, record(3, "failed", error="second"))
    assert store.read(path)[0][0]["error"] == "second"
    assert store.append(path, record(3))
    assert store.present(path, 3, retry_failed=True)
    assert not store.append(path, record(3, note="another sweep was slower"))
    assert store.read(path) == ([record(3)], [])


@pytest.mark.parametrize("cut", [1, 40])
def test_an_unfinished_last_line_is_reported_and_removed_by_the_next_append(path: Path, cut: int) -> None:
    store.append(path, record(0))
    with path.open("a") as file:
        file.write(json.dumps(record(1))[:-cut])
    runs, reasons = store.read(path)
    assert runs == [record(0)]
    assert reasons == ["line 2 is unfinished, from a sweep that was killed"]
    assert not store.present(path, 1)
    store.append(path, record(1))
    assert store.read(path) == ([record(0), record(1)], [])


def _write(path: Path, seeds: range) -> None:
    for seed in seeds:
        store.append(path, record(seed, blob="x" * 20_000))


def test_two_processes_append_to_one_file_at_the_same_time(path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ranges = [range(0, 40), range(20, 60)]  # twenty seeds are made by both
    processes = [context.Process(target=_write, args=(path, seeds)) for seeds in ranges]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    runs, reasons = store.read(path)
    assert reasons == []
    assert sorted(r["seed"] for r in runs) == list(range(60))
    assert len(path.read_text().splitlines()) == 60


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": "abc"}, "`seed` must be a whole number of 0 or more; it is 'abc'"),
        ({"seed": True}, "`seed` must"),
        ({"budget": 0}, "`budget` must"),
        ({"label": ["a"]}, "`label` must be a text"),
        ({"problem": None}, "`problem` must be a text"),
        ({"method": "sobol"}, "`method` must be an object with a name"),
        ({"state": "strange"}, "`state` must be complete or failed; it is 'strange'"),
        ({"environment": {}}, "`environment` must"),
        ({"goals": []}, "`goals` must be a list of goals with an objective"),
        ({"goals": [{"type": "Minimize", "outcome": "other"}]}, "`outcomes` must hold the objective 'other'"),
        ({"outcomes": {}}, "`outcomes` must hold the objective 'value'"),
        ({"outcomes": {"value": [1.0]}}, "`outcomes.value` must be a list of 2 numbers"),
        ({"outcomes": {"value": [1.0, "2"]}}, "`outcomes.value` must be a list of 2 numbers"),
        ({"outcomes": {"value": [1.0, math.inf]}}, "`outcomes.value` must be a list of 2 numbers"),
        ({"outcomes": {"value": [1.0, 10**400]}}, "`outcomes.value` must be a list of 2 numbers"),
        ({"truth": None}, "`truth` must be an object of series"),
        ({"truth": {"value": [1.0]}}, "`truth.value` must be a list of 2 numbers"),
        ({"feasible": [True]}, "`feasible` must be a list of 2 truth values"),
        ({"feasible": [1, 0]}, "`feasible` must be null or a list of truth values"),
        ({"dim": [4]}, "`dim` must be a list of [evaluation, dimension]"),
        ({"dim": [[2, 4]]}, "`dim` must be a list of [evaluation below 2, dimension]"),
        ({"seconds": {}}, "`seconds` must be an object with a list `model`"),
        ({"best": {"value": "hm"}}, "`best` must be null or hold a number"),
        ({"optimum": "low"}, "`optimum` must be null or a number"),
    ],
)
def test_a_damaged_line_is_reported_and_its_run_counts_as_missing(
    path: Path, change: dict[str, Any], words: str
) -> None:
    store.append(path, record(0))
    with path.open("a") as file:
        file.write(json.dumps(record(1) | change) + "\n")
    runs, (reason,) = store.read(path)
    assert runs == [record(0)]
    assert reason.startswith("line 2 damaged: ")
    assert words in reason
    assert not store.present(path, 1)


def test_a_line_of_deep_brackets_is_reported(path: Path) -> None:
    store.append(path, record(0))
    with path.open("a") as file:
        file.write('{"seed": 1, "a": ' + "[" * 200_000 + "\n")
    runs, (reason,) = store.read(path)
    assert runs == [record(0)]
    assert reason.startswith("line 2 cannot be read")
    assert not store.present(path, 1)


def test_a_run_of_another_file_is_reported(path: Path) -> None:
    store.append(path, record(0))
    with path.open("a") as file:
        file.write(json.dumps(record(1, problem="q")) + "\n" + json.dumps(record(2, label="b")) + "\n")
    runs, reasons = store.read(path)
    assert runs == [record(0)]
    assert reasons == [
        "line 2 is a run of q/a, which has a file of its own",
        "line 3 is a run of p/b, which has a file of its own",
    ]
    assert not store.present(path, 1)


def test_of_two_complete_runs_of_a_seed_the_first_counts_and_the_other_is_reported(path: Path) -> None:
    lines = [record(3), record(3), record(3, dim=[])]
    path.parent.mkdir()
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert store.read(path) == ([record(3)], ["line 3 is another complete run of seed 3: that of line 1 counts"])
    assert store.stored(path, 3) == record(3)


def test_a_whole_run_without_its_end_of_line_is_kept(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(json.dumps(record(0)))
    assert store.append(path, record(1))
    assert store.read(path) == ([record(0), record(1)], [])


@pytest.mark.parametrize("name", ["../up", "", ".", "..", "a/b", "/tmp/x", "a b", "-a", 5])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: Any) -> None:
    with pytest.raises(InputError, match="letters, digits and"):
        store.path_of(tmp_path, name, "a")
    with pytest.raises(InputError, match="letters, digits and"):
        store.path_of(tmp_path, "p", name)


def test_something_else_in_the_place_of_a_file_or_folder_is_refused(path: Path) -> None:
    store.check_place(path)
    path.parent.write_text("")
    for check in (store.check_place, lambda p: store.present(p, 0)):
        with pytest.raises(InputError, match="--out"):
            check(path)
    path.parent.unlink()
    path.mkdir(parents=True)
    for check in (store.check_place, lambda p: store.present(p, 0)):
        with pytest.raises(InputError, match="--out"):
            check(path)
    path.rmdir()
    path.parent.rmdir()
    path.parent.symlink_to("/nonexistent/x")
    with pytest.raises(InputError, match="is no folder"):
        store.check_place(path)
    with pytest.raises(StudyError, match="cannot be written: File exists"):
        store.append(path, record(0))


def test_a_full_disk_is_an_error_that_names_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StudyError, match=r"a\.jsonl cannot be written: No space left on device"):
        store.append(path, record(0))
