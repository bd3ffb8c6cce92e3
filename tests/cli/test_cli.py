"""The `alebo` command as a person types it: the first minutes, a study by hand, and everything that is mistyped."""

from __future__ import annotations

import csv
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from alebo.cli.new import parameter_line
from alebo.studyfile import load
from tests.cli.conftest import SIM
from tests.conftest import require_module

# a test run in the background of a shell would have its children ignore Ctrl-C
STOPPABLE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from alebo.cli import main; main(['run', '--log'])"
)


def new(alebo: Any, *more: str, budget: int = 6, method: str = "sobol", evaluator: Sequence[str] = ()) -> None:
    words = evaluator or ["--command", f"{sys.executable} -S sim.py {{params}}"]
    said = alebo(
        "new", "--param", "x[20]=0:1", "--minimize", "loss", "--budget", str(budget), "--method", method, *words, *more
    )
    assert said.code == 0, said.err


# -- the first minutes -------------------------------------------------------------------------------------------------


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


def test_new_by_questions(here: Path, monkeypatch: pytest.MonkeyPatch, alebo: Any) -> None:
    import typer

    program = f"{sys.executable} sim.py {{params}}"
    given = [
        './sim "{params}',
        program,
        "x[30]=0:1 k=4:1:int",
        "x[30]=0:1 k=1:4:int",
        "",
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
    for wrong in ("quotation", "low < high", "name of what is measured", "'many'", "'-3'"):
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


# -- run, and the study by hand ----------------------------------------------------------------------------------------


def test_two_commands_optimize_an_external_program(here: Path, alebo: Any) -> None:
    require_module("optuna", "study")
    new(alebo)
    said = alebo("run", "study.toml")
    assert said.code == 0, said.err
    assert "Best: trial" in said.out
    assert said.err == ""  # quiet: this is no terminal
    status = alebo("status", "--json").json
    assert (status["done"], status["failed"]) == (6, 0)
    best = alebo("best", "--json").json
    assert best["outcomes"]["loss"] == status["best"]
    expected = sum((v - 0.3) ** 2 for v in list(best["params"].values())[:2])
    assert best["outcomes"]["loss"] == pytest.approx(expected)
    assert "x19" in alebo("best").out
    more = alebo("run", "--budget", "8", "--json").json
    assert (more["evaluations"], more["made_now"]) == (8, 2)
    assert alebo("status", "--json").json["budget"] == 8  # looking does not change it
    text = alebo("status").out
    assert "8 complete, 0 pending, 0 failed" in text


def test_by_hand_over_a_week(here: Path, alebo: Any) -> None:
    require_module("optuna", "study")
    (here / "study.toml").write_text(
        '[parameters]\nx={count=40,low=0,high=1}\nact=["relu","tanh"]\n'
        '[goals]\nminimize="loss"\nat_most={latency=10}\n[method]\nname="sobol"\n'
    )
    first = alebo("ask", "study.toml", "--count", "3", "--output", "points.csv")
    assert first.code == 0, first.err
    assert "alebo tell study.toml --csv points.csv" in first.out
    rows = list(csv.DictReader((here / "points.csv").read_text().splitlines()))
    assert [r["trial"] for r in rows] == ["0", "1", "2"]
    assert alebo("ask", "--pending", "--json").json[1]["number"] == 1
    rows[0] |= {"loss": "0.5", "latency": "3"}
    rows[1] |= {"loss": "failed", "latency": ""}
    with (here / "points.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], "loss_sem"])
        writer.writeheader()
        writer.writerows([rows[0] | {"loss_sem": "0.01"}, rows[1], rows[2]])
    told = alebo("tell", "study.toml", "--csv", "points.csv")
    assert "1 complete, 1 pending, 1 failed" in told.out, told.err
    again = alebo("tell", "study.toml", "--csv", "points.csv")  # the same file a second time does no harm
    assert "2 rows were recorded before" in again.out
    one = alebo("tell", "study.toml", "2", "loss=0.3+-0.02", "latency=9", "--json").json
    assert one["told"][0]["outcomes"]["loss"] == [0.3, 0.02]
    assert alebo("best", "--json").json["number"] == 2
    table = alebo("ask", "study.toml").out
    assert "trial 3" in table
    assert "11 more parameters" in table
    assert alebo("ask", "study.toml", "--format", "csv").out.startswith("trial,x0,")
    assert alebo("tell", "study.toml", "3", "--failed", "--reason", "spilled").code == 0
    assert alebo("status", "--json").json["failures"][-1]["reason"] == "spilled"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["0", "los=0.3"], "Did you mean 'loss'"),
        (["0", "loss=abc"], "is a number"),
        (["0", "0.3"], "name=number"),
        (["0", "loss=0.3"], "latency"),
        (["0"], "outcome is needed"),
        (["7", "loss=1", "latency=1"], "trial that was asked"),
        ([], "one of the two"),
        (["--csv", "nothing.csv"], "no nothing.csv"),
    ],
)
def test_telling_wrongly_changes_nothing(here: Path, alebo: Any, words: list[str], message: str) -> None:
    require_module("optuna", "study")
    (here / "study.toml").write_text(
        '[parameters]\nx={count=5,low=0,high=1}\n[goals]\nminimize="loss"\nat_most={latency=10}\n[method]\nname="sobol"\n'
    )
    assert alebo("ask").code == 0
    said = alebo("tell", "study.toml", *words)
    assert said.code != 0
    assert message in said.err
    assert alebo("status", "--json").json["pending"] == 1


