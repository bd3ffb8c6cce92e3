"""What a stored study says about its trials: when they were evaluated, and which parameters Optuna shows by name."""

from __future__ import annotations

from pathlib import Path

import pytest

import alebo
from alebo import InputError, Minimize, Space, State
from alebo.runner._records import shown


def study(path: Path, method: alebo.methods.Method) -> alebo.Study:
    return alebo.Study.create(path / "s.log", Space.from_bounds([(0, 1)] * 40), Minimize("v"), method=method, budget=9)


def test_spans_of_claimed_trials(tmp_path: Path) -> None:
    with study(tmp_path, alebo.methods.Sobol()) as s:
        one, two = s.claim(2)
        s.ask()  # by hand: no worker, no span
        s.tell(one.number, 1.0)
        s.fail(two.number, "broken")
        third = s.claim(1)[0]
        spans = s.spans()
    assert [(p.number, p.state) for p in spans] == [
        (one.number, State.COMPLETE),
        (two.number, State.FAILED),
        (third.number, State.PENDING),
    ]
    assert all(p.end is not None and p.end >= p.start for p in spans[:2])
    assert spans[2].end is None
    assert len({p.worker for p in spans}) == 1


def test_named_parameters_stand_beside_the_embedded_ones(tmp_path: Path) -> None:
    with study(tmp_path, alebo.ALEBO(dim=2)) as s:
        first = s.ask()[0]
        s.show_by_name(["x3", "x17"])
        later = s.ask()[0]
        assert set(shown(first, s.space)[0]) == {"y0", "y1"}
        stored = {t.number: t.params for t in s._storage.trials()}
        assert set(stored[first.number]) == {"y0", "y1"}
        assert set(stored[later.number]) == {"y0", "y1", "x3", "x17"}
        assert stored[later.number]["x3"] == later.params["x3"]
        with pytest.raises(InputError, match="parameters of the space"):
            s.show_by_name(["nothing"])
        assert s.history[later.number].params == later.params
