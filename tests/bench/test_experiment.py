"""Labels, one run, sweeps: skipped if present, failures kept, wrong input refused with a message."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import alebo
from alebo.bench import Label, Problem, problem, replication
from alebo.bench import experiment as ex
from alebo.bench.ablation import Apart, InTurn
from alebo.bench.cli import app
from alebo.bench.labels import labels, split
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
    for wrong in ("a", "3-1", "1-", "-1", ""):
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
    assert "4 runs made, 0 of them failed, 0 were there" in first.output
    files = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert files == ["branin-100/sobol.jsonl", "gramacy-100/sobol.jsonl"]
    whole = (tmp_path / files[0]).read_bytes()
    kept = stored(tmp_path / files[1])[1]
    (tmp_path / files[1]).write_text(json.dumps(kept) + "\n")
    again = CliRunner().invoke(app, [*call, "--out", str(tmp_path)])
    assert "1 runs made, 0 of them failed, 3 were there" in again.output
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
    assert "2 runs made, 1 of them failed" in result.output
    lines = stored(tmp_path / "out/deadly/sobol.jsonl")
    assert [lines[s]["state"] for s in (0, 1)] == ["failed", "complete"]
    assert "died with code 7" in lines[0]["error"]
    assert "0 runs made, 0 of them failed, 2 were there" in CliRunner().invoke(app, call).output
    retried = CliRunner().invoke(app, [*call, "--retry-failed"])
    assert "1 runs made, 0 of them failed, 1 were there" in retried.output


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
    assert "1 runs made, 0 of them failed, 1 were there already" in first.output
    assert "1 of these failed then: --retry-failed makes them again." in first.output
    assert "1 runs made" in CliRunner().invoke(app, [*call, "--retry-failed"]).output
    assert "failed then" not in CliRunner().invoke(app, call).output


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
