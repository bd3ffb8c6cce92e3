"""A journal that rots, a lock file that is deleted, a folder that cannot be written: nothing is lost or changed silently."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alebo
from alebo.methods import Sobol
from alebo.runner import _journal
from alebo.runner._lines import intact, sealed

SPACE = alebo.Space.from_bounds([(-1, 1)] * 3)
GOAL = alebo.Minimize("loss")


def create(path: Path, **kwargs: Any) -> alebo.Study:
    return alebo.Study.create(path, SPACE, GOAL, method=Sobol(), seed=3, budget=30, **kwargs)


def filled(path: Path, n: int = 4) -> list[dict[str, Any]]:
    study = create(path)
    for k, trial in enumerate(study.ask(n)):
        if k != 1:
            study.tell(trial.number, (k / 7, 0.25))
    study.fail(1, "broken")
    return [t.to_dict() for t in study.history]


def completed(path: Path) -> list[dict[str, Any]]:
    return [t.to_dict() for t in create(path).history if t.complete]


def test_every_line_has_a_checksum_that_optuna_passes_over(tmp_path: Path) -> None:
    import optuna

    filled(tmp_path / "s.log")
    assert all(intact(line) for line in (tmp_path / "s.log").read_bytes().splitlines(keepends=True))
    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "s.log"))
    theirs = optuna.load_study(study_name="alebo", storage=optuna.storages.JournalStorage(backend))
    assert [t.value for t in theirs.trials] == [0.0, None, 2 / 7, 3 / 7]


def test_no_flipped_bit_changes_a_value_or_loses_a_completed_trial(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = filled(tmp_path / "s.log")
    good = [t for t in before if t["state"] == "complete"]
    data = (tmp_path / "s.log").read_bytes()
    rng = np.random.default_rng(0)
    for k in range(150):
        place, bit = int(rng.integers(len(data))), int(rng.integers(8))
        hurt = bytearray(data)
        hurt[place] ^= 1 << bit
        path = tmp_path / f"flip{k}.log"
        path.write_bytes(hurt)
        caplog.clear()
        assert completed(path) == good, (place, bit)
        assert path.name in caplog.text, (place, bit)  # named, and moved aside
        assert path.with_name(path.name + ".torn").exists()
        path.unlink()


def test_a_correction_survives_a_damaged_line(tmp_path: Path) -> None:
    path = tmp_path / "s.log"
    filled(path)
    create(path).amend(0, 0.125, reason="the scale was wrong")
    create(path).amend(0, 0.25, reason="still wrong")
    lines = path.read_bytes().splitlines(keepends=True)
    for i in range(len(lines) - 4, len(lines)):
        hurt = tmp_path / f"hurt{i}.log"
        hurt.write_bytes(b"".join([*lines[:i], lines[i].replace(b"0.25", b"0.75"), *lines[i + 1 :]]))
        assert create(hurt).history[0].outcomes["loss"].mean == 0.25


def test_a_line_damaged_while_the_study_is_open_is_healed(tmp_path: Path) -> None:
    path = tmp_path / "s.log"
    reader, writer = create(path), create(path)
    trials = writer.ask(2)
    for t in trials:
        writer.tell(t.number, 0.5)
    before = [t.to_dict() for t in writer.history]
    data = path.read_bytes()
    for found in list(re.finditer(rb"0\.5,", data))[:1]:  # in the first outcome that is written
        path.write_bytes(data[: found.start()] + b"0.7," + data[found.end() :])
    assert [t.to_dict() for t in reader.history] == before
    reader.tell(reader.ask()[0].number, 0.25)
    assert [t.outcomes["loss"].mean for t in create(path).history] == [0.5, 0.5, 0.25]


def test_a_file_without_checksums_still_opens(tmp_path: Path) -> None:
    path = tmp_path / "s.log"
    before = filled(path)
    path.write_bytes(re.sub(rb',"crc":"[0-9a-f]{8}"\}', b"}", path.read_bytes()))
    study = create(path)
    assert [t.to_dict() for t in study.history] == before
    study.tell(study.ask()[0].number, 1.0)  # lines with and without
    assert len(completed(path)) == 4


def test_a_lock_file_that_is_deleted_while_running_ends_nobody(tmp_path: Path) -> None:
    study, other = create(tmp_path / "s.log"), create(tmp_path / "s.log")
    first = study.claim(1)[0]
    claims = tmp_path / "s.log.claims"
    claims.unlink()
    assert other.claim(1)[0].number == 1  # the first one lives

    def busy(params: dict[str, Any]) -> float:
        claims.unlink(missing_ok=True)
        (tmp_path / "s.log.lock").unlink(missing_ok=True)
        return 1.0

    study.tell(first.number, 1.0)
    other.tell(1, 1.0)
    with ThreadPoolExecutor(2) as executor:
        opt = alebo.run(study, busy, executor=executor)
    assert len(opt.history.complete) == 30
    assert len({t.x.tobytes() for t in opt.history}) == 30


@contextmanager
def as_nobody() -> Iterator[None]:
    """Inside, without root's right to write everywhere."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_study_in_a_folder_that_cannot_be_written_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    from alebo.cli import main

    def look(path: Path) -> None:
        for verb in ("status", "best"):
            with pytest.raises(SystemExit) as end:
                main([verb, str(path), "--json"])
            assert not end.value.code

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        filled(folder / "s.log")
        look(folder / "s.log")  # also loads what an unprivileged user may not read here
        for neighbour in folder.glob("s.log.*"):
            neighbour.unlink()
        before = (folder / "s.log").read_bytes()
        (folder / "s.log").chmod(0o444)
        folder.chmod(0o555)
        capsys.readouterr()
        with as_nobody():
            study = alebo.Study.open(folder / "s.log")
            assert study.best().number == 0
            look(folder / "s.log")
            for verb in (study.ask, study.claim, lambda: study.tell(1, 1.0), lambda: study.set_budget(99)):
                with pytest.raises((alebo.StudyError, alebo.StateError)):
                    verb()
        folder.chmod(0o755)
        assert '"number": 0' in capsys.readouterr().out
        assert [p.name for p in folder.iterdir()] == ["s.log"]
        assert (folder / "s.log").read_bytes() == before


