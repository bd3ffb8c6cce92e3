"""Problems know their optimum, alone and wrapped; names are resolved with a nearest match."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import alebo
from alebo.bench import PAPER, PROBLEMS, Problem, problem
from alebo.bench.problems import embed, functions, noisy, permute, rotate, shift

BASES = [functions.branin, functions.hartmann6, functions.gramacy, lambda: functions.levy(5)]
OURS = [
    name for name in PROBLEMS if name.split("-")[0].rstrip("0123456789") in ("branin", "hartmann", "gramacy", "levy")
]


@pytest.mark.parametrize("name", OURS)
def test_the_known_optimum_is_reached_at_the_known_points_and_nowhere_beaten(name: str) -> None:
    p = problem(name)
    assert p.name == name
    if p.goals.single:
        assert p.optimum is not None
        assert p.optimisers is not None
        for x in p.optimisers:
            assert p.space.feasible(dict(zip(p.space.names, x, strict=True)))
            assert p.value(p.outcomes(x)) == pytest.approx(p.optimum, abs=2e-7)
    low, high = p.bounds.T
    assert np.all(low < high)
    rng = np.random.default_rng(0)
    for x in rng.uniform(low, high, (50, p.D)):
        outcomes = p.outcomes(x)
        if p.goals.single and p.goals.feasible(p.goals.read(outcomes)):
            assert p.value(outcomes) >= p.optimum  # type: ignore[operator]


def test_the_papers_problems_have_the_papers_settings() -> None:
    made = {name: problem(name) for name in PAPER}
    assert [(p.D, p.active, p.paper_dim, p.budget) for p in made.values()] == [
        (100, 2, 4, 50),
        (100, 2, 4, 50),
        (100, 6, 12, 200),
        (1000, 6, 12, 200),
        (1000, 6, 12, 200),
    ]
    branin = made["branin-100"]
    assert np.all(branin.bounds[:50] == (-5, 10))
    assert np.all(branin.bounds[50:] == (0, 15))
    assert branin.axes[0] < 50 <= branin.axes[1]
    assert np.all(made["hartmann6-random-1000"].bounds == (-1, 1))
    assert made["hartmann6-100"].optimum == pytest.approx(-3.32237, abs=1e-5)
    assert made["gramacy-100"].optimum == pytest.approx(0.5998, abs=1e-4)


def test_base_functions_are_the_published_ones() -> None:
    torch = pytest.importorskip("torch")
    synthetic = pytest.importorskip("botorch.test_functions.synthetic")
    rng = np.random.default_rng(1)
    for base, theirs in [
        (functions.branin(), synthetic.Branin()),
        (functions.hartmann6(), synthetic.Hartmann(dim=6)),
        (functions.levy(5), synthetic.Levy(dim=5)),
    ]:
        x = rng.uniform(*base.bounds.T, (20, base.D))
        ours = np.array([base.evaluate(row) for row in x])
        assert ours == pytest.approx(theirs.evaluate_true(torch.tensor(x)).numpy(), abs=2e-4)
    pair = pytest.importorskip("botorch.test_functions.multi_objective").BraninCurrin()
    x = rng.uniform(0, 1, (20, 2))
    ours = np.array([list(functions.branin_currin_value(row).values()) for row in x])
    assert ours == pytest.approx(pair.evaluate_true(torch.tensor(x)).numpy(), abs=2e-4)


def test_the_same_name_is_the_same_problem_and_another_D_another() -> None:
    x = np.random.default_rng(2).uniform(-1, 1, 1000)
    assert problem("hartmann6-random-1000").evaluate(x) == problem("hartmann6-random-1000").evaluate(x)
    assert problem("branin-100").axes == problem("branin-100").axes


@settings(max_examples=25, deadline=None)
@given(which=st.integers(0, 3), D=st.integers(8, 40), seed=st.integers(0, 1000))
def test_wrappers_compose_and_keep_the_optimum(which: int, D: int, seed: int) -> None:
    base = BASES[which]()
    wrapped = permute(embed(base, D, seed=seed), seed=seed)
    assert wrapped.D == D
    assert wrapped.optimisers is not None
    for x in wrapped.optimisers:
        assert wrapped.value(wrapped.outcomes(x)) == pytest.approx(base.optimum, abs=2e-7)
        moved = np.array(x)
        unused = [i for i in range(D) if i not in wrapped.axes]
        moved[unused] = wrapped.bounds[unused, 0]
        assert wrapped.outcomes(moved) == wrapped.outcomes(x)  # what is not in `axes` does not matter
    turned = rotate(base, 200, seed=seed)
    if turned.optimisers is not None:
        for x in turned.optimisers:
            assert np.abs(x).max() <= 1
            # Gramacy's optimum lies on a constraint, which rounding may cross
            assert turned.outcomes(x)[base.goals.outcomes[0]] == pytest.approx(base.optimum, abs=1e-6)


def test_the_narrow_box_of_the_paper_s_scripts_is_a_part_of_the_same_problem() -> None:
    wide, narrow = problem("hartmann6-random-1000"), problem("hartmann6-random-1000-narrow")
    assert np.all(narrow.bounds == (0, 1))
    x = np.random.default_rng(4).uniform(0, 1, 1000)
    assert narrow.evaluate(x) == wide.evaluate(x)
    assert narrow.optimisers is not None
    assert np.all((narrow.optimisers > 0) & (narrow.optimisers < 1))
    assert wide.evaluate(narrow.optimisers[0]) == pytest.approx(narrow.optimum, abs=1e-12)
    corner = rotate(functions.hartmann6(), 1000, bounds=(0.9, 1.0))
    assert corner.optimum is None  # the nearest point is outside: nothing is known


@given(seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_a_shift_moves_the_optimum_inside_the_box(seed: int) -> None:
    moved = shift(functions.levy(6), seed=seed)
    assert moved.optimisers is not None
    assert moved.evaluate(moved.optimisers[0]) == pytest.approx(0.0, abs=1e-12)
    assert np.all(np.abs(moved.optimisers) <= 8)
    back = shift(moved, by=[-9 - v for v in moved.optimisers[0]])  # out of the box: nothing is known any more
    assert back.optimum is not None
    assert shift(moved, by=[-11 - v for v in moved.optimisers[0]]).optimum is None


def test_noise_is_drawn_by_seed_and_number_and_the_truth_stays() -> None:
    p = noisy(functions.hartmann6(), 0.5)
    x = p.optimisers[0]  # type: ignore[index]
    draws = [p.measure(x, seed=3, number=k)["value"] for k in range(400)]
    assert draws[:5] == [p.measure(x, seed=3, number=k)["value"] for k in range(5)]
    assert p.measure(x, seed=4, number=0) != p.measure(x, seed=3, number=0)
    assert np.mean(draws) == pytest.approx(p.optimum, abs=0.1)
    assert np.std(draws) == pytest.approx(0.5, rel=0.15)
    assert p.outcomes(x)["value"] == pytest.approx(p.optimum)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: problem("branin-10"), "Did you mean 'branin-100'"),
        (lambda: problem("nowhere:thing"), "cannot be imported"),
        (lambda: problem("math:pi"), "gave float"),
        (lambda: embed(functions.branin(), 1), "D >= 2"),
        (lambda: embed(functions.branin(), 5, axes=[1, 1]), "different columns"),
        (lambda: embed(functions.branin(), 3, bounds=[(0, 1)] * 3, axes=[0, 1]), "keep"),
        (lambda: rotate(functions.hartmann6(), 5), "D >= 6"),
        (lambda: noisy(functions.branin(), -1.0), "sd >= 0"),
        (lambda: noisy(functions.branin(), {"loss": 1.0}), "by outcome"),
        (lambda: permute(functions.branin(), order=[0, 0]), "every axis"),
        (lambda: shift(functions.branin(), by=[1.0]), "2 numbers"),
        (lambda: Problem("p", [(0, 1)], None), "callable"),  # type: ignore[arg-type]
        (lambda: Problem("p", [(0, 1)], len, budget=0), "budget >= 1"),  # type: ignore[arg-type]
        (lambda: Problem("p", [(0, 1)], len, optimisers=np.ones((1, 3))), "1 values"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused_with_a_message(make: object, words: str) -> None:
    with pytest.raises(alebo.InputError, match=words.replace("(", r"\(")):
        make()  # type: ignore[operator]
