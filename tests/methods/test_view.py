"""What a method sees of a study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import alebo
from alebo.geometry import hypersphere
from alebo.methods import View

GOALS = [alebo.Maximize("gain"), alebo.AtLeast("life", 2.0)]


def study() -> alebo.Optimizer:
    space = alebo.Space([alebo.Int("n", 0, 4), *[alebo.Float(f"x{i}", 0, 1) for i in range(5)]])
    opt = alebo.Optimizer(space, GOALS, method=alebo.methods.Sobol(), seed=0, budget=10)
    for k, t in enumerate(opt.ask(5)):
        if k == 1:
            opt.fail(t.number)
        elif k < 4:
            opt.tell(t.number, {"gain": (float(k), 0.1 * k if k else None), "life": 1.0 + k})
    return opt


def view(opt: alebo.Optimizer, **how: object) -> View:
    return View(opt.history, opt.space, opt.goals, opt.seed, **how)  # type: ignore[arg-type]


def test_completed_trials_their_values_and_noise() -> None:
    seen = view(study())
    assert [t.number for t in seen.trials] == [0, 2, 3]
    assert seen.values.tolist() == [[0.0], [-2.0], [-3.0]]  # minimised
    assert seen.feasible.tolist() == [False, True, True]
    assert np.allclose(seen.variances("gain"), np.square([0.25, 0.2, 0.3]))  # the typical one where none was reported
    assert seen.variances("life") is None
    assert seen.incumbent is not None
    assert seen.incumbent.number == 3


def test_points_are_seen_as_they_are_evaluated() -> None:
    opt = study()
    seen = view(opt, extra=(np.full(6, 0.3),))
    assert np.allclose(seen.X, [opt.space.encode(t.params) for t in seen.trials])
    assert seen.pending.shape == (2, 6)  # trial 4, and the extra one
    assert np.array_equal(seen.pending, opt.space.snap(seen.pending))
    assert seen.plus(np.zeros(6)).pending.shape == (3, 6)


def test_a_point_more_under_way_changes_nothing_of_the_history() -> None:
    seen = view(study())
    known = {name: getattr(seen, name) for name in ("asked", "trials", "X", "values", "feasible", "incumbent")}
    assert seen.pending.shape == (1, 6)
    more = seen.plus(np.zeros(6))
    assert all(more.__dict__[name] is value for name, value in known.items())  # not computed again
    assert more.pending.shape == (2, 6)
    fresh = replace(more)
    assert [np.array_equal(getattr(fresh, name), known[name]) for name in ("X", "values", "feasible")] == [True] * 3


def test_the_budget_and_the_numbers() -> None:
    seen = view(study())
    assert (seen.number, seen.asked) == (5, 5)
    assert seen.ends_within(0.5)
    assert not seen.ends_within(0.4)


def test_from_inside_an_embedding_only_its_own_points_are_seen() -> None:
    opt = study()
    embedding = hypersphere(6, 2, 0).orthonormal()
    assert view(opt).inside(embedding).trials == ()  # Sobol's points lie outside
    x = embedding.up(embedding.domain.sample(1, 0)[0])
    space = alebo.Space.from_bounds([(-1, 1)] * 6)
    told = alebo.Optimizer(space, alebo.Minimize("v"))
    told.tell(dict(zip(space.names, x, strict=True)), 1.0)
    seen = view(told).inside(embedding)
    assert np.allclose(embedding.up(seen.Y), x[None])
    assert seen.domain is embedding.domain
