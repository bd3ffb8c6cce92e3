"""Seeds are derived, never carried: the only file that touches global random state, and it puts it back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np


def derive(seed: int, *path: int | str) -> int:
    """A 63-bit seed that depends on `seed` and on every step of `path`, in any process and on any machine."""
    text = "/".join([str(int(seed)), *map(str, path)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *path: int | str) -> np.random.Generator:
    """A NumPy generator of its own for this seed and path."""
    return np.random.default_rng(derive(seed, *path))


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """Global Torch randomness seeded and one thread used inside, both as before outside.

    Sums over threads depend on their number; one thread makes the same history give the same point everywhere, and is
    also the fastest for the small matrices met here.
    """
    import torch

    state, threads = torch.get_rng_state(), torch.get_num_threads()
    numpy_state = np.random.get_state()  # noqa: NPY002  (third-party parts draw from it)
    torch.manual_seed(seed % 2**63)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    torch.set_num_threads(1)
    try:
        with _pools().limit(limits=1):  # NumPy's and SciPy's own
            yield
    finally:
        torch.set_rng_state(state)
        np.random.set_state(numpy_state)  # noqa: NPY002
        torch.set_num_threads(threads)


@cache
def _pools() -> Any:
    """The thread pools of the libraries loaded by now: looking for them takes longer than a small ask."""
    import scipy.linalg  # noqa: F401
    import torch  # noqa: F401
    from threadpoolctl import ThreadpoolController  # type: ignore[import-not-found, import-untyped, unused-ignore]

    return ThreadpoolController()