def test_one_bad_line_of_a_csv_and_nothing_of_it_is_written(here: Path, alebo: Any) -> None:
    require_module("optuna", "study")
    (here / "study.toml").write_text(
        '[parameters]\nx={count=2,low=0,high=1}\n[goals]\nminimize="loss"\n[method]\nname="sobol"\n'
    )
    assert alebo("ask", "--count", "2").code == 0
    (here / "p.csv").write_text("trial,loss\n0,1.0\n1,much\n")
    said = alebo("tell", "study.toml", "--csv", "p.csv")
    assert "p.csv, line 3" in said.err
    assert alebo("status", "--json").json["pending"] == 2
    (here / "old.csv").write_text("x0,x1,loss\n0.1,0.2,3.5\n0.4,2.0,1.5\n")  # points from elsewhere, one out of bounds
    assert "line 3" in alebo("tell", "study.toml", "--csv", "old.csv").err
    (here / "old.csv").write_text("x0,x1,loss\n0.1,0.2,3.5\n")
    assert "1 complete" in alebo("tell", "study.toml", "--csv", "old.csv").out


def test_report_command(here: Path, alebo: Any) -> None:
    require_module("optuna", "study")
    require_module("plotly", "plot")
    new(alebo, budget=4)
    assert alebo("report").code == 1  # nothing yet
    assert alebo("run").code == 0
    said = alebo("report", "--json").json
    assert Path(said["path"]).stat().st_size == said["bytes"] > 1e6
    assert said["verdicts"]
    assert "Wrote" in alebo("report", "study.journal", "--output", "r.html").out
    assert alebo("status", "study.journal#study").code == 0
    assert "'study'" in alebo("status", "study.journal#stduy").err


# -- logs ----------------------------------------------------------------------------------------------------------------


def test_the_output_of_every_evaluation_is_kept(here: Path, alebo: Any) -> None:
    new(alebo, budget=3)
    (here / "sim.py").write_text(
        'import os, sys\nprint("warning: mesh", os.environ["ALEBO_TRIAL"], file=sys.stderr)\n' + SIM
    )
    assert alebo("logs", "study.toml").code == 1
    assert alebo("run").code == 0
    text = alebo("logs", "study.toml", "1").out
    assert "solving" in text
    assert "warning: mesh 1" in text
    assert "ended well" in text
    assert "warning: mesh 2" in alebo("logs", "study.toml").out  # the last one
    assert "trial 7 has none" in alebo("logs", "study.toml", "7").err
    (here / "sim.py").write_text("import time\nprint('first', flush=True)\ntime.sleep(60)\n")
    slow = (here / "study.toml").read_text().replace("# timeout = 3600 ", "timeout = 0.6 ")
    (here / "study.toml").write_text(slow)
    assert alebo("run", "--budget", "4").code == 0
    assert "first" in alebo("logs", "study.toml", "3").out
    assert "time limit" in alebo("logs", "study.toml", "3").out


def test_what_a_python_function_prints_is_kept_and_not_on_the_screen(here: Path, alebo: Any) -> None:
    (here / "mysim.py").write_text(
        "def f(p):\n    print('hello', p['x0'])\n    return 1 / 0 if p['x1'] > 0.5 else 1.0\n"
    )
    new(alebo, budget=3, evaluator=["--python", "mysim:f"])
    said = alebo("run", "--max-failed", "1")
    assert said.code == 0, said.err
    assert "hello" not in said.out
    logs = [alebo("logs", "study.toml", str(i)).out for i in range(3)]
    assert all("hello" in text for text in logs)
    assert any("ZeroDivisionError" in text for text in logs)


