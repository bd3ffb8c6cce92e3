"""Random sequences of a study's verbs, by workers that come and go, against a simple model of what must be known."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import alebo
from alebo.methods import Sobol
from alebo.runner import _claims

SPACE = alebo.Space.from_bounds([(-1, 1)] * 3)
VALUES = st.floats(-1e6, 1e6)
WORKERS = st.integers(0, 2)


class StudyMachine(RuleBasedStateMachine):
    """Three workers on one file. The model: the state and the value of every trial, and who evaluates it."""

    budget = 12

    def __init__(self) -> None:
        super().__init__()
        self.lease, _claims.LEASE = _claims.LEASE, -1.0  # a lock that is free means a dead worker, at once
        self.home = tempfile.TemporaryDirectory()
        self.path = Path(self.home.name) / "s.log"
        self.states: list[str] = []
        self.values: dict[int, float] = {}
        self.holder: dict[int, int | None] = {}  # pending trial -> worker; None: asked by hand, -1: its worker is gone
        self.points: dict[int, list[float]] = {}
        self.extra = 0  # points that were never asked

    @initialize()
    def begin(self) -> None:
        self.studies = [self.opened() for _ in range(3)]

    def opened(self) -> alebo.Study:
        return alebo.Study.create(self.path, SPACE, alebo.Minimize("loss"), method=Sobol(), seed=1, budget=self.budget)

    def teardown(self) -> None:
        for study in getattr(self, "studies", ()):
            study.close()
        _claims.LEASE = self.lease
        self.home.cleanup()

    def taken(self, trials: list[alebo.Trial], worker: int | None) -> None:
        for t in trials:
            if t.number == len(self.states):
                self.states.append("pending")
            else:
                assert self.states[t.number] == "pending"
                assert self.holder[t.number] == -1, "a living worker's trial was taken"
                assert t.x.tolist() == self.points[t.number]
            self.points[t.number] = t.x.tolist()
            self.holder[t.number] = worker

    @property
    def free(self) -> int:
        return self.budget - (len(self.states) - self.extra)

    @rule(who=WORKERS, q=st.integers(1, 3))
    def claim(self, who: int, q: int) -> None:
        lost = sum(h == -1 and self.states[n] == "pending" for n, h in self.holder.items())
        expected = min(q, lost) + max(0, min(q - lost, self.free))
        got = self.studies[who].claim(q)
        assert len(got) == expected
        self.taken(got, who)

    @precondition(lambda self: self.free > 0)
    @rule(who=WORKERS)
    def ask(self, who: int) -> None:
        self.taken(self.studies[who].ask(1), None)

    @precondition(lambda self: self.states)
    @rule(who=WORKERS, pick=st.integers(0, 10**6), value=VALUES, fails=st.booleans())
    def finish(self, who: int, pick: int, value: float, fails: bool) -> None:
        """Anybody may finish anything; only the first is accepted."""
        number = pick % len(self.states)
        try:
            if fails:
                self.studies[who].fail(number, "broken")
            else:
                self.studies[who].tell(number, value)
        except alebo.StateError:
            assert self.states[number] != "pending"
            return
        assert self.states[number] == "pending"
        self.states[number] = "failed" if fails else "complete"
        if not fails:
            self.values[number] = value

    @precondition(lambda self: "complete" in self.states)
    @rule(who=WORKERS, pick=st.integers(0, 10**6), value=VALUES)
    def amend(self, who: int, pick: int, value: float) -> None:
        done = [n for n, s in enumerate(self.states) if s == "complete"]
        number = done[pick % len(done)]
        if value != self.values[number]:
            self.studies[who].amend(number, value, reason="the scale was wrong")
            self.values[number] = value

    @rule(who=WORKERS, value=VALUES, x=st.floats(-1, 1))
    def report(self, who: int, value: float, x: float) -> None:
        """A point that was never asked."""
        if self.extra >= 4:
            return
        trial = self.studies[who].tell({"x0": x, "x1": 0.0, "x2": 0.0}, value)
        assert trial.number == len(self.states)
        self.states.append("complete")
        self.values[trial.number] = value
        self.extra += 1

    @rule(who=WORKERS)
    def kill(self, who: int) -> None:
        """The process is gone: its locks go, and nothing else is done. Another one is started."""
        self.studies[who]._storage.claims.close()
        self.gone(who)

    @rule(who=WORKERS)
    def close(self, who: int) -> None:
        self.studies[who].close()
        self.gone(who)

    def gone(self, who: int) -> None:
        self.holder = {n: -1 if h == who else h for n, h in self.holder.items()}
        self.studies[who] = self.opened()

    @rule(size=st.integers(1, 60))
    def tear(self, size: int) -> None:
        """A foreign writer died in the middle of a line."""
        line = self.path.read_bytes().splitlines()[-1]
        with open(self.path, "ab") as file:
            file.write(line[:size])

    @rule(place=st.floats(0, 1), bit=st.integers(0, 7))
    def flip(self, place: float, bit: int) -> None:
        """One bit of a line that a completed trial or the study depends on; the next opening heals it."""
        data = bytearray(self.path.read_bytes())
        lines = bytes(data).split(b"\n")[:-1]
        done = [i for i, x in enumerate(lines) if b'"told"' in x[:200] or b'"outcomes"' in x[:200]]
        if not done:
            return
        i = done[int(place * (len(done) - 1))]
        start = sum(len(x) + 1 for x in lines[:i])
        data[start + int(place * 1e4) % len(lines[i])] ^= 1 << bit
        self.path.write_bytes(data)
        for who in range(3):
            self.studies[who]._storage.claims.close()
            self.gone(who)

    @rule(who=WORKERS)
    def delete_lock_file(self, who: int) -> None:
        for suffix in (".claims", ".lock"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        for study in self.studies:
            study._storage.claims.renew()  # as each of them does every two seconds

    @invariant()
    def everything_acknowledged_is_there(self) -> None:
        if not hasattr(self, "studies"):
            return
        for study in (*self.studies, self.opened()):
            history: Any = study.history
            assert [t.number for t in history] == list(range(len(self.states)))
            assert [t.state.value for t in history] == self.states
            assert {t.number: t.outcomes["loss"].mean for t in history.complete} == self.values
            asked = [t.x.tolist() for t in history if t.asked]
            assert len(asked) <= self.budget
            assert len({tuple(x) for x in asked}) == len(asked)
