"""Task: the data of an earlier study as a later one sees them, plain and complete, so that it can be stored with it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._errors import StudyError

Array: TypeAlias = NDArray[np.float64]

DIGITS = 9  # significant digits of stored coordinates and outcomes: a file of 300 x 100 numbers has 0.4 MB


@dataclass(frozen=True, eq=False)
class Task:
    """An earlier study: points of the present cube and what was measured there.

    Attributes:
        name: what people call it.
        X: n x D points of the cube of the present study.
        means: by outcome of the present study, n values; only those outcomes that were measured there.
        sems: by outcome, n standard errors, nan where none was reported; only those with some.
        said: what was left out or changed when it was read, in words.
        embedding: the seed and the note of the embedding in which it was searched, where it was and the cube is the same.
        kernels: by the name of a model ("objective 0"), the process that was fitted to it once.
    """

    name: str
    X: Array  # n x D
    means: Mapping[str, Array]
    sems: Mapping[str, Array] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    embedding: Mapping[str, Any] | None = None
    kernels: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def digest(self) -> str:
        """A short name for its data: the same data have the same one in any process."""
        data = {k: v for k, v in self.to_dict().items() if k in ("X", "means", "sems")}
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]

    def rounded(self) -> Task:
        """The same as it will be after it was written and read."""
        return Task.from_dict(self.to_dict())

    def fitted(self, kernels: Mapping[str, Mapping[str, Any]]) -> Task:
        """The same with these processes."""
        return replace(self, kernels=kernels)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, rounded to `DIGITS`."""
        return {
            "name": self.name,
            "X": [[_short(v) for v in row] for row in self.X],
            "means": {k: [_short(v) for v in values] for k, values in self.means.items()},
            "sems": {k: [None if math.isnan(v) else _short(v) for v in values] for k, values in self.sems.items()},
            "said": list(self.said),
            "embedding": None if self.embedding is None else dict(self.embedding),
            "kernels": {k: dict(v) for k, v in self.kernels.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Task:
        """The task that `to_dict` wrote; anything else is refused."""
        try:
            X = np.array(data["X"], dtype=float)
            means = {str(k): np.array(v, dtype=float) for k, v in data["means"].items()}
            sems = {
                str(k): np.array([math.nan if s is None else s for s in v], dtype=float)
                for k, v in data["sems"].items()
            }
            good = X.ndim == 2 and np.isfinite(X).all() and np.abs(X).max(initial=0.0) <= 10.0
            good &= all(v.shape == (len(X),) and np.isfinite(v).all() for v in means.values())
            good &= all(v.shape == (len(X),) and not (v < 0).any() for v in sems.values())
            kernels = {str(k): _kernel(v, X.shape[1]) for k, v in data["kernels"].items()}
            embedding = None if data["embedding"] is None else dict(data["embedding"])
            said = tuple(map(str, data["said"]))
            if not good:
                raise ValueError("points, outcomes or errors that do not fit each other")
            return cls(str(data["name"]), X, means, sems, said, embedding, kernels)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise StudyError(
                f"A stored source holds points, outcomes and fitted kernels; this one does not ({error!r:.120}). "
                "Use a backup of the study."
            ) from None


def _kernel(data: Mapping[str, Any], D: int) -> dict[str, Any]:
    """A fitted process as plain data, checked."""
    numbers = {k: float(data[k]) for k in ("variance", "noise", "mean")}
    lengthscales = [float(v) for v in data["lengthscales"]]
    if data["kernel"] not in ("rbf", "matern") or len(lengthscales) != D or min(lengthscales, default=1.0) <= 0.0:
        raise ValueError(f"a kernel of {D} lengthscales")
    if (
        not all(map(math.isfinite, [*numbers.values(), *lengthscales]))
        or min(numbers["variance"], numbers["noise"]) <= 0
    ):
        raise ValueError("a kernel of finite numbers")
    return {"kernel": str(data["kernel"]), "lengthscales": lengthscales, **numbers}


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
