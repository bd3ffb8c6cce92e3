"""Surrogate models: the Mahalanobis GP of linear embeddings, the full-space GP, the additive GP, and mixtures of models."""

from .ard import ARDGP as ARDGP
from .ard_fit import fit_ard as fit_ard
from .ard_fit import fit_best as fit_best
from .ard_fit import fit_mixture as fit_mixture
from .mahalanobis import CHEAP as CHEAP
from .mahalanobis import PAPER as PAPER
from .mahalanobis import MahalanobisGP as MahalanobisGP
from .mahalanobis import MahalanobisKernel as MahalanobisKernel
from .mahalanobis import MetricPrior as MetricPrior
from .mahalanobis import default_inflation as default_inflation
from .mahalanobis import fit_gp as fit_gp
from .mahalanobis import sample_gp as sample_gp
from .priors import ARDPrior as ARDPrior
from .surrogate import Mixture as Mixture
from .surrogate import Surrogate as Surrogate
