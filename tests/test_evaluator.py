"""An external program as a function: what it is given, what is read back, and every way it can go wrong."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

import alebo
from alebo import EvaluationError, InputError
from alebo._processes import SUPERVISOR, remove_stale_folders, run_supervised, temporary_folder
from alebo.evaluator import CommandEvaluator, FunctionEvaluator, function

PYTHON = (sys.executable, "-I", "-S", "-c")


def command(code: str, *words: str, outcomes: tuple[str, ...] = ("loss",), **limits: float) -> CommandEvaluator:
    return CommandEvaluator((*PYTHON, textwrap.dedent(code), *words), outcomes, **limits)  # type: ignore[arg-type]


def test_values_reach_the_arguments_exactly() -> None:
    run = command("import sys; print(sys.argv[1:]); print(float(sys.argv[1]))", "{gain}", "--kind={kind}", "{number}")
    assert run({"gain": 0.1 + 0.2, "kind": "a b"}, 7) == {"loss": 0.1 + 0.2}


def test_params_file_and_outcomes_file() -> None:
    run = command(
        """
        import json, sys
        p = json.load(open(sys.argv[1]))
        print("some words on the way")
        json.dump({"loss": [p["x"] * 2, 0.5], "latency": 3, "extra": "ignored"}, open(sys.argv[2], "w"))
        """,
        "{params}",
        "{outcomes}",
        outcomes=("loss", "latency"),
    )
    assert run({"x": 1.5}) == {"loss": (3.0, 0.5), "latency": 3}


@pytest.mark.parametrize(
    ("line", "outcomes", "expected"),
    [
        ("0.25", ("loss",), {"loss": 0.25}),
        ("[0.25, 0.1]", ("loss",), {"loss": (0.25, 0.1)}),
        ('{"loss": 1, "latency": 2}', ("loss", "latency"), {"loss": 1, "latency": 2}),
        ("loss=1e-3 latency: 2", ("loss", "latency"), {"loss": 0.001, "latency": 2.0}),
    ],
)
def test_the_last_line_printed(line: str, outcomes: tuple[str, ...], expected: object) -> None:
    assert (
        command(f"print('epoch 1 loss=99'); print({line!r}); print()", "{x}", outcomes=outcomes)({"x": 1}) == expected
    )


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("pass", "printed nothing"),
        ("print('all went well')", "got 'all went well'"),
        ("print('nan')", "loss"),
        ("print('NaN')", "finite"),
        ("print(True)", "loss"),
        ("print('[1, 2, 3]')", "number or"),
        ("print('\"0.3\"')", "number or"),
        ("print('{\"lose\": 1}')", "missing"),
        ("import sys; print('bad mesh', file=sys.stderr); sys.exit(3)", "exit code 3; its last words: bad mesh"),
        ("import os; os.kill(os.getpid(), 9)", "SIGKILL"),
    ],
)
def test_what_goes_wrong_is_one_message(code: str, words: str) -> None:
    with pytest.raises(EvaluationError, match=words) as caught:
        command(code, "{x}")({"x": 1})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "words"), [("pass", "without writing"), ("import sys; open(sys.argv[1], 'w').write('{')", "must be JSON")]
)
def test_an_outcomes_file_that_is_not_there_or_not_json(code: str, words: str) -> None:
    with pytest.raises(EvaluationError, match=words):
        command(code, "{outcomes}", "{x}")({"x": 1})


def test_time_limit_ends_the_command_and_its_children(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    run = command(
        f"""
        import subprocess, sys, time
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        open({str(mark)!r}, "w").write(str(child.pid))
        time.sleep(60)
        """,
        "{x}",
        timeout=1.0,
    )
    start = time.monotonic()
    with pytest.raises(EvaluationError, match="within 1 s"):
        run({"x": 1})
    assert time.monotonic() - start < 5
    for _ in range(50):  # the child is reaped by init in its own time
        try:
            state = Path(f"/proc/{mark.read_text()}/stat").read_text().split()[2]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the command's child still runs")


@pytest.mark.skipif(sys.platform != "linux", reason="address space limits are a Linux matter")
def test_memory_limit() -> None:
    hungry = "x = bytearray(400 * 2**20); print(1.0)"
    assert command(hungry, "{x}", memory=2**30)({"x": 1}) == {"loss": 1.0}
    with pytest.raises(EvaluationError, match="memory limit 200 MB"):
        command(hungry, "{x}", memory=200 * 2**20)({"x": 1})


def test_a_program_beside_the_study(tmp_path: Path) -> None:
    script = tmp_path / "sim.sh"
    script.write_text("#!/bin/sh\necho 4.5\n")
    run = CommandEvaluator(("./sim.sh", "{x}"), ("loss",), str(tmp_path))
    with pytest.raises(InputError, match=r"executable.*chmod"):
        run.check(["x"])
    script.chmod(0o755)
    run.check(["x"])
    assert run({"x": 1}) == {"loss": 4.5}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("no-such-program {x}", "must exist"),
        ("echo", "must be given the parameters"),
        ("echo {outcomes}", "must be given the parameters"),
        ("echo {gian}", "Did you mean {gain}"),
        ("", "empty"),
    ],
)
def test_a_command_that_cannot_work_is_refused_before_the_first_trial(words: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CommandEvaluator(words, ("loss",)).check(["gain", "x"])  # type: ignore[arg-type]


def test_a_json_text_in_the_command_is_left_alone() -> None:
    run = CommandEvaluator(("echo", '{"loss": 2}', "{x}"), ("loss",))
    assert run.fields == ("x",)


def test_evaluators_travel_to_other_processes(tmp_path: Path) -> None:
    (tmp_path / "sim_for_pickle.py").write_text("def run(params):\n    return params['x'] + 1\n")
    evaluate = pickle.loads(pickle.dumps(FunctionEvaluator("sim_for_pickle:run", str(tmp_path))))
    assert evaluate({"x": 1}) == 2
    assert pickle.loads(pickle.dumps(command("print(1)", "{x}")))({"x": 1}) == {"loss": 1}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "module:function"),
        ("no_such_module:run", "importable"),
        ("json:dupms", "Did you mean 'dumps'"),
        ("json:__doc__", "callable"),
    ],
)
def test_a_function_that_is_not_there(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        function(name)


def test_function_found() -> None:
    assert function("json:dumps") is json.dumps
    assert function("os:path.join") is os.path.join


# -- the trial's number, its seed, and what a program leaves behind -------------------------------------------------------


def test_number_and_seed_reach_the_command_and_its_environment() -> None:
    code = "import os, sys; print([int(a) for a in sys.argv[1:3]] == [int(os.environ['ALEBO_TRIAL']), int(os.environ['ALEBO_SEED'])] and int(sys.argv[1]))"
    run = command(code, "{number}", "{seed}", "{x}").for_trial(12, 345)
    assert run({"x": 1}) == {"loss": 12}
    assert pickle.loads(pickle.dumps(run)) == run


def test_a_parameter_called_seed_comes_first_and_one_called_params_is_refused() -> None:
    run = command("import sys; print(float(sys.argv[1]))", "{seed}").for_trial(3, 99)
    run.check(["seed"])
    assert run({"seed": 0.5}) == {"loss": 0.5}
    with pytest.raises(InputError, match=r"\{params\}.*Rename"):
        command("pass", "{params}").check(["params"])


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(marks: Path, count: int) -> bool:
    """Whether the processes that wrote their numbers there have ended, after a moment at most."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        pids = [int(p.name) for p in marks.iterdir()]
        if len(pids) >= count and not any(map(alive, pids)):
            return True
        time.sleep(0.05)
    return False


