"""Short runs of ALEBO that its tests share."""

from __future__ import annotations

import numpy as np

from alebo import ALEBO, Minimize, Optimizer, Space
from alebo.methods import Sampled, View

BOX = [(-1.0, 1.0)]


def bowl(x):
    return float((x[2] - 0.3) ** 2 + (x[5] + 0.4) ** 2)


def drive(opt, f, n, q=1):
    for _ in range(n):
        for t in opt.ask(q):
            opt.tell(t.number, f(np.array(list(t.params.values()), dtype=float)))
    return opt


def inside(opt, method=None):
    """What the present embedding sees of a study."""
    return (method or opt.method).embedded(View(opt.history, opt.space, opt.goals, opt.seed))


def small(method=None, D=20, budget=None, seed=0, goals=None, space=None):
    return Optimizer(
        space or Space.from_bounds(BOX * D),
        goals or Minimize("v"),
        method=method or ALEBO(dim=4, initial=5, metric=Sampled(samples=4)),
        seed=seed,
        budget=budget,
    )