# -- what a study is ----------------------------------------------------------------------------------------------------


def half(x: float) -> float:
    return x / 2


def third(x: float) -> float:
    return x / 3


@dataclass(frozen=True)
class WithFunction(Sobol):
    scale: Any = None
    rounds: int = 1


def test_a_method_that_holds_a_function_is_compared_in_all_its_settings(tmp_path: Path) -> None:
    def begin(method: alebo.methods.Method) -> alebo.Study:
        return alebo.Study.create(tmp_path / "s.log", SPACE, GOAL, method=method, seed=3)

    begin(WithFunction(scale=half)).ask()
    assert len(begin(WithFunction(scale=half)).history) == 1
    for other in (WithFunction(scale=half, rounds=2), WithFunction(scale=third), WithFunction(), Sobol()):
        with pytest.raises(alebo.StudyError, match="keeps its method"):
            begin(other)
    with pytest.raises(alebo.StudyError, match=r"scale.*Pass it again"):
        alebo.Study.open(tmp_path / "s.log")
    assert len(alebo.Study.open(tmp_path / "s.log", method=WithFunction(scale=half)).history) == 1


def test_reasons_are_shown_without_terminal_escapes(tmp_path: Path) -> None:
    study = create(tmp_path / "s.log")
    study.fail(study.ask()[0].number, "bad \x1b[31mmesh\x1b[0m\x07")
    assert study.history[0].reason == "bad mesh"
    lines = (tmp_path / "s.log").read_bytes()
    (tmp_path / "t.log").write_bytes(
        re.sub(rb',"crc":"[0-9a-f]{8}"\}', b"}", lines).replace(b"bad mesh", b"\\u001b[2Jx")
    )
    assert create(tmp_path / "t.log").history[0].reason == "x"  # written by somebody else


def test_the_one_optimizer_is_refreshed_not_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = create(tmp_path / "s.log")
    made: list[int] = []
    real = alebo.Optimizer.__init__
    monkeypatch.setattr(alebo.Optimizer, "__init__", lambda self, *a, **k: (made.append(1), real(self, *a, **k))[1])
    trial = study.claim(1)[0]
    study.tell(trial.number, 1.0)
    assert study.best().number == trial.number
    assert not made


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"outcomes": {"loss": [0.0, 0.25]}', b'"outcomes": {"loss": [0.0, -0.5]}'),
        (b'"outcomes": {"loss": [0.0, 0.25]}', b'"outcomes": {"loss": [NaN, 0.25]}'),
        (b'"outcomes": {"loss": [0.0, 0.25]}', b'"outcomes": {"lost": [0.0, 0.25]}'),
        (b'"outcomes": {"loss": [0.0, 0.25]}', b'"outcomes": 7'),
        (b'"note": {}', b'"note": {"chains": 3}'),
        (b'"note": {}', b'"note": []'),
        (b'"asked": true', b'"asked": "yes"'),
        (b'"y": null', b'"y": ["0.5"]'),
        (b'"study_id": 0', b'"study_id": []'),
        (b'"worker_id"', b'"worker"'),
    ],
)
def test_a_line_that_another_program_changed_and_sealed_is_refused(tmp_path: Path, old: bytes, new: bytes) -> None:
    path = tmp_path / "s.log"
    filled(path)
    lines = []
    for line in path.read_bytes().splitlines():
        record = {k: v for k, v in json.loads(line).items() if k != "crc"}
        lines.append(sealed(json.loads(json.dumps(record).encode().replace(old, new))))
    assert b"".join(lines) != path.read_bytes()
    path.write_bytes(b"".join(lines))
    with pytest.raises(alebo.StudyError, match="backup"):
        _ = alebo.Study.open(path).history


@pytest.mark.parametrize("step", ["write", "sync"])
def test_after_a_failed_append_the_journals_bytes_are_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    study = create(tmp_path / "s.log")
    (trial,) = study.ask()
    before = (tmp_path / "s.log").read_bytes()
    full = OSError(errno.ENOSPC, "no space left on device")

    class Short(io.FileIO):
        """Writes a part, then nothing more."""

        def write(self, data: Any) -> int:
            if self.tell() > len(before):
                raise full
            return int(super().write(bytes(data)[:20]))

    def sync(number: int) -> None:
        raise full

    if step == "write":
        monkeypatch.setattr(_journal, "open", lambda path, mode, **how: Short(path, "r+b"), raising=False)
    else:
        monkeypatch.setattr(_journal.os, "fsync", sync)
    with pytest.raises(alebo.StudyError, match="free disk space"):
        study.tell(trial.number, 1.0)
    monkeypatch.undo()
    assert (tmp_path / "s.log").read_bytes() == before
    assert create(tmp_path / "s.log").tell(trial.number, 2.0).complete
