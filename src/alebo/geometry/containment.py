"""The chance that a random embedding contains an optimum (paper, Sec. 5 and Supplement S5).

Letters as in the paper: D parameters, of which `active` = d matter; an embedding of `dim` = d_e. The function is
f(x) = f_d(T x) with optimum z*, so that every x with T x = z* is optimal. A prior over (T, z*) says where they lie.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._errors import InputError, StudyError
from .._seeds import generator
from .embedding import Embedding
from .section import section

Array: TypeAlias = NDArray[np.float64]
Prior: TypeAlias = Callable[[np.random.Generator, int, int], tuple[ArrayLike, ArrayLike]]
Cell: TypeAlias = tuple[str, int, int, int]  # kind, D, active, dim


def contains_optimum(embedding: Embedding, T: ArrayLike, z: ArrayLike) -> bool:
    """Whether some point of `embedding` inside the cube satisfies T x = z.  (d x D, d)

    Args:
        embedding: The embedding.
        T: The map to the true subspace.  d x D
        z: The optimum in it.  d

    Returns:
        Whether the embedding contains an optimum.

    >>> import alebo
    >>> T = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]                       # the first two of three parameters matter
    >>> alebo.contains_optimum(alebo.geometry.identity(3), T, [0.3, -0.9])
    True
    """
    T_, z_ = _checked(T, z, embedding.D, None, "T and z")
    found = section(embedding.A, embedding.x0, T_, z_)
    return found is not None and found.meets_cube()


# --- priors over the true subspace and the optimum in it


def axis_aligned(rng: np.random.Generator, D: int, active: int) -> tuple[Array, Array]:
    """`active` of the D parameters matter, and their optimum is uniform in their box: the paper's prior."""
    T = np.zeros((active, D))
    T[np.arange(active), rng.choice(D, active, replace=False)] = 1.0
    return T, rng.uniform(-1.0, 1.0, active)


def random_rotation(rng: np.random.Generator, D: int, active: int) -> tuple[Array, Array]:
    """The first rows of a random rotation (the paper's random-subspace problem), and z = T x for x uniform in the cube.

    So an optimum always exists in the cube, and each coordinate of z has variance 1/3 as under `axis_aligned`.
    """
    Q, R = np.linalg.qr(rng.standard_normal((D, active)))
    T = (Q * np.sign(np.diag(R))).T  # the signs make it uniform (Stewart 1980)
    return T, T @ rng.uniform(-1.0, 1.0, D)


PRIORS: dict[str, Prior] = {"axis": axis_aligned, "rotation": random_rotation}


# --- random subspaces: a matrix whose columns span it. Any basis will do, so the pseudo-inverse is saved


def _hypersphere(rng: np.random.Generator, D: int, dim: int) -> Array:
    A = rng.standard_normal((D, dim))
    A /= np.sqrt(np.einsum("ij,ij->i", A, A))[:, None]
    return A


def _gaussian(rng: np.random.Generator, D: int, dim: int) -> Array:
    return rng.standard_normal((D, dim))


def _hesbo(rng: np.random.Generator, D: int, dim: int) -> Array:
    A = np.zeros((D, dim))
    A[np.arange(D), rng.integers(dim, size=D)] = rng.choice([-1.0, 1.0], size=D)
    return A


KINDS: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    "hypersphere": _hypersphere,
    "gaussian": _gaussian,
    "hesbo": _hesbo,
}


