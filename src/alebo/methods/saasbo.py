"""SAASBO: Bayesian optimization in the full space under a prior that most parameters do not matter.

Eriksson and Jankowiak 2021. `SAASBO` averages over NUTS samples of the lengthscales, as its authors do; `SAASMAP` takes the
most probable ones and costs a hundredth. Both differ from plain BO by the prior only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._errors import MissingPartError
from ..goals import Goals
from ..history import Trial
from ._method import Supports, setting
from .bo import FullSpace, outcome_model

if TYPE_CHECKING:
    from ._ard import Priors
    from ._gp import GP, OutcomeModel

Array: TypeAlias = NDArray[np.float64]

SHRINKAGES = (1.0, 0.1, 0.01, 0.001)  # of the inverse squared lengthscales: the grid of SAASMAP


@dataclass(frozen=True)
class SAASMAP(FullSpace):
    """The sparse prior at its most probable lengthscales: the fast variant, for which the shrinkage is cross-validated."""

    initial: int | None = setting(None, "quasi-random points first; None: twice the dimension, at most 20")

    name: ClassVar[str] = "saas-map"
    title: ClassVar[str] = "SAAS-MAP"
    citation: ClassVar[str] = (
        "Eriksson and Jankowiak 2021, High-dimensional BO with sparse axis-aligned subspaces (MAP)"
    )
    supports: ClassVar[Supports] = Supports(constraints=True)

    def __post_init__(self) -> None:
        self._counts(initial=2)

    def models(self, X: Array, history: Sequence[Trial], goals: Goals, seed: int) -> Sequence[OutcomeModel]:
        return [outcome_model(X, history, goals, fit_map)]


@dataclass(frozen=True)
class SAASBO(FullSpace):
    """The sparse prior, averaged over samples of its posterior drawn by NUTS.

    Needs the extra `saas` (NumPyro); takes minutes an iteration where SAASMAP takes a second.
    """

    initial: int | None = setting(None, "quasi-random points first; None: twice the dimension, at most 20")
    warmup: int = setting(256, "steps of NUTS before any sample")
    samples: int = setting(128, "of the posterior drawn by NUTS")
    thinning: int = setting(16, "every so many samples one is kept")

    name: ClassVar[str] = "saasbo"
    title: ClassVar[str] = "SAASBO"
    citation: ClassVar[str] = "Eriksson and Jankowiak 2021, High-dimensional BO with sparse axis-aligned subspaces"
    supports: ClassVar[Supports] = Supports(constraints=True)

    def __post_init__(self) -> None:
        self._counts(initial=2, warmup=1, samples=1, thinning=1)

    def models(self, X: Array, history: Sequence[Trial], goals: Goals, seed: int) -> Sequence[OutcomeModel]:
        drawn: list[list[GP]] = []  # one list an outcome, each with the same number of samples

        def draw(X: Array, y: Array, variance: Array | None) -> GP:
            drawn.append(self._nuts(X, y, variance, seed + len(drawn)))
            return drawn[-1][0]

        first = outcome_model(X, history, goals, draw)
        made = type(first)
        import torch

        Z = torch.as_tensor(X)
        out = []
        for objective, *constraints in zip(*drawn, strict=True):
            feasible = np.array([goals.feasible(t.outcomes) for t in history])
            best = float(objective.posterior(Z)[0].numpy()[feasible].min()) if feasible.any() else None
            out.append(made(objective, tuple(constraints), best))
        return out

    def _nuts(self, X: Array, y: Array, variance: Array | None, seed: int) -> list[GP]:
        """One process for every kept sample of the posterior."""
        try:
            import_module("numpyro")
        except ImportError:
            raise MissingPartError(
                'SAASBO draws its samples with NumPyro, which is not installed. Run: pip install "alebo[saas]", or use '
                "the method 'saas-map', which needs nothing more."
            ) from None
        import torch
        from botorch.fit import fit_fully_bayesian_model_nuts
        from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP

        from ._ard import process

        shift, spread = float(np.mean(y)), max(float(np.std(y, ddof=1)), 1e-12)
        Xt, z = torch.as_tensor(X), torch.as_tensor((y - shift) / spread)
        known = None if variance is None else torch.as_tensor(np.maximum(variance / spread**2, 1e-6))
        model = SaasFullyBayesianSingleTaskGP(Xt, z[:, None], None if known is None else known[:, None])
        fit_fully_bayesian_model_nuts(
            model,
            warmup_steps=self.warmup,
            num_samples=self.samples,
            thinning=self.thinning,
            disable_progbar=True,
            seed=seed % 2**31,
        )
        covariance: Any = model.covar_module
        mean: Any = model.mean_module
        lengthscales = covariance.base_kernel.lengthscale.detach().reshape(-1, X.shape[1]).numpy()
        scales = covariance.outputscale.detach().reshape(-1).tolist()
        means = mean.constant.detach().reshape(-1).tolist()
        noises = model.likelihood.noise.detach().reshape(len(scales), -1)
        return [
            process(Xt, z, "matern", l, s, v.expand(len(z)).clone(), shift, spread, mean=m)
            for l, s, v, m in zip(lengthscales, scales, noises, means, strict=True)
        ]


def sparse(shrinkage: float) -> Priors:
    """Half-Cauchy densities of the inverse squared lengthscales rho_d = l_d^-2, most of them near zero."""
    from ._ard import Priors

    def penalty(log_l: Array) -> tuple[float, Array]:
        ratio = np.exp(np.clip(-4.0 * log_l, None, 600.0)) / shrinkage**2  # (rho / tau)^2
        return float(np.log1p(ratio).sum()), -4.0 * ratio / (1.0 + ratio)

    return Priors("matern", (1e-2, 1e4), (0.05, 20.0), (1e-6, 1.0), penalty, starts=(1.0, 10.0), start_noise=1e-3)


def fit_map(X: Array, y: Array, variance: Array | None) -> GP:
    """The most probable sparse process for each shrinkage of a grid; of these the one that predicts left-out points best."""
    from ._ard import fit, leave_one_out

    return max((fit(X, y, sparse(t), variance=variance) for t in SHRINKAGES), key=leave_one_out)
