"""An external program as a function: what it is given, what is read back, and every way it can go wrong."""

from __future__ import annotations

import json
import os
import pickle
import sys
import textwrap
import time
from pathlib import Path

import pytest

from alebo import EvaluationError, InputError
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
def test_what_goes_wrong_is_one_sentence(code: str, words: str) -> None:
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
    ("words", "sentence"),
    [
        ("no-such-program {x}", "must exist"),
        ("echo", "must be given the parameters"),
        ("echo {outcomes}", "must be given the parameters"),
        ("echo {gian}", "Did you mean {gain}"),
        ("", "empty"),
    ],
)
def test_a_command_that_cannot_work_is_refused_before_the_first_trial(words: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
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
    ("name", "sentence"),
    [
        ("nothing", "module:function"),
        ("no_such_module:run", "importable"),
        ("json:dupms", "Did you mean 'dumps'"),
        ("json:__doc__", "callable"),
    ],
)
def test_a_function_that_is_not_there(name: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        function(name)


def test_function_found() -> None:
    assert function("json:dumps") is json.dumps
    assert function("os:path.join") is os.path.join