@dataclass(frozen=True)
class Containment:
    """An estimated probability of containment, with its 95 % interval and, where one is known, the exact value."""

    kind: str
    D: int
    active: int
    dim: int
    prior: str
    seed: int
    samples: int
    hits: int

    @property
    def value(self) -> float:
        return self.hits / self.samples

    @property
    def standard_error(self) -> float:
        return math.sqrt(self.value * (1.0 - self.value) / self.samples)

    @property
    def low(self) -> float:
        return self._wilson()[0]

    @property
    def high(self) -> float:
        return self._wilson()[1]

    def _wilson(self) -> tuple[float, float]:
        # Wilson's interval: unlike value +- 2 standard errors it has a width at 0 and 1
        z, n, p = 1.959963984540054, self.samples, self.value
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        low = 0.0 if self.hits == 0 else middle - half
        return low, 1.0 if self.hits == n else middle + half

    @property
    def exact(self) -> float | None:
        """The closed form where there is one: HeSBO under the axis-aligned prior (paper, Supplement S1), or dim = D."""
        if self.kind == "hesbo" and self.prior == "axis":
            return hesbo_probability(self.active, self.dim)
        if self.dim == self.D and self.kind in ("hypersphere", "gaussian") and self.prior in PRIORS:
            return 1.0
        return None

    def __str__(self) -> str:
        exact = "" if self.exact is None else f", exactly {self.exact:.3f}"
        return (
            f"{self.kind}, D={self.D}, {self.active} active, dim={self.dim}: {self.value:.3f} "
            f"(95 %: {self.low:.3f} to {self.high:.3f}; {self.samples} draws{exact})"
        )


def hesbo_probability(active: int, dim: int) -> float:
    """d_e! / ((d_e - d)! d_e^d): no two active parameters share a coordinate of HeSBO's (paper, Supplement S1)."""
    return math.prod((dim - i) / dim for i in range(active))


