"""Stored runs: a line each, written by several sweeps at once, unfinished lines tolerated, failures replaced."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from alebo.bench import store
from alebo.bench._format import FORMAT, KIND


def record(seed: int, state: str = "complete", **more: Any) -> dict[str, Any]:
    names = (
        "problem",
        "label",
        "method",
        "budget",
        "environment",
        "goals",
        "outcomes",
        "truth",
        "feasible",
        "dim",
        "seconds",
    )
    return {"kind": KIND, "format": FORMAT, "seed": seed, "state": state, **dict.fromkeys(names, ""), **more}


def test_runs_are_read_back_as_written(tmp_path: Path) -> None:
    path = store.path_of(tmp_path, "branin-100", "sobol")
    assert path == tmp_path / "branin-100" / "sobol.jsonl"
    assert not store.present(path, 1)
    assert store.append(path, record(1))
    assert store.append(path, record(11))
    assert store.read(path) == ([record(1), record(11)], [])
    assert [store.present(path, s) for s in (1, 11, 111, 0)] == [True, True, False, False]


def test_a_complete_run_replaces_a_failed_one_and_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
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
def test_an_unfinished_last_line_is_reported_and_removed_by_the_next_append(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.jsonl"
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


def test_two_processes_append_to_one_file_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
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
