"""Embeddings, their polytopes, and the chance that they contain an optimum."""

from .containment import Containment as Containment
from .containment import axis_aligned as axis_aligned
from .containment import containment_probability as containment_probability
from .containment import containment_sweep as containment_sweep
from .containment import contains_optimum as contains_optimum
from .containment import hesbo_probability as hesbo_probability
from .containment import random_rotation as random_rotation
from .embedding import Embedding as Embedding
from .embedding import from_matrix as from_matrix
from .embedding import gaussian as gaussian
from .embedding import hesbo as hesbo
from .embedding import hypersphere as hypersphere
from .embedding import identity as identity
from .polytope import Polytope as Polytope
