"""Other libraries as methods of the benchmark, and ALEBO in batches."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import alebo
from alebo.bench import Label, peers, replication
from alebo.bench.peers import Ax, Batched, BoTorchDefault, BoTorchTutorial, Nevergrad, OptunaSampler
from alebo.bench.problems import PROBLEMS
from tests.conftest import require_module

MIXED = PROBLEMS["mixed-70"]()


def bowl(x: np.ndarray) -> float:
    return float(((x - 0.3) ** 2).sum())


@pytest.mark.parametrize("kind", ["tpe", "gp"])
def test_optunas_samplers_propose_and_learn(kind: str) -> None:
    require_module("optuna", "study")
    opt = alebo.Optimizer(MIXED.space, MIXED.goals, method=OptunaSampler(kind=kind), seed=0)
    for _ in range(12):
        t = opt.ask()[0]
        opt.tell(t.number, MIXED.outcomes(np.array(list(t.params.values()), dtype=object)))
    again = alebo.Optimizer(MIXED.space, MIXED.goals, method=OptunaSampler(kind=kind), seed=0)
    assert again.ask()[0].params == opt.history[0].params
    assert len({str(t.params) for t in opt.history}) == 12


def test_the_mixed_problem_knows_its_best_categories() -> None:
    assert MIXED.space.dimension == 70
    x = [0.5] * 40 + [5] * 10 + ["a"] * 5
    at = dict(zip((4, 12, 23, 37, 42, 47), (0.2017, 0.15, 0.4769, 0.2753, 3, 7), strict=True))
    for i, v in at.items():
        x[i] = v
    wrong = MIXED.outcomes(np.array(x, dtype=object))["value"]
    x[51] = "c"
    right = MIXED.outcomes(np.array(x, dtype=object))["value"]
    assert wrong - right == pytest.approx(0.5)
    assert -3.33 < right < -3.2


def test_the_full_space_of_botorch_improves_on_its_first_points() -> None:
    space = alebo.Space.from_bounds([(-1, 1)] * 6)
    opt = alebo.Optimizer(space, alebo.Minimize("v"), method=BoTorchDefault(initial=5, raw=32, steps=20), seed=0)
    for _ in range(18):
        t = opt.ask()[0]
        opt.tell(t.number, bowl(t.x))
    values = [t.outcomes["v"].mean for t in opt.history]
    assert min(values[5:]) < 0.5 * min(values[:5])  # by a factor of 9 or more for each of seeds 0 to 5
    goals = [alebo.Minimize("a", reference=4.0), alebo.Maximize("b", reference=0.0)]
    two = alebo.Optimizer(space, goals, method=BoTorchDefault(initial=3, raw=16, steps=5), seed=0)
    for _ in range(5):
        t = two.ask()[0]
        two.tell(t.number, {"a": bowl(t.x), "b": float(t.x[0] + 1)})
    assert two.hypervolumes()[-1] > 0


def test_a_batch_is_proposed_without_its_own_outcomes() -> None:
    space = alebo.Space.from_bounds([(-1, 1)] * 20)
    runs = []
    for shift in (0.0, 5.0):  # the outcomes of the last, unfinished batch differ: the proposal must not
        opt = alebo.Optimizer(space, alebo.Minimize("v"), method=Batched(q=4, dim=3), seed=0)
        for k in range(14):
            t = opt.ask()[0]
            opt.tell(t.number, bowl(t.x) + (shift if k >= 12 else 0.0))
        runs.append(opt.ask()[0].x)
    assert np.array_equal(runs[0], runs[1])


SPACE = alebo.Space.from_bounds([(-1, 1)] * 5)


def optimize(method: alebo.methods.Method, budget: int, fails: tuple[int, ...] = ()) -> alebo.Optimizer:
    opt = alebo.Optimizer(SPACE, alebo.Minimize("v"), method=method, seed=3, budget=budget)
    for k in range(budget):
        t = opt.ask()[0]
        if k in fails:
            opt.fail(t.number, "broke")
        else:
            opt.tell(t.number, bowl(t.x))
    return opt


@pytest.mark.filterwarnings("ignore")  # SciPy's COBYLA warns from Nevergrad's thread
@pytest.mark.parametrize(
    ("method", "module", "budget"),
    [
        (Nevergrad(), "nevergrad", 40),
        (Nevergrad(kind="CMA"), "nevergrad", 40),
        (Ax(), "ax", 9),
        (BoTorchTutorial(initial=5, restarts=2, raw=16), "botorch", 9),
    ],
)
def test_the_others_improve_and_go_on_from_a_history(method: alebo.methods.Method, module: str, budget: int) -> None:
    require_module(module, "peers")
    opt = optimize(method, budget, fails=(2,))
    values = [t.outcomes["v"].mean for t in opt.history.complete]
    assert min(values[5:]) < 0.6 * np.median(values[:5])
    live = opt.method.suggest(opt.history, SPACE, opt.goals, 1, 3)[0].x
    peers._SESSIONS.clear()  # another process: the session is replayed
    with peers.reproducible(0):
        again = opt.method.suggest(opt.history, SPACE, opt.goals, 1, 3)[0].x
    if not isinstance(method, BoTorchTutorial):  # it draws from the generator that `ask` seeds
        np.testing.assert_allclose(live, again, atol=1e-7)


@pytest.mark.filterwarnings("ignore")
def test_two_runs_side_by_side_do_not_share_a_session() -> None:
    require_module("nevergrad", "peers")
    alone = [t.x for t in optimize(Nevergrad(), 6).history]
    pair = [alebo.Optimizer(SPACE, alebo.Minimize("v"), method=Nevergrad(), seed=s, budget=6) for s in (3, 4)]
    for _ in range(6):
        for opt in pair:
            t = opt.ask()[0]
            opt.tell(t.number, bowl(t.x))
    np.testing.assert_allclose([t.x for t in pair[0].history], alone)


@pytest.mark.filterwarnings("ignore")
def test_ax_takes_mixed_parameters() -> None:
    require_module("ax", "peers")
    record = replication(MIXED, "ax", 0, budget=6)
    assert record["state"] == "complete", record["error"]
    strange = alebo.Space([alebo.Categorical("c", [1, 2])])
    with pytest.raises(alebo.InputError, match="categories that are text"):
        Ax().suggest(
            alebo.Optimizer(strange, alebo.Minimize("v")).history, strange, alebo.Goals(alebo.Minimize("v")), 1, 0
        )


@pytest.mark.parametrize("name", ["optuna-tpe", "optuna-gp", "ax", "nevergrad", "botorch-tutorial"])
def test_each_has_a_name_on_the_command_line(name: str) -> None:
    made = Label.parse(name).make(MIXED)
    assert isinstance(made, alebo.methods.Method)
    with pytest.raises(alebo.InputError, match="cannot be built"):
        Label.parse(f"{name}(speed=1)").make(MIXED)


@pytest.mark.parametrize(
    ("name", "module"), [("optuna-tpe", "optuna"), ("ax", "ax.api.client"), ("nevergrad", "nevergrad")]
)
def test_a_missing_library_is_a_failed_run_with_the_line_that_helps(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    record = replication(PROBLEMS["branin-100"](), name, 99, budget=3)
    assert record["state"] == "failed"
    assert 'pip install "alebo[peers]"' in record["error"]
