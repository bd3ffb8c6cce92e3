"""SAASBO: Bayesian optimization in the full space under a prior that most parameters do not matter.

Eriksson and Jankowiak 2021. `SAASBO` averages over NUTS samples of the lengthscales, as its authors do; `SAASMAP` takes the
most probable ones and costs a hundredth. Both differ from plain BO by the prior only.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from .._errors import MissingPartError
from ..models import ARDGP, Mixture, fit_best
from ..models.outcomes import Standardisation
from ..models.priors import NOISE_FLOOR, sparse
from ._method import Supports, setting
from ._outcomes import Build
from .bo import CENTRE, INITIAL, FullSpace

SHRINKAGES = (1.0, 0.1, 0.01, 0.001)  # of the inverse squared lengthscales: the grid of SAASMAP


@dataclass(frozen=True)
class SAASMAP(FullSpace):
    """The sparse prior at its most probable lengthscales: the fast variant, for which the shrinkage is cross-validated."""

    initial: int | None = setting(None, INITIAL)
    centre: bool = setting(False, CENTRE)

    name: ClassVar[str] = "saas-map"
    title: ClassVar[str] = "SAAS-MAP"
    citation: ClassVar[str] = (
        "Eriksson and Jankowiak 2021, High-dimensional BO with sparse axis-aligned subspaces (MAP)"
    )
    supports: ClassVar[Supports] = Supports(constraints=True)

    def __post_init__(self) -> None:
        self._counts(initial=2)
        self._flags("centre")

    def builder(self, D: int) -> Build:
        return partial(fit_best, priors=[sparse(t) for t in SHRINKAGES])


@dataclass(frozen=True)
class SAASBO(FullSpace):
    """The sparse prior, averaged over samples of its posterior drawn by NUTS.

    Needs the extra `saas` (NumPyro); takes minutes an iteration where SAASMAP takes a fraction of a second.
    """

    initial: int | None = setting(None, INITIAL)
    centre: bool = setting(False, CENTRE)
    warmup: int = setting(256, "steps of NUTS before any sample")
    samples: int = setting(128, "of the posterior drawn by NUTS")
    thinning: int = setting(16, "every so many samples one is kept")

    name: ClassVar[str] = "saasbo"
    title: ClassVar[str] = "SAASBO"
    citation: ClassVar[str] = "Eriksson and Jankowiak 2021, High-dimensional BO with sparse axis-aligned subspaces"
    supports: ClassVar[Supports] = Supports(constraints=True)

    def __post_init__(self) -> None:
        self._counts(initial=2, warmup=1, samples=1, thinning=1)
        self._flags("centre")

    def builder(self, D: int) -> Build:
        return self._nuts

    def _nuts(
        self, X: Tensor, values: Tensor, *, variances: Tensor | None = None, warm: Sequence[Any] = (), seed: int = 0
    ) -> Mixture:
        """One process for every kept sample of the posterior, all equally likely."""
        try:
            import_module("numpyro")
        except ImportError:
            raise MissingPartError(
                'SAASBO draws its samples with NumPyro, which is not installed. Run: pip install "alebo[saas]", or use '
                "the method 'saas-map', which needs nothing more."
            ) from None
        from botorch.fit import fit_fully_bayesian_model_nuts
        from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP

        units = Standardisation.of(values.numpy())
        z = torch.from_numpy(units(values.numpy()))
        known = units.variances(None if variances is None else variances.numpy())
        given = None if known is None else torch.from_numpy(np.maximum(known, NOISE_FLOOR))[:, None]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # BoTorch expects n - 1 in the standard deviation
            model = SaasFullyBayesianSingleTaskGP(X, z[:, None], given)
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
        units_of = {"shift": units.shift, "scale": units.scale, "known_noise": known is not None}
        return Mixture(
            tuple(
                ARDGP.of(X.numpy(), z.numpy(), "matern", l, s, v.expand(len(z)).numpy().copy(), mean=m, **units_of)
                for l, s, v, m in zip(lengthscales, scales, noises, means, strict=True)
            )
        )
