"""The tuned numbers of the package. Stored results, recorded proposals and files rest on them: whoever changes one changes
this table, too, and says in the change log what came of it.
"""

from __future__ import annotations

import ast
import inspect
import math
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import alebo
from alebo.methods import METHODS
from alebo.methods._full_space import PRIORS
from alebo.methods._settings import Settings
from alebo.models.mahalanobis.likelihood import PAPER, MetricPrior
from alebo.models.priors import ARDPrior, dense, sparse

pytestmark = pytest.mark.full_chains

TUNED: dict[str, dict[str, Any]] = {
    "geometry.polytope": {"MANY": 8000},
    "geometry._sides": {"ROWS": 4096, "POINTS": 32, "TINY": 1e-30},
    "geometry.advice": {"_SPREAD": (2, 4, 6, 8, 10), "_ENOUGH": 0.95, "_LIVE_DRAWS": 100},
    "geometry.section": {"_SLACK": 1e-9},
    "models.ard": {"DRAWS": 8, "KEPT": 64, "DIGITS": 3, "NEAR": 0.05},
    "models.ard_fit": {
        "COLD_ITERATIONS": 100,
        "CHEAP": 30_000,
        "ALWAYS": 60,
        "ROUNDS": 6,
        "MANY": 150,
        "WARM_ITERATIONS": 20,
    },
    "models._algebra": {"LOG_2PI": 1.8378770664093453, "SMALL": 120},
    "models.priors": {"NOISE_FLOOR": 1e-6},
    "models.outcomes": {"SMALLEST": 1e-307, "FAR": 1e3, "HUGE": 1e150, "BAD": 3.0, "MOST_NOISE": 1e12},
    "models.mahalanobis.build": {"FEW": 30, "CHEAP": 100, "LEAST_MOVES": 2, "NEWEST": 10},
    "models.mahalanobis.chains": {
        **{"LEAPS": 15, "CHAINS": 4, "BURN_IN": 100, "CLIMB": (100, 10), "STEEP": 20.0, "SETTLE": (5, 1000)},
        **{"SHORT_STEP": 0.02, "STEERING": 0.15, "QUICK": 0.6, "ACCEPTED": 0.75, "MOST_POINTS": 250},
        **{"WIDTH": (-1.5, 1.0), "ROWS": 0.7071067811865476, "START_POINTS": 100, "ADJUST": 1},
    },
    "models.mahalanobis.model": {"MANY": 100},
    "models.mahalanobis.stacked": {"LEAST": 1e-12, "JITTER": 1e-6, "STRONGER": 10.0},
    "models.mahalanobis.laplace": {"FLOOR": 0.5, "MOST_POINTS": 400},
    "models.mahalanobis.likelihood": {"SCREENED": 100},
    "models.additive": {"LENGTHSCALES": (0.3, 0.6, 1.2), "_FLOOR": 1e-6},
    "models.coregional": {
        "CORRELATIONS": (0.0, 0.2, 0.4, 0.6, 0.75, 0.85, 0.92, 0.96, 0.98, 0.995),
        "AMPLITUDES": pytest.approx([math.exp(-1.5 + k / 4) for k in range(17)]),
        "NOISES": pytest.approx([10.0 ** (-8.0 + 8.0 * k / 11) for k in range(12)]),
        **{"SHARES": (0.0, 0.2, 0.6), "SMOOTH": 1.0, "MANY": 150, "EXPLANATIONS": 3},
        **{"AMPLITUDE": (0.3, 1.0), "NOISE": (-8.0, 3.0), "LEAST": 1e-8},
    },
    "models._memory": {"COPIES": 8, "DOUBLE": 8},
    "models.subsets": {
        **{"LENGTHS": (0.3, 1.0), "ACTIVE": 5.0, "LEFT_OUT": 30.0, "MOST": 12, "TRIED": 2, "ITERATIONS": 25},
        **{"GAIN": 0.1, "WORK": 2_000_000, "IN_PAIRS": 32},
    },
    "acquisition._faces": {"MANY_FACES": 400, "NEAR": 0.25, "AHEAD": 1.05, "PRODUCTS": 400_000},
    "acquisition._quick": {"FAR": 1e3, "SAME": 1e-12},
    "acquisition._swift": {"WORTH": 1e-3, "NEAR_FACES": 6, "LEAST": 1e-300},
    "acquisition.functions": {"HOPELESS": 2.0, "WORTHLESS": -1e30, "SERIES": -30.0},
    "acquisition._climb": {
        **{"BARRIERS": (0.1, 1e-3, 1e-6), "INSIDE": 0.995, "REACH": 0.99, "FLAT": 1e-9},
        **{"ARMIJO": 1e-4, "SHORTER": 0.3, "HALVINGS": 6, "STILL": 1e-7},
    },
    "acquisition.maximize": {
        **{"PIECE": 1000, "NEAR_FACES": 6, "DIRECT": (1e-4,), "LAST": (1e-3, 1e-6), "WORTH": 1e-3},
        **{"TOUCHING": 1.0 - 1e-4, "QUASI": 64, "PERTURBED": 20},
    },
    "acquisition.wrappers": {"LEAST_CORRELATION": 1e-6, "LEAST_RATIO": 1e-12},
    "methods._basins": {
        **{"NEGLIGIBLE": 0.001, "LATEST": 4, "EXPLAINED": 0.9, "ACTIVE": 5.0, "WIDTH": 0.9, "OUTSIDE": 0.6},
        **{"CHANGED": 0.05, "AWAY": 1.5, "ANOTHER": 0.6, "RIM": 10, "WIDER": 1.5, "LAST_DIGITS": 1e-4, "REFINED": 3},
    },
    "methods._embedded": {"DEFAULT_DIM": 10},
    "methods._plateaus": {
        **{"REPEATED": 3, "EVIDENCE": 3.0, "WIDTHS": 30, "BACKGROUNDS": (0.0, 0.25, 0.5, 0.75), "NEWEST": 200},
        **{"APART": 1e-6},
    },
    "methods._trust_region": {
        **{"LENGTH": 0.8, "SHORTEST": 1.0 / 128.0, "LONGEST": 1.6, "SUCCESSES": 3, "IMPROVEMENT": 1e-3},
    },
    "methods._settings": {"MOST": 100_000},
    "methods._outcomes": {"NOISY": 1e-3},
    "methods._view": {"IN_SUBSPACE": 1e-6},
    "methods._repeat": {"ENOUGH": 5, "SAME": 1e-6},
    "methods._notes": {"UNEXPLAINED": 0.15, "LEAST": 60, "RECENT": 20},
    "methods._growth": {"RELAXED": -4.0, "SAME": 1e-3},
    "methods._rounding": {"ROUNDS": 4, "PARENTS": 8, "CHILDREN": 100},
    "methods._batch": {"THIRDS": 3},
    "methods._findings": {"RECENT": 20},
    "methods._maximise": {
        **{"AROUND": 4, "SCATTERED": 192, "SHORT": {"raw": 128, "starts": 4, "steps": 4}, "COMPARED": (256, 128)},
        **{"LATER": {"starts": 4, "steps": 4}, "FIRST": {"starts": 6, "steps": 5}, "FEWER": {"keep": (1.0, 0.5, 0.25)}},
        **{"STEEP": {"steep": 0.5}, "LIGHT": {"steps": 5}, "BENT": {"raw": 128, "starts": 5, "steps": 12}},
        **{"BEND": 32.0, "LEAST_BEND": 1e-3},
    },
    "methods._initial": {"DRAWS": 2},
    "methods._fidelity": {"EVERY": 5, "LAST": 0.9},
    "methods._transfer": {"HEARD": 0.1, "HEDGED": 4, "TRUSTED": 0.5, "TYPICAL": 0.25},
    "methods._foreseen": {
        **{"MEMORY": 0.85, "WORST": 3.0, "AHEAD": 10.0, "DOUBT": 3.0, "SHARPEST": 1e-3, "DOUBT_OF_SOURCES": 1.0},
    },
    "methods._full_space": {
        **{"MOST_TRIALS": 500, "MOST_COORDINATES": 20_000, "NEAR": (0.02, 0.2, 0.8), "NEARBY": 64, "WIDEST": 5.0},
        **{"FAR": 256, "BEST": 3, "ITERATIONS": 60, "NAMED": 8, "RELEVANT": 0.95, "HANDICAPS": {"sparse": 3.0}},
        **{"LATE": 0.2, "LATE_DOUBT": 0.1, "SELDOM": 3},
    },
    "methods._learned": {"LEAST": 4},
    "methods._sharing": {"NOTHING": 1e-9},
    "parameters": {"_LARGEST_INT": 10**12},
    "_tasks": {"DIGITS": 9},
    "_match": {"MOST": 300, "HELD": 4000, "FARTHEST": 3.0},
    "_propose": {"NEAR": 0.1},
    "_saving": {"FORMAT": 1},
    "runner._lines": {  # Optuna's journal has these numbers
        **{"CREATE_STUDY": 0, "STUDY_ATTR": 2, "CREATE_TRIAL": 4, "STATE": 6, "TRIAL_ATTR": 8, "SYSTEM_ATTR": 9},
        "NOTHING": 10,
    },
    "runner._records": {"FORMAT": 1, "SHOWN": 32},
    "runner._postgres": {"STARTING": 5.0},
    "runner._claims": {"APPEND": 0, "ASK": 1, "FIRST_WORKER": 16, "BEAT": 2.0, "LEASE": 20.0},
    "runner._stop": {"LOOK": 0.2},
    "runner._trials": {"ATTEMPTS": 10},
    "runner.evaluate": {"POLL": 0.05, "IDLE": 0.5},
    "integrations.sklearn": {"PATIENCE": 10},
    "_processes": {"KEPT": {"stdout": 2**22, "stderr": 2**16}},
    "_supervise": {"GRACE": 0.5},
}

