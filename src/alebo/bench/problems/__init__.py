"""The problems by name. `PROBLEMS[name]()` builds one; heavy ones are imported only then.

Active columns (and the subspace of the random one) are drawn once from the problem's name and stay: runs differ by the
method's seed only, from which its embedding is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module

from alebo import AleboError, InputError

from ..._seeds import generator
from . import functions
from ._problem import Problem as Problem
from ._problem import resolve
from .wrappers import embed as embed
from .wrappers import noisy as noisy
from .wrappers import permute as permute
from .wrappers import rotate as rotate
from .wrappers import shift as shift


def _branin(D: int) -> Problem:
    # as in the paper: the first half of the columns has Branin's first bounds, the second half its second
    name, half = f"branin-{D}", D // 2
    rng = generator(0, "axes", name)
    axes = (int(rng.integers(half)), half + int(rng.integers(D - half)))
    blocks = [(-5.0, 10.0)] * half + [(0.0, 15.0)] * (D - half)
    base = embed(functions.branin(), D, name=name, bounds=blocks, axes=axes)
    return replace(base, paper_dim=4)


def _hartmann(D: int) -> Problem:
    return replace(embed(functions.hartmann6(), D, name=f"hartmann6-{D}"), paper_dim=12)


def _gramacy() -> Problem:
    return replace(embed(functions.gramacy(), 100, name="gramacy-100"), paper_dim=4)


def _random() -> Problem:
    return replace(rotate(functions.hartmann6(), 1000, name="hartmann6-random-1000"), paper_dim=12)


def _random_narrow() -> Problem:
    # the box that the paper's scripts gave to CMA-ES, SMAC and TuRBO: the same function, half of every range
    name = "hartmann6-random-1000"
    base = rotate(functions.hartmann6(), 1000, name=name, bounds=(0.0, 1.0))
    return replace(base, name=f"{name}-narrow")


def _levy(d: int) -> Problem:
    moved = shift(functions.levy(d), name=f"levy{d}-shifted")
    return replace(embed(moved, 100, name=f"levy{d}-100"), paper_dim=None)


def _full(base: Problem) -> Problem:
    # all parameters matter; the optimum is moved, so that it is not in the middle of the box
    return shift(base, name=f"{base.name}-{base.D}")


def lazy(module: str, attribute: str) -> Callable[[], Problem]:
    """A factory that imports `alebo.bench.problems.<module>` only when called: for problems with heavy parts."""

    def factory() -> Problem:
        made: Problem = getattr(import_module(f".{module}", __name__), attribute)()
        return made

    return factory


PROBLEMS: dict[str, Callable[[], Problem]] = {
    **{f"branin-{D}": partial(_branin, D) for D in (50, 100, 200, 500, 1000)},
    "hartmann6-100": lambda: _hartmann(100),
    "hartmann6-1000": lambda: _hartmann(1000),
    "hartmann6-random-1000": _random,
    "hartmann6-random-1000-narrow": _random_narrow,
    "gramacy-100": _gramacy,
    "levy20-100": lambda: _levy(20),
    "levy100-100": lambda: _levy(100),
    "ackley100-100": lambda: _full(functions.ackley(100)),
    "rosenbrock100-100": lambda: _full(functions.rosenbrock(100)),
    "branin-currin-100": lambda: embed(functions.branin_currin(), 100, name="branin-currin-100"),
    "mixed-70": functions.mixed,
    # noise of 5 % of the range of Hartmann6 (0 to -3.32) and of Gramacy's objective (0 to 2); Branin's wells are flat
    # against its range of 308, so there the noise is 1, a few times the optimum
    "hartmann6-100-noisy": lambda: noisy(_hartmann(100), 0.166),
    "hartmann6-100-noisy10": lambda: replace(noisy(_hartmann(100), 0.332), name="hartmann6-100-noisy10"),
    "hartmann6-1000-noisy": lambda: noisy(_hartmann(1000), 0.166),
    "gramacy-100-noisy": lambda: noisy(_gramacy(), 0.1),
    "branin-100-noisy": lambda: noisy(_branin(100), 1.0),
    # real problems: each needs an extra, named in the message that a missing one raises
    "hexapod-72": lazy("hexapod", "hexapod"),
    "hexapod-tripod-11": lazy("hexapod", "hexapod_tripod"),
    "nasbench101-36": lazy("nas", "nasbench101"),
    "nasbench201-30": lazy("nas", "nasbench201"),
    "nasbench201-30-penalised": lazy("nas", "nasbench201_penalised"),
    "rover-60": lazy("rover", "rover"),
    "rover-100": lazy("rover", "rover_100"),
    "lasso-simple-60": lazy("lasso", "lasso_simple"),
    "lasso-medium-100": lazy("lasso", "lasso_medium"),
    "lasso-high-300": lazy("lasso", "lasso_high"),
    "lasso-hard-1000": lazy("lasso", "lasso_hard"),
    "lasso-diabetes-64": lazy("lasso", "lasso_diabetes"),
    "swimmer-16": lazy("gym", "swimmer"),
    "hopper-33": lazy("gym", "hopper"),
    "halfcheetah-102": lazy("gym", "halfcheetah"),
    "walker-102": lazy("gym", "walker"),
    "tuning-22": lazy("tuning", "tuning"),
    "hpob-5971-9970-16": lazy("hpob", "hpob_5971"),
    "hpob-6767-31-18": lazy("hpob", "hpob_6767"),
    **{f"bbob-f{f}-100": lazy("bbob", f"f{f}") for f in (2, 8, 12, 17, 24)},
    "mopta08-124": lazy("mopta", "mopta08"),
    "mopta08-124-hard": lazy("mopta", "mopta08_hard"),
}

PAPER = ("branin-100", "gramacy-100", "hartmann6-100", "hartmann6-1000", "hartmann6-random-1000")


def problem(name: str) -> Problem:
    """The problem of that name, or the one that `module:factory` (a third party's) points at."""
    found = resolve(name, PROBLEMS, "problem")
    made = found
    if callable(found) and not isinstance(found, Problem):
        try:
            made = found()
        except AleboError:
            raise
        except Exception as error:
            if name in PROBLEMS:  # a defect of ours: its traceback is wanted
                raise
            raise InputError(
                f"A problem's factory takes nothing and returns an alebo.bench.Problem; {name!r} raised "
                f"{type(error).__name__}: {error}. Mend the factory."
            ) from error
    if not isinstance(made, Problem):
        raise InputError(f"A problem's factory returns an alebo.bench.Problem; {name!r} gave {type(made).__name__}.")
    return made
