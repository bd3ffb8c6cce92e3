"""What is fuzzed: six kinds of input, each with a corpus, its mutations and the code that reads it."""

from __future__ import annotations

import json
import random
import re
import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

import alebo
from alebo import AtMost, Goals, Minimize, Optimizer, Space, Study
from alebo.evaluator import CommandEvaluator
from alebo.methods import METHODS, Method
from alebo.methods._metric import Laplace
from alebo.runner._lines import sealed

from . import mutate

CORPUS = Path(__file__).parent / "corpus"
SPACE = Space.from_dict({"gain": [0.0, 1.0], "n": {"type": "int", "low": 1, "high": 9}, "kind": ["a", "b"]})
GOALS = Goals([Minimize("loss"), AtMost("latency", 10.0)])


class Target(ABC):
    """One kind of input."""

    name: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        paths = sorted((CORPUS / self.name).glob("*"))
        self.seeds = [path.read_bytes() for path in paths if not path.name.startswith("found_")]  # good: to be damaged
        self.found = [path.read_bytes() for path in paths if path.name.startswith("found_")]  # once gave a traceback

    def mutated(self, rng: random.Random) -> bytes:
        """One damaged input."""
        return mutate.damaged_bytes(rng.choice(self.seeds), rng)

    @abstractmethod
    def read(self, data: bytes) -> None:
        """Read the input as the package does; an AleboError means that it was refused."""

    def written(self, name: str, data: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(data)
        return path


class StudyFiles(Target):
    """study.toml."""

    name = "study"

    def mutated(self, rng: random.Random) -> bytes:
        data, kind = rng.choice(self.seeds), rng.randrange(4)
        if kind == 0:
            return super().mutated(rng)
        try:
            text = data.decode()
            return (mutate.damaged_lines(text, rng) if kind == 1 else mutate.damaged_toml(text, rng)).encode()
        except (UnicodeDecodeError, IndexError):
            return super().mutated(rng)

    def read(self, data: bytes) -> None:
        from alebo.studyfile import load

        load(self.written("study.toml", data))


class SavedStudies(Target):
    """The JSON file of Optimizer.save."""

    name = "saved"

    def mutated(self, rng: random.Random) -> bytes:
        data = rng.choice(self.seeds)
        try:
            return mutate.damaged_json(data, rng) if rng.randrange(4) else super().mutated(rng)
        except ValueError:
            return super().mutated(rng)

    def read(self, data: bytes) -> None:
        opt = Optimizer.load(self.written("saved.json", data))
        for t in opt.history:
            assert np.isfinite(t.x).all()
            assert np.abs(t.x).max() <= 1.0 + 1e-9
            assert all(np.isfinite(o.mean) and (o.sem is None or o.sem >= 0.0) for o in t.outcomes.values())
        if opt.method.name == "sobol" and opt.space.dimension < 100:
            opt.ask()
        if len(opt.goals.objectives) == 1:
            opt.best()
        json.dumps(opt.to_dict())


class Journals(Target):
    """The journal of a stored study: damaged bytes, damaged lines, and other content with a right checksum."""

    name = "journal"

    def __init__(self, folder: Path) -> None:
        """Its corpus is made here: a study is opened by the version that began it."""
        super().__init__(folder)
        path = folder / "made.journal"
        with Study.create(path, SPACE, GOALS, method=alebo.methods.Sobol(), seed=1, budget=9) as study:
            for i, trial in enumerate(study.ask(4)):
                if i == 2:
                    study.fail(trial.number, "broken")
                elif i < 3:
                    study.tell(trial.number, {"loss": (0.1 * i, 0.01), "latency": 9.0 + i})
            study.amend(1, {"loss": 0.7, "latency": 3.0})
        data = path.read_bytes()
        self.seeds += [
            data,
            re.sub(rb',"crc":"[0-9a-f]{8}"\}', b"}", data),
        ]  # and as written before there were checksums

    def mutated(self, rng: random.Random) -> bytes:
        data, kind = rng.choice(self.seeds), rng.randrange(3)
        try:
            if kind == 1:
                return mutate.damaged_lines(data.decode(), rng).encode()
            if kind == 2:
                lines = data.splitlines(keepends=True)
                i = rng.randrange(len(lines))
                record = {k: v for k, v in json.loads(lines[i]).items() if k != "crc"}
                lines[i] = sealed(mutate.damaged_data(record, rng))
                return b"".join(lines)
        except (ValueError, AttributeError):
            pass
        return super().mutated(rng)

    def read(self, data: bytes) -> None:
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        path = self.written("s.journal", data)
        with Study.open(path) as study:
            history = study.history
            study.best()
            if len(history) < 50:
                study.ask()


class Notes(Target):
    """What methods have noted in the trials of a saved study; the next ask reads it."""

    name = "notes"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        methods = [alebo.ALEBO(dim=2, initial=3), alebo.ALEBO(dim=2, initial=3, metric=Laplace())]
        methods += [METHODS[name](initial=3) for name in ("bo", "saas-map", "turbo", "baxus", "ebo", "add-gp-ucb")]
        methods += [METHODS[name]() for name in ("cmaes", "random-linebo", "adaptive")]
        self.seeds += [json.dumps(noted(method)).encode() for method in methods]

    def mutated(self, rng: random.Random) -> bytes:
        data = json.loads(rng.choice(self.seeds))
        trial = rng.choice(data["trials"] if rng.randrange(2) else data["trials"][-1:])
        trial["note"] = mutate.damaged_data(trial["note"], rng)
        return json.dumps(data).encode("utf-8", "surrogatepass")

    def read(self, data: bytes) -> None:
        Optimizer.load(self.written("notes.json", data)).ask()


def noted(method: Method) -> dict[str, Any]:
    """A short run with this method as plain data."""
    opt = Optimizer(Space.from_bounds([(-1.0, 1.0)] * 3), Minimize("loss"), method=method, seed=1, budget=99)
    for i in range(9):
        trial = opt.ask()[0]
        opt.tell(trial.number, float(np.square(trial.x - 0.3).sum()) + 0.01 * i)
    return opt.to_dict()


class Sheets(Target):
    """The CSV sheet of `alebo tell --csv`."""

    name = "sheet"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.home = folder / "s.journal"
        self.copy = folder / "copy.journal"
        if not self.home.exists():
            with Study.create(self.home, SPACE, GOALS, method=alebo.methods.Sobol(), seed=0, budget=50) as study:
                study.ask(3)
        self.study = Study.open(self.home)
        self.count = 0

    def mutated(self, rng: random.Random) -> bytes:
        data = rng.choice(self.seeds)
        if rng.randrange(3):
            return super().mutated(rng)
        return mutate.damaged_lines(data.decode("utf-8", "replace"), rng).encode()

    def read(self, data: bytes) -> None:
        from alebo.cli.plan import from_sheet

        self.count += 1
        path = self.written("sheet.csv", data)
        plan = from_sheet(self.study, path, self.count % 2 == 0)
        if self.count % 25 == 0:
            shutil.copy(self.home, self.copy)
            with Study.open(self.copy) as study:
                plan.carry_out(study, None, path)


class Outputs(Target):
    """What a command prints, and what it writes to {outcomes}."""

    name = "output"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.one = CommandEvaluator(("true",), ("loss",))
        self.two = CommandEvaluator(("true",), ("loss", "latency"))

    def read(self, data: bytes) -> None:
        text = data.decode(errors="replace")
        path = self.written("outcomes.json", data)
        refused: alebo.AleboError | None = None
        for evaluator, goals in ((self.one, Goals(Minimize("loss"))), (self.two, GOALS)):
            for given in (lambda e=evaluator: e._from_line(text), lambda e=evaluator: e._from_file(path)):
                try:
                    goals.read(given())
                except alebo.AleboError as error:
                    refused = error
        if refused is not None:
            raise refused


TARGETS: dict[str, type[Target]] = {t.name: t for t in (StudyFiles, SavedStudies, Journals, Notes, Sheets, Outputs)}
