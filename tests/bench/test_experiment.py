"""Labels, one run, sweeps: skipped if present, failures kept, wrong input refused with a message."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import Result
from typer.testing import CliRunner

import alebo
from alebo.bench import Label, Problem, problem, replication
from alebo.bench import experiment as ex
from alebo.bench._clash import clash
from alebo.bench.ablation import Apart, InTurn
from alebo.bench.cli import app
from alebo.bench.labels import describe, labels, split
from alebo.bench.results import Run
from alebo.methods import Suggestion
from alebo.methods._full_space import FullSpaceArm
from alebo.methods._view import View


def test_a_method_is_written_as_name_settings_and_label() -> None:
    assert [x.label for x in labels("sobol,small=alebo(dim=4),alebo(dim=6)")] == ["sobol", "small", "alebo-dim6"]
    made = Label.parse("mine=sobol(centre=True)").make(problem("branin-100"))
    assert isinstance(made, alebo.methods.Sobol)
    assert made.centre is True
    assert split("a,b(c=1,d=(2,3)),e") == ["a", "b(c=1,d=(2,3))", "e"]
    fixed = Label.parse("alebo-fixed").make(problem("hartmann6-100"))
    assert fixed.dim == 12  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sobl", "Did you mean 'sobol'"),
        ("alebo-papr", "Did you mean 'alebo-paper'"),
        ("sobol(centre)", "setting=value"),
        ("a/b=sobol", "names a file"),
        ("sobol,sobol", "different labels"),
        ("", "one method or more"),
        ("sobol(", "is written"),
        ("nomodule:Thing", "cannot be imported"),
    ],
)
def test_wrong_methods_are_refused(text: str, words: str) -> None:
    with pytest.raises(alebo.InputError, match=words.replace("(", r"\(")):
        labels(text)


def test_settings_are_checked_when_built() -> None:
    with pytest.raises(alebo.InputError, match="has no setting"):
        Label.parse("sobol(center=True)").make(problem("branin-100"))
    plain = Problem("plain", alebo.Space.from_bounds([(0, 1)] * 5), lambda x: float(x.sum()))
    with pytest.raises(alebo.InputError, match="states none"):
        Label.parse("alebo-fixed").make(plain)


def test_seeds() -> None:
    assert ex.seeds("0-3,7") == [0, 1, 2, 3, 7]
    for wrong in ("a", "3-1", "1-", "-1", "", "²", "0-²"):
        with pytest.raises(alebo.InputError, match="Seeds are written"):
            ex.seeds(wrong)
    with pytest.raises(alebo.InputError, match="Each seed once"):
        ex.seeds("0-4,3")


def test_a_run_is_the_same_each_time_and_equals_minimize() -> None:
    p = problem("branin-100")
    one, two = (replication(p, "sobol", 3, budget=8) for _ in range(2))
    assert one["state"] == "complete"
    assert one["outcomes"] == two["outcomes"]
    twin = alebo.minimize(p.evaluate, p.space, 8, 3, method=alebo.methods.Sobol())
    assert Run(one).trace == pytest.approx(twin.trace, rel=1e-9)
    assert Run(one).final == pytest.approx(twin.fun, rel=1e-9)
    assert len(one["seconds"]["model"]) == 1  # a number for ten evaluations
    assert Run(one).model_seconds == pytest.approx(one["seconds"]["model"][0] / 8)
    assert one["environment"]["kernels"].startswith(f"torch {torch.backends.cpu.get_cpu_capability()}, BLAS ")
    assert one["environment"]["versions"]["alebo"] == alebo.__version__
    assert len(json.dumps(one)) < 3000


def test_constraints_noise_and_objectives_are_recorded() -> None:
    gramacy = Run(replication(problem("gramacy-100"), "sobol", 0, budget=20))
    values = np.array(gramacy.record["outcomes"]["sum"])
    feasible = np.array(gramacy.record["feasible"])
    assert 0 < feasible.sum() < 20
    assert gramacy.final == values[feasible].min()
    noisy = Run(replication(problem("hartmann6-100-noisy"), "sobol", 0, budget=20))
    at = int(np.argmin(noisy.values))
    assert noisy.final == noisy.record["truth"]["value"][at] == noisy.trace[-1]
    assert noisy.final != noisy.values[at]
    several = Run(replication(problem("branin-currin-100"), "sobol", 1, budget=40))
    assert np.all(np.diff(several.trace) >= 0)
    assert several.final == several.trace[-1] > 0


def test_a_crashing_evaluation_costs_one_and_a_crashing_method_is_a_recorded_failure() -> None:
    def touchy(x: np.ndarray) -> float:
        if x[0] > 0.5:
            raise RuntimeError("overheated")
        return float(x.sum())

    p = Problem("touchy", alebo.Space.from_bounds([(0, 1)] * 3), touchy, budget=16)
    record = replication(p, "sobol", 0)
    assert record["state"] == "complete"
    missing = [v is None for v in record["outcomes"]["value"]]
    assert 0 < sum(missing) < 16
    assert not np.isnan(Run(record).final)
    failed = replication(problem("gramacy-100"), Label("x", "x", "sobol", {"centre": True, "speed": 1}), 0)
    assert failed["state"] == "failed"
    assert "speed" in failed["error"]


def stored(path: Path) -> dict[int, dict[str, Any]]:
    """The lines of a file of runs, by seed."""
    return {r["seed"]: r for r in map(json.loads, path.read_text().splitlines())}


def test_a_sweep_appends_a_line_a_run_and_continues(tmp_path: Path) -> None:
    call = ["run", "--problem", "branin-100,gramacy-100", "--method", "sobol", "--seeds", "0-1", "--budget", "4"]
    first = CliRunner().invoke(app, [*call, "--out", str(tmp_path), "--jobs", "2"])
    assert first.exit_code == 0, first.output
    assert "4 runs made, 0 failed, 0 were there" in first.output
    files = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert files == ["branin-100/sobol.jsonl", "gramacy-100/sobol.jsonl"]
    whole = (tmp_path / files[0]).read_bytes()
    kept = stored(tmp_path / files[1])[1]
    (tmp_path / files[1]).write_text(json.dumps(kept) + "\n")
    again = CliRunner().invoke(app, [*call, "--out", str(tmp_path)])
    assert "1 runs made, 0 failed, 3 were there" in again.output
    assert (tmp_path / files[0]).read_bytes() == whole
    assert stored(tmp_path / files[1])[1] == kept
    assert stored(tmp_path / files[1])[0]["environment"]["threads"] == "1"


def test_a_dying_worker_is_a_recorded_failure_and_the_sweep_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deadly.py").write_text(
        "import os\nfrom alebo import Space\nfrom alebo.bench import Problem\n"
        "def make():\n"
        "    def f(x):\n"
        "        if os.path.exists('armed'):\n"
        "            os.remove('armed'); os._exit(7)\n"
        "        return float(x.sum())\n"
        "    return Problem('deadly', Space.from_bounds([(0, 1)] * 3), f, budget=3)\n"
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "armed").touch()
    call = ["run", "--problem", "deadly:make", "--method", "sobol", "--seeds", "0-1", "--out", "out"]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 1
    assert "1 runs made, 1 failed, 0 were there" in result.output
    lines = stored(tmp_path / "out/deadly/sobol.jsonl")
    assert [lines[s]["state"] for s in (0, 1)] == ["failed", "complete"]
    assert "died with code 7" in lines[0]["error"]
    assert "0 runs made, 0 failed, 2 were there" in CliRunner().invoke(app, call).output
    retried = CliRunner().invoke(app, [*call, "--retry-failed"])
    assert "1 runs made, 0 failed, 1 were there" in retried.output


def test_runs_that_failed_before_are_named_with_the_way_to_make_them_again(tmp_path: Path) -> None:
    call = [
        "run",
        "--problem",
        "branin-100",
        "--method",
        "sobol",
        "--seeds",
        "0-1",
        "--budget",
        "2",
        "--out",
        str(tmp_path),
    ]
    (failed, _) = ex.plan(["branin-100"], labels("sobol"), [0, 1], tmp_path, budget=2)
    ex.store.append(failed.path, ex.broken(failed, "it needs a part"))
    first = CliRunner().invoke(app, call)
    assert "1 runs made, 0 failed, 1 were there already" in first.output
    assert "1 of these failed then: --retry-failed makes them again." in first.output
    assert "1 runs made" in CliRunner().invoke(app, [*call, "--retry-failed"]).output
    assert "failed then" not in CliRunner().invoke(app, call).output


def sweep(out: Path, *more: str, method: str = "sobol", seeds: str = "0-1", problem: str = "branin-100") -> Result:
    call = ["run", "--problem", problem, "--method", method, "--seeds", seeds, "--out", str(out), *more]
    return CliRunner().invoke(app, call)


def test_runs_of_a_smaller_budget_are_not_taken_for_those_of_a_larger_one(tmp_path: Path) -> None:
    sweep(tmp_path, "--budget", "3")
    before = (tmp_path / "branin-100" / "sobol.jsonl").read_bytes()
    refused = sweep(tmp_path, "--budget", "6", seeds="0-3")
    assert isinstance(refused.exception, alebo.InputError)
    assert "branin-100/sobol seed 0 and 1 more: 3 evaluations are stored, 6 are wanted" in str(refused.exception)
    assert "mine=name(...)" in str(refused.exception)
    assert (tmp_path / "branin-100" / "sobol.jsonl").read_bytes() == before
    assert "2 runs made" in sweep(tmp_path, "--budget", "6", method="six=sobol").output


def test_longer_runs_count_and_the_summary_says_so(tmp_path: Path) -> None:
    sweep(tmp_path, "--budget", "4")
    output = sweep(tmp_path, "--budget", "2").output
    assert "0 runs made, 0 failed, 2 were there already" in output
    assert "2 of these have more evaluations than asked for (4)" in output
    assert "more evaluations" not in sweep(tmp_path, "--budget", "4").output


def test_runs_of_other_settings_under_one_label_are_refused(tmp_path: Path) -> None:
    sweep(tmp_path, "--budget", "2")
    for method, words in (
        ("sobol=alebo(dim=2)", "name 'sobol' is stored, 'alebo' is wanted"),
        ("sobol=sobol(centre=True)", "centre False is stored, True is wanted"),
    ):
        refused = sweep(tmp_path, "--budget", "2", method=method)
        assert isinstance(refused.exception, alebo.InputError)
        assert words in str(refused.exception)


def test_runs_of_older_versions_are_compared_in_the_settings_that_both_have() -> None:
    wanted = json.dumps({"name": "alebo", "dim": None, "metric": {"type": "sampled", "samples": 12}, "new": 1})
    old = {"name": "alebo", "dim": None, "metric": "sampled", "samples": 12}
    run = {"state": "complete", "budget": 10, "method": old}
    assert clash(run, 10, wanted) is None
    assert clash(run, 10, "") is None
    assert clash(run | {"method": old | {"metric": {"type": "sampled"}}}, 10, wanted) is None
    assert clash(run | {"method": old | {"metric": "laplace"}}, 10, wanted) == (
        "metric 'laplace' is stored, 'sampled' is wanted"
    )
    assert clash(run | {"method": old | {"dim": 4}}, 10, wanted) == "dim 4 is stored, None is wanted"
    assert clash(run | {"state": "failed", "budget": 2}, 10, wanted) is None  # shown as failed
    one, two = ({"name": "mine", "f": f"<function f at 0x7f{k}>"} for k in (1, 2))
    assert clash(run | {"method": one}, 10, json.dumps(two)) is None


def test_the_stored_runs_of_the_repository_are_those_of_their_commands() -> None:
    """A sweep of the commands in docs/reproduction.md goes on from them."""
    root = Path(__file__).parents[2] / "results"
    calls = {
        "branin-100": "alebo,alebo-fixed,alebo-paper,rembo-d,hesbo-2d,sobol,bo",
        "hartmann6-1000": "bo,baxus,saas-map",
    }
    for name, methods in calls.items():
        for label in labels(methods):
            settings = json.dumps(describe(label.make(problem(name))))
            runs, _ = ex.store.read(root / name / f"{label.label}.jsonl")
            assert runs
            assert {clash(run, run["budget"], settings) for run in runs} == {None}


def test_a_sweep_that_cannot_store_a_run_stops_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = os.fsync, []

    def full_at_the_second(number: int) -> None:
        calls.append(number)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(number)

    monkeypatch.setattr(os, "fsync", full_at_the_second)
    stopped = sweep(tmp_path, "--budget", "2", "--jobs", "2", seeds="0-9")
    assert isinstance(stopped.exception, alebo.StudyError)
    assert "sobol.jsonl cannot be written: No space left on device" in str(stopped.exception)
    assert 2 <= len(calls) <= 3  # the other process may have been about to store its own


def test_a_sweep_that_cannot_start_a_process_stops_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*args: object, **more: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(ex.subprocess, "Popen", none_left)
    with pytest.raises(alebo.StudyError, match=r"none can be started: .*temporarily unavailable"):
        ex.run(ex.plan(["branin-100"], labels("sobol"), [0, 1], tmp_path, budget=2))
    assert not list(tmp_path.rglob("*.jsonl"))


def test_what_stands_in_the_place_of_a_folder_is_refused_before_anything_runs(tmp_path: Path) -> None:
    place = tmp_path / "branin-100"
    place.symlink_to("/nonexistent/x")
    for _ in range(2):
        refused = sweep(tmp_path, "--budget", "2", problem="gramacy-100,branin-100")
        assert isinstance(refused.exception, alebo.InputError)
        assert f"Runs are stored in a folder {place}" in str(refused.exception)
        assert not (tmp_path / "gramacy-100").exists()
        place.unlink()
        place.write_text("")
    place.unlink()
    (place / "sobol.jsonl").mkdir(parents=True)
    refused = sweep(tmp_path, "--budget", "2")
    assert isinstance(refused.exception, alebo.InputError)
    assert "Runs are stored in a file" in str(refused.exception)


def test_no_problem_is_refused_as_no_method_is(tmp_path: Path) -> None:
    for empty in ("", " , "):
        refused = sweep(tmp_path, problem=empty)
        assert isinstance(refused.exception, alebo.InputError)
        assert "Name one problem or more" in str(refused.exception)


def test_a_problem_of_ones_own_that_breaks_or_leads_elsewhere_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "strange.py").write_text(
        "from alebo import Space\nfrom alebo.bench import Problem\n"
        "def up():\n    return Problem('../up', Space.from_bounds([(0, 1)] * 3), lambda x: float(x.sum()), budget=3)\n"
        "def broken():\n    return 1 / 0\n"
        "class Method:\n    def __init__(self):\n        raise ValueError('not today')\n"
    )
    (tmp_path / "unfit.py").write_text("raise ValueError('no licence')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, words in (
        ("strange:up", "letters, digits and . _ + - only, the first a letter or digit; got the problem '../up'"),
        ("strange:broken", "'strange:broken' raised ZeroDivisionError: division by zero"),
        ("unfit:make", "'unfit:make' cannot be imported: ValueError: no licence"),
    ):
        refused = sweep(tmp_path / "out", problem=name)
        assert isinstance(refused.exception, alebo.InputError), refused.exception
        assert words in str(refused.exception)
    refused = sweep(tmp_path / "out", method="strange:Method", problem="branin-100")
    assert isinstance(refused.exception, alebo.InputError), refused.exception
    assert "ValueError: not today" in str(refused.exception)
    assert not list(tmp_path.rglob("*.jsonl"))


def test_a_sweep_is_refused_before_it_starts(tmp_path: Path) -> None:
    with pytest.raises(alebo.InputError, match="Did you mean 'branin-100'"):
        ex.plan(["branin100"], labels("sobol"), [0], tmp_path)
    with pytest.raises(alebo.InputError, match="Each problem once"):
        ex.plan(["branin-100", "branin-100"], labels("sobol"), [0], tmp_path)
    with pytest.raises(alebo.InputError, match="budget >= 1"):
        ex.plan(["branin-100"], labels("sobol"), [0], tmp_path, budget=0)
    with pytest.raises(alebo.InputError, match="jobs >= 1"):
        ex.run([], jobs=0)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(alebo.InputError, match="can be written to"):
        ex.plan(["branin-100"], labels("sobol"), [0], blocked)
    assert not list(tmp_path.glob("*/"))


def test_a_method_that_is_not_defined_for_a_problem_is_left_out_with_the_reason(tmp_path: Path) -> None:
    mine = labels("sobol,ard=alebo.bench.ablation:ArdALEBO")
    refused: list[str] = []
    tasks = ex.plan(["branin-100", "gramacy-100"], mine, [0], tmp_path, refused=refused)
    assert [(t.problem, t.label) for t in tasks] == [
        ("branin-100", "sobol"),
        ("branin-100", "ard"),
        ("gramacy-100", "sobol"),
    ]
    assert len(refused) == 1
    assert "not defined for outcome constraints" in refused[0]
    with pytest.raises(alebo.InputError, match="not defined"):
        ex.plan(["gramacy-100"], mine[1:], [0], tmp_path, refused=[])
    with pytest.raises(alebo.InputError, match="not defined"):
        ex.plan(["gramacy-100"], mine[1:], [0], tmp_path)


def test_the_ablation_runs_in_both_scalings_and_shares_its_start() -> None:
    raw, scaled = (
        replication(problem("branin-100"), f"alebo.bench.ablation:ArdALEBO(coordinates={c},initial=4)", 1, budget=6)
        for c in ("raw", "scaled")
    )
    assert raw["state"] == scaled["state"] == "complete", (raw["error"], scaled["error"])
    assert raw["dim"] == [[0, 4]]
    assert raw["outcomes"]["value"][4:] != scaled["outcomes"]["value"][4:]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(alebo.InputError, match="can be written to"):
        ex.check_folder(tmp_path)


def anywhere(view: View, q: int) -> list[Suggestion]:
    """Points that cost nothing: which arm is asked, and with what, does not depend on them."""
    rng = np.random.default_rng(view.number)
    return [Suggestion(rng.uniform(-1.0, 1.0, 20)) for _ in range(q)]


def test_the_adaptive_method_can_be_run_with_its_arms_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FullSpaceArm, "propose", lambda arm, view, q: anywhere(view, q))
    space = alebo.Space.from_bounds([(-1.0, 1.0)] * 20)
    opt = alebo.Optimizer(space, alebo.Minimize("value"), method=InTurn(initial=3), seed=0, budget=9)
    for k in range(9):
        opt.tell(opt.ask()[0].number, float(-k))
    assert [t.note["arm"] for t in opt.history][3:] == ["full", "local", "embedding"] * 2


def test_the_adaptive_method_can_be_run_with_arms_that_see_their_own_evaluations_only(monkeypatch) -> None:
    seen: list[tuple[str, list[float]]] = []

    def watched(arm: FullSpaceArm, view: View, q: int) -> list[Suggestion]:
        seen.append((arm.name, [t.outcomes["value"].mean for t in view.trials]))
        return anywhere(view, q)

    monkeypatch.setattr(FullSpaceArm, "propose", watched)
    method = Apart(initial=3, arms=("full", "local"))
    opt = alebo.Optimizer(alebo.Space.from_bounds([(-1.0, 1.0)] * 20), alebo.Minimize("value"), method=method, seed=0)
    for k in range(7):
        opt.tell(opt.ask()[0].number, float(k))
    arms = [t.note["arm"] for t in opt.history]
    for k, (name, values) in enumerate(seen, start=3):
        assert values == [float(i) for i in range(k) if i < 3 or arms[i] == name]
    assert len(seen) == 4
    assert {name for name, _ in seen} == {"full", "local"}