# starts a child, a grandchild in a session of its own that holds our pipes and ignores TERM, and a daemon; each signs in
FAMILY = """
import os, signal, sys, time
marks = sys.argv[1]
def sign(): open(os.path.join(marks, str(os.getpid())), "w").close()
def child(daemon):
    if os.fork() == 0:
        if daemon:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if os.fork():
                os._exit(0)
        sign()
        time.sleep(300)
        os._exit(0)
child(False); child(True); sign()
while len(os.listdir(marks)) < 3: time.sleep(0.01)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a subreaper")
@pytest.mark.parametrize(("end", "words"), [("time.sleep(300)", "within 1 s"), ("print(1.0)", "")])
def test_nothing_that_a_command_started_outlives_it(tmp_path: Path, end: str, words: str) -> None:
    run = command(FAMILY + end, str(tmp_path), "{x}", timeout=1.0 if words else None)  # type: ignore[arg-type]
    start = time.monotonic()
    if words:
        with pytest.raises(EvaluationError, match=words):
            run({"x": 1})
    else:
        assert run({"x": 1}) == {"loss": 1.0}
    assert time.monotonic() - start < 30  # not the five minutes for which the daemon holds our pipes
    assert gone(tmp_path, 3)


STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
    time.sleep(300)
open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
time.sleep(300)
"""


