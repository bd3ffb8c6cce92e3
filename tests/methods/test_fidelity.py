"""Cost and fidelity: wrappers that keep constraints, objectives and pending points."""

from __future__ import annotations

import numpy as np
import pytest

import alebo
from alebo import ALEBO, AtMost, Float, Int, Minimize, Optimizer, Space
from alebo.methods import Growth, Sampled

from .alebo_runs import bowl, inside, small


class TestCost:
    def test_cheap_points_are_preferred(self):
        goals = [Minimize("v"), alebo.Cost("seconds")]
        opt = small(goals=goals)
        for _ in range(14):
            t = opt.ask()[0]
            opt.tell(t.number, {"v": bowl(t.x), "seconds": float(np.exp(4.0 * t.x[9]))})
        later = [t.outcomes["seconds"].mean for t in opt.history[6:]]
        assert np.median(later) < 1.0

    def test_the_unit_of_the_cost_does_not_make_the_embedding_grow(self):
        dims = []
        for unit in (1.0, 1e6):
            opt = small(ALEBO(initial=4, growth=Growth(start=2, patience=1), metric=Sampled(samples=2)), budget=40,
                        goals=[Minimize("v"), alebo.Cost("seconds")])  # fmt: skip
            for _ in range(9):
                t = opt.ask()[0]
                opt.tell(t.number, {"v": bowl(t.x), "seconds": unit * (2.0 + float(t.x[0]))})
            dims.append([t.note["dim"] for t in opt.history])
        assert dims[0] == dims[1]


class TestFidelity:
    space = Space([Float(f"x{i}", -1, 1) for i in range(20)] + [alebo.Fidelity("epochs", 1, 100, log=True)])

    def evaluate(self, params):
        x = np.array([params[f"x{i}"] for i in range(20)])
        return bowl(x) + 0.3 * (1 - np.log(params["epochs"]) / np.log(100)) * np.sin(3 * x[2])

    def test_cheap_looks_first_and_the_best_is_judged_at_the_target(self):
        found = []
        for seed in range(3):
            opt = Optimizer(
                self.space,
                Minimize("v"),
                method=ALEBO(dim=4, initial=6, metric=Sampled(samples=4)),
                seed=seed,
                budget=24,
            )
            for _ in range(24):
                t = opt.ask()[0]
                opt.tell(t.number, self.evaluate(t.params))
            assert sum(t.params["epochs"] for t in opt.history) < 0.6 * 24 * 100
            best = opt.best()
            assert best.params["epochs"] == pytest.approx(100.0)
            found.append(best.outcomes["v"].mean)
        assert np.median(found) < 0.1  # the centre has 0.25

    def test_it_keeps_an_axis_of_its_own_also_when_the_embedding_grows(self):
        method = ALEBO(
            initial=3, growth=Growth(start=3, patience=1, threshold=100.0, most=8), metric=Sampled(samples=2)
        )
        opt = Optimizer(self.space, Minimize("v"), method=method, seed=0)
        for _ in range(8):
            t = opt.ask()[0]
            opt.tell(t.number, self.evaluate(t.params))
        embedding = inside(opt).embedding
        assert embedding.dim > 4
        at = self.space.fidelity[0]
        assert np.allclose(embedding.A[at], np.eye(embedding.dim)[0])
        assert np.allclose(np.delete(embedding.A, at, axis=0)[:, 0], 0.0)

    def goes_on(self, goals, outcomes, *, n=14, q=1, space=None, seed=0):
        opt = Optimizer(
            space or self.space, goals, method=ALEBO(dim=4, initial=6, metric=Sampled(samples=4)), seed=seed
        )
        while len(opt.history) < n:
            for t in opt.ask(q):
                opt.tell(t.number, outcomes(t.params))
        return opt

    def test_it_keeps_constraints(self):
        def share(goals):
            opt = self.goes_on(goals, lambda p: measured(p, goals), n=12)
            return np.mean([limit(t.params) <= 0.0 for t in opt.history[6:]])

        def limit(params):
            return -0.1 - params["x2"] - params["x5"]

        def measured(params, goals):
            return {"v": params["x2"]} | ({"c": limit(params)} if len(goals) > 1 else {})

        assert share([Minimize("v"), AtMost("c", 0.0)]) > share([Minimize("v")]) + 0.3

    def test_it_keeps_several_objectives(self):
        goals = [Minimize("a"), Minimize("b")]
        opt = self.goes_on(goals, lambda p: {"a": (p["x2"] - 0.5) ** 2, "b": (p["x2"] + 0.5) ** 2}, n=12)
        assert len(opt.front()) >= 1

    def test_it_keeps_pending_points_and_a_batch_has_its_share_of_careful_looks(self):
        opt = self.goes_on([Minimize("v")], self.evaluate, n=25, q=5)
        X = np.stack([t.x for t in opt.history])
        assert len(np.unique(X.round(6), axis=0)) == 25
        careful = [t.params["epochs"] == pytest.approx(100.0) for t in opt.history[10:]]
        assert sum(careful) >= 3

    def test_whole_numbers_have_careful_looks_too(self):
        space = Space([Float(f"x{i}", -1, 1) for i in range(8)] + [Int("n", 0, 5), alebo.Fidelity("level", 0.1, 1.0)])
        opt = self.goes_on([Minimize("v")], lambda p: p["x2"] ** 2 + p["n"] + 1 - p["level"], n=20, space=space)
        assert [opt.history[i].params["level"] for i in (9, 14, 19)] == pytest.approx([1.0] * 3)

    @pytest.mark.parametrize("name", sorted(set(alebo.methods.METHODS) - {"alebo", "adaptive"}))
    def test_other_methods_refuse_it_before_the_first_evaluation(self, name):
        with pytest.raises(alebo.InputError, match=r"a Fidelity parameter; got 'epochs'.*make it Fixed"):
            Optimizer(self.space, Minimize("v"), method=alebo.methods.METHODS[name]())

    def test_one_at_most(self):
        with pytest.raises(alebo.InputError, match="One Fidelity"):
            Space([Float("x", 0, 1), alebo.Fidelity("a", 1, 2), alebo.Fidelity("b", 1, 2)])

    def test_a_space_with_one_survives_saving(self):
        assert Space.from_dict(self.space.to_dict()) == self.space