DEFAULTS: dict[str, dict[str, Any]] = {  # of functions and of the fields of classes: a part of the signature
    "geometry.polytope:Polytope": {"pairs": 0},
    "geometry.polytope:Polytope.contains": {"tolerance": 1e-9},
    "geometry.containment:containment_probability": {"samples": 1000, "seed": 0},
    "geometry.containment:containment_sweep": {"samples": 1000, "seed": 0},
    "geometry.section:Section._certify": {"steps": 60},
    "models.ard:ARDGP": {"shift": 0.0, "scale": 1.0, "known_noise": False},
    "models.ard_density:LogDensity.start": {"log_s": 0.0, "log_noise": -5.0},
    "models.outcomes:without_worst": {"below": 0.5},
    "models.ard_fit:fit_ard": {"seed": 0},
    "models.ard_fit:fit_each": {"seed": 0},
    "models.priors:ARDPrior": {"starts": (0.5,), "start_noise": 1e-2, "restarts": 0, "rugged": False, "subsets": False},
    "models.priors:sparse": {"shrinkage": 0.1, "subsets": False},
    "models.priors:embedded": {"restarts": 1},
    "models.mahalanobis.build:sample_gp": {"samples": 12, "seed": 0, "afresh": False},
    "models.mahalanobis.build:fit_gp": {"samples": 10, "seed": 0, "cold": 3, "iterations": 100},
    "models.mahalanobis.chains:ChainState": {"log_step": math.log(0.05)},
    "models.mahalanobis.chains:sample": {"short": False},
    "models.mahalanobis.conditioned:Conditioned.components": {"full": False},
    "models.mahalanobis.kernel:MahalanobisKernel.forward": {"diag": False},
    "models.mahalanobis.model:MahalanobisGP": {"shift": 0.0, "scale": 1.0, "known_noise": False},
    "models.mahalanobis.model:MahalanobisGP.posterior": {"observation_noise": False},
    "models.mahalanobis.likelihood:fit": {"iterations": 100, "screening": 20},
    "models.mahalanobis.likelihood:Hyperparameters.padded": {"spread": 0.1},
    "models.additive:fit_additive": {"iterations": 30},
    "models.additive:minimise_bounds": {"raw": 48},
    "models.coregional:CoregionalGP": {"share": 0.0, "shift": 0.0, "scale": 1.0, "known_noise": False},
    "acquisition.maximize:candidates": {"raw": 256, "starts": 8, "steps": 10},
    "acquisition._climb:ascend": {"steps": 10},
    "acquisition._climb:climb": {"steps": 10},
    "acquisition._faces:barrier": {"paired": False},
    "acquisition._swift:rise": {"keep": (1.0, 1.0, 1.0), "steep": None},
    "acquisition.functions:LogEI": {"doubt": 1.0},
    "acquisition.functions:NoisyLogEI": {"seed": 0},
    "acquisition.hypervolume:NoisyLogEHVI": {"seed": 0},
    "acquisition.maximize:swiftly": {"starts": 4, "steps": 4, "keep": (1.0, 1.0, 1.0), "polishing": 12},
    "acquisition.maximize:maximise_in_box": {"raw": 1024, "starts": 6, "iterations": 100},
    "acquisition.maximize:perturbed": {"quasi": False},
    "methods._embedded:Embedded": {"initial": 10, "dim": None},
    "methods._embedded:embedded_models": {"seed": 0},
    "methods._embedded:embedded_log_ei": {"seed": 0},
    "methods._embedded:best_embedded": {"count": 3},
    "methods._trust_region:Region": {"length": 0.8, "successes": 0, "failures": 0, "best": math.inf},
    "methods._metric:Sampled": {"samples": 12, "warm": True},
    "methods._metric:Laplace": {"samples": 12, "ridge": 0.5, "inflation": None, "warm": True, "cold": 3},
    "methods._fitted:Predictor": {"sign": 1.0, "offset": 0.0},
    "methods._fitted:Fitted": {"embedding": None, "what": "model", "refits": True},
    "methods._growth:Growth": {
        **{"start": None, "step": 2, "most": 20, "threshold": -7.0, "patience": 5, "pace": 0.2, "directions": None},
    },
    "methods._full_space:Region": {
        **{"length": 0.8, "longest": 1.6, "shortest": 1.0 / 64.0, "successes": 2, "least_patience": 4},
    },
    "methods._full_space:FullSpaceArm.surrogate": {"fresh": False},
    "methods._full_space:FullSpaceArm.judged": {"fresh": False},
    "methods._maximise:maximise": {"many": False},
    "methods._method:Supports": {
        **{"constraints": False, "objectives": False, "batches": True, "integers": True, "categories": True},
        **{"linear": False, "cost": False, "fidelity": False},
    },
    "methods._method:Method.fitted": {"fresh": False},
    "methods._outcomes:OutcomeModels.share": {"of": 3},
    "methods._outcomes:OutcomeModels.acquisition": {"doubt": 1.0},
    "methods._outcomes:OutcomeModels.log_ei": {"doubt": 1.0},
    "methods._outcomes:fit_outcomes": {"infer_noise": True, "seed": 0},
    "methods._view:View": {"begun": 0},
    "methods._sharing:Sharing": {"memory": 0.93, "lead": 4, "final": 0.2, "patience": 9},
    "history:Trial": {"asked": True},
    "_match:Text": {"comma": False},
    "sources:_Opened": {"seed": 0},
    "parameters:Float": {"log": False},
    "parameters:Int": {"log": False},
    "space:Space.feasible": {"tolerance": 1e-9},
    "space:Space.rows": {"rounded": False},
    "optimizer:Optimizer": {"seed": 0, "budget": None},
    "optimizer:Optimizer.ask": {"q": 1},
    "_minimize:minimize": {"budget": 50, "seed": 0, "n_jobs": 1, "progress": False, "max_failed": 0.5},
    "runner._claims:number_of": {"bits": 60},
    "runner._patience:Patience": {"seconds": 600.0, "first": 0.2, "longest": 5.0},
    "runner.evaluate:run": {"max_failed": 0.5},
    "runner.study:Study.create": {"seed": 0},
    "runner.study:Study.ask": {"q": 1},
    "runner.study:Study.claim": {"q": 1},
    "runner._pools:Running": {"waiting": False},
    "runner._pools:OwnPool": {"seed": 0},
    "runner._pools:GivenExecutor": {"seed": 0},
    "runner._trials:StoredTrials._add": {"waiting": False},
    "integrations.sklearn:AleboSearchCV": {"n_iter": 50, "refit": True, "verbose": 0, "return_train_score": False},
    "evaluator:CommandEvaluator": {"number": 0, "seed": 0},
}


