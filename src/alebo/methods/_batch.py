"""The later points of a batch: outcomes are drawn once, and each point that is chosen is added to the draws."""

from __future__ import annotations

import torch

from .._seeds import derive, generator
from ._maximise import Proposal, Search, begun, maximise
from ._outcomes import OutcomeModels
from ._view import EmbeddedView

THIRDS = 3  # of the draws: each later point is chosen by another share


class Batch:
    """What the points of one batch share: the draws of all outcomes, and the points from which climbs start."""

    def __init__(self, model: OutcomeModels, search: Search, drawn: int, seed: int) -> None:
        """The draws hold the first `drawn` of the points under way."""
        self.model, self.seed = model, seed
        self.shares = [search.draws.share(i, THIRDS) for i in range(THIRDS)]
        self.drawn = [drawn] * THIRDS  # how many of the points under way each share holds
        self.among = search.among[:: 2 if model.constraints and len(model.objectives) == 1 else 1]  # half is enough

    @classmethod
    def after(cls, first: Proposal, model: OutcomeModels, seen: EmbeddedView, seed: int) -> Batch | None:
        """For the points after the first one, which is among those under way by now; None where draws cannot grow."""
        waiting = seen.waiting
        if first.search is not None:
            return cls(model, first.search, len(waiting) - 1, seed)
        search = begun(model, seen, torch.from_numpy(waiting), seed)
        return None if search is None else cls(model, search, len(waiting), seed)

    def next(self, seen: EmbeddedView, i: int) -> Proposal:
        """The i-th point after the first."""
        at, k, waiting = derive(self.seed, i), i % THIRDS, seen.waiting
        self.shares[k] = self.shares[k].plus(waiting[self.drawn[k] :], generator(at, "under way"))
        self.drawn[k] = len(waiting)
        acquisition = self.model.priced(self.shares[k])
        return maximise(acquisition, self.model, seen, at, short=True, among=self.among)
