"""How an embedding changes, and ALEBO as one of several methods that share a history."""

from __future__ import annotations

import json

import numpy as np

from alebo import ALEBO, Optimizer
from alebo.history import State, Trial
from alebo.methods import Growth, Sampled, View
from alebo.methods._growth import Event

from .alebo_runs import bowl, drive, inside, small


class TestEvents:
    def test_an_event_survives_plain_data_and_old_notes_are_read(self):
        for event in (Event("grow", 2, 7), Event("through", 3, 9), Event("towards", 1, 5, ((1.0, 0.0),))):
            assert Event.from_plain(json.loads(json.dumps(event.to_plain(event.at)))) == event
        assert Event.from_plain(["grow", 2, 14]) == Event("grow", 2, 14)

    def test_growth_takes_given_directions_and_resumes_with_them(self, tmp_path):
        wanted = np.zeros((20, 2))
        wanted[[2, 5], [0, 1]] = 1.0
        growth = Growth(start=2, patience=1, threshold=100.0, most=4, directions=lambda seen, k: wanted[:, :k])
        opt = drive(small(ALEBO(initial=3, growth=growth, metric=Sampled(samples=2))), bowl, 8)
        embedding = inside(opt).embedding
        assert embedding.dim == 4
        assert embedding.residual(0.1 * wanted.T).max() < 1e-7
        assert sum(len(e) > 3 for t in opt.history for e in t.note["events"]) == 1  # stored once
        opt.save(tmp_path / "s.json")
        again = Optimizer.load(tmp_path / "s.json", method=opt.method)
        assert np.array_equal(again.ask()[0].x, opt.ask()[0].x)


class TestAsOneArm:
    """Several methods share one history; ALEBO is one of them."""

    def shared(self, others=6, own=6):
        opt = small(ALEBO(initial=4, growth=Growth(start=2), metric=Sampled(samples=2)), budget=60)
        for x in np.random.default_rng(2).uniform(-1, 1, (others, 20)):
            trial = Trial(len(opt.history), opt.space.decode(x), x, x[:5], note={"arm": "other", "events": "not ours"})
            opt.history = opt.history.with_trial(trial)
            opt.tell(trial.number, bowl(x))
        for _ in range(own):
            (point,) = opt.method.propose(self.view(opt), 1)
            x = np.clip(point.x, -1, 1)
            note = {**point.note, "arm": "mine"}
            opt.history = opt.history.with_trial(Trial(len(opt.history), opt.space.decode(x), x, point.y, note=note))
            opt.tell(len(opt.history) - 1, bowl(x) + 3.0)  # worse than what the other arm found
        return opt

    def view(self, opt, **how):
        return View(opt.history, opt.space, opt.goals, opt.seed, arm="mine", **how)

    def test_its_initial_points_are_counted_by_what_it_asked(self):
        opt = self.shared(others=6, own=5)
        first = [t.note for t in opt.history[6:]]
        assert ["log_ei" in note for note in first] == [False] * 4 + [True]
        assert self.view(opt).asked == 5

    def test_the_embedding_takes_in_the_best_point_of_the_others_and_learns_from_it(self):
        opt = self.shared()
        seen = opt.method.embedded(self.view(opt))
        best = min(opt.history[:6], key=lambda t: t.outcomes["v"].mean)
        assert [e.kind for e in seen.events] == ["through"]
        assert seen.events[0].how == best.number
        assert {t.number for t in seen.trials} == {best.number, *range(6, 12)}
        assert np.allclose(seen.embedding.up(seen.Y), [t.x for t in seen.trials], atol=1e-8)

    def test_points_about_to_be_evaluated_count_as_pending(self):
        opt = self.shared()
        (alone,) = opt.method.propose(self.view(opt), 1)
        (apart,) = opt.method.propose(self.view(opt, extra=(alone.x,)), 1)
        assert np.linalg.norm(alone.x - apart.x) > 1e-3
        batch = opt.method.propose(self.view(opt, extra=(alone.x,)), 3)
        assert len(batch) == 3

    def test_a_method_without_a_view_of_its_own_sees_the_others_as_old_data(self):
        opt = self.shared(own=2)
        history = self.view(opt, extra=(np.zeros(20),)).as_history()
        assert [t.asked for t in history] == [False] * 6 + [True] * 2 + [False]
        assert history[-1].state is State.PENDING
        assert all(t.note == {} and t.y is None for t in history[:6])
