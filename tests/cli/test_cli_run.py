"""`alebo run` and a study by hand, what evaluations print, and everything that goes wrong."""

from __future__ import annotations

import csv
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import SIM, new
from tests.conftest import require_module

# a test run in the background of a shell would have its children ignore Ctrl-C
STOPPABLE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from alebo.cli import main; main(['run', '--log'])"
)


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


def test_a_slow_evaluation_of_a_run_with_a_timeout_is_told_when_it_ends(here: Path, alebo: Any) -> None:
    new(alebo, budget=4)
    slow = "import os, time\nif os.environ['ALEBO_TRIAL'] == '3': time.sleep(60)\n"
    (here / "sim.py").write_text(slow + SIM)
    text = (here / "study.toml").read_text()
    (here / "study.toml").write_text(text.replace("# timeout = 3600 ", "timeout = 4 "))
    said = alebo("run", "--log")
    assert said.code == 0, said.err
    assert "trial 3 has run for" in said.err
    assert "its `timeout` ends it after 0:04" in said.err
    assert "would end it" not in said.err


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
    (here / "sim.py").write_text(SIM)
    again = alebo("run", "--json").json
    assert again["evaluations"] == 5
    assert again["made_now"] == 5 - done


def test_the_entry_point_is_executable() -> None:
    script = Path(sys.executable).with_name("alebo")
    if not script.exists():
        pytest.skip("alebo is not installed as a command here")
    assert script.stat().st_mode & stat.S_IXUSR
