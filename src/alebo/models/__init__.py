"""The Gaussian process of the embedding: kernel, sampled or fitted parameters, moment-matched posterior."""

from .gp import MahalanobisGP as MahalanobisGP
from .gp import fit_gp as fit_gp
from .gp import sample_gp as sample_gp
from .kernel import MahalanobisKernel as MahalanobisKernel
