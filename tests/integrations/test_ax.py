"""The node is the Optimizer inside Ax's Client: the same points, and the same again after Ax stored and loaded them."""

# ruff: noqa: E402
from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require_module

pytestmark = pytest.mark.filterwarnings("ignore")  # Ax and its storage warn of their own matters
require_module("ax", "ax")
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, DerivedParameterConfig, RangeParameterConfig
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials

import alebo
from alebo.integrations import ax as ours
from alebo.integrations.ax import AleboNode, strategy

NAMES = [f"x{i}" for i in range(20)]
RANGES = [RangeParameterConfig(name, (-1, 1), "float") for name in NAMES]


@pytest.fixture(autouse=True)
def _quiet_ax() -> None:
    for name in [n for n in logging.root.manager.loggerDict if n.split(".")[0] == "ax"]:
        logging.getLogger(name).setLevel(logging.ERROR)


def client(
    parameters: Any = RANGES, objective: str = "-loss", *, constraints: Any = (), outcomes: Any = (), **settings: Any
) -> Client:
    made = Client(random_seed=0)
    made.configure_experiment(parameters, parameter_constraints=list(constraints))
    made.configure_optimization(objective, outcome_constraints=list(outcomes))
    made.set_generation_strategy(strategy(**({"method": "sobol", "seed": 3} | settings)))
    return made


def sphere(params: Any) -> float:
    return float(sum((params[n] - 0.2) ** 2 for n in NAMES))


def seen(made: Client) -> alebo.History:
    """What the node makes of the experiment."""
    node = made._generation_strategy._curr
    node.update_generator_state(made._experiment, made._experiment.lookup_data())
    return node._known


@pytest.mark.parametrize("method", [None, "alebo", "sobol"])
def test_the_client_proposes_what_the_optimizer_would(method: str | None) -> None:
    made = client(method=method)
    opt = alebo.Optimizer(
        alebo.Space([alebo.Float(n, -1, 1) for n in NAMES]), alebo.Minimize("loss"), method=method, seed=3
    )
    for _ in range(9):
        ((index, params),) = made.get_next_trials(1).items()
        trial = opt.ask()[0]
        assert params == trial.params
        value = round(sphere(params), 6)
        made.complete_trial(index, {"loss": value})
        opt.tell(trial.number, value)
    assert made.get_best_parameterization(use_model_predictions=False)[0] == opt.best().params


def test_trials_that_were_stored_and_loaded_go_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    def step(made: Client) -> None:
        for index, params in made.get_next_trials(2).items():
            if index == 5:
                made.mark_trial_abandoned(index)
            else:
                made.complete_trial(index, {"loss": sphere(params)})

    def trials(made: Client) -> list[Any]:
        return [(t.index, t.status, t.arm.parameters) for t in made._experiment.trials.values()]

    whole = client(method=None)
    for _ in range(5):
        step(whole)
    whole.save_to_json_file(str(tmp_path / "client.json"))
    loaded = Client.load_from_json_file(str(tmp_path / "client.json"))
    assert trials(loaded) == trials(whole)
    assert [t.to_dict() for t in seen(loaded)] == [t.to_dict() for t in seen(whole)]
    for _ in range(2):
        step(whole)
        step(loaded)
    assert trials(loaded) == trials(whole)
    node = loaded._generation_strategy._curr
    assert (node.seed, node._method) == (3, alebo.methods.default_method())