def test_logs_have_a_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from alebo import _logs

    monkeypatch.setattr(_logs, "EACH", 1000)
    monkeypatch.setattr(_logs, "ALL", 3500)
    kept = _logs.Logs(str(tmp_path / "x.logs"))
    for i in range(6):
        kept.write(i, "a" + "b" * 5000 + "z")
        os.utime(kept.path(i), (i, i))
    text = kept.read(5)
    assert text is not None
    assert text.startswith("a")
    assert text.endswith("z")
    assert "4002 characters left out" in text
    assert kept.numbers() == [3, 4, 5]
    _logs.Logs("/proc/nowhere").write(0, "no folder can be made here, and nothing fails")


def test_max_failed_is_set_where_the_message_says(here: Path, alebo: Any) -> None:
    new(alebo, budget=12)
    (here / "sim.py").write_text("import sys; sys.exit(4)")
    said = alebo("run")
    assert said.code == 1
    assert "raise max_failed" in said.err
    text = (here / "study.toml").read_text()
    (here / "study.toml").write_text(text.replace("# max_failed = 0.5 ", "max_failed = 1.0 "))
    assert alebo("run", "--budget", "24").code == 0
    (here / "study.toml").write_text(text.replace("# max_failed = 0.5 ", "max_failed = 7 "))
    wrong = alebo("run", "--budget", "24")
    assert "`0 < max_failed <= 1`" in wrong.err
    assert "line" in wrong.err
    (here / "study.toml").write_text(text)
    assert alebo("run", "--budget", "36", "--max-failed", "1").code == 0


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_errors_are_one_message_or_one_json_document(here: Path, alebo: Any) -> None:
    said = alebo("run", "nothing.toml")
    assert said.code == 1
    assert said.err.count("\n") == 1
    assert "alebo new" in said.err
    assert "Traceback" not in said.err
    assert "nothing.toml" in alebo("run", "nothing.toml", "--json").json["error"]
    assert alebo("status", "nothing.journal").code == 1


def test_a_typo_in_the_file_names_key_line_and_what_was_meant(here: Path, alebo: Any) -> None:
    new(alebo)
    text = (here / "study.toml").read_text().replace("budget", "bugdet")
    (here / "study.toml").write_text(text)
    said = alebo("run")
    assert said.code == 2
    assert "line 4" in said.err
    assert "'budget'" in said.err


def test_a_run_without_an_evaluator(here: Path, alebo: Any) -> None:
    (here / "study.toml").write_text(
        '[parameters]\nx={count=5,low=0,high=1}\n[goals]\nminimize="loss"\n[study]\nbudget=3\n'
    )
    said = alebo("run")
    assert said.code == 2
    assert "alebo ask" in said.err


@pytest.mark.parametrize(
    ("code", "reason"),
    [("pass", "printed nothing"), ("print('fine')", "got 'fine'"), ("import sys; sys.exit(4)", "exit code 4")],
    ids=["nothing", "nonsense", "exit code"],
)
def test_an_evaluator_that_is_broken_costs_trials_and_not_the_study(
    here: Path, alebo: Any, code: str, reason: str
) -> None:
    require_module("optuna", "study")
    new(alebo, budget=3)
    (here / "sim.py").write_text(code)
    said = alebo("run")
    assert said.code == 0
    assert "needs one completed trial" in said.out
    failures = alebo("status", "--json").json["failures"]
    assert len(failures) == 3
    assert all(reason in f["reason"] for f in failures)
    (here / "sim.py").write_text(SIM)  # mended: the study goes on
    more = alebo("run", "--budget", "5", "--json").json
    assert (more["made_now"], more["failed"]) == (2, 3)


def test_events_of_a_run_are_printed_on_request(here: Path, alebo: Any) -> None:
    require_module("optuna", "study")
    new(alebo, budget=2)
    said = alebo("run", "--log")
    assert "best loss is now" in said.err


def test_interrupted_and_run_again(here: Path, alebo: Any) -> None:
    require_module("optuna", "study")
    new(alebo, budget=5)
    (here / "sim.py").write_text("import time\ntime.sleep(0.8)\n" + SIM)
    log = here / "err.txt"
    with log.open("w") as err:
        process = subprocess.Popen([sys.executable, "-c", STOPPABLE], stderr=err, cwd=here)
        for _ in range(600):
            if "best loss" in log.read_text() or process.poll() is not None:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert "Stopped" in log.read_text()
    done = alebo("status", "--json").json["done"]
    assert 1 <= done < 5
    again = alebo("run", "--json").json
    assert again["evaluations"] == 5
    assert again["made_now"] == 5 - done


def test_the_entry_point_is_executable() -> None:
    script = Path(sys.executable).with_name("alebo")
    if not script.exists():
        pytest.skip("alebo is not installed as a command here")
    assert script.stat().st_mode & stat.S_IXUSR
