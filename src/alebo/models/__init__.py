"""Surrogate models: the Mahalanobis GP of linear embeddings, and the full-space GP with one lengthscale per coordinate."""

from .ard import ARDGP as ARDGP
from .ard import fit_ard as fit_ard
from .gp import MahalanobisGP as MahalanobisGP
from .gp import fit_gp as fit_gp
from .gp import sample_gp as sample_gp
from .kernel import MahalanobisKernel as MahalanobisKernel
from .priors import ARDPrior as ARDPrior