def test_a_command_that_ignores_term_ends(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(EvaluationError, match=r"within 0\.6 s"):
        command(STUBBORN, str(tmp_path), "{x}", timeout=0.6)({"x": 1})
    assert time.monotonic() - start < 10
    assert gone(tmp_path, 2)


def test_a_flood_of_output_is_not_kept_and_the_last_line_is_read() -> None:
    flood = "import sys\nfor _ in range(200): sys.stderr.write('x' * 65536); sys.stdout.write('y' * 65536)\nprint()\n"
    assert command(flood + "print(2.5)", "{x}")({"x": 1}) == {"loss": 2.5}


def test_the_last_bytes_of_what_a_command_prints_are_kept(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.write('a' * 9_000_000 + 'the end'); sys.stderr.write('b' * 200_000 + 'too')"
    ended = run_supervised(
        [sys.executable, "-c", code], directory=".", extra={}, folder=tmp_path, memory=None, timeout=None
    )
    assert (len(ended.printed), len(ended.said), ended.badly) == (4 * 2**20, 64 * 2**10, "")
    assert ended.printed.endswith("aathe end")
    assert ended.said.endswith("bbtoo")


def test_terminal_escapes_of_a_program_stay_away_from_the_terminal() -> None:
    code = r"import sys; sys.stderr.write('\x1b]0;owned\x07\x1b[31mred\x1b[2J \x9b5m alert\x07\n'); sys.exit(1)"
    with pytest.raises(EvaluationError) as caught:
        command(code, "{x}")({"x": 1})
    assert "red" in str(caught.value)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in str(caught.value))


def test_folders_of_killed_processes_are_removed_and_those_of_living_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "import os, sys; from alebo._processes import temporary_folder\nwith temporary_folder() as f: os.kill(os.getpid(), 9)"
    source = str(Path(alebo.__file__).parents[1])
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": source}
    subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert len(list(tmp_path.iterdir())) == 1
    with temporary_folder() as mine:
        remove_stale_folders()
        assert list(tmp_path.iterdir()) == [mine]
    assert not list(tmp_path.iterdir())


def test_a_watcher_whose_worker_is_dead_already_ends() -> None:
    nobody = subprocess.Popen(["true"])
    nobody.wait()
    words = [sys.executable, "-I", "-S", SUPERVISOR, "watch", str(nobody.pid), "no-such-worker"]
    assert subprocess.run(words, timeout=30, check=False).returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        "9" * 5000,
        "[" * 100_000,
        "a" * 1_000_000,
        "\udcff{",
        '{"loss": 1' + "0" * 400 + "}",
        "[]",
        '{"loss": []}',
        '{"loss": {}}',
    ],
)
def test_unusable_output_is_an_evaluation_error(text: str, tmp_path: Path) -> None:
    """Digits, brackets and words without end are refused at once, printed as well as written."""
    evaluator = CommandEvaluator(("true",), ("loss",))
    path = tmp_path / "outcomes.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(EvaluationError):
        evaluator._from_line(text)
    with pytest.raises(EvaluationError):
        evaluator._from_file(path)


def test_an_unclosed_quote_in_a_command() -> None:
    with pytest.raises(InputError, match="Close the quote"):
        CommandEvaluator("echo 'a {params}", ("loss",))  # type: ignore[arg-type]
