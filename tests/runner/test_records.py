"""What is written of a method, and how a stored one is compared; a study that can only be read."""

from __future__ import annotations

import errno
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import alebo
from alebo.methods import Sobol
from alebo.methods._method import Method
from alebo.runner._claims import NoClaims
from alebo.runner._files import _is_journal
from alebo.runner._journal import _explained
from alebo.runner._records import _method_data, _name_of, _same_method, check_sources, needs_method

SPACE = alebo.Space.from_bounds([(-1, 1)] * 3)
GOAL = alebo.Minimize("loss")


def rule(view: Any, k: int) -> None:
    """A setting that is a function."""


@dataclass
class Setting:
    size: int = 3


class Nameless:
    __hash__ = object.__hash__


def test_a_setting_that_is_no_plain_data_is_kept_by_a_name() -> None:
    assert _name_of(rule) == f"{__name__}:rule"
    assert _name_of(Setting()) == "Setting Setting(size=3)"
    assert _name_of(Nameless()) == "Nameless"  # its address is another in every process
    method = alebo.ALEBO(growth=alebo.methods.Growth(directions=rule))
    data = _method_data(method)
    assert needs_method({"method": data}) == list(data["unstored"]) != []
    assert needs_method({"method": _method_data(alebo.ALEBO())}) == []
    assert needs_method({"method": {"name": "alebo", "settings": {}}}) == ["all of its settings"]  # of alebo 0.1


def test_a_stored_method_is_the_same_by_its_settings() -> None:
    mine: Method = alebo.ALEBO(dim=3)
    now = _method_data(mine)
    assert _same_method(now, dict(now))
    assert not _same_method(now, _method_data(alebo.ALEBO(dim=4)))
    fewer = {k: v for k, v in now.items() if k != "growth"}  # by a version that had fewer settings
    assert _same_method(fewer, _method_data(alebo.ALEBO(dim=3)))
    assert not _same_method({**now, "dim": -5}, now)  # what cannot be built is another
    assert not _same_method({"name": "unheard of"}, now)
    assert not _same_method("alebo", now)
    old = {"name": "alebo", "settings": {}}
    assert not _same_method(old, now)
    assert _same_method(old, {**now, "unstored": {"f": "g"}})
    assert not _same_method(old, {**now, "unstored": {}, "name": "bo"})


def test_a_study_that_can_only_be_read_is_read_and_refuses_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s.log"
    study = alebo.Study.create(path, SPACE, GOAL, method=Sobol(), seed=3, budget=4)
    for k in range(3):
        study.ask()
        study.tell(k, float(k))
    study.close()
    lines = path.read_bytes().split(b"\n")
    middle = len(lines) // 2
    lines[middle] = lines[middle][:10] + b"#" + lines[middle][11:]
    path.write_bytes(b"\n".join(lines))
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    monkeypatch.setattr("os.access", lambda *_, **__: False)  # root may write anything
    before = path.read_bytes()
    with caplog.at_level(logging.WARNING):
        seen = alebo.Study.open(path)
        assert [t.outcomes["loss"].mean for t in seen.history.complete] == [0.0, 1.0, 2.0]
    assert "1 damaged line(s)" in caplog.text
    for verb in (seen.ask, seen.claim, lambda: seen.set_budget(9)):
        with pytest.raises(alebo.StudyError, match=r"read-only|writable"):
            verb()
    assert path.read_bytes() == before
    tmp_path.chmod(0o755)


def test_claims_on_what_can_only_be_read() -> None:
    claims = NoClaims("there")
    for verb in (claims.asking, lambda: claims.live("w")):
        with pytest.raises(alebo.StudyError, match="Asking needs a study that can be written; there"):
            verb()
    assert claims.alive("anybody")  # nobody is taken for dead
    with claims.appending():
        claims.renew()
    claims.close()


def test_why_a_file_could_not_be_written() -> None:
    full = _explained(Path("s.log"), OSError(errno.ENOSPC, "full"))
    assert "free disk space; s.log could not grow" in str(full)
    assert "must be writable; s.log is not" in str(_explained(Path("s.log"), OSError(errno.EACCES, "no")))


def test_a_journal_is_known_by_one_of_its_first_64_lines(tmp_path: Path) -> None:
    path = tmp_path / "s.log"
    for damaged, known in ((0, True), (63, True), (64, False)):
        path.write_bytes(b"\x00damaged\n" * damaged + b'{"op_code":0}\n')
        assert _is_journal(path) is known


@pytest.mark.parametrize(
    ("had", "got", "refused"), [(0, 0, False), (2, 0, False), (2, 2, False), (2, 1, True), (0, 1, True), (1, 2, True)]
)
def test_a_study_keeps_the_sources_it_was_begun_with(had: int, got: int, refused: bool) -> None:
    """Without any it is opened with those it has; with others it is not."""
    stored = {"sources": [{}] * had} if had else {}
    given = [f"{k}.csv" for k in range(got)]
    opt = alebo.Optimizer(SPACE, GOAL)
    if refused:
        with pytest.raises(alebo.StudyError, match=f"here was begun with {had or 'none'}, and got {got}"):
            check_sources("here", stored, given, opt)
    else:
        check_sources("here", stored, given, opt)
        assert check_sources("here", stored, None, opt) is None
