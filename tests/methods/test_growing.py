"""ALEBO's embedding grows on evidence, within its limits, and a settled run no longer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from alebo import ALEBO, AtMost, Minimize, Optimizer, Space
from alebo.methods import Growth, Sampled

from .alebo_runs import BOX, bowl, drive, inside, small


class TestGrowing:
    def test_it_grows_when_the_subspace_is_exhausted_and_old_data_stay_exact(self):
        opt = drive(
            small(ALEBO(initial=4, growth=Growth(start=2, patience=3), metric=Sampled(samples=3)), budget=40), bowl, 24
        )
        dims = [t.note["dim"] for t in opt.history]
        assert dims[0] == 2
        assert dims[-1] > 2
        assert dims == sorted(dims)
        seen = inside(opt)
        embedding, trials, Y = seen.embedding, seen.trials, seen.Y
        assert len(trials) == 24
        for t, y in zip(trials, Y, strict=True):
            assert np.allclose(embedding.up(y), t.x, atol=1e-9)

    def test_resume_after_growth_is_exact(self, tmp_path):
        opt = drive(
            small(ALEBO(initial=4, growth=Growth(start=2, patience=3), metric=Sampled(samples=3)), budget=40), bowl, 18
        )
        opt.save(tmp_path / "s.json")
        assert np.array_equal(Optimizer.load(tmp_path / "s.json").ask()[0].x, opt.ask()[0].x)

    def test_it_never_grows_beyond_the_space_or_its_limit(self):
        method = ALEBO(
            initial=3, growth=Growth(start=2, patience=1, threshold=100.0, most=6), metric=Sampled(samples=2)
        )
        assert drive(small(method, D=5), bowl_5, 12).history[-1].note["dim"] == 5
        assert drive(small(method, D=20), bowl, 10).history[-1].note["dim"] == 6

    @pytest.mark.parametrize(
        ("shape", "grows"),
        [
            (lambda v: np.round(4.0 * v), True),  # a point on a step that another point was on
            (lambda v: min(v, 0.1), False),  # one value for all that is bad
        ],
    )
    def test_a_function_with_steps_makes_it_grow(self, shape, grows):
        method = ALEBO(initial=4, growth=Growth(start=2, threshold=-1e9, patience=100), metric=Sampled(samples=2))
        values = []

        def f(x):
            values.append(float(shape(bowl(x))))
            return values[-1]

        opt = drive(small(method, D=20, budget=40), f, 14)
        assert (opt.history[-1].note["dim"] > 2) is grows
        assert len(set(values)) < len(values)

    def test_the_last_fifth_of_a_budget_grows_no_more(self):
        method = ALEBO(
            initial=3, growth=Growth(start=2, step=1, patience=1, threshold=100.0), metric=Sampled(samples=2)
        )
        dims = [t.note["dim"] for t in drive(small(method, D=20, budget=10), bowl, 10).history]
        assert dims[7] > dims[3]
        assert dims[8] == dims[9] == dims[7]
        on = drive(small(replace(method, settle=0.0), D=20, budget=10), bowl, 10).history
        assert on[9].note["dim"] > dims[9]

    def test_settling_trusts_the_mean(self):
        """With the budget nearly spent the proposal has a better predicted mean than log-EI's own."""
        means = []
        for settle in (1.0, 0.0):
            opt = drive(small(ALEBO(dim=3, initial=8, settle=0.0, metric=Sampled(samples=4)), budget=12), bowl, 11)
            method = replace(opt.method, settle=settle)
            y = method.suggest(opt.history, opt.space, opt.goals, 1, 0)[0].y
            model = method.surrogate(inside(opt, method))
            means.append(float(model.objectives[0].moments(torch.from_numpy(y)[None, None])[0]))
        assert means[0] > means[1]  # BoTorch maximises

    @pytest.mark.parametrize("what", ["a constraint", "reported noise", "pending points"])
    def test_settling_leaves_other_proposals_as_they_are(self, what):
        """As its meaning says: the mean is trusted only where one noiseless objective is all there is."""
        goals = [Minimize("value"), AtMost("g", 0.5)] if what == "a constraint" else Minimize("value")
        method = ALEBO(dim=3, initial=8, settle=0.0, metric=Sampled(samples=4))
        opt = Optimizer(Space.from_bounds(BOX * 12), goals, method=method, seed=0, budget=14)
        for _ in range(11):
            (trial,) = opt.ask()
            value = bowl(trial.x)
            outcomes = {"value": (value, 0.1) if what == "reported noise" else value}
            opt.tell(trial.number, outcomes | ({"g": trial.x[0]} if what == "a constraint" else {}))
        if what == "pending points":
            opt.ask()
        first, second = (
            replace(method, settle=settle).suggest(opt.history, opt.space, opt.goals, 1, 0)[0].y
            for settle in (1.0, 0.0)
        )
        assert np.array_equal(first, second)

    def test_the_first_dimension_follows_the_budget(self):
        dims = [small(ALEBO(), D=100, budget=b).ask()[0].note["dim"] for b in (10, 50, 100, 200, 1000)]
        assert dims == [2, 4, 6, 11, 15]

    def test_a_fixed_dimension_stays(self):
        opt = drive(small(ALEBO(dim=3, initial=4, metric=Sampled(samples=2))), bowl, 10)
        assert {t.note["dim"] for t in opt.history} == {3}


def bowl_5(x):
    return float((x[2] - 0.3) ** 2 + (x[4] + 0.4) ** 2)


@pytest.mark.parametrize(("alone_value", "grows"), [(-1.0, False), (-20.0, True)])
def test_points_that_wait_do_not_make_the_embedding_grow(monkeypatch, alone_value, grows):
    opt = drive(small(ALEBO(initial=4, growth=Growth(start=2, threshold=-12.0), metric=Sampled(samples=2))), bowl, 8)
    waiting = opt.ask()[0]
    assert waiting.note["dim"] == 2
    maximise = ALEBO._maximise

    def low(self, model, seen, *path, alone=False, **how):
        found = maximise(self, model, seen, *path, alone=alone, **how)
        return found._replace(value=-20.0 if len(seen.waiting) and not alone else alone_value)

    monkeypatch.setattr(ALEBO, "_maximise", low)
    assert (opt.ask()[0].note["dim"] > 2) is grows


@pytest.mark.parametrize("patience", [2, 5])
def test_no_second_growth_within_patience(patience):
    growth = Growth(start=2, step=1, patience=patience, threshold=100.0)  # always exhausted
    opt = drive(small(ALEBO(initial=3, growth=growth, metric=Sampled(samples=2)), budget=60), bowl, 3 * patience + 4)
    grown = [e[2] for e in opt.history[-1].note["events"]]
    assert len(grown) >= 2
    assert (np.diff(grown) == patience).all()
