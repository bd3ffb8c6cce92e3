"""The Gaussian process of a linear embedding: the paper's kernel, its parameters sampled or fitted, the posterior over both."""

from .build import CHEAP as CHEAP
from .build import fit_gp as fit_gp
from .build import sample_gp as sample_gp
from .kernel import MahalanobisKernel as MahalanobisKernel
from .laplace import default_inflation as default_inflation
from .likelihood import PAPER as PAPER
from .likelihood import MetricPrior as MetricPrior
from .model import MahalanobisGP as MahalanobisGP