def test_every_kind_of_parameter() -> None:
    parameters = [
        RangeParameterConfig("a", (0, 1), "float"),
        RangeParameterConfig("b", (0, 1), "float"),
        RangeParameterConfig("log", (1e-4, 1), "float", scaling="log"),
        RangeParameterConfig("int", (2, 9), "int"),
        RangeParameterConfig("step", (0, 1), "float", step_size=0.25),
        ChoiceParameterConfig("word", ["x", "y", "z"], "str", is_ordered=False),
        ChoiceParameterConfig("flag", [True, False], "bool"),
        ChoiceParameterConfig("uneven", [1, 10, 1000], "int", is_ordered=True),
        ChoiceParameterConfig("one", ["only"], "str"),
        DerivedParameterConfig("twice", "2 * a + b", "float"),
    ]
    made = client(parameters)
    values: dict[str, set[Any]] = {}
    for _ in range(32):
        for index, params in made.get_next_trials(1).items():
            for name, value in params.items():
                values.setdefault(name, set()).add(value)
            assert params["twice"] == pytest.approx(2 * params["a"] + params["b"])
            made.complete_trial(index, {"loss": params["a"]})
    assert values["step"] == {0.0, 0.25, 0.5, 0.75, 1.0}
    assert values["word"] == {"x", "y", "z"}
    assert values["flag"] == {True, False}
    assert values["uneven"] == {1, 10, 1000}
    assert values["int"] == set(range(2, 10))
    assert min(values["log"]) < 1e-3 < 1e-1 < max(values["log"])
    assert all(t.complete for t in seen(made))


def test_parameter_constraints_hold() -> None:
    steps = RangeParameterConfig("step", (0, 1), "float", step_size=0.25)
    made = client([*RANGES[:3], steps], constraints=["x0 + x1 <= -0.5", "x2 <= x0", "x0 + step <= 0.5"], method=None)
    for _ in range(9):
        for index, p in made.get_next_trials(1).items():
            assert p["x0"] + p["x1"] <= -0.5 + 1e-9
            assert p["x2"] <= p["x0"] + 1e-9
            assert p["x0"] + p["step"] <= 0.5 + 1e-9
            made.complete_trial(index, {"loss": -p["x0"]})


def test_objectives_thresholds_and_outcome_constraints() -> None:
    made = client(objective="-loss, gain", outcomes=["loss <= 9", "gain >= 1.5", "weight <= 4", "2*m1 + m2 >= 1"])
    ((index, _),) = made.get_next_trials(1).items()
    made.complete_trial(index, {"loss": (3.0, 0.5), "gain": 2.0, "weight": 1.0, "m1": (1.0, 0.3), "m2": (2.0, 0.8)})
    node = made._generation_strategy._curr
    (trial,) = seen(made)
    assert node._goals.goals.goals == (
        alebo.Minimize("loss", 9.0),
        alebo.Maximize("gain", 1.5),
        alebo.AtMost("weight", 4.0),
        alebo.AtLeast("2*m1 + m2 >= 1", 1.0),
    )
    assert trial.outcomes["loss"] == (3.0, 0.5)
    assert trial.outcomes["gain"] == (2.0, None)
    assert trial.outcomes["2*m1 + m2 >= 1"] == (4.0, 1.0)


def test_a_weighted_sum_is_one_objective() -> None:
    made = client(objective="gain - 2*loss")
    ((index, _),) = made.get_next_trials(1).items()
    made.complete_trial(index, {"loss": 3.0, "gain": 2.0})
    (trial,) = seen(made)
    assert next(iter(trial.outcomes.values())).mean == -4.0


def test_several_objectives_are_searched_by_the_default_method() -> None:
    made = client(RANGES[:3], "-a, -b", outcomes=["a <= 3", "b <= 3"], method=None, budget=12)
    for _ in range(12):
        for index, p in made.get_next_trials(1).items():
            made.complete_trial(index, {"a": (p["x0"] - 1) ** 2, "b": (p["x0"] + 1) ** 2})
    assert len(made.get_pareto_frontier(use_model_predictions=False)) >= 1
    assert seen(made)[-1].note.keys() != seen(made)[0].note.keys()  # a model proposed it


def test_trials_that_ended_badly_do_not_train() -> None:
    made = client()
    for index, params in made.get_next_trials(5).items():
        if index == 0:
            made.complete_trial(index, {"loss": sphere(params)})
        elif index == 1:
            made.mark_trial_abandoned(index)
        elif index == 2:
            made.mark_trial_failed(index)
        elif index == 3:
            made.attach_data(index, {"loss": 1.0})
            made.mark_trial_early_stopped(index)
    assert [t.state.value for t in seen(made)] == ["complete", "failed", "failed", "failed", "pending"]
    assert len(made.get_next_trials(2)) == 2


