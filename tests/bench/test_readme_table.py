"""The figures of the README's comparison are those of the stored runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from alebo.bench.results import load
from alebo.bench.standings import Standings, standings
from alebo.bench.suite import suite

ROOT = Path(__file__).parents[2]
METHODS = ["adaptive", "alebo", "bo", "turbo", "baxus", "optuna-tpe", "sobol"]  # the columns
RANKED = ["adaptive", "alebo", "bo", "turbo", "baxus", "saas-map", "optuna-tpe", "cmaes", "sobol"]
pytestmark = pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="an installed package carries no results")
ROWS = {  # by the name in the README and the number of parameters
    ("MOPTA08, car design (min)", 124): "mopta08-124",
    ("rover trajectory (max)", 60): "rover-60",
    ("rover trajectory, longer (max)", 100): "rover-100",
    ("lasso, synthetic data (min)", 100): "lasso-medium-100",
    ("lasso, synthetic data (min)", 300): "lasso-high-300",
    ("lasso, synthetic data (min)", 1000): "lasso-hard-1000",
    ("lasso, diabetes data (min)", 64): "lasso-diabetes-64",
    ("boosted trees, mixed (min)", 22): "tuning-22",
    ("XGBoost, HPO-B (max)", 16): "hpob-5971-9970-16",
    ("XGBoost, HPO-B (max)", 18): "hpob-6767-31-18",
    ("HalfCheetah policy (max)", 102): "halfcheetah-102",
    ("hexapod gait (max)", 72): "hexapod-72",
    ("architecture search (max)", 30): "nasbench201-30",
    ("Branin, 2 active (min)", 100): "branin-100",
    ("Hartmann6, 6 active (min)", 100): "hartmann6-100",
    ("Hartmann6, 6 active (min)", 1000): "hartmann6-1000",
    ("Ackley, all active (min)", 100): "ackley100-100",
    ("Rosenbrock, all active (min)", 100): "rosenbrock100-100",
}


@pytest.fixture(scope="module")
def shown() -> Standings:
    return standings(load(ROOT / "results"), suite("all"), METHODS)


def expected(made: Standings, name: str, parameters: int) -> str:
    """The row as it has to be."""
    problem = ROWS[name, parameters]
    entry = next(e for e in made.suite.entries if e.name == problem)
    cells = [made.cells.get((problem, method)) for method in METHODS]
    found = [None if c is None else c.values[np.isfinite(c.values)] for c in cells]
    means = [np.nan if v is None or not len(v) else float(v.mean()) for v in found]
    best = np.nanargmin(entry.sign * np.array(means))
    texts = []
    for i, (mean, values) in enumerate(zip(means, found, strict=True)):
        number = f"**{mean:.4g}**" if i == best else f"{mean:.4g}"
        texts.append("-" if values is None or not len(values) else f"{number} ({len(values)})")
    return f"| {name} | {parameters} | {entry.budget} | {' | '.join(texts)} |"


def test_every_row_is_what_the_stored_runs_give(shown: Standings) -> None:
    text = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| ([^|]+ \((?:min|max)\)) \| (\d+) \| .*$", text, flags=re.MULTILINE)
    assert {(name, int(parameters)) for name, parameters in rows} == set(ROWS)
    missing = [row for name, d in ROWS if (row := expected(shown, name, d)) not in text]
    assert not missing, "README.md needs these rows:\n" + "\n".join(missing)


def test_the_ranks_are_what_the_stored_runs_give() -> None:
    made = standings(load(ROOT / "results"), suite("all"), RANKED)
    text = (ROOT / "README.md").read_text()
    names = {"adaptive": "the default", "bo": "plain BO", "baxus": "BAxUS", "alebo": "ALEBO", "turbo": "TuRBO"}
    lines = [line for line in made.lines(draws=1) if line.label in names]
    for line in lines:
        assert re.search(rf"{names[line.label]} {line.rank:.2f}[ ,.]", text), f"{names[line.label]} {line.rank:.2f}"
    assert f"over the {len(made.common)} problems" in text
