"""The password of a database address: in nothing that is ever printed, written or logged."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from alebo._urls import redact, without_password
from alebo.cli import main

from .postgres import PASSWORD, Server

TOML = """\
[study]
name = "{name}"
budget = 4
storage = "{url}"
[parameters]
x = {{ count = 3, low = 0.0, high = 1.0 }}
[goals]
minimize = "loss"
[method]
name = "sobol"
[evaluator]
command = ["{python}", "-I", "-S", "-c", "print(1.0)", "{{params}}"]
"""


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:pass@host/db",
        "postgresql+psycopg2://me:pa@ss@host:1/db",
        "postgresql://me:pa/ss@host:1/db",
        "postgresql://me:pass/@host/db?sslmode=require",
        "postgresql://me:pa%2Fss@host/db",
        "postgresql://me:pass word@host/db",
        "postgresql://host/db?user=me&password=pass",
        "postgresql://host/db?user=me&sslpassword=pass",
        "see postgres://me:pass@host and more",
        "could not reach postgresql://me:pa/ss@host/db: timeout, postgresql://you:pass@host",
        "password=pass host=host",
    ],
)
def test_redact(url: str) -> None:
    shown = redact(url)
    assert "pass" not in shown.replace("password", "")
    assert "pa/ss" not in shown
    assert "pa%2Fss" not in shown
    assert "host" in shown


def test_what_is_no_address_stays_as_it_is() -> None:
    for text in ("", "study.log", "loss=0.5", "http://host/page", "trial 3: a://b"):
        assert redact(text) == text


def test_a_library_that_repeats_the_password_is_silenced() -> None:
    url = "postgresql://me:pa%2Fss@host/db"
    assert without_password(url, "FATAL: pa/ss or pa%2Fss is wrong") == "FATAL: *** or *** is wrong"


def test_the_password_is_nowhere_in_what_is_printed_written_or_logged(
    postgres_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any, caplog: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    url, said = postgres_server.url, ""

    def alebo(*words: str) -> None:
        nonlocal said
        with suppress(SystemExit):
            main(list(words))
        found = capfd.readouterr()
        said += found.out + found.err

    (tmp_path / "study.toml").write_text(TOML.format(name="hidden", url=url, python=sys.executable))
    monkeypatch.setattr("alebo.runner._postgres.STARTING", 0.1)
    with caplog.at_level(logging.DEBUG):
        for where in ("study.toml", f"{url}#hidden"):
            alebo("ask", where)
            alebo("ask", where, "--format", "csv", "--output", "points.csv")
            alebo("tell", where, "0")
            alebo("tell", where, "0", "loss=1.0")
            alebo("tell", where, "0", "loss=2.0")
            alebo("tell", where, "99", "loss=2.0", "--json")
            alebo("run", where)
            for form in ((), ("--json",)):
                alebo("status", where, *form)
                alebo("best", where, *form)
            alebo("report", where, "--output", "report.html")
        for wrong in (
            url.replace(PASSWORD, "no/" + PASSWORD),
            url.rsplit(":", 1)[0] + ":1/db",
            url.replace("alebo", "x"),
        ):
            alebo("status", wrong)
            alebo("ask", wrong + "#other", "--json")
    assert "***" in said
    assert "Error" in said
    written = {p: p.read_text(errors="replace") for p in tmp_path.rglob("*") if p.is_file() and p.name != "study.toml"}
    assert any(p.suffix == ".html" for p in written)
    for text in (said, caplog.text, *written.values()):
        assert PASSWORD not in text
        assert PASSWORD.replace("/", "%2F") not in text
        assert json.dumps(PASSWORD)[1:-1] not in text


def test_the_password_may_stay_out_of_the_address(postgres_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    import alebo

    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    url = postgres_server.url.replace(":" + PASSWORD, "")
    study = alebo.Study.create(
        url, alebo.Space.from_bounds([(0, 1)] * 3), alebo.Minimize("loss"), method=alebo.methods.Sobol(), name="env"
    )
    study.tell(study.ask()[0].number, 1.0)
    assert len(alebo.Study.open(postgres_server.url, name="env").history.complete) == 1
