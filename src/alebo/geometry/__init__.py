"""Embeddings, their polytopes, and the chance that they contain an optimum."""

from .embedding import Embedding as Embedding
from .embedding import from_matrix as from_matrix
from .embedding import gaussian as gaussian
from .embedding import hesbo as hesbo
from .embedding import hypersphere as hypersphere
from .embedding import identity as identity
from .polytope import Polytope as Polytope
