"""The `alebo` command as a person types it: the first minutes, `alebo new`, and a study by questions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from alebo.cli.new import parameter_line
from alebo.studyfile import load
from tests.cli.conftest import new
from tests.conftest import require_module


def test_help_loads_nothing_heavy_and_is_quick() -> None:
    code = (
        "import sys, time; t = time.perf_counter()\n"
        "from alebo.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'optuna', 'numpy', 'scipy', 'matplotlib', 'plotly'} & set(sys.modules)\n"
        "print('HEAVY', sorted(heavy), time.process_time())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    last = done.stdout.splitlines()[-1]
    assert last.startswith("HEAVY []"), last
    assert float(last.split()[-1]) < 0.5  # CPU seconds, interpreter included: a busy machine does not count
    for command in (
        "demo",
        "new",
        "run",
        "ask",
        "tell",
        "forget",
        "enqueue",
        "export",
        "logs",
        "best",
        "status",
        "advise",
        "methods",
        "report",
        "bench",
    ):
        assert f"\n  {command} " in done.stdout


def test_version_and_unknown_command(alebo: Any) -> None:
    from alebo import __version__

    assert alebo("--version").out.strip() == __version__
    assert alebo("demoo").code == 2


def test_the_methods_and_one_in_full(alebo: Any) -> None:
    from alebo.methods import METHODS

    every = alebo("methods").out
    assert all(f"\n{name} " in every for name in METHODS)
    assert max(map(len, every.splitlines()[: len(METHODS) + 1])) <= 80  # fits a terminal
    one = alebo("methods", "turbo").out
    assert "Refuses: outcome constraints" in one
    assert "\n  regions = 1 " in one
    assert "Eriksson et al. 2019" in one
    (told,) = alebo("methods", "turbo", "--json").json
    assert told["settings"]["regions"]["default"] == 1
    assert told["supports"]["categories"] is False
    wrong = alebo("methods", "trubo")
    assert wrong.code == 2
    assert "Did you mean 'turbo'" in wrong.err


def test_completion_is_there() -> None:
    env = {**os.environ, "_ALEBO_COMPLETE": "complete_bash", "COMP_WORDS": "alebo re", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "from alebo.cli import main; main()"], env=env, capture_output=True, text=True
    )
    assert "report" in done.stdout


def test_demo(here: Path, alebo: Any) -> None:
    require_module("matplotlib", "plot")
    said = alebo("demo", "--budget", "9")
    assert said.code == 0
    assert "Best value" in said.out
    assert "alebo new" in said.out
    assert (here / "alebo-demo" / "trace.png").stat().st_size > 5000
    data = alebo("demo", "--budget", "3", "--json").json
    assert data["evaluations"] == 3
    assert data["best"] >= data["optimum"]
    assert len(data["params"]) == 100


def test_demo_without_matplotlib_draws_in_the_terminal(here: Path, alebo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [m for m in sys.modules if m.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = alebo("demo", "--budget", "4")
    assert said.code == 0
    assert "best so far" in said.out
    assert "alebo[plot]" in said.out


def test_demo_of_nothing(alebo: Any) -> None:
    said = alebo("demo", "brannin")
    assert said.code == 2
    assert "hexapod" in said.err


def test_advise(alebo: Any) -> None:
    said = alebo("advise", "--params", "100", "--budget", "200")
    assert "Recommended" in said.out
    data = alebo("advise", "--params", "100", "--budget", "200", "--active", "4", "--json").json
    assert data["recommendation"] >= 1
    assert alebo("advise", "--params", "0", "--budget", "200").code == 2


def test_bench_is_mounted(alebo: Any) -> None:
    said = alebo("bench", "--help")
    assert said.code == 0
    assert "run" in said.out


# -- alebo new ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "line"),
    [
        ("gain=0:1", "gain = { low = 0, high = 1 }"),
        ("lr=1e-5:1:log", "lr = { low = 1e-05, high = 1, log = true }"),
        ("n=1:12:int", 'n = { type = "int", low = 1, high = 12 }'),
        ("act=relu,tanh", 'act = { choices = ["relu", "tanh"] }'),
        ("k=2,4,8", "k = { choices = [2, 4, 8] }"),
        ("x[100]=-5:10", "x = { count = 100, low = -5, high = 10 }"),
        ("mesh=fine", 'mesh = { value = "fine" }'),
        ("t=20:80:step=5", "t = { low = 20, high = 80, step = 5 }"),
        ("d=1e-4:1:log:digits=2", "d = { low = 0.0001, high = 1, log = true, digits = 2 }"),
        ("a b=0:.5", '"a b" = { low = 0, high = 0.5 }'),
        ('k=re"lu,b\\c', 'k = { choices = ["re\\"lu", "b\\\\c"] }'),
        ('k=a"b', 'k = { value = "a\\"b" }'),
        ('a"b\\=0:1', '"a\\"b\\\\" = { low = 0, high = 1 }'),
        ("k=a,b\x7f", 'k = { choices = ["a", "b\\u007f"] }'),
    ],
)
def test_parameter_flags(flag: str, line: str, here: Path) -> None:
    assert parameter_line(flag) == line
    (here / "s.toml").write_text(f'[parameters]\nz=[0,1]\n{line}\n[goals]\nminimize="l"\n')
    load(here / "s.toml")


def test_new_from_flags_and_never_over_another(here: Path, alebo: Any) -> None:
    new(alebo, "--param", "lr=1e-5:1:log", "--at-most", "latency=10", method="alebo")
    study = load("study.toml")
    assert study.space.dimension == 21
    assert study.goals.outcomes == ("loss", "latency")
    again = alebo("new", "--param", "y=0:1")
    assert again.code == 1
    assert "--force" in again.err
    assert alebo("new", "other", "--param", "y=0:1", "--json").json["path"] == "other.toml"


@pytest.mark.parametrize("words", [["--param", "gain"], ["--param", "g=0:1:lgo"], ["--at-most", "latency"], []])
def test_new_with_bad_flags(here: Path, alebo: Any, words: list[str]) -> None:
    assert alebo("new", *words).code == 2
    assert not (here / "study.toml").exists()


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("heat=20:80:step=.", "'step=.'"),
        ("heat=20:80:step=1e", "'step=1e'"),
        ("heat=20:80:digits=1-1", "'digits=1-1'"),
        ("n=1:12:int:step=5", "a whole number has no step; write n=1:12:step=5"),
        ("n=1:12:digits=2:int", "a whole number has no digits; write n=1:12:digits=2"),
    ],
)
def test_new_refuses_a_step_that_cannot_be(here: Path, alebo: Any, flag: str, words: str) -> None:
    said = alebo("new", "--param", flag)
    assert said.code == 2
    assert words in said.err, said.err
    assert not (here / "study.toml").exists()


def test_new_by_questions(here: Path, monkeypatch: pytest.MonkeyPatch, alebo: Any) -> None:
    import typer

    program = f"{sys.executable} sim.py {{params}}"
    given = [
        './sim "{params}',
        "./sim {params",
        "./sim params}",
        "./sim",
        "./sim {parms}",
        "x[30]=0:1 k=4:1:int",
        "x[30]=0:1 k=1:4:int",
        "./sim {k} {parmas}",  # asked again: only now is it known what may stand in braces
        program,
        "",
        "loss,weight",
        "loss=0.3",
        "lo\x07ss",
        "gain",
        "many",
        "25",
        "-3",
        "60",
    ]
    answers = iter(given)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(typer, "prompt", lambda *a, **k: next(answers))
    monkeypatch.setattr(typer, "confirm", lambda *a, **k: False)
    said = alebo("new")
    assert said.code == 0, said.err
    study = load("study.toml")
    assert (study.space.dimension, study.budget, study.timeout) == (31, 25, 60)
    assert "maximize" in (here / "study.toml").read_text()
    for wrong in (
        "quotation",
        "'./sim {params' has a brace without its other half",
        "'./sim params}' has a brace",
        "must be given the parameters; './sim' has none",
        "Did you mean {params}?",
        "low < high",
        "name of what is measured",
        "one name, such as loss; got 'loss,weight'",
        "got 'loss=0.3'",
        "got 'lo\\x07ss'",
        "'many'",
        "'-3'",
    ):
        assert wrong in said.err, wrong  # each when it was given; the other answers stay
    assert next(answers, None) is None


def test_new_by_questions_and_by_hand(here: Path, monkeypatch: pytest.MonkeyPatch, alebo: Any) -> None:
    import typer

    answers = iter(["by hand", "x[30]=0:1", "yield", "40"])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(typer, "prompt", lambda *a, **k: next(answers))
    monkeypatch.setattr(typer, "confirm", lambda *a, **k: True)
    assert "alebo ask study.toml" in alebo("new").out
    assert load("study.toml").evaluator is None