def test_attached_and_fixed_points_count_as_they_were_run() -> None:
    made = client(method="alebo")
    index = made.attach_trial(dict.fromkeys(NAMES, 0.5))
    made.complete_trial(index, {"loss": 1.0})
    ((fixed, params),) = made.get_next_trials(1, fixed_parameters={"x3": 0.7300000000000001}).items()
    assert params["x3"] == 0.7300000000000001
    made.complete_trial(fixed, {"loss": 2.0})
    ((_, free),) = made.get_next_trials(1).items()
    assert free["x3"] != 0.73
    first, second, third = seen(made)
    assert (first.asked, first.y) == (False, None)
    assert second.params["x3"] == pytest.approx(0.73)
    assert second.y is None
    assert third.y is not None
    with pytest.raises(alebo.InputError, match="fixed_parameters"):
        made.get_next_trials(1, fixed_parameters={"x3": 7.0})
    assert len(made.get_next_trials(1)) == 1


def test_trials_of_one_call_are_pending_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    propose: Callable[..., Any] = ours.propose
    monkeypatch.setattr(ours, "propose", lambda *a: (lengths.append(len(a[1])), propose(*a))[1])
    made = client()
    proposed = made.get_next_trials(4)
    assert lengths == [0, 1, 2, 3]
    assert len({tuple(p.values()) for p in proposed.values()}) == 4
    opt = alebo.Optimizer(
        alebo.Space([alebo.Float(n, -1, 1) for n in NAMES]), alebo.Minimize("loss"), method="sobol", seed=3
    )
    assert [t.params for _ in range(4) for t in opt.ask()] == list(proposed.values())


def test_the_node_after_a_node_of_ax() -> None:
    first = GenerationNode(
        name="sobol",
        generator_specs=[GeneratorSpec(Generators.SOBOL, generator_kwargs={"seed": 0})],
        transition_criteria=[MinTrials(threshold=3, transition_to="alebo")],
    )
    made = client()
    made.set_generation_strategy(GenerationStrategy(name="both", nodes=[first, AleboNode(method="alebo", seed=0)]))
    for _ in range(6):
        for index, params in made.get_next_trials(1).items():
            made.complete_trial(index, {"loss": sphere(params)})
    history = seen(made)
    assert [t.asked for t in history] == [False] * 3 + [True] * 3
    assert all(t.complete for t in history)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {
                "parameters": [
                    ChoiceParameterConfig("kind", ["a", "b"], "str", dependent_parameters={"a": ["x0"], "b": ["x1"]}),
                    *RANGES[:2],
                ]
            },
            "conditional",
        ),
        ({"outcomes": ["m <= 0.9 * baseline"]}, "baseline"),
        ({"objective": "-loss, a + b"}, "one metric"),
        ({"constraints": ["x0 + x1 <= -3"]}, "linear constraints"),
        ({"method": "turbo", "constraints": ["x0 + x1 <= 1"]}, "constraint"),
    ],
)
def test_what_we_cannot_is_refused_and_the_client_stays_usable(settings: dict[str, Any], words: str) -> None:
    made = client(**settings)
    with pytest.raises(alebo.InputError, match=words):
        made.get_next_trials(1)
    assert not made._experiment.trials
    made.configure_generation_strategy(initialization_budget=2)
    if "baseline" not in words and "-3" not in str(settings):
        assert len(made.get_next_trials(1)) == 1


def test_bad_settings_are_refused_at_once() -> None:
    with pytest.raises(alebo.InputError, match="alebo"):
        strategy(method="alebbo")
    with pytest.raises(alebo.InputError, match="budget"):
        strategy(budget=0)
    with pytest.raises(alebo.InputError, match="seed"):
        strategy(seed="a")  # type: ignore[arg-type]
