"""`alebo advise`: how large an embedding, and how likely it contains an optimum."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ._out import out, plain, print_json


def advise(params: int, budget: int, *, active: Sequence[int], as_json: bool) -> None:
    """Print the table of dimension against probability, and the recommendation."""
    import alebo

    advice = alebo.advise(D=params, budget=budget, active=list(active) or None)
    if as_json:
        print_json(plain(dataclasses.asdict(advice)))
    else:
        out().print(str(advice), markup=False, soft_wrap=True)
