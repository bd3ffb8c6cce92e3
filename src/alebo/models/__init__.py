"""The Gaussian process of the embedding: kernel, fit, Laplace approximation, moment-matched posterior."""

from .gp import MahalanobisGP as MahalanobisGP
from .gp import fit_gp as fit_gp
from .kernel import MahalanobisKernel as MahalanobisKernel
