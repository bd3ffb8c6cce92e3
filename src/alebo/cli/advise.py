"""`alebo advise`: how large an embedding, and how likely it contains an optimum."""

from __future__ import annotations

import dataclasses
from typing import Any

from ._out import out, plain, print_json


def advise(params: int, budget: int, *, seed: int, as_json: bool) -> None:
    """Print the table of dimension against probability, and the recommendation."""
    import alebo

    advice: Any = alebo.advise(D=params, budget=budget, seed=seed)
    if as_json:
        print_json(plain(dataclasses.asdict(advice)))
    else:
        out().print(str(advice), markup=False, soft_wrap=True)