@pytest.mark.parametrize("module", TUNED)
def test_a_tuned_number_is_the_one_that_stored_results_rest_on(module: str) -> None:
    found = import_module(f"alebo.{module}")
    assert {name: getattr(found, name) for name in TUNED[module]} == TUNED[module]


def written(path: Path) -> set[str]:
    """The names of a module's plain numbers, and of tuples and tables of them."""
    out: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = getattr(node, "value", None)
        leaves = [n for n in ast.walk(value) if isinstance(n, ast.expr)] if value is not None else []
        plain = all(isinstance(n, ast.Constant | ast.Tuple | ast.Dict | ast.UnaryOp) for n in leaves)
        if plain and any(isinstance(n, ast.Constant) and isinstance(n.value, int | float) for n in leaves):
            named = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            out |= {name.id for name in named if name.id.isupper()}
    return out


def test_every_number_with_a_name_stands_in_the_table() -> None:
    source = Path(alebo.__file__).parent
    paths = [p for package in ("acquisition", "geometry", "models", "runner") for p in (source / package).rglob("*.py")]
    missing = {}
    for path in [*paths, *(source / "methods").glob("_*.py")]:
        module = ".".join(path.relative_to(source).with_suffix("").parts)
        missing[module] = written(path) - set(TUNED.get(module, {}))
    assert {module: names for module, names in missing.items() if names} == {}
    assert written(source / "models" / "ard_fit.py") == set(TUNED["models.ard_fit"])


