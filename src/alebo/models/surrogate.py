"""What an acquisition function and a diagnosis need of a model. Every model of one outcome implements it; nothing else is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class Marginals(NamedTuple):
    """Posterior means and variances at single points, standardised, under each of p equally likely explanations.

    `back` is the vector-Jacobian product: it takes the derivatives of a number by `mean` and by `variance` and returns
    those by the points, in closed form.
    """

    mean: Tensor  # p x k
    variance: Tensor  # p x k
    back: Callable[[Tensor, Tensor], Tensor]  # (p x k, p x k) -> k x d