def containment_probability(
    kind: str,
    *,
    D: int,
    active: int,
    dim: int,
    samples: int = 1000,
    seed: int = 0,
    prior: str | Prior = "axis",
    progress: Callable[[int, int], None] | None = None,
) -> Containment:
    """The chance that an embedding of this kind and size contains an optimum, over draws of both it and `prior`.

    `prior` is "axis" (the paper's), "rotation", or any function (rng, D, active) -> (T, z). `progress` is called
    with (draws done, draws in all). Draw i depends on the seed, the cell and i alone: more samples extend fewer.

    Args:
        kind: Of embedding: "hypersphere", "gaussian" or "hesbo".
        D: How many parameters there are.
        active: How many of them matter.
        dim: The dimension of the embedding.
        samples: How many draws.
        seed: Of the draws.
        prior: "axis", "rotation", or a function (rng, D, active) -> (T, z).
        progress: Called with (draws done, draws in all).

    Returns:
        The probability with its 95 % interval.

    >>> import alebo
    >>> print(alebo.containment_probability("hesbo", D=100, active=2, dim=4, samples=400))
    hesbo, D=100, 2 active, dim=4: 0.730 (95 %: 0.684 to 0.771; 400 draws, exactly 0.750)
    """
    draw = _check_cell(kind, D, active, dim)
    samples = _whole(samples, "samples")
    name, prior_ = _named(prior)
    hits, beat = 0, max(1, samples // 100)
    for i in range(samples):
        rng = generator(seed, "containment", kind, D, active, dim, i)
        A = draw(rng, D, dim)
        T, z = _checked(*_pair(prior_(rng, D, active)), D, active, f"The prior {name!r}")
        found = section(A, np.zeros(D), T, z)
        hits += found is not None and found.meets_cube()
        if progress is not None and ((i + 1) % beat == 0 or i + 1 == samples):
            progress(i + 1, samples)
    return Containment(kind, D, active, dim, name, int(seed), samples, hits)


def containment_sweep(
    cells: Iterable[Cell],
    *,
    path: str | os.PathLike[str] | None = None,
    samples: int = 1000,
    seed: int = 0,
    prior: str | Prior = "axis",
    progress: Callable[[int, int, Containment], None] | None = None,
) -> list[Containment]:
    """`containment_probability` of many (kind, D, active, dim), kept in the file `path` and resumed from it.

    The file has one line of JSON per finished cell; a line torn by an interruption is dropped and its cell done again.

    Args:
        cells: (kind, D, active, dim) of each.
        path: The file; None: nothing is kept.
        samples: How many draws for each cell.
        seed: Of the draws.
        prior: As in `containment_probability`.
        progress: Called with (cells done, cells in all, the last one).

    Returns:
        One result for each cell, in order.
    """
    cells = [(str(k), int(D), int(a), int(d)) for k, D, a, d in cells]
    samples = _whole(samples, "samples")
    for cell in cells:
        _check_cell(*cell)
    name, _ = _named(prior)
    if path is not None and name not in PRIORS and "<" in name:
        raise InputError(
            f"A sweep kept in a file knows its prior by name; got {name!r}. Define the prior as a function with a name."
        )
    file = None if path is None else Path(path)
    known = {} if file is None else {_key(c): c for c in _read(file)}
    done = []
    for number, (kind, D, active, dim) in enumerate(cells, 1):
        found = known.get((kind, D, active, dim, name, int(seed), samples))
        if found is None:
            found = containment_probability(kind, D=D, active=active, dim=dim, samples=samples, seed=seed, prior=prior)
            if file is not None:
                with file.open("a") as f:
                    f.write(json.dumps(asdict(found)) + "\n")
        done.append(found)
        if progress is not None:
            progress(number, len(cells), found)
    return done


def _read(file: Path) -> list[Containment]:
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        return []
    text = file.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        file.write_text(whole)  # the torn end of a line would spoil the next one
    try:
        return [Containment(**json.loads(line)) for line in whole.splitlines() if line.strip()]
    except (ValueError, TypeError) as error:
        raise StudyError(
            f"A sweep's file has one containment cell per line; {file} does not ({error}). Name another file."
        ) from error


def _key(c: Containment) -> tuple[str, int, int, int, str, int, int]:
    return c.kind, c.D, c.active, c.dim, c.prior, c.seed, c.samples


# --- checks


def _check_cell(kind: str, D: int, active: int, dim: int) -> Callable[[np.random.Generator, int, int], Array]:
    if kind not in KINDS:
        raise InputError(f"`kind` is one of {', '.join(KINDS)}; got {kind!r}.")
    D, active, dim = _whole(D, "D"), _whole(active, "active"), _whole(dim, "dim")
    if dim > D:
        raise InputError(
            f"`dim <= D` must hold; got dim={dim}, D={D}. Choose a dim of at most the number of parameters."
        )
    if active > dim:
        raise InputError(
            f"`active <= dim` must hold; got active={active}, dim={dim}. A smaller embedding contains an optimum only "
            "by accident; choose a dim of at least the number of active variables."
        )
    return KINDS[kind]


def _whole(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"`{name}` is a whole number of at least 1; got {value!r}.")
    return int(value)


def _named(prior: str | Prior) -> tuple[str, Prior]:
    if callable(prior):
        for name, known in PRIORS.items():
            if prior is known:
                return name, known
        return getattr(prior, "__qualname__", type(prior).__name__), prior
    if prior not in PRIORS:
        raise InputError(
            f"`prior` is one of {', '.join(PRIORS)}, or a function (rng, D, active) -> (T, z); got {prior!r}."
        )
    return prior, PRIORS[prior]


def _pair(drawn: object) -> tuple[ArrayLike, ArrayLike]:
    if not isinstance(drawn, tuple | list) or len(drawn) != 2:
        raise InputError(f"A prior returns the pair (T, z); got {type(drawn).__name__}.")
    return drawn[0], drawn[1]


def _checked(T: ArrayLike, z: ArrayLike, D: int, active: int | None, who: str) -> tuple[Array, Array]:
    try:
        T_, z_ = np.asarray(T, dtype=float), np.asarray(z, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{who} must be arrays of numbers, T of shape (d, {D}) and z of shape (d,); {error}."
        ) from error
    d = len(T_) if active is None and T_.ndim == 2 else active
    if T_.shape != (d, D) or z_.shape != (d,) or not d:
        rows = "d" if active is None else str(active)
        raise InputError(
            f"{who} must have the shapes ({rows}, {D}) for T and ({rows},) for z; got {T_.shape} and {z_.shape}."
        )
    if not (np.isfinite(T_).all() and np.isfinite(z_).all()):
        raise InputError(f"{who} must be finite; got NaN or infinity.")
    return T_, z_