@pytest.mark.parametrize("where", DEFAULTS)
def test_a_default_is_the_one_that_stored_results_rest_on(where: str) -> None:
    module, _, path = where.partition(":")
    found: Any = import_module(f"alebo.{module}")
    for name in path.split("."):
        found = getattr(found, name)
    given = inspect.signature(found).parameters
    assert {name: given[name].default for name in DEFAULTS[where]} == DEFAULTS[where]


def test_what_metrics_keep_between_asks() -> None:
    metric = import_module("alebo.methods._metric")
    for kind, kept in ((metric.Sampled, ("chains", 6, 100, 500)), (metric.Laplace, ("mode", 1, math.inf, None))):
        assert (kind.noted, kind.notes, kind.cheap, kind.most) == kept


def test_the_priors_of_metrics_and_of_the_arms_of_the_full_space() -> None:
    usual = (0.5, 0.25, 0.25, math.log(1e-5), 1e-6)
    assert MetricPrior() == MetricPrior(*usual)
    assert MetricPrior(0.0, 0.0, 0.0, *usual[3:]) == PAPER
    expected: dict[str, ARDPrior] = {
        "dense": dense(7),
        "matern": dense(7, "matern"),
        "sparse": sparse(0.1, subsets=True),
    }
    assert {name: prior(7) for name, prior in PRIORS.items()} == expected


