"""study.toml: what it can say, and that a mistake comes back with its line and the nearest valid key."""

from __future__ import annotations

from pathlib import Path

import pytest

from alebo import (
    ALEBO,
    AtLeast,
    AtMost,
    Categorical,
    Cost,
    Fixed,
    Float,
    InputError,
    Int,
    Maximize,
    Minimize,
    StudyError,
)
from alebo.cli.new import template
from alebo.evaluator import CommandEvaluator, FunctionEvaluator
from alebo.studyfile import StudyFile, line_of, load

GOOD = """\
# a study
[study]
name = "wing"
budget = 80
seed = 3
workers = 2

[parameters]
gain = [0.0, 1.0]
rate = { low = 1e-5, high = 1.0, log = true }
layers = { type = "int", low = 1, high = 12 }
kind = ["relu", "tanh"]
mesh = "fine"
x = { count = 3, low = -1, high = 1 }

[parameters.wide]
low = 0
high = 5

[goals]
minimize = "loss"
at_most = { latency = 10 }
at_least = { lift = 0.5 }
cost = "seconds"

[[linear]]
coefficients = { gain = 1.0, x0 = 2.0 }
upper = 1.5

[method]
name = "alebo"
dim = 5

[evaluator]
command = "echo {params}"
timeout = 10
memory = "1.5 GB"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text)
    return path


def test_everything_a_file_can_say(tmp_path: Path) -> None:
    s = load(write(tmp_path, GOOD))
    assert isinstance(s, StudyFile)
    assert (s.name, s.budget, s.seed, s.workers, s.timeout, s.memory) == ("wing", 80, 3, 2, 10.0, 3 * 2**29)
    assert s.space.parameters == (
        Float("gain", 0, 1),
        Float("rate", 1e-5, 1, log=True),
        Int("layers", 1, 12),
        Categorical("kind", ["relu", "tanh"]),
        Fixed("mesh", "fine"),
        *(Float(f"x{i}", -1, 1) for i in range(3)),
        Float("wide", 0, 5),
    )
    assert s.space.constraints[0].upper == 1.5
    assert s.goals.goals == (Minimize("loss"), AtMost("latency", 10), AtLeast("lift", 0.5), Cost("seconds"))
    assert isinstance(s.method, ALEBO)
    assert s.method.dim == 5
    assert isinstance(s.evaluator, CommandEvaluator)
    assert s.evaluator.outcomes == ("loss", "latency", "lift", "seconds")
    assert s.storage == str(tmp_path / "wing.journal")


def test_short_file(tmp_path: Path) -> None:
    (tmp_path / "my_sim.py").write_text("def run(p):\n    return 1\n")
    s = load(write(tmp_path, '[parameters]\na=[0,1]\n[goals]\nmaximize=["u","v"]\n[evaluator]\npython="my_sim:run"\n'))
    assert s.goals.goals == (Maximize("u"), Maximize("v"))
    assert isinstance(s.evaluator, FunctionEvaluator)
    assert s.budget is None
    assert s.storage.endswith("study.journal")
    by_hand = load(
        write(tmp_path, '[parameters]\na=[0,1]\n[goals]\nminimize="u"\n[study]\nstorage="postgresql://h/d"\n')
    )
    assert by_hand.evaluator is None
    assert by_hand.storage == "postgresql://h/d"


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("budget = 80", "bugdet = 80", 4, "Did you mean 'budget'"),
        ("[goals]", "[gaols]", 20, "Did you mean 'goals'"),
        ("minimize", "minimise", 21, "Did you mean 'minimize'"),
        ("at_most =", "atmost =", 22, "Did you mean 'at_most'"),
        ("timeout", "time_out", 36, "Did you mean 'timeout'"),
        ("log = true", "logg = true", 10, "Did you mean 'log'"),
        ("high = 5", "hihg = 5", 18, "Did you mean 'high'"),
        ("dim = 5", "dmi = 5", 32, "Did you mean 'dim'"),
        ('name = "alebo"', 'name = "albeo"', 30, "Did you mean 'alebo'"),
        ('type = "int"', 'type = "itn"', 11, "'int'"),
        ("gain = [0.0, 1.0]", "gain = [1.0, 0.0]", 9, "low < high"),
        ("low = -1, high = 1", "low = 1, high = 1", 14, "low < high"),
        ("budget = 80", "budget = 0", 4, "1 or more"),
        ("budget = 80", 'budget = "many"', 4, "whole number"),
        ("count = 3", "count = 0", 14, "count"),
        ("timeout = 10", "timeout = -1", 36, "above 0"),
        ('"1.5 GB"', '"much"', 37, "4 GB"),
        ("{params}", "{parms}", 35, "Did you mean {params}"),
        ("echo {params}", "no-such-thing {params}", 35, "must exist"),
        ("latency = 10", 'latency = "low"', 22, "is a number"),
        ("x0 = 2.0", "y0 = 2.0", 26, "y0"),
        ("seed = 3", "seed 3", 5, "TOML"),
        ('minimize = "loss"', "minimize = 5", 21, "`minimize` names an outcome"),
        ('minimize = "loss"', 'minimize = ["loss", 5]', 21, "`minimize` names an outcome"),
        ('cost = "seconds"', "reference = 1.5", 24, "`reference` reads"),
        ('cost = "seconds"', "reference = { lost = 1.5 }", 24, "'lost'"),
        ('cost = "seconds"', "cost = []", 24, "`cost` is a text"),
        ('"1.5 GB"', '"1.2.3 GB"', 37, "4 GB"),
        ('"1.5 GB"', "1" + "0" * 400, 37, "4 GB"),
        ('"1.5 GB"', "true", 37, "4 GB"),
        ('"echo {params}"', '"echo \'{params}"', 35, "Close the quote"),
        ('"echo {params}"', '"echo \\u0000 {params}"', 35, "control characters"),
        ('"echo {params}"', "[1, 2]", 35, "list of words"),
        ('"wing"', '"w\\u0000"', 3, "control characters"),
        ('mesh = "fine"', 'mesh = "f\\u0000"', 13, "'mesh'"),
        ('mesh = "fine"', "mesh = 1979-05-27", 13, "'mesh'"),
        ('mesh = "fine"', "mesh = nan", 13, "'mesh'"),
        ('"relu", "tanh"', '"relu", []', 12, "'kind'"),
        ("seed = 3", "seed = " + "9" * 5000, 5, "4300 digits"),
        ("seed = 3", "seed = 0x" + "f" * 5000, 5, "`seed`"),
        ("seed = 3", "seed = " + "[" * 3000 + "]" * 3000, 5, "levels deep"),
        ("count = 3", "count = 1000000000000", 14, "count"),
        ("log = true", 'log = "yes"', 10, "`log` is true or false"),
        ("upper = 1.5", "upper = []", 28, "`upper` is a finite number"),
        ("[method]", "[[method]]", 30, "written [method]"),
        ("[[linear]]", "[linear]", 26, "[[linear]]"),
        ("dim = 5", "dim = []", 32, "dim"),
    ],
)
def test_a_mistake_names_its_line_and_what_was_meant(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    assert old in GOOD
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, GOOD.replace(old, new, 1)), program=True)
    message = str(caught.value)
    assert words in message
    assert f"line {line}" in message, message


@pytest.mark.parametrize("section", ["parameters", "goals"])
def test_a_missing_section(tmp_path: Path, section: str) -> None:
    text = '[parameters]\na=[0,1]\n[goals]\nminimize="u"\n'
    cut = "\n".join(part for part in text.split("\n") if not part.startswith(f"[{section}]"))
    with pytest.raises(InputError):
        load(write(tmp_path, cut))


def test_no_file_and_no_text(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="alebo new"):
        load(tmp_path / "nothing.toml")
    (tmp_path / "study.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match="UTF-8"):
        load(tmp_path / "study.toml")


def test_the_template_is_a_valid_study(tmp_path: Path) -> None:
    text = template(
        name="s",
        parameters=["x = { count = 20, low = 0, high = 1 }"],
        minimize=["a b"],
        maximize=["c"],
        at_most=[("d", 1.0)],
        at_least=[("e", 2.0)],
        command='echo "{params}"',
        python=None,
        budget=7,
        method=None,
        seed=1,
    )
    s = load(write(tmp_path, text))
    assert s.goals.outcomes == ("a b", "c", "d", "e")
    assert s.space.dimension == 20
    assert s.budget == 7


def test_line_of_finds_the_deepest_known_part() -> None:
    assert line_of(GOOD, ("goals", "cost")) == 24
    assert line_of(GOOD, ("goals", "nothing")) == 20
    assert line_of(GOOD, ("nothing",)) is None


def test_a_file_says_whether_it_names_its_method(tmp_path):
    text = '[parameters]\na = [0.0, 1.0]\nb = [0.0, 1.0]\n[goals]\nminimize = "loss"\n'
    for method, name, named in (
        ("", "adaptive", False),
        ("[method]\ndim = 2\n", "alebo", True),
        ('[method]\nname = "adaptive"\narms = ["sparse", "local"]\n', "adaptive", True),
    ):
        path = tmp_path / "study.toml"
        path.write_text(text + method)
        read = load(path)
        assert (read.method.name, read.names_method) == (name, named)


@pytest.mark.parametrize(
    ("cut", "line", "words"),
    [
        ("upper = 1.5\n", 26, "`upper`, which is missing"),
        ("coefficients = { gain = 1.0, x0 = 2.0 }\n", 26, "`coefficients`, which is missing"),
    ],
)
def test_a_linear_rule_names_both_its_sides(tmp_path: Path, cut: str, line: int, words: str) -> None:
    with pytest.raises(InputError, match="needs both") as caught:
        load(write(tmp_path, GOOD.replace(cut, "")))
    assert words in str(caught.value)
    assert f"line {line}" in str(caught.value)


def test_the_second_linear_rule_is_named_by_its_own_line(tmp_path: Path) -> None:
    text = GOOD.replace("upper = 1.5\n", "upper = 1.5\n\n[[linear]]\ncoefficients = { gain = 1.0 }\n")
    with pytest.raises(InputError, match=r"line 30: .*`upper`, which is missing"):
        load(write(tmp_path, text))


def test_a_reference_is_for_an_objective(tmp_path: Path) -> None:
    text = GOOD.replace('cost = "seconds"', "reference = { loss = 2.0, latency = 9.0 }")
    with pytest.raises(
        InputError, match=r"line 24: `reference` is for .*minimize.*'latency' is a constraint"
    ) as caught:
        load(write(tmp_path, text))
    assert "at_most" in str(caught.value)
    assert load(write(tmp_path, text.replace(", latency = 9.0", ""))).goals.objectives[0].reference == 2.0


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'name = "alebo"\ndim = 5',
            'nam = "turbo"',
            "has no key 'nam'. Did you mean 'name'? Without `name` it is adaptive",
        ),
        ('name = "alebo"\ndim = 5', "regions = 2", "has no key 'regions'. Without `name` it is adaptive"),
        ("high = 1.0, log", "high = 1.0, stpe = 0.1, log", "Did you mean 'step'"),
        ("log = true", "lgo = true", "Did you mean 'log'"),
        ("budget = 80", "wokrers = 80", "Did you mean 'workers'"),
        ('type = "int", low = 1', 'type = "int", step = 2, low = 1', "'layers' is an int, which has no `step`"),
        ("x = { count = 3, low = -1, high = 1 }", "x = { low = -1 }", "'x' is a float, which needs `high`"),
    ],
)
def test_a_misspelt_or_missing_key_names_what_was_meant(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in GOOD
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, GOOD.replace(old, new, 1)))
    assert words in str(caught.value), str(caught.value)
    assert "line" in str(caught.value)
    assert "__init__" not in str(caught.value)