SETTINGS: dict[str, dict[str, Any]] = {  # plain ones; the objects among them stand above
    "adaptive": {"arms": ("full", "local", "embedding"), "initial": None},
    "alebo": {
        **{"dim": None, "initial": None, "kind": "hypersphere", "centre": True, "design": "uniform"},
        **{"infer_noise": True, "settle": 0.2, "acquisition": None},
    },
    "rembo": {"dim": None, "initial": 2, "projections": 4},
    "rembo-phi": {"dim": None, "initial": 10},
    "rembo-gamma": {"dim": None, "initial": 10},
    "hesbo": {"dim": None, "initial": 10},
    "coordinate-linebo": {"per_line": 5, "width": 2.0},
    "add-gp-ucb": {"group_size": 4, "decompositions": 8, "cycle": 10, "initial": 10},
    "ebo": {"partitions": 2, "leaves": 4, "min_leaf": 40, "group_size": 3, "moves": 40, "initial": 10},
    "smac": {
        **{"trees": 10, "challengers": 10_000, "searches": 10, "plateau": 10, "initial": None},
        "infeasible": "refuse",
    },
    "cmaes": {"sigma": 0.5, "population": None, "infeasible": "refuse"},
    "turbo": {"regions": 1, "initial": None, "candidates": None, "infeasible": "refuse"},
    "baxus": {"splits": 3, "initial": 10, "reach": None, "candidates": None, "infeasible": "refuse"},
    "bo": {"initial": None, "centre": False},
    "saasbo": {"initial": None, "centre": False, "warmup": 256, "samples": 128, "thinning": 16},
    "saas-map": {"initial": None, "centre": False},
    "sobol": {"centre": False},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_settings_of_a_method_and_their_defaults(name: str) -> None:
    given = {key: s.default for key, s in METHODS[name].settings().items() if not isinstance(s.default, Settings)}
    assert given == SETTINGS[name]
